package sqlitestore_test

import (
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"database/sql"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/sessiontree/sessiontree/eventlog"
	"github.com/sessiontree/sessiontree/eventlog/js"
	"github.com/sessiontree/sessiontree/migrations"
	"github.com/sessiontree/sessiontree/projections"
	"github.com/sessiontree/sessiontree/query"
	"github.com/sessiontree/sessiontree/sqlitestore"
	"github.com/sessiontree/sessiontree/sqlitestore/sqlitestoretest"
)

// In testdata/released stands, of each version of the schema, a database that the
// program of that time wrote, with something in every table, and what it answered.
//
// For a new migration, and as long as no release has the latest one, run
//
//	go test ./sqlitestore -run TestReport_H5_H9 -update
//
// and commit the two files of the latest version. With a release its database is
// frozen for good: set released to its version. -update then writes only answers
// anew, for changes that are meant. Until then a schema that was changed behind its
// database is skipped: nobody has such a one.
const released = 0 // the latest schema version that a release has: there is none yet

var update = flag.Bool("update", false, "make the database of the latest schema anew, if it is not released, and record what all answer")

const fixtures = "testdata/released"

// schemaVersions are the names of the migrations.
func schemaVersions(t *testing.T) (versions []string) {
	t.Helper()
	names, err := fs.Glob(migrations.FS, "*.sql")
	require.NoError(t, err)
	for _, name := range names {
		number, _, _ := strings.Cut(name, "_")
		versions = append(versions, number)
	}
	return versions
}

// TestReport_H5_H9_ADatabaseOfEverySchemaOpens opens what every earlier program
// wrote: it has the schema of a new database then, answers as it did when it was
// written, every view is as one made from the log, and it takes more.
func TestReport_H5_H9_ADatabaseOfEverySchemaOpens(t *testing.T) {
	versions := schemaVersions(t)
	if *update && len(versions) > released {
		makeFixture(t, versions[len(versions)-1])
	}
	fresh := filepath.Join(t.TempDir(), "fresh.db")
	sqlitestoretest.OpenAt(t, fresh, sqlitestore.Options{})
	for i, version := range versions {
		t.Run(version, func(t *testing.T) {
			packed := filepath.Join(fixtures, version+".db.gz")
			path := unpack(t, packed)
			info, err := os.Stat(packed)
			require.NoError(t, err)
			require.Less(t, info.Size(), int64(200_000))

			before, err := os.ReadFile(path)
			require.NoError(t, err)
			if i+1 < len(versions) {
				_, err := sqlitestore.Open(ctx, path, sqlitestore.Options{ReadOnly: true})
				var older *sqlitestore.SchemaError
				require.ErrorAs(t, err, &older, "reading does not upgrade")
			} else {
				if i >= released && !slices.Equal(schemaOf(t, fresh), schemaOf(t, path)) {
					t.Skip("the schema was changed since its database was made: go test ./sqlitestore -run TestReport_H5_H9 -update")
				}
				readOnly, err := sqlitestore.Open(ctx, path, sqlitestore.Options{ReadOnly: true})
				require.NoError(t, err)
				requireAnswers(t, version, readOnly)
				require.NoError(t, readOnly.Close(ctx))
			}
			after, err := os.ReadFile(path)
			require.NoError(t, err)
			require.True(t, bytes.Equal(before, after), "reading changes nothing")

			s := sqlitestoretest.OpenAt(t, path, sqlitestore.Options{}) // verifies it in the end
			require.Equal(t, schemaOf(t, fresh), schemaOf(t, path))
			requireAnswers(t, version, s)
			c, err := s.Check(ctx)
			require.NoError(t, err)
			require.Empty(t, c.Problems)
			require.Empty(t, c.Unfinished)
			listed, err := s.List(ctx, "")
			require.NoError(t, err)
			for _, l := range listed {
				if l.ID == "leased" {
					continue
				}
				tree, err := s.Open(ctx, l.Metadata)
				require.NoError(t, err)
				_, err = tree.AppendAt(ctx, eventlog.None(), user("and on"))
				require.NoError(t, err)
			}
			tree, err := s.Open(ctx, eventlog.Metadata{ID: "leased"})
			require.NoError(t, err)
			_, err = tree.Append(ctx, user("not mine"))
			require.ErrorIs(t, err, eventlog.ErrBusy, "a lease that was taken is held")
		})
	}
}

// schemaOf is all that a database's schema has, without SQLite's own tables.
func schemaOf(t *testing.T, path string) (objects []string) {
	t.Helper()
	eachRow(t, path, `SELECT type || ' ' || name || ': ' || coalesce(sql, '') FROM sqlite_schema WHERE name NOT GLOB 'sqlite_*' ORDER BY type, name`, func(scan func(...any) error) {
		var object string
		require.NoError(t, scan(&object))
		objects = append(objects, object)
	})
	return objects
}

func eachRow(t *testing.T, path, query string, each func(scan func(...any) error)) {
	t.Helper()
	db, err := sql.Open("sqlite", path)
	require.NoError(t, err)
	defer db.Close()
	rows, err := db.Query(query)
	require.NoError(t, err)
	defer rows.Close()
	for rows.Next() {
		each(rows.Scan)
	}
	require.NoError(t, rows.Err())
}

func unpack(t *testing.T, packed string) string {
	t.Helper()
	f, err := os.Open(packed)
	require.NoError(t, err)
	defer f.Close()
	z, err := gzip.NewReader(f)
	require.NoError(t, err)
	text, err := io.ReadAll(z)
	require.NoError(t, err)
	path := filepath.Join(t.TempDir(), "sessions.db")
	require.NoError(t, os.WriteFile(path, text, 0o600))
	return path
}

func requireAnswers(t *testing.T, version string, s *sqlitestore.Store) {
	t.Helper()
	path := filepath.Join(fixtures, version+".answers")
	got := allAnswers(t, s)
	if *update {
		require.NoError(t, os.WriteFile(path, []byte(got), 0o644))
	}
	want, err := os.ReadFile(path)
	require.NoError(t, err)
	require.Equal(t, string(want), got, "if this is meant: go test ./sqlitestore -run TestReport_H5_H9 -update")
}

// allAnswers is all that can be asked of a store, in an order of its own.
func allAnswers(t *testing.T, s *sqlitestore.Store) string {
	t.Helper()
	var b strings.Builder
	say := func(what string, v any, err error) {
		text, encodeErr := json.Marshal(v)
		require.NoError(t, encodeErr, what)
		if err != nil {
			text = []byte(fmt.Sprint(eventlog.CodeOf(err), ": ", err))
		}
		fmt.Fprintf(&b, "%s: %s\n", what, text)
	}
	listed, err := s.List(ctx, "")
	require.NoError(t, err)
	slices.SortFunc(listed, func(a, b eventlog.Listed) int { return strings.Compare(a.ID, b.ID) })
	for _, l := range listed {
		fmt.Fprintf(&b, "\n# session %s\n", l.ID)
		tree, err := s.Open(ctx, l.Metadata)
		require.NoError(t, err)
		sessionAnswers(t, tree, say)
		branches, err := s.Branches(ctx, l.ID)
		say("branches", branches, err)
		var file bytes.Buffer
		say("export", "", s.Export(ctx, l.ID, &file))
		for line := range strings.Lines(file.String()) {
			if len(line) > projections.BlobBytes {
				line = fmt.Sprintf("%d bytes %.8x\n", len(line), sha256.Sum256([]byte(line)))
			}
			b.WriteString(line)
		}
		b.WriteString("\n")
	}
	b.WriteString("\n# all\n")
	for info, err := range s.Sessions(ctx, sqlitestore.ListOptions{}) {
		say("listed", fmt.Sprint(info.ID, info.CWD, info.Name, info.FirstMessage, info.Entries, info.Messages, info.LastActivity.UTC(), info.ForkedFrom, info.ForkEntry), err)
	}
	for _, by := range query.Groupings() {
		report, err := s.Usage(ctx, query.UsageOptions{By: by, Zone: time.UTC})
		say(fmt.Sprint("usage by ", by), report, err)
	}
	work := query.WorkOptions{Limit: 1000}
	tools, err := s.Tools(ctx, work)
	say("tools", tools, err)
	turns, err := s.SlowTurns(ctx, work)
	say("turns", turns, err)
	open, err := s.OpenCalls(ctx, work)
	say("open calls", open, err)
	compactions, err := s.Compactions(ctx, work)
	say("compactions", compactions, err)
	all, err := s.AllBranches(ctx, work)
	say("all branches", all, err)
	for _, text := range []string{"question", "parser", "数据", "went back", "redacted", "bash", "done"} {
		hits, err := s.Search(ctx, query.SearchOptions{Text: text, Limit: 1000})
		say("search "+text, hits, err)
	}
	damage, err := s.Damage(ctx, "")
	say("damage", damage, err)
	return b.String()
}

// sessionAnswers says what a session answers, of itself and of each of its entries.
func sessionAnswers(t *testing.T, tree *eventlog.Session, say func(what string, v any, err error)) {
	t.Helper()
	head, err := tree.Head(ctx)
	say("head", fmt.Sprint(head), err)
	m, err := tree.Metadata(ctx)
	say("metadata", fmt.Sprint(m.Dialect, " ", m.DialectBasis, " ", m.HeaderText()), err)
	name, err := tree.Name(ctx)
	say("name", name, err)
	labels, err := tree.Labels(ctx)
	say("labels", labels, err)
	stats, err := tree.Stats(ctx)
	say("stats", fmt.Sprintf("%+v", stats), err)
	skeleton, err := tree.Skeleton(ctx)
	say("skeleton", fmt.Sprintf("%+v", skeleton), err)
	from := []eventlog.Ref{eventlog.None()}
	for e, err := range tree.Entries(ctx, 0, eventlog.All) {
		require.NoError(t, err)
		from = append(from, eventlog.At(e.ID()))
	}
	for _, f := range from {
		branch, err := tree.Branch(ctx, f)
		say(fmt.Sprint("branch of ", f), strings.Join(ids(branch), " "), err)
		c, err := tree.BuildContext(ctx, f)
		var messages strings.Builder
		for _, m := range c.Messages {
			messages.WriteString(m.JSON() + "\n")
		}
		model := ""
		if c.Model != nil {
			model = c.Model.Provider.JSON() + c.Model.ID.JSON()
		}
		say(fmt.Sprint("context of ", f), fmt.Sprintf("%s %s %s %d messages %.8x", c.ThinkingLevel.JSON(), model, js.List(c.ActiveTools...).JSON(), len(c.Messages), sha256.Sum256([]byte(messages.String()))), err)
	}
}

// makeFixture writes a database that has something in every table.
func makeFixture(t *testing.T, version string) {
	t.Helper()
	path := filepath.Join(t.TempDir(), "sessions.db")
	n := 0
	source := ticking()
	source.NewID = func() string { n++; return fmt.Sprintf("e%03d", n) }
	s, err := sqlitestore.Open(ctx, path, sqlitestore.Options{Source: source})
	require.NoError(t, err)
	fillFixture(t, s)
	problems, err := s.Verify(ctx)
	require.NoError(t, err)
	require.Empty(t, problems)
	_, err = s.Compact(ctx)
	require.NoError(t, err)
	require.NoError(t, s.Close(ctx))
	requireNoTableEmpty(t, path)

	text, err := os.ReadFile(path)
	require.NoError(t, err)
	var packed bytes.Buffer
	z, err := gzip.NewWriterLevel(&packed, gzip.BestCompression)
	require.NoError(t, err)
	_, err = z.Write(text)
	require.NoError(t, err)
	require.NoError(t, z.Close())
	require.NoError(t, os.MkdirAll(fixtures, 0o755))
	require.NoError(t, os.WriteFile(filepath.Join(fixtures, version+".db.gz"), packed.Bytes(), 0o644))
}

// requireNoTableEmpty fails for a table that fillFixture puts nothing into: what a
// migration adds has to be in what is recorded of it.
func requireNoTableEmpty(t *testing.T, path string) {
	t.Helper()
	var tables []string
	eachRow(t, path, `SELECT name FROM pragma_table_list WHERE schema = 'main' AND type = 'table' AND name NOT GLOB 'sqlite_*'`, func(scan func(...any) error) {
		var name string
		require.NoError(t, scan(&name))
		tables = append(tables, name)
	})
	require.Greater(t, len(tables), 20)
	for _, name := range tables {
		if name == "guards" { // open within a transaction only
			continue
		}
		eachRow(t, path, "SELECT count(*) FROM "+name, func(scan func(...any) error) {
			var n int
			require.NoError(t, scan(&n))
			require.Positive(t, n, "fillFixture puts nothing into %s", name)
		})
	}
}

// fillFixture does all that a store can do, to a handful of sessions.
func fillFixture(t *testing.T, s *sqlitestore.Store) {
	t.Helper()
	must := func(err error) { t.Helper(); require.NoError(t, err) }
	harness, err := s.Create(ctx, eventlog.CreateOptions{ID: "harness", CWD: "/project"})
	must(err)
	r := rand.New(rand.NewPCG(1, 1))
	var some []string
	at := time.Date(2026, 3, 1, 10, 0, 0, 0, time.UTC)
	for i := range 32 {
		at = at.Add(7 * time.Minute)
		drafts := []eventlog.Draft{eventlog.MessageDraft(eventlog.UserMessage(fmt.Sprintf("question %d: the parser 数据库", i), at))}
		switch i % 6 {
		case 1:
			drafts = append(drafts, eventlog.MessageDraft(eventlog.AssistantMessage(fmt.Sprint("answer ", i), "acme", fmt.Sprint("m-", i%3), bill(r), at)))
		case 2:
			drafts = append(drafts, eventlog.ModelDraft("acme", "m-1"), eventlog.ThinkingLevelDraft("high"), eventlog.ActiveToolsDraft("bash", "edit"))
		case 3:
			drafts = append(drafts, eventlog.CustomDraft("state", js.Num(7)), eventlog.CustomMessageDraft("note", js.Text("a note"), true, js.NullValue()))
		case 4:
			call := fmt.Sprint("call-", i)
			drafts = append(drafts, parsedDraft(t, `{"role":"assistant","provider":"acme","model":"m-2","content":[{"type":"toolCall","id":"`+call+`","name":"bash","arguments":{"command":"go test"}}],"timestamp":1772359200000}`),
				parsedDraft(t, fmt.Sprintf(`{"role":"toolResult","toolCallId":%q,"toolName":"bash","content":[{"type":"text","text":"FAIL"}],"isError":%v,"timestamp":1772359201000}`, call, i%4 == 0)))
		}
		var entries []eventlog.Entry
		if i%5 == 4 {
			entries, err = harness.AppendAt(ctx, eventlog.At(some[r.IntN(len(some))]), drafts...)
		} else {
			entries, err = harness.Append(ctx, drafts...)
		}
		must(err)
		some = append(some, ids(entries)...)
		switch i % 16 {
		case 7:
			_, err = harness.MoveTo(ctx, eventlog.At(some[r.IntN(len(some))]), nil)
		case 11:
			_, err = harness.MoveTo(ctx, eventlog.At(some[r.IntN(len(some))]), &eventlog.Summary{Text: "went back"})
		case 14:
			_, err = harness.AppendCompaction(ctx, eventlog.Compaction{Summary: "so far", FirstKeptEntryID: js.Text(some[len(some)-2]), TokensBefore: 1000})
		case 15:
			_, err = harness.AppendCompaction(ctx, eventlog.Compaction{Summary: "so far", RetainedTail: js.List(), TokensBefore: 500})
		}
		must(err)
	}
	_, err = harness.SetLabel(ctx, some[3], "done")
	must(err)
	_, err = harness.SetName(ctx, "The parser")
	must(err)

	_, err = s.Fork(ctx, eventlog.Metadata{ID: "harness"}, eventlog.ForkOptions{CreateOptions: eventlog.CreateOptions{ID: "fork"}})
	must(err)
	_, err = s.Fork(ctx, eventlog.Metadata{ID: "harness"}, eventlog.ForkOptions{CreateOptions: eventlog.CreateOptions{ID: "branch"}, EntryID: some[12], Position: eventlog.AtIt})
	must(err)
	agent, err := s.Create(ctx, eventlog.CreateOptions{ID: "agent", CWD: "/project", Dialect: eventlog.CodingAgent})
	must(err)
	agentWalk(t, agent, r, 40)
	_, _, _, err = s.Convert(ctx, eventlog.Metadata{ID: "agent"}, eventlog.Harness, eventlog.CreateOptions{ID: "converted"})
	must(err)

	screens, err := s.Create(ctx, eventlog.CreateOptions{ID: "screens", CWD: "/project"})
	must(err)
	_, err = screens.Append(ctx, user(strings.Repeat("x", projections.BlobBytes)))
	must(err)
	_, err = s.Fork(ctx, eventlog.Metadata{ID: "screens"}, eventlog.ForkOptions{CreateOptions: eventlog.CreateOptions{ID: "screens again"}})
	must(err)

	// Files, in a folder whose name is the same wherever this runs.
	dir := filepath.Join(os.TempDir(), "sessiontree-released")
	must(os.RemoveAll(dir))
	defer os.RemoveAll(dir)
	v4, err := os.ReadFile("../eventlog/sessionfile/testdata/v4.jsonl")
	must(err)
	for name, text := range map[string]string{
		"v1.jsonl":      `{"type":"session","id":"v1","timestamp":"2025-01-01T00:00:00.000Z","cwd":"/old"}` + "\n" + `{"type":"message","timestamp":"2025-01-01T00:00:01.000Z","message":{"role":"user","content":"an old question"}}` + "\n",
		"v4.jsonl":      string(v4),
		"damaged.jsonl": "\ufeff" + header("damaged", "") + line("a", "", "one") + "junk that is no JSON\r\n\n" + line("b", "a", "two")[:30] + line("b", "a", "two") + line("c", "lost", "an island") + line("d", "c", "three")[:40],
		"cyclic.jsonl":  header("cyclic", "") + line("a", "b", "one") + line("b", "a", "two") + line("b", "", "again"),
	} {
		path := filepath.Join(dir, name)
		write(t, path, text)
		results := importAll(t, s, sqlitestore.ImportOptions{}, path)
		must(results[0].Err)
	}

	leased, err := s.Create(ctx, eventlog.CreateOptions{ID: "leased", CWD: "/project"})
	must(err)
	_, err = leased.Append(ctx, user("a key: "+secret))
	must(err)
	_, err = s.Lease(ctx, eventlog.Metadata{ID: "leased"}, "somebody", 100*365*24*time.Hour)
	must(err)
	_, err = s.Create(ctx, eventlog.CreateOptions{ID: "gone"})
	must(err)
	must(s.Delete(ctx, eventlog.Metadata{ID: "gone"}))
	purged, err := s.PurgeText(ctx, secret, false)
	must(err)
	require.Equal(t, 1, purged.Entries)
}

func parsedDraft(t *testing.T, message string) eventlog.Draft {
	t.Helper()
	m, err := eventlog.ParseMessage(message)
	require.NoError(t, err)
	return eventlog.MessageDraft(m)
}
