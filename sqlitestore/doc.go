// Package sqlitestore keeps sessions in one SQLite file: an append-only table of
// events, the views that projections keep of it, and indexed reads over them.
//
// # Guarantees
//
//   - An append that returned is on disk (synchronous=FULL; see
//     [Options.Synchronous]), whole, with the branch views current.
//   - Appends of all goroutines and processes take turns; each goes below the
//     leaf that the one before left. What was appended is never changed; SQLite
//     triggers refuse it.
//   - The cost of an append, a move, a branch or a context does not depend on the
//     size of the tree, only on what is returned.
//   - An entry of 64 KiB or more, a screenshot as a rule, is kept once, whatever forks
//     and imported copies have it, and goes with the last of them.
//
// # Waiting for others
//
// A call that has to write waits for the writers of other processes, and for its turn
// in this one, until its context's deadline, or for [Options.BusyTimeout] if there is
// none. Then it fails with [eventlog.ErrBusy], and where it was the deadline errors.Is
// finds [context.DeadlineExceeded] in that too. Whose context is cancelled meanwhile
// gets [context.Canceled], and whose has ended before the call the context's error.
// Nothing was written then.
//
// # Caveats
//
// The file holds transcripts as plain text, readable by its owner only. WAL
// needs a local file system; a network one is refused.
package sqlitestore
