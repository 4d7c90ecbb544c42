// Package projections keeps the views of the log: what is computed from events,
// can be deleted, and can be made again from the log alone.
//
// A [Projection] applies events in the order of their seq, inside a write
// transaction that also moves its checkpoint, so that what it wrote and how far
// it has come are never apart. The branch set ([Branch]: ancestry, heads,
// labels) is applied in the writer's own transaction, so that reads of it are
// never behind. Its checkpoint says only that it is in this lockstep: to move it would
// cost each append a page more, and who writes without applying leaves that state
// first ([LeaveLockstep]). [CatchUp] brings a view forward that is, in slices. The other views
// follow asynchronously, each in a goroutine of a [Runner], and their readers wait
// until all that was in the log is in the view ([Runner.CatchUp]): an index that
// every append would have to move belongs there.
//
// # Ancestry
//
// A plain closure table has a row for each pair of entry and ancestor: 10,000
// entries in a chain cost 30 s and 75 KB an entry. Here a segment is a run of
// entries that are neighbours in their session's log, each the parent of the
// next, and only segments know their parents. Each has its parent and one jump to
// a farther ancestor (skew-binary), so that any ancestor is found in O(log) steps,
// on a comb too.
//
// Since the n of an entry tells its segment, the last of its session that does not
// start behind it, no table says where entries stand: an append behind its parent
// writes no row of ancestry at all, a chain has one row, and rows never change. A
// segment's key is the seq of its first entry, so that a rebuild gives the same
// rows, a copy of a session needs no table of new keys, and what is kept of
// segments in memory stays right. The price: an append to the end of a branch that
// was left meanwhile opens a segment, where a table of nodes (pos, seq) let it
// extend one. Against such a table, measured in turns: the branch of a comb in 2.5
// instead of 3.7 times a bare scan, of a chain in 1.2 instead of 1.4; no bytes an
// entry on a chain instead of 25, 1.4 on a tree whose every 50th entry goes back,
// 32 on a comb; a fork of the whole costs a tenth more than copying the log.
//
// A compaction starts a segment too: then all entries of one stop their branches
// at the same depth, and no table of cuts is searched.
//
// What was tried and is not here: runs of entries whose seqs follow each other, in
// a table of their own (sessions that take turns break them, segments by n do not;
// package query uses neighbouring seqs where it finds them); the branch of a comb
// in one recursive query, leaf first and without a sort (as slow as with it: the
// climb costs more than the read, so it is kept in memory); the climb handed over
// as one text (a tenth faster than rows); more than 16 rows a statement (nothing);
// doing without an index by n (a twentieth of a bulk build, and no way into a log).
//
// There is no table of the active branch's ranges: rewriting it when the leaf
// moves costs as many rows as the branch has segments, while following the
// segments at read time costs one step for each range that is read anyway.
package projections
