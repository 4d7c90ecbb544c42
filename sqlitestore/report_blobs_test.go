package sqlitestore_test

import (
	"bytes"
	"fmt"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/sessiontree/sessiontree/eventlog"
	"github.com/sessiontree/sessiontree/query"
	"github.com/sessiontree/sessiontree/sqlitestore"
	"github.com/sessiontree/sessiontree/sqlitestore/sqlitestoretest"
)

// image is a message with a picture of about so many bytes.
func image(i, size int) eventlog.Draft {
	return user(fmt.Sprintf("picture %d ", i) + strings.Repeat(fmt.Sprintf("%04d", i), size/4))
}

// valueOf is the only value that an SQL query gives.
func valueOf(t testing.TB, s *sqlitestore.Store, text string) (value any) {
	t.Helper()
	require.NoError(t, s.SQL(ctx, text, func([]string) error { return nil }, func(values []any) error {
		value = values[0]
		return nil
	}))
	return value
}

func exportedWhole(t testing.TB, s *sqlitestore.Store, id string) string {
	t.Helper()
	var b bytes.Buffer
	require.NoError(t, s.Export(ctx, id, &b))
	return b.String()
}

// TestReport_B2_PicturesAreKeptOnceAndOpeningStaysFlat: a session of nothing but
// screenshots is opened, listed and forked for the price of what is asked, its copies
// share them, and the last to go takes them along.
func TestReport_B2_PicturesAreKeptOnceAndOpeningStaysFlat(t *testing.T) {
	const pictures, size = 40, 1 << 20
	path := filepath.Join(t.TempDir(), "sessions.db")
	s := sqlitestoretest.OpenAt(t, path, sqlitestore.Options{Synchronous: sqlitestore.Normal})
	tree, err := s.Create(ctx, eventlog.CreateOptions{ID: "screens", CWD: "/p"})
	require.NoError(t, err)
	for i := range pictures {
		_, err := tree.Append(ctx, image(i, size))
		require.NoError(t, err)
	}
	kept, err := tree.Append(ctx, user("what is in these?"))
	require.NoError(t, err)
	_, err = tree.AppendCompaction(ctx, eventlog.Compaction{Summary: "pictures", FirstKeptEntryID: kept[0].LeafAfter().Value(), TokensBefore: 1})
	require.NoError(t, err)

	// Opening it again, the list, its tree and the model's context read no picture.
	again, err := sqlitestore.Open(ctx, path, sqlitestore.Options{ReadOnly: true})
	require.NoError(t, err)
	defer again.Close(ctx)
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	opened, err := again.Open(ctx, eventlog.Metadata{ID: "screens"})
	require.NoError(t, err)
	c, err := opened.BuildContext(ctx, eventlog.None())
	require.NoError(t, err)
	require.Len(t, c.Messages, 2)
	skeleton, err := opened.Skeleton(ctx)
	require.NoError(t, err)
	require.NotEmpty(t, skeleton)
	listed, err := again.List(ctx, "")
	require.NoError(t, err)
	require.Len(t, listed, 1)
	runtime.ReadMemStats(&after)
	require.Less(t, after.TotalAlloc-before.TotalAlloc, uint64(size), "bytes allocated")

	// A fork, and a copy that comes as a file, hold the same pictures.
	pages := valueOf(t, s, "PRAGMA page_count").(int64)
	_, err = s.Fork(ctx, eventlog.Metadata{ID: "screens"}, eventlog.ForkOptions{CreateOptions: eventlog.CreateOptions{ID: "fork"}})
	require.NoError(t, err)
	text := exportedWhole(t, s, "screens")
	copied := filepath.Join(t.TempDir(), "copy.jsonl")
	write(t, copied, strings.Replace(text, `"id":"screens"`, `"id":"copy"`, 1))
	require.NoError(t, importAll(t, s, sqlitestore.ImportOptions{}, copied)[0].Err)
	require.Less(t, valueOf(t, s, "PRAGMA page_count").(int64)-pages, int64(2*size/4096), "pages that the copies took")
	require.Equal(t, int64(pictures), valueOf(t, s, "SELECT count(*) FROM blobs"))
	require.Equal(t, int64(pictures), valueOf(t, s, "SELECT count(*) FROM v_entries WHERE session = 'copy' AND bytes > 1000000 AND payload LIKE '%picture%'"), "as the documented views see them")

	// They stay as long as one has them.
	require.NoError(t, s.Delete(ctx, eventlog.Metadata{ID: "screens"}))
	require.NoError(t, s.Delete(ctx, eventlog.Metadata{ID: "copy"}))
	_, entries, _ := strings.Cut(text, "\n")
	_, forked, _ := strings.Cut(exportedWhole(t, s, "fork"), "\n")
	require.True(t, entries == forked, "the fork has all of it")
	require.NoError(t, s.Delete(ctx, eventlog.Metadata{ID: "fork"}))
	require.Equal(t, int64(0), valueOf(t, s, "SELECT count(*) FROM blobs"))
}

// A secret in a large entry goes from every session that has it, and the sessions
// still have one copy of the rest.
func TestReport_B2_ASecretGoesFromAPictureOfManySessions(t *testing.T) {
	const secret = "sk-1234567890"
	path := filepath.Join(t.TempDir(), "sessions.db")
	s := sqlitestoretest.OpenAt(t, path, sqlitestore.Options{Synchronous: sqlitestore.Normal})
	tree, err := s.Create(ctx, eventlog.CreateOptions{ID: "a", CWD: "/p"})
	require.NoError(t, err)
	padding := strings.Repeat("pad ", 50_000)
	_, err = tree.Append(ctx, user("before "+padding+secret+" after"), user("other "+padding))
	require.NoError(t, err)
	_, err = s.Fork(ctx, eventlog.Metadata{ID: "a"}, eventlog.ForkOptions{CreateOptions: eventlog.CreateOptions{ID: "b"}})
	require.NoError(t, err)
	purged, err := s.PurgeText(ctx, secret, false)
	require.NoError(t, err)
	require.Equal(t, sqlitestore.Purged{Sessions: []string{"a", "b"}, Entries: 2}, purged)
	require.Equal(t, int64(2), valueOf(t, s, "SELECT count(*) FROM blobs"))
	for _, id := range []string{"a", "b"} {
		text := exportedWhole(t, s, id)
		require.NotContains(t, text, secret)
		require.Contains(t, text, "pad [redacted] after")
	}
	hits, err := s.Search(ctx, query.SearchOptions{Text: secret})
	require.NoError(t, err)
	require.Empty(t, hits)
	checked, err := s.Check(ctx)
	require.NoError(t, err)
	require.Empty(t, checked.Problems)
	require.Equal(t, 2, checked.Redacted)
}
