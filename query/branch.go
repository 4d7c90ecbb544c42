package query

import (
	"context"
	"database/sql"
	"github.com/sessiontree/sessiontree/migrations"

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
	Segment int64 // the key of its segment
	Depth   int64 // from the root of its tree
	N       int64 // in its session
	Seq     int64 // in the store's log
}

// Locate finds an entry by its id. It fails with [eventlog.ErrNotFound].
func Locate(ctx context.Context, c Conn, session int64, id string) (p Place, err error) {
	ok, err := c.Row(ctx, locateSQL, []any{session, id}, &p.Seq, &p.N, &p.Segment, &p.Depth)
	if err == nil && !ok {
		err = eventlog.EntryNotFound(eventlog.NotFound, id)
	}
	return p, err
}

// locateSQL is an entry with its segment: the last of its session that does not
// start behind it.
const locateSQL = `
SELECT e.seq, e.n, s.key, s.start + e.n - s.first
FROM events e CROSS JOIN segments s
WHERE e.session = ?1 AND e.id = ?2
	AND s.key = (SELECT key FROM segments WHERE session = ?1 AND key <= e.seq ORDER BY key DESC LIMIT 1)`

// Stop is the depth at which the branch of an entry stops. It fails with
// [eventlog.ErrInvalidSession] when the branch reaches a parent that is not
// there.
func Stop(ctx context.Context, c Conn, p Place) (int64, error) {
	var stop int64
	if _, err := c.Row(ctx, stopSQL, []any{p.Segment}, &stop); err != nil || stop >= 0 {
		return stop, err
	}
	var missing string
	if _, err := c.Row(ctx, holeSQL, []any{p.Segment}, &missing); err != nil {
		return 0, err
	}
	return 0, eventlog.EntryNotFound(eventlog.InvalidSession, missing)
}

// Window is the depth from which the context of an entry is read: that from which
// the last compaction above it keeps entries, the root's without one.
func Window(ctx context.Context, c Conn, p Place) (from int64, err error) {
	_, err = c.Row(ctx, windowSQL, []any{p.Segment}, &from)
	return from, err
}

const windowSQL = `SELECT CASE WHEN compaction < 0 THEN 0 ELSE kept END FROM segments WHERE key = ?`

// Settings are the settings at an entry, as the branch views keep them.
func Settings(ctx context.Context, c Conn, p Place) (kept string, err error) {
	_, err = c.Row(ctx, settingsSQL, []any{p.Segment, p.N}, &kept)
	return kept, err
}

const settingsSQL = `
SELECT coalesce((SELECT value FROM settings WHERE session = s.session AND n BETWEEN s.first AND ?2 ORDER BY n DESC LIMIT 1), s.settings)
FROM segments s WHERE s.key = ?1`

const stopSQL = `SELECT stop FROM segments WHERE key = ?`

// holeSQL names the parent that a segment's way up does not find.
const holeSQL = `
WITH RECURSIVE way (parent, missing) AS (
	SELECT parent, missing FROM segments WHERE key = ?
	UNION ALL
	SELECT s.parent, s.missing FROM way w JOIN segments s ON s.key = w.parent
)
SELECT missing FROM way WHERE missing IS NOT NULL LIMIT 1`

const entrySQL = `SELECT ` + migrations.Payload + ` FROM events WHERE seq = ?`

// Entry reads the entry at a place that [Locate] or the ancestry functions gave.
func Entry(ctx context.Context, c Conn, d eventlog.Dialect, p Place) (eventlog.Entry, error) {
	var payload string
	_, err := c.Row(ctx, entrySQL, []any{p.Seq}, &payload)
	if err != nil {
		return eventlog.Entry{}, err
	}
	return d.TrustedEntry(payload), nil
}
