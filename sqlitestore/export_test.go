package sqlitestore

import (
	"context"
	"database/sql/driver"
	"time"

	"github.com/sessiontree/sessiontree/projections"
)

// CacheUse says how often the branch of a leaf was asked for, was kept, and could
// be carried on; and how many bytes are kept.
func (s *Store) CacheUse() (asked, hits, grown int, size int64) {
	c := s.cache
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.asked, c.hits, c.grown, c.size
}

// HoldBranch keeps the branch set from being applied: "writers" leave it behind
// and readers bring it up, "all" leave it, "" ends that.
func (s *Store) HoldBranch(who string) {
	s.lockstep.mu.Lock()
	defer s.lockstep.mu.Unlock()
	s.lockstep.hold = map[string]hold{"": holdNothing, "writers": holdWriters, "all": holdAll}[who]
}

// RetryBranch ends the wait of a branch set that failed.
func (s *Store) RetryBranch() {
	s.lockstep.mu.Lock()
	defer s.lockstep.mu.Unlock()
	s.lockstep.until = time.Time{}
}

// OpenWith is Open with a driver of the test's own around SQLite's.
func OpenWith(ctx context.Context, path string, o Options, wrap func(driver.Connector) driver.Connector) (*Store, error) {
	plain := wrapConnector
	wrapConnector = wrap
	defer func() { wrapConnector = plain }()
	return Open(ctx, path, o)
}

// SetOpenPatience sets how many events Open applies to the branch views.
func SetOpenPatience(n int64) (before int64) {
	before, openPatience = openPatience, n
	return before
}

// Waiting is how many requests wait for the write gate.
func (s *Store) Waiting() int {
	s.writer.mu.Lock()
	defer s.writer.mu.Unlock()
	return len(s.writer.queue)
}

// Writing says whether somebody has the write gate.
func (s *Store) Writing() bool {
	s.writer.mu.Lock()
	defer s.writer.mu.Unlock()
	return s.writer.leading
}

// StopViews stops the goroutines of the asynchronous views.
func (s *Store) StopViews() { s.views.Close(context.Background()) }

// HoldGate has the write gate until free is called.
func (s *Store) HoldGate() (free func()) {
	has, end := make(chan struct{}), make(chan struct{})
	go s.writer.exclusively(context.Background(), func(context.Context, *projections.Tx) error {
		close(has)
		<-end
		return nil
	})
	<-has
	return func() { close(end) }
}
