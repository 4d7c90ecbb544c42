package query

import (
	"context"
	"math"

	"github.com/sessiontree/sessiontree/eventlog"
)

// nextInSQL is the entry behind n ?2 of the segment ?1, if that is not its last.
const nextInSQL = `
SELECT e.seq FROM segments s CROSS JOIN events e
WHERE s.key = ?1 AND e.session = s.session AND e.n = ?2 + 1
	AND NOT EXISTS (SELECT 1 FROM segments WHERE key = e.seq)`

// forksSQL are the segments that fork from the segment ?1 behind depth ?2.
const forksSQL = `SELECT key FROM segments WHERE parent = ?1 AND start = ?2 + 1 AND key > ?3 ORDER BY key LIMIT ?4`

// Children reads up to limit entries that hang below p, in log order, from the
// first with a seq above after on (0: all); next is where the next page begins, 0
// when there is none.
func Children(ctx context.Context, c Conn, d eventlog.Dialect, p Place, after int64, limit int) (entries []eventlog.Entry, next int64, err error) {
	var children []span
	add := func(seq int64) {
		children, next = append(children, span{way{key: seq, first: 1, dense: 1}, 1, 1}), seq
	}
	var seq int64
	if ok, err := c.Row(ctx, nextInSQL, []any{p.Segment, p.N}, &seq); err != nil {
		return nil, 0, err
	} else if ok && seq > after {
		add(seq)
	}
	rows, err := c.Rows(ctx, forksSQL, p.Segment, p.Depth, after, limit-len(children))
	if err != nil {
		return nil, 0, err
	}
	defer rows.Close()
	for rows.Next() {
		if err := rows.Scan(&seq); err != nil {
			return nil, 0, err
		}
		add(seq)
	}
	if err := rows.Err(); err != nil {
		return nil, 0, err
	}
	if len(children) < limit {
		next = 0
	}
	entries, err = readSpans(ctx, c, d, children, int64(len(children)))
	return entries, next, err
}

// Cursor is where a page of descendants ended: an entry by its segment and n. The
// zero Cursor is the beginning, and the end.
type Cursor struct{ Segment, N int64 }

// Descendants reads up to limit entries below p, each behind its parent, and says
// where the next page begins. A page costs its entries and the segments that it
// goes through, wherever it begins. What is appended between two pages may be on
// one of them or not.
func Descendants(ctx context.Context, c Conn, d eventlog.Dialect, p Place, from Cursor, limit int) (entries []eventlog.Entry, next Cursor, err error) {
	if from == (Cursor{}) {
		from = Cursor{p.Segment, p.N}
	}
	var spans []span
	left := int64(limit)
	for from.Segment != 0 && left > 0 {
		s, err := readBelow(ctx, c, from)
		if err != nil {
			return nil, next, err
		}
		if n := s.high - s.low + 1; n > 0 {
			if n >= left {
				s.high = s.low + left - 1
			}
			spans, left = append(spans, s), left-(s.high-s.low+1)
			from.N = s.high
			if left == 0 {
				break
			}
		}
		if from, err = nextBelow(ctx, c, p, s); err != nil {
			return nil, next, err
		}
	}
	entries, err = readSpans(ctx, c, d, spans, int64(limit)-left)
	return entries, from, err
}

// belowSQL is a segment with its last n: where the next of its session starts, or
// the session ends.
const belowSQL = `
SELECT s.session, s.first, s.start, coalesce(s.parent, 0), coalesce(
	(SELECT b.first - 1 FROM segments b WHERE b.session = s.session AND b.key > s.key ORDER BY b.key LIMIT 1),
	(SELECT h.n FROM heads h WHERE h.session = s.session))
FROM segments s WHERE s.key = ?`

// readBelow is what a segment has behind an entry.
func readBelow(ctx context.Context, c Conn, at Cursor) (s span, err error) {
	s.key, s.low = at.Segment, at.N+1
	ok, err := c.Row(ctx, belowSQL, []any{at.Segment}, &s.session, &s.first, &s.start, &s.parent, &s.high)
	if err != nil || !ok || s.high < s.low {
		s.dense = math.MaxInt64
		return s, err
	}
	var seq int64
	if _, err = c.Row(ctx, seqSQL, []any{s.session, s.high}, &seq); seq-s.key == s.high-s.first {
		s.dense = s.high
	}
	return s, err
}

const (
	// firstForkSQL is the first segment that forks from ?1 below depth ?2.
	firstForkSQL = `SELECT key, first FROM segments WHERE parent = ?1 AND start > ?2 ORDER BY start, key LIMIT 1`

	// nextForkSQL goes up from the segment ?1, not above ?2, to the first that has a
	// later sibling: that one.
	nextForkSQL = `
WITH RECURSIVE up (key, parent, start) AS (
	SELECT key, parent, start FROM segments WHERE key = ?1 AND key <> ?2
	UNION ALL
	SELECT s.key, s.parent, s.start FROM up JOIN segments s ON s.key = up.parent WHERE s.key <> ?2
)
SELECT n.key, n.first FROM up CROSS JOIN segments n
WHERE n.key = coalesce(
	(SELECT key FROM segments WHERE parent = up.parent AND start = up.start AND key > up.key ORDER BY key LIMIT 1),
	(SELECT key FROM segments WHERE parent = up.parent AND start > up.start ORDER BY start, key LIMIT 1))
LIMIT 1`
)

// nextBelow is the segment that comes behind another below p, as a cursor before
// its first entry; the zero one if none does.
func nextBelow(ctx context.Context, c Conn, p Place, s span) (next Cursor, err error) {
	depth := int64(-1)
	if s.key == p.Segment {
		depth = p.Depth
	}
	ok, err := c.Row(ctx, firstForkSQL, []any{s.key, depth}, &next.Segment, &next.N)
	if err == nil && !ok {
		ok, err = c.Row(ctx, nextForkSQL, []any{s.key, p.Segment}, &next.Segment, &next.N)
	}
	if err != nil || !ok {
		return Cursor{}, err
	}
	next.N--
	return next, nil
}
