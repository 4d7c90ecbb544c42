package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/sessiontree/sessiontree/eventlog/js"
)

var update = flag.Bool("update", false, "write what the commands print into the golden files")

// answer is what one run of the program gave.
type answer struct {
	stdout, stderr string
	code           int
}

func ask(args ...string) answer {
	var stdout, stderr bytes.Buffer
	// The files of these tests are the harness's; most have no mark of it.
	files := len(args) > 1 && slices.Contains([]string{"tree", "branch", "context", "stats"}, args[0])
	if files && !slices.Contains(args, "--session") && !slices.Contains(args, "--dialect") && !slices.Contains(args, "--help") {
		args = slices.Insert(slices.Clone(args), 1, "--dialect", "harness")
	}
	code := run(context.Background(), args, nil, &stdout, &stderr)
	return answer{stdout.String(), stderr.String(), code}
}

// golden compares an answer with testdata/golden/name.golden.
func golden(t *testing.T, name string, a answer) {
	t.Helper()
	got := fmt.Sprintf("%s--- stderr\n%s--- exit %d\n", a.stdout, a.stderr, a.code)
	path := filepath.Join("testdata", "golden", name+".golden")
	if *update {
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if got != string(want) {
		t.Errorf("%s differs (go test -update writes it anew)\n--- want\n%s\n--- got\n%s", path, want, got)
	}
	checkSafe(t, name, a)
}

// checkSafe fails if an answer could do anything to a terminal.
func checkSafe(t *testing.T, name string, a answer) {
	t.Helper()
	for _, text := range []string{a.stdout, a.stderr} {
		if !isValid(text) {
			t.Errorf("%s: the output is no UTF-8", name)
		}
		for _, r := range text {
			if r != '\n' && hostile(r) {
				t.Errorf("%s: the output holds %U", name, r)
				break
			}
		}
	}
}

func isValid(s string) bool { return strings.ToValidUTF8(s, "") == s }

func TestGolden(t *testing.T) {
	for _, file := range []string{"every-kind", "no-leaf", "empty", "hostile", "broken", "suspicious"} {
		path := "testdata/" + file + ".jsonl"
		for name, args := range map[string][]string{
			"tree.txt":     {"tree", path, "--width", "80"},
			"tree-all.txt": {"tree", path, "--all"},
			"tree.json":    {"tree", path, "--json"},
			"branch.txt":   {"branch", path},
			"branch.json":  {"branch", path, "--json"},
			"context.txt":  {"context", path, "--width", "80"},
			"context.json": {"context", path, "--json"},
			"stats.txt":    {"stats", path},
			"stats.json":   {"stats", path, "--json"},
		} {
			t.Run(file+"/"+name, func(t *testing.T) {
				a := ask(args...)
				golden(t, filepath.Join(file, name), a)
				if strings.HasSuffix(name, ".json") {
					checkJSON(t, a)
				}
			})
		}
	}
}

func TestGoldenOptions(t *testing.T) {
	const every, hostile = "testdata/every-kind.jsonl", "testdata/hostile.jsonl"
	for name, args := range map[string][]string{
		"tree-limit.txt":           {"tree", every, "-n", "3"},
		"tree-limit.json":          {"tree", every, "-n", "3", "--json"},
		"tree-strict.txt":          {"tree", "testdata/broken.jsonl", "--strict"},
		"branch-from.txt":          {"branch", every, "--from", "asst0004"},
		"branch-from.json":         {"branch", every, "--from", "asst0004", "--json"},
		"context-from.txt":         {"context", every, "--from", "resu0003"},
		"context-llm.txt":          {"context", every, "--llm"},
		"context-llm.json":         {"context", every, "--llm", "--json"},
		"context-well-formed.json": {"context", hostile, "--well-formed", "--json"},
		"tree-narrow.txt":          {"tree", every, "--width", "1"},
	} {
		t.Run(name, func(t *testing.T) {
			a := ask(args...)
			golden(t, filepath.Join("options", name), a)
			if strings.HasSuffix(name, ".json") {
				checkJSON(t, a)
			}
		})
	}
}

// Colours are the only escape codes, and taking them out gives the plain text.
func TestColor(t *testing.T) {
	for _, args := range [][]string{
		{"tree", "testdata/hostile.jsonl", "--all"},
		{"tree", "testdata/broken.jsonl"},
		{"tree", "testdata/every-kind.jsonl"},
		{"context", "testdata/every-kind.jsonl"},
		{"stats", "testdata/suspicious.jsonl"},
	} {
		plain := ask(args...)
		coloured := ask(append(args, "--color", "always")...)
		if plain.stdout == coloured.stdout {
			t.Errorf("%q: no colours", args)
		}
		if got := sgr.ReplaceAllString(coloured.stdout, ""); got != plain.stdout {
			t.Errorf("%q: without its colours the text is\n%s\nnot\n%s", args, got, plain.stdout)
		}
		checkSafe(t, args[0], answer{stdout: sgr.ReplaceAllString(coloured.stdout, "")})
	}
	if a := ask("tree", "testdata/every-kind.jsonl", "--json", "--color", "always"); strings.Contains(a.stdout, "\x1b") {
		t.Error("JSON has colours")
	}
}

// checkJSON checks that an answer is one JSON value: on stdout, or on stderr if
// it is an error.
func checkJSON(t *testing.T, a answer) js.Value {
	t.Helper()
	text, other := a.stdout, a.stderr
	if a.code != exitOK {
		text, other = a.stderr, a.stdout
	}
	if other != "" {
		t.Errorf("beside the answer there is %q", other)
	}
	v, err := js.Parse(text)
	if err != nil {
		t.Fatalf("%v in %s", err, text)
	}
	// encoding/json is what scripts in Go use.
	if !json.Valid([]byte(text)) {
		t.Errorf("encoding/json refuses %s", text)
	}
	if a.code != exitOK && (text == "" || v.Get("error").Get("code").Kind() != js.String || v.Get("error").Get("message").Kind() != js.String) {
		t.Errorf("the error is %s", text)
	}
	return v
}

func TestUsage(t *testing.T) {
	file := "testdata/empty.jsonl"
	for _, test := range []struct {
		args []string
		says string
		and  string // the usage
	}{
		{[]string{"tre"}, `unknown command "tre", did you mean tree?`, "sessiontree COMMAND [flags]"},
		{[]string{"xyzzy"}, `unknown command "xyzzy"`, "sessiontree COMMAND [flags]"},
		{[]string{"\x1b[31m"}, `unknown command "\x1b[31m"`, "sessiontree COMMAND [flags]"},
		{[]string{"--frob"}, "unknown flag: --frob", "sessiontree COMMAND [flags]"},
		{[]string{"tree"}, "which session file?", "sessiontree tree FILE|--session ID [flags]"},
		{[]string{"tree", file, file}, "one session file, not 2", "sessiontree tree FILE|--session ID [flags]"},
		{[]string{"tree", file, "--frob"}, "unknown flag: --frob", "sessiontree tree FILE|--session ID [flags]"},
		{[]string{"tree", file, "-\x1b"}, `unknown shorthand flag: '\x1b'`, "sessiontree tree FILE|--session ID [flags]"},
		{[]string{"tree", file, "--limit", "-1"}, "--limit is a number of entries, not -1", "sessiontree tree FILE|--session ID [flags]"},
		{[]string{"tree", file, "--limit", "x"}, `invalid argument "x" for "-n, --limit" flag`, "sessiontree tree FILE|--session ID [flags]"},
		{[]string{"tree", file, "--width", "-1"}, "--width is a number of cells, not -1", "sessiontree tree FILE|--session ID [flags]"},
		{[]string{"tree", file, "--color", "red"}, `--color is auto, always or never, not "red"`, "sessiontree tree FILE|--session ID [flags]"},
		{[]string{"branch", file, "--from"}, "flag needs an argument: --from", "sessiontree branch FILE|--session ID [flags]"},
		{[]string{"context"}, "which session file?", "sessiontree context FILE|--session ID [flags]"},
		{[]string{"stats"}, "which session file?", "sessiontree stats FILE|--session ID [flags]"},
		{[]string{"demo", "x"}, `unknown command "x"`, "sessiontree demo [flags]"},
		{[]string{"help", "nope"}, `unknown command "nope"`, "sessiontree help [COMMAND] [flags]"},
		{[]string{"help", "tre"}, `unknown command "tre", did you mean tree?`, "sessiontree help [COMMAND] [flags]"},
		{[]string{"help", "tree", "x"}, `unknown command "x"`, "sessiontree help [COMMAND] [flags]"},
		{[]string{"help", "completion", "nope"}, `unknown command "nope"`, "sessiontree help [COMMAND] [flags]"},
		{[]string{"completion", "nope"}, `unknown command "nope"`, "sessiontree completion COMMAND [flags]"},
		{[]string{"completion", "bas"}, `unknown command "bas", did you mean bash?`, "sessiontree completion COMMAND [flags]"},
		{[]string{"completion", "bash", "x"}, `unknown command "x"`, "sessiontree completion bash"},
		{[]string{"conformance", "a", "b"}, "one folder of vectors, not 2", "sessiontree conformance [DIR] [flags]"},
		{[]string{"conformance", "--backend", "tape"}, `--backend is memory, jsonl or sqlite, not "tape"`, "sessiontree conformance [DIR] [flags]"},
		{[]string{"conformance", "--filter", "["}, `--filter "[" is no pattern`, "sessiontree conformance [DIR] [flags]"},
	} {
		t.Run(strings.Join(test.args, " "), func(t *testing.T) {
			a := ask(test.args...)
			if a.code != exitUsage || a.stdout != "" {
				t.Errorf("exit %d, stdout %q", a.code, a.stdout)
			}
			if !strings.HasPrefix(a.stderr, "sessiontree: "+test.says) || !strings.Contains(a.stderr, "\nUsage: "+test.and+"\nTry '") {
				t.Errorf("stderr is %s", a.stderr)
			}
			checkSafe(t, "usage", a)
			a = ask(append([]string{"--json"}, test.args...)...)
			if a.code != exitUsage {
				t.Errorf("with --json: exit %d", a.code)
			}
			if v := checkJSON(t, a); !v.Get("error").Get("code").Is("usage") {
				t.Errorf("with --json: %s", a.stderr)
			}
		})
	}
}

func TestErrors(t *testing.T) {
	dir := t.TempDir()
	write := func(name, text string) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	absent := filepath.Join(dir, "absent.jsonl")
	readme := write("README.md", "# No session\n")
	old := write("old.jsonl", `{"type":"session","version":1,"id":"a","timestamp":"2026-01-01T00:00:00.000Z","cwd":"/"}`+"\n")
	every := filepath.Join("testdata", "every-kind.jsonl")
	for _, test := range []struct {
		args []string
		code string
		says string
	}{
		{[]string{"tree", absent}, "not_found", absent},
		{[]string{"stats", absent}, "not_found", absent},
		{[]string{"branch", absent}, "not_found", absent},
		{[]string{"context", absent}, "not_found", absent},
		{[]string{"tree", dir}, "storage", dir},
		{[]string{"tree", readme}, "invalid_session", readme},
		{[]string{"tree", old}, "invalid_session", old},
		{[]string{"tree", filepath.Join("testdata", "broken.jsonl"), "--strict"}, "invalid_entry", "line 4"},
		{[]string{"branch", every, "--from", "gone"}, "not_found", every},
		{[]string{"branch", every, "--from", ""}, "not_found", every},
		{[]string{"context", every, "--from", "gone"}, "not_found", every},
		{[]string{"branch", filepath.Join("testdata", "broken.jsonl")}, "invalid_session", "nowhere"},
		{[]string{"branch", filepath.Join("testdata", "broken.jsonl"), "--from", "loop1"}, "invalid_session", "loop1"},
		{[]string{"context", filepath.Join("testdata", "broken.jsonl"), "--from", "island"}, "invalid_session", "lost"},
		{[]string{"conformance", absent}, "not_found", absent},
		{[]string{"conformance", readme}, "not_found", readme},
		{[]string{"conformance", dir}, "not_found", dir},
		{[]string{"conformance", "--filter", "no-such-case-*"}, "not_found", "no-such-case-*"},
	} {
		t.Run(strings.Join(test.args, " "), func(t *testing.T) {
			a := ask(test.args...)
			if a.code != exitFailed || a.stdout != "" || !strings.HasPrefix(a.stderr, "sessiontree: ") || !strings.Contains(a.stderr, test.says) {
				t.Errorf("exit %d, stdout %q, stderr %q", a.code, a.stdout, a.stderr)
			}
			if strings.Count(a.stderr, "\n") != 1 {
				t.Errorf("the error has more than a line: %q", a.stderr)
			}
			a = ask(append(test.args, "--json")...)
			if v := checkJSON(t, a); a.code != exitFailed || !v.Get("error").Get("code").Is(test.code) {
				t.Errorf("with --json: exit %d, %s", a.code, a.stderr)
			}
		})
	}
}

// A file's name is as hostile as its contents.
func TestHostileFileName(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("no such names there")
	}
	path := filepath.Join(t.TempDir(), "a\x1b[31m\u202eb\n.jsonl")
	text, err := os.ReadFile("testdata/broken.jsonl")
	if err != nil {
		t.Fatal(err)
	}
	for _, args := range [][]string{{"tree"}, {"stats"}, {"branch"}, {"tree", "--strict"}, {"tree", "--json"}, {"branch", "--json"}} {
		os.Remove(path)
		checkSafe(t, "absent", ask(append(args, path)...))
		if err := os.WriteFile(path, text, 0o600); err != nil {
			t.Fatal(err)
		}
		checkSafe(t, "broken", ask(append(args, path)...))
	}
}

func TestHelp(t *testing.T) {
	if a := ask(); a.code != exitOK || !strings.Contains(a.stdout, "Exit codes:") {
		t.Errorf("without arguments: exit %d, %s", a.code, a.stdout)
	}
	for line := range strings.SplitSeq(rootLong, "\n") {
		if cells.StringWidth(line) > 80 {
			t.Errorf("a line of the help is wider than 80 cells: %s", line)
		}
	}
	for _, command := range []string{"demo", "tree", "branch", "context", "stats", "list", "create", "append", "move", "label", "name", "fork", "delete", "verify", "check", "rebuild", "repair", "purge", "health", "backup", "compact", "conformance"} {
		a := ask(command, "--help")
		if a.code != exitOK || a.stderr != "" || !strings.Contains(a.stdout, "--json") || !strings.Contains(a.stdout, "\n--json") {
			t.Errorf("%s: exit %d, %s", command, a.code, a.stdout)
		}
		for _, line := range strings.Split(a.stdout, "\n") {
			if cells.StringWidth(line) > 80 && !strings.Contains(line, "  --") {
				t.Errorf("%s: a line of the help is wider than 80 cells: %s", command, line)
			}
		}
	}
}

// help COMMAND and COMMAND --help are the same, groups of commands included.
func TestHelpCommand(t *testing.T) {
	for _, command := range [][]string{nil, {"tree"}, {"help"}, {"completion"}, {"completion", "bash"}} {
		a, b := ask(append([]string{"help"}, command...)...), ask(append(command, "--help")...)
		if a != b || a.code != exitOK || a.stdout == "" {
			t.Errorf("help %q: exit %d, %s\nnot %s", command, a.code, a.stdout, b.stdout)
		}
	}
	if a, b := ask("completion"), ask("completion", "--help"); a != b {
		t.Errorf("completion alone: exit %d, %s", a.code, a.stdout)
	}
	if a := ask("completion", "bash"); a.code != exitOK || !strings.Contains(a.stdout, "complete") {
		t.Errorf("completion bash: exit %d, %s", a.code, a.stderr)
	}
}

func TestVersion(t *testing.T) {
	if a := ask("--version"); a.code != exitOK || !strings.HasPrefix(a.stdout, "sessiontree ") || !strings.Contains(a.stdout, runtime.Version()) {
		t.Errorf("exit %d, %q", a.code, a.stdout)
	}
	if v := checkJSON(t, ask("--version", "--json")); v.Get("version").Kind() != js.String {
		t.Errorf("%s", v.JSON())
	}
}

// failing is a stdout that takes so many bytes.
type failing struct {
	left int
	err  error
}

func (f *failing) Write(p []byte) (int, error) {
	if len(p) > f.left {
		return 0, f.err
	}
	f.left -= len(p)
	return len(p), nil
}

func TestClosedPipe(t *testing.T) {
	for _, err := range []error{syscall.EPIPE, &fs.PathError{Op: "write", Path: "|1", Err: syscall.EPIPE}, io.ErrClosedPipe} {
		for _, args := range [][]string{{"tree", "testdata/every-kind.jsonl"}, {"tree", "testdata/broken.jsonl", "--json"}, {"stats", "testdata/broken.jsonl"}, {"--help"}} {
			var stderr bytes.Buffer
			if code := run(context.Background(), args, nil, &failing{0, err}, &stderr); code != exitOK || strings.Contains(stderr.String(), "pipe") {
				t.Errorf("%q, %v: exit %d, stderr %q", args, err, code, stderr.String())
			}
		}
	}
}

func TestFullDisk(t *testing.T) {
	var stderr bytes.Buffer
	code := run(context.Background(), []string{"tree", "testdata/every-kind.jsonl"}, nil, &failing{0, errors.New("no space left")}, &stderr)
	if code != exitFailed || stderr.String() != "sessiontree: no space left\n" {
		t.Errorf("exit %d, stderr %q", code, stderr.String())
	}
}

func TestCancelled(t *testing.T) {
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	var stdout, stderr bytes.Buffer
	if code := run(ctx, []string{"stats", "testdata/every-kind.jsonl"}, nil, &stdout, &stderr); code != exitFailed || !strings.Contains(stderr.String(), "canceled") {
		t.Errorf("exit %d, stderr %q", code, stderr.String())
	}
}

// No command changes a session file.
func TestReadsOnly(t *testing.T) {
	for _, name := range []string{"broken.jsonl", "hostile.jsonl"} {
		before, err := os.ReadFile(filepath.Join("testdata", name))
		if err != nil {
			t.Fatal(err)
		}
		dir := t.TempDir()
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, before, 0o600); err != nil {
			t.Fatal(err)
		}
		for _, command := range []string{"tree", "branch", "context", "stats"} {
			ask(command, path)
		}
		after, err := os.ReadFile(path)
		if err != nil || !bytes.Equal(before, after) {
			t.Errorf("%s has changed (%v)", name, err)
		}
		if files, _ := os.ReadDir(dir); len(files) != 1 {
			t.Errorf("there is more than the session: %v", files)
		}
	}
}
