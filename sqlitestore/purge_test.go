package sqlitestore_test

import (
	"bytes"
	"database/sql"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/sessiontree/sessiontree/eventlog"
	"github.com/sessiontree/sessiontree/eventlog/js"
	"github.com/sessiontree/sessiontree/sqlitestore"
	"github.com/sessiontree/sessiontree/sqlitestore/sqlitestoretest"
)

// filesWith are the database's files that hold a text.
func filesWith(t *testing.T, path, text string) (names []string) {
	t.Helper()
	for _, suffix := range []string{"", "-wal", "-shm"} {
		data, err := os.ReadFile(path + suffix)
		if os.IsNotExist(err) {
			continue
		}
		require.NoError(t, err)
		if bytes.Contains(data, []byte(text)) {
			names = append(names, filepath.Base(path+suffix))
		}
	}
	return names
}

const secret = "sk-live-0123456789"

func TestReport_N2_APurgedTextIsNowhere(t *testing.T) {
	path := filepath.Join(t.TempDir(), "sessions.db")
	s := sqlitestoretest.OpenAt(t, path, sqlitestore.Options{})
	ctx := t.Context()
	extra, err := js.Parse(`{"key":"` + secret + `"}`)
	require.NoError(t, err)
	a, err := s.Create(ctx, eventlog.CreateOptions{ID: "a", Metadata: extra})
	require.NoError(t, err)
	first, err := a.Append(ctx, user("use "+secret+" please"))
	require.NoError(t, err)
	// Escaped otherwise than this program would, in a key, and in a log that was read
	// from elsewhere.
	strange, err := eventlog.ParseEntry(`{"type":"custom","id":"c","parentId":null,"timestamp":"t","data":{"\u0073k-live-0123456789":["\u0073k\u002dlive-0123456789!",{"n":1e21}]}}`)
	require.NoError(t, err)
	require.NoError(t, a.Storage().AppendRaw(ctx, strange))
	_, err = a.SetLabel(ctx, first[0].ID(), "key "+secret)
	require.NoError(t, err)
	_, err = a.SetName(ctx, secret)
	require.NoError(t, err)
	clean, err := a.Append(ctx, user("nothing here"))
	require.NoError(t, err)
	_, err = s.Fork(ctx, eventlog.Metadata{ID: "a"}, eventlog.ForkOptions{CreateOptions: eventlog.CreateOptions{ID: "b"}})
	require.NoError(t, err)
	other, err := s.Create(ctx, eventlog.CreateOptions{ID: "other"})
	require.NoError(t, err)
	_, err = other.Append(ctx, user("sk-live-other"))
	require.NoError(t, err)
	// A copy in free pages.
	gone, err := s.Create(ctx, eventlog.CreateOptions{ID: "gone"})
	require.NoError(t, err)
	_, err = gone.Append(ctx, user(strings.Repeat(secret, 1000)))
	require.NoError(t, err)
	require.NoError(t, s.Delete(ctx, eventlog.Metadata{ID: "gone"}))
	require.NotEmpty(t, listAll(t, s, sqlitestore.ListOptions{})) // the catalog has it
	require.NotEmpty(t, filesWith(t, path, secret))

	want := sqlitestore.Purged{Sessions: []string{"a", "b"}, Entries: 8, Others: 4}
	dry, err := s.PurgeText(ctx, secret, true)
	require.NoError(t, err)
	require.Equal(t, want, dry)
	found, err := a.Entry(ctx, first[0].ID())
	require.NoError(t, err)
	require.Equal(t, first[0], found)

	done, err := s.PurgeText(ctx, secret, false)
	require.NoError(t, err)
	require.Equal(t, want, done)
	require.Empty(t, filesWith(t, path, secret))
	require.Empty(t, filesWith(t, path, "k-live-0123456789"))
	for _, id := range []string{"a", "b"} {
		tree, err := s.Open(ctx, eventlog.Metadata{ID: id})
		require.NoError(t, err)
		e, err := tree.Entry(ctx, first[0].ID())
		require.NoError(t, err)
		require.Equal(t, strings.ReplaceAll(first[0].JSON(), secret, "[redacted]"), e.JSON())
		e, err = tree.Entry(ctx, "c")
		require.NoError(t, err)
		require.Equal(t, `{"type":"custom","id":"c","parentId":null,"timestamp":"t","data":{"[redacted]":["[redacted]!",{"n":1e21}]}}`, e.JSON())
		e, err = tree.Entry(ctx, clean[0].ID())
		require.NoError(t, err)
		require.Equal(t, clean[0], e)
		labels, err := tree.Labels(ctx)
		require.NoError(t, err)
		require.Equal(t, map[string]string{first[0].ID(): "key [redacted]"}, labels)
		name, err := tree.Name(ctx)
		require.NoError(t, err)
		require.Equal(t, "[redacted]", name)
		m, err := tree.Metadata(ctx)
		require.NoError(t, err)
		require.NotContains(t, m.Header, secret)
	}
	c, err := s.Check(ctx)
	require.NoError(t, err)
	require.Empty(t, c.Problems)
	require.Equal(t, 10, c.Redacted)
	e, err := other.Branch(ctx, eventlog.None())
	require.NoError(t, err)
	require.Contains(t, e[0].JSON(), "sk-live-other")

	again, err := s.PurgeText(ctx, secret, false)
	require.NoError(t, err)
	require.Equal(t, sqlitestore.Purged{}, again)
	_, err = s.PurgeText(ctx, "short", false)
	require.ErrorIs(t, err, eventlog.ErrInvalidArgument)
	_, err = s.PurgeText(ctx, clean[0].ID(), false)
	require.ErrorIs(t, err, eventlog.ErrInvalidArgument)
	require.ErrorContains(t, err, "part of an id, a type or a time, which other entries need, in session a, b")

	// The log is append-only again.
	require.ErrorContains(t, tryExec(path, "UPDATE events SET payload = '{}'"), "append-only")
}

func TestPurgeSessionLeavesNothing(t *testing.T) {
	path := filepath.Join(t.TempDir(), "sessions.db")
	s := sqlitestoretest.OpenAt(t, path, sqlitestore.Options{})
	ctx := t.Context()
	a, err := s.Create(ctx, eventlog.CreateOptions{ID: "a"})
	require.NoError(t, err)
	_, err = a.Append(ctx, user(secret), user("more"))
	require.NoError(t, err)
	done, err := s.PurgeSession(ctx, "a")
	require.NoError(t, err)
	require.Equal(t, sqlitestore.Purged{Sessions: []string{"a"}, Entries: 2}, done)
	require.Empty(t, filesWith(t, path, secret))

	b, err := s.Create(ctx, eventlog.CreateOptions{ID: "b"})
	require.NoError(t, err)
	_, err = b.Append(ctx, user(secret))
	require.NoError(t, err)
	_, err = s.Fork(ctx, eventlog.Metadata{ID: "b"}, eventlog.ForkOptions{CreateOptions: eventlog.CreateOptions{ID: "copy"}})
	require.NoError(t, err)
	done, err = s.PurgeSession(ctx, "b")
	require.NoError(t, err)
	require.Equal(t, []string{"session copy is a fork, and has copies of its entries"}, done.Incomplete)
	_, err = s.PurgeSession(ctx, "b")
	require.ErrorIs(t, err, eventlog.ErrNotFound)
}

// A reader that holds an old state keeps the write-ahead log: the purge says so.
func TestAPurgeThatAReaderBlocksSaysSo(t *testing.T) {
	path := filepath.Join(t.TempDir(), "sessions.db")
	s := sqlitestoretest.OpenAt(t, path, sqlitestore.Options{BusyTimeout: 300e6})
	ctx := t.Context()
	a, err := s.Create(ctx, eventlog.CreateOptions{ID: "a"})
	require.NoError(t, err)
	_, err = a.Append(ctx, user(secret))
	require.NoError(t, err)
	release := holdRead(t, path)
	done, err := s.PurgeText(ctx, secret, false)
	release()
	require.NoError(t, err)
	require.Len(t, done.Incomplete, 1)
	require.Contains(t, done.Incomplete[0], "unused pages and the write-ahead log: ")
}

// holdRead opens a read transaction as a program of somebody else would, and
// holds it.
func holdRead(t *testing.T, path string) (release func()) {
	t.Helper()
	db, err := sql.Open("sqlite", path)
	require.NoError(t, err)
	tx, err := db.Begin()
	require.NoError(t, err)
	var n int
	require.NoError(t, tx.QueryRow("SELECT count(*) FROM events").Scan(&n))
	return func() {
		require.NoError(t, tx.Rollback())
		require.NoError(t, db.Close())
	}
}

func tryExec(path, statement string) error {
	db, err := sql.Open("sqlite", path+"?_pragma=busy_timeout(20000)")
	if err != nil {
		return err
	}
	defer db.Close()
	_, err = db.Exec(statement)
	return err
}

// The fork of a session out of which a text was purged is as whole as that is.
func TestCheckOfAForkMadeBehindAPurge(t *testing.T) {
	for _, dialect := range []eventlog.Dialect{eventlog.Harness, eventlog.CodingAgent} {
		s := sqlitestoretest.Open(t, sqlitestore.Options{Synchronous: sqlitestore.Normal})
		a, err := s.Create(t.Context(), eventlog.CreateOptions{ID: "a", Dialect: dialect})
		require.NoError(t, err)
		_, err = a.Append(t.Context(), user("before"), user(secret), user(strings.Repeat(secret, 10_000)), user("behind"))
		require.NoError(t, err)
		_, err = s.PurgeText(t.Context(), secret, false)
		require.NoError(t, err)
		fork, err := s.Fork(t.Context(), eventlog.Metadata{ID: "a"}, eventlog.ForkOptions{CreateOptions: eventlog.CreateOptions{ID: "b"}})
		require.NoError(t, err)
		_, err = s.Fork(t.Context(), eventlog.Metadata{ID: "b"}, eventlog.ForkOptions{CreateOptions: eventlog.CreateOptions{ID: "c"}})
		require.NoError(t, err)
		_, err = fork.Append(t.Context(), user("of the fork"))
		require.NoError(t, err)
		require.NoError(t, s.Delete(t.Context(), eventlog.Metadata{ID: "a"}))
		c, err := s.Check(t.Context())
		require.NoError(t, err)
		require.Equal(t, sqlitestore.Checked{Sessions: 2, Events: 12, Redacted: 4}, c)
	}
}

// What forks of forks and imported copies have of a purged session is told too.
func TestPurgeSessionNamesAllThatHaveItsEntries(t *testing.T) {
	s := sqlitestoretest.Open(t, sqlitestore.Options{Synchronous: sqlitestore.Normal})
	fork := func(from, id string) {
		t.Helper()
		_, err := s.Fork(t.Context(), eventlog.Metadata{ID: from}, eventlog.ForkOptions{CreateOptions: eventlog.CreateOptions{ID: id}})
		require.NoError(t, err)
	}
	for _, id := range []string{"a", "stranger"} {
		tree, err := s.Create(t.Context(), eventlog.CreateOptions{ID: id})
		require.NoError(t, err)
		// The ids are the same in both, as in files whose ids count up.
		_, err = tree.Append(t.Context(), user("of "+id).WithID("1"), user(id+strings.Repeat(secret, 10_000)).WithID("2"))
		require.NoError(t, err)
	}
	fork("a", "gone")
	fork("gone", "grandchild")
	fork("a", "child")
	require.NoError(t, s.Delete(t.Context(), eventlog.Metadata{ID: "gone"}))
	copied := filepath.Join(t.TempDir(), "copy.jsonl")
	write(t, copied, strings.Replace(exportedWhole(t, s, "a"), `"id":"a"`, `"id":"copy"`, 1))
	require.NoError(t, importAll(t, s, sqlitestore.ImportOptions{}, copied)[0].Err)
	done, err := s.PurgeSession(t.Context(), "a")
	require.NoError(t, err)
	require.Equal(t, sqlitestore.Purged{Sessions: []string{"a"}, Entries: 2, Incomplete: []string{
		"session child is a fork, and has copies of its entries",
		"session grandchild has copies of its entries",
		"session copy has copies of its entries",
	}}, done)
}
