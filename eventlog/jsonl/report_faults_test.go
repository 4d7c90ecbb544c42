package jsonl_test

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/sessiontree/sessiontree/eventlog"
	"github.com/sessiontree/sessiontree/eventlog/js"
	"github.com/sessiontree/sessiontree/eventlog/jsonl"
)

var errDisk = errors.New("the disk is on fire")

var errShort = io.ErrShortWrite

// faults is a file system that fails at its nth operation.
type faults struct {
	at     int  // the operation that fails, from 1; 0 is none
	sticky bool // whether all that follow fail too
	effect int  // what a write that fails has done: nothing, half, all of it; 3 is half of it, told as a short write
	done   int
	failed []string // the operations that failed
	ops    []string // all of them
}

func (f *faults) fails(op string) bool {
	f.done++
	f.ops = append(f.ops, op)
	if f.at == 0 || f.done < f.at || f.done > f.at && !f.sticky {
		return false
	}
	f.failed = append(f.failed, op)
	return true
}

func (f *faults) open(name string, flag int, perm fs.FileMode) (jsonl.File, error) {
	if f.fails("open") {
		return nil, errDisk
	}
	file, err := os.OpenFile(name, flag, perm)
	if err != nil {
		return nil, err
	}
	return faultyFile{file, f}, nil
}

type faultyFile struct {
	jsonl.File
	f *faults
}

func (x faultyFile) Write(b []byte) (int, error) {
	if !x.f.fails("write") {
		return x.File.Write(b)
	}
	part := [...]int{0, len(b) / 2, len(b), len(b) / 2}[x.f.effect]
	n, err := x.File.Write(b[:part])
	if err == nil && x.f.effect < 3 {
		err = errDisk
	}
	return n, err
}

func (x faultyFile) ReadAt(b []byte, at int64) (int, error) {
	if x.f.fails("read") {
		return 0, errDisk
	}
	return x.File.ReadAt(b, at)
}

func (x faultyFile) Sync() error {
	if x.f.fails("sync") {
		return errDisk
	}
	return nil // nobody cuts the power here
}

func (x faultyFile) Truncate(size int64) error {
	if x.f.fails("truncate") {
		return errDisk
	}
	return x.File.Truncate(size)
}

func (x faultyFile) Stat() (fs.FileInfo, error) {
	if x.f.fails("stat") {
		return nil, errDisk
	}
	return x.File.Stat()
}

func (x faultyFile) Chmod(mode fs.FileMode) error {
	if x.f.fails("chmod") {
		return errDisk
	}
	return x.File.Chmod(mode)
}

func (x faultyFile) Close() error {
	err := x.File.Close()
	if x.f.fails("close") {
		return errDisk
	}
	return err
}

// state is all that a session answers.
type state struct {
	entries, branch []string
	head            eventlog.Head
	labels          map[string]string
	name            string
	stats           eventlog.Stats
}

func stateOf(t testing.TB, s *jsonl.Storage) state {
	t.Helper()
	head, err := s.Head(t.Context())
	require.NoError(t, err)
	labels, err := s.Labels(t.Context())
	require.NoError(t, err)
	name, err := s.Name(t.Context())
	require.NoError(t, err)
	stats, err := s.Stats(t.Context())
	require.NoError(t, err)
	return state{textsOf(entriesOf(t, s)), branch(t, s), head, labels, name, stats}
}

// TestReport_O2_G2_AFailedWriteChangesNothing makes each operation that an
// append needs of the file system fail, once or from then on for good, until the
// append needs no more than succeed.
func TestReport_O2_G2_AFailedWriteChangesNothing(t *testing.T) {
	t.Parallel()
	one := user("m1", "", "one")
	appends := map[string]func(s *eventlog.Session) error{
		"an entry": func(s *eventlog.Session) error {
			_, err := s.Append(t.Context(), message("two").WithID("m2"))
			return err
		},
		"a batch": func(s *eventlog.Session) error {
			_, err := s.Append(t.Context(), message("two"), eventlog.NameDraft("a name"), eventlog.LabelDraft("m1", eventlog.NameDraft("x").Fields[0].Value))
			return err
		},
		"a move with a summary": func(s *eventlog.Session) error {
			_, err := s.MoveTo(t.Context(), eventlog.At("m1"), &eventlog.Summary{Text: "left behind"})
			return err
		},
		"a raw entry": func(s *eventlog.Session) error {
			e, err := eventlog.ParseEntry(user("raw", "m1", "raw"))
			require.NoError(t, err)
			return s.Storage().AppendRaw(t.Context(), e)
		},
	}
	seen := map[string]bool{}
	for name, text := range map[string]string{
		"a whole file":    lines(header, one),
		"no last newline": strings.TrimSuffix(lines(header, one), "\n"),
		"only a header":   header,
		"a torn line":     lines(header, one) + user("torn", "m1", "torn")[:80],
	} {
		for _, first := range []bool{true, false} { // whether the append is the handle's first
			for what, add := range appends {
				if name == "only a header" && what != "an entry" {
					continue
				}
				for effect := range 4 {
					for _, sticky := range []bool{false, true} {
						for at := 1; ; at++ {
							case_ := fmt.Sprintf("%s, %s, first=%v, effect %d, sticky=%v, operation %d", name, what, first, effect, sticky, at)
							require.Less(t, at, 40, case_)
							path := put(t, text)
							f := &faults{effect: effect, sticky: sticky}
							s := open(t, path, jsonl.Options{OpenFile: f.open})
							if !first {
								say(t, s, "before")
							}
							before, onDisk := stateOf(t, s), read(t, path)
							f.done, f.at = 0, at
							err := add(eventlog.NewSession(s))
							f.at = 0
							if len(f.failed) == 0 {
								require.NoError(t, err, case_)
								closed(t, s)
								break
							}
							seen[f.failed[0]] = true
							if err == nil {
								// Only what comes behind the write, and is not needed, may fail in silence.
								require.Equal(t, []string{"close"}, f.failed, case_)
							} else {
								var typed *eventlog.Error
								require.ErrorAs(t, err, &typed, case_)
								require.Equal(t, eventlog.StorageFailed, typed.Code, "%s: %v", case_, err)
								require.Contains(t, err.Error(), path, case_)
								require.NotContains(t, err.Error(), "\n", case_)
								require.Equal(t, before, stateOf(t, s), case_)
								if !sticky && !strings.Contains(onDisk, "torn") {
									require.Equal(t, onDisk, read(t, path), "%s: the disk is as before", case_)
								}
							}

							// The disk is well again.
							want := textsOf(entriesOf(t, s))
							e := say(t, s, "later")
							want = append(want, e.JSON())
							require.Equal(t, want, textsOf(entriesOf(t, s)), case_)
							closed(t, s)
							strict := open(t, path, piStrict)
							require.Equal(t, want, textsOf(entriesOf(t, strict)), case_)
							closed(t, strict)
							if strings.Contains(text, "torn") {
								require.Contains(t, setAside(t, path), text[len(lines(header, one)):], case_)
							}
						}
					}
				}
			}
		}
	}
	for _, op := range []string{"open", "stat", "write", "sync", "truncate", "read", "chmod", "close"} {
		require.True(t, seen[op], "%s was made to fail", op)
	}
}

// TestReport_O1_OnTheDiskWhenAppendReturned: each append is one write, and a sync
// behind it; so is the first user message of a new session.
func TestReport_O1_OnTheDiskWhenAppendReturned(t *testing.T) {
	for _, noSync := range []bool{false, true} {
		synced := func(ops ...string) []string {
			return slices.DeleteFunc(ops, func(op string) bool { return noSync && op == "sync" })
		}
		f := &faults{}
		repo := jsonl.NewRepo(t.TempDir(), jsonl.Options{OpenFile: f.open, NoSync: noSync})
		s, err := repo.Create(t.Context(), eventlog.CreateOptions{ID: "s", CWD: "/p"})
		require.NoError(t, err)
		require.Equal(t, synced("open", "chmod", "write", "sync", "stat", "close"), f.ops)
		f.ops = nil
		_, err = s.AppendMessage(t.Context(), eventlog.UserMessage("first", time.UnixMilli(1)))
		require.NoError(t, err)
		require.Equal(t, synced("open", "stat", "write", "sync"), f.ops)
		f.ops = nil
		_, err = s.Append(t.Context(), message("a"), message("b"), message("c"))
		require.NoError(t, err)
		require.Equal(t, synced("write", "sync"), f.ops)
		f.ops = nil
		_, err = s.MoveTo(t.Context(), eventlog.None(), &eventlog.Summary{Text: "s"})
		require.NoError(t, err)
		require.Equal(t, synced("write", "sync"), f.ops, "the move and its summary are one write")
		require.NoError(t, s.Close())
	}
}

// TestReport_O2_ARetryAfterAFailureWritesOnce: the caller tries again with the
// id that it gave, as often as it likes.
func TestReport_O2_ARetryAfterAFailureWritesOnce(t *testing.T) {
	for _, effect := range []int{0, 1, 2, 3} {
		for _, sticky := range []bool{false, true} {
			path := put(t, lines(header, user("m1", "", "one")))
			f := &faults{effect: effect, sticky: sticky, at: 3} // open, stat, write
			s := open(t, path, jsonl.Options{OpenFile: f.open})
			d := message("two").WithID("m2")
			failures := 0
			for try := 0; ; try++ {
				require.Less(t, try, 10)
				entries, err := s.Append(t.Context(), eventlog.Batch{Drafts: []eventlog.Draft{d}})
				if err == nil {
					require.Equal(t, "m2", entries[0].ID())
					break
				}
				if failures++; failures == 3 {
					f.at = 0
				}
			}
			require.Positive(t, failures)
			require.Equal(t, []string{"m1", "m2"}, ids(t, s))
			closed(t, s)
			require.Equal(t, []string{"m1", "m2"}, ids(t, open(t, path, piStrict)))
		}
	}
}

// TestReport_O2_AFailedCreateLeavesNothing does the same to the making of a file.
func TestReport_O2_AFailedCreateLeavesNothing(t *testing.T) {
	for _, sticky := range []bool{false, true} {
		for effect := range 4 {
			for at := 1; ; at++ {
				require.Less(t, at, 40)
				dir := t.TempDir()
				f := &faults{effect: effect, sticky: sticky, at: at}
				repo := jsonl.NewRepo(dir, jsonl.Options{OpenFile: f.open})
				s, err := repo.Create(t.Context(), eventlog.CreateOptions{ID: "s", CWD: "/p"})
				f.at = 0
				if len(f.failed) == 0 {
					require.NoError(t, err)
					closed(t, s.Storage())
					break
				}
				require.ErrorIs(t, err, eventlog.ErrStorage)
				require.ErrorIs(t, err, f.cause())
				listed, err := repo.List(t.Context(), "")
				require.NoError(t, err)
				require.Empty(t, listed)
				var left []string
				require.NoError(t, filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
					if !d.IsDir() {
						left = append(left, path)
					}
					return err
				}))
				require.Empty(t, left, "%v", f.failed)
				s, err = repo.Create(t.Context(), eventlog.CreateOptions{ID: "s", CWD: "/p"})
				require.NoError(t, err)
				closed(t, s.Storage())
			}
		}
	}
}

// cause is what an error that the fault made must hold.
func (f *faults) cause() error {
	if f.failed[0] == "write" && f.effect == 3 {
		return errShort
	}
	return errDisk
}

// TestReport_O2_G2_AFailedMoveOfTheCodingAgentChangesNothing does the same to moves
// that are kept beside the file, alone and behind an entry.
func TestReport_O2_G2_AFailedMoveOfTheCodingAgentChangesNothing(t *testing.T) {
	t.Parallel()
	entry, err := eventlog.CodingAgent.ParseEntry(user("m3", "m1", "three"))
	require.NoError(t, err)
	move := eventlog.MoveOf(js.Text("m1"))
	seen := map[string]bool{}
	for what, add := range map[string]func(s *jsonl.Storage) error{
		"a move": func(s *jsonl.Storage) error {
			_, err := eventlog.NewSession(s).MoveTo(t.Context(), eventlog.At("m1"), nil)
			return err
		},
		"an entry and a move": func(s *jsonl.Storage) error { return s.AppendRaw(t.Context(), entry, move) },
	} {
		for _, text := range []string{lines(header, user("m1", "", "one"), user("m2", "m1", "two")), strings.TrimSuffix(lines(header, user("m1", "", "one"), user("m2", "m1", "two")), "\n")} {
			for effect := range 4 {
				for _, sticky := range []bool{false, true} {
					for at := 1; ; at++ {
						case_ := fmt.Sprintf("%s, effect %d, sticky=%v, operation %d", what, effect, sticky, at)
						require.Less(t, at, 40, case_)
						path := put(t, text)
						f := &faults{effect: effect, sticky: sticky}
						o := jsonl.Options{OpenFile: f.open, Dialect: eventlog.CodingAgent}
						s := open(t, path, o)
						before := stateOf(t, s)
						f.at = at
						err := add(s)
						f.at = 0
						if len(f.failed) == 0 {
							require.NoError(t, err, case_)
							require.Equal(t, eventlog.At("m1"), stateOf(t, s).head.Leaf)
							closed(t, s)
							break
						}
						seen[f.failed[0]] = true
						require.Error(t, err, case_)
						require.Equal(t, eventlog.StorageFailed, eventlog.CodeOf(err), "%s: %v", case_, err)
						require.Equal(t, before, stateOf(t, s), case_)

						// The disk is well again.
						e := say(t, s, "later")
						require.Equal(t, eventlog.At("m2"), e.Parent(), case_)
						want := append(before.entries, e.JSON())
						require.Equal(t, want, textsOf(entriesOf(t, s)), case_)
						closed(t, s)
						again := open(t, path, jsonl.Options{Dialect: eventlog.CodingAgent})
						require.Equal(t, want, textsOf(entriesOf(t, again)), case_)
						head, err := again.Head(t.Context())
						require.NoError(t, err)
						require.Equal(t, eventlog.At(e.ID()), head.Leaf, case_)
						closed(t, again)
					}
				}
			}
		}
	}
	for _, op := range []string{"open", "write", "sync", "chmod", "close"} {
		require.True(t, seen[op], "%s was made to fail", op)
	}
}
