package main

import (
	"bytes"
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// asked runs the program with the arguments as they are.
func asked(t *testing.T, args ...string) (stdout string) {
	t.Helper()
	var out, errs bytes.Buffer
	require.Zero(t, run(context.Background(), args, nil, &out, &errs), "%v: %s", args, errs.String())
	return out.String()
}

// A file that does not say who wrote it is answered as its session is once it was
// imported, by each command that reads files, and each says by which rules and why.
func TestFilesAreAnsweredAsTheyAreImported(t *testing.T) {
	plain := header3("s", "/p") + userSays("q1", "") + "\n" + userSays("q2", "gone") + "\n" +
		`{"type":"custom","id":5,"parentId":"q2"}` + "\n" + userSays("q3", "q2") + "\n"
	leaf := `{"type":"leaf","id":"l","parentId":"q3","timestamp":"2026-01-01T00:00:09.000Z","targetId":"q1"}` + "\n"
	usage := `{"type":"usage","id":"u","parentId":"q3","timestamp":"2026-01-01T00:00:09.000Z","kind":"k"}` + "\n"
	for name, f := range map[string]struct{ text, flag, dialect, why, leaf string }{
		"no mark":      {plain, "", "coding-agent", "no mark of either: the coding agent writes most files", `"q3"`},
		"a leaf":       {plain + leaf, "", "harness", "an entry of type leaf (entry 5)", `"q1"`},
		"a usage":      {plain + usage, "", "coding-agent", "an entry of type usage (entry 5)", `"u"`},
		"asked for":    {plain + leaf, "coding-agent", "coding-agent", "chosen", `"l"`},
		"the other":    {plain + usage, "harness", "harness", "chosen", `"u"`},
		"number first": {header3("s", "/p") + `{"id":7}` + "\n", "", "coding-agent", "no mark of either: the coding agent writes most files", `7`},
	} {
		t.Run(name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "s.jsonl")
			require.NoError(t, os.WriteFile(path, []byte(f.text), 0o600))
			t.Setenv(databaseVariable, filepath.Join(t.TempDir(), "sessions.db"))
			var flag []string
			if f.flag != "" {
				flag = []string{"--dialect", f.flag}
			}
			asked(t, append([]string{"import", path}, flag...)...)
			for _, command := range []string{"tree", "branch", "context", "stats"} {
				if command != "tree" && command != "stats" && f.dialect == "harness" && f.leaf == `"u"` {
					continue // a hole, which has no branch there
				}
				inFile := append([]string{command, path}, flag...)
				assert.Contains(t, strings.Join(strings.Fields(asked(t, inFile...)), " "), "dialect "+f.dialect+" ("+f.why+")", command)
				var a, b map[string]json.RawMessage
				require.NoError(t, json.Unmarshal([]byte(asked(t, append(inFile, "--json")...)), &a))
				require.NoError(t, json.Unmarshal([]byte(asked(t, command, "--session", "s", "--json")), &b))
				var session struct{ Dialect, DialectBasis string }
				require.NoError(t, json.Unmarshal(a["session"], &session))
				assert.Equal(t, f.dialect+": "+f.why, session.Dialect+": "+session.DialectBasis)
				for _, m := range []map[string]json.RawMessage{a, b} {
					delete(m, "session")
					delete(m, "damage") // the database's is listed by damage
				}
				assert.Equal(t, b, a, command)
				if command == "branch" {
					assert.Equal(t, f.leaf, string(a["from"]))
				}
			}
		})
	}
}
