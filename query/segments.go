package query

import (
	"context"
	"sync"
)

// way is what a path needs to know of a segment.
type way struct {
	key, session, first, start int64
	parent                     int64 // 0: none

	// Up to its entry dense the segment's entries are neighbours in the store's log,
	// so that their seqs are known without a look-up; up to seen that was looked at.
	dense, seen int64
}

// Segments keeps segments in memory, up to a number of them, so that the way up
// from an entry is found without the database. A segment never changes, and its
// key is never used again, so nothing that is kept becomes wrong, whoever writes;
// only a rebuild of rows that were wrong makes others.
type Segments struct {
	limit int

	mu    sync.Mutex
	build int64
	kept  map[int64]way
}

// NewSegments keeps up to limit segments, each about 100 bytes.
func NewSegments(limit int) *Segments { return &Segments{limit: limit, kept: map[int64]way{}} }

// Ways are the segments of one build of the branch views.
type Ways struct {
	in    *Segments
	build int64
}

// Of gives the segments of the build that a snapshot shows.
func (s *Segments) Of(build int64) Ways { return Ways{s, build} }

// lock gives what is kept of the build; unlocking is the caller's.
func (w Ways) lock() map[int64]way {
	w.in.mu.Lock()
	if w.in.build != w.build {
		w.in.build, w.in.kept = w.build, map[int64]way{}
	}
	return w.in.kept
}

// add keeps ways. When there is no room, all that was kept goes: what is asked
// for comes back in a few queries a path.
func (w Ways) add(ways []way) {
	kept := w.lock()
	defer w.in.mu.Unlock()
	if len(kept)+len(ways) > w.in.limit {
		kept = make(map[int64]way, min(len(ways), w.in.limit))
		w.in.kept = kept
	}
	for _, s := range ways {
		old := kept[s.key]
		s.dense, s.seen = max(s.dense, old.dense), max(s.seen, old.seen)
		if len(kept) < w.in.limit {
			kept[s.key] = s
		}
	}
}

// span is a part of a branch: the entries of one segment from n low to high.
type span struct {
	way
	low, high int64
}

func (w way) span(depth, stop int64) span {
	return span{w, w.first + max(stop-w.start, 0), w.first + depth - w.start}
}

// path is the branch from depth stop down to p, as spans, the deepest first.
func (w Ways) path(ctx context.Context, c Conn, p Place, stop int64) (spans []span, err error) {
	next, depth := p.Segment, p.Depth
	for more := 16; ; more = min(2*more, 4096) {
		spans, next, depth = w.follow(spans, next, depth, stop)
		if next == 0 {
			return spans, nil
		}
		ways, err := readWays(ctx, c, next, depth, stop, more)
		if err != nil {
			return nil, err
		}
		w.add(ways)
		for _, s := range ways {
			spans = append(spans, s.span(depth, stop))
			next, depth = s.parent, s.start-1
		}
		if next == 0 || depth < stop || len(ways) == 0 {
			return spans, nil
		}
	}
}

// follow goes up as far as segments are kept; next is 0 when it has come to stop.
func (w Ways) follow(spans []span, next, depth, stop int64) (_ []span, _, _ int64) {
	kept := w.lock()
	defer w.in.mu.Unlock()
	for next != 0 && depth >= stop {
		s, ok := kept[next]
		if !ok || s.seen < s.first+depth-s.start { // it was shorter when it was kept
			return spans, next, depth
		}
		spans = append(spans, s.span(depth, stop))
		next, depth = s.parent, s.start-1
	}
	return spans, 0, depth
}

// waysSQL climbs from the segment ?1, which the path leaves upwards from depth ?2,
// to depth ?3, ?4 segments at most.
const waysSQL = `
WITH RECURSIVE way (key, session, first, start, parent, high) AS (
	SELECT key, session, first, start, parent, first + ?2 - start FROM segments WHERE key = ?1
	UNION ALL
	SELECT s.key, s.session, s.first, s.start, s.parent, s.first + w.start - 1 - s.start
	FROM way w JOIN segments s ON s.key = w.parent WHERE w.start > ?3
	LIMIT ?4
)
SELECT key, session, first, start, coalesce(parent, 0), high,
	coalesce((SELECT seq FROM events e WHERE e.session = w.session AND e.n = high), 0)
FROM way w`

func readWays(ctx context.Context, c Conn, segment, depth, stop int64, most int) ([]way, error) {
	rows, err := c.Rows(ctx, waysSQL, segment, depth, stop, most)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	var ways []way
	for rows.Next() {
		var w way
		var seq int64
		if err := rows.Scan(&w.key, &w.session, &w.first, &w.start, &w.parent, &w.seen, &seq); err != nil {
			return nil, err
		}
		if w.dense = w.first; seq-w.key == w.seen-w.first {
			w.dense = w.seen
		}
		ways = append(ways, w)
	}
	return ways, rows.Err()
}
