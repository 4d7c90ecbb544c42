package sqlitestore

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	sqlite3 "modernc.org/sqlite/lib"

	"github.com/sessiontree/sessiontree/eventlog"
	"github.com/sessiontree/sessiontree/projections"
)

// The branch set is applied in the transaction that appends: in lockstep. When it
// fails, the transaction is undone and run again without it, so that the log goes
// on; reads are answered by the log until the set can be brought up. (A savepoint
// before each step would do too, at the price of two statements an append; a
// failure is rare.)

// lockstep is how the branch set keeps step with the log in this process.
type lockstep struct {
	// off says that the transaction under way leaves the branch set as it is. Only
	// who holds the write gate reads or writes it.
	off bool

	mu   sync.Mutex
	hold hold // by tests
	// building says that the branch set is made in the background: see [openPatience].
	building bool
	failed   error
	pause    time.Duration
	until    time.Time // when it is tried again
}

// hold keeps the branch set from being applied.
type hold int

const (
	holdNothing hold = iota
	holdWriters      // writers leave it behind, and readers bring it up
	holdAll          // nobody applies it
)

// A branch set that failed is tried again after a while: what is wrong may have
// been mended.
const (
	firstPause = time.Second
	lastPause  = time.Minute
)

// branchFault is a failure of the branch set's own.
type branchFault struct{ err error }

func (f *branchFault) Error() string { return "the branch views: " + f.err.Error() }
func (f *branchFault) Unwrap() error { return f.err }

// branchStep runs a step of the branch set inside a write transaction, and makes
// what goes wrong a [branchFault], unless it is the disk that fails, or a lock.
func branchStep(f func() error) (err error) {
	defer func() {
		if p := recover(); p != nil {
			err = &branchFault{fmt.Errorf("panic: %v", p)}
		}
	}()
	err = f()
	if err == nil || errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded) || errors.Is(err, errDeleted) {
		return err
	}
	switch resultCode(err) & 0xff {
	case sqlite3.SQLITE_FULL, sqlite3.SQLITE_IOERR, sqlite3.SQLITE_NOMEM, sqlite3.SQLITE_READONLY, sqlite3.SQLITE_CANTOPEN,
		sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED, sqlite3.SQLITE_PROTOCOL, sqlite3.SQLITE_INTERRUPT:
		return err
	}
	return &branchFault{err}
}

// branchFault is why the branch set is not kept current by this process, nil while
// it is.
func (s *Store) branchFault() error {
	s.lockstep.mu.Lock()
	defer s.lockstep.mu.Unlock()
	return s.lockstep.failed
}

// mayApply says whether the branch set is to be applied: it works, or it is time
// to try it again.
func (l *lockstep) mayApply() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.hold != holdAll && (l.failed == nil || !time.Now().Before(l.until))
}

// writersApply is mayApply for a writer.
func (l *lockstep) writersApply() bool {
	l.mu.Lock()
	held := l.hold != holdNothing || l.building
	l.mu.Unlock()
	return !held && l.mayApply()
}

// noteBranch keeps what a write ended with, if that was the branch set's own
// failure, and says so.
func (s *Store) noteBranch(ctx context.Context, err error) (failed bool) {
	var fault *branchFault
	if !errors.As(err, &fault) {
		return false
	}
	l := &s.lockstep
	l.mu.Lock()
	defer l.mu.Unlock()
	l.failed = fault.err
	if now := time.Now(); !now.Before(l.until) { // others of the same group may have been here
		l.pause = min(max(2*l.pause, firstPause), lastPause)
		l.until = now.Add(l.pause)
	}
	s.o.Logger.WarnContext(ctx, "the branch views failed: reads are answered from the log", "path", s.db.path, "error", fault.err, "retry", l.pause)
	return true
}

// branchWorks forgets a failure.
func (s *Store) branchWorks() {
	l := &s.lockstep
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.failed != nil {
		s.o.Logger.Info("the branch views work again", "path", s.db.path)
	}
	l.failed, l.pause, l.until = nil, 0, time.Time{}
}

// update writes, with the branch views current before and after if they can be.
func (s *Store) update(ctx context.Context, f func(ctx context.Context, tx *projections.Tx) error) error {
	return s.inLockstep(ctx, request{run: f})
}

// append is update for what only appends to sessions that are there: it may take
// heads from, and leave them to, other appends (see [tips]).
func (s *Store) append(ctx context.Context, f func(ctx context.Context, tx *projections.Tx) error) error {
	return s.inLockstep(ctx, request{run: f, appends: true})
}

func (s *Store) inLockstep(ctx context.Context, r request) error {
	if s.writer == nil {
		return s.readOnly()
	}
	for mended := false; ; {
		err := s.writer.do(&request{ctx: ctx, run: r.run, appends: r.appends, lazy: r.lazy, rebuilds: r.rebuilds, views: true})
		if s.noteBranch(ctx, err) {
			continue // without it, this time
		}
		// The place behind a head is taken: somebody wrote past the views.
		if !mended && resultCode(err) == sqlite3.SQLITE_CONSTRAINT_UNIQUE {
			if mended = true; s.mend(ctx) == nil {
				continue
			}
		}
		if err == nil {
			s.news.shine()
		}
		return err
	}
}

// bringUp applies what the branch views lack inside the writer's transaction: an
// append to views that are behind would take a leaf and a count that are not so.
// Views that a newer program wrote are that program's to keep.
func (s *Store) bringUp(ctx context.Context, tx *projections.Tx) error {
	tips := &s.writer.tips
	if tips.current && s.lockstep.writersApply() {
		return nil
	}
	tips.current, tips.heads = false, nil // what is applied now they do not have
	c, err := projections.ReadCheckpoint(ctx, tx, s.branch.Name())
	if err != nil {
		return err
	}
	if s.lockstep.off = c.Version > s.branch.Version() || !s.lockstep.writersApply(); s.lockstep.off {
		return projections.LeaveLockstep(ctx, tx, s.branch)
	}
	if c.Version != s.branch.Version() || !c.Lockstep {
		if err := s.applyAll(ctx, tx); err != nil {
			return err
		}
		if err := projections.EnterLockstep(ctx, tx, s.branch); err != nil {
			return err
		}
	}
	if s.branchFault() != nil {
		s.branchWorks()
	}
	tips.current = tips.known
	return nil
}

// whyOff is the error for what cannot be done while the branch set is left as it
// is.
func (s *Store) whyOff(ctx context.Context, tx *projections.Tx) error {
	c, err := projections.ReadCheckpoint(ctx, tx, s.branch.Name())
	if err != nil {
		return err
	}
	if c.Version > s.branch.Version() {
		return projections.NewerView(s.branch, c)
	}
	return &eventlog.Error{Code: eventlog.StorageFailed, Message: "the branch views are not applied", Err: s.branchFault()}
}

// applyAll applies all that the branch views lack.
func (s *Store) applyAll(ctx context.Context, tx *projections.Tx) error {
	for {
		more, err := s.applySlice(ctx, tx)
		if err != nil || !more {
			return err
		}
	}
}

func (s *Store) applySlice(ctx context.Context, tx *projections.Tx) (more bool, err error) {
	err = branchStep(func() error {
		more, err = projections.CatchUp(ctx, tx, s.branch, projections.BranchSlice)
		return err
	})
	return more, err
}
