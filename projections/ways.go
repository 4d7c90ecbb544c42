package projections

import (
	"cmp"
	"context"
	"database/sql"
	"slices"
	"strconv"
)

// spanOf is a run of a session's entries, from n low to n high.
type spanOf struct{ low, high int64 }

// waySQL is the way from a session's leaf up to the root, past compactions, as
// runs of its entries.
const waySQL = `
WITH RECURSIVE way (session, parent, start, low, high) AS (
	SELECT s.session, s.parent, s.start, s.first, h.leaf_n FROM heads h JOIN segments s ON s.key = h.segment WHERE h.session = ?
	UNION ALL
	SELECT s.session, s.parent, s.start, s.first, s.first + w.start - 1 - s.start FROM way w JOIN segments s ON s.key = w.parent
)
SELECT low, high FROM way WHERE session = ?`

// ways are the runs of a session's entries that are abandoned and that are live,
// each as a JSON list of low << 20 | length - 1. ok is false when the session is
// gone, or has events behind last: those will say more.
func ways(ctx context.Context, tx *Tx, session, last int64) (abandoned, live string, ok bool, err error) {
	var n, lastSeq int64
	var irregular bool
	var leaf sql.NullString
	ok, err = tx.Row(ctx, "SELECT n, last_seq, irregular, leaf FROM heads WHERE session = ?", []any{session}, &n, &lastSeq, &irregular, &leaf)
	if err != nil || !ok || lastSeq > last {
		return "", "", false, err
	}
	var way []spanOf
	if irregular {
		way, err = walkedWay(ctx, tx, session, leaf)
	} else {
		way, err = readWay(ctx, tx, session)
	}
	if err != nil {
		return "", "", false, err
	}
	slices.SortFunc(way, func(a, b spanOf) int { return cmp.Compare(a.low, b.low) })
	var left []spanOf
	next := int64(1)
	for _, s := range way {
		if s.low > next {
			left = append(left, spanOf{next, s.low - 1})
		}
		next = s.high + 1
	}
	if next <= n {
		left = append(left, spanOf{next, n})
	}
	return listSpans(left), listSpans(way), true, nil
}

func readWay(ctx context.Context, tx *Tx, session int64) (way []spanOf, err error) {
	rows, err := tx.Rows(ctx, waySQL, session, session)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	for rows.Next() {
		var s spanOf
		if err := rows.Scan(&s.low, &s.high); err != nil {
			return nil, err
		}
		way = append(way, s)
	}
	return way, rows.Err()
}

// walkedWay is the way of an irregular session, by its parents: of entries with
// one id the last counts, and a cycle ends where it began.
func walkedWay(ctx context.Context, tx *Tx, session int64, leaf sql.NullString) (way []spanOf, err error) {
	rows, err := tx.Rows(ctx, "SELECT n, id, coalesce(parent, '') FROM events WHERE session = ? AND n > 0 ORDER BY n", session)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	type entry struct {
		n      int64
		parent string
	}
	entries := map[string]entry{}
	for rows.Next() {
		var e entry
		var id string
		if err := rows.Scan(&e.n, &id, &e.parent); err != nil {
			return nil, err
		}
		entries[id] = e
	}
	for id := leaf.String; ; {
		e, ok := entries[id]
		if !ok {
			return way, rows.Err()
		}
		way = append(way, spanOf{e.n, e.n})
		delete(entries, id)
		id = e.parent
	}
}

// spanBits is how many bits the length of a run has in a list.
const spanBits = 20

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
