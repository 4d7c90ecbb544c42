package sqlitestore_test

import (
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/sessiontree/sessiontree/eventlog"
	"github.com/sessiontree/sessiontree/projections"
	"github.com/sessiontree/sessiontree/query"
	"github.com/sessiontree/sessiontree/sqlitestore"
	"github.com/sessiontree/sessiontree/sqlitestore/sqlitestoretest"
)

// TestReport_H11_ViewsOfANewVersionAreMadeInTheBackground opens a database whose
// views are an older version's, and keeps the work from getting done: opening does
// not wait for it, every answer is there, and appends go on. Then it is done, and goes
// on where it was when the store was closed.
func TestReport_H11_ViewsOfANewVersionAreMadeInTheBackground(t *testing.T) {
	t.Cleanup(func() { sqlitestore.SetOpenPatience(100_000) })
	sqlitestore.SetOpenPatience(10)
	path := filepath.Join(t.TempDir(), "sessions.db")
	s, err := sqlitestore.Open(ctx, path, sqlitestore.Options{Synchronous: sqlitestore.Normal})
	require.NoError(t, err)
	tree, err := s.Create(ctx, eventlog.CreateOptions{ID: "s", CWD: "/project"})
	require.NoError(t, err)
	drafts := []eventlog.Draft{}
	for i := range 6000 {
		drafts = append(drafts, user(fmt.Sprintf("question %d", i)).WithID(fmt.Sprint("e", i)))
	}
	_, err = tree.Append(ctx, drafts...)
	require.NoError(t, err)
	require.NoError(t, s.Close(ctx))
	// As an older version left it; and the third slice of the branch set fails.
	meddle(t, path, "UPDATE checkpoints SET version = version - 1",
		"CREATE TRIGGER poison BEFORE INSERT ON checkpoints WHEN new.projection = 'branch' AND new.position > 4000 BEGIN SELECT raise(ABORT, 'not yet'); END",
		"CREATE TRIGGER poison2 BEFORE UPDATE OF position ON checkpoints WHEN new.projection = 'branch' AND new.position > 4000 BEGIN SELECT raise(ABORT, 'not yet'); END")

	s, err = sqlitestore.Open(ctx, path, sqlitestore.Options{Synchronous: sqlitestore.Normal})
	require.NoError(t, err)
	tree, err = s.Open(ctx, eventlog.Metadata{ID: "s"})
	require.NoError(t, err)
	for i := range 3 {
		branch, err := tree.Branch(ctx, eventlog.None())
		require.NoError(t, err)
		require.Len(t, branch, 6000+i)
		_, err = tree.Append(ctx, user("and on").WithID(fmt.Sprint("more", i)))
		require.NoError(t, err)
		seen, err := tree.BuildContext(ctx, eventlog.At(fmt.Sprint("more", i)))
		require.NoError(t, err)
		require.Len(t, seen.Messages, 6001+i)
	}
	require.Len(t, listAll(t, s, sqlitestore.ListOptions{}), 1)
	require.Eventually(t, func() bool {
		h, err := s.Health(ctx)
		require.NoError(t, err)
		return h.Views[0].Position >= 2000 && h.Views[0].Err != nil
	}, time.Minute, time.Millisecond)
	require.NoError(t, s.Close(ctx))

	// What is done stays done.
	readOnly, err := sqlitestore.Open(ctx, path, sqlitestore.Options{ReadOnly: true})
	require.NoError(t, err)
	h, err := readOnly.Health(ctx)
	require.NoError(t, err)
	require.GreaterOrEqual(t, h.Views[0].Position, int64(2000))
	require.Positive(t, h.Views[0].Lag)
	require.NoError(t, readOnly.Close(ctx))
	meddle(t, path, "DROP TRIGGER poison", "DROP TRIGGER poison2",
		"CREATE TRIGGER anew BEFORE DELETE ON segments BEGIN SELECT raise(ABORT, 'it begins anew'); END")

	s = sqlitestoretest.OpenAt(t, path, sqlitestore.Options{Synchronous: sqlitestore.Normal})
	report, err := s.Usage(ctx, query.UsageOptions{Zone: time.UTC}) // made of the branch set
	require.NoError(t, err)
	require.Empty(t, report.Rows)
	h, err = s.Health(ctx)
	require.NoError(t, err)
	require.Zero(t, h.Views[0].Lag)
	require.NoError(t, h.Views[0].Err)
	meddle(t, path, "DROP TRIGGER anew")
}

// TestReport_F14_AnAppendDoesNotWaitForTheIndex keeps the search index from being
// written: appends do not notice, Health does, and what was appended is found once
// the index can be written again.
func TestReport_F14_AnAppendDoesNotWaitForTheIndex(t *testing.T) {
	f := &faults{err: sqliteErrors(t)["the disk is on fire"], sticky: true, only: func(query string) bool { return strings.Contains(query, "INTO search") }}
	s, err := sqlitestore.OpenWith(ctx, filepath.Join(t.TempDir(), "sessions.db"), sqlitestore.Options{Synchronous: sqlitestore.Normal}, f.connector)
	require.NoError(t, err)
	defer s.Close(ctx)
	tree, err := s.Create(ctx, eventlog.CreateOptions{ID: "s"})
	require.NoError(t, err)
	f.start(1)
	for i := range 50 {
		_, err := tree.Append(ctx, user(fmt.Sprint("needle ", i)))
		require.NoError(t, err)
	}
	_, err = s.Search(ctx, query.SearchOptions{Text: "needle"})
	require.ErrorIs(t, err, eventlog.ErrStorage)
	_, err = s.Usage(ctx, query.UsageOptions{}) // the other views come up, each when it is asked or has time
	require.NoError(t, err)
	require.Eventually(t, func() bool {
		h, err := s.Health(ctx)
		return err == nil && !slices.ContainsFunc(h.Views, func(v projections.Health) bool {
			broken := v.Name == "search"
			return broken != (v.Err != nil) || broken != (v.Lag >= 50)
		})
	}, 10*time.Second, 10*time.Millisecond)
	f.start(0)
	hits, err := s.Search(ctx, query.SearchOptions{Text: "needle", Limit: 100})
	require.NoError(t, err)
	require.Len(t, hits, 50)
	problems, err := s.Verify(ctx)
	require.NoError(t, err)
	require.Empty(t, problems)
}
