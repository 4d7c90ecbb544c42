package sqlitestore

import (
	"context"
	"fmt"
	"net/url"

	"github.com/sessiontree/sessiontree/projections"
)

// bulkBytes is from how many bytes on that one transaction writes the write-ahead
// log is copied into the database beside the writers.
const bulkBytes = 64 << 20

// inBulk runs what writes much in one transaction. SQLite copies the write-ahead log
// into the database as a part of the commit that finds it long: of a file of 600 MB
// that took as long as the transaction, and whoever appended meanwhile waited for
// both. Here another connection does it afterwards, which no writer waits for.
func (s *Store) inBulk(ctx context.Context, f func() error) error {
	if s.db.exclusive {
		return f()
	}
	s.bulk.Lock()
	defer s.bulk.Unlock()
	if err := s.autoCheckpoint(ctx, 0); err != nil {
		return err
	}
	err := f()
	if copyErr := s.copyWAL(ctx); copyErr != nil && ctx.Err() == nil {
		s.o.Logger.WarnContext(ctx, "the write-ahead log could not be copied: the next commits do it", "path", s.db.path, "error", copyErr)
	}
	if onErr := s.autoCheckpoint(context.WithoutCancel(ctx), checkpointPages); err == nil {
		err = onErr
	}
	return err
}

// autoCheckpoint sets from how many pages on a commit copies the log, 0 for never.
func (s *Store) autoCheckpoint(ctx context.Context, pages int) error {
	return s.writer.exclusively(ctx, func(ctx context.Context, tx *projections.Tx) error {
		var now int
		_, err := tx.Row(ctx, fmt.Sprintf("PRAGMA wal_autocheckpoint = %d", pages), nil, &now)
		return err
	})
}

// copyWAL copies what no reader needs any more of the log.
func (s *Store) copyWAL(ctx context.Context) error {
	c := connect(s.db.path, 1, url.Values{"mode": {"rw"}}, "checkpoint_fullfsync(1)", "synchronous("+s.o.Synchronous.String()+")", "wal_autocheckpoint(0)")
	defer c.Close()
	var busy, pages, copied int
	return c.QueryRowxContext(ctx, "PRAGMA wal_checkpoint(PASSIVE)").Scan(&busy, &pages, &copied)
}
