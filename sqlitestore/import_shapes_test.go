package sqlitestore_test

import (
	"context"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/sessiontree/sessiontree/bench/shape"
	"github.com/sessiontree/sessiontree/eventlog"
	"github.com/sessiontree/sessiontree/eventlog/sessionfile"
	"github.com/sessiontree/sessiontree/sqlitestore"
	"github.com/sessiontree/sessiontree/sqlitestore/sqlitestoretest"
)

// spoiled writes entries as a file that has been through a lot.
func spoiled(r *rand.Rand, head string, entries []eventlog.Entry) string {
	var b strings.Builder
	newline := []string{"\n", "\r\n"}[r.IntN(2)]
	if r.IntN(3) == 0 {
		b.WriteString("\uFEFF")
	}
	b.WriteString(strings.TrimSuffix(head, "\n") + newline)
	for i, e := range entries {
		switch r.IntN(12) {
		case 0:
			b.WriteString(newline + " \t" + newline)
		case 1:
			b.WriteString("junk that is no JSON" + newline)
		case 2:
			b.WriteString(strings.Repeat("\x00", 1+r.IntN(600)) + newline)
		case 3:
			b.WriteString(e.JSON()[:1+r.IntN(len(e.JSON())-1)]) // half, then the whole
		case 4:
			b.WriteString(`{"type":"message","id":"x","message":{}` + newline) // never ended
		case 5:
			b.WriteString("\xff\xfe" + newline)
		}
		b.WriteString(e.JSON())
		switch r.IntN(12) {
		case 0: // glued to the next
		case 1:
			b.WriteString("  \t\n")
		case 2:
			b.WriteString([]string{"\n", "\r\n"}[r.IntN(2)])
		default:
			if i < len(entries)-1 || r.IntN(2) == 0 {
				b.WriteString(newline)
			}
		}
	}
	return b.String()
}

// Trees of all shapes, spoiled in every way and read while they grow, lose no
// entry and come back byte for byte.
func TestTreesOfAllShapesComeBack(t *testing.T) {
	for _, tree := range shape.All() {
		for seed := range uint64(3) {
			t.Run(fmt.Sprintf("%s/%d", tree.Name, seed), func(t *testing.T) {
				r := rand.New(rand.NewPCG(seed, 7))
				var entries []eventlog.Entry
				for e := range tree.Entries(150, seed) {
					entries = append(entries, e)
				}
				text := spoiled(r, header("tree", ""), entries)
				s := sqlitestoretest.Open(t, sqlitestore.Options{Synchronous: sqlitestore.Normal})
				path := filepath.Join(t.TempDir(), "tree.jsonl")
				for at := strings.IndexByte(text, '\n') + 1; ; at = min(at+r.IntN(len(text)/4), len(text)) {
					write(t, path, text[:at])
					result := importAll(t, s, sqlitestore.ImportOptions{}, path)[0]
					require.NoError(t, result.Err)
					require.True(t, exported(t, s, "tree") == text[:at], "cut at %d", at)
					if at == len(text) {
						break
					}
				}
				session, err := s.Open(ctx, eventlog.Metadata{ID: "tree"})
				require.NoError(t, err)
				n := 0
				for e, err := range session.Entries(ctx, 0, eventlog.All) {
					require.NoError(t, err)
					require.Equal(t, entries[n].JSON(), e.JSON())
					n++
				}
				require.Equal(t, len(entries), n)
				require.Equal(t, sqlitestore.Unchanged, importAll(t, s, sqlitestore.ImportOptions{Verify: true}, path)[0].Outcome)
			})
		}
	}
}

// Cut at every byte of its last three lines, a file gives every entry that is
// whole.
func TestReport_A3_ImportOfTornTails(t *testing.T) {
	lines := []string{line("a", "", "one"), line("b", "a", "two"), line("c", "b", "three"), line("d", "c", "four")}
	body := strings.Join(lines, "")
	dir := t.TempDir()
	var paths []string
	var want []int
	for cut := len(lines[0]); cut <= len(body); cut++ {
		id := fmt.Sprintf("cut-%05d", cut)
		path := filepath.Join(dir, id+".jsonl")
		write(t, path, header(id, "")+body[:cut])
		paths = append(paths, path)
		n, end := 0, 0
		for _, l := range lines {
			if end += len(l); cut >= end-1 { // whole, if without its newline
				n++
			}
		}
		want = append(want, n)
	}
	s := sqlitestoretest.Open(t, sqlitestore.Options{Synchronous: sqlitestore.Normal})
	for i, r := range importAll(t, s, sqlitestore.ImportOptions{}, paths...) {
		require.NoError(t, r.Err)
		require.Equal(t, want[i], r.Entries, r.Path)
		if i%10 == 0 {
			b, err := os.ReadFile(r.Path)
			require.NoError(t, err)
			require.Equal(t, string(b), exported(t, s, r.Session))
		}
	}
}

// endless gives a session file of so many bytes, line by line.
type endless struct {
	left, n int
	buf     []byte
}

func (e *endless) Read(b []byte) (int, error) {
	if len(e.buf) == 0 {
		if e.left <= 0 {
			return 0, io.EOF
		}
		text := header("long", "")
		if e.n > 0 {
			text = line(fmt.Sprint("e", e.n), "", strings.Repeat("x", 1<<20))
		}
		e.n++
		e.buf, e.left = []byte(text), e.left-len(text)
	}
	n := copy(b, e.buf)
	e.buf = e.buf[n:]
	return n, nil
}

func TestReport_B4_AFileOfAnySizeIsAStream(t *testing.T) {
	size := 600 << 20
	if testing.Short() {
		size = 60 << 20
	}
	r, err := sessionfile.NewReader("long", &endless{left: size}, sessionfile.Options{})
	require.NoError(t, err)
	var m runtime.MemStats
	n, most := 0, uint64(0)
	for {
		_, err := r.Next()
		if err == io.EOF {
			break
		}
		require.NoError(t, err)
		if n++; n%20 == 0 {
			runtime.ReadMemStats(&m)
			most = max(most, m.HeapInuse)
		}
	}
	assert.Greater(t, n, size>>21)
	assert.Less(t, most, uint64(100<<20), "bytes of the heap in use")
}

// A session of every kind of entry goes in and out as it was: nothing is flattened
// to text.
func TestReport_M9_EveryKindGoesInAndOut(t *testing.T) {
	text, err := os.ReadFile("../cmd/sessiontree/testdata/every-kind.jsonl")
	require.NoError(t, err)
	s := sqlitestoretest.Open(t, sqlitestore.Options{Synchronous: sqlitestore.Normal})
	path := filepath.Join(t.TempDir(), "every-kind.jsonl")
	write(t, path, string(text))
	r := importAll(t, s, sqlitestore.ImportOptions{Verify: true}, path)[0]
	require.NoError(t, r.Err)
	require.Equal(t, string(text), exported(t, s, r.Session))
	session, err := s.Open(ctx, eventlog.Metadata{ID: r.Session})
	require.NoError(t, err)
	kinds := map[eventlog.Type]bool{}
	for e, err := range session.Entries(ctx, 0, eventlog.All) {
		require.NoError(t, err)
		kinds[e.Type()] = true
	}
	for _, typ := range []eventlog.Type{eventlog.TypeMessage, eventlog.TypeCompaction, eventlog.TypeBranchSummary, eventlog.TypeCustom, eventlog.TypeCustomMessage, eventlog.TypeLabel, eventlog.TypeSessionInfo, eventlog.TypeLeaf} {
		assert.True(t, kinds[typ], typ)
	}
}

// Files that are no longer there take nothing with them.
func TestReport_H8_MissingFilesDeleteNothing(t *testing.T) {
	s := sqlitestoretest.Open(t, sqlitestore.Options{Synchronous: sqlitestore.Normal})
	dir := t.TempDir()
	for _, id := range []string{"a", "b"} {
		write(t, filepath.Join(dir, id+".jsonl"), header(id, "")+line("x", "", id))
	}
	importAll(t, s, sqlitestore.ImportOptions{}, filepath.Join(dir, "a.jsonl"), filepath.Join(dir, "b.jsonl"))
	require.NoError(t, os.Remove(filepath.Join(dir, "a.jsonl")))
	importAll(t, s, sqlitestore.ImportOptions{}, filepath.Join(dir, "b.jsonl"))
	require.Equal(t, header("a", "")+line("x", "", "a"), exported(t, s, "a"))
	listed, err := s.List(ctx, "")
	require.NoError(t, err)
	require.Len(t, listed, 2)
}

// What older versions of Pi left is found and taken like all else.
func TestReport_H9_SessionsOfOlderVersionsComeIn(t *testing.T) {
	s := sqlitestoretest.Open(t, sqlitestore.Options{Synchronous: sqlitestore.Normal})
	dir := t.TempDir()
	write(t, filepath.Join(dir, "v1.jsonl"), `{"type":"session","id":"v1","timestamp":"2025-01-01T00:00:00.000Z","cwd":"/p"}`+"\n"+`{"type":"message","timestamp":"2025-01-01T00:00:01.000Z","message":{"role":"user","content":"hi"}}`+"\n")
	write(t, filepath.Join(dir, "v2.jsonl"), strings.Replace(header("v2", ""), `"version":3`, `"version":2`, 1)+line("a", "", "hi"))
	write(t, filepath.Join(dir, "v3.jsonl"), header("v3", "")+line("a", "", "hi"))
	found, err := sessionfile.Discover([]string{dir}, func(path string, err error) { t.Error(path, err) })
	require.NoError(t, err)
	var paths []string
	for _, f := range found {
		paths = append(paths, f.Path)
	}
	for _, r := range importAll(t, s, sqlitestore.ImportOptions{}, paths...) {
		require.Equal(t, sqlitestore.Imported, r.Outcome, "%v", r.Err)
		require.Equal(t, 1, r.Entries)
	}
	listed, err := s.List(ctx, "")
	require.NoError(t, err)
	require.Len(t, listed, 3)
}

// A second run over the originals finds nothing to do, also where files are
// damaged.
func TestReport_H10_ASecondRunIsClean(t *testing.T) {
	s := sqlitestoretest.Open(t, sqlitestore.Options{Synchronous: sqlitestore.Normal})
	dir := t.TempDir()
	var paths []string
	for i := range 20 {
		path := filepath.Join(dir, fmt.Sprint(i, ".jsonl"))
		write(t, path, header(fmt.Sprint("s", i), "")+line("a", "", "1")+strings.Repeat("junk\n", i%3)+line("b", "a", "2")[:20+i])
		paths = append(paths, path)
	}
	importAll(t, s, sqlitestore.ImportOptions{}, paths...)
	for _, verify := range []bool{false, true} {
		for _, r := range importAll(t, s, sqlitestore.ImportOptions{Verify: verify}, paths...) {
			require.Equal(t, sqlitestore.Unchanged, r.Outcome)
			require.Empty(t, r.Problems)
		}
	}
}

// folder writes sessions of two entries each, and gives their paths.
func folder(t *testing.T, n int) (paths []string) {
	dir := t.TempDir()
	for i := range n {
		path := filepath.Join(dir, fmt.Sprintf("%03d.jsonl", i))
		write(t, path, header(fmt.Sprint("s", i), "")+line("a", "", "1")+line("b", "a", "2"))
		paths = append(paths, path)
	}
	return paths
}

// An import that was stopped goes on where it was.
func TestAnImportThatWasStoppedGoesOn(t *testing.T) {
	s := sqlitestoretest.Open(t, sqlitestore.Options{Synchronous: sqlitestore.Normal})
	paths := folder(t, 200)
	stopped, stop := context.WithCancel(ctx)
	done := 0
	err := s.Import(stopped, paths, sqlitestore.ImportOptions{}, func(r sqlitestore.FileResult) {
		require.NoError(t, r.Err)
		if done++; done == 20 {
			stop()
		}
	})
	require.ErrorIs(t, err, context.Canceled)
	counts := map[sqlitestore.Outcome]int{}
	for _, r := range importAll(t, s, sqlitestore.ImportOptions{}, paths...) {
		require.NoError(t, r.Err)
		counts[r.Outcome]++
	}
	assert.Equal(t, 200, counts[sqlitestore.Imported]+counts[sqlitestore.Unchanged])
	assert.GreaterOrEqual(t, counts[sqlitestore.Unchanged], 20, "what was told is there")
	assert.Greater(t, counts[sqlitestore.Imported], 0, "it was stopped")
	listed, err := s.List(ctx, "")
	require.NoError(t, err)
	assert.Len(t, listed, 200)
}

// Two imports of one folder at a time take each session once.
func TestTwoImportsAtATime(t *testing.T) {
	db := filepath.Join(t.TempDir(), "sessions.db")
	a := sqlitestoretest.OpenAt(t, db, sqlitestore.Options{Synchronous: sqlitestore.Normal})
	b, err := sqlitestore.Open(ctx, db, sqlitestore.Options{Synchronous: sqlitestore.Normal})
	require.NoError(t, err)
	paths := folder(t, 150)
	var running sync.WaitGroup
	var entries atomic.Int64
	for _, s := range []*sqlitestore.Store{a, b} {
		running.Go(func() {
			assert.NoError(t, s.Import(ctx, paths, sqlitestore.ImportOptions{}, func(r sqlitestore.FileResult) {
				assert.NoError(t, r.Err)
				entries.Add(int64(r.Entries))
			}))
		})
	}
	running.Wait()
	require.NoError(t, b.Close(ctx))
	assert.Equal(t, int64(300), entries.Load())
	listed, err := a.List(ctx, "")
	require.NoError(t, err)
	assert.Len(t, listed, 150)
}
