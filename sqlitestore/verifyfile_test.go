package sqlitestore

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

// Proving a folder reads each session once: what it needs of memory does not grow
// with the folder.
func TestVerifyingKeepsNoBranches(t *testing.T) {
	s, err := Open(t.Context(), newPath(t), Options{Synchronous: Normal})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, s.Close(context.WithoutCancel(t.Context()))) })
	var paths []string
	for i := range 5 {
		path := filepath.Join(t.TempDir(), fmt.Sprintf("%d.jsonl", i))
		text := fmt.Sprintf(`{"type":"session","version":3,"id":"s%d","timestamp":"2026-01-01T00:00:00.000Z","cwd":"/p"}`+"\n"+
			`{"type":"message","id":"a","parentId":null,"timestamp":"2026-01-01T00:00:01.000Z","message":{"role":"user","content":"A"}}`+"\n", i)
		require.NoError(t, os.WriteFile(path, []byte(text), 0o600))
		paths = append(paths, path)
	}
	done := 0
	require.NoError(t, s.Import(t.Context(), paths, ImportOptions{Verify: true}, func(r FileResult) {
		require.Equal(t, Imported, r.Outcome, "%v %v", r.Err, r.Problems)
		done++
	}))
	require.Equal(t, 5, done)
	require.Zero(t, s.cache.size)
}
