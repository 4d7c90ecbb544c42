// Package jsonl keeps sessions in Pi's own files: version 3, one JSON value a
// line, the header first. It is the conformance reference, and a backend in its
// own right for hosts that want plain files.
//
// An open session is held in memory; the file is only ever appended to, one
// write an append, by default followed by an fsync.
//
// # What is better than Pi
//
//   - A line that cannot be read costs that line and no more: [Open] gives every
//     entry that can be read and [Storage.Damage] says what could not be, where
//     and why. With [Options.Strict] it refuses the file with Pi's own error.
//   - Reading never changes a file. An append first ends a last line that lacks
//     its newline. A torn last line that holds no entry is copied to a file
//     beside the session (".damaged"), with its place and the reason, and then
//     cut, so that the file can be read by Pi again. Damage further up stays
//     where it is.
//     So is the rest of an append of several lines that a loss of power cut off,
//     where its first lines were lost and not its last: it was never acknowledged.
//   - The first append takes a lock that other processes (and other handles of
//     this one) respect: their appends fail with [eventlog.ErrBusy]. What others
//     wrote before that is read first, so an append goes below the leaf that they
//     left. The lock is the operating system's, on the session file itself; it
//     goes with the process.
//   - Names of files and folders are one to one with ids and working folders.
//     Pi's own folders are found all the same.
//
// Files are 0600 and folders 0700, whatever the umask; on Windows, where modes
// do not hold, they inherit the rights of the folder above.
package jsonl
