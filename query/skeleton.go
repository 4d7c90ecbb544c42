package query

import (
	"cmp"
	"context"
	"slices"
	"strconv"

	"github.com/sessiontree/sessiontree/eventlog"
)

// limb is a segment as the skeleton sees it.
type limb struct {
	key, first, start int64
	parent            int   // index of the segment that it forked from, -1 for none
	last              int64 // n of its last entry
	missing           bool
	children          []int32 // segments that fork from it, by where they do
	active            int64   // up to this n its entries are on the active branch
}

// forkN is the n of the entry that a segment hangs below, in the segment above.
func (l limb) forkN(above limb) int64 { return above.first + l.start - 1 - above.start }

const (
	limbsSQL = `SELECT key, first, start, coalesce(parent, 0), missing IS NOT NULL FROM segments WHERE session = ? ORDER BY key`

	// The labelled entries by their n, and the leaf with its segment.
	labelledSQL = `SELECT e.n, l.label FROM labels l CROSS JOIN events e ON e.session = l.session AND e.id = l.target WHERE l.session = ?`
	leafSQL     = `SELECT n, coalesce(leaf_n, 0), coalesce(segment, 0) FROM heads WHERE session = ?`

	namesSQL = `SELECT e.id, e.type FROM json_each(?1) r CROSS JOIN events e WHERE e.session = ?2 AND e.n = r.value`
)

// skeleton is what the joints of a session are made from.
type skeleton struct {
	limbs        []limb
	labels       map[int64]string
	entries      int64
	leaf, leafIn int64   // n and segment, 0 for none
	marks        []int64 // n of the labelled entries and the leaf, in order
	ns           []int64 // of the joints
	joints       eventlog.Skeleton
}

// Skeleton gives the joints of a regular session's tree, at the cost of its
// segments and not of its entries. It equals [eventlog.Tree.Skeleton] in the
// dialect whose children stand in log order.
func Skeleton(ctx context.Context, c Conn, session int64) (eventlog.Skeleton, error) {
	var s skeleton
	if err := s.read(ctx, c, session); err != nil {
		return nil, err
	}
	s.markActive()
	s.join()
	return s.joints, s.name(ctx, c, session)
}

func (s *skeleton) read(ctx context.Context, c Conn, session int64) error {
	if _, err := c.Row(ctx, leafSQL, []any{session}, &s.entries, &s.leaf, &s.leafIn); err != nil {
		return err
	}
	rows, err := c.Rows(ctx, limbsSQL, session)
	if err != nil {
		return err
	}
	defer rows.Close()
	index := map[int64]int{}
	for rows.Next() {
		var l limb
		var parent int64
		if err := rows.Scan(&l.key, &l.first, &l.start, &parent, &l.missing); err != nil {
			return err
		}
		l.parent = -1
		if at, ok := index[parent]; ok {
			l.parent = at
			s.limbs[at].children = append(s.limbs[at].children, int32(len(s.limbs)))
		}
		if n := len(s.limbs); n > 0 {
			s.limbs[n-1].last = l.first - 1
		}
		index[l.key] = len(s.limbs)
		s.limbs = append(s.limbs, l)
	}
	if err := rows.Err(); err != nil {
		return err
	}
	if n := len(s.limbs); n > 0 {
		s.limbs[n-1].last = s.entries
	}
	return s.readLabels(ctx, c, session)
}

func (s *skeleton) readLabels(ctx context.Context, c Conn, session int64) error {
	s.labels = map[int64]string{}
	rows, err := c.Rows(ctx, labelledSQL, session)
	if err != nil {
		return err
	}
	defer rows.Close()
	for rows.Next() {
		var n int64
		var label string
		if err := rows.Scan(&n, &label); err != nil {
			return err
		}
		s.labels[n] = label
		s.marks = append(s.marks, n)
	}
	if s.leaf > 0 {
		s.marks = append(s.marks, s.leaf)
	}
	slices.Sort(s.marks)
	return rows.Err()
}

// markActive goes up from the leaf.
func (s *skeleton) markActive() {
	at, _ := slices.BinarySearchFunc(s.limbs, s.leafIn, func(l limb, key int64) int { return cmp.Compare(l.key, key) })
	if s.leafIn == 0 || at == len(s.limbs) {
		return
	}
	for n := s.leaf; ; {
		l := &s.limbs[at]
		l.active = n
		if l.parent < 0 {
			return
		}
		at, n = l.parent, l.forkN(s.limbs[l.parent])
	}
}

// join walks the segments depth first. The stack holds segments to go through,
// each from an n on, and the joint above.
func (s *skeleton) join() {
	type step struct {
		limb  int32
		from  int64
		child int // of the segment: the next of its children that is behind from
		above int
	}
	var stack []step
	for i := len(s.limbs) - 1; i >= 0; i-- {
		l := &s.limbs[i]
		slices.SortStableFunc(l.children, func(a, b int32) int {
			return cmp.Compare(s.limbs[a].start, s.limbs[b].start)
		})
		if l.parent < 0 {
			stack = append(stack, step{int32(i), l.first, 0, -1})
		}
	}
	for len(stack) > 0 {
		at := stack[len(stack)-1]
		stack = stack[:len(stack)-1]
		l := &s.limbs[at.limb]
		// The entries of the segment that count: where others fork off, labelled ones,
		// the leaf, both ends.
		stops := s.stops(l, at.from, at.child)
		for _, n := range stops {
			first := at.child
			for at.child < len(l.children) && s.limbs[l.children[at.child]].forkN(*l) == n {
				at.child++
			}
			forks := l.children[first:at.child]
			children := len(forks)
			if n < l.last {
				children++
			}
			root := n == l.first && l.parent < 0
			if root || children != 1 || s.labels[n] != "" || n == s.leaf {
				at.above = s.add(l, n, children, root, at.above)
			}
			if len(forks) == 0 {
				continue
			}
			// What follows in the segment was appended first: it is the first child.
			for i := len(forks) - 1; i >= 0; i-- {
				stack = append(stack, step{forks[i], s.limbs[forks[i]].first, 0, at.above})
			}
			if n < l.last {
				stack = append(stack, step{at.limb, n + 1, at.child, at.above})
			}
			break
		}
	}
}

// stops are the entries of a segment, from one on, up to the first fork, that may
// be joints.
func (s *skeleton) stops(l *limb, from int64, child int) (ns []int64) {
	end := l.last
	if child < len(l.children) {
		end = s.limbs[l.children[child]].forkN(*l)
	}
	if from == l.first {
		ns = append(ns, from)
	}
	low, _ := slices.BinarySearch(s.marks, from)
	for _, n := range s.marks[low:] {
		if n > end {
			break
		}
		ns = append(ns, n)
	}
	ns = append(ns, end)
	slices.Sort(ns)
	return slices.Compact(ns)
}

func (s *skeleton) add(l *limb, n int64, children int, root bool, above int) int {
	s.ns = append(s.ns, n)
	s.joints = append(s.joints, eventlog.Joint{
		Depth:    int(l.start + n - l.first),
		Parent:   above,
		Children: children,
		Label:    s.labels[n],
		Active:   n <= l.active,
		Leaf:     n == s.leaf,
		Gap:      root && l.missing,
	})
	return len(s.joints) - 1
}

// name reads the ids and types of the joints.
func (s *skeleton) name(ctx context.Context, c Conn, session int64) error {
	list := []byte{'['}
	for i, n := range s.ns {
		if i > 0 {
			list = append(list, ',')
		}
		list = strconv.AppendInt(list, n, 10)
	}
	rows, err := c.Rows(ctx, namesSQL, string(append(list, ']')), session)
	if err != nil {
		return err
	}
	defer rows.Close()
	i := 0
	for ; rows.Next() && i < len(s.joints); i++ {
		if err := rows.Scan(&s.joints[i].ID, (*string)(&s.joints[i].Type)); err != nil {
			return err
		}
	}
	if err := rows.Err(); err != nil {
		return err
	}
	if i != len(s.joints) {
		return eventlog.Errorf(eventlog.StorageFailed, "the branch views name entries that are not there: rebuild them")
	}
	return nil
}
