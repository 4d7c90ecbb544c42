package osfiletest

import (
	"bytes"
	"fmt"
	"maps"
	"math/rand/v2"
	"os/exec"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
)

// all is every folder that a loss of power may leave, as text.
func all(d *Disk) []string {
	r, found := rand.New(rand.NewPCG(1, 1)), map[string]bool{}
	for range 3000 {
		files, text := d.Cut(r), ""
		for _, name := range slices.Sorted(maps.Keys(files)) {
			text += fmt.Sprintf("%s=%s ", name, bytes.ReplaceAll(files[name], []byte{0}, []byte("0")))
		}
		found[text] = true
	}
	return slices.Sorted(maps.Keys(found))
}

func TestCut(t *testing.T) {
	write := func(at int64, text string) Op { return Op{Kind: Write, Path: "f", At: at, Data: []byte(text)} }
	create, dir, sync := Op{Kind: Create, Path: "f"}, Op{Kind: SyncDir, Path: "."}, Op{Kind: Sync, Path: "f"}
	for name, test := range map[string]struct {
		ops  []Op
		want []string
	}{
		"nothing":                 {nil, []string{""}},
		"a file without its name": {[]Op{create, write(0, "a"), sync}, []string{"", "f=a "}},
		"a name without its text": {[]Op{create, write(0, "a"), dir}, []string{"f= ", "f=0 ", "f=a "}},
		"all of it":               {[]Op{create, write(0, "ab"), dir, sync}, []string{"f=ab "}},
		"torn":                    {[]Op{create, dir, write(0, "ab")}, []string{"f= ", "f=00 ", "f=0b ", "f=a ", "f=a0 ", "f=ab "}},
		"in any order":            {[]Op{create, dir, write(0, "a"), write(1, "b")}, []string{"f= ", "f=0 ", "f=00 ", "f=0b ", "f=a ", "f=a0 ", "f=ab "}},
		"a cut":                   {[]Op{create, write(0, "ab"), dir, sync, {Kind: Truncate, Path: "f", Size: 1}}, []string{"f=a ", "f=ab "}},
		"written while it syncs":  {[]Op{create, write(0, "a"), dir, write(0, "b"), {Kind: Sync, Path: "f", Began: 3}}, []string{"f=0 ", "f=a ", "f=b "}},
		"removed":                 {[]Op{create, dir, sync, {Kind: Remove, Path: "f"}}, []string{"", "f= "}},
		"linked, then removed":    {[]Op{create, dir, sync, {Kind: Link, Path: "f", To: "g"}, {Kind: Remove, Path: "f"}}, []string{"f= ", "f= g= ", "g= "}},
		"moved":                   {[]Op{create, write(0, "a"), sync, dir, {Kind: Rename, Path: "f", To: "g"}, dir}, []string{"g=a "}},
	} {
		d := NewDisk(nil)
		d.Apply(test.ops...)
		require.Equal(t, test.want, all(d), name)
	}
}

func TestTrace(t *testing.T) {
	if err := CanTrace(); err != nil {
		t.Skip(err)
	}
	dir := t.TempDir()
	ops, err := Trace(dir, exec.Command("sh", "-c", `cd "$0" && printf one > a && printf ' two' >> a && mv a b && ln b c && rm b && echo done`, dir))
	require.NoError(t, err)
	var kinds []string
	for _, op := range ops {
		kinds = append(kinds, op.String())
	}
	require.Equal(t, []string{"create a ", "truncate a 0", "write a 0+3", "write a 3+4", "rename a b", "link b c", "remove b ", `say "done\n"`}, kinds)
	d := NewDisk(nil)
	d.Apply(ops...)
	require.Equal(t, map[string][]byte{"c": []byte("one two")}, d.Whole())
	left, err := Files(dir)
	require.NoError(t, err)
	require.Equal(t, left, d.Whole())
}
