package sqlitestore_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/sessiontree/sessiontree/eventlog"
	"github.com/sessiontree/sessiontree/eventlog/js"
	"github.com/sessiontree/sessiontree/query"
	"github.com/sessiontree/sessiontree/sqlitestore"
)

// asked is the answer to a statement, the names of the columns first.
func asked(ctx context.Context, s *sqlitestore.Store, text string) (all [][]any, err error) {
	err = s.SQL(ctx, text, func(names []string) error {
		row := []any{}
		for _, n := range names {
			row = append(row, n)
		}
		all = append(all, row)
		return nil
	}, func(row []any) error {
		all = append(all, slices.Clone(row))
		return nil
	})
	return all, err
}

// storyAt makes a database with all that the views are about, and closes it.
func storyAt(t *testing.T) (path string) {
	path = filepath.Join(t.TempDir(), "sessions.db")
	now := time.Date(2026, 3, 2, 9, 0, 0, 0, time.UTC)
	s, err := sqlitestore.Open(t.Context(), path, sqlitestore.Options{Source: eventlog.Source{Now: func() time.Time { now = now.Add(time.Second); return now }}})
	require.NoError(t, err)
	session, err := s.Create(t.Context(), eventlog.CreateOptions{ID: "story", CWD: "/home/ada/shop"})
	require.NoError(t, err)
	_, err = session.SetName(t.Context(), "Faster CSV import")
	require.NoError(t, err)
	for _, body := range []string{said("user", `,"content":"Make it faster."`), calls("c1", "edit"), result("c1", true, `[{"type":"text","text":"no"}]`),
		said("assistant", `,"provider":"acme","model":"coder","stopReason":"error","content":[{"type":"text","text":"A"},{"type":"text","text":"or B"}],"usage":{"input":70,"cost":{"total":0.25}}`)} {
		m, err := eventlog.ParseEntry(`{"id":"x","parentId":null,"timestamp":"t",` + body + `}`)
		require.NoError(t, err)
		_, err = session.Append(t.Context(), eventlog.MessageDraft(m.Message()))
		require.NoError(t, err)
	}
	_, err = session.Append(t.Context(), user("plan A").WithID("q2"), billed("a2", 20, now), billed("a3", 30, now))
	require.NoError(t, err)
	_, err = session.SetLabel(t.Context(), "a3", "dead end")
	require.NoError(t, err)
	_, err = session.MoveTo(t.Context(), eventlog.At("q2"), &eventlog.Summary{Text: "A was slow", Usage: usageValue(eventlog.Usage{Input: 3, Cost: 0.5})})
	require.NoError(t, err)
	_, err = session.Append(t.Context(), billed("a4", 40, now), eventlog.CompactionDraft(eventlog.Compaction{Summary: "short", TokensBefore: 5000, FirstKeptEntryID: js.Text("q2"), Usage: usageValue(eventlog.Usage{Input: 9})}), billed("a5", 50, now))
	require.NoError(t, err)
	fork, err := s.Fork(t.Context(), eventlog.Metadata{ID: "story"}, eventlog.ForkOptions{CreateOptions: eventlog.CreateOptions{ID: "fork", CWD: "/home/ada/fork"}, EntryID: "q2", Position: eventlog.AtIt})
	require.NoError(t, err)
	_, err = fork.Append(t.Context(), eventlog.CustomMessageDraft("note", js.Text("a note"), true, js.Value{}))
	require.NoError(t, err)
	require.NoError(t, s.Close(t.Context()))
	return path
}

func openReadOnly(t *testing.T, path string) *sqlitestore.Store {
	t.Helper()
	s, err := sqlitestore.Open(t.Context(), path, sqlitestore.Options{ReadOnly: true})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, s.Close(context.WithoutCancel(t.Context()))) })
	return s
}

func TestSQLAnswers(t *testing.T) {
	s := openReadOnly(t, storyAt(t))
	for text, want := range map[string][][]any{
		"SELECT 1, 1, 'a;b' AS \"x;\", NULL, x'00ff', 2.5 ; -- that is all": {{"1", "1", "x;", "NULL", "x'00ff'", "2.5"}, {int64(1), int64(1), "a;b", nil, []byte{0, 255}, 2.5}},
		"/* ; */ VALUES (1), (2)":                                                {{"column1"}, {int64(1)}, {int64(2)}},
		"select id from sessions where id = 'nobody'":                            {{"id"}},
		"WITH x (a) AS (SELECT 3) SELECT a FROM x;;":                             {{"a"}, {int64(3)}},
		"PRAGMA page_size":                                                       {{"page_size"}, {int64(4096)}},
		"SELECT name FROM pragma_table_info('labels')":                           {{"name"}, {"session"}, {"target"}, {"label"}},
		"SELECT session, entries FROM v_sessions WHERE entries > 10":             {{"session", "entries"}, {"story", int64(14)}},
		"SELECT count(*) AS hits FROM search WHERE search MATCH '\"slow\"'":      {{"hits"}, {int64(1)}},
		"SELECT count(*) FROM v_live WHERE session = 'story' -- no line end ; x": {{"count(*)"}, {int64(10)}},
	} {
		got, err := asked(t.Context(), s, text)
		require.NoError(t, err, text)
		require.Equal(t, want, got, text)
	}
	full := errors.New("enough")
	rows := 0
	err := s.SQL(t.Context(), "SELECT n FROM events", func([]string) error { return nil }, func([]any) error {
		if rows++; rows == 3 {
			return full
		}
		return nil
	})
	require.ErrorIs(t, err, full)
	require.Equal(t, 3, rows)
}

// hostileSQL is what must not be done, with what the error says.
var hostileSQL = map[string]string{
	"":                                "there is no statement",
	" -- nothing":                     "there is no statement",
	"SELECT 1; SELECT 2":              "one statement at a time",
	"SELECT ';' ;DELETE FROM events":  "one statement at a time",
	"SELECT 1\x00; DROP TABLE events": "NUL",
	"DELETE FROM events":              "not DELETE",
	"insert into labels values (1, 'x', 'y')":                                 "not insert",
	"WITH x AS (SELECT 1) DELETE FROM usage":                                  "not DELETE",
	"WITH x AS (SELECT 1) INSERT INTO labels SELECT 1, 2, 3":                  "not INSERT",
	"EXPLAIN DELETE FROM usage":                                               "not DELETE",
	"WITH x AS (SELECT 1) UPDATE usage SET cost = 0":                          "not UPDATE",
	"WITH x AS (SELECT 1) REPLACE INTO search (search) VALUES ('delete-all')": "not INSERT",
	"CREATE TEMP TABLE x (a)":                                                 "not CREATE",
	"EXPLAIN CREATE TABLE x (a)":                                              "not",
	"DROP TABLE events":                                                       "not DROP",
	"ALTER TABLE events RENAME TO x":                                          "not ALTER",
	"ATTACH 'other.db' AS other":                                              "not ATTACH",
	"EXPLAIN ATTACH 'other.db' AS other":                                      "not ATTACH",
	"DETACH main":                                                             "not DETACH",
	"VACUUM":                                                                  "not VACUUM",
	"VACUUM INTO 'other.db'":                                                  "not VACUUM",
	"EXPLAIN VACUUM INTO 'other.db'":                                          "",
	"BEGIN":                                                                   "not BEGIN",
	"COMMIT":                                                                  "not COMMIT",
	"EXPLAIN COMMIT":                                                          "not BEGIN, COMMIT or ROLLBACK",
	"SAVEPOINT x":                                                             "not SAVEPOINT",
	"REINDEX":                                                                 "not REINDEX",
	"ANALYZE":                                                                 "not ANALYZE",
	"PRAGMA query_only = 0":                                                   "not PRAGMA query_only",
	"PRAGMA query_only(0)":                                                    "not PRAGMA query_only",
	"PRAGMA writable_schema = 1":                                              "not PRAGMA writable_schema",
	"PRAGMA main.journal_mode = delete":                                       "not PRAGMA journal_mode",
	"PRAGMA user_version = 7":                                                 "not PRAGMA user_version",
	"PRAGMA wal_checkpoint":                                                   "not PRAGMA wal_checkpoint",
	"PRAGMA optimize":                                                         "not PRAGMA optimize",
	"PRAGMA temp_store_directory = '/'":                                       "not PRAGMA temp_store_directory",
	"PRAGMA shrink_memory":                                                    "not PRAGMA shrink_memory",
	"SELECT load_extension('x')":                                              "load_extension",
	"SELECT * FROM (SELECT load_extension('x', 'y'))":                         "load_extension",
	"SELECT fts3_tokenizer('x')":                                              "fts3_tokenizer",
	"SELECT 1 FROM FROM":                                                      "syntax error",
	"SELECT 'a":                                                               "unrecognized token",
	"SELECT * FROM nowhere":                                                   "no such table: nowhere",
	"SELECT nought FROM sessions":                                             "no such column: nought",
	`SELECT "session" FROM sessions`:                                          `no such column: "session"`,
	"SELECT abs(-9223372036854775808)":                                        "integer overflow",
	"SELECT json('{')":                                                        "malformed JSON",
	"SELECT zeroblob(2000000000)":                                             "too big",
	"SELECT ?":                                                                "missing argument",
}

func TestSQLOnlyReads(t *testing.T) {
	path := storyAt(t)
	writing, err := sqlitestore.Open(t.Context(), filepath.Join(filepath.Dir(storyAt(t)), "sessions.db"), sqlitestore.Options{})
	require.NoError(t, err)
	defer writing.Close(context.WithoutCancel(t.Context()))
	dir := t.TempDir()
	t.Chdir(dir)
	before, err := os.ReadFile(path)
	require.NoError(t, err)
	for name, s := range map[string]*sqlitestore.Store{"reading": openReadOnly(t, path), "writing": writing} {
		counted := func() [][]any {
			rows, err := asked(t.Context(), s, "SELECT (SELECT count(*) FROM events), (SELECT sum(cost) FROM usage), (SELECT group_concat(name) FROM sqlite_schema)")
			require.NoError(t, err)
			return rows
		}
		was := counted()
		for text, says := range hostileSQL {
			_, err := asked(t.Context(), s, text)
			if says == "" && err == nil {
				continue // it is answered, and does nothing
			}
			require.ErrorIs(t, err, eventlog.ErrInvalidArgument, "%s: %q", name, text)
			require.ErrorContains(t, err, says, "%s: %q", name, text)
		}
		require.Equal(t, was, counted(), name)
	}
	left, err := os.ReadDir(dir)
	require.NoError(t, err)
	require.Empty(t, left, "no file was made")
	after, err := os.ReadFile(path)
	require.NoError(t, err)
	require.Equal(t, before, after)
	beside, err := os.ReadDir(filepath.Dir(path))
	require.NoError(t, err)
	require.Len(t, beside, 1)

	// The store writes as before.
	session, err := writing.Open(t.Context(), eventlog.Metadata{ID: "story"})
	require.NoError(t, err)
	_, err = session.Append(t.Context(), user("more"))
	require.NoError(t, err)
}

// endlessSQL gives one row and then searches for another for ever; or nothing at all.
const endlessSQL = "WITH RECURSIVE n (x) AS (VALUES (1) UNION ALL SELECT x + 1 FROM n) SELECT x FROM n WHERE x %s"

func TestSQLEndsWithItsContext(t *testing.T) {
	s := openReadOnly(t, storyAt(t))
	for name, condition := range map[string]string{"before a row": "< 0", "behind a row": "= 1"} {
		ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
		rows, err := asked(ctx, s, fmt.Sprintf(endlessSQL, condition))
		require.ErrorIs(t, err, context.DeadlineExceeded, name)
		require.Equal(t, condition == "= 1", len(rows) == 2, "%s: %v", name, rows)
		cancel()
		// The connection answers again.
		for range 20 {
			_, err = asked(t.Context(), s, "SELECT count(*) FROM v_messages")
			require.NoError(t, err)
		}
	}
}

// A statement waits for the views that it reads, and for no others.
func TestSQLSeesAllOfTheLog(t *testing.T) {
	path := storyAt(t)
	s := openReadOnly(t, path)
	const sums = "SELECT class, count(*), sum(tokens) FROM v_usage GROUP BY class"
	want, err := asked(t.Context(), s, sums)
	require.NoError(t, err)
	require.Len(t, want, 5)
	execRaw(t, path, "DELETE FROM usage", "DELETE FROM heads", "DELETE FROM segments", "UPDATE checkpoints SET position = 0 WHERE projection IN ('usage', 'branch')")

	temp := t.TempDir()
	t.Setenv("TMPDIR", temp)
	behind := openReadOnly(t, path)
	freshness, err := asked(t.Context(), behind, "SELECT view, lag > 0 FROM v_freshness ORDER BY view")
	require.NoError(t, err)
	require.Equal(t, [][]any{{"view", "lag > 0"}, {"branch", int64(1)}, {"catalog", int64(0)}, {"search", int64(0)}, {"usage", int64(1)}}, freshness)
	_, err = asked(t.Context(), behind, "SELECT count(*) FROM v_sessions")
	require.NoError(t, err)
	got, err := asked(t.Context(), behind, sums)
	require.NoError(t, err)
	require.Equal(t, want, got)
	live, err := asked(t.Context(), behind, "SELECT count(*) FROM v_live WHERE session = 'story'")
	require.NoError(t, err)
	require.Equal(t, int64(10), live[1][0])
	// What reads the log alone takes no copy.
	require.NoError(t, behind.Close(t.Context()))
	again := openReadOnly(t, path)
	_, err = asked(t.Context(), again, "SELECT count(*) FROM v_messages")
	require.NoError(t, err)
	left, err := os.ReadDir(temp)
	require.NoError(t, err)
	require.Empty(t, left)
}

// Branch views that a newer program made are not read for what they may not mean.
func TestSQLDoesNotReadBranchViewsOfANewerProgram(t *testing.T) {
	path := storyAt(t)
	execRaw(t, path, "UPDATE checkpoints SET version = 99 WHERE projection = 'branch'")
	for _, o := range []sqlitestore.Options{{ReadOnly: true}, {}} {
		s, err := sqlitestore.Open(t.Context(), path, o)
		require.NoError(t, err)
		_, err = asked(t.Context(), s, "SELECT * FROM v_live")
		require.ErrorIs(t, err, eventlog.ErrBusy)
		rows, err := asked(t.Context(), s, "SELECT count(*) FROM v_messages WHERE session = 'fork'")
		require.NoError(t, err, "the log is the log")
		require.Equal(t, int64(6), rows[1][0])
		require.NoError(t, s.Close(t.Context()))
	}
}

var (
	viewHead    = regexp.MustCompile(`(?m)^## (v_\w+)$`)
	viewColumn  = regexp.MustCompile(`(?m)^\| (\w+) \| (\w+) \| .+ \|$`)
	viewQueries = regexp.MustCompile("(?s)```sql\n(.*?)```")
)

// TestTheViewsArePublished holds the page against the schema: its views, their
// columns, the types of what they hold, and that every query works.
func TestTheViewsArePublished(t *testing.T) {
	s := openReadOnly(t, storyAt(t))
	heads := viewHead.FindAllStringSubmatchIndex(query.Views, -1)
	var names []any
	for i, h := range heads {
		name, section := query.Views[h[2]:h[3]], query.Views[h[1]:]
		if i+1 < len(heads) {
			section = query.Views[h[1]:heads[i+1][0]]
		}
		names = append(names, name)
		var columns, kinds []any
		for _, m := range viewColumn.FindAllStringSubmatch(section, -1)[1:] { // the first is the head
			columns, kinds = append(columns, m[1]), append(kinds, m[2])
		}
		all, err := asked(t.Context(), s, "SELECT * FROM "+name)
		require.NoError(t, err)
		require.Equal(t, columns, all[0], name)
		require.Greater(t, len(all), 1, "%s has rows", name)
		for i, kind := range kinds {
			for _, row := range all[1:] {
				if row[i] != nil {
					require.Equal(t, kind, map[string]string{"string": "text", "int64": "integer", "float64": "real"}[fmt.Sprintf("%T", row[i])], "%s.%s holds %v", name, columns[i], row[i])
				}
			}
		}
		queries := viewQueries.FindAllStringSubmatch(section, -1)
		require.NotEmpty(t, queries, name)
		for _, q := range queries {
			rows, err := asked(t.Context(), s, q[1])
			require.NoError(t, err, q[1])
			require.Greater(t, len(rows), 1, "it finds something: %s", q[1])
			require.Contains(t, q[1], name)
		}
	}
	there, err := asked(t.Context(), s, "SELECT name FROM sqlite_schema WHERE type = 'view' AND name LIKE 'v!_%' ESCAPE '!'")
	require.NoError(t, err)
	var views []any
	for _, row := range there[1:] {
		views = append(views, row[0])
	}
	require.ElementsMatch(t, views, names)
	require.NotContains(t, strings.ToLower(query.Views), "todo")
}
