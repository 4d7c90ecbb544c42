package sqlitestore_test

import (
	"database/sql"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/sessiontree/sessiontree/bench/count"
	"github.com/sessiontree/sessiontree/eventlog"
	"github.com/sessiontree/sessiontree/eventlog/js"
	"github.com/sessiontree/sessiontree/sqlitestore"
	"github.com/sessiontree/sessiontree/sqlitestore/sqlitestoretest"
)

// bytesOf is the size of a closed database without the search index, of which it
// depends on the moment how much is merged.
func bytesOf(t *testing.T, path string) (size int64) {
	t.Helper()
	db, err := sql.Open("sqlite", path)
	require.NoError(t, err)
	defer db.Close()
	require.NoError(t, db.QueryRow("SELECT sum(pgsize) FROM dbstat WHERE aggregate = TRUE AND name NOT LIKE 'search%'").Scan(&size))
	return size
}

// grownBy is how many bytes 200 branches off the tip of a chain add to the
// database, each.
func grownBy(t *testing.T, depth int) int64 {
	t.Helper()
	const branches = 200
	path := filepath.Join(t.TempDir(), "sessions.db")
	open := func() (*sqlitestore.Store, *eventlog.Session) {
		s, err := sqlitestore.Open(t.Context(), path, sqlitestore.Options{Synchronous: sqlitestore.Normal})
		require.NoError(t, err)
		tree, err := s.Open(t.Context(), eventlog.Metadata{ID: "deep"})
		if err != nil {
			tree, err = s.Create(t.Context(), eventlog.CreateOptions{ID: "deep"})
			require.NoError(t, err)
		}
		return s, tree
	}
	s, tree := open()
	drafts := make([]eventlog.Draft, depth)
	for i := range drafts {
		drafts[i] = eventlog.MessageDraft(benchMessage(i))
	}
	chain, err := tree.Append(t.Context(), drafts...)
	require.NoError(t, err)
	require.NoError(t, s.Close(t.Context()))
	before := bytesOf(t, path)

	s, tree = open()
	for i := range branches {
		from := chain[depth-1-i%10]
		_, err := tree.AppendAt(t.Context(), eventlog.At(from.ID()), eventlog.MessageDraft(benchMessage(i)))
		require.NoError(t, err)
	}
	require.NoError(t, s.Close(t.Context()))
	return (bytesOf(t, path) - before) / branches
}

// A branch off a deep tip costs what any entry costs, however long the path.
func TestReport_C12_ABranchOffADeepTipCopiesNoPath(t *testing.T) {
	deep := 20_000
	if testing.Short() {
		deep = 5_000
	}
	shallow, far := grownBy(t, 50), grownBy(t, deep)
	t.Logf("a branch adds %d bytes at depth 50, %d at %d", shallow, far, deep)
	require.LessOrEqual(t, far, int64(1500))
	require.InDelta(t, shallow, far, 100)
}

// Steps of a state of 200 KB: an entry is stored once, whatever is branched,
// forked off or compacted over it, and nothing holds a copy of the path.
func TestReport_G9_EachStepIsStoredOnce(t *testing.T) {
	const steps, size = 60, 200_000
	path := filepath.Join(t.TempDir(), "sessions.db")
	s, err := sqlitestore.Open(t.Context(), path, sqlitestore.Options{Synchronous: sqlitestore.Normal})
	require.NoError(t, err)
	tree, err := s.Create(t.Context(), eventlog.CreateOptions{})
	require.NoError(t, err)
	state := strings.Repeat("state ", size/6)
	for i := range steps {
		e, err := tree.AppendCustom(t.Context(), "state", js.Text(fmt.Sprint(i, state)))
		require.NoError(t, err)
		_, err = tree.SetLabel(t.Context(), e.ID(), "step")
		require.NoError(t, err)
		if i%10 == 9 {
			_, err = tree.MoveTo(t.Context(), e.Parent(), nil)
			require.NoError(t, err)
		}
	}
	require.NoError(t, s.Close(t.Context()))
	require.Less(t, bytesOf(t, path), int64(steps*size*105/100))
}

// A reader that stops half-way through a long answer holds no snapshot: the WAL
// starts again at its beginning as if nobody read.
func TestReport_G1_ASlowReaderDoesNotKeepTheWAL(t *testing.T) {
	path := filepath.Join(t.TempDir(), "sessions.db")
	s := sqlitestoretest.OpenAt(t, path, sqlitestore.Options{Synchronous: sqlitestore.Normal})
	tree, err := s.Create(t.Context(), eventlog.CreateOptions{})
	require.NoError(t, err)
	text := strings.Repeat("a word ", 15_000)
	small := make([]eventlog.Draft, 600) // more than a page
	for i := range small {
		small[i] = user("text")
	}
	_, err = tree.Append(t.Context(), small...)
	require.NoError(t, err)
	seen := 0
	for _, err := range tree.Entries(t.Context(), 0, eventlog.All) {
		require.NoError(t, err)
		if seen++; seen > 11 {
			continue
		}
		for range 40 { // 4 MB of WAL, while the reader holds its place
			_, err := tree.AppendCustom(t.Context(), "large", js.Text(text))
			require.NoError(t, err)
		}
	}
	require.Equal(t, 600+11*40, seen)
	wal, err := os.Stat(path + "-wal")
	require.NoError(t, err)
	require.Less(t, wal.Size(), int64(16<<20), "of 48 MB that were written")
}

// Reads of another writer's entry between a read and a write are no error: what is
// read for a write is read in its transaction, which has the lock from the start.
func TestReport_F9_AReadBeforeAWriteNeverFailsForALock(t *testing.T) {
	path := filepath.Join(t.TempDir(), "sessions.db")
	const writers, each = 4, 40
	first := sqlitestoretest.OpenAt(t, path, sqlitestore.Options{Synchronous: sqlitestore.Normal})
	_, err := first.Create(t.Context(), eventlog.CreateOptions{ID: "shared"})
	require.NoError(t, err)
	failures := make(chan error, writers)
	for range writers {
		s := sqlitestoretest.OpenAt(t, path, sqlitestore.Options{Synchronous: sqlitestore.Normal})
		tree, err := s.Open(t.Context(), eventlog.Metadata{ID: "shared"})
		require.NoError(t, err)
		go func() {
			for written := 0; written < each; {
				head, err := tree.Head(t.Context())
				if err == nil {
					_, err = tree.AppendIf(t.Context(), head, user("text"))
				}
				switch {
				case err == nil:
					written++
				case eventlog.CodeOf(err) != eventlog.Conflict: // somebody was faster is an answer
					failures <- err
					return
				}
			}
			failures <- nil
		}()
	}
	for range writers {
		require.NoError(t, <-failures)
	}
	tree, err := first.Open(t.Context(), eventlog.Metadata{ID: "shared"})
	require.NoError(t, err)
	require.Len(t, chainOf(t, tree), writers*each)
}

// The first page of the list costs what it shows, of few sessions and of many, in a
// store that was just opened and again.
func TestReport_B8_ThePickersFirstPageIsFlat(t *testing.T) {
	const page = 20
	asked := map[int][2]int64{}
	for _, sessions := range []int{100, 2000} {
		path := filepath.Join(t.TempDir(), "sessions.db")
		s, err := sqlitestore.Open(t.Context(), path, sqlitestore.Options{Source: ticking(), Synchronous: sqlitestore.Normal})
		require.NoError(t, err)
		for i := range sessions {
			tree, err := s.Create(t.Context(), eventlog.CreateOptions{ID: fmt.Sprint("s", i), CWD: "/project"})
			require.NoError(t, err)
			_, err = tree.Append(t.Context(), user(fmt.Sprint("question ", i)))
			require.NoError(t, err)
			require.NoError(t, tree.Close())
		}
		require.NoError(t, s.Close(t.Context()))

		counter := count.Watch(path)
		r, err := sqlitestore.Open(t.Context(), path, sqlitestore.Options{ReadOnly: true, ReadConns: 1})
		require.NoError(t, err)
		var pages [2]int64
		for i := range pages { // cold, then warm
			before, err := counter.Now()
			require.NoError(t, err)
			var shown []string
			for info, err := range r.Sessions(t.Context(), sqlitestore.ListOptions{}) {
				require.NoError(t, err)
				if len(shown) == page {
					break
				}
				shown = append(shown, info.ID+": "+info.FirstMessage)
			}
			require.Len(t, shown, page)
			require.Equal(t, fmt.Sprintf("s%d: question %d", sessions-1, sessions-1), shown[0])
			after, err := counter.Now()
			require.NoError(t, err)
			pages[i] = after.Since(before).Pages
		}
		require.NoError(t, r.Close(t.Context()))
		counter.Close()
		asked[sessions] = pages
	}
	t.Logf("pages asked for: %v", asked)
	for i := range 2 {
		require.Positive(t, asked[100][i])
		require.Less(t, asked[2000][i], 2*asked[100][i], "twenty times the sessions")
	}
}

// Going on with a session reads what its context needs, whatever else is in it: a
// branch that was given up, and what a compaction has cut off.
func TestReport_B6_GoingOnReadsTheActivePathOnly(t *testing.T) {
	const images, size = 64, 1 << 20
	path := filepath.Join(t.TempDir(), "sessions.db")
	s, err := sqlitestore.Open(t.Context(), path, sqlitestore.Options{Synchronous: sqlitestore.Normal})
	require.NoError(t, err)
	tree, err := s.Create(t.Context(), eventlog.CreateOptions{ID: "images"})
	require.NoError(t, err)
	root, err := tree.AppendMessage(t.Context(), benchMessage(0))
	require.NoError(t, err)
	image := eventlog.Message{Value: js.Fields(
		js.Member{Key: "role", Value: js.Text(eventlog.RoleUser)},
		js.Member{Key: "content", Value: js.List(js.Fields(
			js.Member{Key: "type", Value: js.Text("image")},
			js.Member{Key: "data", Value: js.Text(strings.Repeat("iVBORw0KGgo=", size/12))},
			js.Member{Key: "mimeType", Value: js.Text("image/png")}))})}
	show := func() {
		for range images {
			_, err := tree.AppendMessage(t.Context(), image)
			require.NoError(t, err)
		}
	}
	show()
	_, err = tree.MoveTo(t.Context(), eventlog.At(root.ID()), nil)
	require.NoError(t, err)
	show()
	kept, err := tree.AppendMessage(t.Context(), benchMessage(1))
	require.NoError(t, err)
	_, err = tree.AppendCompaction(t.Context(), eventlog.Compaction{Summary: "Images.", FirstKeptEntryID: js.Text(kept.ID())})
	require.NoError(t, err)
	require.NoError(t, s.Close(t.Context()))

	s, err = sqlitestore.Open(t.Context(), path, sqlitestore.Options{})
	require.NoError(t, err)
	defer s.Close(t.Context())
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	tree, err = s.Open(t.Context(), eventlog.Metadata{ID: "images"})
	require.NoError(t, err)
	c, err := tree.BuildContext(t.Context(), eventlog.None())
	require.NoError(t, err)
	_, err = tree.AppendMessage(t.Context(), benchMessage(2))
	require.NoError(t, err)
	runtime.ReadMemStats(&after)
	require.Len(t, c.Messages, 2, "the summary and what it keeps")
	require.Less(t, after.TotalAlloc-before.TotalAlloc, uint64(8*size), "of %d MB", 2*images)
}
