package query

import (
	"context"
	"database/sql"
)

// fork is a segment with its two ways up.
type fork struct {
	session, first, start int64
	parent                sql.NullInt64
	jump, jumpShared      sql.NullInt64
}

const forkSQL = `SELECT session, first, start, parent, jump, jump_shared FROM segments WHERE key = ?`

func readFork(ctx context.Context, c Conn, segment int64) (f fork, err error) {
	_, err = c.Row(ctx, forkSQL, []any{segment},
		&f.session, &f.first, &f.start, &f.parent, &f.jump, &f.jumpShared)
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

// CommonAncestor is the deepest entry above both a and b, themselves included,
// past all compactions; ok is false when they have no root in common. It takes
// O(log) look-ups.
func CommonAncestor(ctx context.Context, c Conn, a, b Place) (common Place, ok bool, err error) {
	depth := min(a.Depth, b.Depth)
	for _, p := range []*Place{&a, &b} {
		up, ok, err := AncestorAt(ctx, c, *p, depth)
		if err != nil || !ok {
			return Place{}, false, err
		}
		*p = up
	}
	// Both ways up have the same depth now. Climb while the segments differ: by
	// the jump of the side whose jump leads to a depth at which they still differ.
	for a.Segment != b.Segment {
		wa, err := readFork(ctx, c, a.Segment)
		if err != nil {
			return Place{}, false, err
		}
		wb, err := readFork(ctx, c, b.Segment)
		if err != nil {
			return Place{}, false, err
		}
		// The side whose segment starts deeper leaves it: nothing in it is shared,
		// for the other side is elsewhere at that depth.
		if wa.start < wb.start {
			a, b, wa, wb = b, a, wb, wa
		}
		if !wa.parent.Valid {
			return Place{}, false, nil
		}
		depth := wa.start - 1
		if wa.jump.Valid && wa.jumpShared.Int64 < depth {
			far := wa.jumpShared.Int64
			pa := Place{Segment: wa.jump.Int64, Depth: far}
			pb, ok, err := AncestorAt(ctx, c, b, far)
			if err != nil {
				return Place{}, false, err
			}
			if ok && pa.Segment != pb.Segment {
				a, b = pa, pb
				continue
			}
		}
		a = Place{Segment: wa.parent.Int64, Depth: depth}
		if b.Depth > depth {
			up, ok, err := AncestorAt(ctx, c, b, depth)
			if err != nil || !ok {
				return Place{}, false, err
			}
			b = up
		}
	}
	depth = min(a.Depth, b.Depth)
	return AncestorAt(ctx, c, Place{Segment: a.Segment, Depth: depth}, depth)
}
