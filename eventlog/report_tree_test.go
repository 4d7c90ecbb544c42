package eventlog_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/sessiontree/sessiontree/eventlog"
	"github.com/sessiontree/sessiontree/eventlog/js"
	"github.com/sessiontree/sessiontree/eventlog/jsonl"
	"github.com/sessiontree/sessiontree/eventlog/memory"
)

// inTime fails the test when f does not end.
func inTime(t testing.TB, f func()) {
	t.Helper()
	done := make(chan struct{})
	go func() {
		defer close(done)
		f()
	}()
	select {
	case <-done:
	case <-time.After(30 * time.Second):
		t.Fatal("it does not end")
	}
}

// outline is a tree as lines, indented by depth, with its marks.
func outline(tree *eventlog.Tree) []string {
	var lines []string
	for _, n := range tree.All() {
		var marks []string
		for mark, set := range map[string]bool{"active": n.Active, "branch": n.OnBranch, "leaf": n.Leaf, "gap": n.Gap, "cycle": n.Cycle, "control": n.Control, "[" + n.Label + "]": n.Label != ""} {
			if set {
				marks = append(marks, mark)
			}
		}
		order := []string{"[" + n.Label + "]", "control", "gap", "cycle", "active", "branch", "leaf"}
		line := strings.Repeat(". ", n.Depth) + n.Entry.ID()
		for _, mark := range order {
			for _, m := range marks {
				if m == mark {
					line += " " + mark
				}
			}
		}
		lines = append(lines, line)
	}
	return lines
}

func treeOf(t testing.TB, s *eventlog.Session) *eventlog.Tree {
	t.Helper()
	tree, err := s.Tree(t.Context())
	require.NoError(t, err)
	return tree
}

// TestReport_C1_DuplicateIDsInAFileAreBothKept and answered as Pi answers: look-ups
// give the last.
func TestReport_C1_DuplicateIDsInAFileAreBothKept(t *testing.T) {
	entries := parse(t, user("a", "", "first a"), user("b", "a", "b"), user("a", "", "second a"), user("c", "b", "c"))
	eachBackend(t, entries, func(t *testing.T, s *eventlog.Session, again func() *eventlog.Session) {
		for range 2 {
			inTime(t, func() {
				require.Equal(t, textsOf(entries), textsOf(entriesOf(t, s)))
				require.Equal(t, "a b c", branchOf(t, s, eventlog.None()))
				require.Equal(t, []string{"user: second a", "user: b", "user: c"}, contextOf(t, s, eventlog.None()))
				e, err := s.Entry(t.Context(), "a")
				require.NoError(t, err)
				require.Equal(t, entries[2].JSON(), e.JSON())
				require.Equal(t, []string{"a", "a active branch", ". b active branch", ". . c active branch leaf"}, outline(treeOf(t, s)))
			})
			s = again()
		}
	})
}

// TestReport_C1_AnIDThatIsTakenIsRefused, save for a retry with the same bytes.
func TestReport_C1_AnIDThatIsTakenIsRefused(t *testing.T) {
	eachBackend(t, chain(t, 2), func(t *testing.T, s *eventlog.Session, again func() *eventlog.Session) {
		d := message("three").WithID("m3")
		first := add(t, s, d)
		for range 2 {
			before := textsOf(entriesOf(t, s))
			require.Equal(t, first.JSON(), add(t, s, d).JSON(), "a retry gives the entry that is there")
			require.Equal(t, first.JSON(), add(t, s, d.Under(eventlog.At("m2"))).JSON())
			for name, other := range map[string]eventlog.Draft{
				"other text":   message("drei").WithID("m3"),
				"other parent": d.Under(eventlog.At("m1")),
				"no parent":    d.Under(eventlog.None()),
				"other time":   d.WithTime(time.UnixMilli(5)),
				"other type":   eventlog.NameDraft("x").WithID("m3"),
				"an old id":    message("one").WithID("m1"),
			} {
				_, err := s.Append(t.Context(), other)
				require.ErrorIs(t, err, eventlog.ErrAlreadyExists, name)
			}
			_, err := s.Append(t.Context(), message("four").WithID("m4"), message("five").WithID("m4"))
			require.ErrorIs(t, err, eventlog.ErrAlreadyExists, "twice in one batch")
			_, err = s.Append(t.Context(), message("four").WithID("m4"), d)
			require.ErrorIs(t, err, eventlog.ErrAlreadyExists, "half new")
			_, err = s.Append(t.Context(), d, message("four").WithID("m4"))
			require.ErrorIs(t, err, eventlog.ErrAlreadyExists, "half a retry")
			require.Equal(t, before, textsOf(entriesOf(t, s)))
			s = again()
		}
	})
}

// TestReport_C1_ADraftIsWhatItSaysItIs: what JSON would change, or a field that
// overrides the id or the parent, must not get past the checks.
func TestReport_C1_ADraftIsWhatItSaysItIs(t *testing.T) {
	eachBackend(t, chain(t, 2), func(t *testing.T, s *eventlog.Session, again func() *eventlog.Session) {
		custom := func(key string, v js.Value) eventlog.Draft {
			return eventlog.Draft{Type: eventlog.TypeCustom, Fields: []js.Member{{Key: key, Value: v}}}
		}
		before := textsOf(entriesOf(t, s))
		for name, test := range map[string]struct {
			draft eventlog.Draft
			want  error
		}{
			"an id that is no UTF-8":       {message("x").WithID("\xFF"), eventlog.ErrInvalidArgument},
			"an id of two halves":          {message("x").WithID("\xED\xA0\xBD\xED\xB8\x80"), eventlog.ErrInvalidArgument},
			"a field id":                   {custom("id", js.Text("m1")), eventlog.ErrInvalidArgument},
			"a field parentId":             {custom("parentId", js.Text("nowhere")), eventlog.ErrInvalidArgument},
			"a field type":                 {custom("type", js.Text("message")), eventlog.ErrInvalidArgument},
			"a parent that is not there":   {message("x").Under(eventlog.At("nowhere")), eventlog.ErrNotFound},
			"a parent with an empty id":    {message("x").Under(eventlog.At("")), eventlog.ErrNotFound},
			"its own parent":               {message("x").WithID("self").Under(eventlog.At("self")), eventlog.ErrNotFound},
			"a leaf entry to nowhere":      {eventlog.Draft{Type: eventlog.TypeLeaf, Fields: []js.Member{{Key: "targetId", Value: js.Text("nowhere")}}}, eventlog.ErrNotFound},
			"a leaf entry without target":  {eventlog.Draft{Type: eventlog.TypeLeaf}, eventlog.ErrInvalidEntry},
			"a label for nobody":           {eventlog.LabelDraft("nowhere", js.Text("x")), eventlog.ErrNotFound},
			"a leaf entry to an empty id":  {eventlog.Draft{Type: eventlog.TypeLeaf, Fields: []js.Member{{Key: "targetId", Value: js.Text("")}}}, eventlog.ErrNotFound},
			"text that is no JSON":         {custom("data", js.Trusted("{")), eventlog.ErrInvalidEntry},
			"text that ends the object":    {custom("data", js.Trusted(`1},{"a":1`)), eventlog.ErrInvalidEntry},
			"text that adds a second line": {custom("data", js.Trusted("1}\n{")), eventlog.ErrInvalidEntry},
		} {
			_, err := s.Append(t.Context(), test.draft)
			require.ErrorIs(t, err, test.want, name)
			require.Equal(t, before, textsOf(entriesOf(t, s)), name)
		}
		_, err := s.MoveTo(t.Context(), eventlog.At("nowhere"), nil)
		require.ErrorIs(t, err, eventlog.ErrNotFound)
		_, err = s.MoveTo(t.Context(), eventlog.At(""), nil)
		require.ErrorIs(t, err, eventlog.ErrNotFound)
		_, err = s.AppendAt(t.Context(), eventlog.At("nowhere"), message("x"))
		require.ErrorIs(t, err, eventlog.ErrNotFound)
		// Halves of pairs are text that JSON can hold.
		e := add(t, s, message("x").WithID("\xED\xA0\x80"))
		require.Equal(t, "\xED\xA0\x80", e.ID())
		s = again()
		require.Equal(t, "m1 m2 \xED\xA0\x80", branchOf(t, s, eventlog.None()))
	})
}

// TestReport_C3_C4_LostLinesLeaveIslands drops lines from a chain.
func TestReport_C3_C4_LostLinesLeaveIslands(t *testing.T) {
	r := newRand(t)
	const n = 5000
	for _, drop := range []int{1, 22} {
		all := chain(t, n)
		lost := map[int]bool{}
		for len(lost) < drop {
			lost[1+r.IntN(n-2)] = true // not the root, which nobody would miss, nor the leaf
		}
		var kept []eventlog.Entry
		for i, e := range all {
			if !lost[i] {
				kept = append(kept, e)
			}
		}
		s := inMemory(kept...)
		tree := treeOf(t, s)
		require.Len(t, tree.Nodes, n-drop, "all that is left is in the tree")
		gaps := 0
		for _, root := range tree.Roots {
			node := tree.Nodes[root]
			if node.Gap {
				gaps++
				_, err := s.Entry(t.Context(), node.Entry.Parent().ID())
				require.ErrorIs(t, err, eventlog.ErrNotFound)
			}
		}
		islands := 0
		for i := range lost {
			if !lost[i+1] {
				islands++
			}
		}
		require.Equal(t, islands, gaps, "each island's root shows the gap above it")
		require.Equal(t, 1+islands, len(tree.Roots))

		first := n
		for i := range lost {
			first = min(first, i)
		}
		b, err := s.Branch(t.Context(), eventlog.At(fmt.Sprint("m", first)))
		require.NoError(t, err, "what lies before the gap is whole")
		require.Len(t, b, first)
		_, err = s.Branch(t.Context(), eventlog.None())
		require.ErrorIs(t, err, eventlog.ErrInvalidSession, "a branch that reaches the hole says so")
		_, err = s.BuildContext(t.Context(), eventlog.None())
		require.ErrorIs(t, err, eventlog.ErrInvalidSession)
		last := 0
		for i := range lost {
			last = max(last, i)
		}
		require.ErrorContains(t, err, fmt.Sprintf("m%d not found", last+1), "and names what is missing")

		// The islands can be bridged by what the log allows: a new entry below the
		// part that is whole, or a compaction that keeps what can be reached.
		_, err = s.AppendAt(t.Context(), eventlog.At(fmt.Sprint("m", first)), message("on from the part that is whole"))
		require.NoError(t, err)
		b, err = s.Branch(t.Context(), eventlog.None())
		require.NoError(t, err)
		require.Len(t, b, first+1)
		moveTo(t, s, eventlog.At(fmt.Sprint("m", n)))
		_, err = s.AppendCompaction(t.Context(), eventlog.Compaction{Summary: "what was lost", FirstKeptEntryID: js.Text(fmt.Sprint("m", last+2))})
		require.NoError(t, err)
		b, err = s.Branch(t.Context(), eventlog.None())
		require.NoError(t, err)
		require.Len(t, b, n-last-1+1)
	}
}

// TestReport_C7_CyclesEnd has cycles of several lengths in a file, and entries
// below them.
func TestReport_C7_CyclesEnd(t *testing.T) {
	for _, length := range []int{1, 2, 3, 1000} {
		texts := []string{user("root", "", "root"), user("fine", "root", "fine")}
		for i := range length {
			texts = append(texts, user(fmt.Sprint("c", i), fmt.Sprint("c", (i+1)%length), "x"))
		}
		texts = append(texts, user("below", "c0", "below"), user("far", "below", "far"), user("last", "fine", "last"))
		eachBackend(t, parse(t, texts...), func(t *testing.T, s *eventlog.Session, again func() *eventlog.Session) {
			inTime(t, func() {
				require.Equal(t, "root fine last", branchOf(t, s, eventlog.None()), "branches that do not touch it answer")
				for _, id := range []string{"c0", fmt.Sprint("c", length-1), "below", "far"} {
					_, err := s.Branch(t.Context(), eventlog.At(id))
					require.ErrorIs(t, err, eventlog.ErrInvalidSession)
					_, err = s.BuildContext(t.Context(), eventlog.At(id))
					require.ErrorIs(t, err, eventlog.ErrInvalidSession)
					_, err = s.ForkEntries(t.Context(), id, eventlog.AtIt, eventlog.Source{})
					require.ErrorIs(t, err, eventlog.ErrInvalidSession)
					_, err = s.CollectBranch(t.Context(), eventlog.At(id), eventlog.At("fine"))
					require.ErrorIs(t, err, eventlog.ErrInvalidSession)
					_, err = s.Navigate(t.Context(), id, eventlog.NavigateOptions{})
					require.ErrorIs(t, err, eventlog.ErrSession)
					require.ErrorIs(t, err, eventlog.ErrInvalidSession)
				}
				tree := treeOf(t, s)
				require.Len(t, tree.Nodes, length+5)
				circular := 0
				for _, n := range tree.All() {
					if n.Cycle {
						circular++
					}
				}
				require.Equal(t, length+2, circular)
				require.NoError(t, s.Export(t.Context(), io.Discard))
				// The leaf may even go there, and come back.
				moveTo(t, s, eventlog.At("far"))
				_, err := s.Branch(t.Context(), eventlog.None())
				require.ErrorIs(t, err, eventlog.ErrInvalidSession)
				moveTo(t, s, eventlog.At("last"))
				add(t, s, message("on").WithID("on"))
				s = again()
				require.Equal(t, "root fine last on", branchOf(t, s, eventlog.None()))
			})
		})
	}
}

// TestReport_C7_ACycleThatABoundaryCuts is answered as Pi answers it, who gets
// out of it in its second round at the latest.
func TestReport_C7_ACycleThatABoundaryCuts(t *testing.T) {
	compaction := func(id, parent, kept string) string {
		return entry("compaction", id, parent, fmt.Sprintf(`"summary":"s","firstKeptEntryId":%q,"tokensBefore":1`, kept))
	}
	s := inMemory(parse(t,
		user("a", "b", "a"), user("b", "c", "b"), compaction("c", "d", "a"), user("d", "e", "d"), user("e", "a", "e"),
		user("below", "b", "below"),
		compaction("own", "x", "own"), user("x", "own", "x"),
	)...)
	alone := inMemory(entriesOf(t, s)[:5]...) // nearly twice as long as the log
	for _, s := range []*eventlog.Session{s, alone} {
		require.Equal(t, "a e d c b a", branchOf(t, s, eventlog.At("a")), "around once")
		require.Equal(t, "a e d c", branchOf(t, s, eventlog.At("c")))
		require.Equal(t, "a e d c b a e", branchOf(t, s, eventlog.At("e")))
		require.Equal(t, "a e d c b a e d", branchOf(t, s, eventlog.At("d")))
	}
	require.Equal(t, "a e d c b below", branchOf(t, s, eventlog.At("below")))
	require.Equal(t, "own x own", branchOf(t, s, eventlog.At("own")))
	require.Equal(t, "own x own x", branchOf(t, s, eventlog.At("x")))
	entries, err := s.ContextEntries(t.Context(), eventlog.At("x"))
	require.NoError(t, err)
	require.Equal(t, []string{"own", "x", "own", "x"}, idsOf(entries))
}

// deep is a chain of n entries, made once.
func deep(t testing.TB, n int) []eventlog.Entry { return chain(t, n) }

// TestReport_C8_C9_DeepAndWideTrees: nothing here recurses, and a tree is a flat
// list with the indices of parents.
func TestReport_C8_C9_C11_DeepAndWideTrees(t *testing.T) {
	const depth, width = 100_000, 10_000
	all := deep(t, depth)
	s := inMemory(all...)
	ctx := t.Context()
	inTime(t, func() {
		tree := treeOf(t, s)
		require.Len(t, tree.Nodes, depth)
		for i, n := range tree.All() {
			if n.Depth != i || n.Parent != i-1 || !n.Active || !n.OnBranch || n.Leaf != (i == depth-1) {
				t.Fatalf("node %d is %+v", i, n)
			}
		}
		fork, err := s.ForkEntries(ctx, fmt.Sprint("m", depth), eventlog.AtIt, eventlog.Source{})
		require.NoError(t, err)
		require.Len(t, fork, depth)
		left, err := s.CollectBranch(ctx, eventlog.At(fmt.Sprint("m", depth)), eventlog.At("m1"))
		require.NoError(t, err)
		require.Len(t, left.Entries, depth-1)
		require.Equal(t, eventlog.At("m1"), left.CommonAncestor)
		require.NoError(t, s.Export(ctx, io.Discard))
	})

	inTime(t, func() { // a star
		var texts []string
		texts = append(texts, user("root", "", "root"))
		for i := range width {
			texts = append(texts, user(fmt.Sprint("w", i), "root", "x"))
		}
		tree := treeOf(t, inMemory(parse(t, texts...)...))
		require.Len(t, tree.Nodes[0].Children, width)
		for i, n := range tree.All() {
			if i > 0 && (n.Depth != 1 || n.Parent != 0 || n.Entry.ID() != fmt.Sprint("w", i-1) || n.Active != (i == width)) {
				t.Fatalf("node %d is %+v", i, n)
			}
		}
	})

	// C11: the cost of a context grows with its length and no faster.
	measure := func(n int) (bytes uint64, took time.Duration) {
		took = time.Hour
		for range 3 {
			var before, after runtime.MemStats
			runtime.ReadMemStats(&before)
			start := time.Now()
			c, err := s.BuildContext(ctx, eventlog.At(fmt.Sprint("m", n)))
			took = min(took, time.Since(start))
			runtime.ReadMemStats(&after)
			require.NoError(t, err)
			require.Len(t, c.Messages, n)
			bytes = after.TotalAlloc - before.TotalAlloc
		}
		return bytes, took
	}
	small, fast := measure(1_000)
	large, slow := measure(100_000)
	require.Less(t, large, 100*4*small, "memory grows faster than the branch")
	require.Less(t, slow, 100*20*fast, "time grows faster than the branch")
}

// TestReport_C8_DeepSessionsAsFiles forks, exports and deletes a deep chain.
func TestReport_C8_DeepSessionsAsFiles(t *testing.T) {
	depth := 20_000
	if long {
		depth = 100_000
	}
	ctx := t.Context()
	repo := jsonl.NewRepo(t.TempDir(), jsonl.Options{NoSync: true})
	s, err := repo.Create(ctx, eventlog.CreateOptions{ID: "deep", CWD: "/p"})
	require.NoError(t, err)
	require.NoError(t, s.Storage().AppendRaw(ctx, chain(t, depth)...))
	m, err := s.Metadata(ctx)
	require.NoError(t, err)
	require.NoError(t, s.Close())
	inTime(t, func() {
		fork, err := repo.Fork(ctx, m, eventlog.ForkOptions{EntryID: fmt.Sprint("m", depth), Position: eventlog.AtIt, CreateOptions: eventlog.CreateOptions{CWD: "/p"}})
		require.NoError(t, err)
		b, err := fork.Branch(ctx, eventlog.None())
		require.NoError(t, err)
		require.Len(t, b, depth)
		require.NoError(t, fork.Close())
		require.NoError(t, repo.Delete(ctx, m))
		_, err = repo.Open(ctx, m)
		require.ErrorIs(t, err, eventlog.ErrNotFound)
	})
	// JSON nested as deep: one value of a custom entry.
	nested := strings.Repeat(`{"a":[`, depth) + strings.Repeat(`]}`, depth)
	e, err := eventlog.ParseEntry(entry("custom", "x", "", `"data":`+nested))
	require.NoError(t, err)
	require.Equal(t, nested, e.Get("data").JSON())
	require.Equal(t, nested, js.Canonical(e.Get("data")).JSON())
}

// TestReport_O2_MemoryIsNotAheadOfWhatWasWritten: a storage over memory whose
// Write fails.
func TestReport_O2_MemoryIsNotAheadOfWhatWasWritten(t *testing.T) {
	fail := errors.New("no")
	var written []string
	broken := false
	s := eventlog.NewSession(memory.New(meta, nil, memory.Options{Source: steady(), Write: func(_ context.Context, entries []eventlog.Entry) error {
		if broken {
			return fail
		}
		written = append(written, idsOf(entries)...)
		return nil
	}}))
	add(t, s, message("one"))
	broken = true
	_, err := s.Append(t.Context(), message("two"), eventlog.NameDraft("name"))
	require.ErrorIs(t, err, fail)
	_, err = s.MoveTo(t.Context(), eventlog.None(), nil)
	require.ErrorIs(t, err, fail)
	require.Equal(t, "e1", branchOf(t, s, eventlog.None()))
	name, err := s.Name(t.Context())
	require.NoError(t, err)
	require.Empty(t, name)
	broken = false
	require.Equal(t, eventlog.At("e1"), add(t, s, message("three")).Parent())
	require.Equal(t, written, idsOf(entriesOf(t, s)))
}
