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
// whoever writes; where nobody does, as after a crash, it copies the database into
// a temporary folder, once, and brings the views up there. The copy goes when the
// store is closed.
func (s *Store) analyse(ctx context.Context, f func(tx *projections.Tx) error, views ...string) error {
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
			copied, err := s.privateCopy(ctx)
			if err != nil {
				return err
			}
			return copied.analyse(ctx, f, views...)
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

// privateCopy is a store that may write, made of this one as it is now.
func (s *Store) privateCopy(ctx context.Context) (*Store, error) {
	s.copying.Lock()
	defer s.copying.Unlock()
	if s.copied != nil {
		return s.copied, nil
	}
	dir, err := os.MkdirTemp("", "sessiontree-views-*") // 0700
	if err != nil {
		return nil, s.db.mapError("cannot make a temporary folder", err)
	}
	s.o.Logger.InfoContext(ctx, "the views are behind, and this store may not write: they are brought up in a copy", "path", s.db.path, "copy", dir)
	path := filepath.Join(dir, privateName)
	var copied *Store
	if err = s.copyInto(ctx, path); err == nil {
		copied, err = Open(ctx, path, Options{Synchronous: Normal, Logger: s.o.Logger, AllowNetworkFS: true})
	}
	if err != nil {
		os.RemoveAll(dir)
		return nil, err
	}
	s.copied, s.copyDir = copied, dir
	return copied, nil
}

// dropCopy closes and removes the copy, if there is one.
func (s *Store) dropCopy(ctx context.Context) {
	s.copying.Lock()
	defer s.copying.Unlock()
	if s.copied == nil {
		return
	}
	s.copied.Close(context.WithoutCancel(ctx))
	os.RemoveAll(s.copyDir)
	s.copied = nil
}
