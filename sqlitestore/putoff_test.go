package sqlitestore_test

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/sessiontree/sessiontree/eventlog"
	"github.com/sessiontree/sessiontree/sqlitestore"
)

// grouped is a session whose appends can be committed together. Its ids are n1, n2, …,
// and n1 and n2 are there.
type grouped struct {
	*testing.T
	faults *faults // of statements of many rows
	path   string
	store  *sqlitestore.Store
	tree   *eventlog.Session
	ids    int
}

func newGrouped(t *testing.T) *grouped {
	g := &grouped{T: t, path: filepath.Join(t.TempDir(), "sessions.db"), faults: &faults{err: errors.New("the disk is on fire"), only: ofManyRows}}
	source := eventlog.Source{NewID: func() string {
		g.ids++
		return fmt.Sprint("n", g.ids)
	}}
	var err error
	g.store, err = sqlitestore.OpenWith(ctx, g.path, sqlitestore.Options{Synchronous: sqlitestore.Normal, Source: source}, g.faults.connector)
	require.NoError(t, err)
	t.Cleanup(func() { g.store.Close(ctx) })
	g.store.StopViews() // they would come in between
	g.tree, err = g.store.Create(ctx, eventlog.CreateOptions{ID: "s", CWD: "/project"})
	require.NoError(t, err)
	g.adds("n1")()
	g.adds("n2")()
	return g
}

// adds appends a message, which gets the id.
func (g *grouped) adds(want string) func() {
	return func() {
		e, err := g.tree.AppendMessage(ctx, benchMessage(1))
		require.NoError(g, err)
		require.Equal(g, want, e.ID())
	}
}

// together carries appends out in one transaction, in this order.
func (g *grouped) together(appends ...func()) {
	var running sync.WaitGroup
	free := g.store.HoldGate()
	for i, f := range appends {
		running.Go(f)
		require.Eventually(g, func() bool { return g.store.Waiting() > i }, time.Minute, time.Millisecond)
	}
	free()
	running.Wait()
}

func (g *grouped) verify() {
	problems, err := g.store.Verify(ctx)
	require.NoError(g, err)
	require.Empty(g, problems)
}

// ofManyRows says whether a statement writes several events.
func ofManyRows(query string) bool {
	return strings.HasPrefix(query, "INSERT INTO events") && strings.Contains(query, "), (")
}

// Appends of one transaction are inserted together; each sees all that came before
// it.
func TestAppendsOfATransactionSeeEachOther(t *testing.T) {
	g := newGrouped(t)
	message := eventlog.MessageDraft(benchMessage(1)).WithID("n_").WithTime(time.UnixMilli(1767225600000))
	again := func() {
		_, err := g.tree.Append(ctx, message)
		require.NoError(t, err)
	}
	g.together(
		g.adds("n3"),
		g.adds("n4"),
		g.adds("n5"),
		func() {
			_, err := g.tree.AppendAt(ctx, eventlog.At("n3"), eventlog.MessageDraft(benchMessage(1)))
			require.NoError(t, err)
		},
		g.adds("n7"),
		again,
		g.adds("n8"),
		again,
		func() {
			_, err := g.tree.SetLabel(ctx, "n8", "here")
			require.NoError(t, err)
		},
		func() {
			_, err := g.tree.Append(ctx, eventlog.MessageDraft(benchMessage(1)), eventlog.MessageDraft(benchMessage(2)))
			require.NoError(t, err)
		},
		func() {
			_, err := g.tree.MoveTo(ctx, eventlog.At("n4"), nil)
			require.NoError(t, err)
		},
		g.adds("n13"),
		g.adds("n14"),
	)
	require.Equal(t, 2, g.faults.count(), "statements of many rows: n3 and n4, n11 and n12")
	var log []string
	for e, err := range g.tree.Entries(ctx, 0, eventlog.All) {
		require.NoError(t, err)
		log = append(log, e.ID()+"<"+e.Parent().ID())
	}
	require.Equal(t, []string{"n1<", "n2<n1", "n3<n2", "n4<n3", "n5<n4", "n6<n3", "n7<n6", "n_<n7", "n8<n_", "n9<n8", "n10<n9", "n11<n10", "n12<n11", "n13<n4", "n14<n13"}, log)
	g.verify()
}

// Of appends of one transaction one that cannot be fails, and no other.
func TestAppendsOfATransactionFailAlone(t *testing.T) {
	g := newGrouped(t)
	tried := map[string]bool{}
	var mu sync.Mutex
	adds := func() {
		e, err := g.tree.AppendMessage(ctx, benchMessage(1))
		require.NoError(t, err)
		mu.Lock()
		defer mu.Unlock()
		tried[e.ID()] = true
	}
	message := eventlog.MessageDraft(benchMessage(1))
	g.together(
		adds,
		func() {
			_, err := g.tree.Append(ctx, eventlog.NameDraft("other").WithID("n1"))
			require.ErrorIs(t, err, eventlog.ErrAlreadyExists)
		},
		adds,
		func() {
			_, err := g.tree.AppendAt(ctx, eventlog.At("nowhere"), message)
			require.ErrorIs(t, err, eventlog.ErrNotFound)
		},
		adds,
		func() {
			_, err := g.tree.AppendIf(ctx, eventlog.Head{Leaf: eventlog.At("n1"), N: 1}, message)
			require.ErrorIs(t, err, eventlog.ErrConflict)
		},
		func() {
			_, err := g.tree.Append(ctx, message, message.WithID("n2"))
			require.ErrorIs(t, err, eventlog.ErrAlreadyExists)
		},
		adds,
	)
	require.Len(t, tried, 4)
	there := chainOf(t, g.tree)
	require.Len(t, there, 2+4)
	for id := range tried {
		require.True(t, there[id], id)
	}
	g.verify()
}

// What a statement of many rows could not write is written again, or its callers are
// told that it was not.
func TestAppendsOfATransactionWhoseStatementFails(t *testing.T) {
	for _, sticky := range []bool{false, true} {
		for at := 1; at <= 3; at++ {
			t.Run(fmt.Sprint(at, sticky), func(t *testing.T) {
				g := newGrouped(t)
				g.faults.stick(sticky)
				g.faults.start(at)
				told := map[string]bool{}
				var mu sync.Mutex
				tells := func(e eventlog.Entry, err error) {
					require.NoError(t, err)
					mu.Lock()
					defer mu.Unlock()
					told[e.ID()] = true
				}
				adds := func() { tells(g.tree.AppendMessage(ctx, benchMessage(1))) }
				// Two rows and one, and then four and one.
				g.together(adds, adds, func() { tells(g.tree.SetLabel(ctx, "n2", "here")) },
					func() { tells(g.tree.SetLabel(ctx, "n1", "there")) }, adds, adds, adds, adds, adds)
				require.Equal(t, at, g.faults.count(), "statements of many rows")
				g.faults.start(0)
				_, err := g.tree.AppendMessage(ctx, benchMessage(1))
				require.NoError(t, err)
				there := chainOf(t, g.tree)
				require.Len(t, there, 2+9+1)
				for id := range told {
					require.True(t, there[id], id)
				}
				require.Len(t, told, 9)
				g.verify()
			})
		}
	}
}

// An id that is taken is not given again, whoever took it.
func TestNewIDsAreFree(t *testing.T) {
	path := filepath.Join(t.TempDir(), "sessions.db")
	var next []string
	source := eventlog.Source{NewID: func() string {
		id := next[0]
		next = next[1:]
		return id
	}}
	store, err := sqlitestore.Open(ctx, path, sqlitestore.Options{Synchronous: sqlitestore.Normal, Source: source})
	require.NoError(t, err)
	defer store.Close(ctx)
	other, err := sqlitestore.Open(ctx, path, sqlitestore.Options{Synchronous: sqlitestore.Normal})
	require.NoError(t, err)
	defer other.Close(ctx)
	tree, err := store.Create(ctx, eventlog.CreateOptions{ID: "s"})
	require.NoError(t, err)
	theirs, err := other.Open(ctx, eventlog.Metadata{ID: "s"})
	require.NoError(t, err)
	makes := func(want string, ids ...string) {
		t.Helper()
		next = ids
		e, err := tree.AppendMessage(ctx, benchMessage(1))
		require.NoError(t, err)
		require.Equal(t, want, e.ID())
		require.Empty(t, next)
	}
	takes := func(tree *eventlog.Session, id string) {
		t.Helper()
		_, err := tree.Append(ctx, eventlog.MessageDraft(benchMessage(1)).WithID(id))
		require.NoError(t, err)
	}
	makes("10", "10")
	makes("20", "20")
	makes("30", "20", "30")
	makes("40", "10", "40")
	takes(tree, "50")
	makes("60", "50", "60")
	takes(tree, "65")
	makes("70", "70")
	makes("80", "65", "50", "80")
	takes(theirs, "90")
	makes("95", "90", "95")
	makes("05", "05")
	makes("15", "05", "15")
	makes("16", "15", "20", "16")
	makes("99", "95", "99")

	// Those that a raw append brought, and a failed one did not.
	raw, err := eventlog.ParseEntry(`{"type":"custom","id":"a5","parentId":null,"timestamp":"t"}`)
	require.NoError(t, err)
	makes("a0", "a0")
	require.NoError(t, tree.Storage().(*sqlitestore.Storage).AppendRaw(ctx, raw))
	makes("a6", "a5", "a6")
	_, err = tree.Append(ctx, eventlog.NameDraft("b").WithID("a8"), eventlog.NameDraft("b").WithID("a6"))
	require.ErrorIs(t, err, eventlog.ErrAlreadyExists)
	makes("a8", "a8")
}

// While another process has the database, callers of one transaction are told at
// their own deadlines, whoever leads it.
func TestCallersOfATransactionAreToldInTime(t *testing.T) {
	for _, leader := range []string{"the patient one leads", "an impatient one leads"} {
		t.Run(leader, func(t *testing.T) {
			g := newGrouped(t)
			other, err := sql.Open("sqlite", "file:"+g.path+"?_txlock=immediate")
			require.NoError(t, err)
			defer other.Close()
			hold, err := other.Begin()
			require.NoError(t, err)
			patient := make(chan error, 1)
			waits := func() {
				_, err := g.tree.AppendMessage(ctx, benchMessage(1))
				patient <- err
			}
			var impatient sync.WaitGroup
			impatient.Add(2)
			gives := func() {
				defer impatient.Done()
				until, cancel := context.WithTimeout(ctx, 2*time.Second)
				defer cancel()
				_, err := g.tree.AppendMessage(until, benchMessage(1))
				requireWaited(t, err, context.DeadlineExceeded)
			}
			appends := []func(){waits, gives, gives}
			if leader == "an impatient one leads" {
				appends = []func(){gives, waits, gives}
			}
			done := make(chan struct{})
			go func() {
				defer close(done)
				g.together(appends...)
			}()
			impatient.Wait()
			require.Empty(t, patient)
			require.NoError(t, hold.Rollback())
			require.NoError(t, <-patient)
			<-done
			g.verify()
		})
	}
}
