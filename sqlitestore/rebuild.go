package sqlitestore

import (
	"context"
	"slices"

	"github.com/sessiontree/sessiontree/projections"
)

// Rebuild makes views again from the log: those named, or all of them ("branch"
// is the branch set; [Store.Health] names the others). Others read and write
// meanwhile. It fails with [eventlog.ErrInvalidArgument] for a view that does not
// exist.
func (s *Store) Rebuild(ctx context.Context, names ...string) error {
	if s.writer == nil {
		return s.readOnly()
	}
	if i := slices.Index(names, s.branch.Name()); i >= 0 || len(names) == 0 {
		if err := s.rebuildBranch(ctx); err != nil {
			return err
		}
		if names = slices.Delete(slices.Clone(names), max(i, 0), i+1); len(names) == 0 && i >= 0 {
			return nil
		}
	}
	return s.views.Rebuild(ctx, names...)
}

// rebuildBranch makes the branch views again: session by session, each in a
// transaction in which its answers change from the old to the new at once, so that
// writers get their turns in between. Views that are behind, or of another
// version, are made as a whole.
func (s *Store) rebuildBranch(ctx context.Context) error {
	behind := false
	err := s.read(ctx, func(tx *projections.Tx) (err error) {
		behind, err = projections.IsBehind(ctx, tx, s.branch)
		return err
	})
	if err != nil {
		return err
	}
	if behind {
		return s.rebuildWhole(ctx)
	}
	for after := int64(0); ; {
		var session int64
		there := false
		err := s.inLockstep(ctx, request{lazy: true, rebuilds: true, run: func(ctx context.Context, tx *projections.Tx) (err error) {
			if there, err = tx.Row(ctx, nextSessionSQL, []any{after}, &session); err != nil || !there {
				return err
			}
			return s.rebuildSession(ctx, tx, session)
		}})
		if err != nil || !there {
			return err
		}
		after = session
	}
}

// rebuildSession makes one session's rows of the branch views again.
func (s *Store) rebuildSession(ctx context.Context, tx *projections.Tx, session int64) error {
	if s.lockstep.off {
		return s.whyOff(ctx, tx)
	}
	return projections.Usage{}.Around(ctx, tx, session, func() error {
		return branchStep(func() error { return s.branch.RebuildSession(ctx, tx, session) })
	})
}

// nextSessionSQL is the next session that is there, or that has rows in a view.
const nextSessionSQL = `SELECT min(session) FROM (
	SELECT min(key) AS session FROM sessions WHERE key > ?1
	UNION ALL SELECT min(session) FROM heads WHERE session > ?1
	UNION ALL SELECT min(session) FROM segments WHERE session > ?1
	UNION ALL SELECT min(session) FROM labels WHERE session > ?1
) HAVING min(session) IS NOT NULL`

// rebuildWhole makes the branch views again in one transaction: readers see the
// old answers until the new ones are there.
func (s *Store) rebuildWhole(ctx context.Context) error {
	err := s.writer.update(ctx, func(ctx context.Context, tx *projections.Tx) error {
		c, err := projections.ReadCheckpoint(ctx, tx, s.branch.Name())
		if err != nil {
			return err
		}
		if c.Version > s.branch.Version() {
			return projections.NewerView(s.branch, c)
		}
		err = branchStep(func() error {
			if err := s.branch.Reset(ctx, tx); err != nil {
				return err
			}
			return projections.WriteCheckpoint(ctx, tx, s.branch, 0)
		})
		if err != nil {
			return err
		}
		return s.applyAll(ctx, tx)
	})
	if s.noteBranch(ctx, err); err == nil {
		s.branchWorks()
	}
	return err
}
