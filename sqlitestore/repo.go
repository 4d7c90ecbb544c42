package sqlitestore

import (
	"context"
	"database/sql"

	"github.com/sessiontree/sessiontree/eventlog"
	"github.com/sessiontree/sessiontree/eventlog/js"
	"github.com/sessiontree/sessiontree/projections"
)

// Create implements [eventlog.Repo].
func (s *Store) Create(ctx context.Context, o eventlog.CreateOptions) (*eventlog.Session, error) {
	m, err := o.NewMetadata(s.o.Source)
	if err != nil {
		return nil, err
	}
	return s.create(ctx, m, projections.SessionCreated, nil, nil)
}

// forkPoint is where a fork was cut.
type forkPoint struct {
	source int64
	entry  string // "" for a fork of the whole log
}

// create makes a session in one transaction: its row, its event, and what fill
// writes into it.
func (s *Store) create(ctx context.Context, m eventlog.Metadata, event string, from *forkPoint, fill func(ctx context.Context, tx *projections.Tx, key int64) error) (*eventlog.Session, error) {
	st := &Storage{store: s, meta: m}
	err := s.update(ctx, func(ctx context.Context, tx *projections.Tx) error {
		var one int
		taken, err := tx.Row(ctx, "SELECT 1 FROM sessions WHERE id = ?", []any{m.ID}, &one)
		if err != nil {
			return err
		}
		if taken {
			return eventlog.Errorf(eventlog.AlreadyExists, "Session %s exists already", m.ID)
		}
		var source, entry any
		if from != nil {
			source = from.source
			if from.entry != "" {
				entry = from.entry
			}
		}
		r, err := tx.Exec(ctx, "INSERT INTO sessions (id, created_at, cwd, parent_session, source, fork_entry, dialect, dialect_basis, header) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)",
			m.ID, m.CreatedAt, m.CWD, nullable(m.ParentSession), source, entry, m.Dialect.String(), m.DialectBasis, m.Header)
		if err != nil {
			return err
		}
		if st.key, err = r.LastInsertId(); err != nil {
			return err
		}
		if err := s.insertSessionEvent(ctx, tx, st.key, event, m.CreatedAt, m.Header); err != nil {
			return err
		}
		if fill != nil {
			return fill(ctx, tx, st.key)
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	return eventlog.NewSession(st), nil
}

// insertSessionEvent appends an event of a session itself.
func (s *Store) insertSessionEvent(ctx context.Context, tx *projections.Tx, session int64, typ, at, payload string) error {
	r, err := tx.Exec(ctx, insertEvent, session, 0, nil, nil, typ, at, nil, nil, payload)
	if err != nil {
		return err
	}
	seq, err := r.LastInsertId()
	if err != nil {
		return err
	}
	return s.applySessionEvent(ctx, tx, seq, session, typ)
}

func (s *Store) applySessionEvent(ctx context.Context, tx *projections.Tx, seq, session int64, typ string) error {
	if s.lockstep.off {
		return nil
	}
	return branchStep(func() error {
		return s.branch.Apply(ctx, tx, []projections.Event{{Seq: seq, Session: session, Type: typ}})
	})
}

// row is a row of sessions.
type row struct {
	key  int64
	meta eventlog.Metadata
}

const sessionColumns = "key, id, created_at, cwd, parent_session, dialect, dialect_basis, header"

func scanSession(scan func(dest ...any) error) (r row, err error) {
	var id, createdAt, cwd, dialect, basis, header string
	var parent sql.NullString
	if err := scan(&r.key, &id, &createdAt, &cwd, &parent, &dialect, &basis, &header); err != nil {
		return r, err
	}
	r.meta = metadata(id, createdAt, cwd, parent, header, dialect, basis)
	return r, nil
}

func metadata(id, createdAt, cwd string, parent sql.NullString, header, dialect, basis string) eventlog.Metadata {
	m := eventlog.Metadata{ID: id, CreatedAt: createdAt, CWD: cwd, Header: header, DialectBasis: basis}
	m.Dialect, _ = eventlog.ParseDialect(dialect)
	if parent.Valid {
		m.ParentSession = eventlog.At(parent.String)
	}
	if extra := js.Trusted(header).Get("metadata"); extra.Kind() == js.Object {
		m.Metadata = extra
	}
	return m
}

// Open implements [eventlog.Repo]: the session with the id.
func (s *Store) Open(ctx context.Context, m eventlog.Metadata) (*eventlog.Session, error) {
	st, err := s.session(ctx, m.ID)
	if err != nil {
		return nil, err
	}
	return eventlog.NewSession(st), nil
}

func (s *Store) session(ctx context.Context, id string) (*Storage, error) {
	st := &Storage{store: s}
	err := s.read(ctx, func(tx *projections.Tx) error {
		rows, err := tx.Rows(ctx, "SELECT "+sessionColumns+" FROM sessions WHERE id = ?", id)
		if err != nil {
			return err
		}
		defer rows.Close()
		if !rows.Next() {
			if err := rows.Err(); err != nil {
				return err
			}
			return eventlog.Errorf(eventlog.NotFound, "Session not found: %s", id)
		}
		r, err := scanSession(rows.Scan)
		st.key, st.meta = r.key, r.meta
		return err
	})
	if err != nil {
		return nil, err
	}
	return st, nil
}

// List implements [eventlog.Repo].
func (s *Store) List(ctx context.Context, cwd string) ([]eventlog.Listed, error) {
	var listed []eventlog.Listed
	err := s.read(ctx, func(tx *projections.Tx) error {
		rows, err := tx.Rows(ctx, "SELECT "+sessionColumns+" FROM sessions WHERE ?1 = '' OR cwd = ?1 ORDER BY key", cwd)
		if err != nil {
			return err
		}
		defer rows.Close()
		for rows.Next() {
			r, err := scanSession(rows.Scan)
			if err != nil {
				return err
			}
			listed = append(listed, eventlog.Listed{Metadata: r.meta})
		}
		return rows.Err()
	})
	if err != nil {
		return nil, err
	}
	eventlog.SortNewestFirst(listed)
	return listed, nil
}

// Delete implements [eventlog.Repo]: the session's entries and views go, in one
// transaction; the event of its end stays, and a tombstone, so that an import of
// the same file does not bring it back by accident.
func (s *Store) Delete(ctx context.Context, m eventlog.Metadata) error {
	return s.update(ctx, func(ctx context.Context, tx *projections.Tx) error {
		var key int64
		ok, err := tx.Row(ctx, "SELECT key FROM sessions WHERE id = ?", []any{m.ID}, &key)
		if err != nil || !ok {
			return err
		}
		if err := s.fence(ctx, tx, key, m.ID, nil); err != nil {
			return err
		}
		// Views and feeds go by seqs, so none may come a second time: the event of the
		// end gets one behind all that ever were, before these go.
		last, err := projections.LastEvent(ctx, tx)
		if err != nil {
			return err
		}
		now := s.o.Source.Time()
		for _, step := range []struct {
			query string
			args  []any
		}{
			{"INSERT INTO guards (session, reason, at) VALUES (?, 'session deleted', ?)", []any{key, now}},
			{"DELETE FROM events WHERE session = ?", []any{key}},
			{"DELETE FROM guards WHERE session = ?", []any{key}},
			{"DELETE FROM sessions WHERE key = ?", []any{key}},
			{"DELETE FROM leases WHERE session = ?", []any{key}},
			{"INSERT INTO tombstones (id, deleted_at) VALUES (?1, ?2) ON CONFLICT (id) DO UPDATE SET deleted_at = ?2", []any{m.ID, now}},
		} {
			// The rows of the branch set are found through the events: they go when the
			// event of the deletion is applied, below.
			if _, err := tx.Exec(ctx, step.query, step.args...); err != nil {
				return err
			}
		}
		if err := deleteSources(ctx, tx, key); err != nil {
			return err
		}
		payload := js.Fields(js.Member{Key: "id", Value: js.Text(m.ID)}).JSON()
		_, err = tx.Exec(ctx, "INSERT INTO events (seq, session, n, type, timestamp, payload) VALUES (?, ?, 0, ?, ?, ?)", last+1, key, projections.SessionDeleted, now, payload)
		if err != nil {
			return err
		}
		return s.applySessionEvent(ctx, tx, last+1, key, projections.SessionDeleted)
	})
}

// Fork implements [eventlog.Repo].
func (s *Store) Fork(ctx context.Context, source eventlog.Metadata, o eventlog.ForkOptions) (*eventlog.Session, error) {
	from, err := s.session(ctx, source.ID)
	if err != nil {
		return nil, err
	}
	m, err := o.From(from.meta, eventlog.At(from.meta.ID)).NewMetadata(s.o.Source)
	if err != nil {
		return nil, err
	}
	point := &forkPoint{from.key, o.EntryID}
	if o.EntryID == "" && o.Position == "" {
		return s.create(ctx, m, projections.SessionForked, point, func(ctx context.Context, tx *projections.Tx, key int64) error {
			if whole, err := from.log(ctx, tx).wholeIfMoved(); err != nil || whole != nil {
				if err == nil {
					err = s.insertInto(ctx, tx, key, whole)
				}
				return err
			}
			return s.copyLog(ctx, tx, from.key, key)
		})
	}
	entries, err := eventlog.NewSession(from).ForkEntries(ctx, o.EntryID, o.Position, s.o.Source)
	if err != nil {
		return nil, err
	}
	return s.create(ctx, m, projections.SessionForked, point, func(ctx context.Context, tx *projections.Tx, key int64) error {
		return s.insertInto(ctx, tx, key, entries)
	})
}

// copyLog copies a whole log, and its branch views, inside the database: nothing
// is parsed again. The session's own event was the last to be written.
func (s *Store) copyLog(ctx context.Context, tx *projections.Tx, from, to int64) error {
	if _, err := s.view(ctx, tx, from, eventlog.Harness).Tip(); err != nil {
		return err
	}
	var base int64
	if _, err := tx.Row(ctx, "SELECT max(seq) FROM events", nil, &base); err != nil {
		return err
	}
	// SQLite gives the copies base+1, base+2, … in the order of n.
	_, err := tx.Exec(ctx, `INSERT INTO events (session, n, id, parent, type, timestamp, hash, blob, payload)
		SELECT ?, n, id, parent, type, timestamp, hash, blob, payload FROM events WHERE session = ? AND n > 0 ORDER BY n`, to, from)
	if err != nil {
		return err
	}
	// The hash of what a text was purged from is that of what it was, in a copy too.
	_, err = tx.Exec(ctx, `INSERT INTO redactions (seq, session, at)
		SELECT ? + e.n, ?, r.at FROM redactions r JOIN events e ON e.seq = r.seq WHERE r.session = ? AND e.n > 0`, base, to, from)
	if err != nil || s.lockstep.off {
		return err
	}
	return branchStep(func() error { return s.branch.Copy(ctx, tx, from, to, base) })
}

// Add takes a session that was read from elsewhere, exactly as it is: nothing is
// checked, and a log that is irregular is answered as the reference walk answers
// it. It fails with [eventlog.ErrAlreadyExists], and with
// [eventlog.ErrInvalidState] for a session that was deleted here, until
// [Store.Restore] allows it.
func (s *Store) Add(ctx context.Context, m eventlog.Metadata, entries []eventlog.Entry) (*eventlog.Session, error) {
	if m.Header == "" {
		m.Header = m.HeaderText()
	}
	return s.create(ctx, m, projections.SessionCreated, nil, func(ctx context.Context, tx *projections.Tx, key int64) error {
		var at string
		deleted, err := tx.Row(ctx, "SELECT deleted_at FROM tombstones WHERE id = ?", []any{m.ID}, &at)
		if err != nil {
			return err
		}
		if deleted {
			return eventlog.Errorf(eventlog.InvalidState, "Session %s was deleted here at %s: restore it first", m.ID, at)
		}
		return s.insertInto(ctx, tx, key, entries)
	})
}

// Restore lets Add bring a session back that was deleted here. An id that was
// never deleted is no error.
func (s *Store) Restore(ctx context.Context, id string) error {
	return s.update(ctx, func(ctx context.Context, tx *projections.Tx) error {
		_, err := tx.Exec(ctx, "DELETE FROM tombstones WHERE id = ?", id)
		return err
	})
}
