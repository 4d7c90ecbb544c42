package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// TestReport_N3_M7_NothingGoesByAge has sessions and files of long ago, and files that
// are gone: no command deletes one that was not named, and delete asks first.
func TestReport_N3_M7_NothingGoesByAge(t *testing.T) {
	dir := t.TempDir()
	db, file := filepath.Join(dir, "sessions.db"), filepath.Join(dir, "old.jsonl")
	text := `{"type":"session","version":3,"id":"old","timestamp":"2006-01-01T00:00:00.000Z","cwd":"/p"}
{"type":"message","id":"m1","parentId":null,"timestamp":"2006-01-01T00:00:01.000Z","message":{"role":"user","content":"of long ago"}}
`
	require.NoError(t, os.WriteFile(file, []byte(text), 0o600))
	require.Equal(t, exitOK, ask("import", file, "--db", db).code)
	for _, name := range []string{file, db} {
		past := time.Now().AddDate(0, 0, -400)
		require.NoError(t, os.Chtimes(name, past, past))
	}
	commands := [][]string{
		{"list"}, {"create", "--id", "new"}, {"append", "--session", "new", "x"}, {"import", file}, {"verify"}, {"check"},
		{"rebuild"}, {"repair"}, {"compact"}, {"delete", "--session", "old"},
	}
	for _, gone := range []bool{false, true} {
		if gone {
			require.NoError(t, os.Remove(file))
		}
		for _, args := range commands {
			a := ask(append(args, "--db", db)...)
			if args[0] == "delete" {
				require.NotEqual(t, exitOK, a.code, "it asks, and nobody answers")
			}
			require.Equal(t, text, ask("export", "old", "--db", db).stdout, "after %q", args)
			if !gone {
				require.FileExists(t, file)
			}
		}
	}
}

// TestReport_N6_TextsArePlainAndThatIsSaid holds what the README says of the file
// against the file.
func TestReport_N6_TextsArePlainAndThatIsSaid(t *testing.T) {
	db := newDatabase(t)
	data, err := os.ReadFile(db)
	require.NoError(t, err)
	require.Contains(t, string(data), "Make it faster.", "texts are stored as they are")
	readme, err := os.ReadFile("../../README.md")
	require.NoError(t, err)
	said := strings.Join(strings.Fields(string(readme)), " ")
	require.Contains(t, said, "Texts are stored as they are, not encrypted.")
	require.Contains(t, said, "Not offered: encryption (use an encrypted disk, or a codec of your own around texts before they are appended)")
	require.Contains(t, said, "there is no retention")
}
