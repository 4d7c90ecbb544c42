package sqlitestore

import (
	"context"
	"os"
	"path/filepath"
	"time"

	"github.com/sessiontree/sessiontree/eventlog"
	"github.com/sessiontree/sessiontree/projections"
)

// grace is how long a store that only reads waits for a program that writes to
// bring a view up to date, before it makes a copy of its own.
const grace = 300 * time.Millisecond

// analyse runs f in a snapshot in which the views that are named hold all that was
// in the log when it was called.
//
// A store that may write brings them up itself. One that only reads waits for
// whoever writes; where nobody does, as after a crash, or while an import lets the
// views rest, it copies the database into a temporary folder and brings the views up
// there. The copy serves as long as the log does not grow, and goes when the store is
// closed.
func (s *Store) analyse(ctx context.Context, f func(tx *projections.Tx) error, views ...string) error {
	// Most often they are there: then one snapshot does.
	current := false
	err := s.read(ctx, func(tx *projections.Tx) (err error) {
		if current, err = s.views.Hold(ctx, tx, views...); err == nil && current {
			err = f(tx)
		}
		return err
	})
	if err != nil || current {
		return err
	}
	for _, view := range views {
		err := s.views.CatchUp(ctx, view)
		if err != nil && s.writer != nil && ctx.Err() == nil && s.catchUp(ctx) == nil { // it may wait for the branch views
			err = s.views.CatchUp(ctx, view)
		}
		switch {
		case err == nil:
			continue
		case ctx.Err() != nil || s.writer != nil || eventlog.CodeOf(err) == eventlog.Closed:
			return err
		}
		current, err := s.awaitView(ctx, view)
		if err != nil {
			return err
		}
		if !current {
			return s.inCopy(ctx, func(copied *Store) error { return copied.analyse(ctx, f, views...) })
		}
	}
	return s.read(ctx, f)
}

// awaitView waits a little for a view that another process may be bringing up.
func (s *Store) awaitView(ctx context.Context, view string) (current bool, err error) {
	if s.db.fixed {
		return false, nil // it sees the file as it was
	}
	for end := time.Now().Add(grace); time.Now().Before(end); {
		select {
		case <-ctx.Done():
			return false, ctx.Err()
		case <-time.After(grace / 10):
		}
		if err := s.views.CatchUp(ctx, view); err == nil {
			return true, nil
		}
	}
	return false, nil
}

// inCopy runs f on a store that may write, made of this one with all that was in the
// log when it was called.
func (s *Store) inCopy(ctx context.Context, f func(copied *Store) error) error {
	wanted, err := s.lastEvent(ctx)
	if err != nil {
		return err
	}
	for {
		s.copying.RLock()
		if s.copied != nil && s.copiedTo >= wanted {
			defer s.copying.RUnlock()
			return f(s.copied)
		}
		s.copying.RUnlock()
		if err := s.renewCopy(ctx, wanted); err != nil {
			return err
		}
	}
}

func (s *Store) lastEvent(ctx context.Context) (seq int64, err error) {
	err = s.read(ctx, func(tx *projections.Tx) error {
		seq, err = projections.LastEvent(ctx, tx)
		return err
	})
	return seq, err
}

// renewCopy makes the private copy, unless another has made one that will do.
func (s *Store) renewCopy(ctx context.Context, wanted int64) error {
	s.copying.Lock()
	defer s.copying.Unlock()
	if s.copied != nil && s.copiedTo >= wanted {
		return nil
	}
	s.removeCopy(ctx)
	dir, err := os.MkdirTemp("", "sessiontree-views-*") // 0700
	if err != nil {
		return s.db.mapError("cannot make a temporary folder", err)
	}
	s.o.Logger.InfoContext(ctx, "the views are behind, and this store may not write: they are brought up in a copy", "path", s.db.path, "copy", dir)
	path := filepath.Join(dir, privateName)
	var copied *Store
	if err = s.copyInto(ctx, path); err == nil {
		copied, err = Open(ctx, path, Options{Synchronous: Normal, Logger: s.o.Logger, AllowNetworkFS: true})
	}
	if err != nil {
		os.RemoveAll(dir)
		return err
	}
	s.copied, s.copyDir = copied, dir
	s.copiedTo, err = copied.lastEvent(ctx)
	return err
}

// dropCopy closes and removes the copy, if there is one.
func (s *Store) dropCopy(ctx context.Context) {
	s.copying.Lock()
	defer s.copying.Unlock()
	s.removeCopy(ctx)
}

func (s *Store) removeCopy(ctx context.Context) {
	if s.copied == nil {
		return
	}
	s.copied.Close(context.WithoutCancel(ctx))
	os.RemoveAll(s.copyDir)
	s.copied, s.copiedTo = nil, 0
}
