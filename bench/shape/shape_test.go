package shape_test

import (
	"context"
	"crypto/sha256"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/sessiontree/sessiontree/bench/shape"
	"github.com/sessiontree/sessiontree/eventlog"
	"github.com/sessiontree/sessiontree/eventlog/jsonl"
	"github.com/sessiontree/sessiontree/eventlog/memory"
)

var ctx = context.Background()

// draw gives the tree as a session, having read every entry as a file would be.
func draw(t *testing.T, name string, size int) (*eventlog.Session, []eventlog.Entry) {
	t.Helper()
	s, err := shape.Find(name)
	require.NoError(t, err)
	var entries []eventlog.Entry
	for drawn := range s.Entries(size, 7) {
		e, err := eventlog.ParseEntry(drawn.JSON())
		require.NoError(t, err)
		entries = append(entries, e)
	}
	return eventlog.NewSession(memory.New(s.Metadata(size, 7), entries, memory.Options{})), entries
}

func TestEveryShapeIsAWholeTreeOfTheSizeThatWasAskedFor(t *testing.T) {
	for _, s := range shape.All() {
		for _, size := range []int{1, 2, 3, 10, 999, 1000, 3000} {
			session, entries := draw(t, s.Name, size)
			require.Len(t, entries, size, s.Name)
			tree, err := session.Tree(ctx)
			require.NoError(t, err)
			require.NoError(t, tree.LeafError)
			ids := map[string]bool{}
			for _, n := range tree.Nodes {
				require.False(t, ids[n.Entry.ID()], "%s: id %s stands twice", s.Name, n.Entry.ID())
				ids[n.Entry.ID()] = true
				require.False(t, n.Gap, "%s: %s has no parent", s.Name, n.Entry.ID())
			}
			require.Len(t, tree.Roots, 1, s.Name)
			_, err = session.BuildContext(ctx, eventlog.None())
			require.NoError(t, err, s.Name)
			_, err = session.Stats(ctx)
			require.NoError(t, err, s.Name)
		}
	}
}

// form is what a tree looks like from above.
type form struct{ depth, widest, branch, context int }

func formOf(t *testing.T, name string, size int) form {
	session, _ := draw(t, name, size)
	tree, err := session.Tree(ctx)
	require.NoError(t, err)
	var f form
	for _, n := range tree.Nodes {
		f.depth, f.widest = max(f.depth, n.Depth), max(f.widest, len(n.Children))
	}
	branch, err := session.Branch(ctx, eventlog.None())
	require.NoError(t, err)
	seen, err := session.BuildContext(ctx, eventlog.None())
	require.NoError(t, err)
	f.branch, f.context = len(branch), len(seen.Messages)
	return f
}

func TestThePlainShapesHaveTheirForms(t *testing.T) {
	for name, want := range map[string]form{
		"chain":     {depth: 1000, widest: 1, branch: 1001, context: 1001},
		"compacted": {depth: 1000, widest: 1, branch: 111, context: 111},
		"comb":      {depth: 500, widest: 2, branch: 501, context: 501},
		"star":      {depth: 1, widest: 1000, branch: 2, context: 2},
		"balanced":  {depth: 5, widest: 4, branch: 6, context: 6},
	} {
		assert.Equal(t, want, formOf(t, name, 1001), name)
	}
	walk := formOf(t, "walk", 5000)
	assert.Less(t, walk.depth, 4999)
	assert.Greater(t, walk.depth, 200)
	assert.Greater(t, walk.widest, 1)
}

func TestTheRealisticShapeHasAllThatSessionsHave(t *testing.T) {
	session, entries := draw(t, "realistic", 10_000)
	types, roles, bytes := map[eventlog.Type]int{}, map[string]int{}, 0
	for _, e := range entries {
		types[e.Type()]++
		bytes += len(e.JSON())
		if e.Type() == eventlog.TypeMessage {
			roles[e.Message().Role()]++
		}
	}
	for _, typ := range []eventlog.Type{eventlog.TypeLeaf, eventlog.TypeBranchSummary, eventlog.TypeCompaction, eventlog.TypeThinkingLevelChange, eventlog.TypeModelChange} {
		assert.Positive(t, types[typ], typ)
	}
	assert.InDelta(t, 10_000/350, types[eventlog.TypeCompaction], 8)
	assert.Greater(t, roles["assistant"], roles["toolResult"])
	assert.Greater(t, roles["toolResult"], roles["user"])
	assert.InDelta(t, 800, bytes/len(entries), 150, "bytes an entry")
	seen, err := session.BuildContext(ctx, eventlog.None())
	require.NoError(t, err)
	assert.Less(t, len(seen.Messages), 1000, "a compaction cuts the context")
}

func TestASeedAlwaysDrawsTheSameTree(t *testing.T) {
	for _, s := range shape.All() {
		file := func(seed uint64) [32]byte {
			var b strings.Builder
			require.NoError(t, s.Write(&b, 500, seed))
			return sha256.Sum256([]byte(b.String()))
		}
		assert.Equal(t, file(3), file(3), s.Name)
		assert.NotEqual(t, file(3), file(4), s.Name)
	}
}

func TestAFileIsASession(t *testing.T) {
	s, err := shape.Find("realistic")
	require.NoError(t, err)
	var b strings.Builder
	require.NoError(t, s.Write(&b, 300, 1))
	c, err := jsonl.Parse("drawn.jsonl", b.String(), jsonl.Options{Strict: true})
	require.NoError(t, err)
	assert.Equal(t, slices.Collect(s.Entries(300, 1)), c.Entries)
	assert.Equal(t, s.Metadata(300, 1).ID, c.Metadata.ID)
}

func TestAnUnknownShapeIsRefused(t *testing.T) {
	_, err := shape.Find("spiral")
	assert.ErrorIs(t, err, eventlog.ErrInvalidArgument)
	assert.ErrorContains(t, err, "spiral")
	assert.ErrorContains(t, err, "chain, compacted")
}
