package sqlitestore_test

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/sessiontree/sessiontree/eventlog"
	"github.com/sessiontree/sessiontree/sqlitestore"
	"github.com/sessiontree/sessiontree/sqlitestore/sqlitestoretest"
)

func streamed(tree *eventlog.Session, from eventlog.Ref) (entries []eventlog.Entry, err error) {
	for e, err := range tree.BranchSeq(ctx, from) {
		if err != nil {
			return nil, err
		}
		entries = append(entries, e)
	}
	return entries, nil
}

// A streamed branch is the branch, over many pages and segments, behind
// compactions, while others append, and when the views are held back.
func TestAStreamedBranchIsTheBranch(t *testing.T) {
	s := sqlitestoretest.Open(t, sqlitestore.Options{Synchronous: sqlitestore.Normal})
	tree, err := s.Create(ctx, eventlog.CreateOptions{ID: "s", CWD: "/project"})
	require.NoError(t, err)
	empty, err := streamed(tree, eventlog.None())
	require.NoError(t, err)
	require.Empty(t, empty)
	compacted(t, tree, 3000, 1700)
	for i := range 40 { // a comb on top
		e, err := tree.AppendMessage(ctx, benchMessage(i))
		require.NoError(t, err)
		_, err = tree.AppendAt(ctx, e.Parent(), eventlog.MessageDraft(benchMessage(i)))
		require.NoError(t, err)
	}
	for _, who := range []string{"", "all"} {
		s.HoldBranch(who)
		head, err := tree.Head(ctx)
		require.NoError(t, err)
		for _, from := range []eventlog.Ref{head.Leaf, eventlog.At("kept")} {
			want, err := tree.Branch(ctx, from)
			require.NoError(t, err)
			got, err := streamed(tree, from)
			require.NoError(t, err)
			require.Equal(t, want, got)
		}
		_, err = streamed(tree, eventlog.At("no-such-entry"))
		require.ErrorIs(t, err, eventlog.ErrNotFound)
	}
	s.HoldBranch("")
	want, err := tree.Branch(ctx, eventlog.None())
	require.NoError(t, err)
	var got []eventlog.Entry
	for e, err := range tree.BranchSeq(ctx, eventlog.None()) {
		require.NoError(t, err)
		if got = append(got, e); len(got)%100 == 0 {
			_, err := tree.AppendMessage(ctx, benchMessage(0))
			require.NoError(t, err)
		}
	}
	require.Equal(t, want, got)

	err = nil
	n := 0
	for _, e := range tree.BranchSeq(ctx, eventlog.None()) {
		if err = e; n == 0 {
			require.NoError(t, s.Delete(ctx, eventlog.Metadata{ID: "s"}))
		}
		n++
	}
	require.ErrorIs(t, err, eventlog.ErrNotFound, "cut short after %d entries", n)
}

const streamedEntries = 100_000

// stream is what the test binary does to have its memory measured.
func stream(database string) error {
	s, err := sqlitestore.Open(ctx, database, sqlitestore.Options{ReadOnly: true})
	if err != nil {
		return err
	}
	defer s.Close(ctx)
	tree, err := s.Open(ctx, eventlog.Metadata{ID: "s"})
	if err != nil {
		return err
	}
	n := 0
	for _, err := range tree.BranchSeq(ctx, eventlog.None()) {
		if err != nil {
			return err
		}
		n++
	}
	if n != streamedEntries {
		return fmt.Errorf("%d entries", n)
	}
	status, err := os.ReadFile("/proc/self/status")
	for line := range strings.Lines(string(status)) {
		if strings.HasPrefix(line, "VmHWM:") {
			fmt.Print(line)
		}
	}
	return err
}

func TestALongBranchIsStreamedInLittleMemory(t *testing.T) {
	if runtime.GOOS != "linux" || testing.Short() {
		t.Skip("asks /proc")
	}
	path := filepath.Join(t.TempDir(), "sessions.db")
	s, err := sqlitestore.Open(ctx, path, sqlitestore.Options{Synchronous: sqlitestore.Normal})
	require.NoError(t, err)
	tree, err := s.Create(ctx, eventlog.CreateOptions{ID: "s", CWD: "/project"})
	require.NoError(t, err)
	for from := 0; from < streamedEntries; from += 10_000 {
		drafts := make([]eventlog.Draft, 10_000)
		for i := range drafts {
			drafts[i] = eventlog.MessageDraft(benchMessage(from + i))
		}
		_, err := tree.Append(ctx, drafts...)
		require.NoError(t, err)
	}
	require.NoError(t, s.Close(ctx))
	self, err := os.Executable()
	require.NoError(t, err)
	cmd := exec.Command(self)
	cmd.Env = append(os.Environ(), "SESSIONTREE_TEST_STREAM="+path)
	cmd.Stderr = t.Output()
	out, err := cmd.Output()
	require.NoError(t, err)
	var kB int
	_, err = fmt.Sscanf(string(out), "VmHWM: %d kB", &kB)
	require.NoError(t, err, "%s", out)
	t.Logf("%d entries streamed in %d kB", streamedEntries, kB)
	require.Less(t, kB, 60<<10)
}
