package sqlitestore_test

import (
	"fmt"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/sessiontree/sessiontree/eventlog"
	"github.com/sessiontree/sessiontree/eventlog/memory"
	"github.com/sessiontree/sessiontree/sqlitestore"
)

// poison makes the branch set fail at each entry that is placed.
const poison = "CREATE TRIGGER poison BEFORE INSERT ON heads BEGIN SELECT raise(ABORT, 'poisoned'); END"

func branchHealth(t *testing.T, s *sqlitestore.Store) error {
	t.Helper()
	h, err := s.Health(ctx)
	require.NoError(t, err)
	require.Equal(t, "branch", h.Views[0].Name)
	return h.Views[0].Err
}

// A branch set that fails blocks nobody: appends go on, reads are answered by the
// log, and Health says why. Once it works again it is brought up.
func TestABranchSetThatFailsBlocksNobody(t *testing.T) {
	path := filepath.Join(t.TempDir(), "sessions.db")
	s, err := sqlitestore.Open(ctx, path, sqlitestore.Options{Synchronous: sqlitestore.Normal})
	require.NoError(t, err)
	defer s.Close(ctx)
	trees := []*eventlog.Session{}
	for _, repo := range []eventlog.Repo{memory.NewRepo(eventlog.Source{}), s} {
		tree, err := repo.Create(ctx, eventlog.CreateOptions{ID: "s", CWD: "/project"})
		require.NoError(t, err)
		trees = append(trees, tree)
	}
	var ids []string
	at := time.UnixMilli(0) // the same for both
	grow := func(n int) {
		t.Helper()
		for range n {
			i := len(ids)
			id := fmt.Sprint("e", i)
			ids = append(ids, id)
			for _, tree := range trees {
				_, err := tree.Append(ctx, eventlog.MessageDraft(benchMessage(i)).WithID(id).WithTime(at))
				require.NoError(t, err)
				if i%5 == 4 {
					_, err = tree.Append(ctx, eventlog.LabelDraft(ids[i/2], eventlog.At("x").Value()).WithID("l"+id).WithTime(at))
					require.NoError(t, err)
					_, err = tree.AppendAt(ctx, eventlog.At(ids[i/3]), eventlog.MessageDraft(benchMessage(i)).WithID("a"+id).WithTime(at))
					require.NoError(t, err)
				}
			}
		}
		sameAnswers(t, trees[0], trees[1], ids)
	}
	grow(10)
	require.NoError(t, branchHealth(t, s))

	meddle(t, path, poison)
	grow(10)
	require.ErrorContains(t, branchHealth(t, s), "poisoned")
	fork, err := s.Fork(ctx, eventlog.Metadata{ID: "s"}, eventlog.ForkOptions{CreateOptions: eventlog.CreateOptions{ID: "fork"}})
	require.NoError(t, err)
	sameAnswers(t, trees[0], fork, ids)
	require.ErrorContains(t, s.Rebuild(ctx, "branch"), "poisoned")
	sameAnswers(t, trees[0], trees[1], ids)
	_, err = s.Create(ctx, eventlog.CreateOptions{ID: "short-lived", CWD: "/project"})
	require.NoError(t, err)
	require.NoError(t, s.Delete(ctx, eventlog.Metadata{ID: "short-lived"}))

	// Another that opens the database finds the same, and it is no reason to refuse.
	other, err := sqlitestore.Open(ctx, path, sqlitestore.Options{})
	require.NoError(t, err)
	require.ErrorContains(t, branchHealth(t, other), "poisoned")
	elsewhere, err := other.Open(ctx, eventlog.Metadata{ID: "s"})
	require.NoError(t, err)
	sameAnswers(t, trees[0], elsewhere, ids)
	require.NoError(t, other.Close(ctx))

	meddle(t, path, "DROP TRIGGER poison")
	s.RetryBranch()
	grow(10)
	require.NoError(t, branchHealth(t, s))
	problems, err := s.Verify(ctx)
	require.NoError(t, err)
	require.Empty(t, problems)
}

// Callers that are committed together all get their entries in, each once.
func TestABranchSetThatFailsInAGroupCommit(t *testing.T) {
	path := filepath.Join(t.TempDir(), "sessions.db")
	s, err := sqlitestore.Open(ctx, path, sqlitestore.Options{Synchronous: sqlitestore.Normal})
	require.NoError(t, err)
	defer s.Close(ctx)
	tree, err := s.Create(ctx, eventlog.CreateOptions{CWD: "/project"})
	require.NoError(t, err)
	meddle(t, path, poison)
	var writers sync.WaitGroup
	for range 16 {
		writers.Go(func() {
			for i := range 20 {
				if _, err := tree.AppendMessage(ctx, benchMessage(i)); err != nil {
					t.Error(err)
				}
			}
		})
	}
	writers.Wait()
	require.Len(t, chainOf(t, tree), 320)
	meddle(t, path, "DROP TRIGGER poison")
	s.RetryBranch()
	branch, err := tree.Branch(ctx, eventlog.None()) // a reader brings it up
	require.NoError(t, err)
	require.Len(t, branch, 320)
	require.NoError(t, branchHealth(t, s))
}

// Views that a newer program wrote are left to it: an older one goes on appending,
// and answers from the log.
func TestViewsOfANewerProgramAreLeftToIt(t *testing.T) {
	path, branch := treeAt(t)
	meddle(t, path, "UPDATE checkpoints SET version = version + 1 WHERE projection = 'branch'")
	for _, readOnly := range []bool{true, false} {
		s, err := sqlitestore.Open(ctx, path, sqlitestore.Options{ReadOnly: readOnly})
		require.NoError(t, err)
		tree, err := s.Open(ctx, eventlog.Metadata{ID: "s"})
		require.NoError(t, err)
		now, err := tree.Branch(ctx, eventlog.None())
		require.NoError(t, err)
		require.Equal(t, branch, now)
		labels, err := tree.Labels(ctx)
		require.NoError(t, err)
		require.Len(t, labels, 1)
		require.ErrorContains(t, branchHealth(t, s), "newer program")
		if !readOnly {
			require.ErrorContains(t, s.Rebuild(ctx, "branch"), "newer program")
			e, err := tree.AppendMessage(ctx, benchMessage(99))
			require.NoError(t, err)
			now, err := tree.Branch(ctx, eventlog.None())
			require.NoError(t, err)
			require.Equal(t, append(branch, e), now)
		}
		require.NoError(t, s.Close(ctx))
	}
	// The newer program finds what was appended meanwhile.
	meddle(t, path, "UPDATE checkpoints SET version = version - 1 WHERE projection = 'branch'")
	s, err := sqlitestore.Open(ctx, path, sqlitestore.Options{})
	require.NoError(t, err)
	defer s.Close(ctx)
	problems, err := s.Verify(ctx)
	require.NoError(t, err)
	require.Empty(t, problems)
}
