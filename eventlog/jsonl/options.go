package jsonl

import (
	"io"
	"io/fs"
	"os"

	"github.com/sessiontree/sessiontree/eventlog"
)

// Options configure files of sessions. The zero value is right for a host.
type Options struct {
	// Source gives times and ids.
	Source eventlog.Source

	// Strict refuses a file where Pi refuses it, with Pi's error, instead of
	// giving what can be read.
	Strict bool

	// Dialect is by whose rules files are read, and answered: see [eventlog.Dialect].
	// A session file does not say who wrote it.
	Dialect eventlog.Dialect

	// Detect looks for marks of who wrote a file before it is read; where there are
	// none it is Dialect.
	Detect bool

	// Lines has [Contents.Lines] filled.
	Lines bool

	basis   string // what decided the dialect
	objects bool   // what is no object is no entry

	// NoSync leaves out the fsync behind each append: an append then survives the
	// end of the process, but not a loss of power.
	NoSync bool

	// MaxLine is the longest line that is read, in bytes; a longer one is skipped
	// and reported as damage, and an append of one is refused. 0 is 256 MiB.
	MaxLine int

	// OpenFile opens a file to append to, and makes new ones. nil is os.OpenFile.
	// Tests put a failing file system here.
	OpenFile func(name string, flag int, perm fs.FileMode) (File, error)
}

// File is what the backend needs of an open file. *os.File is one.
type File interface {
	io.ReaderAt
	io.WriteCloser
	Sync() error
	Truncate(size int64) error
	Stat() (fs.FileInfo, error)
	Chmod(mode fs.FileMode) error
	Fd() uintptr
}

const defaultMaxLine = 256 << 20

func (o Options) maxLine() int {
	if o.MaxLine > 0 {
		return o.MaxLine
	}
	return defaultMaxLine
}

func (o Options) openFile(name string, flag int, perm fs.FileMode) (File, error) {
	if o.OpenFile != nil {
		return o.OpenFile(name, flag, perm)
	}
	return os.OpenFile(name, flag, perm)
}
