package eventlog

import (
	"context"
	"iter"
	"math"
	"slices"
)

// Node is one entry of a [Tree].
type Node struct {
	Entry    Entry
	Depth    int    // below its root
	Parent   int    // index of its parent in Tree.Nodes, -1 for a root
	Children []int  // indices: in log order, or by time in the coding agent's dialect
	Label    string // "" for none
	Labelled Entry  // the label entry that set it; its time is the label's
	Active   bool   // on the way from the current leaf up to its root
	OnBranch bool   // on the current branch: active, and not before the cut of a compaction
	Leaf     bool   // the current leaf
	Control  bool   // bookkeeping: see [Type.Control]
	// Gap says that the entry names a parent that is not there: it is the root of
	// an island, and what came before it is missing.
	Gap bool
	// Cycle says that the entry is part of a cycle of parents, or below one; the
	// circle is opened at one entry, which stands as a root.
	Cycle bool
}

// Tree is all of a session's entries as a tree, flat: Nodes has them in depth
// first order, each before its children, so that a tree of any depth needs no
// recursion. Where an id stands twice in a file, children hang below the last
// entry that has it.
type Tree struct {
	Nodes []Node
	Roots []int
	Leaf  Ref
	// LeafError is why the leaf cannot be read, or nil.
	LeafError error
}

// Tree builds the tree of the session's entries. It needs memory for the whole
// log.
func (s *Session) Tree(ctx context.Context) (*Tree, error) {
	var entries []Entry
	for e, err := range s.storage.Entries(ctx, 0, All) {
		if err != nil {
			return nil, err
		}
		entries = append(entries, e)
	}
	labels, err := s.LabelList(ctx)
	if err != nil {
		return nil, err
	}
	head, leafErr := s.storage.Head(ctx)
	if leafErr != nil && CodeOf(leafErr) != InvalidSession {
		return nil, leafErr
	}
	t, leaf := newTree(s.dialect, entries, labels, head.Leaf)
	t.LeafError = leafErr
	t.markActive(leaf, s.dialect)
	return t, nil
}

// newTree also gives the index of the leaf's node, -1 if there is none.
func newTree(d Dialect, entries []Entry, list []Label, leaf Ref) (*Tree, int) {
	labels := make(map[string]Label, len(list))
	for _, l := range list {
		labels[l.Target] = l
	}
	last := make(map[string]int32, len(entries)) // the entry that an id finds
	for i, e := range entries {
		last[e.id] = int32(i)
	}
	// Children as linked lists over the log, so that a star of any width costs
	// no allocation a child.
	first, tail, next := fill(len(entries)), fill(len(entries)), fill(len(entries))
	var roots []int32
	gap := make([]bool, len(entries))
	for i, e := range entries {
		if d.rules().isTop(e) {
			roots = append(roots, int32(i))
			continue
		}
		p, ok := last[e.parent.id]
		if !ok {
			gap[i] = !e.IsRoot()
			roots = append(roots, int32(i))
			continue
		}
		if first[p] < 0 {
			first[p] = int32(i)
		} else {
			next[tail[p]] = int32(i)
		}
		tail[p] = int32(i)
	}
	t := &Tree{Nodes: make([]Node, 0, len(entries)), Leaf: leaf}
	leafNode := -1
	placed := make([]bool, len(entries))
	type step struct{ entry, parent int32 }
	var stack []step
	place := func(root int32, cycle bool) {
		t.Roots = append(t.Roots, len(t.Nodes))
		stack = append(stack, step{root, -1})
		for len(stack) > 0 {
			at := stack[len(stack)-1]
			stack = stack[:len(stack)-1]
			if placed[at.entry] {
				continue // a cycle closes
			}
			placed[at.entry] = true
			e := entries[at.entry]
			n := Node{Entry: e, Parent: int(at.parent), Control: e.Type().Control(), Gap: gap[at.entry], Cycle: cycle}
			index := len(t.Nodes)
			if at.parent >= 0 {
				n.Depth = t.Nodes[at.parent].Depth + 1
				t.Nodes[at.parent].Children = append(t.Nodes[at.parent].Children, index)
			}
			if last[e.id] == at.entry { // of an id that stands twice, the entry that it finds
				n.Label, n.Labelled = labels[e.id].Text, labels[e.id].Entry
				if At(e.id) == leaf {
					n.Leaf, leafNode = true, index
				}
			}
			t.Nodes = append(t.Nodes, n)
			from := len(stack)
			for c := first[at.entry]; c >= 0; c = next[c] {
				stack = append(stack, step{c, int32(index)})
			}
			d.rules().orderChildren(len(stack)-from, func(i int) Entry { return entries[stack[from+i].entry] }, func(order []int) {
				children := slices.Clone(stack[from:])
				for i, at := range order {
					stack[from+i] = children[at]
				}
			})
			for i, j := from, len(stack)-1; i < j; i, j = i+1, j-1 {
				stack[i], stack[j] = stack[j], stack[i]
			}
		}
	}
	for _, r := range roots {
		place(r, false)
	}
	for i := range entries {
		if !placed[i] {
			// No root leads here: i is part of a cycle, or hangs below one.
			at, seen := int32(i), map[int32]bool{}
			for !seen[at] {
				seen[at] = true
				at = last[entries[at].parent.id]
			}
			place(at, true)
		}
	}
	return t, leafNode
}

func fill(n int) []int32 {
	s := make([]int32, n)
	for i := range s {
		s[i] = -1
	}
	return s
}

// markActive marks the way up from the leaf's node, and the part of it that is
// the current branch.
func (t *Tree) markActive(leaf int, d Dialect) {
	cut, stopped := d.Cut(), false
	for at := leaf; at >= 0; at = t.Nodes[at].Parent {
		n := &t.Nodes[at]
		n.Active, n.OnBranch = true, !stopped
		stopped = stopped || cut.Stops(n.Entry)
	}
}

// All gives the nodes with their indices, each before its children.
func (t *Tree) All() iter.Seq2[int, *Node] {
	return func(yield func(int, *Node) bool) {
		for i := range t.Nodes {
			if !yield(i, &t.Nodes[i]) {
				return
			}
		}
	}
}

func (harness) isTop(e Entry) bool { return e.IsRoot() }

// isTop: by null, or by being its own parent; what JavaScript takes for false may
// be an id.
func (codingAgent) isTop(e Entry) bool {
	return e.parent.IsNone() || e.parent.id == e.id
}

func (harness) orderChildren(int, func(int) Entry, func([]int)) {}

// orderChildren: by time, as Array.prototype.sort orders them. A time that is none
// is equal to every other, so which order comes of it depends on the algorithm: it
// is V8's for lists of up to 64.
func (codingAgent) orderChildren(n int, entry func(int) Entry, reorder func([]int)) {
	if n < 2 {
		return
	}
	times, order, sorted := make([]float64, n), make([]int, n), true
	for i := range n {
		times[i], order[i] = dateOf(entry(i).stamp()), i
		sorted = sorted && (i == 0 || times[i-1] <= times[i])
	}
	if sorted {
		return
	}
	compare := func(a, b int) int {
		switch d := times[a] - times[b]; {
		case d < 0:
			return -1
		case d > 0:
			return 1
		}
		return 0
	}
	if n > 64 || !slices.ContainsFunc(times, math.IsNaN) {
		slices.SortStableFunc(order, compare)
	} else {
		v8Sort(order, compare)
	}
	reorder(order)
}

// v8Sort is V8's sort of a short list: the run that it starts with, turned around
// if it falls, then binary insertion.
func v8Sort(a []int, compare func(a, b int) int) {
	run := 2
	if falls := compare(a[1], a[0]) < 0; falls {
		for run < len(a) && compare(a[run], a[run-1]) < 0 {
			run++
		}
		slices.Reverse(a[:run])
	} else {
		for run < len(a) && compare(a[run], a[run-1]) >= 0 {
			run++
		}
	}
	for start := run; start < len(a); start++ {
		pivot, left, right := a[start], 0, start
		for left < right {
			mid := left + (right-left)/2
			if compare(pivot, a[mid]) < 0 {
				right = mid
			} else {
				left = mid + 1
			}
		}
		copy(a[left+1:start+1], a[left:start])
		a[left] = pivot
	}
}
