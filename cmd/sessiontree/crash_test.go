package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/sessiontree/sessiontree/eventlog"
	"github.com/sessiontree/sessiontree/sqlitestore"
)

// TestReport_O1_A6_H2_KilledProgramsLoseNothing runs the program as people do,
// several at once on one database: appends by the line, moves, branches, forks,
// imports and rebuilds. Each is killed at some moment. What was told is there then,
// nothing is there by half, every view equals a rebuild, and the leaf is right.
func TestReport_O1_A6_H2_KilledProgramsLoseNothing(t *testing.T) {
	rounds := 3 // each begins with another command
	if long {
		rounds = 260 // two kills each
	}
	seed := uint64(time.Now().UnixNano())
	t.Log("seed", seed)
	c := &crash{t: t, r: rand.New(rand.NewPCG(seed, 1)), bin: built(t), dir: t.TempDir(), told: map[string]int{}}
	for c.round = range rounds {
		if c.round%25 == 0 { // a new database, so that the rounds stay quick
			c.db = filepath.Join(c.dir, fmt.Sprintf("%d.db", c.round))
		}
		c.run()
	}
	t.Logf("%d kills; told and found: %v", c.kills, c.told)
	require.Positive(t, c.kills)
	for _, what := range []string{"append", "move", "fork", "import"} {
		require.Positive(t, c.told[what], what)
	}
}

// crash is the test under way.
type crash struct {
	t       *testing.T
	r       *rand.Rand
	bin     string
	dir, db string
	round   int
	kills   int
	told    map[string]int // what, and how often

	mu       sync.Mutex
	appended []string          // ids that were told
	moved    []string          // where the leaf was told to be
	forked   []string          // sessions that were told
	imported map[string]string // files that were told, and their sessions
}

// imports is how many entries each imported file has: it takes a write of several
// batches.
const imports = 1500

func (c *crash) run() {
	c.appended, c.moved, c.forked, c.imported = nil, nil, nil, map[string]string{}
	session := fmt.Sprintf("session-%d", c.round)
	c.must("create", "--id", session)
	c.must("append", "--session", session, "--id", c.name("first"), "first")
	c.appended = append(c.appended, c.name("first"))
	files := c.importFolder()

	var all sync.WaitGroup
	ctx, kill := context.WithCancel(context.Background())
	all.Go(func() { c.appends(ctx, session) })
	begun := make(chan struct{})
	all.Go(func() { c.others(ctx, session, files, func() { close(begun) }) })
	<-begun
	time.Sleep(time.Duration(c.r.IntN(400)) * time.Millisecond)
	kill()
	all.Wait()
	c.check(session, files)
}

func (c *crash) name(what string) string { return fmt.Sprintf("%s-%d", what, c.round) }

// command is a process that dies by SIGKILL when the context ends.
func (c *crash) command(ctx context.Context, args ...string) *exec.Cmd {
	return exec.CommandContext(ctx, c.bin, append(args, "--db", c.db)...)
}

// must runs a command that nobody kills.
func (c *crash) must(args ...string) {
	said, err := c.command(context.Background(), args...).CombinedOutput()
	require.NoError(c.t, err, "%q: %s", args, said)
}

// importFolder makes session files to import.
func (c *crash) importFolder() map[string]string {
	files := map[string]string{}
	for i := range 3 {
		id := fmt.Sprintf("imported-%d-%d", c.round, i)
		var text strings.Builder
		fmt.Fprintf(&text, `{"type":"session","version":3,"id":%q,"timestamp":"2026-01-01T00:00:00.000Z","cwd":"/p"}`+"\n", id)
		parent := "null"
		for n := range imports {
			fmt.Fprintf(&text, `{"type":"message","id":"i%d","parentId":%s,"timestamp":"2026-01-01T00:00:01.000Z","message":{"role":"user","content":"entry %d"}}`+"\n", n, parent, n)
			parent = fmt.Sprintf(`"i%d"`, n)
		}
		path := filepath.Join(c.dir, id+".jsonl")
		require.NoError(c.t, os.WriteFile(path, []byte(text.String()), 0o600))
		files[path] = id
	}
	return files
}

// appends appends line by line, on the leaf and, now and then, beside it.
func (c *crash) appends(ctx context.Context, session string) {
	cmd := c.command(ctx, "append", "--session", session, "--lines")
	in, err := cmd.StdinPipe()
	c.noError(err)
	out, err := cmd.StdoutPipe()
	c.noError(err)
	var said strings.Builder
	cmd.Stderr = &said
	c.noError(cmd.Start())
	go func() {
		for i := 0; ; i++ {
			at := ""
			if i%7 == 6 {
				at = `"at":"` + c.name("first") + `",`
			}
			if _, err := fmt.Fprintf(in, `{"id":"a-%d-%d",%s"message":{"role":"user","content":"%s"}}`+"\n", c.round, i, at, strings.Repeat("x", i*37%3000)); err != nil {
				return
			}
		}
	}()
	lines := bufio.NewReader(out)
	for {
		line, err := lines.ReadString('\n')
		if err != nil { // and what has no end was not told
			break
		}
		c.tell(&c.appended, line)
	}
	c.ended(ctx, cmd.Wait(), said.String())
}

// others runs all the other commands, one behind the other. Each round begins with
// another, and says when that has ended.
func (c *crash) others(ctx context.Context, session string, files map[string]string, begun func()) {
	paths := slices.Sorted(maps.Keys(files))
	steps := []func(i int){
		func(i int) {
			c.step(ctx, &c.moved, "move", "--session", session, c.name("first"), "--summary", fmt.Sprint("went back ", i))
		},
		func(i int) {
			c.step(ctx, &c.forked, "fork", "--session", session, "--id", fmt.Sprintf("fork-%d-%d", c.round, i))
		},
		func(i int) {
			path := paths[i%len(paths)]
			if c.step(ctx, nil, "import", path) {
				c.imported[path] = files[path]
			}
		},
		func(int) { c.step(ctx, nil, "rebuild") },
	}
	for i := 0; ctx.Err() == nil; i++ {
		steps[(c.round+i)%len(steps)](i)
		if i == 0 {
			begun()
		}
	}
}

// step runs a command and takes what it says, if it came to say it.
func (c *crash) step(ctx context.Context, told *[]string, args ...string) (done bool) {
	var said strings.Builder
	cmd := c.command(ctx, args...)
	cmd.Stderr = &said
	out, err := cmd.Output()
	if told != nil && strings.HasSuffix(string(out), "\n") {
		c.tell(told, string(out))
	}
	if err != nil {
		c.ended(ctx, err, fmt.Sprintf("%q: %s", args, &said))
	}
	return err == nil
}

func (c *crash) tell(to *[]string, line string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	*to = append(*to, strings.TrimSuffix(line, "\n"))
}

// ended takes the end of a process: a kill, or an error that says that nothing was
// written.
func (c *crash) ended(ctx context.Context, err error, said string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	var exit *exec.ExitError
	switch {
	case ctx.Err() != nil && errors.As(err, &exit) && exit.ExitCode() == -1:
		c.kills++
	case ctx.Err() != nil && errors.Is(err, ctx.Err()): // before it began
	case strings.Contains(said, "another process writes"):
		c.told["busy"]++ // the machine had no time for whoever held the lock
	default:
		c.t.Errorf("ended with %v: %s", err, said)
	}
}

func (c *crash) noError(err error) {
	if err != nil {
		c.t.Error(err)
	}
}

// check opens the database and looks for all that was told.
func (c *crash) check(session string, files map[string]string) {
	t, ctx := c.t, c.t.Context()
	s, err := sqlitestore.Open(ctx, c.db, sqlitestore.Options{})
	require.NoError(t, err)
	defer s.Close(ctx)
	problems, err := s.Verify(ctx)
	require.NoError(t, err)
	require.Empty(t, problems)

	tree, err := s.Open(ctx, eventlog.Metadata{ID: session})
	require.NoError(t, err)
	log := entriesIn(t, tree)
	ids, leaf := map[string]bool{}, eventlog.None()
	for i, e := range log {
		require.False(t, ids[e.ID()], "%s stands twice", e.ID())
		ids[e.ID()] = true
		if e.Type() == eventlog.TypeLeaf { // a move and its summary are one
			require.Less(t, i+1, len(log), "a move without its summary")
			require.Equal(t, eventlog.TypeBranchSummary, log[i+1].Type())
		}
		leaf = e.LeafAfter()
	}
	head, err := tree.Head(ctx)
	require.NoError(t, err)
	require.Equal(t, eventlog.Head{Leaf: leaf, N: len(log)}, head)
	for _, id := range slices.Concat(c.appended, c.moved) {
		require.True(t, ids[id], "%s was told and is not there", id)
	}
	// The forks: whole, each a beginning of the log.
	for i := range 100 {
		id := fmt.Sprintf("fork-%d-%d", c.round, i)
		fork, err := s.Open(ctx, eventlog.Metadata{ID: id})
		if eventlog.CodeOf(err) == eventlog.NotFound {
			require.NotContains(t, c.forked, id, "a fork that was told")
			continue
		}
		require.NoError(t, err)
		copied := entriesIn(t, fork)
		require.NotEmpty(t, copied)
		require.LessOrEqual(t, len(copied), len(log))
		for i, e := range copied {
			require.Equal(t, log[i].JSON(), e.JSON())
		}
	}
	// The imports: whole or not there.
	for path, id := range files {
		tree, err := s.Open(ctx, eventlog.Metadata{ID: id})
		if eventlog.CodeOf(err) == eventlog.NotFound {
			require.NotContains(t, c.imported, path, "a file that was told")
			continue
		}
		require.NoError(t, err)
		require.Len(t, entriesIn(t, tree), imports)
	}
	_, err = tree.AppendMessage(ctx, eventlog.UserMessage("and on", time.Now()))
	require.NoError(t, err)
	c.told["append"] += len(c.appended)
	c.told["move"] += len(c.moved)
	c.told["fork"] += len(c.forked)
	c.told["import"] += len(c.imported)
}

func entriesIn(t *testing.T, s *eventlog.Session) (all []eventlog.Entry) {
	t.Helper()
	for e, err := range s.Entries(t.Context(), 0, eventlog.All) {
		require.NoError(t, err)
		all = append(all, e)
	}
	return all
}
