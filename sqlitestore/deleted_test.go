package sqlitestore_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/sessiontree/sessiontree/eventlog"
	"github.com/sessiontree/sessiontree/sqlitestore"
	"github.com/sessiontree/sessiontree/sqlitestore/sqlitestoretest"
)

// A session that is deleted while it is open says so, in the middle of a
// sequence too: an answer that is cut short would pass for the whole.
func TestAnOpenSessionThatIsDeletedSaysSo(t *testing.T) {
	s := sqlitestoretest.Open(t, sqlitestore.Options{Synchronous: sqlitestore.Normal})
	tree, err := s.Create(ctx, eventlog.CreateOptions{ID: "gone", CWD: "/project"})
	require.NoError(t, err)
	drafts := make([]eventlog.Draft, 1500)
	for i := range drafts {
		drafts[i] = eventlog.MessageDraft(benchMessage(i))
	}
	_, err = tree.Append(ctx, drafts...)
	require.NoError(t, err)

	seen := 0
	for _, err := range tree.Entries(ctx, 0, eventlog.All) {
		if seen++; seen == 100 {
			require.NoError(t, s.Delete(ctx, eventlog.Metadata{ID: "gone"}))
		}
		if err != nil {
			require.ErrorIs(t, err, eventlog.ErrNotFound)
			require.ErrorContains(t, err, "Session gone was deleted")
			seen = -1
			break
		}
	}
	require.Equal(t, -1, seen, "the sequence ended without an error")
	for what, ask := range map[string]func() error{
		"entry":  func() error { _, err := tree.Entry(ctx, "x"); return err },
		"find":   func() error { _, err := tree.FindEntries(ctx, eventlog.TypeMessage); return err },
		"labels": func() error { _, err := tree.Labels(ctx); return err },
		"label":  func() error { _, err := tree.Label(ctx, "x"); return err },
		"name":   func() error { _, err := tree.Name(ctx); return err },
		"stats":  func() error { _, err := tree.Stats(ctx); return err },
		"head":   func() error { _, err := tree.Head(ctx); return err },
		"branch": func() error { _, err := tree.Branch(ctx, eventlog.None()); return err },
		"append": func() error { _, err := tree.AppendMessage(ctx, benchMessage(0)); return err },
	} {
		require.ErrorIs(t, ask(), eventlog.ErrNotFound, what)
	}
}

func TestReport_M7_ADeletedSessionStaysDeleted(t *testing.T) {
	s := sqlitestoretest.Open(t, sqlitestore.Options{Synchronous: sqlitestore.Normal})
	tree, err := s.Create(ctx, eventlog.CreateOptions{ID: "gone", CWD: "/project"})
	require.NoError(t, err)
	e, err := tree.AppendMessage(ctx, benchMessage(0))
	require.NoError(t, err)
	m, err := tree.Metadata(ctx)
	require.NoError(t, err)
	require.NoError(t, s.Delete(ctx, m))

	_, err = s.Add(ctx, m, []eventlog.Entry{e})
	require.ErrorIs(t, err, eventlog.ErrInvalidState)
	listed, err := s.List(ctx, "")
	require.NoError(t, err)
	require.Empty(t, listed)

	require.NoError(t, s.Restore(ctx, "gone"))
	back, err := s.Add(ctx, m, []eventlog.Entry{e})
	require.NoError(t, err)
	branch, err := back.Branch(ctx, eventlog.None())
	require.NoError(t, err)
	require.Equal(t, []eventlog.Entry{e}, branch)
}
