package main

import (
	"bytes"
	"context"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"
)

// words are what people, scripts and files put into arguments.
var words = []string{
	"", "-", "--", "---", "=", "-x", "--=", "-1", "0", "1", "007", "99999999999999999999", "1e9", "NaN", "true",
	"story", "sto", "storage", "q1", "a1", "root", "user", "assistant", "branch", "catalog", "before", "at", "always", "json", "csv",
	"\x1b[31mred\x1b[0m", "\x1b]0;title\a", "\u202eright to left", "\u2066", "\x00", "a\nb", "\r", "\t", "\x7f", "\u009b31m", "\u2028", "\ufeff",
	"💥", "日本語", "e\u0301", "\xff\xfe", "\xed\xa0\x80", "%s%n%d", "'; DROP TABLE events; --", "../../x", "..", ".", "/", "C:\\x", "NUL",
	"story.jsonl", "broken.jsonl", "README.md", "sessions.db", "folder", "folder/deeper", "absent.jsonl", strings.Repeat("x", 5000),
	`{"role":"user","content":"x"}`, `{"message":{}}`, "[", "*", "{", `"`,
}

// slow are commands that take long, or go on until they are stopped.
var slow = map[string]time.Duration{"bench": 0, "conformance": 0, "follow": 50 * time.Millisecond}

// TestHostileArguments calls all commands with all their flags and arguments that
// make no sense, or the wrong one. They answer, fail or say how they are used; they
// never panic, and do nothing to a terminal.
func TestHostileArguments(t *testing.T) {
	checks := "150"
	if long {
		checks = "20000"
	}
	if err := flag.Set("rapid.checks", checks); err != nil {
		t.Fatal(err)
	}
	commands := commandFlags(t)
	db := newDatabase(t)
	fresh, err := os.ReadFile(db)
	if err != nil {
		t.Fatal(err)
	}
	broken, err := os.ReadFile("testdata/hostile.jsonl")
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	t.Chdir(dir)
	t.Setenv("HOME", dir)
	t.Setenv("XDG_DATA_HOME", dir)
	t.Setenv(databaseVariable, filepath.Join(dir, "sessions.db"))
	names := []string{}
	for name := range commands {
		if wait, isSlow := slow[name]; !isSlow || wait > 0 {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	seen := map[int]int{}
	rapid.Check(t, func(rt *rapid.T) {
		for name, text := range map[string][]byte{"sessions.db": fresh, "story.jsonl": broken, "broken.jsonl": broken[:len(broken)/2], "README.md": []byte("# no session\n")} {
			os.RemoveAll(name)
			if err := os.WriteFile(name, text, 0o600); err != nil {
				rt.Fatal(err)
			}
		}
		for _, name := range []string{"sessions.db-wal", "sessions.db-shm"} { // of another database
			os.Remove(name)
		}
		os.MkdirAll("folder", 0o700)
		args := []string{rapid.SampledFrom(names).Draw(rt, "command")}
		flags := append([]string{"session", "db", "json", "color", "width"}, commands[args[0]]...)
		word := rapid.OneOf(rapid.SampledFrom(words), rapid.String())
		most := 6
		if slices.Contains(flags[5:], "session") && rapid.Bool().Draw(rt, "session") { // what makes sense, but for little
			args, most = append(args, "--session", "story"), 2
		}
		for range rapid.IntRange(0, most).Draw(rt, "arguments") {
			switch w := word.Draw(rt, "word"); rapid.IntRange(0, 3).Draw(rt, "kind") {
			case 0:
				args = append(args, "--"+rapid.SampledFrom(flags).Draw(rt, "flag")+"="+w)
			case 1:
				args = append(args, "--"+rapid.SampledFrom(flags).Draw(rt, "flag"), w)
			case 2:
				args = append(args, "--"+rapid.SampledFrom(flags).Draw(rt, "flag"))
			default:
				args = append(args, w)
			}
		}
		stdin := word.Draw(rt, "stdin")
		ctx, cancel := context.WithCancel(context.Background())
		defer cancel()
		if wait := slow[args[0]]; wait > 0 {
			time.AfterFunc(wait, cancel)
		}
		var stdout, stderr bytes.Buffer
		code := run(ctx, args, strings.NewReader(stdin), &stdout, &stderr)
		seen[code]++
		if code != exitOK && code != exitFailed && code != exitUsage {
			rt.Errorf("%q: exit %d", args, code)
		}
		if code != exitOK && stderr.Len()+stdout.Len() == 0 {
			rt.Errorf("%q: exit %d without a word", args, code)
		}
		if code == exitUsage && stdout.Len() > 0 {
			rt.Errorf("%q: wrong usage, and the answer %q", args, &stdout)
		}
		text := sgr.ReplaceAllString(stdout.String(), "") // colours may be asked for
		for _, said := range []string{text, stderr.String()} {
			if why := unsafe(said); why != "" && !slices.Contains(plainText, args[0]) {
				rt.Errorf("%q: the output holds %s: %q", args, why, said)
			}
		}
	})
	t.Logf("exit codes: %v", seen)
	for code := range 3 {
		if seen[code] == 0 && !testing.Short() { // which runs a fifth
			t.Errorf("no run ended with %d", code)
		}
	}
}

// plainText are commands whose output is a file's, byte for byte, or a script.
var plainText = []string{"export", "completion"}

// unsafe says what a text could do to a terminal.
func unsafe(text string) string {
	if !isValid(text) {
		return "what is no UTF-8"
	}
	for _, r := range text {
		if r != '\n' && hostile(r) {
			return fmt.Sprintf("%U", r)
		}
	}
	return ""
}

var (
	commandLine = regexp.MustCompile(`(?m)^  ([a-z]+) +[A-Z]`)
	flagName    = regexp.MustCompile(`--([a-z][a-z-]+)`)
)

// commandFlags are the commands, each with its flags, as the help has them.
func commandFlags(t *testing.T) map[string][]string {
	t.Helper()
	commands := map[string][]string{}
	for _, m := range commandLine.FindAllStringSubmatch(ask("--help").stdout, -1) {
		var flags []string
		for _, f := range flagName.FindAllStringSubmatch(ask(m[1], "--help").stdout, -1) {
			flags = append(flags, f[1])
		}
		slices.Sort(flags)
		commands[m[1]] = slices.Compact(flags)
	}
	for _, name := range []string{"tree", "append", "import", "verify", "demo"} {
		if !slices.Contains(commands[name], "json") && name != "demo" {
			t.Fatalf("the help has no flags of %s: %v", name, commands)
		}
	}
	return commands
}
