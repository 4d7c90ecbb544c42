//go:build unix

package jsonl_test

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/signal"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/sessiontree/sessiontree/eventlog"
	"github.com/sessiontree/sessiontree/eventlog/jsonl"
)

// appendUntilKilled appends without end and says each id once its Append has
// returned.
func appendUntilKilled(say func(string)) {
	s, err := jsonl.Open(ctx(), os.Getenv("FILE"), jsonl.Options{NoSync: os.Getenv("NOSYNC") != ""})
	check(err)
	size, err := strconv.Atoi(os.Getenv("SIZE"))
	check(err)
	for i := 0; ; i++ {
		id := fmt.Sprintf("%s-%d", os.Getenv("ROUND"), i)
		_, err := s.Append(ctx(), eventlog.Batch{Drafts: []eventlog.Draft{message(id + strings.Repeat(" é\u2028\"", size/6)).WithID(id)}})
		check(err)
		say(id)
	}
}

// TestReport_A6_O1_KillInTheMiddleOfAppends kills a process with kill -9 again
// and again. Each entry whose Append had returned is there, no entry is half
// there, and the file takes more at once.
func TestReport_A6_O1_KillInTheMiddleOfAppends(t *testing.T) {
	t.Parallel()
	rounds := 30
	if long {
		rounds = 300
	}
	r := newRand(t)
	path := put(t, lines(header))
	var acknowledged []string
	torn := 0
	for round := range rounds {
		size := []int{100, 5000, 1_000_000}[round%3]
		env := []string{"FILE=" + path, fmt.Sprintf("ROUND=%d", round), fmt.Sprintf("SIZE=%d", size)}
		if round%2 == 0 || size > 5000 {
			env = append(env, "NOSYNC=1")
		}
		c := startChild(t, "append until killed", env...)
		said := []string{c.line(t)}
		if round%3 == 2 {
			whileItGrows(t, path)
		} else {
			time.Sleep(time.Duration(r.IntN(5000)) * time.Microsecond)
		}
		said = append(said, c.killed(t)...)
		for i, id := range said { // a line may be cut by the kill
			require.Equal(t, fmt.Sprintf("%d-%d", round, i), id)
		}
		acknowledged = append(acknowledged, said...)

		o := jsonl.Options{}
		s := open(t, path, o)
		got := entriesOf(t, s)
		torn += len(s.Damage())
		require.LessOrEqual(t, len(s.Damage()), 1, "at most the last line is torn")
		if len(got) == len(acknowledged)+1 {
			// Written, but the process died before it could say so.
			acknowledged = append(acknowledged, fmt.Sprintf("%d-%d", round, len(said)))
		}
		require.Equal(t, acknowledged, idsOf(got), "round %d", round)
		parent := eventlog.None()
		for _, e := range got {
			require.Equal(t, parent, e.Parent())
			parent = eventlog.At(e.ID())
		}
		marker := fmt.Sprintf("marker-%d", round)
		say(t, s, marker)
		acknowledged = append(acknowledged, marker)
		closed(t, s)
		if round%3 == 2 {
			strict := open(t, path, piStrict)
			require.Equal(t, acknowledged, ids(t, strict), "Pi can read the file")
			closed(t, strict)
			// Start over, so that the rounds stay quick.
			rewrite(t, path, lines(header))
			acknowledged = nil
		}
	}
	t.Logf("%d of %d kills left a torn line", torn, rounds)
}

// whileItGrows returns when a write to the file is under way.
func whileItGrows(t testing.TB, path string) {
	size := int64(-1)
	for range 100_000 {
		info, err := os.Stat(path)
		require.NoError(t, err)
		if size >= 0 && info.Size() > size {
			return
		}
		size = info.Size()
		time.Sleep(20 * time.Microsecond)
	}
}

// appendInTurns appends COUNT entries in runs, opening the session for each run,
// and waits while another process has it.
func appendInTurns(say func(string)) {
	count, err := strconv.Atoi(os.Getenv("COUNT"))
	check(err)
	name := os.Getenv("NAME")
	busy := 0
	for i := 0; i < count; {
		s, err := jsonl.Open(ctx(), os.Getenv("FILE"), quick)
		check(err)
		for run := 0; run < 20 && i < count; run++ {
			id := fmt.Sprintf("%s-%d", name, i)
			_, err := s.Append(ctx(), eventlog.Batch{Drafts: []eventlog.Draft{message(id).WithID(id)}})
			if errors.Is(err, eventlog.ErrBusy) {
				busy++
				time.Sleep(time.Millisecond)
				break
			}
			check(err)
			i++
		}
		check(s.Close())
	}
	say(strconv.Itoa(busy))
}

// TestReport_F1_TwoProcessesLoseNothing has two processes and this one append to
// one session at the same time. Each is told when it has to wait; what was
// appended makes one chain, in the order of the file.
func TestReport_F1_TwoProcessesLoseNothing(t *testing.T) {
	t.Parallel()
	path := put(t, lines(header))
	count := 300
	if long {
		count = 1000
	}
	var procs []*child
	for _, name := range []string{"a", "b"} {
		procs = append(procs, startChild(t, "append in turns", "FILE="+path, "NAME="+name, fmt.Sprintf("COUNT=%d", count)))
	}
	for _, c := range procs {
		out := c.ends(t)
		require.Len(t, out, 1)
		t.Logf("told to wait %s times", out[0])
	}
	s := open(t, path, piStrict)
	entries := entriesOf(t, s)
	require.Len(t, entries, 2*count)
	next := map[string]int{}
	parent := eventlog.None()
	for _, e := range entries {
		name, n, _ := strings.Cut(e.ID(), "-")
		require.Equal(t, strconv.Itoa(next[name]), n, "each process' entries stand in its order")
		next[name]++
		require.Equal(t, parent, e.Parent(), "each goes below the leaf that the one before left")
		parent = eventlog.At(e.ID())
	}
	require.Equal(t, map[string]int{"a": count, "b": count}, next)
	require.Len(t, branch(t, s), 2*count)
}

// holdUntilTold appends one entry and keeps the session open until its input
// ends.
func holdUntilTold(say func(string)) {
	s, err := jsonl.Open(ctx(), os.Getenv("FILE"), quick)
	check(err)
	_, err = s.Append(ctx(), eventlog.Batch{Drafts: []eventlog.Draft{message("held").WithID("held")}})
	check(err)
	say("holding")
	var b [1]byte
	os.Stdin.Read(b[:])
	check(s.Close())
}

// TestReport_F1_F3_AConflictIsToldAndPasses
func TestReport_F1_F3_AConflictIsToldAndPasses(t *testing.T) {
	t.Parallel()
	path := put(t, lines(header, user("m1", "", "one")))
	ours := open(t, path, quick)
	for _, end := range []string{"its end", "kill -9"} {
		before := ids(t, ours)
		c := startChild(t, "hold", "FILE="+path)
		require.Equal(t, "holding", c.line(t))
		for range 3 {
			_, err := ours.Append(t.Context(), eventlog.Batch{Drafts: []eventlog.Draft{message("x").WithID("x")}})
			require.ErrorIs(t, err, eventlog.ErrBusy)
			require.Equal(t, eventlog.Busy, eventlog.CodeOf(err))
			require.ErrorContains(t, err, path)
			_, err = eventlog.NewSession(ours).MoveTo(t.Context(), eventlog.At("m1"), nil)
			require.ErrorIs(t, err, eventlog.ErrBusy)
			require.Equal(t, before, ids(t, ours), "memory is not ahead of the disk")
			require.Equal(t, append(slices.Clone(before), "held"), ids(t, open(t, path, quick)), "readers go on")
		}
		if end == "kill -9" {
			c.killed(t)
		} else {
			require.NoError(t, c.in.Close())
			c.ends(t)
		}
		after := "after " + end
		e := say(t, ours, after)
		require.Equal(t, eventlog.At("held"), e.Parent(), "the leaf that the other process left")
		require.Equal(t, append(slices.Clone(before), "held", after), ids(t, ours))
		closed(t, ours)
		ours = open(t, path, piStrict)
		require.Equal(t, append(slices.Clone(before), "held", after), ids(t, ours))
		// The next round's "held" is a retry to the other process unless it is gone.
		closed(t, ours)
		rewrite(t, path, lines(header, user("m1", "", "one")))
		ours = open(t, path, quick)
	}
}

// TestReport_F1_AClosedSessionIsFree, even while a process that was just forked
// still shares the open file: a host that starts programs does that all the time.
func TestReport_F1_AClosedSessionIsFree(t *testing.T) {
	path := put(t, lines(header))
	shared := -1
	s := open(t, path, jsonl.Options{NoSync: true, OpenFile: func(name string, flag int, perm fs.FileMode) (jsonl.File, error) {
		f, err := os.OpenFile(name, flag, perm)
		if err == nil {
			shared, err = unix.Dup(int(f.Fd()))
		}
		return f, err
	}})
	say(t, s, "one")
	defer unix.Close(shared)
	other := open(t, path, quick)
	_, err := other.Append(t.Context(), eventlog.Batch{Drafts: []eventlog.Draft{message("two")}})
	require.ErrorIs(t, err, eventlog.ErrBusy)
	closed(t, s)
	require.Equal(t, eventlog.At("one"), say(t, other, "two").Parent())
}

// appendAndClose appends IDS, each on its own, and closes.
func appendAndClose(say func(string)) {
	s, err := jsonl.Open(ctx(), os.Getenv("FILE"), jsonl.Options{})
	check(err)
	for _, id := range strings.Fields(os.Getenv("IDS")) {
		entries, err := s.Append(ctx(), eventlog.Batch{Drafts: []eventlog.Draft{message(id).WithID(id)}})
		check(err)
		say(entries[0].Parent().String())
	}
	check(s.Close())
}

// TestReport_F2_AStaleHandleErasesNothing: A opens, B appends and closes, A goes
// on; also with a compaction, which rewrites nothing.
func TestReport_F2_AStaleHandleErasesNothing(t *testing.T) {
	for _, text := range map[string]string{
		"a whole file":            lines(header, user("m1", "", "one")),
		"no last newline":         strings.TrimSuffix(lines(header, user("m1", "", "one")), "\n"),
		"a torn line":             lines(header, user("m1", "", "one")) + `{"type":"message","id":"torn","parentId":"m1","timestamp":"2026-01-01T00:00:0`,
		"a torn line, very short": lines(header, user("m1", "", "one")) + "{",
		"a torn line, very long":  lines(header, user("m1", "", "one")) + user("torn", "m1", strings.Repeat("x", 5000))[:4000],
	} {
		path := put(t, text)
		stale := open(t, path, quick)
		require.Equal(t, []string{"m1"}, ids(t, stale))
		out := startChild(t, "append and close", "FILE="+path, "IDS=b1 b2 b3").ends(t)
		require.Equal(t, []string{"m1", "b1", "b2"}, out)
		session := eventlog.NewSession(stale)
		c, err := session.AppendCompaction(t.Context(), eventlog.Compaction{Summary: "s"})
		require.NoError(t, err)
		require.Equal(t, eventlog.At("b3"), c.Parent())
		require.Equal(t, []string{"m1", "b1", "b2", "b3", c.ID()}, ids(t, stale))
		require.Empty(t, stale.Damage(), "the torn line is cut, by the other")
		closed(t, stale)
		require.Equal(t, []string{"m1", "b1", "b2", "b3", c.ID()}, ids(t, open(t, path, piStrict)))
		require.Equal(t, strings.Count(text, "torn"), strings.Count(setAside(t, path), "torn"))
	}
}

// TestReport_F2_AsManyBytesInThePlaceOfATornLine is the worst case: what the
// other process wrote in the place of the torn line is exactly as long.
func TestReport_F2_AsManyBytesInThePlaceOfATornLine(t *testing.T) {
	whole := lines(header, user("m1", "", "one"))
	next := user("m2", "m1", "two")
	text := whole + user("torn", "m1", strings.Repeat("x", 500))[:len(next)+1]
	path := put(t, text)
	stale := open(t, path, quick)
	other := open(t, path, quick)
	e, err := eventlog.ParseEntry(next)
	require.NoError(t, err)
	require.NoError(t, other.AppendRaw(t.Context(), e))
	closed(t, other)
	require.Len(t, read(t, path), len(text))
	require.Equal(t, eventlog.At("m2"), say(t, stale, "m3").Parent())
	require.Equal(t, []string{"m1", "m2", "m3"}, ids(t, stale))
	closed(t, stale)
	require.Equal(t, []string{"m1", "m2", "m3"}, ids(t, open(t, path, piStrict)))
}

// TestReport_F2_AnotherCutATornLineAndDied before it wrote anything in its place.
func TestReport_F2_AnotherCutATornLineAndDied(t *testing.T) {
	for _, whole := range []string{header, lines(header), lines(header, user("m1", "", "one"))} {
		path := put(t, whole+`{"type":"mess`)
		stale := open(t, path, quick)
		rewrite(t, path, whole)
		say(t, stale, "on")
		closed(t, stale)
		require.Contains(t, ids(t, open(t, path, piStrict)), "on")
		require.True(t, strings.HasPrefix(read(t, path), strings.TrimSuffix(whole, "\n")+"\n{"), "the newline comes first")
	}
}

// TestReport_F2_AFileThatOthersReplacedIsNotWrittenTo: no append goes into a
// file that is not the one that was read.
func TestReport_F2_AFileThatOthersReplacedIsNotWrittenTo(t *testing.T) {
	text := lines(header, user("m1", "", "one"), user("m2", "m1", "two"))
	other := lines(strings.Replace(header, "s1", "s2", 1), user("n1", "", strings.Repeat("another ", 100)), user("n2", "n1", "two"))
	for name, test := range map[string]struct {
		change func(path string)
		want   string // what stands there then
	}{
		"deleted": {func(path string) { require.NoError(t, os.Remove(path)) }, ""},
		"deleted and made anew": {func(path string) {
			require.NoError(t, os.Remove(path))
			rewrite(t, path, other)
		}, other},
		"renamed over": {func(path string) {
			rewrite(t, path+".new", other)
			require.NoError(t, os.Rename(path+".new", path))
		}, other},
		"renamed over, like it at the end of what was read": {func(path string) {
			rewrite(t, path+".new", strings.Replace(read(t, path), "one", "eno", 1)+user("n3", "m2", "three")+"\n")
			require.NoError(t, os.Rename(path+".new", path))
		}, "?"},
		"rewritten, longer":  {func(path string) { rewrite(t, path, other) }, other},
		"rewritten, shorter": {func(path string) { rewrite(t, path, lines(header)) }, lines(header)},
		"emptied":            {func(path string) { rewrite(t, path, "") }, ""},
	} {
		for _, appended := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s, appended=%v", name, appended), func(t *testing.T) {
				path := put(t, text)
				s := open(t, path, quick)
				if appended {
					say(t, s, "before")
				}
				want := ids(t, s)
				test.change(path)
				stands := test.want
				if stands == "?" {
					stands = read(t, path)
				}
				for range 2 {
					_, err := s.Append(t.Context(), eventlog.Batch{Drafts: []eventlog.Draft{message("x")}})
					require.ErrorIs(t, err, eventlog.ErrStorage)
					require.ErrorContains(t, err, path)
				}
				require.Equal(t, want, ids(t, s), "the session is as before")
				if stands != "" {
					// Nor does the old handle keep others from it.
					fresh := open(t, path, quick)
					say(t, fresh, "fresh")
					closed(t, fresh)
					require.Equal(t, stands, strings.TrimSuffix(read(t, path), strings.SplitAfter(read(t, path), "\n")[strings.Count(stands, "\n")]))
					rewrite(t, path, stands)
				}
				b, err := os.ReadFile(path)
				if name == "deleted" {
					require.ErrorIs(t, err, fs.ErrNotExist, "and the file is not made again")
				} else {
					require.NoError(t, err)
					require.Equal(t, stands, string(b))
				}
			})
		}
	}
}

// TestReport_D1_TheLeafIsWhereTheOtherProcessLeftIt: A is idle, B appends five,
// then A appends its exit note.
func TestReport_D1_TheLeafIsWhereTheOtherProcessLeftIt(t *testing.T) {
	path := put(t, lines(header, user("m1", "", "one")))
	a := open(t, path, quick)
	seen, err := a.Head(t.Context())
	require.NoError(t, err)
	startChild(t, "append and close", "FILE="+path, "IDS=b1 b2 b3 b4 b5").ends(t)

	session := eventlog.NewSession(a)
	_, err = session.AppendIf(t.Context(), seen, message("note"))
	require.ErrorIs(t, err, eventlog.ErrConflict, "A can ask to be told")
	var conflict *eventlog.ConflictError
	require.ErrorAs(t, err, &conflict)
	require.Equal(t, eventlog.Head{Leaf: eventlog.At("b5"), N: 6}, conflict.Actual)
	require.Equal(t, seen, conflict.Want)

	note := say(t, a, "note")
	require.Equal(t, eventlog.At("b5"), note.Parent())
	closed(t, a)
	require.Equal(t, []string{"m1", "b1", "b2", "b3", "b4", "b5", "note"}, branch(t, open(t, path, piStrict)), "the other's work is on the branch")
}

// makeUnderUmask makes all files that a repository makes.
func makeUnderUmask(say func(string)) {
	mask, err := strconv.ParseUint(os.Getenv("UMASK"), 8, 32)
	check(err)
	syscall.Umask(int(mask))
	root := os.Getenv("ROOT")
	loose := func(path string) {
		info, err := os.Lstat(path)
		check(err)
		if info.Mode().Perm()&0o077 != 0 {
			say(fmt.Sprintf("%v %s", info.Mode(), path))
		}
	}
	o := jsonl.Options{OpenFile: func(name string, flag int, perm fs.FileMode) (jsonl.File, error) {
		f, err := os.OpenFile(name, flag, perm)
		if err == nil {
			loose(name) // also before the first byte is in it
		}
		return f, err
	}}
	repo := jsonl.NewRepo(filepath.Join(root, "home", "sessions"), o)
	s, err := repo.Create(ctx(), eventlog.CreateOptions{ID: "s", CWD: "/project"})
	check(err)
	m, err := s.Metadata(ctx())
	check(err)
	_, err = s.Append(ctx(), message("secret"))
	check(err)
	check(s.Close())
	f, err := os.OpenFile(m.Path, os.O_WRONLY|os.O_APPEND, 0)
	check(err)
	_, err = f.WriteString(`{"type":"mess`)
	check(err)
	check(f.Close())
	s, err = repo.Open(ctx(), m)
	check(err)
	_, err = s.Append(ctx(), message("secret"))
	check(err)
	check(s.Close())
	fork, err := repo.Fork(ctx(), m, eventlog.ForkOptions{CreateOptions: eventlog.CreateOptions{CWD: "/other"}})
	check(err)
	check(fork.Close())
	check(filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		loose(path)
		return err
	}))
}

// TestReport_N1_OnlyTheOwnerReadsWhateverTheUmask
func TestReport_N1_OnlyTheOwnerReadsWhateverTheUmask(t *testing.T) {
	t.Parallel()
	for _, mask := range []string{"000", "022", "077", "002", "177"} {
		root := t.TempDir()
		require.NoError(t, os.Chmod(root, 0o700))
		require.Empty(t, startChild(t, "under a umask", "UMASK="+mask, "ROOT="+root).ends(t), "umask %s", mask)
		files, folders := 0, 0
		require.NoError(t, filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
			require.NoError(t, err)
			info, err := d.Info()
			require.NoError(t, err)
			if d.IsDir() {
				folders++
				require.Equal(t, fs.FileMode(0o700), info.Mode().Perm(), "%s, umask %s", path, mask)
			} else {
				files++
				require.Equal(t, fs.FileMode(0o600), info.Mode().Perm(), "%s, umask %s", path, mask)
			}
			return nil
		}))
		require.Equal(t, []int{3, 5}, []int{files, folders}, "two sessions and what was set aside; root, home, sessions, two projects")
	}
}

// appendOnAFullDisk has a limit on the size of files: like a full disk, a write
// first comes out short and then fails.
func appendOnAFullDisk(say func(string)) {
	signal.Ignore(syscall.SIGXFSZ)
	s, err := jsonl.Open(ctx(), os.Getenv("FILE"), jsonl.Options{})
	check(err)
	limit := func(size uint64) {
		var was unix.Rlimit
		check(unix.Getrlimit(unix.RLIMIT_FSIZE, &was))
		check(unix.Setrlimit(unix.RLIMIT_FSIZE, &unix.Rlimit{Cur: size, Max: was.Max}))
	}
	info, err := os.Stat(os.Getenv("FILE"))
	check(err)
	limit(uint64(info.Size()) + 1000)
	for i := 0; ; i++ {
		_, err := s.Append(ctx(), eventlog.Batch{Drafts: []eventlog.Draft{message("a").WithID(fmt.Sprint("a", i)), message("b").WithID(fmt.Sprint("b", i))}})
		if err != nil {
			say(fmt.Sprintf("%s: %v", eventlog.CodeOf(err), errors.Is(err, syscall.EFBIG)))
			break
		}
		say(fmt.Sprint("a", i))
		say(fmt.Sprint("b", i))
	}
	head, err := s.Head(ctx())
	check(err)
	say(head.Leaf.String())
	limit(1 << 40)
	_, err = s.Append(ctx(), eventlog.Batch{Drafts: []eventlog.Draft{message("later").WithID("later")}})
	check(err)
	check(s.Close())
}

// TestReport_G2_OnAFullDisk
func TestReport_G2_OnAFullDisk(t *testing.T) {
	for length := range 4 { // so that the limit cuts at several places
		path := put(t, lines(header, user("m1", "", strings.Repeat("x", 33*length))))
		out := startChild(t, "on a full disk", "FILE="+path).ends(t)
		n := len(out) - 2
		require.Positive(t, n)
		require.Zero(t, n%2)
		require.Equal(t, "storage: true", out[n], "the error has its code and its cause")
		require.Equal(t, out[n-1], out[n+1], "memory is not ahead of the disk")
		want := append(append([]string{"m1"}, out[:n]...), "later")
		s := open(t, path, piStrict)
		require.Equal(t, want, ids(t, s), "what was acknowledged, and no half of a batch")
		require.Equal(t, want, branch(t, s))
	}
}

// TestReport_F1_ManyGoroutinesOfOneHandle is F1 within a process: one handle, and damage
// that is read meanwhile.
func TestReport_F1_ManyGoroutinesOfOneHandle(t *testing.T) {
	path := put(t, lines(header)+`{"type":"mess`)
	s := open(t, path, quick)
	var all sync.WaitGroup
	for g := range 8 {
		all.Go(func() {
			for i := range 25 {
				id := fmt.Sprintf("%d-%d", g, i)
				_, err := s.Append(t.Context(), eventlog.Batch{Drafts: []eventlog.Draft{message(id).WithID(id)}})
				if err != nil {
					t.Error(err)
				}
				s.Damage()
				if _, err := s.Branch(t.Context(), eventlog.At(id)); err != nil {
					t.Error(err)
				}
			}
		})
	}
	all.Wait()
	b := branch(t, s)
	require.Len(t, b, 200)
	closed(t, s)
	require.Equal(t, b, branch(t, open(t, path, piStrict)))
}

// TestReport_A10_ThingsThatAreNoFiles must neither hang nor be written to.
func TestReport_A10_ThingsThatAreNoFiles(t *testing.T) {
	dir := t.TempDir()
	folder := filepath.Join(dir, "p", "folder.jsonl")
	require.NoError(t, os.MkdirAll(folder, 0o700))
	fifo := filepath.Join(dir, "p", "fifo.jsonl")
	require.NoError(t, syscall.Mkfifo(fifo, 0o600))
	device := filepath.Join(dir, "p", "zero.jsonl")
	require.NoError(t, os.Symlink("/dev/zero", device))
	dangling := filepath.Join(dir, "p", "dangling.jsonl")
	require.NoError(t, os.Symlink(filepath.Join(dir, "nowhere"), dangling))
	whole := filepath.Join(dir, "whole")
	rewrite(t, whole, lines(header, user("m1", "", "one")))
	link := filepath.Join(dir, "p", "link.jsonl")
	require.NoError(t, os.Symlink(whole, link))

	inTime(t, func() {
		for path, want := range map[string]error{folder: eventlog.ErrStorage, fifo: eventlog.ErrStorage, device: eventlog.ErrStorage, dangling: eventlog.ErrNotFound} {
			_, err := jsonl.Open(t.Context(), path, quick)
			require.ErrorIs(t, err, want, path)
			_, err = jsonl.ReadHeader(path, quick)
			require.ErrorIs(t, err, want, path)
		}
		repo := jsonl.NewRepo(dir, quick)
		listed, err := repo.List(t.Context(), "")
		require.NoError(t, err)
		var sane []string
		for _, l := range listed {
			if l.Err == nil {
				sane = append(sane, l.Path)
			}
		}
		require.Equal(t, []string{link}, sane, "a link to a session is one")
		s, err := repo.Open(t.Context(), eventlog.Metadata{ID: "s1"})
		require.NoError(t, err)
		defer s.Close()
		_, err = s.Append(t.Context(), message("two"))
		require.NoError(t, err)
	})
}

// inTime fails the test when f hangs.
func inTime(t testing.TB, f func()) {
	t.Helper()
	done := make(chan struct{})
	go func() {
		defer close(done)
		f()
	}()
	select {
	case <-done:
	case <-time.After(10 * time.Second):
		t.Fatal("it hangs")
	}
}

// TestReport_F11_ACancelledAppendIsWrittenOrNot, and says which.
func TestReport_F11_ACancelledAppendIsWrittenOrNot(t *testing.T) {
	r := newRand(t)
	path := put(t, lines(header))
	s := open(t, path, quick)
	want := []string{}
	cancelled := 0
	for i := range 2000 {
		ctx, cancel := context.WithCancel(t.Context())
		if r.IntN(10) == 0 {
			cancel()
		} else {
			time.AfterFunc(time.Duration(r.IntN(60))*time.Microsecond, cancel)
		}
		a, b := fmt.Sprint("a", i), fmt.Sprint("b", i)
		_, err := s.Append(ctx, eventlog.Batch{Drafts: []eventlog.Draft{message(a).WithID(a), message(b).WithID(b)}})
		if cancel(); err == nil {
			want = append(want, a, b)
			continue
		}
		cancelled++
		require.ErrorIs(t, err, context.Canceled)
	}
	require.Positive(t, cancelled)
	require.Equal(t, want, ids(t, s))
	say(t, s, "last")
	closed(t, s)
	require.Equal(t, append(want, "last"), ids(t, open(t, path, piStrict)))
}
