package main

import (
	"bytes"
	"context"
	"io"
	"path/filepath"
	"strings"
	"testing"

	"github.com/sessiontree/sessiontree/eventlog/js"
)

// linesDatabase is a new database with an empty session, s.
func linesDatabase(t *testing.T) string {
	t.Helper()
	db := filepath.Join(t.TempDir(), "sessions.db")
	if a := ask("create", "--id", "s", "--db", db); a.code != exitOK {
		t.Fatal(a.stderr)
	}
	return db
}

// idsOf are the ids of the session's entries, with their parents.
func idsOf(t *testing.T, db string) string {
	t.Helper()
	var all []string
	for e := range checkJSON(t, ask("tree", "--session", "s", "--all", "--json", "--db", db)).Get("nodes").Elements() {
		id, _ := e.Get("id").Str()
		parent, _ := e.Get("parentId").Str()
		all = append(all, parent+">"+id)
	}
	return strings.Join(all, " ")
}

func TestAppendLines(t *testing.T) {
	db := linesDatabase(t)
	const lines = `{"message":{"role":"user","content":"one"},"id":"m1"}

  {"id":"m2","message":{"role":"user","content":"\ud800"}}` + "\r\n" +
		`{"id":"m3","at":"m1","message":{"role":"user","content":"three"}}
{"id":"m4","at":null,"message":{"role":"user","content":"four"}}`
	for range 2 { // and given again
		a := askWith(lines, "append", "--session", "s", "--lines", "--db", db)
		if a != (answer{"m1\nm2\nm3\nm4\n", "", exitOK}) {
			t.Fatalf("%+v", a)
		}
		if got := idsOf(t, db); got != ">m1 m1>m2 m1>m3 >m4" {
			t.Errorf("the session has %s", got)
		}
	}
	a := askWith(`{"role":"user","content":"five","message":"of its own"}`+"\n"+`{"role":"user","content":"six"}`, "append", "--session", "s", "--lines", "--json", "--db", db)
	told := strings.Split(strings.TrimSuffix(a.stdout, "\n"), "\n")
	if a.code != exitOK || len(told) != 2 {
		t.Fatalf("%+v", a)
	}
	for i, want := range []string{"five", "six"} {
		for e := range js.Trusted(told[i]).Get("entries").Elements() {
			if !e.Get("message").Get("content").Is(want) {
				t.Errorf("line %d: %s", i, e.JSON())
			}
		}
	}
}

// A line that cannot be taken is named; those before it stand.
func TestAppendLinesErrors(t *testing.T) {
	for _, test := range []struct{ line, code, says string }{
		{"nonsense", "invalid_argument", "line 3 of stdin: the message is not valid JSON"},
		{`[]`, "invalid_argument", "line 3 of stdin: a message is an object"},
		{`{"message":7}`, "invalid_argument", "line 3 of stdin: a message is an object"},
		{`{"message":{"role":"user","content":""},"id":""}`, "invalid_argument", `line 3 of stdin: id is the id of an entry, not ""`},
		{`{"message":{"role":"user","content":""},"at":7}`, "invalid_argument", "line 3 of stdin: at is the id of an entry, not 7"},
		{`{"message":{"role":"user","content":""},"parent":"m1"}`, "invalid_argument", `line 3 of stdin: there is "parent" beside the message`},
		{`{"message":{"role":"user","content":""},"at":"gone"}`, "not_found", "line 3 of stdin: Entry gone not found"},
		{`{"message":{"role":"user","content":"other"},"id":"m1"}`, "already_exists", "line 3 of stdin: "},
	} {
		db := linesDatabase(t)
		stdin := `{"message":{"role":"user","content":"one"},"id":"m1"}` + "\n\n" + test.line + "\n" + `{"role":"user","content":"never"}`
		a := askWith(stdin, "append", "--session", "s", "--lines", "--db", db)
		if a.code != exitFailed || a.stdout != "m1\n" || !strings.HasPrefix(a.stderr, "sessiontree: "+db+": "+test.says) {
			t.Errorf("%s: %+v", test.line, a)
		}
		a = askWith(stdin, "append", "--session", "s", "--lines", "--json", "--db", db)
		if v := js.Trusted(a.stderr); !v.Get("error").Get("code").Is(test.code) {
			t.Errorf("%s: %s", test.line, a.stderr)
		}
		if got := idsOf(t, db); got != ">m1" {
			t.Errorf("%s: the session has %s", test.line, got)
		}
	}
}

// Whoever stops reading the ids does not stop the messages.
func TestAppendLinesUnread(t *testing.T) {
	db := linesDatabase(t)
	var stderr bytes.Buffer
	stdin := `{"message":{"role":"user","content":"one"},"id":"m1"}` + "\n" + `{"message":{"role":"user","content":"two"},"id":"m2"}`
	code := run(context.Background(), []string{"append", "--session", "s", "--lines", "--db", db}, strings.NewReader(stdin), &failing{0, io.ErrClosedPipe}, &stderr)
	if got := idsOf(t, db); code != exitOK || got != ">m1 m1>m2" || stderr.String() != "" {
		t.Errorf("exit %d, %q, the session has %s", code, stderr.String(), got)
	}
}

// An id is told before the next line is there.
func TestAppendLinesTellsAtOnce(t *testing.T) {
	db := linesDatabase(t)
	in, lines := io.Pipe()
	ids, out := io.Pipe()
	ended := make(chan int)
	go func() {
		code := run(context.Background(), []string{"append", "--session", "s", "--lines", "--db", db}, in, out, io.Discard)
		out.Close()
		ended <- code
	}()
	buf := make([]byte, 100)
	for _, id := range []string{"m1", "m2"} {
		io.WriteString(lines, `{"message":{"role":"user","content":""},"id":"`+id+`"}`+"\n")
		if n, err := ids.Read(buf); err != nil || string(buf[:n]) != id+"\n" {
			t.Fatalf("%q, %v", buf[:n], err)
		}
	}
	lines.Close()
	if code := <-ended; code != exitOK {
		t.Errorf("exit %d", code)
	}
}
