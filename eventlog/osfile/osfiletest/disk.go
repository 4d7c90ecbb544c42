// Package osfiletest gives tests the disks that a loss of power may leave: the
// operations of a program are recorded, by [Trace] or by the test's own file
// layer, and played on a [Disk], which may then be cut off at any of them.
//
// What a program synced is on the disk. All else is in doubt, and the disk of an
// adversary: of the writes behind the last fsync of a file any may be there, each
// as a whole, by its beginning or as zeros, in whatever order; names that were
// made, moved or removed since the last fsync of their folder are as they were, or
// as they became, up to any of them.
package osfiletest

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
)

// Kind is what an operation does.
type Kind int

const (
	Create   Kind = iota // makes the file Path, if it is not there
	Write                // writes Data at At
	Truncate             // makes the file Size bytes long
	Sync                 // the file is on the disk: what was written before operation Began
	SyncDir              // and so are the names in folder Path
	Link                 // gives the file Path the name To too
	Rename               // moves it to the name To
	Remove               // takes its name away
	Say                  // tells the world Data
)

func (k Kind) String() string {
	return [...]string{"create", "write", "truncate", "sync", "syncdir", "link", "rename", "remove", "say"}[k]
}

// Op is one operation of a program. Paths are relative to the folder that is
// looked at, which is ".".
type Op struct {
	Kind     Kind
	Path, To string
	At, Size int64
	Data     []byte
	// Began is the index of the operation in front of which a sync began; it ended
	// where it stands. 0 is where it stands.
	Began int
}

func (o Op) String() string {
	switch o.Kind {
	case Write:
		return fmt.Sprintf("write %s %d+%d", o.Path, o.At, len(o.Data))
	case Truncate:
		return fmt.Sprintf("truncate %s %d", o.Path, o.Size)
	case Say:
		return fmt.Sprintf("say %q", o.Data)
	}
	return fmt.Sprintf("%v %s %s", o.Kind, o.Path, o.To)
}

// Join is what programs did that ran one behind the other.
func Join(runs ...[]Op) (all []Op) {
	for _, ops := range runs {
		base := len(all)
		for _, op := range ops {
			if op.Began > 0 {
				op.Began += base
			}
			all = append(all, op)
		}
	}
	return all
}

// Disk is a folder as its programs see it, and what of it is sure.
type Disk struct {
	done  int // operations
	live  map[string]*file
	sure  map[string]*file
	doubt []pending // of the names
}

// file is what one or more names stand for.
type file struct {
	live, sure []byte
	doubt      []pending
}

type pending struct {
	Op
	index int
	file  *file // of a name
}

// NewDisk is a disk with the files, by name: as [Files] reads them.
func NewDisk(files map[string][]byte) *Disk {
	d := &Disk{live: map[string]*file{}, sure: map[string]*file{}}
	for name, text := range files {
		f := &file{live: slices.Clone(text), sure: slices.Clone(text)}
		d.live[name], d.sure[name] = f, f
	}
	return d
}

// Apply carries operations out, one behind the other.
func (d *Disk) Apply(ops ...Op) {
	for _, op := range ops {
		d.apply(op)
		d.done++
	}
}

func (d *Disk) apply(op Op) {
	f := d.live[op.Path]
	switch op.Kind {
	case Create:
		if f == nil {
			d.name(op, &file{})
		}
	case Link, Rename, Remove:
		if f != nil {
			d.name(op, f)
		}
	case Write, Truncate:
		if f != nil { // else its name is gone, and with it what it holds
			f.live = played(f.live, op)
			f.doubt = append(f.doubt, pending{op, d.done, nil})
		}
	case Sync:
		if f != nil {
			var rest []pending
			f.sure, rest = settled(f.sure, f.doubt, d.began(op))
			f.doubt = rest
		}
	case SyncDir:
		began := d.began(op)
		d.doubt = slices.DeleteFunc(d.doubt, func(p pending) bool {
			sure := filepath.Dir(p.Path) == op.Path && p.index < began
			if sure {
				rename(d.sure, p.Op, p.file)
			}
			return sure
		})
	}
}

func (d *Disk) began(op Op) int {
	if op.Began > 0 {
		return op.Began
	}
	return d.done
}

func (d *Disk) name(op Op, f *file) {
	rename(d.live, op, f)
	d.doubt = append(d.doubt, pending{op, d.done, f})
}

func rename(names map[string]*file, op Op, f *file) {
	switch op.Kind {
	case Create:
		names[op.Path] = f
	case Link:
		names[op.To] = f
	case Rename:
		delete(names, op.Path)
		names[op.To] = f
	case Remove:
		delete(names, op.Path)
	}
}

// played is the text after a write or a cut.
func played(text []byte, op Op) []byte {
	end := op.Size
	if op.Kind == Write {
		end = max(int64(len(text)), op.At+int64(len(op.Data)))
	}
	if grow := end - int64(len(text)); grow > 0 {
		text = append(text, make([]byte, grow)...)
	}
	text = text[:end:end]
	if op.Kind == Write {
		copy(text[op.At:], op.Data)
	}
	return text
}

// settled plays what is in doubt and was done before an operation.
func settled(text []byte, doubt []pending, before int) (sure []byte, rest []pending) {
	for _, p := range doubt {
		if p.index < before {
			text = played(text, p.Op)
		} else {
			rest = append(rest, p)
		}
	}
	return text, rest
}

// Whole is the folder as its programs see it: what the end of a process leaves.
func (d *Disk) Whole() map[string][]byte {
	files := map[string][]byte{}
	for name, f := range d.live {
		files[name] = f.live
	}
	return files
}

// Cut is the folder as a loss of power may leave it now.
func (d *Disk) Cut(r *rand.Rand) map[string][]byte {
	names := maps.Clone(d.sure)
	for _, p := range d.doubt[:r.IntN(len(d.doubt)+1)] {
		rename(names, p.Op, p.file)
	}
	files, texts := map[string][]byte{}, map[*file][]byte{}
	for _, name := range slices.Sorted(maps.Keys(names)) { // the same for the same r
		f := names[name]
		if _, ok := texts[f]; !ok {
			texts[f] = f.cut(r)
		}
		files[name] = texts[f]
	}
	return files
}

// cut draws one of four losses: all that is in doubt, what stands behind some
// write, single writes, or nothing.
func (f *file) cut(r *rand.Rand) []byte {
	text := slices.Clone(f.sure)
	loss := r.IntN(4)
	last := len(f.doubt)
	if loss == 1 {
		last = r.IntN(last + 1)
	}
	for i, p := range f.doubt[:last] {
		switch {
		case loss == 0, loss == 2 && r.IntN(3) == 0:
			continue
		case p.Kind == Write && (loss == 1 && i == last-1 || loss == 2 && r.IntN(4) == 0):
			p.Op = torn(p.Op, r)
		}
		text = played(text, p.Op)
	}
	return text
}

// torn is a write that the loss of power fell into.
func torn(op Op, r *rand.Rand) Op {
	switch n := r.IntN(len(op.Data) + 1); r.IntN(3) {
	case 0:
		op.Data = op.Data[:n]
	case 1: // its end is there, not its beginning
		op.At, op.Data = op.At+int64(n), op.Data[n:]
	default: // a file that has grown, but nothing is in it
		op.Data = append(slices.Clone(op.Data[:n]), make([]byte, len(op.Data)-n)...)
	}
	return op
}

// Files reads the files of a folder, and of those below it.
func Files(dir string) (map[string][]byte, error) {
	files := map[string][]byte{}
	err := filepath.WalkDir(dir, func(path string, e os.DirEntry, err error) error {
		if err != nil || !e.Type().IsRegular() {
			return err
		}
		name, err := filepath.Rel(dir, path)
		if err == nil {
			files[name], err = os.ReadFile(path)
		}
		return err
	})
	return files, err
}

// Put writes the files into a folder.
func Put(dir string, files map[string][]byte) error {
	for name, text := range files {
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			return err
		}
		if err := os.WriteFile(path, text, 0o600); err != nil {
			return err
		}
	}
	return nil
}
