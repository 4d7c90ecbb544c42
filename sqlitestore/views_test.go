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
	"github.com/sessiontree/sessiontree/eventlog/js"
	"github.com/sessiontree/sessiontree/projections"
	"github.com/sessiontree/sessiontree/sqlitestore"
	"github.com/sessiontree/sessiontree/sqlitestore/sqlitestoretest"
)

func listAll(t *testing.T, s *sqlitestore.Store, o sqlitestore.ListOptions) (all []sqlitestore.SessionInfo) {
	t.Helper()
	for info, err := range s.Sessions(t.Context(), o) {
		require.NoError(t, err)
		all = append(all, info)
	}
	return all
}

func user(text string) eventlog.Draft {
	return eventlog.MessageDraft(eventlog.UserMessage(text, time.UnixMilli(0)))
}

// at makes every entry a second later than the one before.
func ticking() eventlog.Source {
	now := time.Date(2026, 3, 1, 10, 0, 0, 0, time.UTC)
	return eventlog.Source{Now: func() time.Time { now = now.Add(time.Second); return now }}
}

func TestTheListShowsWhatWasAppendedBeforeIt(t *testing.T) {
	s := sqlitestoretest.Open(t, sqlitestore.Options{Source: ticking(), Synchronous: sqlitestore.Normal})
	ctx := t.Context()
	quiet, err := s.Create(ctx, eventlog.CreateOptions{ID: "quiet", CWD: "/a"})
	require.NoError(t, err)
	busy, err := s.Create(ctx, eventlog.CreateOptions{ID: "busy", CWD: "/b"})
	require.NoError(t, err)
	first, err := busy.Append(ctx, user("What is a tree?"))
	require.NoError(t, err)
	_, err = busy.SetName(ctx, "Trees")
	require.NoError(t, err)
	_, err = quiet.Append(ctx, user("Hello"))
	require.NoError(t, err)

	fork, err := s.Fork(ctx, eventlog.Metadata{ID: "busy"}, eventlog.ForkOptions{CreateOptions: eventlog.CreateOptions{ID: "fork"}, EntryID: first[0].ID(), Position: eventlog.AtIt})
	require.NoError(t, err)
	require.NoError(t, fork.Close())

	type row struct {
		ID, CWD, Name, First, From, At string
		Entries, Messages              int
		Last                           string
	}
	show := func(infos []sqlitestore.SessionInfo) (rows []row) {
		for _, i := range infos {
			rows = append(rows, row{i.ID, i.CWD, i.Name, i.FirstMessage, i.ForkedFrom, i.ForkEntry, i.Entries, i.Messages, i.LastActivity.Format(time.TimeOnly)})
		}
		return rows
	}
	require.Equal(t, []row{
		{"fork", "/b", "", "What is a tree?", "busy", first[0].ID(), 1, 1, "10:00:06"},
		{"quiet", "/a", "", "Hello", "", "", 1, 1, "10:00:05"},
		{"busy", "/b", "Trees", "What is a tree?", "", "", 2, 1, "10:00:04"},
	}, show(listAll(t, s, sqlitestore.ListOptions{})))
	require.Equal(t, []row{
		{"quiet", "/a", "", "Hello", "", "", 1, 1, "10:00:05"},
	}, show(listAll(t, s, sqlitestore.ListOptions{CWD: "/a"})))

	require.NoError(t, s.Delete(ctx, eventlog.Metadata{ID: "busy"}))
	require.Equal(t, []row{
		{"fork", "/b", "", "What is a tree?", "", first[0].ID(), 1, 1, "10:00:06"},
		{"quiet", "/a", "", "Hello", "", "", 1, 1, "10:00:05"},
	}, show(listAll(t, s, sqlitestore.ListOptions{})))
}

func TestTheListGoesOnBehindACursor(t *testing.T) {
	s := sqlitestoretest.Open(t, sqlitestore.Options{Source: eventlog.Source{Now: func() time.Time { return time.UnixMilli(1e12) }}, Synchronous: sqlitestore.Normal})
	const n = 250 // all of one time: the key decides
	for i := range n {
		session, err := s.Create(t.Context(), eventlog.CreateOptions{ID: fmt.Sprint("s", i), CWD: "/a"})
		require.NoError(t, err)
		require.NoError(t, session.Close())
	}
	all := listAll(t, s, sqlitestore.ListOptions{})
	require.Len(t, all, n)
	for i, info := range all {
		require.Equal(t, fmt.Sprint("s", n-1-i), info.ID)
	}
	word, err := all[120].Cursor.MarshalText()
	require.NoError(t, err)
	var cursor sqlitestore.Cursor
	require.NoError(t, cursor.UnmarshalText(word))
	require.Equal(t, all[121:], listAll(t, s, sqlitestore.ListOptions{After: cursor}))
	require.Equal(t, all[121:], listAll(t, s, sqlitestore.ListOptions{After: cursor, CWD: "/a"}))
	for _, bad := range []string{"x", "1", "1-", "1-2-3", " 1-2", "1-0", "-"} {
		require.ErrorIs(t, cursor.UnmarshalText([]byte(bad)), eventlog.ErrInvalidArgument, bad)
	}
}

func TestAReadOnlyStoreListsWhatTheCatalogLacks(t *testing.T) {
	path := filepath.Join(t.TempDir(), "sessions.db")
	s, err := sqlitestore.Open(t.Context(), path, sqlitestore.Options{Source: ticking()})
	require.NoError(t, err)
	for _, id := range []string{"one", "two", "three"} {
		session, err := s.Create(t.Context(), eventlog.CreateOptions{ID: id, CWD: "/" + id})
		require.NoError(t, err)
		_, err = session.Append(t.Context(), user("of "+id))
		require.NoError(t, err)
	}
	one, err := s.Open(t.Context(), eventlog.Metadata{ID: "one"})
	require.NoError(t, err)
	_, err = one.SetName(t.Context(), "again")
	require.NoError(t, err)
	current := listAll(t, s, sqlitestore.ListOptions{})
	require.Equal(t, "again", current[0].Name)
	require.NoError(t, s.Close(t.Context()))

	lists := func(lag int64) {
		t.Helper()
		r, err := sqlitestore.Open(t.Context(), path, sqlitestore.Options{ReadOnly: true})
		require.NoError(t, err)
		h, err := r.Health(t.Context())
		require.NoError(t, err)
		require.Equal(t, lag, h.Views[1].Lag)
		require.Equal(t, current, listAll(t, r, sqlitestore.ListOptions{}))
		require.Equal(t, current[2:], listAll(t, r, sqlitestore.ListOptions{After: current[1].Cursor}))
		require.NoError(t, r.Close(t.Context()))
	}
	lists(0)
	// As it is when the process ends before the catalog has come so far …
	spoil(t, path, "UPDATE catalog SET name = '', entries = 1, seq = 2, active = 0 WHERE session = 1", "DELETE FROM catalog WHERE session > 2", "UPDATE checkpoints SET position = 4 WHERE projection = 'catalog'")
	lists(3)
	// … and when another version of this program wrote it.
	spoil(t, path, "UPDATE catalog SET name = 'otherwise'", "UPDATE checkpoints SET position = 7, version = 99 WHERE projection = 'catalog'")
	lists(0)
}

// spoil writes into a database that no store has open, or whose store is to find it
// spoilt.
func spoil(t *testing.T, path string, statements ...string) {
	t.Helper()
	db, err := sql.Open("sqlite", path+"?_pragma=busy_timeout(20000)")
	require.NoError(t, err)
	defer db.Close()
	for _, text := range statements {
		_, err := db.Exec(text)
		require.NoError(t, err, text)
	}
}

func TestCloseBringsTheViewsUp(t *testing.T) {
	path := filepath.Join(t.TempDir(), "sessions.db")
	s, err := sqlitestore.Open(t.Context(), path, sqlitestore.Options{})
	require.NoError(t, err)
	session, err := s.Create(t.Context(), eventlog.CreateOptions{})
	require.NoError(t, err)
	for range 20 {
		_, err = session.Append(t.Context(), user("text"))
		require.NoError(t, err)
	}
	require.NoError(t, s.Close(t.Context()))
	r, err := sqlitestore.Open(t.Context(), path, sqlitestore.Options{ReadOnly: true})
	require.NoError(t, err)
	h, err := r.Health(t.Context())
	require.NoError(t, err)
	for _, v := range h.Views {
		require.Equal(t, projections.Health{Name: v.Name, Version: 1, Position: h.LastEvent}, v)
	}
	require.NoError(t, r.Close(t.Context()))
}

// TestAViewThatFailsStopsAlone breaks the catalog's table under it.
func TestAViewThatFailsStopsAlone(t *testing.T) {
	path := filepath.Join(t.TempDir(), "sessions.db")
	s, err := sqlitestore.Open(t.Context(), path, sqlitestore.Options{})
	require.NoError(t, err)
	defer s.Close(context.WithoutCancel(t.Context()))
	spoil(t, path, "ALTER TABLE catalog RENAME COLUMN entries TO counted")
	session, err := s.Create(t.Context(), eventlog.CreateOptions{ID: "a"})
	require.NoError(t, err)
	added, err := session.Append(t.Context(), user("text"))
	require.NoError(t, err)
	branch, err := session.Branch(t.Context(), eventlog.At(added[0].ID()))
	require.NoError(t, err)
	require.Len(t, branch, 1)
	require.Eventually(t, func() bool {
		h, err := s.Health(t.Context())
		require.NoError(t, err)
		return h.Views[1].Err != nil && h.Views[0].Err == nil && h.Views[1].Lag == 2
	}, 10*time.Second, 10*time.Millisecond)

	spoil(t, path, "ALTER TABLE catalog RENAME COLUMN counted TO entries")
	require.NoError(t, s.Rebuild(t.Context(), "catalog"))
	h, err := s.Health(t.Context())
	require.NoError(t, err)
	require.Equal(t, projections.Health{Name: "catalog", Version: 1, Position: h.LastEvent}, h.Views[1])
	require.ErrorIs(t, s.Rebuild(t.Context(), "nonsense"), eventlog.ErrInvalidArgument)
}

func TestVerifyFindsAWrongCatalog(t *testing.T) {
	path := filepath.Join(t.TempDir(), "sessions.db")
	s, err := sqlitestore.Open(t.Context(), path, sqlitestore.Options{})
	require.NoError(t, err)
	defer s.Close(context.WithoutCancel(t.Context()))
	_, err = s.Create(t.Context(), eventlog.CreateOptions{ID: "a"})
	require.NoError(t, err)
	problems, err := s.Verify(t.Context())
	require.NoError(t, err)
	require.Empty(t, problems)
	spoil(t, path, "UPDATE catalog SET name = 'wrong'")
	problems, err = s.Verify(t.Context())
	require.NoError(t, err)
	require.Len(t, problems, 1)
	require.Equal(t, "catalog", problems[0].View)
	require.NoError(t, s.Rebuild(t.Context()))
	problems, err = s.Verify(t.Context())
	require.NoError(t, err)
	require.Empty(t, problems)
}

// A batch asks for all of its ids at once, in JSON: also for one that is no UTF-8.
func TestABatchFindsEveryIDThatIsTaken(t *testing.T) {
	s := sqlitestoretest.Open(t, sqlitestore.Options{Synchronous: sqlitestore.Normal})
	tree, err := s.Create(t.Context(), eventlog.CreateOptions{})
	require.NoError(t, err)
	for _, id := range []string{"plain", "\xed\xa0\xbd", "é\x00\"\\", "\xff"} {
		text := js.Fields(js.Member{Key: "type", Value: js.Text("custom")}, js.Member{Key: "id", Value: js.Text(id)},
			js.Member{Key: "parentId", Value: js.NullValue()}, js.Member{Key: "timestamp", Value: js.Text("t")}).JSON()
		e, err := eventlog.ParseEntry(text)
		require.NoError(t, err)
		require.NoError(t, tree.Storage().AppendRaw(t.Context(), e))
		drafts := make([]eventlog.Draft, 20)
		for i := range drafts {
			drafts[i] = user("text")
		}
		drafts[10] = drafts[10].WithID(e.ID())
		_, err = tree.Append(t.Context(), drafts...)
		require.ErrorIs(t, err, eventlog.ErrAlreadyExists, "%q", id)
	}
}

// A move that is no entry finds its target right behind the first append, and again
// when the views are made anew, whatever was known of the batch before.
func TestAMoveOfTheCodingAgentsIsKept(t *testing.T) {
	s := sqlitestoretest.Open(t, sqlitestore.Options{Synchronous: sqlitestore.Normal})
	tree, err := s.Create(t.Context(), eventlog.CreateOptions{Dialect: eventlog.CodingAgent})
	require.NoError(t, err)
	entries, err := tree.Append(t.Context(), user("one"), user("two"))
	require.NoError(t, err)
	_, err = tree.MoveTo(t.Context(), eventlog.At(entries[0].ID()), nil)
	require.NoError(t, err)
	moved := eventlog.Head{Leaf: eventlog.At(entries[0].ID()), N: 2}
	for range 2 {
		head, err := tree.Head(t.Context())
		require.NoError(t, err)
		require.Equal(t, moved, head)
		branch, err := tree.Branch(t.Context(), head.Leaf)
		require.NoError(t, err)
		require.Equal(t, entries[:1], branch)
		c, err := s.Check(t.Context())
		require.NoError(t, err)
		require.Empty(t, c.Problems)
		require.NoError(t, s.Rebuild(t.Context()))
	}
}
