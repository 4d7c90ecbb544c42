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
//
// # Caveats
//
// The file holds transcripts as plain text, readable by its owner only. WAL
// needs a local file system; a network one is refused.
package sqlitestore
