package sqlitestore_test

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/sessiontree/sessiontree/eventlog"
	"github.com/sessiontree/sessiontree/sqlitestore"
	"github.com/sessiontree/sessiontree/sqlitestore/sqlitestoretest"
)

// Entries of many megabytes, such as images in tool results, go in and come out
// as they are, on every way to read.
func TestLargeEntriesGoInAndComeOut(t *testing.T) {
	s := sqlitestoretest.Open(t, sqlitestore.Options{Synchronous: sqlitestore.Normal})
	tree, err := s.Create(ctx, eventlog.CreateOptions{CWD: "/project"})
	require.NoError(t, err)
	var want []eventlog.Entry
	for _, size := range []int{10 << 20, 3, 12 << 20, 5} {
		e, err := tree.AppendMessage(ctx, eventlog.UserMessage(strings.Repeat("x\"\n", size/3), time.UnixMilli(0)))
		require.NoError(t, err)
		want = append(want, e)
	}
	same := func(got []eventlog.Entry, err error) {
		t.Helper()
		require.NoError(t, err)
		require.Len(t, got, len(want))
		for i := range want {
			require.True(t, want[i] == got[i], "entry %d", i) // not printed where it differs
		}
	}
	same(tree.Branch(ctx, eventlog.None()))
	same(tree.Branch(ctx, eventlog.None()))
	same(streamed(tree, eventlog.None()))
	same(tree.FindEntries(ctx, eventlog.TypeMessage))
	c, err := tree.BuildContext(ctx, eventlog.None())
	require.NoError(t, err)
	require.True(t, c.Messages[2] == want[2].Message())
	_, _, _, size := s.CacheUse()
	require.Zero(t, size, "a branch of 40 MB is not kept")
}
