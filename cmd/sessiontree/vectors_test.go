package main

import (
	"io/fs"
	"math/bits"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/sessiontree/sessiontree/eventlog/conformance"
	"github.com/sessiontree/sessiontree/eventlog/js"
)

// vectorSessions are the session files of the conformance vectors: some 200
// sessions of all shapes, half of them random, a third broken.
func vectorSessions(t *testing.T, each func(t *testing.T, path string, expect js.Value)) {
	vectors := conformance.Vectors()
	names, err := fs.Glob(vectors, "*/*/session.jsonl")
	if err != nil || len(names) < 100 {
		t.Fatalf("%d sessions, %v", len(names), err)
	}
	for _, name := range names {
		dir := filepath.Dir(name)
		t.Run(filepath.ToSlash(dir), func(t *testing.T) {
			text, err := fs.ReadFile(vectors, name)
			if err != nil {
				t.Fatal(err)
			}
			path := filepath.Join(t.TempDir(), "session.jsonl")
			if err := os.WriteFile(path, text, 0o600); err != nil {
				t.Fatal(err)
			}
			answers, err := fs.ReadFile(vectors, filepath.ToSlash(filepath.Join(dir, "expect.json")))
			if err != nil {
				t.Fatal(err)
			}
			expect, err := js.Parse(string(answers))
			if err != nil {
				t.Fatal(err)
			}
			each(t, path, expect)
		})
	}
}

// Every command answers every session, in text that is safe and JSON that is
// JSON; what Pi answered too is in the JSON.
func TestVectors(t *testing.T) {
	vectorSessions(t, func(t *testing.T, path string, expect js.Value) {
		for _, command := range []string{"tree", "branch", "context", "stats"} {
			checkSafe(t, command, ask(command, path))
			a := ask(command, path, "--json")
			checkSafe(t, command, a)
			v := checkJSON(t, a)
			if expect.Get("answers").Exists() {
				expect = expect.Get("answers")
			}
			if a.code != exitOK || !expect.Get("entryIds").Exists() {
				continue
			}
			switch command {
			case "branch":
				var ids []js.Value
				for e := range v.Get("entries").Elements() {
					ids = append(ids, e.Get("id"))
				}
				equal(t, "branch", expect.Get("currentBranch").Get("ids"), js.List(ids...))
			case "context":
				equal(t, "messages", expect.Get("currentContext").Get("messages"), v.Get("messages"))
				model := expect.Get("currentContext").Get("model")
				if model.Kind() == js.Object { // what it lacks is null in our answer
					model = js.Fields(field("provider", orNull(model.Get("provider"))), field("modelId", orNull(model.Get("modelId"))))
				}
				equal(t, "model", model, v.Get("model"))
				equal(t, "tools", expect.Get("currentContext").Get("activeToolNames"), v.Get("activeToolNames"))
			case "stats":
				equal(t, "entries", expect.Get("entryCount"), v.Get("entries"))
				equal(t, "name", expect.Get("sessionName"), v.Get("session").Get("name"))
				equal(t, "cost", expect.Get("stats").Get("costTotal"), orAbsent(v.Get("totals")).Get("cost"))
			case "tree":
				equal(t, "entries", expect.Get("entryCount"), v.Get("total"))
				checkDrawing(t, path, v)
			}
		}
	})
}

func orAbsent(v js.Value) js.Value {
	if v.Nullish() {
		return js.Value{}
	}
	return v
}

func equal(t *testing.T, what string, want, got js.Value) {
	t.Helper()
	// A file may hold 1e400, which JSON.stringify writes as null.
	if d := js.Diff(want, js.Canonical(got)); d != nil {
		t.Errorf("%s: %v", what, d)
	}
}

// checkDrawing compares a drawn tree with the nodes: each entry stands in it
// once, control entries only with --all, and few columns are used.
func checkDrawing(t *testing.T, path string, v js.Value) {
	t.Helper()
	total, told := 0, 0
	for n := range v.Get("nodes").Elements() {
		total++
		if !n.Get("control").Truthy() {
			told++
		}
	}
	if total == 0 {
		return
	}
	for _, flags := range [][]string{nil, {"--all"}} {
		picture, _, _ := strings.Cut(ask(append([]string{"tree", path}, flags...)...).stdout, "\n\n")
		rows := strings.Split(picture, "\n")
		if flags != nil && len(rows) != total || len(rows) < told || len(rows) > total {
			t.Errorf("%d rows for %d entries, %d of which are no control entries", len(rows), total, told)
		}
		for _, row := range rows {
			rails := strings.TrimLeft(row, "│├└─ ")
			if columns := cells.StringWidth(row) - cells.StringWidth(rails); columns > 2*(bits.Len(uint(total))+1) {
				t.Errorf("%d entries are indented by %d cells", total, columns)
			}
			if !strings.ContainsAny(rails[:min(3, len(rails))], "●◐○•◦") {
				t.Errorf("a row without a mark: %s", row)
			}
		}
	}
}
