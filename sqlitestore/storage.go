package sqlitestore

import (
	"context"
	"encoding/json"
	"sync/atomic"

	"github.com/sessiontree/sessiontree/eventlog"
	"github.com/sessiontree/sessiontree/projections"
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

// Metadata implements [eventlog.Storage].
func (s *Storage) Metadata(ctx context.Context) (eventlog.Metadata, error) {
	if err := ctx.Err(); err != nil {
		return eventlog.Metadata{}, err
	}
	return s.meta, s.check()
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
	err := s.writer.updateWithViews(ctx, f)
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

// Close implements [eventlog.Storage]. The store stays open.
func (s *Storage) Close() error {
	s.closed.Store(true)
	return nil
}

// settle moves the checkpoint of the branch views, which every write of this
// transaction kept current.
func (s *Store) settle(ctx context.Context, tx *projections.Tx) error {
	_, err := tx.Exec(ctx, `UPDATE checkpoints SET position = last.seq FROM (SELECT seq FROM events ORDER BY seq DESC LIMIT 1) last
		WHERE projection = ? AND position <> last.seq`, s.branch.Name())
	return err
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
	if v.head != nil && (v.head.HasLeaf(id) || v.head.Tip().N == 0) {
		return v.head.HasLeaf(id), nil
	}
	var one int
	return v.tx.Row(v.ctx, "SELECT 1 FROM events WHERE session = ? AND id = ? LIMIT 1", []any{v.key, id}, &one)
}

// Taken implements [eventlog.ManyView].
func (v *view) Taken(ids []string) (map[string]bool, error) {
	taken := map[string]bool{}
	if v.head.Tip().N == 0 {
		return taken, nil
	}
	list, err := json.Marshal(ids)
	if err != nil {
		return nil, err
	}
	rows, err := v.tx.Rows(v.ctx, "SELECT e.id FROM json_each(?2) i CROSS JOIN events e WHERE e.session = ?1 AND e.id = i.value", v.key, string(list))
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	for rows.Next() {
		var id string
		if err := rows.Scan(&id); err != nil {
			return nil, err
		}
		taken[id] = true
	}
	return taken, rows.Err()
}
