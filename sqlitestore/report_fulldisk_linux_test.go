package sqlitestore_test

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/sessiontree/sessiontree/eventlog"
	"github.com/sessiontree/sessiontree/sqlitestore"
)

// smallDisk is a file system of 4 MB.
func smallDisk(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	if err := syscall.Mount("tmpfs", dir, "tmpfs", 0, "size=4m"); err != nil {
		t.Skip("a small file system cannot be mounted here: ", err)
	}
	t.Cleanup(func() {
		if err := syscall.Unmount(dir, syscall.MNT_DETACH); err != nil {
			t.Error(err)
		}
	})
	return dir
}

// TestReport_G2_AFullDiskIsAnErrorAndPasses fills a real disk, twice.
func TestReport_G2_AFullDiskIsAnErrorAndPasses(t *testing.T) {
	dir := smallDisk(t)
	ballast := filepath.Join(dir, "ballast")
	require.NoError(t, os.WriteFile(ballast, make([]byte, 1<<20), 0o600))
	path := filepath.Join(dir, "sessions.db")
	s, err := sqlitestore.Open(ctx, path, sqlitestore.Options{})
	require.NoError(t, err)
	tree, err := s.Create(ctx, eventlog.CreateOptions{ID: "s"})
	require.NoError(t, err)
	written := 0
	one := func(size int) error {
		d := eventlog.MessageDraft(eventlog.UserMessage(strings.Repeat("x", size), time.Now()))
		entries, err := tree.Append(ctx, d.WithID(fmt.Sprint("m", written)), eventlog.NameDraft(fmt.Sprint(written)))
		if err == nil {
			written += len(entries)
		}
		return err
	}
	fill := func() (failed error) {
		for size := 100_000; size > 10; size /= 2 { // down to the last page
			for failed = nil; failed == nil; failed = one(size) {
				require.Less(t, written, 10_000)
			}
		}
		return failed
	}
	check := func() {
		require.Len(t, chainOf(t, tree), written)
		problems, err := s.Verify(ctx)
		if err == nil { // Verify itself may need room
			require.Empty(t, problems)
		}
	}
	full := fill()
	require.ErrorIs(t, full, eventlog.ErrStorage)
	require.ErrorContains(t, full, "disk")
	check()
	for _, op := range []func() error{
		func() error {
			_, err := s.Create(ctx, eventlog.CreateOptions{ID: "big", CWD: strings.Repeat("/x", 50_000)})
			return err
		},
		func() error { _, err := s.Fork(ctx, eventlog.Metadata{ID: "s"}, eventlog.ForkOptions{}); return err },
	} {
		require.ErrorIs(t, op(), eventlog.ErrStorage)
		check()
	}
	// Closed and opened on the full disk, what was written is there.
	require.NoError(t, s.Close(ctx))
	if s, err = sqlitestore.Open(ctx, path, sqlitestore.Options{}); err != nil {
		require.ErrorIs(t, err, eventlog.ErrStorage)
		if s, err = sqlitestore.Open(ctx, path, sqlitestore.Options{ReadOnly: true}); errors.Is(err, eventlog.ErrStorage) {
			require.NoError(t, os.Truncate(ballast, 512<<10)) // not even a reader has room
			s, err = sqlitestore.Open(ctx, path, sqlitestore.Options{ReadOnly: true})
		}
		require.NoError(t, err)
	}
	tree, err = s.Open(ctx, eventlog.Metadata{ID: "s"})
	require.NoError(t, err)
	check()
	require.NoError(t, s.Close(ctx))

	require.NoError(t, os.Remove(ballast))
	s, err = sqlitestore.Open(ctx, path, sqlitestore.Options{})
	require.NoError(t, err)
	defer s.Close(ctx)
	tree, err = s.Open(ctx, eventlog.Metadata{ID: "s"})
	require.NoError(t, err)
	require.NoError(t, one(1000))
	check()
	require.ErrorIs(t, fill(), eventlog.ErrStorage)
	check()
}
