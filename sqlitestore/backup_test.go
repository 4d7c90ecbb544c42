package sqlitestore_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/sessiontree/sessiontree/eventlog"
	"github.com/sessiontree/sessiontree/sqlitestore"
	"github.com/sessiontree/sessiontree/sqlitestore/sqlitestoretest"
)

// A backup made while others write is a store of its own: whole, at one moment.
func TestReport_G6_N1_ABackupIsWhole(t *testing.T) {
	s := sqlitestoretest.Open(t, sqlitestore.Options{Synchronous: sqlitestore.Normal})
	tree, err := s.Create(t.Context(), eventlog.CreateOptions{ID: "a"})
	require.NoError(t, err)
	for i := range 50 {
		_, err := tree.AppendMessage(t.Context(), benchMessage(i)) // in the WAL alone
		require.NoError(t, err)
	}
	stop, cancel := context.WithCancel(t.Context())
	var writing sync.WaitGroup
	writing.Go(func() {
		for stop.Err() == nil {
			if _, err := tree.AppendMessage(t.Context(), benchMessage(1)); err != nil {
				t.Error(err)
			}
		}
	})
	dir := t.TempDir()
	path := filepath.Join(dir, "backup.db")
	info, err := s.Backup(t.Context(), path)
	cancel()
	writing.Wait()
	require.NoError(t, err)
	file, err := os.Stat(path)
	require.NoError(t, err)
	require.Equal(t, os.FileMode(0o600), file.Mode().Perm())
	require.Equal(t, file.Size(), info.Bytes)
	require.GreaterOrEqual(t, info.LastEvent, int64(51))
	names, err := os.ReadDir(dir)
	require.NoError(t, err)
	require.Len(t, names, 1, "nothing is left beside it")

	restored := sqlitestoretest.OpenAt(t, path, sqlitestore.Options{})
	health, err := restored.Health(t.Context())
	require.NoError(t, err)
	require.Equal(t, info.LastEvent, health.LastEvent)
	of := func(s *sqlitestore.Store) (all []string) {
		tree, err := s.Open(t.Context(), eventlog.Metadata{ID: "a"})
		require.NoError(t, err)
		for e, err := range tree.Entries(t.Context(), 0, int(info.LastEvent)-1) {
			require.NoError(t, err)
			all = append(all, e.JSON())
		}
		return all
	}
	require.Equal(t, of(s), of(restored))

	before, err := os.ReadFile(path)
	require.NoError(t, err)
	_, err = s.Backup(t.Context(), path)
	require.ErrorIs(t, err, eventlog.ErrAlreadyExists)
	after, err := os.ReadFile(path)
	require.NoError(t, err)
	require.Equal(t, before, after)
	_, err = s.Backup(t.Context(), filepath.Join(dir, "nowhere", "b.db"))
	require.ErrorIs(t, err, eventlog.ErrStorage)
}

func TestCompactGivesSpaceBack(t *testing.T) {
	path := filepath.Join(t.TempDir(), "sessions.db")
	s := sqlitestoretest.OpenAt(t, path, sqlitestore.Options{})
	keep, err := s.Create(t.Context(), eventlog.CreateOptions{ID: "keep"})
	require.NoError(t, err)
	_, err = keep.AppendMessage(t.Context(), benchMessage(0))
	require.NoError(t, err)
	big, err := s.Create(t.Context(), eventlog.CreateOptions{ID: "big"})
	require.NoError(t, err)
	drafts := make([]eventlog.Draft, 4000)
	for i := range drafts {
		drafts[i] = eventlog.MessageDraft(benchMessage(i))
	}
	_, err = big.Append(t.Context(), drafts...)
	require.NoError(t, err)
	require.NoError(t, s.Delete(t.Context(), eventlog.Metadata{ID: "big"}))
	c, err := s.Compact(t.Context())
	require.NoError(t, err)
	require.Greater(t, c.Before, int64(2<<20))
	require.Less(t, c.After, int64(1<<20))
	require.LessOrEqual(t, bytesOf(t, path), c.After) // a view may have written since

	// What is written during it waits, and is there.
	var all sync.WaitGroup
	for range 4 {
		all.Go(func() {
			for i := range 20 {
				if _, err := keep.AppendMessage(t.Context(), benchMessage(i)); err != nil {
					t.Error(err)
				}
			}
		})
	}
	for range 3 {
		_, err = s.Compact(t.Context())
		require.NoError(t, err)
	}
	all.Wait()
	require.Len(t, chainOf(t, keep), 81)

	r, err := sqlitestore.Open(t.Context(), path, sqlitestore.Options{ReadOnly: true})
	require.NoError(t, err)
	_, err = r.Compact(t.Context())
	require.ErrorIs(t, err, eventlog.ErrStorage)
	require.NoError(t, r.Close(t.Context()))
}

// What waits for a reader before it empties the write-ahead log keeps nobody from
// writing, and ends with its context.
func TestCompactWaitsForAReaderNoLongerThanItsContext(t *testing.T) {
	s := sqlitestoretest.OpenAt(t, filepath.Join(t.TempDir(), "sessions.db"), sqlitestore.Options{Synchronous: sqlitestore.Normal, BusyTimeout: time.Hour})
	tree, err := s.Create(t.Context(), eventlog.CreateOptions{ID: "s"})
	require.NoError(t, err)
	appended := 0
	write := func() {
		t.Helper()
		appended++
		require.NoError(t, appendTo(tree, fmt.Sprint(appended)))
	}
	while := func(f func()) {
		t.Helper()
		require.NoError(t, s.SQL(t.Context(), "SELECT id FROM sessions", func([]string) error { return nil }, func([]any) error {
			write() // behind what the reader sees
			f()
			return nil
		}))
	}
	while(func() {
		ctx, cancel := context.WithTimeout(t.Context(), 200*time.Millisecond)
		defer cancel()
		_, err := s.Compact(ctx)
		require.ErrorIs(t, err, eventlog.ErrBusy)
		require.ErrorIs(t, err, context.DeadlineExceeded)
		require.ErrorContains(t, err, "is compacted, but a reader keeps its write-ahead log")
	})
	while(func() {
		ctx, cancel := context.WithCancel(t.Context())
		var compacting sync.WaitGroup
		compacting.Go(func() {
			_, err := s.Compact(ctx)
			assert.ErrorIs(t, err, context.Canceled)
		})
		require.Eventually(t, s.Writing, time.Minute, time.Millisecond)
		for range 3 {
			write()
		}
		cancel()
		compacting.Wait()
	})
	c, err := s.Compact(t.Context())
	require.NoError(t, err)
	require.Positive(t, c.After)
	require.Len(t, chainOf(t, tree), 5)
}
