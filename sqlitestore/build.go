package sqlitestore

import (
	"context"
	"sync"

	"github.com/sessiontree/sessiontree/eventlog"
	"github.com/sessiontree/sessiontree/projections"
)

// openPatience is how many events Open applies to the branch views before it returns:
// about a second's. What a newer program has to make of a large log it makes in the
// background: meanwhile writers leave the views behind, and what is asked is answered
// from the log.
var openPatience int64 = 100_000

// builder makes the branch views in the background.
type builder struct {
	stop context.CancelFunc // nil: it was not needed
	done sync.WaitGroup
}

// bringUpBranch brings the branch views up when the store is opened.
func (s *Store) bringUpBranch(ctx context.Context) error {
	lag, err := s.branchLag(ctx)
	if err != nil {
		return err
	}
	if lag <= openPatience {
		return s.catchUp(ctx)
	}
	s.o.Logger.InfoContext(ctx, "the branch views are made in the background: answers come from the log until then", "path", s.db.path, "events", lag)
	s.lockstep.setBuilding(true)
	ctx, s.builder.stop = context.WithCancel(context.Background())
	s.builder.done.Go(func() { s.buildBranch(ctx) })
	return nil
}

// branchLag is how many events, by seq, the branch views are behind. Those of a newer
// program are not this one's to bring up.
func (s *Store) branchLag(ctx context.Context) (lag int64, err error) {
	err = s.read(ctx, func(tx *projections.Tx) error {
		c, err := projections.ReadCheckpoint(ctx, tx, s.branch.Name())
		if err != nil || c.Version > s.branch.Version() {
			return err
		}
		if lag, err = projections.LastEvent(ctx, tx); err == nil && c.Version == s.branch.Version() {
			lag -= c.Position
		}
		return err
	})
	return lag, err
}

// buildBranch applies the log in slices, so that writers get their turns. What is not
// done when the store is closed is left to whoever opens it next.
func (s *Store) buildBranch(ctx context.Context) {
	defer s.lockstep.setBuilding(false)
	for {
		err := s.catchUp(ctx)
		switch {
		case err == nil || ctx.Err() != nil || s.noteBranch(ctx, err):
			return
		case eventlog.CodeOf(err) != eventlog.Busy:
			s.o.Logger.WarnContext(ctx, "the branch views could not be made: the next write tries again", "path", s.db.path, "error", err)
			return
		}
	}
}

// stopBuilding ends that.
func (s *Store) stopBuilding() {
	if s.builder.stop != nil {
		s.builder.stop()
		s.builder.done.Wait()
	}
}

func (l *lockstep) setBuilding(on bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.building = on
}
