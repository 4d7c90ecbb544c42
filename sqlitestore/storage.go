package sqlitestore

import (
	"context"
	"iter"
	"sync/atomic"

	"github.com/sessiontree/sessiontree/eventlog"
	"github.com/sessiontree/sessiontree/projections"
	"github.com/sessiontree/sessiontree/query"
)

// Storage is one session of a [Store]: an [eventlog.Storage].
type Storage struct {
	store  *Store
	key    int64
	meta   eventlog.Metadata
	closed atomic.Bool
}

// Dialect implements [eventlog.Storage].
func (s *Storage) Dialect() eventlog.Dialect { return s.meta.Dialect }

func (s *Storage) check() error {
	if s.closed.Load() {
		return eventlog.Errorf(eventlog.Closed, "the session is closed")
	}
	return nil
}

func (s *Storage) deleted() error {
	return eventlog.Errorf(eventlog.NotFound, "Session %s was deleted", s.meta.ID)
}

var errDeleted = eventlog.Errorf(eventlog.NotFound, "the session was deleted")

// reading is the session in one snapshot of the database.
type reading struct {
	*projections.Tx
	irregular bool // branches are answered by the walk
}

// read runs f in one snapshot of the database, in which the session is there.
func (s *Storage) read(ctx context.Context, f func(tx reading) error) error {
	if err := s.check(); err != nil {
		return err
	}
	return s.store.read(ctx, func(tx *projections.Tx) error {
		r := reading{Tx: tx}
		ok, err := tx.Row(ctx, "SELECT irregular FROM heads WHERE session = ?", []any{s.key}, &r.irregular)
		if err != nil {
			return err
		}
		if !ok {
			return s.deleted()
		}
		return f(r)
	})
}

// Metadata implements [eventlog.Storage].
func (s *Storage) Metadata(ctx context.Context) (eventlog.Metadata, error) {
	if err := ctx.Err(); err != nil {
		return eventlog.Metadata{}, err
	}
	return s.meta, s.check()
}

// Head implements [eventlog.Storage].
func (s *Storage) Head(ctx context.Context) (head eventlog.Head, err error) {
	err = s.read(ctx, func(tx reading) error {
		v := &view{ctx: ctx, tx: tx.Tx, key: s.key}
		head, err = v.Tip()
		if err != nil {
			return err
		}
		if head.Leaf.IsNone() {
			return nil
		}
		if ok, err := v.Exists(head.Leaf.ID()); err != nil || ok {
			return err
		}
		return eventlog.EntryNotFound(eventlog.InvalidSession, head.Leaf.ID())
	})
	return head, err
}

// Entry implements [eventlog.Storage].
func (s *Storage) Entry(ctx context.Context, id string) (e eventlog.Entry, err error) {
	err = s.read(ctx, func(tx reading) error {
		found, ok, err := (&view{ctx: ctx, tx: tx.Tx, key: s.key}).Lookup(id)
		if err == nil && !ok {
			err = eventlog.EntryNotFound(eventlog.NotFound, id)
		}
		e = found
		return err
	})
	return e, err
}

// page is how many entries are read at a time: a cursor left open would hold a
// snapshot, and with it the WAL.
const page = 512

// Entries implements [eventlog.Storage].
func (s *Storage) Entries(ctx context.Context, after, limit int) iter.Seq2[eventlog.Entry, error] {
	return func(yield func(eventlog.Entry, error) bool) {
		if err := eventlog.CheckWindow(after, limit); err != nil {
			yield(eventlog.Entry{}, err)
			return
		}
		for limit > 0 {
			var entries []eventlog.Entry
			want := min(limit, page)
			err := s.read(ctx, func(tx reading) error {
				rows, err := tx.Rows(ctx, "SELECT payload FROM events WHERE session = ? AND n > ? ORDER BY n LIMIT ?", s.key, after, want)
				if err != nil {
					return err
				}
				entries, err = query.Entries(rows)
				return err
			})
			if err != nil {
				yield(eventlog.Entry{}, err)
				return
			}
			for _, e := range entries {
				if !yield(e, nil) {
					return
				}
			}
			if len(entries) < want {
				return
			}
			after += len(entries)
			limit -= len(entries)
		}
	}
}

// Find implements [eventlog.Storage].
func (s *Storage) Find(ctx context.Context, t eventlog.Type) (entries []eventlog.Entry, err error) {
	err = s.read(ctx, func(tx reading) error {
		rows, err := tx.Rows(ctx, "SELECT payload FROM events WHERE session = ? AND n > 0 AND type = ? ORDER BY n", s.key, string(t))
		if err != nil {
			return err
		}
		entries, err = query.Entries(rows)
		return err
	})
	return entries, err
}

// Branch implements [eventlog.Storage].
func (s *Storage) Branch(ctx context.Context, from eventlog.Ref) (branch []eventlog.Entry, err error) {
	err = s.read(ctx, func(tx reading) error {
		if from.IsNone() {
			return nil
		}
		if tx.irregular {
			branch, err = s.walk(ctx, tx, from.ID())
			return err
		}
		p, err := query.Locate(ctx, tx, s.key, from.ID())
		if err != nil {
			return err
		}
		stop, err := query.Stop(ctx, tx, p)
		if err != nil {
			return err
		}
		branch, err = query.Branch(ctx, tx, p, stop)
		return err
	})
	return branch, err
}

// walk answers by the reference.
func (s *Storage) walk(ctx context.Context, tx reading, id string) ([]eventlog.Entry, error) {
	v := &view{ctx: ctx, tx: tx.Tx, key: s.key}
	from, ok, err := v.Lookup(id)
	if err != nil {
		return nil, err
	}
	if !ok {
		return nil, eventlog.EntryNotFound(eventlog.NotFound, id)
	}
	head, err := v.Tip()
	if err != nil {
		return nil, err
	}
	return s.store.branch.Dialect.Walk(from, head.N, v.Lookup)
}

// Label implements [eventlog.Storage].
func (s *Storage) Label(ctx context.Context, id string) (label string, err error) {
	err = s.read(ctx, func(tx reading) error {
		_, err := tx.Row(ctx, "SELECT label FROM labels WHERE session = ? AND target = ?", []any{s.key, id}, &label)
		return err
	})
	return label, err
}

// Labels implements [eventlog.Storage].
func (s *Storage) Labels(ctx context.Context) (labels map[string]string, err error) {
	err = s.read(ctx, func(tx reading) error {
		rows, err := tx.Rows(ctx, "SELECT target, label FROM labels WHERE session = ?", s.key)
		if err != nil {
			return err
		}
		defer rows.Close()
		labels = map[string]string{}
		for rows.Next() {
			var target, label string
			if err := rows.Scan(&target, &label); err != nil {
				return err
			}
			labels[target] = label
		}
		return rows.Err()
	})
	return labels, err
}

// Name implements [eventlog.Storage].
func (s *Storage) Name(ctx context.Context) (name string, err error) {
	err = s.read(ctx, func(tx reading) error {
		var payload string
		ok, err := tx.Row(ctx, "SELECT e.payload FROM heads h JOIN events e ON e.seq = h.name_seq WHERE h.session = ?", []any{s.key}, &payload)
		if err != nil || !ok {
			return err
		}
		name, err = s.store.branch.Dialect.Name(eventlog.TrustedEntry(payload))
		return err
	})
	return name, err
}

// Stats implements [eventlog.Storage].
func (s *Storage) Stats(ctx context.Context) (stats eventlog.Stats, err error) {
	err = s.read(ctx, func(tx reading) error {
		var fault *string
		ok, err := tx.Row(ctx, "SELECT messages, cached, uncached, total, cost, fault FROM heads WHERE session = ?", []any{s.key},
			&stats.Messages, (*projections.Total)(&stats.CachedTokens), (*projections.Total)(&stats.UncachedTokens), (*projections.Total)(&stats.TotalTokens), (*projections.Total)(&stats.Cost), &fault)
		switch {
		case err != nil || !ok:
			return err
		case fault != nil:
			stats = eventlog.Stats{}
			return eventlog.Errorf(eventlog.InvalidEntry, "%s", *fault)
		}
		return nil
	})
	return stats, err
}

// Append implements [eventlog.Storage].
func (s *Storage) Append(ctx context.Context, b eventlog.Batch) (entries []eventlog.Entry, err error) {
	err = s.update(ctx, func(ctx context.Context, tx *projections.Tx) error {
		v := &view{ctx: ctx, tx: tx, key: s.key}
		prepared, written, err := b.Prepare(v, s.store.o.Source)
		if err == nil && written {
			err = s.store.insert(ctx, tx, v.head, prepared, true)
		}
		entries = prepared
		return err
	})
	if err != nil {
		return nil, err
	}
	return entries, nil
}

// AppendRaw implements [eventlog.Storage].
func (s *Storage) AppendRaw(ctx context.Context, entries ...eventlog.Entry) error {
	return s.update(ctx, func(ctx context.Context, tx *projections.Tx) error {
		return s.store.insertInto(ctx, tx, s.key, entries)
	})
}

func (s *Storage) update(ctx context.Context, f func(ctx context.Context, tx *projections.Tx) error) error {
	if err := s.check(); err != nil {
		return err
	}
	return s.store.update(ctx, f)
}

// update writes, with the branch views current before and after.
func (s *Store) update(ctx context.Context, f func(ctx context.Context, tx *projections.Tx) error) error {
	if s.writer == nil {
		return s.readOnly()
	}
	err := s.writer.update(ctx, func(ctx context.Context, tx *projections.Tx) error {
		if err := s.bringUp(ctx, tx); err != nil {
			return err
		}
		return f(ctx, tx)
	})
	if err == nil {
		s.news.shine()
	}
	return err
}

func (s *Store) readOnly() error {
	return eventlog.Errorf(eventlog.StorageFailed, "the store %s is open for reading only", s.db.path)
}

// bringUp applies what the branch views lack inside the writer's transaction: an
// append to views that are behind would take a leaf and a count that are not so.
func (s *Store) bringUp(ctx context.Context, tx *projections.Tx) error {
	c, err := projections.ReadCheckpoint(ctx, tx, s.branch.Name())
	if err != nil {
		return err
	}
	if c.Version > s.branch.Version() {
		return eventlog.Errorf(eventlog.StorageFailed, "the branch views of %s are of version %d, and this program writes version %d: use the newer program", s.db.path, c.Version, s.branch.Version())
	}
	last, err := projections.LastEvent(ctx, tx)
	if err != nil {
		return err
	}
	if c.Version == s.branch.Version() && c.Position == last {
		return nil
	}
	for more := true; more; {
		if more, err = projections.CatchUp(ctx, tx, s.branch, projections.BranchSlice); err != nil {
			return err
		}
	}
	return nil
}

// insertInto appends entries exactly as they are.
func (s *Store) insertInto(ctx context.Context, tx *projections.Tx, session int64, entries []eventlog.Entry) error {
	v := &view{ctx: ctx, tx: tx, key: session}
	if _, err := v.Tip(); err != nil {
		return err
	}
	return s.insert(ctx, tx, v.head, entries, false)
}

// insert appends entries to a session, and applies the branch set to them in the
// same transaction. Checked says that their ids are new in the session.
func (s *Store) insert(ctx context.Context, tx *projections.Tx, head *projections.Head, entries []eventlog.Entry, checked bool) error {
	if len(entries) == 0 {
		return nil
	}
	events := make([]projections.Event, len(entries))
	n := head.Tip().N
	for i, e := range entries {
		n++
		r, err := tx.Exec(ctx, insertEvent, head.Session(), n, e.ID(), nullable(e.Parent()), string(e.Type()), e.Timestamp(), e.JSON())
		if err != nil {
			return err
		}
		seq, err := r.LastInsertId()
		if err != nil {
			return err
		}
		events[i] = projections.Event{Seq: seq, Session: head.Session(), N: n, Entry: e, Checked: checked}
	}
	if err := s.branch.ApplyTo(ctx, tx, head, events); err != nil {
		return err
	}
	return projections.WriteCheckpoint(ctx, tx, s.branch, events[len(events)-1].Seq)
}

// apply brings the branch set up to the events that the transaction wrote.
func (s *Store) apply(ctx context.Context, tx *projections.Tx, events []projections.Event) error {
	if err := s.branch.Apply(ctx, tx, events); err != nil {
		return err
	}
	return projections.WriteCheckpoint(ctx, tx, s.branch, events[len(events)-1].Seq)
}

const insertEvent = "INSERT INTO events (session, n, id, parent, type, timestamp, payload) VALUES (?, ?, ?, ?, ?, ?, ?)"

func nullable(r eventlog.Ref) any {
	if r.IsNone() {
		return nil
	}
	return r.ID()
}

// Close implements [eventlog.Storage]. The store stays open.
func (s *Storage) Close() error {
	s.closed.Store(true)
	return nil
}

// view is a session inside a transaction: an [eventlog.View].
type view struct {
	ctx  context.Context
	tx   *projections.Tx
	key  int64
	head *projections.Head // once Tip has read it
}

// Dialect implements [eventlog.View].
func (v *view) Dialect() eventlog.Dialect { return eventlog.Harness }

// Tip implements [eventlog.View]. It fails with [eventlog.ErrNotFound] when the
// session was deleted.
func (v *view) Tip() (eventlog.Head, error) {
	h, err := projections.ReadHead(v.ctx, v.tx, v.key)
	if err != nil {
		return eventlog.Head{}, err
	}
	if h == nil {
		return eventlog.Head{}, errDeleted
	}
	v.head = h
	return h.Tip(), nil
}

// Lookup implements [eventlog.View]. Of several entries with an id it finds the
// last.
func (v *view) Lookup(id string) (e eventlog.Entry, ok bool, err error) {
	var payload string
	ok, err = v.tx.Row(v.ctx, "SELECT payload FROM events WHERE session = ? AND id = ? ORDER BY seq DESC LIMIT 1", []any{v.key, id}, &payload)
	if err != nil || !ok {
		return e, false, err
	}
	return eventlog.TrustedEntry(payload), true, nil
}

// Exists implements [eventlog.View].
func (v *view) Exists(id string) (bool, error) {
	if v.head != nil && v.head.HasLeaf(id) {
		return true, nil
	}
	var one int
	return v.tx.Row(v.ctx, "SELECT 1 FROM events WHERE session = ? AND id = ? LIMIT 1", []any{v.key, id}, &one)
}
