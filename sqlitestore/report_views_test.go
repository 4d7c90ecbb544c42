package sqlitestore_test

import (
	"context"
	"database/sql"
	"fmt"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/sessiontree/sessiontree/eventlog"
	"github.com/sessiontree/sessiontree/sqlitestore"
)

// treeAt makes a database with a session that branches, compacts and is labelled,
// and closes it.
func treeAt(t *testing.T) (path string, branch []eventlog.Entry) {
	path = filepath.Join(t.TempDir(), "sessions.db")
	s, err := sqlitestore.Open(ctx, path, sqlitestore.Options{})
	require.NoError(t, err)
	tree, err := s.Create(ctx, eventlog.CreateOptions{ID: "s", CWD: "/project"})
	require.NoError(t, err)
	var ids []string
	for i := range 40 {
		e, err := tree.AppendMessage(ctx, benchMessage(i))
		require.NoError(t, err)
		ids = append(ids, e.ID())
		if i%7 == 6 {
			_, err = tree.MoveTo(ctx, eventlog.At(ids[i/2]), &eventlog.Summary{Text: "back"})
			require.NoError(t, err)
		}
	}
	_, err = tree.SetLabel(ctx, ids[3], "here")
	require.NoError(t, err)
	branch, err = tree.Branch(ctx, eventlog.None())
	require.NoError(t, err)
	require.NoError(t, s.Close(ctx))
	return path, branch
}

func meddle(t *testing.T, path string, statements ...string) {
	db, err := sql.Open("sqlite", "file:"+path+"?_pragma=busy_timeout(10000)")
	require.NoError(t, err)
	for _, statement := range statements {
		_, err := db.Exec(statement)
		require.NoError(t, err, statement)
	}
	require.NoError(t, db.Close())
}

func TestReport_I1_ACheckpointOutOfStepIsMended(t *testing.T) {
	for name, statement := range map[string]string{
		"behind":                "UPDATE checkpoints SET position = position / 2",
		"at nothing":            "UPDATE checkpoints SET position = 0",
		"beyond the log":        "UPDATE checkpoints SET position = position + 1000",
		"gone":                  "DELETE FROM checkpoints",
		"of a version that was": "UPDATE checkpoints SET version = version - 1",
	} {
		t.Run(name, func(t *testing.T) {
			path, branch := treeAt(t)
			meddle(t, path, statement)
			s, err := sqlitestore.Open(ctx, path, sqlitestore.Options{})
			require.NoError(t, err)
			defer s.Close(ctx)
			problems, err := s.Verify(ctx)
			require.NoError(t, err)
			require.Empty(t, problems)
			tree, err := s.Open(ctx, eventlog.Metadata{ID: "s"})
			require.NoError(t, err)
			now, err := tree.Branch(ctx, eventlog.None())
			require.NoError(t, err)
			require.Equal(t, branch, now)
			_, err = tree.AppendMessage(ctx, benchMessage(99))
			require.NoError(t, err)
		})
	}
}

// Somebody who knows nothing of the views wrote into the log: what is read is right at
// once, and the views are when the store is opened again, or appends.
func TestReport_I1_EventsThatNobodyAppliedAreAnswered(t *testing.T) {
	for _, reopened := range []bool{true, false} {
		t.Run(fmt.Sprint("reopened=", reopened), func(t *testing.T) { eventsNobodyApplied(t, reopened) })
	}
}

func eventsNobodyApplied(t *testing.T, reopened bool) {
	path, branch := treeAt(t)
	s, err := sqlitestore.Open(ctx, path, sqlitestore.Options{})
	require.NoError(t, err)
	tree, err := s.Open(ctx, eventlog.Metadata{ID: "s"})
	require.NoError(t, err)
	stats, err := tree.Stats(ctx)
	require.NoError(t, err)
	meddle(t, path, `INSERT INTO events (session, n, id, parent, type, timestamp, hash, payload)
		SELECT session, n + 1, 'by-hand', id, 'custom', timestamp, x'00',
			json_object('type', 'custom', 'id', 'by-hand', 'parentId', id, 'timestamp', timestamp, 'customType', 'x')
		FROM events WHERE n > 0 ORDER BY n DESC LIMIT 1`)
	now, err := tree.Branch(ctx, eventlog.None())
	require.NoError(t, err)
	require.Equal(t, "by-hand", now[len(now)-1].ID())
	if reopened {
		require.NoError(t, s.Close(ctx))
		s, err = sqlitestore.Open(ctx, path, sqlitestore.Options{})
		require.NoError(t, err)
		problems, err := s.Verify(ctx)
		require.NoError(t, err)
		require.Empty(t, problems)
		tree, err = s.Open(ctx, eventlog.Metadata{ID: "s"})
		require.NoError(t, err)
	}
	defer s.Close(ctx)
	_, err = tree.AppendMessage(ctx, benchMessage(99))
	require.NoError(t, err)
	problems, err := s.Verify(ctx)
	require.NoError(t, err)
	require.Empty(t, problems)
	now, err = tree.Branch(ctx, eventlog.None())
	require.NoError(t, err)
	require.Greater(t, len(now), len(branch))
	after, err := tree.Stats(ctx)
	require.NoError(t, err)
	require.Equal(t, stats.Messages+1, after.Messages)
}

// Rows that were said to be of no use are not read.
func TestReport_I1_InvalidViewsAreNotRead(t *testing.T) {
	path, _ := treeAt(t)
	s, err := sqlitestore.Open(ctx, path, sqlitestore.Options{ReadOnly: true})
	require.NoError(t, err)
	defer s.Close(ctx)
	tree, err := s.Open(ctx, eventlog.Metadata{ID: "s"})
	require.NoError(t, err)
	stats, err := tree.Stats(ctx)
	require.NoError(t, err)
	meddle(t, path, "UPDATE heads SET messages = 999", "UPDATE checkpoints SET position = 9223372036854775807 WHERE projection = 'branch'")
	if s, err = sqlitestore.Open(ctx, path, sqlitestore.Options{ReadOnly: true}); err == nil {
		defer s.Close(ctx)
		tree, err = s.Open(ctx, eventlog.Metadata{ID: "s"})
	}
	require.NoError(t, err)
	again, err := tree.Stats(ctx)
	require.NoError(t, err)
	require.Equal(t, stats, again)
}

func TestReport_I2_I10_VerifyFindsStrayRowsAndRebuildMendsThem(t *testing.T) {
	for name, statement := range map[string]string{
		"segments gone":           "DELETE FROM segments WHERE parent IS NOT NULL",
		"a segment elsewhere":     "UPDATE segments SET start = start + 1 WHERE key = (SELECT max(key) FROM segments)",
		"a label that nobody set": "INSERT INTO labels VALUES (1, 'x', 'y')",
		"a leaf elsewhere":        "UPDATE heads SET leaf = (SELECT id FROM events WHERE n = 1), leaf_n = 1, segment = (SELECT min(key) FROM segments)",
		"totals off by one":       "UPDATE heads SET messages = messages + 1",
	} {
		t.Run(name, func(t *testing.T) {
			path, branch := treeAt(t)
			meddle(t, path, statement)
			s, err := sqlitestore.Open(ctx, path, sqlitestore.Options{})
			require.NoError(t, err)
			defer s.Close(ctx)
			problems, err := s.Verify(ctx)
			require.NoError(t, err)
			require.NotEmpty(t, problems)
			require.NoError(t, s.Rebuild(ctx))
			problems, err = s.Verify(ctx)
			require.NoError(t, err)
			require.Empty(t, problems)
			tree, err := s.Open(ctx, eventlog.Metadata{ID: "s"})
			require.NoError(t, err)
			now, err := tree.Branch(ctx, eventlog.None())
			require.NoError(t, err)
			require.Equal(t, branch, now)
		})
	}
}

// The log itself refuses to be changed, whoever tries.
func TestTheLogIsAppendOnly(t *testing.T) {
	path, _ := treeAt(t)
	db, err := sql.Open("sqlite", path+"?_pragma=busy_timeout(20000)")
	require.NoError(t, err)
	defer db.Close()
	for _, statement := range []string{
		"UPDATE events SET payload = 'x' WHERE n = 1",
		"DELETE FROM events WHERE n = 1",
		"DELETE FROM events",
	} {
		_, err := db.Exec(statement)
		require.ErrorContains(t, err, "events are append-only")
	}
}

func TestReport_F5_AWriteWaitsForALockUpToItsDeadline(t *testing.T) {
	path, _ := treeAt(t)
	s, err := sqlitestore.Open(ctx, path, sqlitestore.Options{})
	require.NoError(t, err)
	defer s.Close(ctx)
	tree, err := s.Open(ctx, eventlog.Metadata{ID: "s"})
	require.NoError(t, err)

	other, err := sql.Open("sqlite", "file:"+path+"?_txlock=immediate&_pragma=busy_timeout(20000)")
	require.NoError(t, err)
	defer other.Close()
	hold, err := other.Begin()
	require.NoError(t, err)

	short, cancel := context.WithTimeout(ctx, 300*time.Millisecond)
	defer cancel()
	_, err = tree.AppendMessage(short, benchMessage(0))
	require.Error(t, err)
	require.Contains(t, []eventlog.Code{eventlog.Busy, ""}, eventlog.CodeOf(err), "busy, or the deadline itself")

	release := time.AfterFunc(700*time.Millisecond, func() { hold.Rollback() })
	defer release.Stop()
	long, cancel := context.WithTimeout(ctx, 20*time.Second)
	defer cancel()
	_, err = tree.AppendMessage(long, benchMessage(1))
	require.NoError(t, err)
}
