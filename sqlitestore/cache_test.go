package sqlitestore_test

import (
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/sessiontree/sessiontree/eventlog"
	"github.com/sessiontree/sessiontree/eventlog/js"
	"github.com/sessiontree/sessiontree/eventlog/memory"
	"github.com/sessiontree/sessiontree/sqlitestore"
	"github.com/sessiontree/sessiontree/sqlitestore/sqlitestoretest"
)

// TestKeptBranchesAreExact plays random histories through two stores on one file,
// one that keeps branches and one that does not, and compares the context of each
// session after every step.
func TestKeptBranchesAreExact(t *testing.T) {
	seeds := []uint64{1, 2, 3, 4, uint64(time.Now().UnixNano())}
	for _, seed := range seeds {
		t.Run(fmt.Sprintf("seed=%d", seed), func(t *testing.T) { keptHistory(t, seed) })
	}
}

func keptHistory(t *testing.T, seed uint64) {
	r := rand.New(rand.NewPCG(seed, 7))
	path := filepath.Join(t.TempDir(), "sessions.db")
	o := sqlitestore.Options{Synchronous: sqlitestore.Normal, CacheBytes: 400_000}
	keeps := sqlitestoretest.OpenAt(t, path, o)
	o.CacheBytes = -1
	reads := sqlitestoretest.OpenAt(t, path, o)
	stores := []*sqlitestore.Store{keeps, reads}
	const sessions = 3
	var trees [sessions][2]*eventlog.Session
	var ids [sessions][]string
	open := func(i int) {
		for k, s := range stores {
			tree, err := s.Open(ctx, eventlog.Metadata{ID: fmt.Sprint("s", i)})
			require.NoError(t, err)
			trees[i][k] = tree
		}
	}
	create := func(i int) {
		_, err := stores[r.IntN(2)].Create(ctx, eventlog.CreateOptions{ID: fmt.Sprint("s", i), CWD: "/project"})
		require.NoError(t, err)
		open(i)
		ids[i] = nil
	}
	for i := range sessions {
		create(i)
	}
	for step := range 400 {
		i := r.IntN(sessions)
		pick := func() string {
			if len(ids[i]) == 0 || r.IntN(20) == 0 {
				return "no-such-entry"
			}
			return ids[i][len(ids[i])-1-r.IntN(min(len(ids[i]), 1+r.IntN(30)))]
		}
		var added []eventlog.Entry
		tree := trees[i][r.IntN(2)]
		switch op := r.IntN(100); {
		case op < 60:
			for range 1 + r.IntN(3) {
				e, err := tree.AppendMessage(ctx, benchMessage(step))
				if err == nil {
					added = append(added, e)
				}
			}
		case op < 70:
			c := eventlog.Compaction{Summary: "s", FirstKeptEntryID: []js.Value{{}, js.Text(pick()), js.Text(pick())}[r.IntN(3)]}
			if r.IntN(4) == 0 {
				c.RetainedTail = js.List()
			}
			if e, err := tree.AppendCompaction(ctx, c); err == nil {
				added = append(added, e)
			}
		case op < 82:
			var summary *eventlog.Summary
			if r.IntN(3) == 0 {
				summary = &eventlog.Summary{Text: "left"}
			}
			to := eventlog.At(pick())
			if r.IntN(10) == 0 {
				to = eventlog.None()
			}
			added, _ = tree.MoveTo(ctx, to, summary)
		case op < 88:
			added, _ = tree.AppendAt(ctx, eventlog.At(pick()), eventlog.MessageDraft(benchMessage(step)))
		case op < 90:
			tree.SetLabel(ctx, pick(), "x")
		case op < 94:
			require.NoError(t, stores[r.IntN(2)].Rebuild(ctx))
		case op < 97:
			if seed%2 == 0 { // what no append of ours writes: an id twice, a hole, a loop
				head, _ := tree.Head(ctx)
				id, parent := []string{pick(), fmt.Sprint("raw", step)}[r.IntN(2)], []string{pick(), "hole", head.Leaf.ID()}[r.IntN(3)]
				e, err := eventlog.ParseEntry(fmt.Sprintf(`{"type":"message","id":%q,"parentId":%q,"timestamp":"t","message":{"role":"user","content":"raw"}}`, id, parent))
				require.NoError(t, err)
				require.NoError(t, tree.Storage().AppendRaw(ctx, e))
			}
		default:
			m, err := tree.Metadata(ctx)
			require.NoError(t, err)
			if r.IntN(2) == 0 {
				require.NoError(t, stores[r.IntN(2)].Delete(ctx, m))
				for _, tree := range trees[i] {
					_, err := tree.Branch(ctx, eventlog.None())
					require.ErrorIs(t, err, eventlog.ErrNotFound)
				}
				create(i)
				break
			}
			// A fork of the whole takes the place of the next session.
			next := (i + 1) % sessions
			require.NoError(t, stores[r.IntN(2)].Delete(ctx, eventlog.Metadata{ID: fmt.Sprint("s", next)}))
			_, err = stores[r.IntN(2)].Fork(ctx, m, eventlog.ForkOptions{CreateOptions: eventlog.CreateOptions{ID: fmt.Sprint("s", next)}})
			require.NoError(t, err)
			open(next)
			ids[next] = append([]string(nil), ids[i]...)
		}
		for _, e := range added {
			ids[i] = append(ids[i], e.ID())
		}
		for i := range trees {
			require.Equal(t, answered(trees[i][1].Branch(ctx, eventlog.None())), answered(trees[i][0].Branch(ctx, eventlog.None())), "step %d, session %d", step, i)
			require.Equal(t, answered(trees[i][1].BuildContext(ctx, eventlog.None())), answered(trees[i][0].BuildContext(ctx, eventlog.None())), "step %d, session %d", step, i)
			if head, err := trees[i][1].Head(ctx); err == nil && !head.Leaf.IsNone() {
				require.Equal(t, answered(trees[i][1].Storage().Branch(ctx, head.Leaf)), answered(trees[i][0].Storage().Branch(ctx, head.Leaf)), "step %d, session %d", step, i)
			}
		}
	}
	asked, hits, grown, size := keeps.CacheUse()
	require.LessOrEqual(t, size, int64(400_000))
	require.Greater(t, hits, asked/3)
	require.Greater(t, grown, 40)
}

// What a caller does to a branch that it was given reaches nobody else.
func TestAKeptBranchIsNobodysToChange(t *testing.T) {
	s := sqlitestoretest.Open(t, sqlitestore.Options{Synchronous: sqlitestore.Normal})
	tree, err := s.Create(ctx, eventlog.CreateOptions{CWD: "/project"})
	require.NoError(t, err)
	var want []eventlog.Entry
	for i := range 20 {
		e, err := tree.AppendMessage(ctx, benchMessage(i))
		require.NoError(t, err)
		want = append(want, e)
		for range 2 {
			branch, err := tree.Branch(ctx, eventlog.None())
			require.NoError(t, err)
			require.Equal(t, want, branch)
			clear(branch[:cap(branch)])
		}
	}
}

func TestKeptBranchesAreBounded(t *testing.T) {
	const limit = 1 << 20
	s := sqlitestoretest.Open(t, sqlitestore.Options{Synchronous: sqlitestore.Normal, CacheBytes: limit})
	large := eventlog.UserMessage(strings.Repeat("x", 100_000), time.UnixMilli(0))
	ask := func(tree *eventlog.Session) (hit bool) {
		_, before, _, _ := s.CacheUse()
		_, err := tree.Branch(ctx, eventlog.None())
		require.NoError(t, err)
		_, after, _, size := s.CacheUse()
		require.LessOrEqual(t, size, int64(limit))
		return after > before
	}
	var trees []*eventlog.Session
	for range 12 {
		tree, err := s.Create(ctx, eventlog.CreateOptions{CWD: "/project"})
		require.NoError(t, err)
		trees = append(trees, tree)
		_, err = tree.AppendMessage(ctx, large)
		require.NoError(t, err)
		require.False(t, ask(tree))
		require.True(t, ask(tree))
	}
	require.False(t, ask(trees[0]), "the one used longest ago has made room")
	require.True(t, ask(trees[11]))
	// A giant is not kept, and drives nobody out.
	_, err := trees[5].Append(ctx, eventlog.MessageDraft(large), eventlog.MessageDraft(large), eventlog.MessageDraft(large), eventlog.MessageDraft(large), eventlog.MessageDraft(large))
	require.NoError(t, err)
	require.False(t, ask(trees[5]))
	require.False(t, ask(trees[5]))
	require.True(t, ask(trees[11]))
}

// A rebuild in another process may mend what a kept branch was made from.
func TestReport_I2_ARebuildElsewhereIsSeenByWhoKeepsBranches(t *testing.T) {
	path, want := treeAt(t)
	meddle(t, path, "UPDATE segments SET parent = (SELECT min(key) FROM segments) WHERE parent IS NOT NULL")
	s := sqlitestoretest.OpenAt(t, path, sqlitestore.Options{Synchronous: sqlitestore.Normal})
	tree, err := s.Open(ctx, eventlog.Metadata{ID: "s"})
	require.NoError(t, err)
	for range 2 {
		branch, _ := tree.Branch(ctx, eventlog.None())
		require.NotEqual(t, want, branch, "the views are wrong, and nobody knows")
	}
	other := sqlitestoretest.OpenAt(t, path, sqlitestore.Options{Synchronous: sqlitestore.Normal})
	require.NoError(t, other.Rebuild(ctx))
	tree2, err := other.Open(ctx, eventlog.Metadata{ID: "s"})
	require.NoError(t, err)
	e, err := tree2.AppendMessage(ctx, benchMessage(0))
	require.NoError(t, err)
	branch, err := tree.Branch(ctx, eventlog.None())
	require.NoError(t, err)
	require.Equal(t, append(want, e), branch)
}

// sample is an answer, and how many entries the log had before and after it.
type sample struct {
	before, after int
	ids           []string
}

func takeSample(t *testing.T, tree *eventlog.Session) (s sample) {
	head, err := tree.Head(ctx)
	require.NoError(t, err)
	s.before = head.N
	branch, err := tree.Branch(ctx, eventlog.None())
	require.NoError(t, err)
	for _, e := range branch {
		s.ids = append(s.ids, e.ID())
	}
	head, err = tree.Head(ctx)
	require.NoError(t, err)
	s.after = head.N
	return s
}

// requireMoments checks that each sample is what the reference answers at some
// moment in which it was taken.
func requireMoments(t *testing.T, tree *eventlog.Session, samples []sample) {
	t.Helper()
	var all []eventlog.Entry
	leaves := []eventlog.Ref{eventlog.None()}
	for e, err := range tree.Entries(ctx, 0, eventlog.All) {
		require.NoError(t, err)
		all, leaves = append(all, e), append(leaves, e.LeafAfter())
	}
	reference := memory.New(eventlog.Metadata{ID: "s"}, all, memory.Options{})
	for _, s := range samples {
		matches := false
		for n := s.before; n <= s.after && !matches; n++ {
			branch, err := reference.Branch(ctx, leaves[n])
			require.NoError(t, err)
			matches = len(branch) == len(s.ids)
			for i := range branch {
				matches = matches && branch[i].ID() == s.ids[i]
			}
		}
		require.True(t, matches, "between %d and %d entries the branch was never %v", s.before, s.after, s.ids)
	}
}

func TestKeptBranchesBesideWritersOfThisProcess(t *testing.T) {
	s := sqlitestoretest.Open(t, sqlitestore.Options{Synchronous: sqlitestore.Normal})
	tree, err := s.Create(ctx, eventlog.CreateOptions{CWD: "/project"})
	require.NoError(t, err)
	var writers, readers sync.WaitGroup
	done := make(chan struct{})
	for w := range 3 {
		writers.Go(func() {
			for i := range 150 {
				e, err := tree.AppendMessage(ctx, benchMessage(i))
				if err == nil && i%7 == w {
					_, err = tree.MoveTo(ctx, e.Parent(), &eventlog.Summary{Text: "back"})
				}
				if err == nil && i%20 == w {
					_, err = tree.AppendCompaction(ctx, eventlog.Compaction{Summary: "c", FirstKeptEntryID: js.Text(e.ID())})
				}
				if err != nil {
					t.Error(err)
				}
			}
		})
	}
	var samples [3][]sample
	for r := range samples {
		readers.Go(func() {
			for {
				select {
				case <-done:
					return
				default:
					samples[r] = append(samples[r], takeSample(t, tree))
				}
			}
		})
	}
	writers.Wait()
	close(done)
	readers.Wait()
	for _, taken := range samples {
		requireMoments(t, tree, taken)
	}
	_, hits, grown, _ := s.CacheUse()
	require.Positive(t, hits+grown)
}

func TestKeptBranchesBesideAnotherProcess(t *testing.T) {
	path := filepath.Join(t.TempDir(), "sessions.db")
	s := sqlitestoretest.OpenAt(t, path, sqlitestore.Options{})
	tree, err := s.Create(ctx, eventlog.CreateOptions{ID: "shared", CWD: "/project"})
	require.NoError(t, err)
	other, out := startVictim(t, path, "shared", "p", 300)
	var samples []sample
	for acknowledged := 1; out.Scan(); acknowledged++ {
		samples = append(samples, takeSample(t, tree))
		require.GreaterOrEqual(t, samples[len(samples)-1].before, acknowledged)
	}
	require.NoError(t, other.Wait())
	requireMoments(t, tree, samples)
	asked, hits, grown, _ := s.CacheUse()
	require.Greater(t, hits+grown, asked/2)
}
