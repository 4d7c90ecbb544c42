package jsonl_test

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/sessiontree/sessiontree/eventlog"
	"github.com/sessiontree/sessiontree/eventlog/jsonl"
)

func leafOf(t *testing.T, path string, o jsonl.Options) eventlog.Ref {
	t.Helper()
	s, err := jsonl.Open(t.Context(), path, o)
	require.NoError(t, err)
	defer s.Close()
	head, err := s.Head(t.Context())
	require.NoError(t, err)
	return head.Leaf
}

// In the coding agent's dialect the leaf stands beside the file, which Pi would
// misread with it, and counts while the file ends as it did then.
func TestTheLeafStandsBesideTheFile(t *testing.T) {
	ctx, o := t.Context(), jsonl.Options{Dialect: eventlog.CodingAgent}
	repo := jsonl.NewRepo(t.TempDir(), o)
	s, err := repo.Create(ctx, eventlog.CreateOptions{ID: "agent", Dialect: eventlog.CodingAgent})
	require.NoError(t, err)
	m, err := s.Metadata(ctx)
	require.NoError(t, err)
	first, err := s.AppendMessage(ctx, eventlog.UserMessage("one", time.UnixMilli(1)))
	require.NoError(t, err)
	second, err := s.AppendMessage(ctx, eventlog.UserMessage("two", time.UnixMilli(2)))
	require.NoError(t, err)
	before, err := os.ReadFile(m.Path)
	require.NoError(t, err)
	_, err = s.MoveTo(ctx, eventlog.At(first.ID()), nil)
	require.NoError(t, err)
	require.NoError(t, s.Close())

	after, err := os.ReadFile(m.Path)
	require.NoError(t, err)
	assert.Equal(t, string(before), string(after), "a move writes nothing into the file")
	assert.Equal(t, eventlog.At(first.ID()), leafOf(t, m.Path, o))

	// Pi appends, and knows nothing of it.
	line := `{"type":"custom","customType":"x","id":"pi","parentId":"` + second.ID() + `","timestamp":"2026-01-01T00:00:00.000Z"}` + "\n"
	require.NoError(t, os.WriteFile(m.Path, append(after, line...), 0o600))
	assert.Equal(t, eventlog.At("pi"), leafOf(t, m.Path, o))

	require.NoError(t, repo.Delete(ctx, m))
	left, err := filepath.Glob(filepath.Join(filepath.Dir(m.Path), "*"))
	require.NoError(t, err)
	assert.Empty(t, left)
}

// A session of another dialect than its folder's is found again as what it is.
func TestADialectIsKeptWithItsFile(t *testing.T) {
	ctx := t.Context()
	for _, folder := range eventlog.Dialects() {
		for _, d := range eventlog.Dialects() {
			repo := jsonl.NewRepo(t.TempDir(), jsonl.Options{Dialect: folder})
			s, err := repo.Create(ctx, eventlog.CreateOptions{ID: "x", CWD: "/p", Dialect: d})
			require.NoError(t, err)
			m, err := s.Metadata(ctx)
			require.NoError(t, err)
			require.NoError(t, s.Close())
			again, err := repo.Open(ctx, m)
			require.NoError(t, err)
			assert.Equal(t, d, again.Dialect(), "%s in a folder of %s", d, folder)
			require.NoError(t, again.Close())
		}
	}
}

func TestDetection(t *testing.T) {
	const header = `{"type":"session","version":3,"id":"x","timestamp":"2026-01-01T00:00:00.000Z","cwd":"/p"}` + "\n"
	entry := func(rest string) string { return `{"id":"e","parentId":null,"timestamp":"t",` + rest + "}\n" }
	for name, c := range map[string]struct {
		file  string
		want  eventlog.Dialect
		basis string
	}{
		"leaf":           {entry(`"type":"leaf","targetId":null`), eventlog.Harness, "an entry of type leaf (entry 1)"},
		"tools":          {entry(`"type":"active_tools_change","activeToolNames":[]`), eventlog.Harness, "an entry of type active_tools_change (entry 1)"},
		"tail":           {entry(`"type":"compaction","retainedTail":[]`), eventlog.Harness, "a compaction with a retainedTail (entry 1)"},
		"usage":          {entry(`"type":"usage"`), eventlog.CodingAgent, "an entry of type usage (entry 1)"},
		"edit":           {entry(`"type":"context_edit"`), eventlog.CodingAgent, "an entry of type context_edit (entry 1)"},
		"system":         {entry(`"type":"message","message":{"role":"system"}`), eventlog.CodingAgent, "a system message (entry 1)"},
		"own id":         {entry(`"type":"compaction","firstKeptEntryId":"e"`), eventlog.CodingAgent, "a compaction that names itself as boundary (entry 1)"},
		"system message": {entry(`"type":"compaction","systemMessage":{}`), eventlog.CodingAgent, "a compaction with a systemMessage (entry 1)"},
		"nothing":        {entry(`"type":"custom"`), eventlog.CodingAgent, eventlog.NoMark},
		"both":           {entry(`"type":"usage"`) + entry(`"type":"leaf","targetId":null`), eventlog.Harness, "an entry of type leaf (entry 2)"},
	} {
		parsed, err := jsonl.Parse("file", header+c.file, jsonl.Options{Dialect: eventlog.CodingAgent, Detect: true})
		require.NoError(t, err, name)
		assert.Equal(t, c.want, parsed.Metadata.Dialect, name)
		assert.Equal(t, c.basis, parsed.Metadata.DialectBasis, name)
	}
}

// A file of an older version is read as one of version 3, alike each time, and never
// written to.
func TestOldVersionsAreRead(t *testing.T) {
	path := filepath.Join(t.TempDir(), "old.jsonl")
	text := `{"type":"session","id":"old"}` + "\n" + `{"type":"message","message":{"role":"user","content":"one"}}` + "\n" +
		`{"type":"compaction","summary":"s","firstKeptEntryIndex":1}` + "\n"
	require.NoError(t, os.WriteFile(path, []byte(text), 0o600))
	o := jsonl.Options{Dialect: eventlog.CodingAgent}
	s, err := jsonl.Open(t.Context(), path, o)
	require.NoError(t, err)
	session := eventlog.NewSession(s)
	branch, err := session.Branch(t.Context(), eventlog.None())
	require.NoError(t, err)
	require.Len(t, branch, 2)
	assert.True(t, branch[1].Get("firstKeptEntryId").Is(branch[0].ID()))
	assert.Equal(t, leafOf(t, path, o), eventlog.At(branch[1].ID()))
	_, err = session.AppendMessage(t.Context(), eventlog.UserMessage("more", time.UnixMilli(1)))
	assert.ErrorIs(t, err, eventlog.ErrInvalidState)
	after, err := os.ReadFile(path)
	require.NoError(t, err)
	assert.Equal(t, text, string(after))
}
