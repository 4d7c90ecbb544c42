package jsonl_test

import (
	"bytes"
	"context"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/sessiontree/sessiontree/eventlog"
	"github.com/sessiontree/sessiontree/eventlog/jsonl"
	"github.com/sessiontree/sessiontree/eventlog/osfile/osfiletest"
)

// recorder is a file layer that keeps what was done to the files of a folder.
// Names it takes for durable: a folder's fsync does not come this way.
type recorder struct {
	dir string
	ops []osfiletest.Op
}

func (r *recorder) add(op osfiletest.Op) { r.ops = append(r.ops, op) }

func (r *recorder) open(name string, flag int, perm fs.FileMode) (jsonl.File, error) {
	f, err := os.OpenFile(name, flag, perm)
	if err != nil {
		return nil, err
	}
	path := filepath.Base(name)
	r.add(osfiletest.Op{Kind: osfiletest.Create, Path: path})
	r.add(osfiletest.Op{Kind: osfiletest.SyncDir, Path: "."})
	return recorded{f, r, path}, nil
}

type recorded struct {
	*os.File
	r    *recorder
	path string
}

func (f recorded) Write(b []byte) (int, error) {
	info, err := f.Stat() // all writes are appends
	if err != nil {
		return 0, err
	}
	f.r.add(osfiletest.Op{Kind: osfiletest.Write, Path: f.path, At: info.Size(), Data: bytes.Clone(b)})
	return f.File.Write(b)
}

func (f recorded) Truncate(size int64) error {
	f.r.add(osfiletest.Op{Kind: osfiletest.Truncate, Path: f.path, Size: size})
	return f.File.Truncate(size)
}

func (f recorded) Sync() error {
	f.r.add(osfiletest.Op{Kind: osfiletest.Sync, Path: f.path})
	return nil // the power is cut in the test alone
}

// powerLoss is a session file, what was done to it, and what was told.
type powerLoss struct {
	before []byte
	ops    []osfiletest.Op
	log    []string // the texts of all entries, in the end
	told   []int    // how many of them were told before each operation
	torn   string   // what the file ended with, and must not be lost
}

// recordAppends appends all kinds of batches, short and long, with a handle that
// is closed now and then.
func recordAppends(t *testing.T, torn string, rounds int, r *rand.Rand) *powerLoss {
	t.Helper()
	path := put(t, lines(header, user("first", "", "first"))+torn)
	rec := &recorder{dir: filepath.Dir(path)}
	p := &powerLoss{before: []byte(read(t, path)), torn: torn}
	var s *jsonl.Storage
	n := 1
	for i := range rounds {
		if s == nil {
			s = open(t, path, jsonl.Options{OpenFile: rec.open})
		}
		tree, text := eventlog.NewSession(s), strings.Repeat("long ", r.IntN(3)*r.IntN(2000))
		var entries []eventlog.Entry
		var err error
		switch r.IntN(4) {
		case 0:
			entries, err = tree.MoveTo(t.Context(), eventlog.At("first"), &eventlog.Summary{Text: "back " + text})
		case 1:
			entries, err = tree.Append(t.Context(), message(text), eventlog.NameDraft(fmt.Sprint("name ", i)), message(text))
		default:
			entries, err = tree.Append(t.Context(), message(fmt.Sprint(i, text)))
		}
		require.NoError(t, err)
		n += len(entries)
		rec.add(osfiletest.Op{Kind: osfiletest.Say})
		for len(p.told) < len(rec.ops) {
			p.told = append(p.told, n-len(entries))
		}
		if r.IntN(4) == 0 {
			p.log = textsOf(entriesOf(t, s))
			closed(t, s)
			s = nil
		}
	}
	if s != nil {
		p.log = textsOf(entriesOf(t, s))
		closed(t, s)
	}
	for len(p.told) <= len(rec.ops) {
		p.told = append(p.told, n)
	}
	require.Len(t, p.log, n)
	p.ops = rec.ops
	return p
}

// lost says what is wrong with the file that a loss of power left before
// operation k.
func (p *powerLoss) lost(t *testing.T, k int, files map[string][]byte) error {
	dir := t.TempDir()
	defer os.RemoveAll(dir)
	require.NoError(t, osfiletest.Put(dir, files))
	path := filepath.Join(dir, "session.jsonl")
	return survived(t.Context(), path, p.log, p.told[k], func() string {
		return setAside(t, path) + string(files["session.jsonl"])
	}, p.torn)
}

// survived says whether the file at path has the first told entries of a log, and
// behind them no others than what the log goes on with; whether it takes more, and
// keeps that; and whether what was torn before is still somewhere.
func survived(ctx context.Context, path string, log []string, told int, kept func() string, torn string) error {
	for again := range 2 {
		s, err := jsonl.Open(ctx, path, quick)
		if err != nil {
			return err
		}
		defer s.Close()
		var got []string
		ids := map[string]bool{}
		for e, err := range s.Entries(ctx, 0, eventlog.All) {
			if err != nil {
				return err
			}
			if ids[e.ID()] = true; !e.Parent().IsNone() && !ids[e.Parent().ID()] {
				return fmt.Errorf("%s is there without its parent %s", e.ID(), e.Parent())
			}
			if !strings.HasPrefix(e.ID(), "later-") {
				got = append(got, e.JSON())
			}
		}
		if len(got) < told || !slices.Equal(got[:told], log[:told]) {
			return fmt.Errorf("of %d entries that were told %d are there", told, len(got))
		}
		at := told
		for _, text := range got[told:] { // of what was being written any may be there, but nothing else
			i := slices.Index(log[at:], text)
			if i < 0 {
				return fmt.Errorf("never written: %s", text)
			}
			at += i + 1
		}
		later := message("and on").WithID(fmt.Sprint("later-", again))
		last, err := eventlog.ParseEntry(log[told-1])
		if err != nil {
			return err
		}
		tree := eventlog.NewSession(s)
		if _, err := tree.AppendAt(ctx, eventlog.At(last.ID()), later); err != nil {
			return err
		}
		if _, err := tree.Branch(ctx, eventlog.None()); err != nil {
			return err
		}
		if err := s.Close(); err != nil {
			return err
		}
	}
	if !strings.Contains(kept(), torn) {
		return fmt.Errorf("what was torn before is gone")
	}
	return nil
}

// TestReport_O1_A3_A6_PowerLossTakesNothingThatWasTold cuts the power at every
// operation of a run of appends, with several losses each.
func TestReport_O1_A3_A6_PowerLossTakesNothingThatWasTold(t *testing.T) {
	t.Parallel()
	rounds, draws := 12, 4
	if long {
		rounds, draws = 150, 100
	}
	r := newRand(t)
	for _, torn := range []string{"", user("torn", "first", "torn")[:90], strings.Repeat("torn", 1000)} {
		p := recordAppends(t, torn, rounds, r)
		disk := osfiletest.NewDisk(map[string][]byte{"session.jsonl": p.before})
		images := 0
		for k := 0; ; k++ {
			for range draws {
				images++
				require.NoError(t, p.lost(t, k, disk.Cut(r)), "before operation %d", k)
			}
			if k == len(p.ops) {
				break
			}
			disk.Apply(p.ops[k])
		}
		t.Logf("%d operations, %d losses of power", len(p.ops), images)

		// A test of the test: without one sync a loss is seen.
		for k, op := range p.ops {
			if op.Kind != osfiletest.Sync || op.Path != "session.jsonl" || p.ops[k+1].Kind != osfiletest.Say {
				continue
			}
			ops := slices.Clone(p.ops[:k+2])
			ops[k] = osfiletest.Op{Kind: osfiletest.Say}
			disk := osfiletest.NewDisk(map[string][]byte{"session.jsonl": p.before})
			disk.Apply(ops...)
			seen := false
			for range 40 {
				seen = seen || p.lost(t, k+2, disk.Cut(r)) != nil
			}
			require.True(t, seen, "the sync at operation %d is missing, and nothing was lost", k)
			break
		}
	}
}

// at is the line of a user message of some second.
func at(line string, second int) string {
	return strings.Replace(line, "T00:00:01", fmt.Sprintf("T00:00:%02d", second), 1)
}

// TestReport_O1_A4_C3_AnAppendWhoseBeginningWasLost has the last lines of an append
// on the disk and not its first: nobody was told of them, so the session goes on
// above, and they are set aside. What came at other times was told: it is an island.
func TestReport_O1_A4_C3_AnAppendWhoseBeginningWasLost(t *testing.T) {
	t.Parallel()
	one, two, three := at(user("m1", "", "one"), 1), at(user("m2", "m1", "two"), 9), at(user("m3", "m2", "three"), 9)
	four := at(user("m4", "m3", "four"), 9)
	nuls := strings.Repeat("\x00", 200)
	for name, test := range map[string]struct {
		text  string
		want  []string
		aside string // what the next append sets aside
	}{
		"its first line":          {lines(header, one) + nuls + lines(two[100:], three), []string{one}, nuls + lines(two[100:], three)},
		"whole lines":             {lines(header, one) + nuls + lines(three, four), []string{one}, nuls + lines(three, four)},
		"the middle":              {lines(header, one, two) + three[:90] + nuls + lines(four), []string{one, two}, three[:90] + nuls + lines(four)},
		"the end too":             {lines(header, one) + nuls + lines(three) + four[:99], []string{one}, nuls + lines(three) + four[:99]},
		"several pages":           {lines(header, one) + nuls + "\n" + lines(at(user("x", "lost", "x"), 9)) + nuls + lines(four), []string{one}, nuls + "\n" + lines(at(user("x", "lost", "x"), 9)) + nuls + lines(four)},
		"its end":                 {lines(header, one, two) + three[:90] + nuls, []string{one, two}, three[:90] + nuls},
		"nothing that is missed":  {lines(header, one) + nuls + lines(two, three), []string{one, two, three}, ""},
		"an append to an old one": {lines(header, one) + nuls + "\n" + lines(at(user("m5", "m1", "five"), 9)), []string{one, at(user("m5", "m1", "five"), 9)}, ""},
		"what went on later":      {lines(header, one) + nuls + lines(three, at(four, 9), at(user("m5", "m4", "five"), 30)), []string{one, three, four, at(user("m5", "m4", "five"), 30)}, ""},
		"older than what is here": {lines(header, at(one, 40)) + nuls + lines(three), []string{at(one, 40), three}, ""},
		"lost in another way":     {lines(header, one, two[:99], three), []string{one, three}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			path := put(t, test.text)
			s := open(t, path, quick)
			damage := s.Damage()
			require.NotEmpty(t, damage)
			if last := damage[len(damage)-1]; test.aside != "" {
				require.Equal(t, int64(len(test.text)-len(test.aside)), last.Offset)
				require.Equal(t, int64(len(test.aside)), last.Length)
			}
			closed(t, s)
			require.Equal(t, test.text, read(t, path), "reading changes nothing")
			appendsAndKeeps(t, path, test.want)
			require.Equal(t, test.aside, setAside(t, path))
			if test.aside != "" {
				require.True(t, strings.HasPrefix(read(t, path), lines(append([]string{header}, test.want...)...)+`{"type":"message","id":"new","parentId":"`))
				require.Empty(t, open(t, path, piStrict).Damage(), "Pi can read it now")
			}
			_, err := jsonl.Open(t.Context(), put(t, test.text), piStrict)
			require.ErrorIs(t, err, eventlog.ErrInvalidEntry)
		})
	}
}
