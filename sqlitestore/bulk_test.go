package sqlitestore

import (
	"context"
	"errors"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/sessiontree/sessiontree/eventlog"
	"github.com/sessiontree/sessiontree/projections"
)

func autoCheckpoint(t *testing.T, s *Store) (pages int) {
	t.Helper()
	require.NoError(t, s.writer.exclusively(t.Context(), func(ctx context.Context, tx *projections.Tx) error {
		_, err := tx.Row(ctx, "PRAGMA wal_autocheckpoint", nil, &pages)
		return err
	}))
	return pages
}

// In bulk no commit copies the write-ahead log into the database: that comes behind
// it, whether it failed or not, and then commits do it again.
func TestInBulkTheLogIsCopiedAfterwards(t *testing.T) {
	path := newPath(t)
	s, err := Open(t.Context(), path, Options{Synchronous: Normal})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, s.Close(context.WithoutCancel(t.Context()))) })
	session, err := s.Create(t.Context(), eventlog.CreateOptions{ID: "x"})
	require.NoError(t, err)
	before := sizeOfFile(t, path)
	failed := errors.New("failed")
	for _, want := range []error{nil, failed} {
		err := s.inBulk(t.Context(), func() error {
			require.Zero(t, autoCheckpoint(t, s))
			_, err := session.AppendMessage(t.Context(), eventlog.UserMessage(strings.Repeat("much ", 2<<20), time.Now()))
			require.NoError(t, err)
			require.Equal(t, before, sizeOfFile(t, path), "nothing was copied")
			return want
		})
		require.Equal(t, want, err)
		require.Equal(t, checkpointPages, autoCheckpoint(t, s))
		after := sizeOfFile(t, path)
		require.Greater(t, after, before+8<<20, "all was copied")
		before = after
	}
}

func sizeOfFile(t *testing.T, path string) int64 {
	t.Helper()
	info, err := os.Stat(path)
	require.NoError(t, err)
	return info.Size()
}

// A process that writes much lets others write too, though they cannot queue with it.
func TestAnotherProcessWritesWhileManyFilesComeIn(t *testing.T) {
	path := newPath(t)
	s, err := Open(t.Context(), path, Options{Synchronous: Normal})
	require.NoError(t, err)
	other, err := Open(t.Context(), path, Options{Synchronous: Normal})
	require.NoError(t, err)
	session, err := other.Create(t.Context(), eventlog.CreateOptions{ID: "other"})
	require.NoError(t, err)
	ended := make(chan struct{})
	busy := make(chan struct{})
	go func() {
		defer close(busy)
		for {
			select {
			case <-ended:
				return
			default: // one transaction behind the other
				s.update(context.Background(), func(ctx context.Context, tx *projections.Tx) error {
					time.Sleep(20 * time.Millisecond)
					return nil
				})
			}
		}
	}()
	for range 10 {
		_, err := session.AppendMessage(t.Context(), eventlog.UserMessage("in between", time.Now()))
		require.NoError(t, err)
	}
	close(ended)
	<-busy
	require.NoError(t, other.Close(t.Context()))
	require.NoError(t, s.Close(t.Context()))
}
