package sqlitestore

import (
	"context"
	"sync/atomic"

	"github.com/sessiontree/sessiontree/eventlog"
	"github.com/sessiontree/sessiontree/eventlog/js"
	"github.com/sessiontree/sessiontree/projections"
)

// Storage is one session of a [Store]: an [eventlog.Storage].
type Storage struct {
	store  *Store
	key    int64
	meta   eventlog.Metadata
	lease  *Lease // under which it writes, nil for none
	closed atomic.Bool
	// uncached leaves the branches that are read out of the store's cache: who reads
	// every session once would fill it.
	uncached bool
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
		if err := s.fence(ctx, tx, s.lease); err != nil {
			return err
		}
		v := s.store.view(ctx, tx, s.key, s.Dialect())
		prepared, written, err := b.Prepare(v, s.store.o.Source)
		if err == nil {
			err = s.checkDialect(v)
		}
		if err == nil && written {
			err = s.store.insert(v, prepared, true)
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
		if err := s.fence(ctx, tx, s.lease); err != nil {
			return err
		}
		v := s.store.view(ctx, tx, s.key, s.Dialect())
		if _, err := v.Tip(); err != nil {
			return err
		}
		if err := s.checkDialect(v); err != nil {
			return err
		}
		return s.store.insert(v, entries, false)
	})
}

// checkDialect fails for a session whose dialect an import has corrected since this
// handle was opened.
func (s *Storage) checkDialect(v *view) (err error) {
	var now eventlog.Dialect
	if v.head != nil {
		now = v.head.Dialect()
	} else if now, err = projections.DialectOf(v.ctx, v.tx, s.key); err != nil {
		return err
	}
	if now != s.Dialect() {
		return s.corrected()
	}
	return nil
}

func (s *Storage) corrected() error {
	return eventlog.Errorf(eventlog.InvalidState, "an import has corrected the dialect of session %s since it was opened: open it again", s.meta.ID)
}

func (s *Storage) update(ctx context.Context, f func(ctx context.Context, tx *projections.Tx) error) error {
	if err := s.check(); err != nil {
		return err
	}
	return s.store.append(ctx, f)
}

func (s *Store) readOnly() error {
	return eventlog.Errorf(eventlog.StorageFailed, "the store %s is open for reading only", s.db.path)
}

// Close implements [eventlog.Storage]. The store stays open.
func (s *Storage) Close() error {
	s.closed.Store(true)
	return nil
}

// view is a session inside a write transaction: an [eventlog.View].
type view struct {
	*logView
	tips     *tips
	lockstep bool              // the tip is asked of the branch views
	head     *projections.Head // once Tip has read it, in lockstep
	tip      eventlog.Head     // likewise
}

func (s *Store) view(ctx context.Context, tx *projections.Tx, session int64, d eventlog.Dialect) *view {
	return &view{logView: &logView{ctx, tx, session, d}, tips: &s.writer.tips, lockstep: !s.lockstep.off}
}

// Tip implements [eventlog.View]. It fails with [eventlog.ErrNotFound] when the
// session was deleted.
func (v *view) Tip() (tip eventlog.Head, err error) {
	if v.lockstep {
		err = branchStep(v.readHead)
	} else {
		v.tip, err = v.logView.Tip()
	}
	return v.tip, err
}

func (v *view) readHead() error {
	h, err := v.tips.head(v.ctx, v.tx, v.key)
	if err != nil {
		return err
	}
	if h == nil {
		return errDeleted
	}
	v.head, v.tip = h, h.Tip()
	return nil
}

// lastHash is the hash of the last entry, which the next one's is made from; nil if
// there is none.
func (v *view) lastHash() (hash []byte, err error) {
	if v.head != nil {
		return v.head.Hash(), nil
	}
	_, err = v.tx.Row(v.ctx, "SELECT hash FROM events WHERE session = ? ORDER BY n DESC LIMIT 1", []any{v.key}, &hash)
	return hash, err
}

// Exists implements [eventlog.View].
func (v *view) Exists(id string) (bool, error) {
	if v.head != nil && (v.head.HasLeaf(id) || v.tip.N == 0) {
		return v.head.HasLeaf(id), nil
	}
	if v.head == nil {
		return v.logView.Exists(id)
	}
	return v.tips.exists(v, id)
}

// Taken implements [eventlog.ManyView].
func (v *view) Taken(ids []string) (map[string]bool, error) {
	taken := map[string]bool{}
	if v.tip.N == 0 {
		return taken, nil
	}
	// Ids may hold halves of surrogate pairs, which encoding/json would not keep.
	list := js.Texts(ids...).JSON()
	found, err := projections.Column[string](v.ctx, v.tx, "SELECT e.id FROM json_each(?2) i CROSS JOIN events e WHERE e.session = ?1 AND e.id = i.value", v.key, list)
	for _, id := range found {
		taken[id] = true
	}
	return taken, err
}
