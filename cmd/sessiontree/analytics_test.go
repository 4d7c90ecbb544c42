package main

import (
	"context"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/sessiontree/sessiontree/eventlog"
	"github.com/sessiontree/sessiontree/eventlog/js"
	"github.com/sessiontree/sessiontree/sqlitestore"
)

// analyticsDatabase is the demo's database with two sessions more: a fork of the
// demo's, and a hostile one that was compacted. Its ids and times are fixed.
func analyticsDatabase(t *testing.T) string {
	t.Helper()
	ctx := context.Background()
	db := filepath.Join(t.TempDir(), "sessions.db")
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	d, err := playDemo(ctx, db)
	must(err)
	ids, now := 0, time.Date(2026, time.March, 29, 0, 30, 0, 0, time.UTC)
	store, err := sqlitestore.Open(ctx, db, sqlitestore.Options{Source: eventlog.Source{
		Now:   func() time.Time { now = now.Add(time.Minute); return now },
		NewID: func() string { ids++; return fmt.Sprintf("%08x", ids) },
	}})
	must(err)
	fork, err := store.Fork(ctx, eventlog.Metadata{ID: demoSession}, eventlog.ForkOptions{CreateOptions: eventlog.CreateOptions{ID: "fork"}, EntryID: d.tipB, Position: eventlog.AtIt})
	must(err)
	d.session, d.now, d.err = fork, func() time.Time { return now }, nil
	d.assistant(d.usage(250, 30, 0), said("And now faster still, in the fork."))
	d.session, err = store.Create(ctx, eventlog.CreateOptions{ID: "hostile", CWD: "/home/ada/\x1b[31mred"})
	must(err)
	d.user("Delete \x1b]0;title\a all \u202efiles 数据库")
	d.assistant(d.usage(1000, 10, 0), said("Calling."), called("toolu_09", "ba\x1b[31msh", field("command", js.Text("rm"))))
	_, err = d.session.Append(ctx, eventlog.CompactionDraft(eventlog.Compaction{Summary: "Files were to be deleted.", TokensBefore: 120_000, FirstKeptEntryID: js.Text("00000003"), Usage: d.usage(700, 70, 0)}))
	must(err)
	d.assistant(d.usage(90, 9, 1000), said("It is done."))
	must(d.err)
	must(store.Close(ctx))
	return db
}

// inZone makes a zone the system's, for a test.
func inZone(t *testing.T, zone *time.Location) {
	local := time.Local
	time.Local = zone
	t.Cleanup(func() { time.Local = local })
}

// told asks the questions of one command and holds all that was said against a golden
// file.
func told(t *testing.T, name string, questions [][]string) {
	t.Helper()
	inZone(t, time.UTC)
	db := analyticsDatabase(t)
	before := files(t, filepath.Dir(db))
	var all answer
	for _, args := range questions {
		a := ask(append(slices.Clone(args), "--db", db, "--width", "120")...)
		if a.code == exitFailed && a.stdout == "" && a.stderr == "" {
			t.Errorf("%q failed without a word", args)
		}
		all.stdout += fmt.Sprintf("$ %s\n%s%s", safe(strings.Join(args, " ")), a.stdout, a.stderr)
		if slices.Contains(args, "--json") && a.code == exitOK {
			checkJSON(t, a)
		}
	}
	all.stdout = strings.ReplaceAll(all.stdout, db, "sessions.db")
	golden(t, "analytics/"+name+".txt", all)
	after := files(t, filepath.Dir(db))
	if len(after) != 1 || after["sessions.db"] != before["sessions.db"] {
		t.Error("the database was changed")
	}
}

func TestQueryAnswers(t *testing.T) {
	told(t, "query", [][]string{
		{"query", "SELECT class, count(*) AS responses, sum(tokens) AS tokens, sum(cost) AS cost FROM v_usage GROUP BY class"},
		{"query", "SELECT class, sum(tokens) AS tokens FROM v_usage GROUP BY class", "--json"},
		{"query", "SELECT class, sum(tokens) AS tokens FROM v_usage GROUP BY class", "--csv"},
		{"query", "SELECT session, cwd, first_message FROM v_sessions ORDER BY active DESC"},
		{"query", "SELECT cwd, first_message FROM v_sessions WHERE session = 'hostile'", "--csv"},
		{"query", "SELECT cwd, first_message FROM v_sessions WHERE session = 'hostile'", "--json"},
		{"query", "SELECT n, text FROM v_messages ORDER BY at LIMIT 9", "--limit", "2"},
		{"query", "SELECT n FROM v_messages ORDER BY at LIMIT 9", "--limit", "2", "--json"},
		{"query", "SELECT NULL, 1, 2.5, 9007199254740993, 1e999, x'00ff', 'a\nb'"},
		{"query", "SELECT NULL, 1, 2.5, 9007199254740993, 1e999, x'00ff', char(55357), 1 AS \"\x1b[31m\"", "--json"},
		{"query", "SELECT session FROM v_sessions WHERE 0"},
		{"query", "SELECT session FROM v_sessions WHERE 0", "--csv"},
		{"query", "SELECT session FROM v_sessions WHERE 0", "--json"},
		{"query", "SELECT tokens FROM v_sessions"},
		{"query", "SELECT tokens FROM v_sessions", "--json"},
		{"query", "DELETE FROM events"},
		{"query", "WITH x AS (SELECT 1) DELETE FROM events"},
		{"query", "PRAGMA journal_mode = delete"},
		{"query", "ATTACH 'other.db' AS other"},
		{"query", "VACUUM INTO 'other.db'"},
		{"query", "SELECT 1; SELECT 2"},
		{"query", ""},
		{"query"},
		{"query", "SELECT", "1"},
		{"query", "SELECT 1", "--json", "--csv"},
		{"query", "SELECT 1", "--limit", "-1"},
		{"query", "SELECT 1", "--views"},
	})
}

func TestQueryTakesItsStatementFromStdin(t *testing.T) {
	db := analyticsDatabase(t)
	a := askWith("-- how many?\nSELECT count(*) AS sessions FROM v_sessions;\n", "query", "-", "--csv", "--db", db)
	if want := (answer{"sessions\n3\n", "", exitOK}); a != want {
		t.Errorf("%+v", a)
	}
	a = askWith("SELECT '"+strings.Repeat("x", 2<<20)+"'", "query", "-", "--db", db)
	if want := "sessiontree: the statement has more than 1048576 bytes\n"; a.code != exitFailed || a.stderr != want {
		t.Errorf("%+v", a)
	}
}

func TestQueryEndsInTime(t *testing.T) {
	db := analyticsDatabase(t)
	for _, condition := range []string{"x < 0", "x = 1"} {
		a := ask("query", "WITH RECURSIVE n (x) AS (VALUES (1) UNION ALL SELECT x + 1 FROM n) SELECT x FROM n WHERE "+condition, "--timeout", "50ms", "--db", db)
		if want := (answer{"", "sessiontree: " + db + ": the statement was ended after 50ms (--timeout)\n", exitFailed}); a != want {
			t.Errorf("%s: %+v", condition, a)
		}
	}
}

func TestQueryShowsThePageOfTheViews(t *testing.T) {
	a := ask("query", "--views")
	if a.code != exitOK || !strings.HasPrefix(a.stdout, "# The views for SQL\n") {
		t.Errorf("%+v", a)
	}
	// The help names each view of the page.
	help := ask("query", "--help").stdout
	for line := range strings.Lines(a.stdout) {
		if name, ok := strings.CutPrefix(line, "## "); ok && !strings.Contains(help, strings.TrimSpace(name)) {
			t.Errorf("the help lacks %s", name)
		}
	}
}

func TestExportParquet(t *testing.T) {
	db := analyticsDatabase(t)
	before := files(t, filepath.Dir(db))
	dir := filepath.Join(t.TempDir(), "lake")
	var said answer
	for _, args := range [][]string{
		{"export", "--parquet", dir}, {"export", "--parquet", dir}, {"export", "--parquet", dir, "--json"},
		{"export", "--parquet", ""}, {"export", "--parquet", dir, "--all"}, {"export", "--parquet", dir, "story"}, {"export", "--parquet", db},
	} {
		a := ask(append(slices.Clone(args), "--db", db)...)
		said.stdout += fmt.Sprintf("$ %s\n%s%s", strings.Join(args, " "), a.stdout, a.stderr)
	}
	said.stdout = strings.NewReplacer(db, "sessions.db", dir, "lake", `\`, "/").Replace(said.stdout)
	golden(t, "analytics/export-parquet.txt", said)
	if after := files(t, filepath.Dir(db)); after["sessions.db"] != before["sessions.db"] || len(after) != 1 {
		t.Error("the database was changed")
	}
}

func TestUsageAnswers(t *testing.T) {
	told(t, "usage", [][]string{
		{"usage", "--timezone", "Europe/Berlin"},
		{"usage", "--timezone", "America/Los_Angeles", "--since", "2026-03", "--until", "2026-03-02"},
		{"usage", "--by", "week", "--timezone", "UTC", "--csv"},
		{"usage", "--by", "month", "--timezone", "UTC", "--json"},
		{"usage", "--by", "model"},
		{"usage", "--by", "provider", "--since", "2026-03-20", "--timezone", "UTC"},
		{"usage", "--by", "cwd"},
		{"usage", "--by", "cwd", "--csv"},
		{"usage", "--by", "session"},
		{"usage", "--by", "branch"},
		{"usage", "--by", "branch", "--session", "0195", "--json"},
		{"usage", "--by", "session", "--cwd", "/home/ada/shop", "--model", "coder-1"},
		{"usage", "--model", "nobody's"},
		{"usage", "--explain"},
		{"usage", "--explain", "--json"},
		{"usage", "--by", "hour"},
		{"usage", "--timezone", "Mars"},
		{"usage", "--since", "yesterday"},
		{"usage", "--json", "--csv"},
		{"usage", "--session", "nobody"},
	})
}

func TestToolsAnswers(t *testing.T) {
	told(t, "tools", [][]string{
		{"tools", "--timezone", "UTC"},
		{"tools", "--timezone", "UTC", "--json"},
		{"tools", "--timezone", "Asia/Tokyo", "--session", "hostile"},
		{"tools", "--timezone", "UTC", "--cwd", "/home/ada/shop", "--limit", "1", "--until", "2026-03-10"},
		{"tools", "--since", "2027-01-01", "--timezone", "UTC"},
		{"tools", "--limit", "0"},
	})
}

func TestBranchesAnswers(t *testing.T) {
	told(t, "branches", [][]string{
		{"branches"}, {"branches", "--json"},
		{"branches", "--session", "0195"}, {"branches", "--session", "0195", "--json"},
		{"branches", "--session", "fork"}, {"branches", "--session", "nobody"},
	})
}

func TestCompactionsAnswers(t *testing.T) {
	told(t, "compactions", [][]string{
		{"compactions", "--timezone", "UTC"}, {"compactions", "--json"}, {"compactions", "--session", "0195"},
		{"compactions", "--since", "2026-03-30", "--timezone", "UTC"},
	})
}

func TestSearchAnswers(t *testing.T) {
	told(t, "search", [][]string{
		{"search", "plan"},
		{"search", "plan", "--session", "fork", "--limit", "2"},
		{"search", "plan", "--rank", "--limit", "2"},
		{"search", "plan", "a", "--json", "--limit", "2"},
		{"search", "数据库"},
		{"search", "title"},
		{"search", "title", "--json"},
		{"search", "TestImportOrder", "--in", "result"},
		{"search", "edit", "--in", "call", "--limit", "1"},
		{"search", "dead end", "--in", "label"},
		{"search", "\"plan B\" OR label: works", "--query"},
		{"search", "don't \" NEAR( *"},
		{"search", "(", "--query"},
		{"search", "x", "--in", "thought"},
		{"search", "plan", "--skip", "1"},
		{"search"},
	})
}

// The days of every report are those of one zone: the system's, or the flag's.
func TestReport_J4_EveryCommandHasTheSameDays(t *testing.T) {
	zone, err := time.LoadLocation("America/New_York")
	if err != nil {
		t.Fatal(err)
	}
	inZone(t, zone)
	db := filepath.Join(t.TempDir(), "sessions.db")
	// From the noon before, each half an hour, on the days of 23 and of 25 hours.
	var now time.Time
	store, err := sqlitestore.Open(context.Background(), db, sqlitestore.Options{Source: eventlog.Source{Now: func() time.Time { return now }}})
	if err != nil {
		t.Fatal(err)
	}
	d := &demo{ctx: context.Background(), now: func() time.Time { return now }}
	d.session, d.err = store.Create(d.ctx, eventlog.CreateOptions{ID: "s", CWD: "/"})
	for _, noon := range []time.Time{time.Date(2026, 3, 7, 12, 30, 0, 0, zone), time.Date(2026, 10, 31, 12, 30, 0, 0, zone)} {
		for i := range 100 {
			now = noon.Add(time.Duration(i) * 30 * time.Minute)
			d.user("go")
			d.assistant(d.usage(1, 0, 0), called(fmt.Sprint("c", i), "edit"))
			d.append(eventlog.CompactionDraft(eventlog.Compaction{Summary: "s"}))
		}
	}
	if d.err != nil {
		t.Fatal(d.err)
	}
	if err := store.Close(d.ctx); err != nil {
		t.Fatal(err)
	}
	for _, test := range []struct {
		day, zone string
		halves    int // hours
	}{
		{"2026-03-07", "", 23}, {"2026-03-08", "", 2 * 23}, {"2026-11-01", "", 2 * 25},
		{"2026-03-08", "UTC", 2 * 24}, {"2026-11-01", "UTC", 2 * 24}, {"2026-03-08", "Europe/Berlin", 2 * 24},
	} {
		args := []string{"--since", test.day, "--until", test.day, "--json", "--db", db}
		if test.zone != "" {
			args = append(args, "--timezone", test.zone)
		}
		answers := func(command ...string) js.Value { return checkJSON(t, ask(append(command, args...)...)) }
		counts := map[string]js.Value{
			"usage":       first(answers("usage", "--by", "day").Get("rows")).Get("total").Get("responses"),
			"model":       answers("usage", "--by", "model").Get("total").Get("total").Get("responses"),
			"session":     answers("usage", "--by", "session").Get("total").Get("total").Get("responses"),
			"branch":      answers("usage", "--by", "branch").Get("total").Get("total").Get("responses"),
			"tools":       first(answers("tools").Get("tools")).Get("calls"),
			"compactions": answers("compactions").Get("count"),
		}
		for name, n := range counts {
			if n.JSON() != fmt.Sprint(test.halves) {
				t.Errorf("%s of %s in %q: %s, not %d", name, test.day, test.zone, n.JSON(), test.halves)
			}
		}
		if key := first(answers("usage", "--by", "day").Get("rows")).Get("key"); !key.Is(test.day) {
			t.Errorf("the day is %s", key.JSON())
		}
	}
}

// first is the first element of a list.
func first(list js.Value) js.Value {
	for v := range list.Elements() {
		return v
	}
	return js.Value{}
}
