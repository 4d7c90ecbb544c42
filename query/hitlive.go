package query

import (
	"context"
	"slices"
	"strconv"
)

// liveness says whether an entry is live, or how that is found out.
type liveness int

const (
	isAbandoned liveness = iota
	isLive
	byClimb // from the leaf's segment, which is not the entry's
	byWalk  // the session is irregular
)

// climbsSQL goes up from the leaf's segment to that of an entry, for each of a list of
// seqs: to the jump while it is not above the one that is looked for, else to the
// parent. A segment above another has a lower key. Those are given that are reached at
// or below the entry's depth.
const climbsSQL = `WITH RECURSIVE up (seq, wanted, depth, segment, shared) AS (
	SELECT r.value, g.key, g.start + e.n - g.first, h.segment, 0
	FROM json_each(?1) r CROSS JOIN events e ON e.seq = r.value CROSS JOIN heads h ON h.session = e.session
	CROSS JOIN segments g ON g.key = ` + segmentOfSQL + `
	UNION ALL
	SELECT u.seq, u.wanted, u.depth, iif(s.jump >= u.wanted, s.jump, s.parent), iif(s.jump >= u.wanted, s.jump_shared, s.start - 1)
	FROM up u CROSS JOIN segments s ON s.key = u.segment WHERE u.segment > u.wanted
)
SELECT seq FROM up WHERE segment = wanted AND depth <= shared`

// markLive says of each hit whether it is live: on the way from its session's leaf to
// the root. It takes O(log) steps a hit, all in one query, and none for those in the
// leaf's own segment.
func markLive(ctx context.Context, c Conn, hits []found) error {
	climbs := []byte{'['}
	walked := walkedTrees{}
	for i := range hits {
		switch h := &hits[i]; h.live {
		case isLive:
			h.Live = true
		case byWalk:
			if err := walked.mark(ctx, c, h); err != nil {
				return err
			}
		case byClimb:
			if len(climbs) > 1 {
				climbs = append(climbs, ',')
			}
			climbs = strconv.AppendInt(climbs, h.seq, 10)
		}
	}
	if len(climbs) == 1 {
		return nil
	}
	reached, err := column(ctx, c, climbsSQL, string(append(climbs, ']')))
	if err != nil {
		return err
	}
	for i := range hits {
		if h := &hits[i]; h.live == byClimb {
			_, h.Live = slices.BinarySearch(reached, h.seq)
		}
	}
	return nil
}

// column reads a query of one column of integers, and sorts them.
func column(ctx context.Context, c Conn, text string, args ...any) (all []int64, err error) {
	rows, err := c.Rows(ctx, text, args...)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	for rows.Next() {
		var v int64
		if err := rows.Scan(&v); err != nil {
			return nil, err
		}
		all = append(all, v)
	}
	slices.Sort(all)
	return all, rows.Err()
}

// walkedTrees are trees of irregular sessions: for each, whether an entry is live.
type walkedTrees map[int64]func(n int64) bool

// mark marks an entry of an irregular session.
func (w walkedTrees) mark(ctx context.Context, c Conn, h *found) error {
	session, n, err := placeOf(ctx, c, h.seq)
	if err != nil {
		return err
	}
	if w[session] == nil {
		t, err := readTree(ctx, c, session)
		if err != nil {
			return err
		}
		w[session] = t.onWay()
	}
	h.Live = w[session](n)
	return nil
}

const placeSQL = `SELECT session, n FROM events WHERE seq = ?`

// placeOf says where in which session an entry stands.
func placeOf(ctx context.Context, c Conn, seq int64) (session, n int64, err error) {
	_, err = c.Row(ctx, placeSQL, []any{seq}, &session, &n)
	return session, n, err
}

// onWay says whether an entry is on the way from the leaf to the root.
func (t tree) onWay() func(n int64) bool {
	parts := t.parts()
	if len(parts) == 0 || !parts[0].live {
		return func(int64) bool { return false }
	}
	part := partOf(parts[:1])
	return func(n int64) bool { return part(n) == 0 }
}
