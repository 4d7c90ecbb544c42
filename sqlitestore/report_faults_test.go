package sqlitestore_test

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/sessiontree/sessiontree/eventlog"
	"github.com/sessiontree/sessiontree/sqlitestore"
)

// sqliteErrors are errors as SQLite gives them.
func sqliteErrors(t *testing.T) map[string]error {
	t.Helper()
	path := filepath.Join(t.TempDir(), "errors.db")
	open := func() *sql.Conn {
		db, err := sql.Open("sqlite", path)
		require.NoError(t, err)
		t.Cleanup(func() { db.Close() })
		c, err := db.Conn(ctx)
		require.NoError(t, err)
		return c
	}
	must := func(c *sql.Conn, query string) {
		_, err := c.ExecContext(ctx, query)
		require.NoError(t, err)
	}
	a, b := open(), open()
	must(a, "CREATE TABLE t (x)")
	must(a, "PRAGMA max_page_count = 2")
	_, full := a.ExecContext(ctx, "INSERT INTO t VALUES (zeroblob(100000))")
	require.ErrorContains(t, full, "full")
	must(a, "BEGIN IMMEDIATE")
	_, busy := b.ExecContext(ctx, "BEGIN IMMEDIATE")
	require.ErrorContains(t, busy, "locked")
	return map[string]error{"the disk is full": full, "the lock is lost": busy, "the disk is on fire": errors.New("the disk is on fire")}
}

// faultOps are operations that change the store. n makes names that are new.
func faultOps(dir string) map[string]func(ctx context.Context, s *sqlitestore.Store, tree *eventlog.Session, n int) error {
	m := eventlog.Metadata{ID: "s"}
	draft := func(n int, more string) eventlog.Draft {
		return eventlog.MessageDraft(benchMessage(0)).WithID(fmt.Sprint("op-", n, more))
	}
	return map[string]func(ctx context.Context, s *sqlitestore.Store, tree *eventlog.Session, n int) error{
		"an append": func(ctx context.Context, _ *sqlitestore.Store, tree *eventlog.Session, n int) error {
			_, err := tree.Append(ctx, draft(n, ""))
			return err
		},
		"a batch at an old entry": func(ctx context.Context, _ *sqlitestore.Store, tree *eventlog.Session, n int) error {
			_, err := tree.AppendAt(ctx, eventlog.At("first"), draft(n, "a"), eventlog.NameDraft("name"), draft(n, "b"))
			return err
		},
		"a move with a summary": func(ctx context.Context, _ *sqlitestore.Store, tree *eventlog.Session, n int) error {
			_, err := tree.MoveTo(ctx, eventlog.At("first"), &eventlog.Summary{Text: "back"})
			return err
		},
		"a session": func(ctx context.Context, s *sqlitestore.Store, _ *eventlog.Session, n int) error {
			_, err := s.Create(ctx, eventlog.CreateOptions{ID: fmt.Sprint("new-", n)})
			return err
		},
		"a fork of the whole": func(ctx context.Context, s *sqlitestore.Store, _ *eventlog.Session, n int) error {
			_, err := s.Fork(ctx, m, eventlog.ForkOptions{CreateOptions: eventlog.CreateOptions{ID: fmt.Sprint("fork-", n)}})
			return err
		},
		"a fork of a branch": func(ctx context.Context, s *sqlitestore.Store, _ *eventlog.Session, n int) error {
			_, err := s.Fork(ctx, m, eventlog.ForkOptions{CreateOptions: eventlog.CreateOptions{ID: fmt.Sprint("branch-", n)}, EntryID: "first", Position: eventlog.AtIt})
			return err
		},
		"a deletion": func(ctx context.Context, s *sqlitestore.Store, _ *eventlog.Session, n int) error {
			return s.Delete(ctx, eventlog.Metadata{ID: "victim"})
		},
		"an import": func(ctx context.Context, s *sqlitestore.Store, _ *eventlog.Session, n int) error {
			path := filepath.Join(dir, fmt.Sprintf("import-%d.jsonl", n))
			text := fmt.Sprintf(`{"type":"session","version":3,"id":"import-%d","timestamp":"2026-01-01T00:00:00.000Z","cwd":"/p"}`+"\n", n)
			for i := range 3 {
				text += fmt.Sprintf(`{"type":"message","id":"m%d","parentId":null,"timestamp":"2026-01-01T00:00:00.000Z","message":{"role":"user","content":"x"}}`+"\n", i)
			}
			if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
				return err
			}
			var refused error
			err := s.Import(ctx, []string{path}, sqlitestore.ImportOptions{}, func(r sqlitestore.FileResult) { refused = r.Err })
			return errors.Join(err, refused)
		},
		"a lease": func(ctx context.Context, s *sqlitestore.Store, tree *eventlog.Session, n int) error {
			l, err := s.Lease(ctx, m, "holder", time.Hour)
			if err != nil {
				return err
			}
			_, err = l.Open().Append(ctx, draft(n, ""))
			return errors.Join(err, l.Release(context.WithoutCancel(ctx)))
		},
		"a rebuild": func(ctx context.Context, s *sqlitestore.Store, _ *eventlog.Session, n int) error {
			return s.Rebuild(ctx)
		},
		"a context": func(ctx context.Context, _ *sqlitestore.Store, tree *eventlog.Session, n int) error {
			_, err := tree.BuildContext(ctx, eventlog.At("first"))
			return err
		},
		"a list": func(ctx context.Context, s *sqlitestore.Store, _ *eventlog.Session, n int) error {
			for _, err := range s.Sessions(ctx, sqlitestore.ListOptions{}) {
				if err != nil {
					return err
				}
			}
			return nil
		},
	}
}

// logsOf is the log of every session, and its leaf.
func logsOf(t *testing.T, s *sqlitestore.Store) map[string]string {
	t.Helper()
	listed, err := s.List(ctx, "")
	require.NoError(t, err)
	logs := map[string]string{}
	for _, l := range listed {
		tree, err := s.Open(ctx, l.Metadata)
		require.NoError(t, err)
		head, err := tree.Head(ctx)
		require.NoError(t, err)
		var all []string
		for e, err := range tree.Entries(ctx, 0, eventlog.All) {
			require.NoError(t, err)
			all = append(all, e.JSON())
		}
		require.Len(t, all, head.N)
		logs[l.ID] = fmt.Sprint(head.Leaf, " ", strings.Join(all, "\n"))
	}
	return logs
}

// TestReport_O2_G2_F11_AFailedStatementChangesNothing makes each statement, and
// each row, that an operation asks of SQLite fail, until the operation asks no
// more: once or from then on for good, before it was carried out or behind that.
// Then there is the old state or the new one, the error says what it is, and the
// next append is written.
func TestReport_O2_G2_F11_AFailedStatementChangesNothing(t *testing.T) {
	kinds, stride := sqliteErrors(t), 23
	if long {
		stride = 1
	}
	dir := t.TempDir()
	ops := faultOps(dir)
	for i, name := range slices.Sorted(maps.Keys(ops)) {
		for j, kind := range slices.Sorted(maps.Keys(kinds)) {
			for mode := range 4 {
				if !long && (i+j+mode)%4 != 0 { // each kind and each mode, if not all of them together
					continue
				}
				t.Run(fmt.Sprintf("%s/%s/%d", name, kind, mode), func(t *testing.T) {
					f := &faults{err: kinds[kind], sticky: mode&1 != 0, after: mode&2 != 0}
					failStatements(t, f, ops[name], name, stride)
				})
			}
		}
	}
}

// step goes through the first statements one by one: some operations have few.
func step(at, stride int) int {
	if at < 12 {
		return 1
	}
	return stride
}

func failStatements(t *testing.T, f *faults, op func(context.Context, *sqlitestore.Store, *eventlog.Session, int) error, name string, stride int) (failures int) {
	path := filepath.Join(t.TempDir(), "sessions.db")
	s, err := sqlitestore.OpenWith(ctx, path, sqlitestore.Options{Synchronous: sqlitestore.Normal, BusyTimeout: 20 * time.Millisecond}, f.connector)
	require.NoError(t, err)
	defer s.Close(ctx)
	tree, err := s.Create(ctx, eventlog.CreateOptions{ID: "s"})
	require.NoError(t, err)
	require.NoError(t, appendTo(tree, "first"))
	for at, n := 1, 0; ; at, n = at+step(at, stride), n+1 {
		require.Less(t, at, 40_000)
		victim, err := s.Create(ctx, eventlog.CreateOptions{ID: "victim"})
		if err == nil {
			require.NoError(t, appendTo(victim, "v"))
		} else {
			require.ErrorIs(t, err, eventlog.ErrAlreadyExists) // the deletion failed
		}
		before := logsOf(t, s)
		hit, err := f.during(at, func(ctx context.Context) error { return op(ctx, s, tree, n) })
		if err != nil {
			failures++
			require.NotEmpty(t, hit, "%v", err)
			f.requireTold(t, err, hit)
		}
		after := logsOf(t, s)
		committed := f.after && slices.Contains(hit, "COMMIT")
		if name == "an import" { // the file's own write is the first of several
			imported := fmt.Sprint("import-", n)
			if log, ok := after[imported]; ok {
				require.Equal(t, 3, strings.Count(log, `"type":"message"`))
				delete(after, imported)
			}
		}
		if name == "a lease" { // three writes, of which the last gives it back
			l, err := s.Lease(ctx, eventlog.Metadata{ID: "s"}, "holder", time.Hour)
			require.NoError(t, err)
			require.NoError(t, l.Release(ctx))
		} else if err != nil && !committed {
			require.Equal(t, before, after, "%s, statement %d, %v: %v", name, at, hit, err)
		}
		require.NoError(t, appendTo(tree, fmt.Sprint("later-", n)), "%s, statement %d, %v", name, at, hit)
		if len(hit) == 0 {
			break
		}
		if f.sticky && failures > 12 && !long {
			break
		}
	}
	s.RetryBranch()
	require.NoError(t, appendTo(tree, "in the end"))
	problems, err := s.Verify(ctx)
	require.NoError(t, err)
	require.Empty(t, problems)
	if name != "a list" && !f.cancels { // a list has another way when the catalog fails
		require.Positive(t, failures)
	}
	return failures
}

// requireTold holds what an operation failed with against what happened to it.
func (f *faults) requireTold(t *testing.T, err error, hit []string) {
	t.Helper()
	if f.cancels {
		require.ErrorIs(t, err, context.Canceled, "%v", hit)
		return
	}
	var typed *eventlog.Error
	require.ErrorAs(t, err, &typed, "%v", hit)
	require.Contains(t, []eventlog.Code{eventlog.StorageFailed, eventlog.Busy}, typed.Code, "%v: %v", hit, err)
}

// TestReport_O2_F11_ACancelledStatementChangesNothing ends the caller's context at
// each statement of an operation. (A write whose turn has come is carried out.)
func TestReport_O2_F11_ACancelledStatementChangesNothing(t *testing.T) {
	stride := 23
	if long {
		stride = 1
	}
	ops, failures := faultOps(t.TempDir()), 0
	for _, name := range slices.Sorted(maps.Keys(ops)) {
		t.Run(name, func(t *testing.T) {
			failures += failStatements(t, &faults{cancels: true}, ops[name], name, stride)
		})
	}
	require.Positive(t, failures)
}
