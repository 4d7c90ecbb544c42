package sqlitestore_test

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/sessiontree/sessiontree/eventlog"
	"github.com/sessiontree/sessiontree/sqlitestore"
	"github.com/sessiontree/sessiontree/sqlitestore/sqlitestoretest"
)

// clock is a time that tests set, ms since 1970.
type clock struct{ atomic.Int64 }

func (c *clock) source() eventlog.Source {
	return eventlog.Source{Now: func() time.Time { return time.UnixMilli(c.Load()) }}
}

// leased is two stores of one database with a clock of their own, and a session s.
func leased(t *testing.T) (a, b *sqlitestore.Store, at *clock) {
	t.Helper()
	at = &clock{}
	at.Store(1_000_000)
	path := filepath.Join(t.TempDir(), "sessions.db")
	o := sqlitestore.Options{Synchronous: sqlitestore.Normal, Source: at.source()}
	a, b = sqlitestoretest.OpenAt(t, path, o), sqlitestoretest.OpenAt(t, path, o)
	_, err := a.Create(ctx, eventlog.CreateOptions{ID: "s", CWD: "/p"})
	require.NoError(t, err)
	return a, b, at
}

func appendTo(s *eventlog.Session, id string) error {
	_, err := s.Append(ctx, eventlog.MessageDraft(benchMessage(0)).WithID(id))
	return err
}

// refused asks that an error is a busy that says who holds the session.
func refused(t *testing.T, err error, want sqlitestore.LeaseError) {
	t.Helper()
	require.ErrorIs(t, err, eventlog.ErrBusy)
	var held *sqlitestore.LeaseError
	require.ErrorAs(t, err, &held)
	require.Equal(t, want, *held)
	if want.Holder != "" {
		require.ErrorContains(t, err, want.Holder)
	}
}

func TestReport_F1_ALeaseKeepsOthersOut(t *testing.T) {
	a, b, at := leased(t)
	m := eventlog.Metadata{ID: "s"}
	lease, err := a.Lease(ctx, m, "host-1", time.Minute)
	require.NoError(t, err)
	held := sqlitestore.LeaseError{Session: "s", Holder: "host-1", Token: 1, Expires: time.UnixMilli(1_060_000)}
	require.NoError(t, appendTo(lease.Open(), "mine"))
	for _, s := range []*sqlitestore.Store{a, b} {
		tree, err := s.Open(ctx, m)
		require.NoError(t, err)
		refused(t, appendTo(tree, "theirs"), held)
		_, err = tree.MoveTo(ctx, eventlog.None(), nil)
		refused(t, err, held)
		refused(t, tree.Storage().AppendRaw(ctx, eventlog.TrustedEntry(`{"type":"custom","id":"raw","parentId":null,"timestamp":""}`)), held)
		refused(t, s.Delete(ctx, m), held)
		_, err = s.Lease(ctx, m, "host-2", time.Minute)
		refused(t, err, held)
		// Reading is free, and so are a fork and the other sessions.
		branch, err := tree.Branch(ctx, eventlog.None())
		require.NoError(t, err)
		require.Equal(t, []string{"mine"}, ids(branch))
		fork, err := s.Fork(ctx, m, eventlog.ForkOptions{})
		require.NoError(t, err)
		require.NoError(t, appendTo(fork, "free"))
	}

	require.NoError(t, lease.Renew(ctx, 2*time.Minute))
	at.Add(90_000)
	require.NoError(t, appendTo(lease.Open(), "still mine"))
	require.Equal(t, time.UnixMilli(1_120_000), lease.Expires())

	require.NoError(t, lease.Release(ctx))
	require.NoError(t, lease.Release(ctx))
	tree, err := b.Open(ctx, m)
	require.NoError(t, err)
	require.NoError(t, appendTo(tree, "free"))
	refused(t, appendTo(lease.Open(), "gone"), sqlitestore.LeaseError{Session: "s"})
	refused(t, lease.Renew(ctx, time.Minute), sqlitestore.LeaseError{Session: "s"})
}

// An import takes nothing for a session that another has leased, and goes on.
func TestALeaseKeepsImportsOut(t *testing.T) {
	a, b, _ := leased(t)
	dir := t.TempDir()
	file := func(id string, entries int) string {
		text := fmt.Sprintf(`{"type":"session","version":3,"id":%q,"timestamp":"2026-01-01T00:00:00.000Z","cwd":"/p"}`+"\n", id)
		for i := range entries {
			text += fmt.Sprintf(`{"type":"message","id":"m%d","parentId":null,"timestamp":"2026-01-01T00:00:00.000Z","message":{"role":"user","content":"x"}}`+"\n", i)
		}
		path := filepath.Join(dir, id+".jsonl")
		require.NoError(t, os.WriteFile(path, []byte(text), 0o600))
		return path
	}
	outcomes := func(paths ...string) map[string]sqlitestore.Outcome {
		got := map[string]sqlitestore.Outcome{}
		require.NoError(t, b.Import(ctx, paths, sqlitestore.ImportOptions{}, func(r sqlitestore.FileResult) {
			got[filepath.Base(r.Path)] = r.Outcome
			if r.Outcome == sqlitestore.Refused {
				refused(t, r.Err, sqlitestore.LeaseError{Session: "one", Holder: "host", Token: 1, Expires: time.UnixMilli(1_060_000)})
			}
		}))
		return got
	}
	require.Equal(t, map[string]sqlitestore.Outcome{"one.jsonl": sqlitestore.Imported}, outcomes(file("one", 1)))
	lease, err := a.Lease(ctx, eventlog.Metadata{ID: "one"}, "host", time.Minute)
	require.NoError(t, err)
	require.Equal(t, map[string]sqlitestore.Outcome{"one.jsonl": sqlitestore.Refused, "two.jsonl": sqlitestore.Imported}, outcomes(file("one", 2), file("two", 2)))
	require.NoError(t, lease.Release(ctx))
	require.Equal(t, map[string]sqlitestore.Outcome{"one.jsonl": sqlitestore.Extended}, outcomes(file("one", 2)))
}

// A holder that was away for too long is refused, whatever came between.
func TestReport_F1_ALeaseThatEndedIsFencedOff(t *testing.T) {
	a, b, at := leased(t)
	m := eventlog.Metadata{ID: "s"}
	old, err := a.Lease(ctx, m, "host-1", time.Minute)
	require.NoError(t, err)
	at.Add(60_000) // the end counts as over
	refused(t, appendTo(old.Open(), "late"), sqlitestore.LeaseError{Session: "s"})
	tree, err := b.Open(ctx, m)
	require.NoError(t, err)
	require.NoError(t, appendTo(tree, "free"))

	next, err := b.Lease(ctx, m, "host-2", time.Minute)
	require.NoError(t, err)
	require.Equal(t, int64(2), next.Token)
	held := sqlitestore.LeaseError{Session: "s", Holder: "host-2", Token: 2, Expires: time.UnixMilli(1_120_000)}
	refused(t, appendTo(old.Open(), "late"), held)
	refused(t, old.Renew(ctx, time.Hour), held)
	at.Add(-60_000) // a clock that goes back does not bring the old one back
	refused(t, appendTo(old.Open(), "late"), held)
	require.NoError(t, old.Release(ctx))
	require.NoError(t, appendTo(next.Open(), "next"))

	// The same holder, after a crash, takes its place at once; its older self is out.
	again, err := a.Lease(ctx, m, "host-2", time.Minute)
	require.NoError(t, err)
	require.Equal(t, int64(3), again.Token)
	require.NoError(t, appendTo(again.Open(), "again"))
	held.Token, held.Expires = 3, time.UnixMilli(1_060_000)
	refused(t, appendTo(next.Open(), "late"), held)
}

func TestLeaseArguments(t *testing.T) {
	a, _, _ := leased(t)
	m := eventlog.Metadata{ID: "s"}
	_, err := a.Lease(ctx, m, "", time.Minute)
	require.ErrorIs(t, err, eventlog.ErrInvalidArgument)
	_, err = a.Lease(ctx, m, "h", 0)
	require.ErrorIs(t, err, eventlog.ErrInvalidArgument)
	_, err = a.Lease(ctx, eventlog.Metadata{ID: "gone"}, "h", time.Minute)
	require.ErrorIs(t, err, eventlog.ErrNotFound)
	l, err := a.Lease(ctx, m, "h", time.Minute)
	require.NoError(t, err)
	require.ErrorIs(t, l.Renew(ctx, -1), eventlog.ErrInvalidArgument)
	require.NoError(t, l.Release(ctx))
	require.NoError(t, a.Delete(ctx, m))
	_, err = a.Create(ctx, eventlog.CreateOptions{ID: "s"})
	require.NoError(t, err)
	l, err = a.Lease(ctx, m, "h", time.Minute)
	require.NoError(t, err)
	require.Equal(t, int64(1), l.Token, "another session of that name")
}

// Of many that want a session at once each has it alone, one behind the other.
func TestLeasesTakeTurns(t *testing.T) {
	a, b, _ := leased(t)
	m := eventlog.Metadata{ID: "s"}
	var inside, tokens atomic.Int64
	var all sync.WaitGroup
	for i := range 8 {
		s := []*sqlitestore.Store{a, b}[i%2]
		all.Go(func() {
			for {
				l, err := s.Lease(ctx, m, fmt.Sprint("host-", i), time.Hour)
				if eventlog.CodeOf(err) == eventlog.Busy {
					time.Sleep(time.Millisecond)
					continue
				}
				if err == nil && inside.Add(1) != 1 {
					err = fmt.Errorf("two have the lease")
				}
				if err == nil {
					tokens.Add(l.Token)
					err = appendTo(l.Open(), fmt.Sprint("m", i))
				}
				inside.Add(-1)
				if err == nil {
					err = l.Release(ctx)
				}
				if err != nil {
					t.Error(err)
				}
				return
			}
		})
	}
	all.Wait()
	require.Equal(t, int64(1+2+3+4+5+6+7+8), tokens.Load())
	tree, err := a.Open(ctx, m)
	require.NoError(t, err)
	require.Len(t, chainOf(t, tree), 8)
}

// leaseholder is the test binary as a process that takes a lease, and is killed.
func leaseholder(path string) error {
	s, err := sqlitestore.Open(ctx, path, sqlitestore.Options{})
	if err != nil {
		return err
	}
	l, err := s.Lease(ctx, eventlog.Metadata{ID: "s"}, "victim", time.Hour)
	if err != nil {
		return err
	}
	if err := appendTo(l.Open(), "before"); err != nil {
		return err
	}
	fmt.Println(l.Token)
	select {}
}

func TestReport_F1_ALeaseAfterACrash(t *testing.T) {
	path := filepath.Join(t.TempDir(), "sessions.db")
	s := sqlitestoretest.OpenAt(t, path, sqlitestore.Options{})
	tree, err := s.Create(ctx, eventlog.CreateOptions{ID: "s"})
	require.NoError(t, err)
	self, err := os.Executable()
	require.NoError(t, err)
	cmd := exec.Command(self)
	cmd.Env = append(os.Environ(), "SESSIONTREE_TEST_LEASE="+path)
	cmd.Stderr = t.Output()
	out, err := cmd.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, cmd.Start())
	var token int64
	_, err = fmt.Fscan(out, &token)
	require.NoError(t, err)
	require.NoError(t, cmd.Process.Kill())
	require.Error(t, cmd.Wait())

	require.ErrorIs(t, appendTo(tree, "other"), eventlog.ErrBusy, "the crash alone does not end it")
	l, err := s.Lease(ctx, eventlog.Metadata{ID: "s"}, "victim", time.Hour)
	require.NoError(t, err, "the same holder again")
	require.Greater(t, l.Token, token)
	require.NoError(t, appendTo(l.Open(), "after"))
	require.Equal(t, map[string]bool{"before": true, "after": true}, chainOf(t, tree))
}

func ExampleStore_Lease() {
	dir, _ := os.MkdirTemp("", "lease-*")
	defer os.RemoveAll(dir)
	store, err := sqlitestore.Open(ctx, filepath.Join(dir, "sessions.db"), sqlitestore.Options{})
	if err != nil {
		panic(err)
	}
	defer store.Close(ctx)
	shared, err := store.Create(ctx, eventlog.CreateOptions{ID: "s", CWD: "/project"})
	if err != nil {
		panic(err)
	}

	lease, err := store.Lease(ctx, eventlog.Metadata{ID: "s"}, "agent-1", time.Minute)
	if err != nil {
		panic(err)
	}
	mine := lease.Open()
	_, err = mine.AppendMessage(ctx, eventlog.UserMessage("mine alone", time.Now()))
	fmt.Println(err)
	_, err = shared.AppendMessage(ctx, eventlog.UserMessage("another's", time.Now()))
	fmt.Println(eventlog.CodeOf(err))

	if err := lease.Release(ctx); err != nil {
		panic(err)
	}
	_, err = shared.AppendMessage(ctx, eventlog.UserMessage("another's", time.Now()))
	fmt.Println(err)
	// Output:
	// <nil>
	// busy
	// <nil>
}
