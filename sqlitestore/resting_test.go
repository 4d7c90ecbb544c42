package sqlitestore_test

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/sessiontree/sessiontree/eventlog"
	"github.com/sessiontree/sessiontree/query"
	"github.com/sessiontree/sessiontree/sqlitestore"
)

// Who asks while an import lets the views rest gets all that is in the log, each time:
// in the process that imports, in another, and in one that may only read.
func TestAnswersAreCurrentWhileViewsRest(t *testing.T) {
	dir := t.TempDir()
	path, file := filepath.Join(dir, "sessions.db"), filepath.Join(dir, "file.jsonl")
	require.NoError(t, os.WriteFile(file, []byte(`{"type":"session","version":3,"id":"f","timestamp":"2026-01-01T00:00:00.000Z","cwd":"/project"}`+"\n"), 0o600))
	importing, err := sqlitestore.Open(ctx, path, sqlitestore.Options{Synchronous: sqlitestore.Normal})
	require.NoError(t, err)
	defer importing.Close(ctx)
	reading, err := sqlitestore.Open(ctx, path, sqlitestore.Options{ReadOnly: true})
	require.NoError(t, err)
	defer reading.Close(ctx)
	tree, err := importing.Create(ctx, eventlog.CreateOptions{ID: "s", CWD: "/project"})
	require.NoError(t, err)

	goOn, ended, begun := make(chan struct{}), make(chan error, 1), make(chan struct{})
	go func() {
		ended <- importing.Import(ctx, []string{file}, sqlitestore.ImportOptions{}, func(sqlitestore.FileResult) {
			close(begun)
			<-goOn
		})
	}()
	<-begun
	for _, word := range []string{"first", "second", "third"} {
		e, err := tree.AppendMessage(ctx, eventlog.UserMessage(word, time.UnixMilli(0)))
		require.NoError(t, err)
		for _, s := range []*sqlitestore.Store{reading, reading, importing} {
			hits, err := s.Search(ctx, query.SearchOptions{Text: word})
			require.NoError(t, err)
			require.Len(t, hits, 1)
			require.Equal(t, e.ID(), hits[0].Entry)
		}
	}
	close(goOn)
	require.NoError(t, <-ended)
}
