package projections

import (
	"context"
	"slices"
	"strconv"

	"github.com/sessiontree/sessiontree/eventlog"
)

// spanOf is a run of a session's entries, from n low to high. Lists of them rise,
// and no two touch.
type spanOf struct{ low, high int64 }

// appendSpan adds a run behind the others.
func appendSpan(spans []spanOf, s spanOf) []spanOf {
	if last := len(spans) - 1; last >= 0 && spans[last].high+1 >= s.low {
		spans[last].high = max(spans[last].high, s.high)
		return spans
	}
	if s.low > s.high {
		return spans
	}
	return append(spans, s)
}

// without is what spans have that others lack.
func without(spans, others []spanOf) (left []spanOf) {
	i := 0
	for _, s := range spans {
		for i < len(others) && others[i].high < s.low {
			i++
		}
		for j := i; j < len(others) && others[j].low <= s.high; j++ {
			if s.low < others[j].low {
				left = append(left, spanOf{s.low, others[j].low - 1})
			}
			s.low = others[j].high + 1
		}
		if s.low <= s.high {
			left = append(left, s)
		}
	}
	return left
}

// spanBits is how many bits the length of a run has in a list.
const spanBits = 20

// listSpans is a JSON list of low << 20 | length - 1.
func listSpans(spans []spanOf) string {
	list := []byte{'['}
	for _, s := range spans {
		for low := s.low; low <= s.high; low += 1 << spanBits {
			length := min(s.high-low+1, 1<<spanBits)
			if len(list) > 1 {
				list = append(list, ',')
			}
			list = strconv.AppendInt(list, low<<spanBits|(length-1), 10)
		}
	}
	return string(append(list, ']'))
}

// limb is a segment as a way up needs it; its parent and its jump are 0 for none.
type limb struct{ key, first, start, hops, parent, jump, jumpShared int64 }

func (l limb) depth(n int64) int64 { return l.start + n - l.first }

func (l limb) at(depth int64) place { return place{l.key, l.first + depth - l.start} }

// climber goes up over the segments of sessions, and keeps what it read of them:
// they never change.
type climber struct {
	tx    *Tx
	limbs map[int64]limb
}

// climbSQL is the segment ?1 with those above it that a way down to depth ?2 passes,
// ?3 at the most.
const climbSQL = `
WITH RECURSIVE up (key, first, start, hops, parent, jump, jump_shared) AS (
	SELECT key, first, start, hops, parent, jump, jump_shared FROM segments WHERE key = ?1
	UNION ALL
	SELECT s.key, s.first, s.start, s.hops, s.parent, s.jump, s.jump_shared FROM up JOIN segments s ON s.key = up.parent WHERE up.start > ?2
	LIMIT ?3
)
SELECT key, first, start, hops, coalesce(parent, 0), coalesce(jump, 0), coalesce(jump_shared, 0) FROM up`

// read keeps segments.
func (c *climber) read(ctx context.Context, key, depth int64, most int) (limb, error) {
	rows, err := c.tx.Rows(ctx, climbSQL, key, depth, most)
	if err != nil {
		return limb{}, err
	}
	defer rows.Close()
	for rows.Next() {
		var l limb
		if err := rows.Scan(&l.key, &l.first, &l.start, &l.hops, &l.parent, &l.jump, &l.jumpShared); err != nil {
			return limb{}, err
		}
		c.limbs[l.key] = l
	}
	if l, ok := c.limbs[key]; ok || rows.Err() != nil {
		return l, rows.Err()
	}
	return limb{}, eventlog.Errorf(eventlog.StorageFailed, "the branch views lack a segment that begins with event %d: rebuild them", key)
}

func (c *climber) limb(ctx context.Context, key int64) (limb, error) {
	if l, ok := c.limbs[key]; ok {
		return l, nil
	}
	return c.read(ctx, key, 0, 1)
}

// climbed is how many segments a way reads at a time.
const climbed = 256

// way are the entries from p up to those of a depth above top.
func (c *climber) way(ctx context.Context, p place, top int64) (spans []spanOf, err error) {
	for depth := int64(-1); p.segment != 0; {
		l, ok := c.limbs[p.segment]
		if !ok {
			if l, err = c.read(ctx, p.segment, top+1, climbed); err != nil {
				return nil, err
			}
		}
		if depth < 0 {
			depth = l.depth(p.n)
		}
		if depth <= top {
			break
		}
		spans = append(spans, spanOf{l.first + max(top+1-l.start, 0), l.at(depth).n})
		p.segment, depth = l.parent, l.start-1
	}
	slices.Reverse(spans)
	joined := spans[:0]
	for _, s := range spans {
		joined = appendSpan(joined, s)
	}
	return joined, nil
}

// deepest is the deepest entry on the way from p to the root of an n, or if byDepth of a
// depth, up to a limit, in O(log) steps; nowhere if there is none.
func (c *climber) deepest(ctx context.Context, p place, limit int64, byDepth bool) (place, error) {
	of := func(l limb, n int64) int64 {
		if byDepth {
			return l.depth(n)
		}
		return n
	}
	for p.segment != 0 {
		l, err := c.limb(ctx, p.segment)
		switch {
		case err != nil:
			return place{}, err
		case of(l, l.first) <= limit:
			p.n -= max(of(l, p.n)-limit, 0)
			return p, nil
		case l.parent == 0:
			return place{}, nil
		}
		up, err := c.limb(ctx, l.jump)
		if err != nil {
			return place{}, err
		}
		if p = up.at(l.jumpShared); of(up, p.n) >= limit {
			continue
		}
		if up, err = c.limb(ctx, l.parent); err != nil {
			return place{}, err
		}
		p = up.at(l.start - 1)
	}
	return p, nil
}

// depth is that of an entry, -1 for none.
func (c *climber) depth(ctx context.Context, p place) (int64, error) {
	if p.segment == 0 {
		return -1, nil
	}
	l, err := c.limb(ctx, p.segment)
	return l.depth(p.n), err
}

// isAbove says whether a stands above b, or is b, in O(log) steps.
func (c *climber) isAbove(ctx context.Context, a, b place) (bool, error) {
	if a.segment == 0 || b.segment == 0 {
		return false, nil
	}
	of, err := c.limb(ctx, a.segment)
	if err != nil {
		return false, err
	}
	depth := of.depth(a.n)
	l, err := c.limb(ctx, b.segment)
	if err == nil && l.depth(b.n) < depth {
		return false, nil
	}
	for err == nil && l.start > depth && l.parent != 0 {
		if l.jumpShared >= depth {
			l, err = c.limb(ctx, l.jump)
		} else {
			l, err = c.limb(ctx, l.parent)
		}
	}
	return l.key == a.segment, err
}

// shared is the depth of the deepest entry above both a and b, themselves included,
// -1 for none, in O(log) steps: how far a jump goes depends on the number of segments
// above alone, so two ways that have equally many above them jump in step.
func (c *climber) shared(ctx context.Context, a, b place) (int64, error) {
	if a.segment == 0 || b.segment == 0 {
		return -1, nil
	}
	low, err := c.climb(ctx, a)
	if err != nil {
		return 0, err
	}
	high, err := c.climb(ctx, b)
	if err != nil {
		return 0, err
	}
	if low.hops < high.hops {
		low, high = high, low
	}
	for low.hops > high.hops {
		jumped, err := low.toJump(ctx, c)
		if err == nil && jumped.hops < high.hops {
			jumped, err = low.toParent(ctx, c)
		}
		if err != nil {
			return 0, err
		}
		low = jumped
	}
	for low.key != high.key {
		if low.parent == 0 || high.parent == 0 {
			return -1, nil
		}
		up := climb.toParent
		if low.jump != high.jump {
			up = climb.toJump
		}
		if low, err = up(low, ctx, c); err != nil {
			return 0, err
		}
		if high, err = up(high, ctx, c); err != nil {
			return 0, err
		}
	}
	return min(low.down, high.down), nil
}

// climb is a way up, in a segment, down to which depth it has come there.
type climb struct {
	limb
	down int64
}

func (c *climber) climb(ctx context.Context, p place) (climb, error) {
	l, err := c.limb(ctx, p.segment)
	return climb{l, l.depth(p.n)}, err
}

func (w climb) toParent(ctx context.Context, c *climber) (climb, error) {
	l, err := c.limb(ctx, w.parent)
	return climb{l, w.start - 1}, err
}

func (w climb) toJump(ctx context.Context, c *climber) (climb, error) {
	l, err := c.limb(ctx, w.jump)
	return climb{l, w.jumpShared}, err
}

// followed is the first entry from which on the log goes down to p, each entry the
// parent of the next, with the one that it hangs below, in O(log) steps.
func (c *climber) followed(ctx context.Context, p place) (first int64, below place, err error) {
	l, err := c.limb(ctx, p.segment)
	for err == nil && l.parent != 0 {
		var up limb
		if up, err = c.limb(ctx, l.jump); err != nil {
			break
		}
		if at := up.at(l.jumpShared); l.first-at.n != l.start-l.jumpShared {
			if up, err = c.limb(ctx, l.parent); err != nil {
				break
			}
			if at := up.at(l.start - 1); at.n != l.first-1 {
				return l.first, at, nil
			}
		}
		l = up
	}
	return l.first, place{}, err
}
