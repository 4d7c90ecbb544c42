package sqlitestore_test

import (
	"flag"
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/sessiontree/sessiontree/sqlitestore"
)

var importSessions = flag.Int("import-sessions", 300, "how many sessions the import benchmark has; the figures of the README are of 10,000")

// generated writes sessions as people have them: their number of entries is
// log-normal with a mean of 83, cut to 30 and 3,000, an entry has about 480 bytes;
// now and then one goes back, and some compact.
func generated(b testing.TB, dir string, sessions int) (paths []string, entries int, bytes int64) {
	r := rand.New(rand.NewPCG(1, 2))
	filler := strings.Repeat("a word ", 60)
	for i := range sessions {
		n := int(math.Exp(math.Log(83) - 0.32 + 0.8*r.NormFloat64()))
		n = min(max(n, 30), 3000)
		var text strings.Builder
		id := fmt.Sprintf("01990000-0000-7000-8000-%012d", i)
		fmt.Fprintf(&text, `{"type":"session","version":3,"id":%q,"timestamp":"2026-01-01T00:00:00.000Z","cwd":"/home/ada/project-%d"}`+"\n", id, i%40)
		ids := make([]string, n)
		parent := "null"
		for j := range n {
			ids[j] = fmt.Sprintf("%08x", r.Uint32())
			if j > 2 && r.IntN(40) == 0 {
				parent = fmt.Sprintf("%q", ids[r.IntN(j)])
			}
			at := fmt.Sprintf("2026-01-01T%02d:%02d:%02d.000Z", j/3600, j/60%60, j%60)
			switch {
			case j%60 == 59:
				fmt.Fprintf(&text, `{"type":"compaction","id":%q,"parentId":%s,"timestamp":%q,"summary":%q,"firstKeptEntryId":%q,"tokensBefore":1000}`+"\n", ids[j], parent, at, filler[:300], ids[j-8])
			case j%2 == 0:
				fmt.Fprintf(&text, `{"type":"message","id":%q,"parentId":%s,"timestamp":%q,"message":{"role":"user","content":[{"type":"text","text":%q}],"timestamp":1767225600000}}`+"\n", ids[j], parent, at, filler[:280])
			default:
				fmt.Fprintf(&text, `{"type":"message","id":%q,"parentId":%s,"timestamp":%q,"message":{"role":"assistant","content":[{"type":"text","text":%q}],"api":"acme-api","provider":"acme","model":"coder-1","usage":{"input":100,"output":20,"cacheRead":5,"cacheWrite":3,"totalTokens":128,"cost":{"input":0,"output":0,"cacheRead":0,"cacheWrite":0,"total":0.01}},"stopReason":"stop","timestamp":1767225600000}}`+"\n", ids[j], parent, at, filler[:150])
			}
			parent = fmt.Sprintf("%q", ids[j])
		}
		path := filepath.Join(dir, fmt.Sprintf("2026-01-01T00-00-00-000Z_%s.jsonl", id))
		require.NoError(b, os.WriteFile(path, []byte(text.String()), 0o600))
		paths, entries, bytes = append(paths, path), entries+n, bytes+int64(text.Len())
	}
	return paths, entries, bytes
}

// bareImport is the limit: the lines of each file, inserted in a transaction.
func bareImport(b *testing.B, paths []string) time.Duration {
	db := bare(b)
	start := time.Now()
	for _, path := range paths {
		text, err := os.ReadFile(path)
		require.NoError(b, err)
		tx, err := db.Begin()
		require.NoError(b, err)
		insert, err := tx.Prepare("INSERT INTO bare (payload) VALUES (?)")
		require.NoError(b, err)
		for line := range strings.Lines(string(text)) {
			_, err := insert.Exec(line)
			require.NoError(b, err)
		}
		require.NoError(b, tx.Commit())
	}
	return time.Since(start)
}

// BenchmarkImport imports a folder, and then again: entries a second, beside the
// limit, the time of the second run, and the peak of the memory between.
func BenchmarkImport(b *testing.B) {
	paths, entries, bytes := generated(b, b.TempDir(), *importSessions)
	b.SetBytes(bytes)
	for range b.N {
		b.StopTimer()
		s := benchStore(b)
		peak := make(chan uint64)
		stop := make(chan bool)
		go watchMemory(stop, peak)
		b.StartTimer()
		start := time.Now()
		require.NoError(b, s.Import(ctx, paths, sqlitestore.ImportOptions{}, func(r sqlitestore.FileResult) {
			if r.Outcome != sqlitestore.Imported {
				b.Errorf("%+v", r)
			}
		}))
		took := time.Since(start)
		b.StopTimer()
		b.ReportMetric(float64(entries)/took.Seconds(), "entries/s")
		b.ReportMetric(float64(took)/float64(bareImport(b, paths)), "×limit")
		close(stop)
		b.ReportMetric(float64(<-peak)/(1<<20), "peak-MB")
		start = time.Now()
		require.NoError(b, s.Import(ctx, paths, sqlitestore.ImportOptions{}, func(r sqlitestore.FileResult) {
			if r.Outcome != sqlitestore.Unchanged {
				b.Errorf("%+v", r)
			}
		}))
		b.ReportMetric(time.Since(start).Seconds()*1000, "again-ms")
	}
}

// watchMemory gives the most memory that Go had from the system, less what it gave
// back.
func watchMemory(stop <-chan bool, peak chan<- uint64) {
	var most uint64
	var m runtime.MemStats
	for {
		runtime.ReadMemStats(&m)
		most = max(most, m.Sys-m.HeapReleased)
		select {
		case <-stop:
			peak <- most
			return
		case <-time.After(20 * time.Millisecond):
		}
	}
}
