package bench_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/sessiontree/sessiontree/bench"
	"github.com/sessiontree/sessiontree/bench/backend"
	"github.com/sessiontree/sessiontree/bench/shape"
	"github.com/sessiontree/sessiontree/eventlog"
	"github.com/sessiontree/sessiontree/sqlitestore"
)

var ctx = context.Background()

// TestMain also is the process that serves a backend.
func TestMain(m *testing.M) {
	if len(os.Args) == 3 && os.Args[1] == "serve" {
		b, ok := backend.Find(os.Args[2])
		if !ok {
			panic(os.Args[2])
		}
		if err := backend.Serve(ctx, b, os.Stdin, os.Stdout); err != nil {
			panic(err)
		}
		return
	}
	os.Exit(m.Run())
}

func serve(name string) []string { return []string{os.Args[0], "serve", name} }

// small is a run of few samples on small trees.
func small(t *testing.T) bench.Config {
	return bench.Config{Seed: 5, Sizes: []int{100, 300}, Effort: 0.01, Sessions: 20, Corpus: 400, Dir: t.TempDir(), Serve: serve}
}

// figures are the names of all rows of a backend.
func figures(r *bench.Result, backend string) (names []string) {
	for _, row := range r.Rows {
		if row.Backend == backend {
			names = append(names, fmt.Sprintf("%s %s %d", row.Operation, row.Shape, row.Size))
		}
	}
	slices.Sort(names)
	return names
}

func TestARunMeasuresEveryOperationOnEveryTree(t *testing.T) {
	c := small(t)
	c.Shapes = []string{"chain", "realistic"}
	c.Backends = []backend.Backend{backend.SQLite()}
	r, err := bench.Run(ctx, c)
	require.NoError(t, err)
	trees, once := map[string]int{}, map[string]int{}
	for _, row := range r.Rows {
		require.NotEmpty(t, row.Samples, row.Operation)
		for _, v := range row.Samples {
			require.GreaterOrEqual(t, v, 0.0, "%s of %s", row.Operation, row.Shape)
		}
		if row.Against != "" {
			require.Len(t, row.Limit, len(row.Samples), "%s: samples and limit are pairs", row.Operation)
			require.NotNil(t, row.Ratio)
		}
		if row.Shape == "corpus" {
			once["analytics"]++
		} else if slices.Contains([]string{"empty", "create", "comb-level", "context-during-build", "list", "list-page", "batch"}, row.Operation) {
			once[row.Operation]++
		} else {
			trees[row.Operation]++
		}
	}
	all := len(c.Shapes) * len(c.Sizes)
	assert.Equal(t, all, trees["rebuild-branch"])
	for _, name := range bench.OperationNames() {
		if name == "rebuild" {
			continue // a row a view
		}
		assert.True(t, trees[name] == all || once[name] > 0, "%s is measured %d times on trees", name, trees[name])
	}
	for name, n := range trees {
		assert.Equal(t, all, n, "%s is measured on each tree", name)
	}
	leftOver, err := filepath.Glob(filepath.Join(c.Dir, "*"))
	require.NoError(t, err)
	assert.Empty(t, leftOver)
}

func TestEveryShapeIsMeasured(t *testing.T) {
	c := small(t)
	c.Shapes, c.Sizes, c.Operations = shape.Names(), []int{100}, []string{"branch", "context"}
	c.Backends = []backend.Backend{backend.SQLite()}
	r, err := bench.Run(ctx, c)
	require.NoError(t, err)
	assert.Len(t, r.Rows, len(c.Shapes)*3, "with the build")
}

func TestTheBackendsAreMeasuredAlike(t *testing.T) {
	c := small(t)
	c.Shapes, c.Sizes = []string{"realistic"}, []int{200}
	c.Backends = []backend.Backend{backend.SQLite(), backend.JSONL(), backend.Memory()}
	r, err := bench.Run(ctx, c)
	require.NoError(t, err)
	sqlite, jsonl, memory := figures(r, "sqlite"), figures(r, "jsonl"), figures(r, "memory")
	// What a backend does not have is left out, and nothing else.
	only := []string{"append-2-processes realistic 200", "common-ancestor realistic 200", "disk-branch-set realistic 200", "is-ancestor realistic 200", "descendants realistic 200", "import realistic 200", "list-page chain 20"}
	for _, view := range sqlitestore.ViewNames() {
		only = append(only, fmt.Sprintf("rebuild-%s realistic 200", view), fmt.Sprintf("catch-up-%s corpus 400", view))
	}
	for _, question := range []string{"usage-by-day", "usage-by-month", "usage-by-model", "usage-by-session", "tools", "search-common", "search-rare", "search-absent", "search-ranked-common", "search-ranked-rare", "search-ranked-rare-page", "catch-up"} {
		only = append(only, question+" corpus 400")
	}
	assert.ElementsMatch(t, only, without(sqlite, jsonl))
	assert.ElementsMatch(t, []string{"append-at-bytes realistic 200", "context-first realistic 200", "disk realistic 200", "fresh-process realistic 200", "stream-memory realistic 200"}, without(jsonl, memory))
	assert.Empty(t, without(jsonl, sqlite))
	assert.Empty(t, without(memory, jsonl))
}

func without(all, some []string) (rest []string) {
	for _, name := range all {
		if !slices.Contains(some, name) {
			rest = append(rest, name)
		}
	}
	return rest
}

func TestTheSameSeedGivesTheSameFiguresExceptForTimes(t *testing.T) {
	run := func(seed uint64) (sizes map[string]float64, names []string) {
		c := small(t)
		c.Seed, c.Backends, c.Shapes = seed, []backend.Backend{backend.SQLite()}, []string{"walk"}
		c.Operations = []string{"disk", "append-at", "branch"}
		r, err := bench.Run(ctx, c)
		require.NoError(t, err)
		sizes = map[string]float64{}
		for _, row := range r.Rows {
			if row.Unit == bench.Bytes || row.Unit == bench.BytesPerEntry {
				sizes[fmt.Sprintf("%s %d", row.Operation, row.Size)] = row.Value.Median
			}
		}
		return sizes, figures(r, "sqlite")
	}
	sizes, names := run(1)
	again, namesAgain := run(1)
	for name, size := range sizes {
		// How often the asynchronous views wrote says how full their pages are.
		tolerance := 0.0
		if strings.HasPrefix(name, "disk ") {
			tolerance = 0.05 * size
		}
		assert.InDelta(t, size, again[name], tolerance, name)
	}
	assert.Equal(t, names, namesAgain)
	assert.Len(t, sizes, 6, "disk, its views, and the bytes of a branch, at two sizes")
}

func TestAStoreInAnotherProcessIsMeasuredBesideOurs(t *testing.T) {
	c := small(t)
	peer := backend.Process("peer", "this module's files, in another process", backend.BareSQL().Name, serve("jsonl")...)
	c.Backends = []backend.Backend{backend.SQLite(), peer}
	c.Shapes, c.Sizes, c.Operations = []string{"chain"}, []int{150}, []string{"branch", "append", "fresh-process"}
	r, err := bench.Run(ctx, c)
	require.NoError(t, err)
	assert.Equal(t, figures(r, "sqlite"), figures(r, "peer"))
	for _, row := range r.Rows {
		assert.Equal(t, "bare-sql", row.Against, "%s of %s", row.Operation, row.Backend)
	}
}

func TestGrowthIsFittedOverTheSizes(t *testing.T) {
	c := small(t)
	c.Backends, c.Shapes, c.Sizes = []backend.Backend{backend.SQLite()}, []string{"chain"}, []int{100, 200, 400, 800}
	c.Operations = []string{"branch", "append"}
	r, err := bench.Run(ctx, c)
	require.NoError(t, err)
	got := map[string]bench.Growth{}
	for _, g := range r.Growth {
		assert.Equal(t, c.Sizes, g.Sizes[:4], g.Operation)
		got[g.Operation] = g
	}
	assert.Equal(t, "entries", got["branch"].By)
	assert.InDelta(t, 1, got["branch"].Expected, 0)
	assert.Equal(t, "size", got["append"].By)
	assert.InDelta(t, 0, got["append"].Expected, 0)
}

func TestProgressCountsEveryStep(t *testing.T) {
	c := small(t)
	c.Backends, c.Sizes, c.Operations = []backend.Backend{backend.Memory()}, []int{100}, []string{"append*", "list"}
	var steps []string
	c.Progress = func(p bench.Progress) {
		assert.Equal(t, len(steps), p.Done)
		steps = append(steps, p.Step)
		assert.LessOrEqual(t, len(steps), p.Total)
	}
	_, err := bench.Run(ctx, c)
	require.NoError(t, err)
	assert.Equal(t, "memory chain 100: build", steps[0])
	assert.Contains(t, steps, "memory realistic 100: append-8-writers")
}

func TestARunThatIsBrokenOffHasKeptWhatItMeasured(t *testing.T) {
	cancelled, cancel := context.WithCancel(ctx)
	defer cancel()
	c := small(t)
	c.Backends, c.Shapes, c.Operations = []backend.Backend{backend.Memory()}, []string{"chain"}, []string{"branch"}
	var kept []string
	c.Keep = func(r *bench.Result) error {
		kept = figures(r, "memory")
		cancel()
		return nil
	}
	_, err := bench.Run(cancelled, c)
	assert.ErrorIs(t, err, context.Canceled)
	assert.Equal(t, []string{"branch chain 100", "build chain 100"}, kept)
}

func TestAWrongConfigurationIsRefusedWithEveryReason(t *testing.T) {
	_, err := bench.Run(ctx, bench.Config{Shapes: []string{"spiral"}, Sizes: []int{5}, Operations: []string{"fly*"}, Effort: -1, Sessions: -3})
	assert.ErrorIs(t, err, eventlog.ErrInvalidArgument)
	for _, what := range []string{"spiral", "not 5", "fly*", "not -1", "not -3"} {
		assert.ErrorContains(t, err, what)
	}
}

func TestACancelledRunEndsAndLeavesNothing(t *testing.T) {
	cancelled, cancel := context.WithCancel(ctx)
	c := small(t)
	c.Progress = func(p bench.Progress) {
		if strings.Contains(p.Step, "append") {
			cancel()
		}
	}
	_, err := bench.Run(cancelled, c)
	assert.ErrorIs(t, err, context.Canceled)
	left, err := os.ReadDir(c.Dir)
	require.NoError(t, err)
	assert.Empty(t, left)
}
