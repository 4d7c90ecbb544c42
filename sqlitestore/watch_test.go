package sqlitestore_test

import (
	"context"
	"fmt"
	"path/filepath"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/sessiontree/sessiontree/eventlog"
	"github.com/sessiontree/sessiontree/projections"
	"github.com/sessiontree/sessiontree/sqlitestore"
	"github.com/sessiontree/sessiontree/sqlitestore/sqlitestoretest"
)

// TestAFeedMissesNoneAndRepeatsNone watches while two stores on one file write,
// forks and deletions among it.
func TestAFeedMissesNoneAndRepeatsNone(t *testing.T) {
	path := filepath.Join(t.TempDir(), "sessions.db")
	stores := []*sqlitestore.Store{
		sqlitestoretest.OpenAt(t, path, sqlitestore.Options{Synchronous: sqlitestore.Normal}),
		sqlitestoretest.OpenAt(t, path, sqlitestore.Options{Synchronous: sqlitestore.Normal}),
	}
	const writers, each = 4, 60
	shared, err := stores[0].Create(t.Context(), eventlog.CreateOptions{ID: "shared"})
	require.NoError(t, err)

	// The sum of what is written is known: the creations, the entries, the forks.
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	const ownEvents = 1 + writers
	const entries = writers * each * 2
	var all, ofShared []sqlitestore.Event
	var watching sync.WaitGroup
	watching.Go(func() {
		for e, err := range stores[1].Watch(ctx, "", 0) {
			if err != nil {
				t.Error(err)
				return
			}
			if all = append(all, e); len(all) == ownEvents+entries {
				return
			}
		}
	})
	watching.Go(func() {
		for e, err := range stores[0].Watch(ctx, "shared", 0) {
			if err != nil {
				t.Error(err)
				return
			}
			if ofShared = append(ofShared, e); len(ofShared) == 1+writers*each {
				return
			}
		}
	})
	var writing sync.WaitGroup
	for w := range writers {
		writing.Go(func() {
			s := stores[w%2]
			own, err := s.Create(ctx, eventlog.CreateOptions{ID: fmt.Sprint("own", w)})
			if err != nil {
				t.Error(err)
				return
			}
			common, err := s.Open(ctx, eventlog.Metadata{ID: "shared"})
			if err != nil {
				t.Error(err)
				return
			}
			for i := range each {
				for _, session := range []*eventlog.Session{own, common} {
					if _, err := session.Append(ctx, user(fmt.Sprint(w, i))); err != nil {
						t.Error(err)
						return
					}
				}
			}
		})
	}
	writing.Wait()
	watching.Wait()

	seq := int64(0)
	count := map[string]int{}
	for _, e := range all {
		require.Greater(t, e.Seq, seq)
		seq = e.Seq
		count[e.Session]++
		require.Equal(t, count[e.Session]-1, e.N, e.Session)
	}
	require.Equal(t, map[string]int{"shared": 1 + writers*each, "own0": 1 + each, "own1": 1 + each, "own2": 1 + each, "own3": 1 + each}, count)
	logged := []eventlog.Entry{}
	for e, err := range shared.Entries(ctx, 0, eventlog.All) {
		require.NoError(t, err)
		logged = append(logged, e)
	}
	require.Equal(t, projections.SessionCreated, ofShared[0].Kind)
	for i, e := range ofShared[1:] {
		require.Equal(t, logged[i], e.Entry)
	}

	// A feed goes on behind any event.
	for _, from := range []int{0, 1, 7, len(ofShared) - 2} {
		var rest []sqlitestore.Event
		for e, err := range stores[0].Watch(ctx, "shared", ofShared[from].Seq) {
			require.NoError(t, err)
			if rest = append(rest, e); len(rest) == len(ofShared)-from-1 {
				break
			}
		}
		require.Equal(t, ofShared[from+1:], rest, from)
	}
}

func TestAFeedTellsOfForkAndDeletion(t *testing.T) {
	s := sqlitestoretest.Open(t, sqlitestore.Options{Synchronous: sqlitestore.Normal})
	ctx := t.Context()
	a, err := s.Create(ctx, eventlog.CreateOptions{ID: "a"})
	require.NoError(t, err)
	first, err := a.Append(ctx, user("text"))
	require.NoError(t, err)
	_, err = s.Fork(ctx, eventlog.Metadata{ID: "a"}, eventlog.ForkOptions{CreateOptions: eventlog.CreateOptions{ID: "b"}})
	require.NoError(t, err)

	type event struct {
		session, kind string
		entry         eventlog.Entry
	}
	read := func(session string, after int64, n int) (events []event) {
		t.Helper()
		for e, err := range s.Watch(ctx, session, after) {
			require.NoError(t, err)
			if events = append(events, event{e.Session, e.Kind, e.Entry}); len(events) == n {
				break
			}
		}
		return events
	}
	require.Equal(t, []event{
		{"a", projections.SessionCreated, eventlog.Entry{}}, {"a", "", first[0]},
		{"b", projections.SessionForked, eventlog.Entry{}}, {"b", "", first[0]},
	}, read("", 0, 4))

	// Who watches a session that is deleted is told, and the feed ends.
	var told []event
	for e, err := range s.Watch(ctx, "a", 0) {
		require.NoError(t, err)
		if told = append(told, event{e.Session, e.Kind, e.Entry}); len(told) == 2 {
			require.NoError(t, s.Delete(ctx, eventlog.Metadata{ID: "a"}))
		}
	}
	require.Equal(t, []event{
		{"a", projections.SessionCreated, eventlog.Entry{}}, {"a", "", first[0]},
		{"a", projections.SessionDeleted, eventlog.Entry{}},
	}, told)
	require.Equal(t, []event{
		{"b", projections.SessionForked, eventlog.Entry{}}, {"b", "", first[0]},
		{"a", projections.SessionDeleted, eventlog.Entry{}},
	}, read("", 0, 3))

	for _, err := range s.Watch(ctx, "a", 0) {
		require.ErrorIs(t, err, eventlog.ErrNotFound)
	}
	ended, cancel := context.WithCancel(ctx)
	cancel()
	for range s.Watch(ended, "", 1000) {
		t.Fatal("nothing comes")
	}
}

// A move that is no entry comes in a feed too, of all sessions or of its own, at its
// place, from wherever the feed begins.
func TestAFeedTellsOfMovesThatAreNoEntries(t *testing.T) {
	s := sqlitestoretest.Open(t, sqlitestore.Options{Synchronous: sqlitestore.Normal})
	ctx := t.Context()
	tree, err := s.Create(ctx, eventlog.CreateOptions{ID: "a", Dialect: eventlog.CodingAgent})
	require.NoError(t, err)
	first, err := tree.Append(ctx, user("one"))
	require.NoError(t, err)
	for i := range 700 { // more than a page of each
		_, err := tree.Append(ctx, user(fmt.Sprint(i)))
		require.NoError(t, err)
		_, err = tree.MoveTo(ctx, eventlog.At(first[0].ID()), nil)
		require.NoError(t, err)
		if i%100 == 0 {
			_, err = tree.MoveTo(ctx, eventlog.None(), nil)
			require.NoError(t, err)
		}
	}
	const total = 1 + 1 + 2*700 + 7
	read := func(session string, after int64, n int) (events []sqlitestore.Event) {
		for e, err := range s.Watch(ctx, session, after) {
			require.NoError(t, err)
			if events = append(events, e); len(events) == n {
				break
			}
		}
		return events
	}
	all := read("", 0, total)
	require.Equal(t, projections.LeafMoved, all[3].Kind)
	require.Equal(t, eventlog.At(first[0].ID()), all[3].Entry.Target())
	require.Equal(t, all, read("a", 0, total))
	for _, from := range []int{0, 1, 2, 3, 4, 5, 600, 601, 1200, total - 2} {
		require.Equal(t, all[from+1:], read("a", all[from].Seq, total-from-1), from)
	}
}
