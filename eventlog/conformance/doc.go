// Package conformance is the one suite that every backend runs. It holds Pi's
// own answers (packed; see [Vectors]) to 207 sessions and files, a runner
// that compares a backend's answers with them, and tests of the behaviour that
// Pi does not have: appends in parallel, retries, all or nothing, closing.
//
// A test calls [Test] with a [Backend]; the command line calls [Run] and prints
// the [Report].
//
// # What is compared
//
// Everything, and whole: each answer is built as JSON from what the backend
// returns and must equal Pi's as JavaScript sees it (see
// [js.Diff]: doubles, lone surrogates, keys as sets, absent apart from null).
// Files are compared byte for byte. A field that the runner does not know, one
// that is missing, and a case that cannot run are failures.
//
// Sessions are replayed through the public interface and asked three times: as
// they are after the last operation, closed and opened again, and loaded from
// Pi's file.
//
// # Deviations
//
// Where this module is better than Pi on purpose a [Rule] says so. A rule
// excuses an answer only if what is expected is what Pi's rule gives, which the
// runner works out for itself, and what was answered is what ours gives.
//
// # Caveats
//
// Where Pi trips over a value (a TypeError or RangeError with a null code, in the
// engine's words) an error with the code invalid_entry is right, and its text is
// not compared. Ids and times of entries come from the vectors: of the ones that
// are written nowhere else (the entry that a malformed file is appended) only the
// form is checked. The waits between retries are compared, but not waited for.
package conformance
