package sqlitestore_test

import (
	"bufio"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/sessiontree/sessiontree/eventlog"
	"github.com/sessiontree/sessiontree/sqlitestore"
	"github.com/sessiontree/sessiontree/sqlitestore/sqlitestoretest"
)

// victim is what the test binary does when it stands in for another process:
// append to a session, moving about, and print each entry's id once it is
// acknowledged.
func victim(database, session, name string, n int) error {
	s, err := sqlitestore.Open(ctx, database, sqlitestore.Options{})
	if err != nil {
		return err
	}
	defer s.Close(ctx)
	tree, err := s.Open(ctx, eventlog.Metadata{ID: session})
	if err != nil {
		return err
	}
	for i := range n {
		id := fmt.Sprintf("%s-%d", name, i)
		if _, err := tree.Append(ctx, eventlog.MessageDraft(benchMessage(i)).WithID(id)); err != nil {
			return err
		}
		fmt.Println(id)
		if i%10 == 9 { // go back a little, with a summary, in one step
			if _, err := tree.MoveTo(ctx, eventlog.At(fmt.Sprintf("%s-%d", name, i-5)), &eventlog.Summary{Text: "went back"}); err != nil {
				return err
			}
		}
	}
	return nil
}

func TestMain(m *testing.M) {
	if database := os.Getenv("SESSIONTREE_TEST_STREAM"); database != "" {
		if err := stream(database); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	if args := strings.Fields(os.Getenv("SESSIONTREE_TEST_VICTIM")); len(args) == 4 {
		n, _ := strconv.Atoi(args[3])
		if err := victim(args[0], args[1], args[2], n); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	if args := strings.Fields(os.Getenv("SESSIONTREE_TEST_SOAK")); len(args) == 4 {
		if err := soaker(args); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	if args := strings.Fields(os.Getenv("SESSIONTREE_TEST_CROWD")); len(args) == 3 {
		if err := crowd(args); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	if path := os.Getenv("SESSIONTREE_TEST_LEASE"); path != "" {
		fmt.Fprintln(os.Stderr, leaseholder(path))
		os.Exit(1)
	}
	os.Exit(m.Run())
}

// soaker is the test binary as a process of the soak test.
func soaker(args []string) error {
	s, err := sqlitestore.Open(ctx, args[0], sqlitestore.Options{Synchronous: sqlitestore.Normal})
	if err != nil {
		return err
	}
	defer s.Close(ctx)
	seed, _ := strconv.ParseUint(args[2], 10, 64)
	until, _ := strconv.ParseInt(args[3], 10, 64)
	return soak(ctx, s, args[1], seed, time.Unix(0, until))
}

func startVictim(t *testing.T, database, session, name string, n int) (*exec.Cmd, *bufio.Scanner) {
	self, err := os.Executable()
	require.NoError(t, err)
	cmd := exec.Command(self)
	cmd.Env = append(os.Environ(), fmt.Sprintf("SESSIONTREE_TEST_VICTIM=%s %s %s %d", database, session, name, n))
	cmd.Stderr = t.Output()
	out, err := cmd.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, cmd.Start())
	return cmd, bufio.NewScanner(out)
}

// chainOf checks that each entry of the log hangs below the leaf that the one
// before left: nobody appended to a leaf that was stale.
func chainOf(t *testing.T, tree *eventlog.Session) map[string]bool {
	t.Helper()
	leaf, ids := eventlog.None(), map[string]bool{}
	for e, err := range tree.Entries(ctx, 0, eventlog.All) {
		require.NoError(t, err)
		if e.Type() != eventlog.TypeBranchSummary {
			require.Equal(t, leaf, e.Parent(), "parent of %s", e.ID())
		}
		require.False(t, ids[e.ID()], "%s stands twice", e.ID())
		ids[e.ID()] = true
		leaf = e.LeafAfter()
	}
	head, err := tree.Head(ctx)
	require.NoError(t, err)
	require.Equal(t, eventlog.Head{Leaf: leaf, N: len(ids)}, head)
	return ids
}

func TestReport_F1_F6_ProcessesOnOneSessionLoseNothing(t *testing.T) {
	const processes, each = 4, 100
	path := filepath.Join(t.TempDir(), "sessions.db")
	s := sqlitestoretest.OpenAt(t, path, sqlitestore.Options{})
	tree, err := s.Create(ctx, eventlog.CreateOptions{ID: "shared", CWD: "/project"})
	require.NoError(t, err)
	var commands [processes]*exec.Cmd
	var outputs [processes]*bufio.Scanner
	for p := range processes {
		commands[p], outputs[p] = startVictim(t, path, "shared", fmt.Sprintf("p%d", p), each)
	}
	var acknowledged []string
	for p := range processes {
		for outputs[p].Scan() {
			acknowledged = append(acknowledged, outputs[p].Text())
		}
		require.NoError(t, commands[p].Wait())
	}
	ids := chainOf(t, tree)
	require.Len(t, acknowledged, processes*each)
	for _, id := range acknowledged {
		require.True(t, ids[id], "%s was acknowledged and is not there", id)
	}
}

func TestReport_O1_A6_AcknowledgedAppendsSurviveKill9(t *testing.T) {
	kills := 10
	if long {
		kills = 500
	}
	path := filepath.Join(t.TempDir(), "sessions.db")
	s := sqlitestoretest.OpenAt(t, path, sqlitestore.Options{})
	tree, err := s.Create(ctx, eventlog.CreateOptions{ID: "killed", CWD: "/project"})
	require.NoError(t, err)
	acknowledged := map[string]bool{}
	for k := range kills {
		cmd, out := startVictim(t, path, "killed", fmt.Sprintf("k%d", k), 1_000_000)
		first := true
		for out.Scan() {
			if acknowledged[out.Text()] = true; first { // it writes now, however slow the machine
				first = false
				time.AfterFunc(time.Duration(k*37%120)*time.Millisecond, func() { cmd.Process.Kill() })
			}
		}
		cmd.Wait()
	}
	// Others can write at once after a kill, and see all that was acknowledged.
	_, err = tree.AppendMessage(ctx, benchMessage(0))
	require.NoError(t, err)
	ids := chainOf(t, tree)
	for id := range acknowledged {
		require.True(t, ids[id], "%s was acknowledged and is not there", id)
	}
	require.NotEmpty(t, acknowledged)
	t.Logf("%d kills, %d acknowledged entries", kills, len(acknowledged))
	// A move and its summary are there both or not at all: every leaf entry of a
	// victim is followed by its summary.
	var before eventlog.Entry
	for e, err := range tree.Entries(ctx, 0, eventlog.All) {
		require.NoError(t, err)
		if before.JSON() != "" && before.Type() == eventlog.TypeLeaf {
			require.Equal(t, eventlog.TypeBranchSummary, e.Type())
		}
		before = e
	}
}

func TestManyGoroutinesAreCommittedTogether(t *testing.T) {
	const goroutines, each = 32, 30
	s := sqlitestoretest.Open(t, sqlitestore.Options{})
	tree, err := s.Create(ctx, eventlog.CreateOptions{CWD: "/project"})
	require.NoError(t, err)
	failures := make(chan error, goroutines)
	for range goroutines {
		go func() {
			for i := range each {
				if _, err := tree.AppendMessage(ctx, benchMessage(i)); err != nil {
					failures <- err
					return
				}
			}
			failures <- nil
		}()
	}
	for range goroutines {
		require.NoError(t, <-failures)
	}
	require.Len(t, chainOf(t, tree), goroutines*each)
}

func TestReport_F11_ACancelledAppendIsWholeOrNotThere(t *testing.T) {
	s := sqlitestoretest.Open(t, sqlitestore.Options{Synchronous: sqlitestore.Normal})
	tree, err := s.Create(ctx, eventlog.CreateOptions{CWD: "/project"})
	require.NoError(t, err)
	written := 0
	for i := range 2000 {
		ctx, cancel := context.WithTimeout(ctx, time.Duration(i%200)*time.Microsecond)
		entries, err := tree.Append(ctx, eventlog.MessageDraft(benchMessage(i)), eventlog.MessageDraft(benchMessage(i)))
		cancel()
		if err == nil {
			written += len(entries)
		} else {
			require.ErrorIs(t, err, context.DeadlineExceeded)
		}
	}
	_, err = tree.AppendMessage(ctx, benchMessage(0))
	require.NoError(t, err)
	require.Len(t, chainOf(t, tree), written+1)
}
