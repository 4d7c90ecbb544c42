package sqlitestore_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/sessiontree/sessiontree/eventlog"
	"github.com/sessiontree/sessiontree/eventlog/js"
	"github.com/sessiontree/sessiontree/sqlitestore"
	"github.com/sessiontree/sessiontree/sqlitestore/sqlitestoretest"
)

// long makes the long forms of tests run: hours of randomness instead of seconds.
var long = os.Getenv("SESSIONTREE_LONG") != ""

// soakSessions are the sessions that all write to; forks of them come and go.
var soakSessions = []string{"soak-a", "soak-b", "soak-c"}

// soak writes at random until the time is over: appends at the leaf and anywhere,
// moves with and without a summary, compactions, forks and deletions of forks.
func soak(ctx context.Context, s *sqlitestore.Store, name string, seed uint64, until time.Time) error {
	r := rand.New(rand.NewPCG(seed, 1))
	for i := 0; time.Now().Before(until); i++ {
		session := soakSessions[r.IntN(len(soakSessions))]
		tree, err := s.Open(ctx, eventlog.Metadata{ID: session})
		if err != nil {
			return err
		}
		if err := soakStep(ctx, s, tree, session, fmt.Sprintf("%s-%d", name, i), r); err != nil {
			return fmt.Errorf("%s, step %d: %w", name, i, err)
		}
	}
	return nil
}

func soakStep(ctx context.Context, s *sqlitestore.Store, tree *eventlog.Session, session, id string, r *rand.Rand) error {
	some, err := anyEntry(ctx, tree, r)
	if err != nil {
		return err
	}
	message := eventlog.MessageDraft(benchMessage(2 * r.IntN(100))).WithID(id)
	switch k := r.IntN(20); {
	case k < 8 || some == "":
		_, err = tree.Append(ctx, message)
	case k < 12:
		_, err = tree.AppendAt(ctx, eventlog.At(some), message)
	case k < 14:
		_, err = tree.MoveTo(ctx, eventlog.At(some), nil)
	case k < 15:
		_, err = tree.MoveTo(ctx, eventlog.At(some), &eventlog.Summary{Text: "went back"})
	case k < 17:
		_, err = tree.AppendCompaction(ctx, eventlog.Compaction{Summary: "so far", FirstKeptEntryID: js.Text(some)})
	default:
		fork := eventlog.Metadata{ID: "fork-" + id}
		if _, err = s.Fork(ctx, eventlog.Metadata{ID: session}, eventlog.ForkOptions{CreateOptions: eventlog.CreateOptions{ID: fork.ID}, EntryID: some, Position: eventlog.AtIt}); err == nil {
			err = s.Delete(ctx, fork)
		}
	}
	return err
}

// anyEntry is the id of some entry of the session, "" if it has none.
func anyEntry(ctx context.Context, tree *eventlog.Session, r *rand.Rand) (string, error) {
	head, err := tree.Head(ctx)
	if err != nil || head.N == 0 {
		return "", err
	}
	for e, err := range tree.Entries(ctx, r.IntN(head.N), 1) {
		return e.ID(), err
	}
	return "", errors.New("an entry that was counted is not there")
}

// walkUp is the reference: the branch of an entry, by nothing but its parents.
func walkUp(ctx context.Context, tree *eventlog.Session, from string) ([]eventlog.Entry, error) {
	e, err := tree.Entry(ctx, from)
	if err != nil {
		return nil, err
	}
	branch, err := tree.Dialect().Walk(e, 1<<30, func(id string) (eventlog.Entry, bool, error) {
		e, err := tree.Entry(ctx, id)
		if eventlog.CodeOf(err) == eventlog.NotFound {
			return e, false, nil
		}
		return e, err == nil, err
	})
	return branch, err
}

// TestBranchesEqualTheWalkWhileOthersWrite reads while four goroutines and two
// other processes write, move, fork and delete: ten minutes in its long form.
func TestBranchesEqualTheWalkWhileOthersWrite(t *testing.T) {
	duration := 3 * time.Second
	if long {
		duration = 10 * time.Minute
	}
	path := filepath.Join(t.TempDir(), "sessions.db")
	s := sqlitestoretest.OpenAt(t, path, sqlitestore.Options{Synchronous: sqlitestore.Normal})
	for _, id := range soakSessions {
		_, err := s.Create(t.Context(), eventlog.CreateOptions{ID: id})
		require.NoError(t, err)
	}
	seed := uint64(time.Now().UnixNano())
	t.Log("seed", seed)
	until := time.Now().Add(duration)

	var all sync.WaitGroup
	for w := range 4 {
		all.Go(func() {
			if err := soak(t.Context(), s, fmt.Sprint("g", w), seed+uint64(w), until); err != nil {
				t.Error(err)
			}
		})
	}
	for p := range 2 {
		self, err := os.Executable()
		require.NoError(t, err)
		cmd := exec.Command(self)
		cmd.Env = append(os.Environ(), fmt.Sprintf("SESSIONTREE_TEST_SOAK=%s p%d %d %d", path, p, seed+100+uint64(p), until.UnixNano()))
		cmd.Stderr = t.Output()
		require.NoError(t, cmd.Start())
		all.Go(func() {
			if err := cmd.Wait(); err != nil {
				t.Error("a process:", err)
			}
		})
	}
	all.Go(func() { // the views are made anew all the while
		for time.Now().Before(until) {
			if err := s.Rebuild(t.Context()); err != nil {
				t.Error("rebuild:", err)
			}
			time.Sleep(100 * time.Millisecond)
		}
	})
	compared := make([]int, 2)
	for i := range compared {
		all.Go(func() {
			r := rand.New(rand.NewPCG(seed, uint64(i)+50))
			for time.Now().Before(until) {
				n, err := compareSome(t.Context(), s, r)
				if err != nil {
					t.Error(err)
					return
				}
				compared[i] += n
			}
		})
	}
	all.Wait()
	t.Logf("%d branches compared", compared[0]+compared[1])
	require.Positive(t, slices.Min(compared))
}

// compareSome compares the branch of some entry, and the one of the leaf.
func compareSome(ctx context.Context, s *sqlitestore.Store, r *rand.Rand) (int, error) {
	session := soakSessions[r.IntN(len(soakSessions))]
	tree, err := s.Open(ctx, eventlog.Metadata{ID: session})
	if err != nil {
		return 0, err
	}
	some, err := anyEntry(ctx, tree, r)
	if err != nil || some == "" {
		return 0, err
	}
	head, err := tree.Head(ctx)
	if err != nil {
		return 0, err
	}
	for _, id := range []string{some, head.Leaf.ID()} {
		if id == "" {
			continue
		}
		branch, err := tree.Branch(ctx, eventlog.At(id))
		if err != nil {
			return 0, err
		}
		walked, err := walkUp(ctx, tree, id)
		if err != nil {
			return 0, err
		}
		if !slices.Equal(texts(branch), texts(walked)) {
			return 0, fmt.Errorf("session %s: the branch of %s is %v, walked %v", session, id, ids(branch), ids(walked))
		}
	}
	return 1, nil
}

func texts(entries []eventlog.Entry) (out []string) {
	for _, e := range entries {
		out = append(out, e.JSON())
	}
	return out
}

func ids(entries []eventlog.Entry) (out []string) {
	for _, e := range entries {
		out = append(out, e.ID())
	}
	return out
}
