package sqlitestore_test

import (
	"cmp"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"log/slog"
	"math"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/sessiontree/sessiontree/eventlog"
	"github.com/sessiontree/sessiontree/sqlitestore"
	"github.com/sessiontree/sessiontree/sqlitestore/sqlitestoretest"
)

func entry(t *testing.T, text string) eventlog.Entry {
	e, err := eventlog.ParseEntry(text)
	require.NoError(t, err)
	return e
}

func TestReport_F11_ACancelledReadLeavesItsConnectionUsable(t *testing.T) {
	s := sqlitestoretest.Open(t, sqlitestore.Options{ReadConns: 2, Synchronous: sqlitestore.Normal})
	tree, err := s.Create(ctx, eventlog.CreateOptions{CWD: "/project"})
	require.NoError(t, err)
	_, err = tree.AppendMessage(ctx, benchMessage(0))
	require.NoError(t, err)
	for i := range 3000 {
		short, cancel := context.WithTimeout(ctx, time.Duration(i%40)*time.Microsecond)
		_, err := tree.Branch(short, eventlog.None())
		cancel()
		if err != nil {
			require.ErrorIs(t, err, context.DeadlineExceeded)
		}
		if i%50 == 0 {
			for range 4 {
				_, err := tree.Branch(ctx, eventlog.None())
				require.NoError(t, err)
			}
		}
	}
}

// A write to views that are behind brings them up first: it would take a leaf and
// a number that are not so.
func TestReport_I1_AWriteToViewsThatAreBehindBringsThemUp(t *testing.T) {
	path, branch := treeAt(t)
	s := sqlitestoretest.OpenAt(t, path, sqlitestore.Options{Synchronous: sqlitestore.Normal})
	tree, err := s.Open(ctx, eventlog.Metadata{ID: "s"})
	require.NoError(t, err)
	meddle(t, path, "DELETE FROM checkpoints") // as another program would that raises a version
	e, err := tree.AppendMessage(ctx, benchMessage(99))
	require.NoError(t, err)
	now, err := tree.Branch(ctx, eventlog.None())
	require.NoError(t, err)
	require.Equal(t, append(branch, e), now)
}

func TestAPanicOfTheHostStopsNobodyElse(t *testing.T) {
	panics, n := false, 0
	s := sqlitestoretest.Open(t, sqlitestore.Options{Synchronous: sqlitestore.Normal, Source: eventlog.Source{NewID: func() string {
		if panics {
			panic("no ids today")
		}
		n++
		return fmt.Sprint("e", n)
	}}})
	tree, err := s.Create(ctx, eventlog.CreateOptions{CWD: "/project"})
	require.NoError(t, err)
	panics = true
	require.PanicsWithValue(t, "no ids today", func() { tree.AppendMessage(ctx, benchMessage(0)) })
	panics = false
	soon, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	_, err = tree.AppendMessage(soon, benchMessage(1))
	require.NoError(t, err)
}

// A panic of the host's log, on the way to the disk or in a view's goroutine, stops
// nobody.
func TestAPanicOfTheHostsLogStopsNobody(t *testing.T) {
	loud := &panickyLog{}
	path := filepath.Join(t.TempDir(), "sessions.db")
	s := sqlitestoretest.OpenAt(t, path, sqlitestore.Options{Synchronous: sqlitestore.Normal, MaxWALBytes: 1 << 20, Logger: slog.New(loud).With("host", "a").WithGroup("b")})
	tree, err := s.Create(ctx, eventlog.CreateOptions{ID: "s"})
	require.NoError(t, err)
	before := loud.said.Load()
	n := 0
	for ; loud.said.Load() == before; n++ { // until the write-ahead log is worth a warning
		require.Less(t, n, 1000)
		_, err = tree.Append(ctx, user(strings.Repeat("long ", 10_000)))
		require.NoError(t, err)
	}
	_, err = tree.Append(ctx, user("and on"))
	require.NoError(t, err)
	head, err := tree.Head(ctx)
	require.NoError(t, err)
	require.Equal(t, n+1, head.N)
}

// panickyLog is a log handler that panics at each record.
type panickyLog struct{ said atomic.Int64 }

func (l *panickyLog) Enabled(context.Context, slog.Level) bool { return true }
func (l *panickyLog) WithAttrs([]slog.Attr) slog.Handler       { return l }
func (l *panickyLog) WithGroup(string) slog.Handler            { return l }
func (l *panickyLog) Handle(context.Context, slog.Record) error {
	l.said.Add(1)
	panic("no log today")
}

// An append that brings the parent an island waited for makes the session one
// that the walk answers.
func TestReport_C3_AnIslandsParentThatComesLater(t *testing.T) {
	s := sqlitestoretest.Open(t, sqlitestore.Options{Synchronous: sqlitestore.Normal})
	const message = `,"timestamp":"t","message":{"role":"user","content":"x"}}`
	tree, err := s.Add(ctx, eventlog.Metadata{ID: "s", CWD: "/"}, []eventlog.Entry{
		entry(t, `{"type":"message","id":"root","parentId":null`+message),
		entry(t, `{"type":"message","id":"child","parentId":"late"`+message),
	})
	require.NoError(t, err)
	_, err = tree.AppendAt(ctx, eventlog.At("root"), eventlog.MessageDraft(benchMessage(0)).WithID("late"))
	require.NoError(t, err)
	branch, err := tree.Branch(ctx, eventlog.At("child"))
	require.NoError(t, err)
	require.Len(t, branch, 3)
}

func TestAStoreIsClosedWhateverTheContextSays(t *testing.T) {
	path := filepath.Join(t.TempDir(), "sessions.db")
	for range 20 {
		s, err := sqlitestore.Open(ctx, path, sqlitestore.Options{})
		require.NoError(t, err)
		ended, cancel := context.WithCancel(ctx)
		cancel()
		require.NoError(t, s.Close(ended), "nobody reads")
	}
}

func TestTotalsThatAreNoNumberAreKept(t *testing.T) {
	s := sqlitestoretest.Open(t, sqlitestore.Options{Synchronous: sqlitestore.Normal})
	usage := func(id, input string) eventlog.Entry {
		return entry(t, `{"type":"message","id":"`+id+`","parentId":null,"timestamp":"t","message":{"role":"assistant","content":[],"usage":{"input":`+input+`,"output":1,"cacheRead":1,"cacheWrite":1,"cost":{"total":1}}}}`)
	}
	tree, err := s.Add(ctx, eventlog.Metadata{ID: "s", CWD: "/"}, []eventlog.Entry{usage("a", "1e999"), usage("b", "-1e999")})
	require.NoError(t, err)
	stats, err := tree.Stats(ctx)
	require.NoError(t, err)
	require.True(t, math.IsNaN(stats.UncachedTokens))
	require.Equal(t, 2.0, stats.CachedTokens)
}

// requireWaited is what a caller gets who waited in vain: busy, with its deadline's
// error, if there was one; or that it was cancelled.
func requireWaited(t *testing.T, err, ended error) {
	t.Helper()
	if ended == context.Canceled {
		require.Equal(t, context.Canceled, err)
		return
	}
	require.ErrorIs(t, err, eventlog.ErrBusy)
	require.Equal(t, eventlog.Busy, eventlog.CodeOf(err))
	require.Equal(t, ended == context.DeadlineExceeded, errors.Is(err, context.DeadlineExceeded), "%v", err)
	require.NotErrorIs(t, err, context.Canceled)
}

// Whoever waits in vain for another writer is told so in one way, whatever it
// wanted to write, and nothing was written.
func TestReport_F5_WhoWaitsInVainIsToldForWhom(t *testing.T) {
	path, _ := treeAt(t)
	s := sqlitestoretest.OpenAt(t, path, sqlitestore.Options{Synchronous: sqlitestore.Normal, BusyTimeout: 400 * time.Millisecond})
	tree, err := s.Open(ctx, eventlog.Metadata{ID: "s"})
	require.NoError(t, err)
	before, err := tree.Head(ctx)
	require.NoError(t, err)
	other, err := sql.Open("sqlite", "file:"+path+"?_txlock=immediate&_pragma=busy_timeout(20000)")
	require.NoError(t, err)
	defer other.Close()
	hold, err := other.Begin()
	require.NoError(t, err)
	file := filepath.Join(t.TempDir(), "a.jsonl")
	write(t, file, header("imported", "")+line("a", "", "one"))
	writes := map[string]func(ctx context.Context) error{
		"an append": func(ctx context.Context) error { _, err := tree.Append(ctx, user("x")); return err },
		"a move":    func(ctx context.Context) error { _, err := tree.MoveTo(ctx, eventlog.None(), nil); return err },
		"a session": func(ctx context.Context) error {
			_, err := s.Create(ctx, eventlog.CreateOptions{ID: "new"})
			return err
		},
		"a deletion": func(ctx context.Context) error { return s.Delete(ctx, eventlog.Metadata{ID: "s"}) },
		"a fork": func(ctx context.Context) error {
			_, err := s.Fork(ctx, eventlog.Metadata{ID: "s"}, eventlog.ForkOptions{})
			return err
		},
		"a lease": func(ctx context.Context) error {
			_, err := s.Lease(ctx, eventlog.Metadata{ID: "s"}, "me", time.Hour)
			return err
		},
		"compaction": func(ctx context.Context) error { _, err := s.Compact(ctx); return err },
		"a repair":   func(ctx context.Context) error { return s.Repair(ctx) },
		"a purge":    func(ctx context.Context) error { _, err := s.PurgeText(ctx, "sk-live-0123456789", false); return err },
		"an import": func(ctx context.Context) error {
			var refused error
			err := s.Import(ctx, []string{file}, sqlitestore.ImportOptions{}, func(r sqlitestore.FileResult) { refused = r.Err })
			return cmp.Or(err, refused)
		},
	}
	for name, write := range writes {
		t.Run(name, func(t *testing.T) {
			requireWaited(t, write(ctx), nil)
			soon, cancel := context.WithTimeout(ctx, 150*time.Millisecond)
			defer cancel()
			requireWaited(t, write(soon), context.DeadlineExceeded)
			until, cancel := context.WithCancel(ctx)
			time.AfterFunc(60*time.Millisecond, cancel)
			requireWaited(t, write(until), context.Canceled)
		})
	}
	require.NoError(t, hold.Rollback())
	after, err := tree.Head(ctx)
	require.NoError(t, err)
	require.Equal(t, before, after)
	listed, err := s.List(ctx, "")
	require.NoError(t, err)
	require.Len(t, listed, 1)
}

// Callers that wait for another process together each go at their own deadline,
// and those with time left get their turn.
func TestReport_F5_CallersInAGroupGoAtTheirOwnDeadlines(t *testing.T) {
	path, _ := treeAt(t)
	s := sqlitestoretest.OpenAt(t, path, sqlitestore.Options{Synchronous: sqlitestore.Normal})
	tree, err := s.Open(ctx, eventlog.Metadata{ID: "s"})
	require.NoError(t, err)
	other, err := sql.Open("sqlite", "file:"+path+"?_txlock=immediate&_pragma=busy_timeout(20000)")
	require.NoError(t, err)
	defer other.Close()
	hold, err := other.Begin()
	require.NoError(t, err)
	results := make(chan error, 6)
	for i := range cap(results) {
		wait := 20 * time.Second
		if i%2 == 0 {
			wait = 400 * time.Millisecond
		}
		go func() {
			until, cancel := context.WithTimeout(ctx, wait)
			defer cancel()
			_, err := tree.AppendMessage(until, benchMessage(i))
			results <- err
		}()
	}
	for range cap(results) / 2 {
		requireWaited(t, <-results, context.DeadlineExceeded)
	}
	require.NoError(t, hold.Rollback())
	for range cap(results) / 2 {
		require.NoError(t, <-results, "the patient ones")
	}
}
