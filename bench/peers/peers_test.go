package peers_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/sessiontree/sessiontree/bench"
	"github.com/sessiontree/sessiontree/bench/backend"
	"github.com/sessiontree/sessiontree/bench/peers"
	"github.com/sessiontree/sessiontree/bench/shape"
)

var ctx = context.Background()

// TestMain also is a peer: "peer" is one that answers, "dying" one that ends in
// the middle of its first build, "broken" one that says nothing sensible.
func TestMain(m *testing.M) {
	if len(os.Args) == 2 {
		switch os.Args[1] {
		case "peer":
			serve(backend.JSONL())
		case "dying":
			serve(dying())
		case "broken":
			fmt.Println("hello")
			return
		}
	}
	os.Exit(m.Run())
}

func serve(b backend.Backend) {
	if err := backend.Serve(ctx, b, os.Stdin, os.Stdout); err != nil {
		panic(err)
	}
	os.Exit(0)
}

// dying is a store whose process ends when it is asked to build.
func dying() backend.Backend {
	b := backend.JSONL()
	open := b.Open
	b.Open = func(ctx context.Context, dir string, o backend.Options) (backend.Store, error) {
		store, err := open(ctx, dir, o)
		return mortal{store}, err
	}
	return b
}

type mortal struct{ backend.Store }

func (m mortal) Do(ctx context.Context, r backend.Request) (backend.Reply, error) {
	if r.Op == backend.Build {
		os.Exit(3)
	}
	return m.Store.Do(ctx, r)
}

func fake(kind string, l peers.Limits) backend.Backend {
	return l.Guard(backend.Process("fake", "a peer of the tests", "sqlite", os.Args[0], kind))
}

func run(t *testing.T, c bench.Config) *bench.Result {
	t.Helper()
	c.Dir, c.Effort, c.Sessions = t.TempDir(), 0.01, 10
	r, err := bench.Run(ctx, c)
	require.NoError(t, err)
	return r
}

// rows are the rows of a backend, by operation, shape and size.
func rows(r *bench.Result, name string) map[string]bench.Row {
	all := map[string]bench.Row{}
	for _, row := range r.Rows {
		if row.Backend == name {
			all[fmt.Sprintf("%s %s %d", row.Operation, row.Shape, row.Size)] = row
		}
	}
	return all
}

func TestAPeerIsMeasuredBesideOurs(t *testing.T) {
	r := run(t, bench.Config{
		Shapes: []string{"chain"}, Sizes: []int{100}, Operations: []string{"branch", "append", "append-at", "move", "fork-whole", "create", "list"},
		Backends: []backend.Backend{backend.SQLite(), fake("peer", peers.Limits{})},
	})
	assert.Empty(t, r.NotRun)
	got := rows(r, "fake")
	for _, name := range []string{"build chain 100", "branch chain 100", "append chain 100", "append-at chain 100", "fork-whole chain 100", "create chain 100", "list chain 10"} {
		row, ok := got[name]
		require.True(t, ok, name)
		assert.Equal(t, "sqlite", row.Against, name)
		require.NotNil(t, row.Ratio, name)
		assert.Positive(t, row.Ratio.Median, name)
	}
	assert.Equal(t, "append", got["move chain 100"].Against)
}

func TestWhatIsBeyondALimitIsNotRun(t *testing.T) {
	for _, c := range []struct {
		name   string
		limits peers.Limits
		config bench.Config
		has    []string
		not    []string
		left   []bench.NotRun
	}{
		{
			"a long branch", peers.Limits{Branch: 200, BranchReason: "it falls over"},
			bench.Config{Shapes: []string{"chain"}, Sizes: []int{100, 300}, Operations: []string{"branch", "append", "move"}},
			[]string{"build chain 100", "branch chain 100", "append chain 100", "move chain 100"},
			[]string{"build chain 300", "branch chain 300", "append chain 300", "move chain 300"},
			[]bench.NotRun{{Backend: "fake", Operation: "build", Shape: "chain", Size: 300, Reason: "it falls over; up to 200 are measured"}},
		},
		{
			"many copies", peers.Limits{Copies: map[backend.Op]int{backend.Build: 2000}},
			bench.Config{Shapes: []string{"comb", "star"}, Sizes: []int{300}, Operations: []string{"branch"}},
			[]string{"build star 300", "branch star 300"},
			[]string{"build comb 300", "branch comb 300"},
			// Level n copies n entries, and the first 200 entries, a batch, have 99 levels.
			[]bench.NotRun{{Backend: "fake", Operation: "build", Shape: "comb", Size: 300, Reason: "each new branch copies the way to it, here 4950 entries or more in all; up to 2000 are measured"}},
		},
		{
			"one writer", peers.Limits{OneWriter: "one at a time"},
			bench.Config{Shapes: []string{"chain"}, Sizes: []int{100}, Operations: []string{"append-2-processes", "stream-memory"}},
			[]string{"stream-memory chain 100"},
			[]string{"append-2-processes chain 100"},
			[]bench.NotRun{{Backend: "fake", Operation: "append-2-processes", Shape: "chain", Size: 100, Reason: "one at a time"}},
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			c.config.Backends = []backend.Backend{backend.SQLite(), fake("peer", c.limits)}
			r := run(t, c.config)
			got := rows(r, "fake")
			for _, name := range c.has {
				assert.Contains(t, got, name)
			}
			for _, name := range c.not {
				assert.NotContains(t, got, name)
			}
			assert.Equal(t, c.left, r.NotRun)
		})
	}
}

func TestAPeerThatFailsEndsNoRun(t *testing.T) {
	for kind, reason := range map[string]string{"dying": "gave no answer to build", "broken": "answered open with no reply"} {
		t.Run(kind, func(t *testing.T) {
			r := run(t, bench.Config{
				Shapes: []string{"chain"}, Sizes: []int{100}, Operations: []string{"branch", "comb-level", "list"},
				Backends: []backend.Backend{backend.SQLite(), fake(kind, peers.Limits{})},
			})
			assert.Contains(t, rows(r, "sqlite"), "branch chain 100")
			assert.NotContains(t, rows(r, "fake"), "branch chain 100")
			require.NotEmpty(t, r.NotRun)
			assert.Contains(t, r.NotRun[0].Reason, reason)
		})
	}
}

func TestAPeerThatIsNotThereIsALineOfTheReport(t *testing.T) {
	missing := peers.Backends(t.TempDir())
	r := run(t, bench.Config{Shapes: []string{"chain"}, Sizes: []int{100}, Operations: []string{"branch"}, Backends: append([]backend.Backend{backend.Memory()}, missing...)})
	const reason = "not installed: sessiontree bench peers install fetches it with npm"
	assert.Equal(t, []bench.NotRun{{Backend: "pi-sqlite", Reason: reason}, {Backend: "pi-jsonl", Reason: reason}}, r.NotRun)
	assert.NotEmpty(t, rows(r, "memory"))
	r = run(t, bench.Config{Backends: missing})
	assert.Empty(t, r.Rows)
	assert.Len(t, r.NotRun, 2)
}

// script puts a program of that name, and what else the shell needs, on the PATH.
func script(t *testing.T, name, text string) {
	t.Helper()
	if runtime.GOOS == "windows" {
		t.Skip("a script of the shell stands for " + name)
	}
	dir := t.TempDir()
	require.NoError(t, os.WriteFile(filepath.Join(dir, name), []byte("#!/bin/sh\n"+text), 0o755))
	t.Setenv("PATH", dir+string(os.PathListSeparator)+os.Getenv("PATH"))
}

func TestInstallFetchesWhatIsMissing(t *testing.T) {
	script(t, "npm", `[ "$1 $2" = "ci --ignore-scripts" ] && [ -s package.json ] && [ -s package-lock.json ] || exit 9
for package in @earendil-works/pi-session-backend-sqlite-node @earendil-works/pi-agent-core; do
	grep -q "\"$package\"" package.json && mkdir -p node_modules/$package && echo '{}' >node_modules/$package/package.json
done
mkdir -p node_modules
`)
	folder := filepath.Join(t.TempDir(), "peers")
	var log strings.Builder
	require.NoError(t, peers.Install(ctx, folder, &log))
	for _, p := range peers.All() {
		assert.True(t, p.Installed(folder), p.Name)
		assert.Contains(t, log.String(), p.Name)
	}
	log.Reset()
	require.NoError(t, peers.Install(ctx, folder, &log))
	assert.Empty(t, log.String(), "all is there")
}

func TestAnInstallThatFailsLeavesNothing(t *testing.T) {
	script(t, "npm", "mkdir node_modules; echo no network >&2; exit 1\n")
	folder := t.TempDir()
	var log strings.Builder
	require.ErrorContains(t, peers.Install(ctx, folder, &log), "npm cannot fetch node")
	assert.Contains(t, log.String(), "no network")
	left, err := os.ReadDir(folder)
	require.NoError(t, err)
	assert.Empty(t, left)
}

func TestInstallNeedsNPM(t *testing.T) {
	t.Setenv("PATH", t.TempDir())
	require.ErrorContains(t, peers.Install(ctx, t.TempDir(), os.Stderr), "npm")
}

func TestAnOldNodeIsNotTaken(t *testing.T) {
	for version, ok := range map[string]bool{"v20.20.2": false, "v24.0.0": true, "v31.1.0": true, "what": false} {
		script(t, "node", "echo "+version+"\n")
		_, found := peers.Node(t.TempDir())
		assert.Equal(t, ok, found, version)
	}
}

// installed gives the peers of this machine, or says why the test is skipped.
func installed(t *testing.T) []backend.Backend {
	t.Helper()
	folder, err := peers.Folder()
	if err != nil {
		t.Skip(err)
	}
	all := peers.Backends(folder)
	for _, b := range all {
		if b.Missing != "" {
			t.Skipf("%s: %s", b.Name, b.Missing)
		}
	}
	return all
}

// TestTheRealPeersAnswerAsOurs asks all for the same, and counts.
func TestTheRealPeersAnswerAsOurs(t *testing.T) {
	all := installed(t)
	for _, name := range []string{"chain", "compacted", "realistic", "walk"} {
		t.Run(name, func(t *testing.T) {
			ours := counts(t, backend.SQLite(), name)
			for _, b := range all {
				theirs := counts(t, b, name)
				require.Len(t, theirs, len(ours))
				for i := range ours {
					if theirs[i] != notRun {
						assert.Equal(t, ours[i], theirs[i], "%s, question %d", b.Name, i)
					}
				}
				assert.Less(t, len(slices.DeleteFunc(theirs, func(n int) bool { return n != notRun })), len(ours)/2, "most is run")
			}
		})
	}
}

const notRun = -1

// counts builds a tree and counts what is answered about it while it changes.
func counts(t *testing.T, b backend.Backend, name string) []int {
	t.Helper()
	s, err := shape.Find(name)
	require.NoError(t, err)
	const size = 400
	var lines []string
	for e := range s.Entries(size, 3) {
		lines = append(lines, e.JSON())
	}
	store, err := b.Open(ctx, t.TempDir(), backend.Options{})
	require.NoError(t, err)
	defer func() { assert.NoError(t, store.Close(ctx)) }()
	message := []string{`{"role":"user","content":"next","timestamp":1}`}
	// Branches are counted where they are as long everywhere: without a compaction,
	// and without settings, which are no entries for Pi's SQLite backend. It forks
	// what is on the branch of the leaf only.
	asks := []backend.Request{
		{Op: backend.Create},
		{Op: backend.Build, Lines: lines[:size/2]},
		{Op: backend.Build, Lines: lines[size/2:]},
		{Op: backend.Context},
		{Op: backend.Context, Entry: shape.ID(size / 2)},
		{Op: backend.Append, Lines: message},
		{Op: backend.Context},
		{Op: backend.Turn, Lines: message},
		{Op: backend.Batch, Lines: []string{message[0], message[0], message[0]}},
		{Op: backend.Context},
		{Op: backend.AppendAt, Entry: shape.ID(size / 3), Lines: message},
		{Op: backend.Context},
		{Op: backend.Move, Entry: shape.ID(size - 1)},
		{Op: backend.Context},
		{Op: backend.Leave},
		{Op: backend.Context},
		{Op: backend.List},
	}
	if name == "chain" || name == "walk" {
		asks = append(asks, backend.Request{Op: backend.Branch}, backend.Request{Op: backend.Branch, Entry: shape.ID(size / 2)})
	}
	if name == "chain" {
		asks = append(asks, backend.Request{Op: backend.Fork, NewSession: "half", Entry: shape.ID(size / 2)})
	}
	var all []int
	for _, r := range asks {
		r.Session = "main"
		reply, err := store.Do(ctx, r)
		if err != nil {
			require.ErrorIs(t, err, errors.ErrUnsupported, "%s of %s", r.Op, b.Name)
			require.NotContains(t, err.Error(), "it failed")
			all = append(all, notRun)
			continue
		}
		all = append(all, reply.Count)
	}
	return all
}

func TestTheRealPeersAreMeasured(t *testing.T) {
	all := installed(t)
	r := run(t, bench.Config{
		Shapes: []string{"chain"}, Sizes: []int{100}, Operations: []string{"append", "branch", "context", "append-at", "move", "comb-level", "create", "fork*", "fresh-process", "turn"},
		Backends: append([]backend.Backend{backend.SQLite()}, all...),
	})
	assert.Empty(t, r.NotRun)
	ours := rows(r, "sqlite")
	for _, b := range all {
		theirs := rows(r, b.Name)
		for _, name := range []string{"build chain 100", "append chain 100", "branch chain 100", "context chain 100", "append-at chain 100", "move chain 100", "turn chain 100", "fork-whole chain 100", "fork-half chain 100", "create chain 100", "fresh-process chain 100"} {
			assert.Contains(t, theirs, name, b.Name)
		}
		assert.Equal(t, ours["branch chain 100"].Entries, theirs["branch chain 100"].Entries)
	}
}

func TestTheLockFilesAreOfTheVersionsThatAreNamed(t *testing.T) {
	for _, p := range peers.All() {
		lock, err := os.ReadFile(filepath.Join("npm", p.Name, "package-lock.json"))
		require.NoError(t, err)
		assert.Contains(t, string(lock), fmt.Sprintf("%q: %q", p.Package, p.Version))
	}
}
