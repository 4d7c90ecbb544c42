package sqlitestore

import (
	"bytes"
	"context"
	"fmt"
	"github.com/sessiontree/sessiontree/migrations"
	"strings"

	"github.com/sessiontree/sessiontree/eventlog"
	"github.com/sessiontree/sessiontree/eventlog/js"
	"github.com/sessiontree/sessiontree/projections"
)

// Checked is what [Store.Check] found.
type Checked struct {
	Sessions int   // that are there
	Events   int64 // that were read
	Redacted int   // of these, had a text purged ([Store.PurgeText])
	// Problems are empty when all is well. Those of the views are mended by
	// [Store.Repair]; those of the file or the log are not: restore a backup.
	Problems []Problem
	// Unfinished says how far the check came, and what stopped it; "" when it came to
	// the end.
	Unfinished string

	unreadable bool // a payload is no JSON, or the log could not be read to its end
}

// The places of problems that are not in a view.
const (
	InFile = "file" // SQLite's own structure: pages, indices
	InLog  = "log"  // events and sessions
)

func (c *Checked) add(where, format string, args ...any) {
	c.Problems = append(c.Problems, Problem{where, fmt.Sprintf(format, args...)})
}

// maxProblems is how many problems of the file or the log are told.
const maxProblems = 100

// Check looks for damage: SQLite's own check of the file; each event of the log
// against its columns and, by its hash, against the one before, sessions without a beginning,
// events without a session; and then the views, as [Store.Verify] does. On a
// damaged database it goes as far as it can, and says how far. It changes nothing.
// The error is that of the context, or of a store that is closed.
func (s *Store) Check(ctx context.Context) (c Checked, err error) {
	for _, step := range []struct {
		name string
		run  func(ctx context.Context, c *Checked) error
	}{
		{"the integrity of the file", s.checkFile},
		{"the log", s.checkLog},
		{"the sessions", s.checkSessions},
		{"the views", s.checkViews},
	} {
		err := step.run(ctx, &c)
		switch {
		case err == nil:
		case ctx.Err() != nil, eventlog.CodeOf(err) == eventlog.Closed:
			return c, err
		default:
			c.unreadable = true
			if c.Unfinished != "" {
				c.Unfinished += "; "
			}
			c.Unfinished += fmt.Sprintf("%s, after %d events: %v", step.name, c.Events, err)
		}
	}
	return c, nil
}

func (s *Store) checkFile(ctx context.Context, c *Checked) error {
	return s.read(ctx, func(tx *projections.Tx) error {
		rows, err := tx.Rows(ctx, fmt.Sprintf("PRAGMA integrity_check(%d)", maxProblems))
		if err != nil {
			return err
		}
		defer rows.Close()
		for rows.Next() {
			var line string
			if err := rows.Scan(&line); err != nil {
				return err
			}
			if line != "ok" {
				c.add(InFile, "%s", line)
			}
		}
		return rows.Err()
	})
}

// checkLog reads the log once, page by page, in the order of seq.
func (s *Store) checkLog(ctx context.Context, c *Checked) error {
	next := map[int64]expected{}
	for after, more := int64(0), true; more; {
		err := s.read(ctx, func(tx *projections.Tx) (err error) {
			after, more, err = checkEvents(ctx, tx, c, next, after)
			return err
		})
		if err != nil {
			return err
		}
	}
	return nil
}

const checkedSQL = `SELECT e.seq, e.session, e.n, e.id, e.parent, e.type, e.timestamp, e.hash, r.seq IS NOT NULL, coalesce(s.dialect, 'harness'), coalesce(` + migrations.Payload + `, '')
FROM events e LEFT JOIN redactions r ON r.seq = e.seq LEFT JOIN sessions s ON s.key = e.session WHERE e.seq > ? ORDER BY e.seq LIMIT ?`

func checkEvents(ctx context.Context, tx *projections.Tx, c *Checked, next map[int64]expected, after int64) (last int64, more bool, err error) {
	rows, err := tx.Rows(ctx, checkedSQL, after, page)
	if err != nil {
		return after, false, err
	}
	defer rows.Close()
	read := 0
	for size := 0; size < pageBytes && rows.Next(); read++ {
		var e checkedEvent
		if err := rows.Scan(&e.seq, &e.session, &e.n, &e.id, &e.parent, &e.typ, &e.timestamp, &e.hash, &e.redacted, &e.dialect, &e.payload); err != nil {
			return after, false, err
		}
		size += len(e.payload)
		after = e.seq
		c.Events++
		if e.redacted {
			c.Redacted++
		}
		if e.n < 0 { // a move of the leaf, which is no entry
			continue
		}
		wrong, readable := e.problem(next[e.session])
		if wrong != "" && len(c.Problems) < maxProblems {
			c.add(InLog, "event %d (session %d, n %d): %s", e.seq, e.session, e.n, wrong)
		}
		c.unreadable = c.unreadable || !readable
		next[e.session] = expected{e.n + 1, e.hash}
	}
	return after, read > 0, rows.Err()
}

// expected is what a session's next event must have: its n, and the hash that its
// own is made from.
type expected struct {
	n    int
	hash []byte
}

// checkedEvent is a row of the log.
type checkedEvent struct {
	seq, session   int64
	n              int
	id, parent     *string
	typ, timestamp string
	hash           []byte
	dialect        string // the session's
	redacted       bool   // a text was purged: the hash is that of what was there
	payload        string
}

// problem says what is wrong with a row, "" for nothing, and whether its payload is
// JSON. Columns are copies of what the payload says.
func (e checkedEvent) problem(next expected) (what string, readable bool) {
	var wrong []string
	if e.n != next.n {
		wrong = append(wrong, fmt.Sprintf("n should be %d", next.n))
	}
	if e.n == 0 {
		return strings.Join(wrong, "; "), true
	}
	if !e.redacted && !bytes.Equal(e.hash, projections.ChainHash(next.hash, e.payload)) {
		wrong = append(wrong, "the hash is not that of the payload and the entry before: one of them was changed, or is missing")
	}
	if _, err := js.Parse(e.payload); err != nil {
		return strings.Join(append(wrong, "the payload is not valid JSON: "+err.Error()), "; "), false
	}
	dialect, err := eventlog.ParseDialect(e.dialect)
	if err != nil {
		return strings.Join(append(wrong, err.Error()), "; "), true
	}
	entry := dialect.TrustedEntry(e.payload)
	var parent *string
	if p := entry.Parent(); !p.IsNone() {
		id := p.ID()
		parent = &id
	}
	for _, column := range []struct {
		name      string
		have, has string
	}{
		{"id", text(e.id), text(new(entry.ID()))},
		{"parent", text(e.parent), text(parent)},
		{"type", e.typ, string(entry.Type())},
		{"timestamp", e.timestamp, entry.Timestamp()},
	} {
		if column.have != column.has {
			wrong = append(wrong, fmt.Sprintf("%s is %q, in the payload %q", column.name, column.have, column.has))
		}
	}
	return strings.Join(wrong, "; "), true
}

func text(s *string) string {
	if s == nil {
		return "null"
	}
	return "'" + *s + "'"
}

// checkSessions looks for sessions and events without each other.
func (s *Store) checkSessions(ctx context.Context, c *Checked) error {
	return s.read(ctx, func(tx *projections.Tx) error {
		if _, err := tx.Row(ctx, "SELECT count(*) FROM sessions", nil, &c.Sessions); err != nil {
			return err
		}
		for _, q := range []struct{ what, query string }{
			{"session %d has no event of its creation", `SELECT key FROM sessions s
				WHERE NOT EXISTS (SELECT 1 FROM events e WHERE e.session = s.key AND e.n = 0 AND e.type <> 'session_deleted')`},
			{"the events of session %d belong to no session", `SELECT DISTINCT session FROM events e
				WHERE e.n > 0 AND NOT EXISTS (SELECT 1 FROM sessions s WHERE s.key = e.session)`},
			{"blob %d belongs to no event", "SELECT key FROM blobs b WHERE NOT EXISTS (SELECT 1 FROM events WHERE blob = b.key)"},
		} {
			rows, err := tx.Rows(ctx, q.query+fmt.Sprint(" LIMIT ", maxProblems))
			if err != nil {
				return err
			}
			for rows.Next() {
				var key int64
				if err := rows.Scan(&key); err != nil {
					rows.Close()
					return err
				}
				c.add(InLog, q.what, key)
			}
			rows.Close()
			if err := rows.Err(); err != nil {
				return err
			}
		}
		return nil
	})
}

func (s *Store) checkViews(ctx context.Context, c *Checked) error {
	// What a view should be cannot be said of a log that cannot be read.
	if c.unreadable {
		return eventlog.Errorf(eventlog.StorageFailed, "the log cannot be read")
	}
	problems, err := s.Verify(ctx)
	c.Problems = append(c.Problems, problems...)
	return err
}

// Repair makes again what is derived from the log: SQLite's indices, and all views.
// It never touches the log. Check afterwards says whether that was enough.
func (s *Store) Repair(ctx context.Context) error {
	if s.writer == nil {
		return s.readOnly()
	}
	err := s.writer.exclusively(ctx, func(ctx context.Context, tx *projections.Tx) error {
		_, err := tx.Exec(ctx, "REINDEX")
		return err
	})
	if err != nil {
		return err
	}
	if err := s.rebuildWhole(ctx); err != nil {
		return err
	}
	return s.views.Rebuild(ctx)
}
