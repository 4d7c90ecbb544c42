package sqlitestore

import (
	"context"
	"os"

	"github.com/sessiontree/sessiontree/projections"
)

// Health is how a store does.
type Health struct {
	// Views are the branch set, first, and the asynchronous views.
	Views []projections.Health
	// LastEvent is the seq of the last event of the log, 0 for none.
	LastEvent int64
	// WALBytes is the size of the write-ahead log. It grows while a reader holds an
	// old snapshot; 0 where there is none.
	WALBytes int64
}

// Health says how far each view is and what keeps it, in one snapshot.
func (s *Store) Health(ctx context.Context) (h Health, err error) {
	err = s.read(ctx, func(tx *projections.Tx) error {
		if h.LastEvent, err = projections.LastEvent(ctx, tx); err != nil {
			return err
		}
		branch, err := projections.HealthOf(ctx, tx, s.branch)
		if err != nil {
			return err
		}
		if fault := s.branchFault(); fault != nil {
			branch.Err = fault
		}
		others, err := s.views.Health(ctx, tx)
		h.Views = append([]projections.Health{branch}, others...)
		return err
	})
	if err != nil {
		return Health{}, err
	}
	if wal, err := os.Stat(s.db.path + "-wal"); err == nil {
		h.WALBytes = wal.Size()
	}
	return h, nil
}
