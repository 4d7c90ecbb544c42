package main

import (
	"github.com/sessiontree/sessiontree/eventlog"
)

// layout is a tree as it is drawn: its visible nodes, where each line goes on,
// and what hangs off it.
//
// A run of entries stays in its column, however long it is. At a fork one child
// goes on in the column of its parent: the one that leads to the leaf, else the
// one with most entries below it. The others are indented, above it. So the
// active branch is one straight line, and the columns are few: each step to the
// right at least halves what is below, whatever the shape of the tree.
type layout struct {
	tree     *eventlog.Tree
	shown    []bool
	children [][]int32 // visible children, through hidden nodes, in log order
	size     []int32   // visible nodes at and below
	roots    []int32
	// came is where the user came from, for the first entry after a move.
	came map[int]eventlog.Ref
	// left is where the user came from, when the log ends with a move.
	left   *eventlog.Ref
	above  []int32        // the visible node at or above each, -1 for none
	index  map[string]int // the node that an id finds; only where a move is
	hidden int
}

// newLayout lays a tree out. log holds the session's entries in their order.
//
// Control entries are bookkeeping, and most of them are of no interest in a
// tree: they are hidden unless all is set. But one that a branch starts at, the
// leaf, one with a label, and one where something is wrong stay, so that no fork
// and no mark is lost; what hangs below a hidden entry hangs below its parent.
func newLayout(tree *eventlog.Tree, log []eventlog.Entry, all bool) *layout {
	n := len(tree.Nodes)
	l := &layout{tree: tree, shown: make([]bool, n), children: make([][]int32, n), size: make([]int32, n)}
	l.origins(log)
	branches := make([]int32, n)  // children with something visible at or below them
	for i := n - 1; i >= 0; i-- { // children stand behind their parents
		node := &tree.Nodes[i]
		l.shown[i] = all || !node.Control || node.Leaf || node.Label != "" || node.Gap || node.Cycle || branches[i] > 1
		if l.shown[i] {
			l.size[i]++
		} else {
			l.hidden++
		}
		if p := node.Parent; p >= 0 && l.size[i] > 0 {
			branches[p]++
			l.size[p] += l.size[i]
		}
	}
	above := make([]int32, n)
	l.above = above
	for i := range tree.Nodes {
		node := &tree.Nodes[i]
		parent := int32(-1)
		if node.Parent >= 0 {
			parent = above[node.Parent]
		}
		if above[i] = parent; !l.shown[i] {
			// The next visible one below it tells what this one would.
			if came, ok := l.came[i]; ok && l.size[i] > 0 {
				for _, c := range node.Children {
					if _, has := l.came[c]; !has && l.size[c] > 0 {
						l.came[c] = came
					}
				}
			}
			continue
		}
		above[i] = int32(i)
		if parent < 0 {
			l.roots = append(l.roots, int32(i))
		} else {
			l.children[parent] = append(l.children[parent], int32(i))
		}
	}
	return l
}

// origins finds, for the first entry after each move, the leaf that was left:
// the parent of the leaf entry. Of several moves in a row the first counts.
func (l *layout) origins(log []eventlog.Entry) {
	// By the entries' own text: the id of a leaf may be long, and of all entries
	// that have the same id only one came from there.
	byText := map[string]eventlog.Ref{}
	moved := map[string]bool{} // ids, which are faster to look up
	var left *eventlog.Ref
	for _, e := range log {
		switch {
		case e.Type() != eventlog.TypeLeaf:
			if left != nil && *left != e.Parent() {
				byText[e.JSON()], moved[e.ID()] = *left, true
			}
			left = nil
		case left == nil:
			from := e.Parent()
			left = &from
		}
	}
	if left != nil && *left != l.tree.Leaf {
		l.left = left
	}
	l.came = make(map[int]eventlog.Ref, len(byText))
	if len(byText) == 0 && l.left == nil {
		return
	}
	l.index = make(map[string]int, len(l.tree.Nodes))
	for i := range l.tree.Nodes {
		e := l.tree.Nodes[i].Entry
		l.index[e.ID()] = i
		if e.Type() == eventlog.TypeLeaf {
			continue
		}
		if !moved[e.ID()] {
			continue
		}
		if came, ok := byText[e.JSON()]; ok && !came.IsNone() {
			l.came[i] = came
			delete(byText, e.JSON())
		}
	}
}

// origin is an entry that the user came from, as far as it is visible: often it
// is the label that was put on the last message, where the message says more.
func (l *layout) origin(r eventlog.Ref) string {
	if i, ok := l.index[r.ID()]; ok && l.above[i] >= 0 {
		r = eventlog.At(l.tree.Nodes[l.above[i]].Entry.ID())
	}
	return shownRef(r)
}

// main is the child that goes on in the column of its parent, -1 for none: below
// the leaf the line ends, and all that is there hangs off it.
func (l *layout) main(node int32) int32 {
	if l.tree.Nodes[node].Leaf {
		return -1
	}
	best := int32(-1)
	for _, c := range l.children[node] {
		if l.tree.Nodes[c].Active {
			return c
		}
		if best < 0 || l.size[c] >= l.size[best] {
			best = c
		}
	}
	return best
}

// rows gives the visible nodes in the order in which they are drawn, each with
// the lines to its left.
func (l *layout) rows(yield func(node int, rails string) bool) {
	type step struct {
		node       int32
		head, body string // the rails of this node, and of those below it
	}
	stack := make([]step, 0, 64)
	for i := len(l.roots) - 1; i >= 0; i-- {
		stack = append(stack, step{node: l.roots[i]})
	}
	for len(stack) > 0 {
		at := stack[len(stack)-1]
		stack = stack[:len(stack)-1]
		if !yield(int(at.node), at.head) {
			return
		}
		main := l.main(at.node)
		last := true // nothing of this column comes below
		if main >= 0 {
			stack = append(stack, step{main, at.body, at.body})
			last = false
		}
		children := l.children[at.node]
		for i := len(children) - 1; i >= 0; i-- {
			switch c := children[i]; {
			case c == main:
				continue
			case last:
				stack = append(stack, step{c, at.body + "└─", at.body + "  "})
				last = false
			default:
				stack = append(stack, step{c, at.body + "├─", at.body + "│ "})
			}
		}
	}
}

// shape counts what a session's user sees of its tree.
type shape struct{ roots, forks, tips, depth int }

// shapeOf counts forks and tips of the conversation: bookkeeping is no branch of
// its own, so an entry that was left and came back to is no fork unless another
// branch was begun there.
func shapeOf(tree *eventlog.Tree) shape {
	s := shape{roots: len(tree.Roots)}
	n := len(tree.Nodes)
	branches := make([]int32, n)
	told := make([]bool, n) // part of the conversation, or above such a part
	for i := n - 1; i >= 0; i-- {
		node := &tree.Nodes[i]
		s.depth = max(s.depth, node.Depth+1)
		told[i] = !node.Control || branches[i] > 0
		switch {
		case branches[i] > 1:
			s.forks++
		case branches[i] == 0 && told[i]:
			s.tips++
		}
		if told[i] && node.Parent >= 0 {
			branches[node.Parent]++
		}
	}
	return s
}
