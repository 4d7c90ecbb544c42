//go:build unix

package jsonl_test

import (
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/sessiontree/sessiontree/eventlog"
	"github.com/sessiontree/sessiontree/eventlog/jsonl"
	"github.com/sessiontree/sessiontree/eventlog/osfile/osfiletest"
)

// makeAndAppend makes a session, appends to it, forks it, and appends to a file
// whose last line is torn. It says the path of each file that it made, and each id.
func makeAndAppend(say func(string)) {
	repo := jsonl.NewRepo(os.Getenv("ROOT"), jsonl.Options{})
	s, err := repo.Create(ctx(), eventlog.CreateOptions{ID: "s", CWD: "/p"})
	check(err)
	m, err := s.Metadata(ctx())
	check(err)
	say(m.Path)
	for _, id := range []string{"m1", "m2", "m3"} {
		_, err := s.Append(ctx(), message(id).WithID(id))
		check(err)
		say(id)
	}
	check(s.Close())
	fork, err := repo.Fork(ctx(), m, eventlog.ForkOptions{CreateOptions: eventlog.CreateOptions{ID: "fork"}})
	check(err)
	m, err = fork.Metadata(ctx())
	check(err)
	say(m.Path)
	check(fork.Close())

	torn, err := jsonl.Open(ctx(), os.Getenv("FILE"), jsonl.Options{})
	check(err)
	_, err = torn.Append(ctx(), eventlog.Batch{Drafts: []eventlog.Draft{message("behind").WithID("behind")}})
	check(err)
	say("behind")
	check(torn.Close())
}

func init() { children["make and append"] = makeAndAppend }

// TestReport_O1_A3_PowerLossTakesNoFile cuts the power while files are made and
// torn bytes set aside: with the names, which fsync of a file alone does not keep.
func TestReport_O1_A3_PowerLossTakesNoFile(t *testing.T) {
	if err := osfiletest.CanTrace(); err != nil {
		t.Skip("writes and syncs of a process cannot be recorded here: ", err)
	}
	const torn = `{"type":"message","id":"torn"`
	root := t.TempDir()
	beside := filepath.Join(root, "torn.jsonl")
	rewrite(t, beside, lines(header, user("m1", "", "one"))+torn)
	before, err := osfiletest.Files(root)
	require.NoError(t, err)
	cmd := exec.Command(os.Args[0], "-test.run=^TestChild$")
	cmd.Env = append(os.Environ(), childEnv+"=make and append", "ROOT="+root, "FILE="+beside)
	cmd.Stderr = t.Output()
	ops, err := osfiletest.Trace(root, cmd)
	require.NoError(t, err)
	left, err := osfiletest.Files(root)
	require.NoError(t, err)

	r, draws := newRand(t), 5
	if long {
		draws = 200
	}
	disk := osfiletest.NewDisk(before)
	told := map[string]int{"torn.jsonl": 1} // entries of each file
	current := ""
	for k := 0; ; k++ {
		for range draws {
			require.NoError(t, filesSurvive(t, disk.Cut(r), left, told, torn), "before operation %d of %v", k, ops)
		}
		if k == len(ops) {
			break
		}
		op := ops[k]
		disk.Apply(op)
		if op.Kind != osfiletest.Say {
			continue
		}
		for said := range strings.Lines(string(op.Data)) {
			switch said = strings.TrimSuffix(said, "\n"); {
			case filepath.IsAbs(said):
				current, err = filepath.Rel(root, said)
				require.NoError(t, err)
				if told[current] = 0; strings.Contains(said, "fork") {
					told[current] = 3
				}
			case said == "behind":
				told["torn.jsonl"]++
			default:
				told[current]++
			}
		}
	}
	require.Equal(t, slices.Sorted(maps.Keys(left)), slices.Sorted(maps.Keys(disk.Whole())), "all was recorded")
	for name, text := range left {
		require.Equal(t, string(text), string(disk.Whole()[name]))
	}
	require.Len(t, told, 3)
}

// filesSurvive says which of the files that were told is not what it has to be.
func filesSurvive(t *testing.T, files, left map[string][]byte, told map[string]int, torn string) error {
	dir := t.TempDir()
	defer os.RemoveAll(dir)
	require.NoError(t, osfiletest.Put(dir, files))
	for name, n := range told {
		log := []string{}
		for line := range strings.Lines(string(left[name])) {
			log = append(log, strings.TrimSuffix(line, "\n"))
		}
		if log = log[1:]; n == 0 {
			if _, err := jsonl.Open(t.Context(), filepath.Join(dir, name), quick); err != nil {
				return err
			}
			continue
		}
		path := filepath.Join(dir, name)
		kept := func() string { return setAside(t, path) + string(files[name]) }
		if name != "torn.jsonl" {
			kept = func() string { return torn }
		}
		if err := survived(t.Context(), path, log, n, kept, torn); err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
	}
	return nil
}

// moveAndAppend moves the leaf of a session of the coding agent, which is kept
// beside its file, and says each place that it was moved to.
func moveAndAppend(say func(string)) {
	s, err := jsonl.Open(ctx(), os.Getenv("FILE"), jsonl.Options{Dialect: eventlog.CodingAgent})
	check(err)
	tree := eventlog.NewSession(s)
	for i, to := range []string{"m1", "m2", "m3", "m1", "m2"} {
		_, err := tree.MoveTo(ctx(), eventlog.At(to), nil)
		check(err)
		say(to)
		if i%2 == 1 {
			id := fmt.Sprint("n", i)
			_, err := tree.Append(ctx(), message(id).WithID(id))
			check(err)
			say(id)
		}
	}
	check(s.Close())
}

func init() { children["move and append"] = moveAndAppend }

// TestReport_O1_D1_PowerLossTakesNoMove cuts the power while the leaf is moved: it is
// where it was told to be, or where it went next.
func TestReport_O1_D1_PowerLossTakesNoMove(t *testing.T) {
	if err := osfiletest.CanTrace(); err != nil {
		t.Skip("writes and syncs of a process cannot be recorded here: ", err)
	}
	root := t.TempDir()
	path := filepath.Join(root, "agent.jsonl")
	rewrite(t, path, lines(header, user("m1", "", "one"), user("m2", "m1", "two"), user("m3", "m2", "three")))
	before, err := osfiletest.Files(root)
	require.NoError(t, err)
	cmd := exec.Command(os.Args[0], "-test.run=^TestChild$")
	cmd.Env = append(os.Environ(), childEnv+"=move and append", "FILE="+path)
	cmd.Stderr = t.Output()
	ops, err := osfiletest.Trace(root, cmd)
	require.NoError(t, err)
	leaves := []string{"m3"}
	for _, op := range ops {
		if op.Kind == osfiletest.Say {
			leaves = append(leaves, strings.Fields(string(op.Data))...)
		}
	}
	require.Equal(t, []string{"m3", "m1", "m2", "n1", "m3", "m1", "n3", "m2"}, leaves)

	r, draws := newRand(t), 10
	if long {
		draws = 300
	}
	disk, told := osfiletest.NewDisk(before), 0
	for k := 0; ; k++ {
		for range draws {
			dir := t.TempDir()
			require.NoError(t, osfiletest.Put(dir, disk.Cut(r)))
			s := open(t, filepath.Join(dir, "agent.jsonl"), jsonl.Options{Dialect: eventlog.CodingAgent, NoSync: true})
			head, err := s.Head(t.Context())
			require.NoError(t, err)
			require.Contains(t, leaves[told:min(told+2, len(leaves))], head.Leaf.ID(), "before operation %d of %v", k, ops)
			closed(t, s)
			require.NoError(t, os.RemoveAll(dir))
		}
		if k == len(ops) {
			break
		}
		disk.Apply(ops[k])
		if ops[k].Kind == osfiletest.Say {
			told += len(strings.Fields(string(ops[k].Data)))
		}
	}
	require.Equal(t, len(leaves)-1, told)
}
