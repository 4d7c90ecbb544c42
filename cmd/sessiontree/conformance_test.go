package main

import (
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/sessiontree/sessiontree/eventlog/conformance"
)

// vectorFolder copies some of the packed vectors.
func vectorFolder(t *testing.T, pattern string) string {
	t.Helper()
	vectors := conformance.Vectors()
	cases, err := fs.Glob(vectors, pattern)
	if err != nil || len(cases) == 0 {
		t.Fatalf("%d cases, %v", len(cases), err)
	}
	dir := t.TempDir()
	for _, name := range cases {
		part, err := fs.Sub(vectors, name)
		if err == nil {
			err = os.CopyFS(filepath.Join(dir, filepath.FromSlash(name)), part)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

func lastLine(s string) string {
	all := strings.Split(strings.TrimSuffix(s, "\n"), "\n")
	return all[len(all)-1]
}

func TestConformance(t *testing.T) {
	for _, backend := range []string{"memory", "jsonl", "sqlite"} {
		a := ask("conformance", "--backend", backend, "--filter", "handmade/plan-*")
		if a.code != exitOK || lastLine(a.stdout) != "1 passed, 0 failed" || a.stderr != "" {
			t.Errorf("%s: exit %d\n%s%s", backend, a.code, a.stdout, a.stderr)
		}
		v := checkJSON(t, ask("conformance", "--backend", backend, "--filter", "labels", "--json"))
		if passed, _ := v.Get("passed").Float(); passed != 1 || !v.Get("backend").Is(backend) {
			t.Errorf("%s: %s", backend, v.JSON())
		}
	}
}

func TestConformanceFolder(t *testing.T) {
	dir := vectorFolder(t, "handmade/label*")
	if a := ask("conformance", dir); a.code != exitOK || lastLine(a.stdout) != "3 passed, 0 failed" {
		t.Errorf("exit %d\n%s%s", a.code, a.stdout, a.stderr)
	}
	// A wrong answer is found, and told with its case and field.
	path := filepath.Join(dir, "handmade", "labels", "expect.json")
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	wrong := strings.Replace(string(text), `"sessionName": null`, `"sessionName": "\u001b[31m"`, 1)
	if wrong == string(text) {
		t.Fatal("the vector has another form")
	}
	if err := os.WriteFile(path, []byte(wrong), 0o600); err != nil {
		t.Fatal(err)
	}
	a := ask("conformance", dir, "--backend", "memory")
	if a.code != exitFailed || lastLine(a.stdout) != "2 passed, 1 failed" || !strings.Contains(a.stdout, "handmade/labels") || a.stderr != "" {
		t.Errorf("exit %d\n%s%s", a.code, a.stdout, a.stderr)
	}
	checkSafe(t, "conformance", a)
	a = ask("conformance", dir, "--json")
	checkSafe(t, "conformance", a)
	if a.code != exitFailed || !strings.Contains(a.stderr, `{"error":{"code":"failed",`) || !strings.Contains(a.stdout, `"status":"failed"`) {
		t.Errorf("exit %d\n%s%s", a.code, a.stdout, a.stderr)
	}
}

func TestMatches(t *testing.T) {
	for _, test := range []struct {
		pattern string
		want    bool
	}{
		{"handmade", true}, {"plan-a-plan-b", true}, {"plan-*", true}, {"handmade/plan-*", true}, {"handmade/*", true}, {"*", true},
		{"random", false}, {"plan", false}, {"random/*", false},
	} {
		if got := matches(test.pattern, "handmade/plan-a-plan-b"); got != test.want {
			t.Errorf("%q: %v", test.pattern, got)
		}
	}
}
