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
	"github.com/sessiontree/sessiontree/eventlog/sessionfile"
	"github.com/sessiontree/sessiontree/sqlitestore"
	"github.com/sessiontree/sessiontree/sqlitestore/sqlitestoretest"
)

// Two followers of one folder, by events and by looking, take each entry once.
func TestFollow(t *testing.T) {
	db := filepath.Join(t.TempDir(), "sessions.db")
	s := sqlitestoretest.OpenAt(t, db, sqlitestore.Options{Synchronous: sqlitestore.Normal})
	other, err := sqlitestore.Open(ctx, db, sqlitestore.Options{Synchronous: sqlitestore.Normal})
	require.NoError(t, err)
	dir := filepath.Join(t.TempDir(), "sessions")
	first := filepath.Join(dir, "first.jsonl")
	write(t, first, header("first", "")+line("e0", "", "0"))

	following, stop := context.WithCancel(ctx)
	var running sync.WaitGroup
	entries := make(chan int, 10_000)
	for _, f := range []struct {
		store *sqlitestore.Store
		watch sessionfile.WatchOptions
	}{
		{s, sessionfile.WatchOptions{}},
		{other, sessionfile.WatchOptions{NoEvents: true, Poll: 20 * time.Millisecond}},
	} {
		running.Go(func() {
			err := f.store.Follow(following, []string{dir}, sqlitestore.ImportOptions{}, f.watch, func(r sqlitestore.FileResult) {
				assert.NoError(t, r.Err)
				entries <- r.Entries
			})
			assert.ErrorIs(t, err, context.Canceled)
		})
	}
	append1 := func(path, text string) {
		f, err := os.OpenFile(path, os.O_APPEND|os.O_WRONLY|os.O_CREATE, 0o600)
		require.NoError(t, err)
		_, err = f.WriteString(text)
		require.NoError(t, err)
		require.NoError(t, f.Close())
	}
	const n = 40
	second := filepath.Join(dir, "new", "folder", "second.jsonl")
	write(t, second, header("second", ""))
	for i := 1; i < n; i++ {
		text := line(fmt.Sprint("e", i), fmt.Sprint("e", i-1), fmt.Sprint(i))
		append1(first, text[:20])
		append1(second, line(fmt.Sprint("s", i), "", fmt.Sprint(i)))
		time.Sleep(time.Duration(i%4) * 5 * time.Millisecond)
		append1(first, text[20:])
	}
	count := func(id string) int {
		session, err := s.Open(ctx, eventlog.Metadata{ID: id})
		if err != nil {
			return 0
		}
		head, err := session.Head(ctx)
		require.NoError(t, err)
		return head.N
	}
	require.Eventually(t, func() bool { return count("first") == n && count("second") == n-1 }, time.Minute, 10*time.Millisecond)
	stop()
	running.Wait()
	close(entries)
	sum := 0
	for e := range entries {
		sum += e
	}
	require.Equal(t, 2*n-1, sum, "each entry was taken by one of them")
	require.NoError(t, other.Close(ctx))
	for id, path := range map[string]string{"first": first, "second": second} {
		b, err := os.ReadFile(path)
		require.NoError(t, err)
		require.Equal(t, string(b), exported(t, s, id))
	}
}

// A followed file that is rewritten in its place is not taken for one that grew.
func TestFollowNoticesARewrite(t *testing.T) {
	s := sqlitestoretest.Open(t, sqlitestore.Options{Synchronous: sqlitestore.Normal})
	dir := t.TempDir()
	path := filepath.Join(dir, "x.jsonl")
	write(t, path, header("x", "")+line("a", "", "1"))
	following, stop := context.WithCancel(ctx)
	defer stop()
	step := 0
	err := s.Follow(following, []string{dir}, sqlitestore.ImportOptions{}, sessionfile.WatchOptions{NoEvents: true, Poll: 20 * time.Millisecond}, func(r sqlitestore.FileResult) {
		switch step++; step {
		case 1:
			write(t, path, header("x", "")+line("a", "", "1")+line("b", "a", "2")) // the same inode
		case 2:
			assert.Equal(t, sqlitestore.Extended, r.Outcome)
			write(t, path, header("x", "")+line("A", "", "1")+line("b", "A", "2")+line("c", "b", "3"))
		default:
			assert.ErrorIs(t, r.Err, eventlog.ErrConflict)
			stop()
		}
	})
	require.ErrorIs(t, err, context.Canceled)
	require.Equal(t, 3, step)
}
