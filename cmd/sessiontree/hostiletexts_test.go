package main

import (
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/sessiontree/sessiontree/eventlog/js"
)

// evil is a text with all that could harm a terminal, a page, a path or a database.
const evil = "x\x1b]0;owned\a\x1b[2J\u202e\u2066\u009b31m<script>alert(1)</script><img src=x onerror=alert(1)>'\"; DROP TABLE events; --../../x\r\n=cmd()"

// hostileSession is a session file in which every text is evil.
func hostileSession(id string) string {
	lines := []string{
		`{"type":"session","version":3,"id":ID,"timestamp":"2026-05-04T10:00:00.000Z","cwd":"/tmp/EVIL"}`,
		`{"type":"message","id":"EVIL1","parentId":null,"timestamp":"2026-05-04T10:00:01.000Z","message":{"role":"user","content":"needle EVIL"}}`,
		`{"type":"message","id":"EVIL2","parentId":"EVIL1","timestamp":"2026-05-04T10:00:02.000Z","message":{"role":"assistant","provider":"EVIL","model":"EVIL","content":[{"type":"thinking","thinking":"EVIL"},{"type":"text","text":"needle EVIL"},{"type":"toolCall","id":"EVIL","name":"EVIL","arguments":{"EVIL":"EVIL","path":"EVIL"}},{"type":"toolCall","id":"EVIL2","name":"EVIL","arguments":{}}],"usage":{"input":10,"output":5,"cacheRead":0,"cacheWrite":0,"cost":{"total":0.5}}}}`,
		`{"type":"message","id":"EVIL3","parentId":"EVIL2","timestamp":"2026-05-04T10:00:03.000Z","message":{"role":"toolResult","toolCallId":"EVIL","toolName":"EVIL","content":[{"type":"text","text":"needle EVIL"}],"isError":true}}`,
		`{"type":"model_change","id":"EVIL4","parentId":"EVIL3","timestamp":"2026-05-04T10:00:04.000Z","provider":"EVIL","modelId":"EVIL"}`,
		`{"type":"thinking_level_change","id":"EVIL5","parentId":"EVIL4","timestamp":"EVIL","thinkingLevel":"EVIL"}`,
		`{"type":"compaction","id":"EVIL6","parentId":"EVIL5","timestamp":"2026-05-04T10:00:05.000Z","summary":"needle EVIL","firstKeptEntryId":"EVIL1","tokensBefore":10}`,
		`{"type":"branch_summary","id":"EVIL7","parentId":"EVIL2","timestamp":"2026-05-04T10:00:06.000Z","fromId":"EVIL6","summary":"needle EVIL"}`,
		`{"type":"custom_message","id":"EVIL8","parentId":"EVIL7","timestamp":"2026-05-04T10:00:07.000Z","customType":"EVIL","content":"needle EVIL","display":true}`,
		`{"type":"EVIL","id":"EVIL9","parentId":"EVIL8","timestamp":"2026-05-04T10:00:08.000Z","EVIL":"EVIL"}`,
		`{"type":"label","id":"EVIL10","parentId":"EVIL9","timestamp":"2026-05-04T10:00:09.000Z","targetId":"EVIL1","label":"needle EVIL"}`,
		`{"type":"session_info","id":"EVIL11","parentId":"EVIL10","timestamp":"2026-05-04T10:00:10.000Z","name":"needle EVIL"}`,
		`{"type":"message","id":"EVIL12","parentId":"EVIL11","timestamp":"2026-05-04T10:00:11.000Z","message":{"role":"EVIL","content":"needle EVIL"}}`,
		"junk " + strings.ReplaceAll(evil, "\n", ""),
		`{"type":"message","id":"EVIL13","parentId":"EVIL-lost","timestamp":"2026-05-04T10:00:12.000Z","message":{"role":"user","content":"needle EVIL"}}`,
	}
	quoted := strings.Trim(js.Text(evil).JSON(), `"`)
	return strings.NewReplacer("EVIL", quoted, "ID", js.Text(id).JSON()).Replace(strings.Join(lines, "\n") + "\n")
}

// TestReport_M1_L4_HostileTextsHarmNobody has a database in which every text is evil:
// no command lets one reach a terminal, a page or a path alive.
func TestReport_M1_L4_HostileTextsHarmNobody(t *testing.T) {
	dir := t.TempDir()
	db := filepath.Join(dir, "sessions.db")
	folder := filepath.Join(dir, "in", "\x1b[31m\u202efolder<b>")
	require.NoError(t, os.MkdirAll(folder, 0o700))
	id := "../../" + evil
	file := filepath.Join(folder, "\x1b[2J.jsonl")
	require.NoError(t, os.WriteFile(file, []byte(hostileSession(id)), 0o600))
	out := filepath.Join(dir, "out")
	require.NoError(t, os.MkdirAll(out, 0o700))
	var imported answer
	asked := map[string]bool{}
	check := func(want int, args ...string) answer {
		t.Helper()
		a := ask(append(args, "--db", db)...)
		if want == exitOK || a.code == exitOK {
			require.Equal(t, want, a.code, "%q: %s%s", args, a.stdout, a.stderr)
		}
		for _, said := range []string{a.stdout, a.stderr} {
			require.Empty(t, unsafe(said), "%q", args)
		}
		asked[args[0]] = true
		return a
	}
	imported = check(exitOK, "import", folder)
	require.Contains(t, imported.stdout, "damaged")
	require.Contains(t, check(exitOK, "import", folder, "--json").stdout, "unchanged")

	for _, args := range [][]string{
		{"tree", "--session", id, "--all"}, {"branch", "--session", id, "--from", evil + "8"}, {"context", "--session", id, "--from", evil + "8"},
		{"context", "--session", id, "--from", evil + "8", "--llm"}, {"stats", "--session", id}, {"list"}, {"damage"}, {"damage", id},
		{"search", "needle"}, {"search", "needle", "--rank"}, {"search", "script alert"}, {"search", evil},
		{"usage", "--by", "model"}, {"usage", "--by", "cwd"}, {"usage", "--by", "session"}, {"usage", "--by", "provider"}, {"usage", "--by", "branch"}, {"usage", "--explain"},
		{"tools"}, {"tools", "--session", id}, {"branches"}, {"branches", "--session", id}, {"compactions"},
		{"query", "SELECT id, payload FROM events"}, {"query", "SELECT * FROM v_tool_calls"}, {"query", "SELECT * FROM v_usage"},
		{"verify"}, {"check"}, {"health"}, {"import", "--verify", folder},
	} {
		check(exitOK, args...)
		check(exitOK, append(args, "--json")...)
		check(exitOK, append(args, "--width", "30")...)
	}
	for _, args := range [][]string{
		{"tree", "--session", evil}, {"branch", "--session", id, "--from", evil}, {"append", "--session", evil, "x"}, {"move", "--session", id, evil},
		{"label", "--session", id, evil, evil}, {"fork", "--session", id, "--entry", evil}, {"convert", "--session", evil, "--to", "harness"}, {"export", evil},
		{"tree", evil}, {"import", filepath.Join(folder, evil)}, {"diff", evil, evil}, {"query", evil}, {"backup", db}, {"delete", "--session", evil, "--yes"},
	} {
		check(exitFailed, args...)
		check(exitFailed, append(args, "--json")...)
	}
	check(exitUsage, "usage", "--by", evil)
	check(exitUsage, "list", "--after", evil)
	check(exitUsage, "search", "x", "--in", evil)
	check(exitUsage, "export", id, "--as", evil)
	check(exitUsage, evil)
	check(exitUsage, "tree", "--"+evil)

	// What goes into a page is text.
	page := filepath.Join(out, "usage.html")
	check(exitOK, "usage", "--html", page)
	text, err := os.ReadFile(page)
	require.NoError(t, err)
	require.NotContains(t, string(text), "<script>alert(1)")
	require.NotContains(t, string(text), "<img src=x")
	tree := ask("export", id, "--as", "html", "--db", db)
	require.Equal(t, exitOK, tree.code, tree.stderr)
	require.NotContains(t, tree.stdout, "<script")
	require.NotContains(t, tree.stdout, "<img")
	require.Empty(t, unsafe(strings.ReplaceAll(tree.stdout, "\n", "")))

	// What goes into a folder stays there, and the session comes back as it was.
	before := namesBelow(t, dir, out)
	check(exitOK, "export", "--all", "--to", filepath.Join(out, "all"))
	check(exitOK, "export", "--parquet", filepath.Join(out, "parquet"))
	require.Equal(t, before, namesBelow(t, dir, out))
	require.Equal(t, hostileSession(id), ask("export", id, "--db", db).stdout)
	check(exitFailed, "fork", "--session", id, "--id", "../"+evil)
	check(exitOK, "create", "--id", evil)
	check(exitOK, "fork", "--session", id)
	check(exitOK, "name", "--session", id, evil)
	check(exitOK, "append", "--session", id, "--at", "root", "--id", evil, evil)
	check(exitFailed, "purge", "alert(1)", "--yes") // it stands in ids
	check(exitOK, "purge", "needle x", "--yes")
	check(exitOK, "rebuild")
	check(exitOK, "repair")
	check(exitOK, "compact")
	check(exitOK, "backup", filepath.Join(out, "copy.db"))
	check(exitOK, "check")
	for _, name := range []string{"query", "search", "usage", "tools", "branches", "compactions", "export", "purge"} {
		require.True(t, asked[name], name)
	}
}

// namesBelow are the files below a folder, without those below another.
func namesBelow(t *testing.T, dir, without string) (names []string) {
	t.Helper()
	require.NoError(t, filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if path == without {
			return filepath.SkipDir
		}
		if !d.IsDir() && !strings.Contains(path, "sessions.db-") {
			names = append(names, path)
		}
		return err
	}))
	return names
}
