package sqlitestore_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/sessiontree/sessiontree/eventlog"
	"github.com/sessiontree/sessiontree/sqlitestore"
)

// Several processes write at once, and some leave the branch views behind for a while:
// no event is applied twice or never.
func TestProcessesThatLeaveTheBranchViewsBehindByTurns(t *testing.T) {
	seed := uint64(time.Now().UnixNano())
	t.Logf("seed %d", seed)
	path := filepath.Join(t.TempDir(), "sessions.db")
	var running sync.WaitGroup
	var stores []*sqlitestore.Store
	for range 3 {
		s, err := sqlitestore.Open(ctx, path, sqlitestore.Options{Synchronous: sqlitestore.Normal})
		require.NoError(t, err)
		defer s.Close(ctx)
		stores = append(stores, s)
	}
	for i := range 4 {
		_, err := stores[0].Create(ctx, eventlog.CreateOptions{ID: fmt.Sprint("s", i), CWD: "/project", Dialect: eventlog.Dialect(i % 2)})
		require.NoError(t, err)
	}
	for w := range 9 {
		s, r := stores[w%3], rand.New(rand.NewPCG(seed, uint64(w)))
		running.Go(func() {
			for range 60 {
				if err := turn(ctx, s, r); err != nil {
					t.Error(err)
				}
			}
		})
	}
	running.Wait()
	for _, s := range stores {
		s.HoldBranch("")
	}
	for _, s := range stores {
		problems, err := s.Verify(ctx)
		require.NoError(t, err)
		require.Empty(t, problems)
	}
}

// turn is one step of a process.
func turn(ctx context.Context, s *sqlitestore.Store, r *rand.Rand) error {
	id := fmt.Sprint("s", r.IntN(4))
	switch r.IntN(12) {
	case 0:
		s.HoldBranch([]string{"writers", "all", ""}[r.IntN(3)])
		return nil
	case 1:
		if r.IntN(4) > 0 {
			return s.Rebuild(ctx, []string{"catalog", "search"}[r.IntN(2)])
		}
		s.HoldBranch("")
		return ignoring(s.Rebuild(ctx, "branch"), eventlog.ErrStorage)
	case 2:
		if err := s.Delete(ctx, eventlog.Metadata{ID: id}); err != nil {
			return err
		}
		_, err := s.Create(ctx, eventlog.CreateOptions{ID: id, CWD: "/project", Dialect: eventlog.Dialect(r.IntN(2))})
		return ignoring(err, eventlog.ErrAlreadyExists)
	}
	tree, err := s.Open(ctx, eventlog.Metadata{ID: id})
	if err != nil {
		return ignoring(err, eventlog.ErrNotFound)
	}
	branch, err := tree.Branch(ctx, eventlog.None())
	if err != nil {
		return ignoring(err, eventlog.ErrNotFound)
	}
	if len(branch) > 0 && r.IntN(4) == 0 {
		_, err = tree.MoveTo(ctx, eventlog.At(branch[r.IntN(len(branch))].ID()), nil)
	} else {
		_, err = tree.AppendMessage(ctx, benchMessage(r.IntN(9)))
	}
	return ignoring(err, eventlog.ErrNotFound)
}

func ignoring(err error, one error) error {
	if errors.Is(err, one) {
		return nil
	}
	return err
}
