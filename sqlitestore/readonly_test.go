package sqlitestore_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/sessiontree/sessiontree/eventlog"
	"github.com/sessiontree/sessiontree/sqlitestore"
)

// A store that is open for reading answers all questions and writes nothing, and
// says so when it no longer sees what is there.
func TestAReadOnlyStoreAnswersAndWritesNothing(t *testing.T) {
	path := filepath.Join(t.TempDir(), "sessions.db")
	writer, err := sqlitestore.Open(ctx, path, sqlitestore.Options{})
	require.NoError(t, err)
	tree, err := writer.Create(ctx, eventlog.CreateOptions{ID: "s", CWD: "/project"})
	require.NoError(t, err)
	e, err := tree.AppendMessage(ctx, benchMessage(0))
	require.NoError(t, err)
	require.NoError(t, writer.Close(ctx))
	before, err := os.ReadFile(path)
	require.NoError(t, err)

	reader, err := sqlitestore.Open(ctx, path, sqlitestore.Options{ReadOnly: true})
	require.NoError(t, err)
	listed, err := reader.List(ctx, "/project")
	require.NoError(t, err)
	require.Len(t, listed, 1)
	tree, err = reader.Open(ctx, listed[0].Metadata)
	require.NoError(t, err)
	branch, err := tree.Branch(ctx, eventlog.None())
	require.NoError(t, err)
	require.Equal(t, []eventlog.Entry{e}, branch)
	_, err = tree.AppendMessage(ctx, benchMessage(1))
	require.ErrorIs(t, err, eventlog.ErrStorage)
	after, err := os.ReadFile(path)
	require.NoError(t, err)
	require.Equal(t, before, after)

	writer, err = sqlitestore.Open(ctx, path, sqlitestore.Options{})
	require.NoError(t, err)
	tree2, err := writer.Open(ctx, eventlog.Metadata{ID: "s"})
	require.NoError(t, err)
	second, err := tree2.AppendMessage(ctx, benchMessage(1))
	require.NoError(t, err)
	require.NoError(t, writer.Close(ctx))
	// Either it sees the new entry, or it says that it has to be opened again;
	// never the old answer.
	branch, err = tree.Branch(ctx, eventlog.None())
	if err != nil {
		require.ErrorIs(t, err, eventlog.ErrStorage)
		require.ErrorContains(t, err, "open it again")
	} else {
		require.Equal(t, []eventlog.Entry{e, second}, branch)
	}
	require.NoError(t, reader.Close(ctx))
}
