// Package peers measures other stores of sessions beside ours: Pi's SQLite
// backend and Pi's JSONL sessions. They run on Node.js, in a process of their
// own, which speaks the protocol of package backend and takes the time itself,
// around the one call, so that neither the way there nor starting Node counts.
//
// # What is compared
//
//   - Both get the same entries and are asked the same as ours, turn by turn. A
//     ratio of a peer is how many times as long as ours it took.
//   - Each is used as its own documentation and its own benchmark use it, with its
//     defaults: one file a session; Pi's SQLite backend with WAL and synchronous
//     FULL. Pi's JSONL sessions never sync: hold their writes against
//     append-normal. They keep all of a session in memory.
//   - Pi's SQLite backend holds fewer kinds of entries: settings, names and labels
//     become values there, by the rules of Pi's own import of session files. A
//     compaction holds what it keeps, so that a branch is shorter by that.
//   - A session is ready for appends with Pi's SQLite backend once it has a branch
//     as well; create leaves that out.
//
// # What they are not asked
//
// Pi's SQLite backend copies the whole way down to an entry when a branch begins
// there, and cannot read more than about 125,000 entries on one branch. What would
// take minutes or fail is not run, and a report says so: see [Limits]. So it does
// where a peer fails: that ends no run.
//
// # How they get there
//
// [Install] fetches them with npm, in the versions and with the checksums of the
// lock files in this package, into the user's cache folder. Node 24 comes from npm
// too where npm has it for the system; else one of the PATH is used.
package peers
