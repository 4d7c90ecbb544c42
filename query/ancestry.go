package query

import (
	"context"
	"database/sql"
)

// fork is a segment with its two ways up.
type fork struct {
	session, first, start int64
	hops                  int64 // segments above it
	parent                sql.NullInt64
	jump, jumpShared      sql.NullInt64
}

const forkSQL = `SELECT session, first, start, hops, parent, jump, jump_shared FROM segments WHERE key = ?`

func readFork(ctx context.Context, c Conn, segment int64) (f fork, err error) {
	_, err = c.Row(ctx, forkSQL, []any{segment},
		&f.session, &f.first, &f.start, &f.hops, &f.parent, &f.jump, &f.jumpShared)
	return f, err
}

const seqSQL = `SELECT seq FROM events WHERE session = ? AND n = ?`

// AncestorAt is the place of the ancestor of p, or p itself, at a depth; ok is
// false where there is none (above the root, below p). It takes O(log) look-ups.
func AncestorAt(ctx context.Context, c Conn, p Place, depth int64) (a Place, ok bool, err error) {
	if depth < 0 || depth > p.Depth {
		return Place{}, false, nil
	}
	segment := p.Segment
	for {
		w, err := readFork(ctx, c, segment)
		switch {
		case err != nil:
			return Place{}, false, err
		case w.start <= depth:
			a = Place{Segment: segment, Depth: depth, N: w.first + depth - w.start}
			ok, err = c.Row(ctx, seqSQL, []any{w.session, a.N}, &a.Seq)
			return a, ok, err
		case !w.parent.Valid:
			return Place{}, false, nil
		case w.jump.Valid && w.jumpShared.Int64 >= depth:
			segment = w.jump.Int64
		default:
			segment = w.parent.Int64
		}
	}
}

// IsAncestor says whether a stands above b, or is b. It takes O(log) look-ups.
func IsAncestor(ctx context.Context, c Conn, a, b Place) (bool, error) {
	at, ok, err := AncestorAt(ctx, c, b, a.Depth)
	return ok && at.Segment == a.Segment, err
}

// climb is a way up over segments, from an entry.
type climb struct {
	segment int64
	depth   int64 // down to which the way has come in it
	fork
}

func (w *climb) read(ctx context.Context, c Conn) (err error) {
	w.fork, err = readFork(ctx, c, w.segment)
	return err
}

// toParent leaves the segment for the one that it forked from.
func (w *climb) toParent(ctx context.Context, c Conn) error {
	w.segment, w.depth = w.parent.Int64, w.start-1
	return w.read(ctx, c)
}

func (w *climb) toJump(ctx context.Context, c Conn) error {
	w.segment, w.depth = w.jump.Int64, w.jumpShared.Int64
	return w.read(ctx, c)
}

// CommonAncestor is the deepest entry above both a and b, themselves included,
// past all compactions; ok is false when they have no root in common. It takes
// O(log) look-ups: how far a jump goes depends on the number of segments above
// alone, so two ways that have equally many above them jump in step.
func CommonAncestor(ctx context.Context, c Conn, a, b Place) (common Place, ok bool, err error) {
	low, high := &climb{segment: a.Segment, depth: a.Depth}, &climb{segment: b.Segment, depth: b.Depth}
	for _, w := range []*climb{low, high} {
		if err := w.read(ctx, c); err != nil {
			return Place{}, false, err
		}
	}
	if low.hops < high.hops {
		low, high = high, low
	}
	for low.hops > high.hops {
		from := *low
		if err := low.toJump(ctx, c); err != nil {
			return Place{}, false, err
		}
		if low.hops < high.hops {
			*low = from
			if err := low.toParent(ctx, c); err != nil {
				return Place{}, false, err
			}
		}
	}
	for low.segment != high.segment {
		if !low.parent.Valid || !high.parent.Valid {
			return Place{}, false, nil
		}
		up := (*climb).toParent
		if low.jump.Int64 != high.jump.Int64 {
			up = (*climb).toJump
		}
		for _, w := range []*climb{low, high} {
			if err := up(w, ctx, c); err != nil {
				return Place{}, false, err
			}
		}
	}
	depth := min(low.depth, high.depth)
	return AncestorAt(ctx, c, Place{Segment: low.segment, Depth: depth}, depth)
}
