package main

import (
	"bytes"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/sessiontree/sessiontree/eventlog/js"
)

// askWith is [ask] with a stdin.
func askWith(stdin string, args ...string) answer {
	var stdout, stderr bytes.Buffer
	code := run(context.Background(), args, strings.NewReader(stdin), &stdout, &stderr)
	return answer{stdout.String(), stderr.String(), code}
}

// newDatabase is a database with a session story, which went back from a first
// try, and an empty one.
func newDatabase(t *testing.T) string {
	t.Helper()
	db := filepath.Join(t.TempDir(), "sessions.db")
	for _, args := range [][]string{
		{"create", "--id", "story", "--cwd", "/home/ada/shop"},
		{"create", "--id", "storage", "--cwd", "/home/ada/disk"},
		{"append", "--session", "story", "--id", "q1", "Make it faster."},
		{"append", "--session", "story", "--id", "a1", "--role", "assistant", "A or B?"},
		{"append", "--session", "story", "--id", "q2", "Try plan A."},
		{"move", "--session", "story", "a1"},
		{"append", "--session", "story", "--id", "q3", "Try plan B."},
	} {
		if a := ask(append(args, "--db", db)...); a.code != exitOK || a.stderr != "" {
			t.Fatalf("%q: exit %d, %s", args, a.code, a.stderr)
		}
	}
	return db
}

var (
	randomID    = regexp.MustCompile(`\b[0-9a-f]{8}\b`)
	createdDate = regexp.MustCompile(`\b\d{4}-\d\d-\d\d\b`)
)

// A session from its creation to its end, as a script tells it.
func TestDatabaseStory(t *testing.T) {
	db := filepath.Join(t.TempDir(), "new", "folder", "sessions.db")
	t.Setenv(databaseVariable, db)
	var told answer
	for _, step := range []struct {
		stdin string
		args  []string
	}{
		{"", []string{"create", "--id", "story", "--cwd", "/home/ada/shop"}},
		{"", []string{"name", "--session", "story", "Faster\nimport"}},
		{"", []string{"append", "--session", "story", "--id", "q1", "Make it faster."}},
		{"", []string{"append", "--session", "story", "--id", "a1", "--role", "assistant", "--provider", "acme", "--model", "coder-1", "A or B?"}},
		{"Try plan A.\n", []string{"append", "--session", "story", "--id", "q2", "-"}},
		{"", []string{"append", "--session", "sto", "--id", "a2", "--role", "assistant", "Too slow."}},
		{"", []string{"label", "--session", "story", "a2", "dead end"}},
		{"", []string{"move", "--session", "story", "a1", "--summary", "Plan A was slow."}},
		{`{"role":"user","content":"Try plan B."}`, []string{"append", "--session", "story", "--id", "q3", "--json-message"}},
		{`{"role":"user","content":"Try plan B."}`, []string{"append", "--session", "story", "--id", "q3", "--json-message"}},
		{"", []string{"append", "--session", "story", "--id", "q4", "--at", "a1", "Both."}},
		{"", []string{"append", "--session", "story", "--id", "q5", "--at", "root", "Another matter."}},
		{"", []string{"move", "--session", "story", "root"}},
		{"", []string{"move", "--session", "story", "q3"}},
		{"", []string{"tree", "--session", "story", "--all"}},
		{"", []string{"branch", "--session", "story"}},
		{"", []string{"context", "--session", "story", "--from", "a2"}},
		{"", []string{"fork", "--session", "story", "--id", "whole"}},
		{"", []string{"fork", "--session", "story", "--id", "before", "--entry", "q2", "--cwd", "/home/ada/other"}},
		{"", []string{"fork", "--session", "story", "--id", "at", "--entry", "q2", "--position", "at"}},
		{"", []string{"branch", "--session", "before"}},
		{"", []string{"branch", "--session", "at"}},
		{"", []string{"label", "--session", "whole", "a2"}},
		{"", []string{"name", "--session", "whole"}},
		{"", []string{"list"}},
		{"", []string{"list", "--cwd", "/home/ada/other"}},
		{"", []string{"list", "--cwd", "/nowhere"}},
		{"", []string{"verify"}},
		{"", []string{"rebuild"}},
		{"", []string{"delete", "--session", "story", "--yes"}},
		{"", []string{"tree", "--session", "story"}},
		{"", []string{"list"}},
		{"", []string{"verify"}},
	} {
		a := askWith(step.stdin, append(step.args, "--width", "80")...)
		told.stdout += fmt.Sprintf("$ %s\n%s%s", strings.ReplaceAll(strings.Join(step.args, " "), "\n", `\n`), a.stdout, a.stderr)
		if failed := step.args[0] == "tree" && step.args[2] == "story" && a.code != exitOK; a.code != exitOK && !failed {
			t.Errorf("%q: exit %d", step.args, a.code)
		}
		checkSafe(t, step.args[0], a)
		time.Sleep(2 * time.Millisecond) // lists go by milliseconds
	}
	told.stdout = strings.ReplaceAll(told.stdout, db, "sessions.db")
	told.stdout = randomID.ReplaceAllString(told.stdout, "--------")
	told.stdout = createdDate.ReplaceAllString(told.stdout, "2026-03-02")
	golden(t, "database/story", told)
}

// files are the bytes of all files of a folder.
func files(t *testing.T, dir string) map[string]string {
	t.Helper()
	all := map[string]string{}
	found, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range found {
		text, err := os.ReadFile(filepath.Join(dir, f.Name()))
		if err != nil {
			t.Fatal(err)
		}
		all[f.Name()] = string(text)
	}
	return all
}

var readers = [][]string{
	{"list"}, {"list", "--cwd", "/"}, {"verify"}, {"health"}, {"check"}, {"query", "SELECT count(*) FROM v_messages"}, {"usage"}, {"tools"}, {"branches"}, {"compactions"}, {"search", "plan"},
	{"tree", "--session", "story"}, {"branch", "--session", "story"}, {"context", "--session", "story"}, {"stats", "--session", "story"},
}

func TestReadersChangeNoDatabase(t *testing.T) {
	db := newDatabase(t)
	before := files(t, filepath.Dir(db))
	if len(before) != 1 {
		t.Fatalf("there are %d files", len(before))
	}
	for _, args := range readers {
		for _, more := range [][]string{nil, {"--json"}} {
			args := append(append(slices.Clone(args), "--db", db), more...)
			if a := ask(args...); a.code != exitOK || a.stderr != "" {
				t.Errorf("%q: exit %d, %s", args, a.code, a.stderr)
			}
			after := files(t, filepath.Dir(db))
			if len(after) != 1 || after["sessions.db"] != before["sessions.db"] {
				t.Errorf("%q changed the database", args)
			}
		}
	}
}

// What is not there is said to be missing, and stays so.
func TestMissingDatabase(t *testing.T) {
	dir := t.TempDir()
	db := filepath.Join(dir, "a", "sessions.db")
	for _, args := range append(slices.Clone(readers), [][]string{
		{"append", "--session", "story", "text"}, {"move", "--session", "story", "q1"}, {"label", "--session", "story", "q1"},
		{"name", "--session", "story"}, {"fork", "--session", "story"}, {"delete", "--session", "story", "--yes"}, {"rebuild"},
	}...) {
		a := ask(append(slices.Clone(args), "--db", db)...)
		if want := "sessiontree: " + db + ": no such database\n"; a.code != exitFailed || a.stderr != want || a.stdout != "" {
			t.Errorf("%q: exit %d, %s", args, a.code, a.stderr)
		}
		a = ask(append(slices.Clone(args), "--db", db, "--json")...)
		if v := checkJSON(t, a); a.code != exitFailed || !v.Get("error").Get("code").Is("not_found") {
			t.Errorf("%q: %s", args, a.stderr)
		}
		if left := files(t, dir); len(left) != 0 {
			t.Errorf("%q made %v", args, left)
		}
	}
}

func TestDatabaseUsage(t *testing.T) {
	for _, test := range []struct {
		args []string
		says string
	}{
		{[]string{"tree", "testdata/empty.jsonl", "--session", "a"}, "a session file or --session, not both"},
		{[]string{"tree", "--session", "a", "--strict"}, "--strict is about session files"},
		{[]string{"tree", "--session", ""}, "--session is the id of a session"},
		{[]string{"list", "x"}, `unknown command "x"`},
		{[]string{"list", "--db", ""}, "--db is a file"},
		{[]string{"create", "x"}, `unknown command "x"`},
		{[]string{"create", "--id", ""}, "--id is empty"},
		{[]string{"append", "text"}, "which session? --session ID says so"},
		{[]string{"append", "--session", "a"}, "which text? - takes it from stdin"},
		{[]string{"append", "--session", "", "text"}, "--session is the id of a session"},
		{[]string{"append", "--session", "a", "b", "c"}, "one text, not 2"},
		{[]string{"append", "--session", "a", "b", "--role", "system"}, `--role is user or assistant, not "system"`},
		{[]string{"append", "--session", "a", "b", "--model", "m"}, "--provider and --model are of an assistant"},
		{[]string{"append", "--session", "a", "b", "--id", ""}, `--id is the id of an entry, not ""`},
		{[]string{"append", "--session", "a", "b", "--id", "root"}, `--id is the id of an entry, not "root"`},
		{[]string{"append", "--session", "a", "b", "--lines"}, "--lines takes the messages from stdin"},
		{[]string{"append", "--session", "a", "--lines", "--at", "root"}, "--lines has all that is to be said"},
		{[]string{"append", "--session", "a", "b", "--json-message"}, "--json-message takes the message from stdin"},
		{[]string{"append", "--session", "a", "--json-message", "--role", "user"}, "--json-message has its role"},
		{[]string{"move", "--session", "a"}, "one entry to move to, or root"},
		{[]string{"label", "--session", "a"}, "one entry to label"},
		{[]string{"name", "--session", "a", "b", "c"}, "one name, not 2"},
		{[]string{"fork"}, "which session?"},
		{[]string{"fork", "--session", "a", "b"}, `what is "b"?`},
		{[]string{"fork", "--session", "a", "--entry", ""}, "--entry is empty"},
		{[]string{"fork", "--session", "a", "--id", ""}, "--id is empty"},
		{[]string{"fork", "--session", "a", "--position", "at"}, "--position is about an entry"},
		{[]string{"fork", "--session", "a", "--entry", "b", "--position", "after"}, `--position is before or at, not "after"`},
		{[]string{"delete", "--session", "a"}, "--yes is needed where nobody can be asked"},
		{[]string{"delete", "--session", "a", "b", "--yes"}, `what is "b"?`},
		{[]string{"delete", "--yes"}, "which session?"},
		{[]string{"verify", "x"}, `unknown command "x"`},
		{[]string{"rebuild", "catalog", "x"}, `there is no view "x": the views are branch, catalog`},
		{[]string{"health", "x"}, `unknown command "x"`},
		{[]string{"compact", "x"}, `unknown command "x"`},
		{[]string{"check", "x"}, `unknown command "x"`},
		{[]string{"repair", "x"}, `unknown command "x"`},
		{[]string{"purge", "--yes"}, "one text to purge"},
		{[]string{"purge", "a", "--session", "b", "--yes"}, "a text or --session, not both"},
		{[]string{"purge", "--session", "", "--yes"}, "--session is the id of a session"},
		{[]string{"purge", "--session", "a", "--dry-run"}, "--dry-run is about a text"},
		{[]string{"purge", "secret"}, "--yes is needed where nobody can be asked"},
		{[]string{"backup"}, "one file to write the copy to"},
		{[]string{"backup", "a", "b"}, "one file to write the copy to"},
		{[]string{"list", "--after", "x"}, `--after: "x" is no place in a list of sessions`},
		{[]string{"list", "--limit", "-1"}, "--limit is a number of sessions"},
	} {
		t.Run(strings.Join(test.args, " "), func(t *testing.T) {
			dir := t.TempDir()
			t.Setenv(databaseVariable, filepath.Join(dir, "sessions.db"))
			a := ask(test.args...)
			if a.code != exitUsage || a.stdout != "" || !strings.HasPrefix(a.stderr, "sessiontree: "+test.says) || !strings.Contains(a.stderr, "\nUsage: sessiontree "+test.args[0]) {
				t.Errorf("exit %d, stdout %q, stderr %q", a.code, a.stdout, a.stderr)
			}
			a = ask(append(test.args, "--json")...)
			if v := checkJSON(t, a); a.code != exitUsage || !v.Get("error").Get("code").Is("usage") {
				t.Errorf("with --json: exit %d, %s", a.code, a.stderr)
			}
			if left := files(t, dir); len(left) != 0 {
				t.Errorf("there are %d files", len(left))
			}
		})
	}
}

func TestDatabaseErrors(t *testing.T) {
	db := newDatabase(t)
	other := filepath.Join(t.TempDir(), "other.db")
	if err := os.WriteFile(other, []byte(strings.Repeat("no database\n", 100)), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, test := range []struct {
		stdin string
		args  []string
		code  string
		says  string
	}{
		{"", []string{"tree", "--session", "nope"}, "not_found", "no session has the id nope, or one that begins so"},
		{"", []string{"tree", "--session", "\x1b[31m"}, "not_found", `\x1b[31m`},
		{"", []string{"tree", "--session", "sto"}, "invalid_argument", "the id sto is of more than one session: storage and story"},
		{"", []string{"delete", "--session", "s", "--yes"}, "invalid_argument", "storage and story"},
		{"", []string{"branch", "--session", "story", "--from", "gone"}, "not_found", "Entry gone not found"},
		{"", []string{"create", "--id", "story"}, "already_exists", "story"},
		{"", []string{"append", "--session", "story", "--at", "gone", "text"}, "not_found", "Entry gone not found"},
		{"", []string{"append", "--session", "story", "--at", "gone", "--role", "assistant", "text"}, "not_found", "Entry gone not found"},
		{"", []string{"append", "--session", "story", "--id", "q1", "text"}, "already_exists", "q1"},
		{"", []string{"append", "--session", "story", "\xff"}, "invalid_argument", "text in UTF-8"},
		{"\xff\xfe", []string{"append", "--session", "story", "-"}, "invalid_argument", "text in UTF-8"},
		{"nonsense", []string{"append", "--session", "story", "--json-message"}, "invalid_argument", "not valid JSON"},
		{"[]", []string{"append", "--session", "story", "--json-message"}, "invalid_argument", "a message is an object"},
		{"", []string{"move", "--session", "story", "gone"}, "not_found", "Entry gone not found"},
		{"", []string{"label", "--session", "story", "gone", "x"}, "not_found", "Entry gone not found"},
		{"", []string{"fork", "--session", "story", "--entry", "gone"}, "invalid_fork_target", "Entry gone not found"},
		{"", []string{"fork", "--session", "story", "--entry", "a1"}, "invalid_fork_target", "not a user message"},
		{"", []string{"fork", "--session", "story", "--id", "storage"}, "already_exists", "storage"},
		{"", []string{"list", "--db", other}, "storage", other},
		{"", []string{"create", "--db", other}, "storage", other},
		{"", []string{"verify", "--db", filepath.Dir(other)}, "storage", filepath.Dir(other)},
	} {
		t.Run(strings.Join(test.args, " "), func(t *testing.T) {
			args := append([]string{"--db", db}, test.args...)
			a := askWith(test.stdin, args...)
			if a.code != exitFailed || a.stdout != "" || !strings.HasPrefix(a.stderr, "sessiontree: ") || !strings.Contains(a.stderr, test.says) || strings.Count(a.stderr, "\n") != 1 {
				t.Errorf("exit %d, stdout %q, stderr %q", a.code, a.stdout, a.stderr)
			}
			checkSafe(t, "error", a)
			a = askWith(test.stdin, append(args, "--json")...)
			if v := checkJSON(t, a); a.code != exitFailed || !v.Get("error").Get("code").Is(test.code) {
				t.Errorf("with --json: exit %d, %s", a.code, a.stderr)
			}
		})
	}
	// Nothing of it was written.
	v := checkJSON(t, ask("list", "--json", "--db", db))
	var got []string
	for s := range v.Get("sessions").Elements() {
		got = append(got, s.Get("id").JSON()+s.Get("entries").JSON())
	}
	if want := []string{`"storage"0`, `"story"5`}; !slices.Equal(got, want) && !slices.Equal(got, []string{want[1], want[0]}) {
		t.Errorf("there are %q", got)
	}
}

// An id that is whole is no beginning of another.
func TestSessionIDs(t *testing.T) {
	db := newDatabase(t)
	if a := ask("create", "--id", "story-2", "--db", db); a.code != exitOK {
		t.Fatal(a.stderr)
	}
	for id, want := range map[string]string{"story": "story", "story-": "story-2", "stora": "storage"} {
		v := checkJSON(t, ask("stats", "--session", id, "--db", db, "--json"))
		if !v.Get("session").Get("id").Is(want) || !v.Get("session").Get("database").Is(db) || v.Get("session").Get("file").Kind() != js.Null {
			t.Errorf("%s: %s", id, v.Get("session").JSON())
		}
	}
	for i := range 12 {
		ask("create", "--id", fmt.Sprintf("many-%02d", i), "--db", db)
	}
	if a := ask("tree", "--session", "many", "--db", db); !strings.HasSuffix(a.stderr, " and 2 more\n") || strings.Count(a.stderr, "many-") != maxReports {
		t.Error(a.stderr)
	}
}

func TestDatabaseJSON(t *testing.T) {
	db := newDatabase(t)
	for _, test := range []struct {
		args []string
		has  []string
	}{
		{[]string{"create", "--cwd", "/x"}, []string{"session"}},
		{[]string{"append", "--session", "story", "text"}, []string{"session", "entries"}},
		{[]string{"move", "--session", "story", "q1", "--summary", "so"}, []string{"session", "entries", "leaf"}},
		{[]string{"move", "--session", "story", "root"}, []string{"session", "entries", "leaf"}},
		{[]string{"label", "--session", "story", "q1", "x"}, []string{"session", "entries"}},
		{[]string{"name", "--session", "story", "x"}, []string{"session", "entries"}},
		{[]string{"fork", "--session", "story"}, []string{"session"}},
		{[]string{"list"}, []string{"database", "sessions", "next"}},
		{[]string{"health"}, []string{"database", "lastEvent", "walBytes", "views"}},
		{[]string{"backup", filepath.Join(t.TempDir(), "copy.db")}, []string{"database", "backup", "bytes", "lastEvent"}},
		{[]string{"compact"}, []string{"database", "before", "after"}},
		{[]string{"check"}, []string{"database", "sessions", "events", "redacted", "problems", "unfinished"}},
		{[]string{"repair"}, []string{"database", "sessions", "events", "redacted", "problems", "unfinished"}},
		{[]string{"purge", "no such text", "--yes"}, []string{"sessions", "entries", "others", "incomplete", "elsewhere"}},
		{[]string{"tree", "--session", "story"}, []string{"session", "damage", "warnings", "leaf", "total", "nodes"}},
		{[]string{"branch", "--session", "story"}, []string{"session", "damage", "from", "entries"}},
		{[]string{"context", "--session", "story"}, []string{"session", "damage", "from", "thinkingLevel", "model", "activeToolNames", "messages"}},
		{[]string{"verify"}, []string{"database", "problems"}},
		{[]string{"rebuild"}, []string{"database"}},
		{[]string{"delete", "--session", "story", "--yes"}, []string{"deleted"}},
	} {
		a := ask(append(test.args, "--db", db, "--json")...)
		if a.code != exitOK {
			t.Errorf("%q: exit %d, %s", test.args, a.code, a.stderr)
			continue
		}
		var has []string
		for _, m := range checkJSON(t, a).Members() {
			has = append(has, m.Key)
			if !strings.Contains(ask(test.args[0], "--help").stdout, `"`+m.Key+`"`) {
				t.Errorf("%s: the help does not have %q", test.args[0], m.Key)
			}
		}
		if !slices.Equal(has, test.has) {
			t.Errorf("%q has %q", test.args, has)
		}
	}
}

// A message comes back as it was given.
func TestAppendedMessages(t *testing.T) {
	db := newDatabase(t)
	const odd = `{"role":"custom","x":1.50,"content":"\ud800 \u001b[31m"}`
	for _, test := range []struct {
		stdin string
		args  []string
		want  string
	}{
		{" " + odd + "\n", []string{"--json-message"}, odd},
		{"two\nlines\r\n", []string{"-"}, "two\nlines"},
		{"", []string{"-"}, ""},
		{"", []string{"--", "--dashes"}, "--dashes"},
		{"not read", []string{"\x1b[31m"}, "\x1b[31m"},
	} {
		a := askWith(test.stdin, append([]string{"append", "--session", "story", "--db", db, "--json"}, test.args...)...)
		v := checkJSON(t, a)
		checkSafe(t, "append", a)
		var m js.Value
		for e := range v.Get("entries").Elements() {
			m = e.Get("message")
		}
		if test.args[0] == "--json-message" {
			if m.JSON() != odd && js.Canonical(m).JSON() != js.Canonical(js.Trusted(odd)).JSON() {
				t.Errorf("%s came back as %s", odd, m.JSON())
			}
			continue
		}
		var text js.Value
		for b := range m.Get("content").Elements() {
			text = b.Get("text")
		}
		if !m.Get("role").Is("user") || !text.Is(test.want) {
			t.Errorf("%q came back as %s", test.want, m.JSON())
		}
	}
}

// An assistant's text does not change the branch's model unless it is told to.
func TestAppendKeepsTheModel(t *testing.T) {
	db := newDatabase(t)
	for _, step := range []struct {
		args []string
		want string
	}{
		{[]string{"--provider", "acme", "--model", "coder-1"}, "acme/coder-1"},
		{nil, "acme/coder-1"},
		{[]string{"--at", "q1"}, "/"},
		{[]string{"--at", "root"}, "/"},
	} {
		ask(append([]string{"append", "--session", "story", "--db", db, "--role", "assistant", "text"}, step.args...)...)
		m := checkJSON(t, ask("context", "--session", "story", "--db", db, "--json")).Get("model")
		provider, _ := m.Get("provider").Str()
		model, _ := m.Get("modelId").Str()
		if provider+"/"+model != step.want {
			t.Errorf("%q: the model is %s", step.args, m.JSON())
		}
	}
}

// verify finds what does not fit the log, and rebuild mends it.
func TestVerifyFinds(t *testing.T) {
	db := newDatabase(t)
	if a := ask("label", "--session", "story", "q1", "first", "--db", db); a.code != exitOK {
		t.Fatal(a.stderr)
	}
	raw, err := sql.Open("sqlite", db)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := raw.Exec("UPDATE labels SET label = 'wrong\x1b'"); err != nil {
		t.Fatal(err)
	}
	if err := raw.Close(); err != nil {
		t.Fatal(err)
	}
	a := ask("verify", "--db", db)
	if a.code != exitFailed || !strings.HasPrefix(a.stdout, "labels: ") || lastLine(a.stdout) != "1 problem" || a.stderr != "" {
		t.Errorf("exit %d, %s%s", a.code, a.stdout, a.stderr)
	}
	checkSafe(t, "verify", a)
	a = ask("verify", "--db", db, "--json")
	if a.code != exitFailed || !strings.Contains(a.stdout, `"view":"labels"`) || !strings.Contains(a.stderr, `{"error":{"code":"failed",`) {
		t.Errorf("exit %d, %s%s", a.code, a.stdout, a.stderr)
	}
	if a := ask("rebuild", "--db", db); a.code != exitOK || a.stdout != "Rebuilt "+safe(db)+"\n" {
		t.Errorf("exit %d, %s%s", a.code, a.stdout, a.stderr)
	}
	if a := ask("verify", "--db", db); a.code != exitOK || a.stdout != "0 problems\n" {
		t.Errorf("exit %d, %s%s", a.code, a.stdout, a.stderr)
	}
}

func TestListWidths(t *testing.T) {
	db := newDatabase(t)
	ask("create", "--id", "longlong-0000-7000-8000-000000000000", "--cwd", "/"+strings.Repeat("very/", 50)+"deep", "--db", db)
	ask("name", "--session", "long", strings.Repeat("a long name 世界 ", 20), "--db", db)
	ask("create", "--id", "hostile\x1b\u202e", "--cwd", "/\x1b[31m\n", "--db", db)
	for _, width := range []int{80, 100, 120, 200} {
		a := ask("list", "--db", db, "--width", strconv.Itoa(width))
		checkSafe(t, "list", a)
		for line := range strings.SplitSeq(a.stdout, "\n") {
			if n := cells.StringWidth(line); n > width {
				t.Errorf("at %d a line has %d cells: %s", width, n, line)
			}
		}
	}
	coloured := ask("list", "--db", db, "--color", "always")
	if got := sgr.ReplaceAllString(coloured.stdout, ""); got != ask("list", "--db", db).stdout || got == coloured.stdout {
		t.Errorf("with colours: %s", coloured.stdout)
	}
}

func TestAsked(t *testing.T) {
	for answer, want := range map[string]bool{"y\n": true, "Yes\r\n": true, "y": true, "n\n": false, "\n": false, "": false, "yess\n": false} {
		var stdout, stderr bytes.Buffer
		c := &cli{stdin: strings.NewReader(answer), stderr: &stderr, out: newOutput(&stdout)}
		if c.asked("Sure? ") != want || stderr.String() != "Sure? " || stdout.Len() != 0 {
			t.Errorf("%q: %q", answer, stderr.String())
		}
	}
}

func TestDataFolder(t *testing.T) {
	abs := t.TempDir()
	home := func() (string, error) { return abs, nil }
	for _, test := range []struct {
		system string
		env    map[string]string
		want   string
	}{
		{"linux", nil, filepath.Join(abs, ".local", "share")},
		{"linux", map[string]string{"XDG_DATA_HOME": filepath.Join(abs, "data")}, filepath.Join(abs, "data")},
		{"linux", map[string]string{"XDG_DATA_HOME": "relative"}, filepath.Join(abs, ".local", "share")},
		{"darwin", map[string]string{"XDG_DATA_HOME": abs}, filepath.Join(abs, "Library", "Application Support")},
		{"windows", map[string]string{"LocalAppData": abs}, abs},
	} {
		if got, err := dataFolder(test.system, func(k string) string { return test.env[k] }, home); got != test.want || err != nil {
			t.Errorf("%s, %v: %s, %v", test.system, test.env, got, err)
		}
	}
	none := func() (string, error) { return "", errors.New("no home") }
	for _, system := range []string{"linux", "darwin", "windows"} {
		if _, err := dataFolder(system, func(string) string { return "" }, none); err == nil {
			t.Errorf("%s: no error", system)
		}
	}
}

// --db goes before the environment, which goes before the default.
func TestDatabasePath(t *testing.T) {
	t.Setenv(databaseVariable, "from-the-environment")
	if got, err := (&cli{db: "flag"}).databasePath(); got != "flag" || err != nil {
		t.Error(got, err)
	}
	if got, err := (&cli{}).databasePath(); got != "from-the-environment" || err != nil {
		t.Error(got, err)
	}
	t.Setenv(databaseVariable, "")
	if got, err := (&cli{}).databasePath(); err == nil && !strings.HasSuffix(got, filepath.Join("sessiontree", "sessions.db")) {
		t.Error(got)
	}
}
