package projections

import (
	"context"
	"sort"
)

// A leaf that moves far has as many entries change sides as it passes. They are read
// in several transactions: the leaf for which the sums hold goes to where the leaf is
// in steps, up to the common ancestor and down again, and then over what came since.

// pacedEntries is how many entries change sides in one transaction: some 15 ms of work,
// where an append waits for one transaction at most.
const pacedEntries = 16 << 10

// Pace implements [Paced].
func (Usage) Pace(ctx context.Context, tx *Tx, events []Event) (ready bool, err error) {
	b, err := newUsageBatch(ctx, tx)
	if err != nil {
		return false, err
	}
	left, asked := int64(pacedEntries), map[int64]bool{}
	for _, e := range events {
		if asked[e.Session] {
			continue
		}
		asked[e.Session] = true
		if left, err = b.approach(ctx, e.Session, events[len(events)-1].Seq, left); err != nil {
			return false, err
		}
		if left <= 0 {
			break
		}
	}
	return left > 0, b.end(ctx)
}

// approach brings a session's standing nearer to its leaf, by so many entries, if these are
// not enough for all of the way. It says how many are left; none of a step.
func (b *usageBatch) approach(ctx context.Context, session, last, most int64) (left int64, err error) {
	t, ok, err := b.tip(ctx, session, last)
	if err != nil || !ok || t.irregular {
		return most, err
	}
	from, err := b.standing(ctx, session)
	if err != nil || from.walked {
		return most, err
	}
	to, steps, err := b.nearer(ctx, from, t, most)
	if err != nil || steps < most {
		return most - steps, err
	}
	return 0, b.stand(ctx, session, t.n, to)
}

// nearer is a standing between one and a leaf, from which most entries change sides, and most;
// or how many do up to the leaf, if these are fewer.
func (b *usageBatch) nearer(ctx context.Context, from standing, t tip, most int64) (to standing, steps int64, err error) {
	top, err := b.ways.shared(ctx, from.leaf, t.leaf)
	if err != nil {
		return to, 0, err
	}
	was, err := b.ways.depth(ctx, from.leaf)
	if err != nil {
		return to, 0, err
	}
	// What the leaf goes up leaves the way.
	if steps = was - top; steps >= most {
		from.leaf, err = b.ways.deepest(ctx, from.leaf, was-most, true)
		return from, most, err
	}
	// What it goes down enters, as far as it was not live as what came behind n.
	known, err := b.ways.deepest(ctx, t.leaf, from.n, false)
	if err != nil {
		return to, 0, err
	}
	depth, err := b.ways.depth(ctx, known)
	if err != nil {
		return to, 0, err
	}
	if steps+depth-top >= most {
		from.leaf, err = b.ways.deepest(ctx, known, top+most-steps, true)
		return from, most, err
	}
	steps += depth - top
	// What came behind n leaves where it stands beside the way.
	beside := func(n int64) (to standing, count int64) {
		to.n = n
		if to.leaf, err = b.ways.deepest(ctx, t.leaf, n, false); err != nil {
			return to, 0
		}
		var down int64
		down, err = b.ways.depth(ctx, to.leaf)
		return to, n - from.n - (down - depth)
	}
	to, all := beside(t.n)
	if err != nil || steps+all < most {
		return to, steps + max(all, 0), err
	}
	n := from.n + 1 + int64(sort.Search(int(t.n-from.n-1), func(i int) bool {
		_, count := beside(from.n + 1 + int64(i))
		return err != nil || steps+count >= most
	}))
	if err != nil {
		return to, 0, err
	}
	to, _ = beside(n)
	return to, most, err
}
