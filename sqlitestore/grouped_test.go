package sqlitestore_test

import (
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/sessiontree/sessiontree/eventlog"
	"github.com/sessiontree/sessiontree/sqlitestore"
)

// groups is a store whose requests are committed together, while another process
// that leaves the branch views behind holds the database.
type groups struct {
	*testing.T
	store, other *sqlitestore.Store
	tree, theirs *eventlog.Session
	stop, goOn   chan struct{} // the other's next write stops inside its transaction
	running      sync.WaitGroup
}

func newGroups(t *testing.T) *groups {
	g := &groups{T: t, stop: make(chan struct{}, 1), goOn: make(chan struct{})}
	path := filepath.Join(t.TempDir(), "sessions.db")
	var err error
	g.store, err = sqlitestore.Open(ctx, path, sqlitestore.Options{Synchronous: sqlitestore.Normal})
	require.NoError(t, err)
	t.Cleanup(func() { g.store.Close(ctx) })
	source := eventlog.Source{Now: func() time.Time {
		select {
		case <-g.stop:
			<-g.goOn
		default:
		}
		return time.Now()
	}}
	g.other, err = sqlitestore.Open(ctx, path, sqlitestore.Options{Synchronous: sqlitestore.Normal, Source: source})
	require.NoError(t, err)
	t.Cleanup(func() { g.other.Close(ctx) })
	g.tree, err = g.store.Create(ctx, eventlog.CreateOptions{ID: "s", CWD: "/project"})
	require.NoError(t, err)
	g.append(g.tree)()
	g.theirs, err = g.other.Open(ctx, eventlog.Metadata{ID: "s"})
	require.NoError(t, err)
	require.NoError(t, g.other.Rebuild(ctx, "search")) // its views have come to rest
	require.NoError(t, g.store.Rebuild(ctx, "search"))
	g.other.HoldBranch("writers")
	return g
}

func (g *groups) append(tree *eventlog.Session) func() {
	return func() {
		_, err := tree.AppendMessage(ctx, benchMessage(1))
		require.NoError(g, err)
	}
}

func (g *groups) rebuild(view string) func() {
	return func() { require.NoError(g, g.store.Rebuild(ctx, view)) }
}

// together carries out first, and then the others in one transaction, behind a write
// of the other process that the first has waited for.
func (g *groups) together(theirs, first func(), others ...func()) {
	g.stop <- struct{}{}
	g.running.Go(theirs)
	require.Eventually(g, func() bool { return len(g.stop) == 0 }, time.Minute, time.Millisecond)
	g.running.Go(first)
	require.Eventually(g, g.store.Writing, time.Minute, time.Millisecond)
	for i, f := range others {
		g.running.Go(f)
		require.Eventually(g, func() bool { return g.store.Waiting() > i }, time.Minute, time.Millisecond)
	}
	close(g.goOn)
	g.running.Wait()
}

func (g *groups) verify() {
	g.other.HoldBranch("")
	problems, err := g.store.Verify(ctx)
	require.NoError(g, err)
	require.Empty(g, problems)
}

// What a process knows of the branch views may have ended when another kind of write
// comes first in the transaction that appends.
func TestAnAppendBehindAViewSeesThatAnotherProcessDeletedTheSession(t *testing.T) {
	g := newGroups(t)
	g.together(
		func() { require.NoError(t, g.other.Delete(ctx, eventlog.Metadata{ID: "s"})) },
		g.rebuild("catalog"), g.rebuild("search"),
		func() {
			_, err := g.tree.AppendMessage(ctx, benchMessage(1))
			require.ErrorIs(t, err, eventlog.ErrNotFound)
		})
	g.verify()
}

// A rebuild between two appends of one transaction leaves the second applied once.
func TestARebuildBetweenAppendsOfATransaction(t *testing.T) {
	g := newGroups(t)
	g.append(g.theirs)() // left behind: the rebuild makes all anew
	g.together(g.append(g.theirs), g.append(g.tree), g.append(g.tree), g.rebuild("branch"), g.append(g.tree))
	g.other.HoldBranch("")
	g.append(g.theirs)()
	require.Len(t, chainOf(t, g.tree), 7)
	g.verify()
}
