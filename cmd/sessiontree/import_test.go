package main

import (
	"bytes"
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// sessionsFolder is a folder as Pi keeps it, with a file of each kind of fortune.
func sessionsFolder(t *testing.T) string {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "sessions")
	for name, text := range map[string]string{
		"--shop--/2026-01-01T00-00-00-000Z_good.jsonl":    header3("good", "/shop") + userSays("q1", "") + "\n" + userSays("q2", "q1") + "\n",
		"--shop--/2026-01-02T00-00-00-000Z_damaged.jsonl": header3("damaged", "/shop") + userSays("q1", "") + "\nju\x1bnk\n" + userSays("q2", "q1") + "\n",
		"--disk--/2025-01-01T00-00-00-000Z_old.jsonl":     `{"type":"session","id":"old","timestamp":"2025-01-01T00:00:00.000Z","cwd":"/disk"}` + "\r\n" + `{"type":"message","timestamp":"2025-01-01T00:00:01.000Z","message":{"role":"user","content":"Hi."}}`,
		"--disk--/no-session.jsonl":                       "{}\n",
		"--disk--/notes.txt":                              "no session, and nobody looks",
	} {
		path := filepath.Join(dir, name)
		require.NoError(t, os.MkdirAll(filepath.Dir(path), 0o700))
		require.NoError(t, os.WriteFile(path, []byte(text), 0o600))
	}
	return dir
}

func header3(id, cwd string) string {
	return `{"type":"session","version":3,"id":"` + id + `","timestamp":"2026-01-01T00:00:00.000Z","cwd":"` + cwd + `"}` + "\n"
}

// withoutPaths makes an answer independent of where the test runs, and of the
// order in which files were done.
func withoutPaths(a answer, dirs ...string) answer {
	for i, dir := range dirs {
		a.stdout = strings.ReplaceAll(a.stdout, dir, string(rune('A'+i)))
		a.stderr = strings.ReplaceAll(a.stderr, dir, string(rune('A'+i)))
	}
	return a
}

func TestImportAndExport(t *testing.T) {
	dir := sessionsFolder(t)
	t.Setenv(databaseVariable, filepath.Join(t.TempDir(), "sessions.db"))
	first := withoutPaths(ask("import", dir), dir)
	lines := strings.Split(strings.TrimSuffix(first.stdout, "\n"), "\n")
	last := lines[len(lines)-1]
	slices.Sort(lines)
	assert.Equal(t, []string{
		"  Invalid session file A/--disk--/no-session.jsonl: first line is not a valid session header",
		last,
		"damaged    A/--shop--/2026-01-02T00-00-00-000Z_damaged.jsonl  damaged  2 new entries, 1 damaged place",
		"imported   A/--disk--/2025-01-01T00-00-00-000Z_old.jsonl  old  1 new entry",
		"imported   A/--shop--/2026-01-01T00-00-00-000Z_good.jsonl  good  2 new entries",
		"refused    A/--disk--/no-session.jsonl",
	}, lines)
	assert.Equal(t, "4 files: 2 imported, 1 damaged, 1 refused; 5 new entries", last)
	assert.Equal(t, exitFailed, first.code)

	require.NoError(t, os.Remove(filepath.Join(dir, "--disk--", "no-session.jsonl")))
	assert.Equal(t, answer{"3 files: 3 unchanged; 0 new entries\n", "", exitOK}, ask("import", dir))
	assert.Equal(t, answer{"3 files: 3 unchanged; 0 new entries\n", "", exitOK}, ask("import", "--verify", dir))

	// Out again, under Pi's names and byte for byte.
	out := filepath.Join(t.TempDir(), "out")
	all := withoutPaths(ask("export", "--all", "--to", out), out)
	require.Equal(t, exitOK, all.code, all.stderr)
	for _, name := range []string{"--shop--/2026-01-01T00-00-00-000Z_good.jsonl", "--disk--/2025-01-01T00-00-00-000Z_old.jsonl"} {
		want, err := os.ReadFile(filepath.Join(dir, name))
		require.NoError(t, err)
		got, err := os.ReadFile(filepath.Join(out, name))
		require.NoError(t, err)
		assert.Equal(t, string(want), string(got))
		info, err := os.Stat(filepath.Join(out, name))
		require.NoError(t, err)
		assert.Equal(t, os.FileMode(0o600), info.Mode().Perm())
	}
	again := ask("export", "--all", "--to", out)
	assert.Equal(t, exitOK, again.code)
	assert.Equal(t, 3, strings.Count(again.stdout, "(was there)"))
	path := filepath.Join(out, "--shop--", "2026-01-01T00-00-00-000Z_good.jsonl")
	require.NoError(t, os.WriteFile(path, []byte("mine"), 0o600))
	refused := ask("export", "good", "--to", path)
	assert.Equal(t, exitFailed, refused.code)
	assert.Contains(t, refused.stderr, "is there already, with other contents")
	b, err := os.ReadFile(path)
	require.NoError(t, err)
	assert.Equal(t, "mine", string(b))

	v3 := ask("export", "old", "--as", "v3")
	assert.Contains(t, v3.stdout, `"version":3}`+"\n"+`{"type":"message","timestamp"`)
	assert.Contains(t, v3.stdout, `"parentId":null}`+"\n")

	damage := withoutPaths(ask("damage"), dir)
	assert.Regexp(t, `^A/--shop--/2026-01-02T00-00-00-000Z_damaged.jsonl:3: 5 bytes from offset 229 set aside: .*not valid JSON.*\n  ju\\x1bnk\n1 damaged place\n$`, damage.stdout)
	checkSafe(t, "damage", damage)
	assert.Equal(t, "0 damaged places\n", ask("damage", "good").stdout)
}

func TestImportTellsOfAnotherHistory(t *testing.T) {
	dir := sessionsFolder(t)
	t.Setenv(databaseVariable, filepath.Join(t.TempDir(), "sessions.db"))
	path := filepath.Join(dir, "--shop--", "2026-01-01T00-00-00-000Z_good.jsonl")
	require.Equal(t, exitOK, ask("import", path).code)
	require.Equal(t, exitOK, ask("append", "--session", "good", "--id", "here1", "Appended here.").code)
	b, err := os.ReadFile(path)
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(path, append(b, userSays("there1", "q2")+"\n"...), 0o600))

	a := withoutPaths(ask("import", path), dir)
	assert.Equal(t, exitFailed, a.code)
	assert.Contains(t, a.stdout, "    in the file: there1 user  says there1\n    here: here1 user  Appended here.\n")
	var told struct {
		Files []struct {
			Outcome  string
			Error    struct{ Code string }
			Diverged struct {
				Shared     int
				File, Here []struct{ ID string }
			}
		}
	}
	require.NoError(t, json.Unmarshal([]byte(ask("import", "--json", path).stdout), &told))
	require.Len(t, told.Files, 1)
	assert.Equal(t, "refused", told.Files[0].Outcome)
	assert.Equal(t, "conflict", told.Files[0].Error.Code)
	assert.Equal(t, 2, told.Files[0].Diverged.Shared)
	assert.Equal(t, "there1", told.Files[0].Diverged.File[0].ID)
	assert.Equal(t, "here1", told.Files[0].Diverged.Here[0].ID)

	assert.Equal(t, answer{"the same up to entry 2, then:\n  A/--shop--/2026-01-01T00-00-00-000Z_good.jsonl: there1 user  says there1 (of 3 entries)\n  session good: here1 user  Appended here. (of 3 entries)\nanother leaf:\n  A/--shop--/2026-01-01T00-00-00-000Z_good.jsonl: there1\n  session good: here1\n", "", exitFailed},
		withoutPaths(ask("diff", path, "good"), dir))
	forked := ask("import", "--fork", path)
	require.Equal(t, exitOK, forked.code, forked.stdout)
	id := strings.Fields(forked.stdout)[2]
	assert.Equal(t, answer{"the same 3 entries\nthe same leaf: there1\n", "", exitOK}, ask("diff", path, id))

	require.Equal(t, exitOK, ask("delete", "--session", "good", "--yes").code)
	older := filepath.Join(dir, "older.jsonl")
	require.NoError(t, os.WriteFile(older, b, 0o600))
	gone := ask("import", older)
	assert.Equal(t, exitFailed, gone.code)
	assert.Contains(t, gone.stdout, "was deleted here")
	assert.Equal(t, exitOK, ask("import", "--restore", older).code)
}

func TestFollowCommand(t *testing.T) {
	dir := sessionsFolder(t)
	db := filepath.Join(t.TempDir(), "sessions.db")
	ctx, stop := context.WithCancel(context.Background())
	var stdout, stderr bytes.Buffer
	done := make(chan int)
	go func() {
		done <- run(ctx, []string{"follow", dir, "--db", db, "--json"}, nil, &stdout, &stderr)
	}()
	imported := func(id string, entries int) bool {
		a := ask("list", "--json", "--db", db)
		var list struct {
			Sessions []struct {
				ID      string
				Entries int
			}
		}
		json.Unmarshal([]byte(a.stdout), &list)
		return slices.ContainsFunc(list.Sessions, func(s struct {
			ID      string
			Entries int
		}) bool {
			return s.ID == id && s.Entries == entries
		})
	}
	require.Eventually(t, func() bool { return imported("good", 2) }, time.Minute, 20*time.Millisecond)
	f, err := os.OpenFile(filepath.Join(dir, "--shop--", "2026-01-01T00-00-00-000Z_good.jsonl"), os.O_APPEND|os.O_WRONLY, 0)
	require.NoError(t, err)
	_, err = f.WriteString(userSays("q3", "q2") + "\n")
	require.NoError(t, err)
	require.NoError(t, f.Close())
	require.Eventually(t, func() bool { return imported("good", 3) }, time.Minute, 20*time.Millisecond)
	stop()
	assert.Equal(t, exitOK, <-done)
	assert.Empty(t, stderr.String())
	assert.Equal(t, 5, strings.Count(stdout.String(), "\n"), "four files, one of them refused, and the new entry: %s", stdout.String())
}

func TestImportUsage(t *testing.T) {
	db := filepath.Join(t.TempDir(), "none.db")
	for _, args := range [][]string{
		{"import"}, {"export"}, {"export", "a", "b"}, {"export", "--all"}, {"export", "a", "--as", "pdf"}, {"export", "a", "--json"},
		{"diff", "a"}, {"damage", "a", "b"}, {"follow"}, {"export", "--all", "x", "--to", "y"},
	} {
		assert.Equal(t, exitUsage, ask(append(args, "--db", db)...).code, args)
	}
	for _, args := range [][]string{{"import", filepath.Join(t.TempDir(), "missing")}, {"export", "a"}, {"damage"}, {"diff", "a", "b"}} {
		assert.Equal(t, exitFailed, ask(append(args, "--db", db)...).code, args)
	}
	_, err := os.Stat(db)
	assert.True(t, os.IsNotExist(err), "no database was made")
}

// Pages hold what they should, and no text brings anything else into one.
func TestPages(t *testing.T) {
	t.Setenv(databaseVariable, filepath.Join(t.TempDir(), "sessions.db"))
	for _, name := range []string{"every-kind", "hostile", "suspicious"} {
		require.Equal(t, exitOK, ask("import", "testdata/"+name+".jsonl").code, name)
		b, err := os.ReadFile("testdata/" + name + ".jsonl")
		require.NoError(t, err)
		var header struct{ ID string }
		first, _, _ := strings.Cut(string(b), "\n")
		require.NoError(t, json.Unmarshal([]byte(first), &header))
		id := header.ID
		golden(t, name+"-markdown", ask("export", id, "--as", "markdown"))
		golden(t, name+"-html", ask("export", id, "--as", "html"))
	}
	// A session that tries to get out.
	attack := "</pre></details><script>alert(1)</script><img src=x onerror=alert(1)> ```\n# no heading\n````\n[x](javascript:alert(1)) \x1b]0;t\x07\u202e"
	text, err := json.Marshal(attack)
	require.NoError(t, err)
	path := sessionFile(t,
		`{"type":"message","id":"<b>\"'`+"`"+`</b>","parentId":null,"timestamp":"<i>","message":{"role":"<script>","content":`+string(text)+`}}`,
		`{"type":"session_info","id":"n","parentId":"<b>\"'`+"`"+`</b>","timestamp":"x","name":`+string(text)+`}`,
		`{"type":"label","id":"l","parentId":"n","timestamp":"x","targetId":"<b>\"'`+"`"+`</b>","label":`+string(text)+`}`)
	require.Equal(t, exitOK, ask("import", path).code)
	page := ask("export", "test", "--as", "html")
	require.Equal(t, exitOK, page.code, page.stderr)
	checkSafe(t, "html", page)
	tags := regexp.MustCompile(`<[^>]*>`).FindAllString(page.stdout, -1)
	for _, tag := range tags {
		assert.Regexp(t, `^</?(html|head|meta|title|style|body|h1|dl|dt|dd|main|details|summary|span|pre|p)\b|^<!DOCTYPE`, tag)
		assert.NotContains(t, tag, "onerror")
	}
	document := ask("export", "test", "--as", "markdown")
	checkSafe(t, "markdown", document)
	assert.NotRegexp(t, `(?m)^# no heading$`, outsideFences(document.stdout))
	assert.NotContains(t, outsideFences(document.stdout), "<script>")
}

// outsideFences is a Markdown text without its fenced blocks.
func outsideFences(s string) string {
	var out []string
	fence := ""
	for line := range strings.SplitSeq(s, "\n") {
		ticks := line[:len(line)-len(strings.TrimLeft(line, "`"))]
		switch {
		case fence == "" && len(ticks) >= 3:
			fence = ticks
		case fence != "" && line == ticks && len(ticks) >= len(fence):
			fence = ""
		case fence == "":
			out = append(out, line)
		}
	}
	return strings.Join(out, "\n")
}

// The commands of the README's section on import and export run, in their order.
func TestTheReadmesImportAndExportRun(t *testing.T) {
	readme, err := os.ReadFile("../../README.md")
	require.NoError(t, err)
	_, section, ok := strings.Cut(string(readme), "\n## Bring your sessions")
	require.True(t, ok, "the section is there")
	_, block, _ := strings.Cut(section, "```sh\n")
	block, _, _ = strings.Cut(block, "```")
	dir := sessionsFolder(t)
	require.NoError(t, os.Remove(filepath.Join(dir, "--disk--", "no-session.jsonl")))
	t.Setenv(databaseVariable, filepath.Join(t.TempDir(), "sessions.db"))
	t.Chdir(t.TempDir())
	ran := 0
	for line := range strings.Lines(block) {
		command, _, _ := strings.Cut(line, "#")
		args := strings.Fields(command)
		require.Equal(t, "sessiontree", args[0])
		for i := range args {
			switch args[i] {
			case "~/.pi/agent/sessions":
				args[i] = dir
			case "SESSION":
				args[i] = "good"
			case "FILE":
				args[i] = filepath.Join(dir, "--shop--", "2026-01-01T00-00-00-000Z_good.jsonl")
			}
		}
		ctx := context.Background()
		if args[1] == "follow" {
			interrupted, cancel := context.WithTimeout(ctx, 100*time.Millisecond)
			defer cancel()
			ctx = interrupted
		}
		var stdout, stderr bytes.Buffer
		code := run(ctx, args[1:], nil, &stdout, &stderr)
		assert.Equal(t, exitOK, code, "%s: %s", line, stderr.String())
		ran++
	}
	assert.Equal(t, 10, ran)
	for _, made := range []string{"tree.html", "backup/--shop--/2026-01-01T00-00-00-000Z_good.jsonl"} {
		_, err := os.Stat(made)
		assert.NoError(t, err)
	}
}
