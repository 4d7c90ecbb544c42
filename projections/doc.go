// Package projections keeps the views of the log: what is computed from events,
// can be deleted, and can be made again from the log alone.
//
// A [Projection] applies events in the order of their seq, inside a write
// transaction that also moves its checkpoint, so that what it wrote and how far
// it has come are never apart. The branch set ([Branch]: ancestry, heads,
// labels) is applied in the writer's own transaction, so that reads of it are
// never behind; [CatchUp] brings a view forward that is, in slices. The other views
// follow asynchronously, each in a goroutine of a [Runner], and their readers wait
// until all that was in the log is in the view ([Runner.CatchUp]): an index that
// every append would have to move belongs there.
//
// # Ancestry
//
// A plain closure table has a row for each pair of entry and ancestor: 10,000
// entries in a chain cost 30 s and 75 KB an entry. Here a segment is a run of
// entries each appended to the one before, and only segments know their parents:
// an append to the last entry of a segment adds one row to nodes and none of
// ancestry. Each segment has its parent and one jump to a farther ancestor
// (skew-binary), so that any ancestor is found in O(log) steps, on a comb too.
//
// There is no table of the active branch's ranges: rewriting it when the leaf
// moves costs as many rows as the branch has segments, while following the
// segments at read time costs one step for each range that is read anyway.
package projections
