package query

import (
	"context"
	"database/sql"
	"sync"

	"github.com/sessiontree/sessiontree/eventlog"
)

// Conn is a connection that answers queries; it prepares each text once.
type Conn interface {
	// Row reads one row into dest; ok is false when there is none.
	Row(ctx context.Context, query string, args []any, dest ...any) (ok bool, err error)
	// Rows reads rows; the caller closes them.
	Rows(ctx context.Context, query string, args ...any) (*sql.Rows, error)
}

// Place says where an entry stands.
type Place struct {
	Segment, Depth int64
	Seq            int64
}

// Locate finds an entry by its id. It fails with [eventlog.ErrNotFound].
func Locate(ctx context.Context, c Conn, session int64, id string) (p Place, err error) {
	var pos int64
	ok, err := c.Row(ctx, locateSQL, []any{session, id}, &p.Seq, &pos)
	if err == nil && !ok {
		err = eventlog.EntryNotFound(eventlog.NotFound, id)
	}
	p.Segment, p.Depth = pos>>32, pos&0xffffffff
	return p, err
}

const locateSQL = `SELECT e.seq, n.pos FROM events e JOIN nodes n ON n.seq = e.seq WHERE e.session = ? AND e.id = ?`

// Stop is the depth at which the branch of an entry stops. It fails with
// [eventlog.ErrInvalidSession] when the branch reaches a parent that is not
// there.
func Stop(ctx context.Context, c Conn, p Place) (int64, error) {
	var stop int64
	ok, err := c.Row(ctx, cutSQL, []any{p.Segment << 32, p.Segment<<32 | p.Depth}, &stop)
	if err == nil && !ok {
		_, err = c.Row(ctx, segmentStopSQL, []any{p.Segment}, &stop)
	}
	if err != nil || stop >= 0 {
		return stop, err
	}
	var missing string
	if _, err := c.Row(ctx, holeSQL, []any{p.Segment}, &missing); err != nil {
		return 0, err
	}
	return 0, eventlog.EntryNotFound(eventlog.InvalidSession, missing)
}

const cutSQL = `SELECT stop FROM cuts WHERE pos BETWEEN ? AND ? ORDER BY pos DESC LIMIT 1`

const segmentStopSQL = `SELECT stop FROM segments WHERE key = ?`

// holeSQL names the parent that a segment's way up does not find.
const holeSQL = `
WITH RECURSIVE way (parent, missing) AS (
	SELECT parent, missing FROM segments WHERE key = ?
	UNION ALL
	SELECT s.parent, s.missing FROM way w JOIN segments s ON s.key = w.parent
)
SELECT missing FROM way WHERE missing IS NOT NULL LIMIT 1`

// branchSQL reads the entries of a branch, root first: the ranges of segments on
// the way up are found first and sorted (few, and narrow), then the entries are
// read in order, so that no payload is ever sorted. The LIMIT keeps SQLite from
// folding the sort into the join.
const branchSQL = `
WITH RECURSIVE way (low, high, parent, start) AS (
	SELECT key << 32 | max(start, ?2), key << 32 | ?3, parent, start FROM segments WHERE key = ?1
	UNION ALL
	SELECT s.key << 32 | max(s.start, ?2), s.key << 32 | w.start - 1, s.parent, s.start
	FROM way w JOIN segments s ON s.key = w.parent WHERE w.start > ?2
)
SELECT e.payload
FROM (SELECT low, high FROM way ORDER BY high & 0xffffffff LIMIT -1) r
CROSS JOIN nodes n CROSS JOIN events e
WHERE n.pos BETWEEN r.low AND r.high AND e.seq = n.seq`

// Branch reads the entries from depth stop down to p, root first.
func Branch(ctx context.Context, c Conn, p Place, stop int64) ([]eventlog.Entry, error) {
	rows, err := c.Rows(ctx, branchSQL, p.Segment, stop, p.Depth)
	if err != nil {
		return nil, err
	}
	return Entries(rows)
}

const entrySQL = `SELECT payload FROM events WHERE seq = ?`

// Entry reads the entry at a place that [Locate] or the ancestry functions gave.
func Entry(ctx context.Context, c Conn, p Place) (eventlog.Entry, error) {
	var payload string
	_, err := c.Row(ctx, entrySQL, []any{p.Seq}, &payload)
	if err != nil {
		return eventlog.Entry{}, err
	}
	return eventlog.TrustedEntry(payload), nil
}

// chunk is how many payloads are read before they are handed over: reading the
// next ones and looking into these are about equally slow, so long branches are
// read on two processors.
const chunk = 1024

// Entries gives the entries that rows of one column, the payload, hold, and
// closes rows.
func Entries(rows *sql.Rows) ([]eventlog.Entry, error) {
	defer rows.Close()
	var chunks [][]eventlog.Entry
	var parsers sync.WaitGroup
	defer parsers.Wait()
	total := 0
	payloads := make([]string, 0, 16)
	parse := func(payloads []string, entries []eventlog.Entry) {
		for i, p := range payloads {
			entries[i] = eventlog.TrustedEntry(p)
		}
	}
	for rows.Next() {
		var payload string
		if err := rows.Scan(&payload); err != nil {
			return nil, err
		}
		if payloads = append(payloads, payload); len(payloads) == chunk {
			full, entries := payloads, make([]eventlog.Entry, chunk)
			chunks, total = append(chunks, entries), total+chunk
			parsers.Go(func() { parse(full, entries) })
			payloads = make([]string, 0, chunk)
		}
	}
	if err := rows.Err(); err != nil {
		return nil, err
	}
	last := make([]eventlog.Entry, len(payloads))
	parse(payloads, last)
	if len(chunks) == 0 {
		return last, nil
	}
	parsers.Wait()
	all := make([]eventlog.Entry, 0, total+len(last))
	for _, entries := range chunks {
		all = append(all, entries...)
	}
	return append(all, last...), nil
}
