package parquetexport

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/sessiontree/sessiontree/eventlog"
	"github.com/sessiontree/sessiontree/eventlog/osfile"
	"github.com/sessiontree/sessiontree/sqlitestore"
)

// State is what became of a file.
type State string

// The states of a file.
const (
	Written   State = "written"
	Unchanged State = "unchanged" // it had these rows already
	Removed   State = "removed"   // its month has no rows any more
)

// File is a file of an export.
type File struct {
	Table string
	Month string // as 2026-03; "" where the time cannot be read
	Path  string
	Rows  int64
	State State
}

// Options change an export. The zero value is good.
type Options struct {
	// Each is called for each file as soon as it is as it should be.
	Each func(File)
}

const (
	fileName   = "data.parquet"
	lockName   = ".export.lock"
	tempPrefix = ".export-"
)

// run is one run of an export.
type run struct {
	ctx   context.Context
	store *sqlitestore.Store
	dir   string
	files []File
	each  func(File)
}

// Export brings the files in a folder up to what the database holds, and says what it
// did with each. It makes the folder if it is not there.
//
// It fails with [eventlog.ErrBusy] while another export writes there, and with
// [eventlog.ErrAlreadyExists] where a file stands that is none of an export. What was
// written by then stays.
func Export(ctx context.Context, store *sqlitestore.Store, dir string, o Options) (files []File, err error) {
	x := &run{ctx: ctx, store: store, dir: dir, each: o.Each}
	if err := osfile.MakeDir(dir); err != nil {
		return nil, err
	}
	unlock, err := lock(dir)
	if err != nil {
		return nil, err
	}
	defer unlock()
	if err := x.sweep(); err != nil {
		return nil, err
	}
	entries, messages, err := x.scanLog()
	if err != nil {
		return nil, err
	}
	usage, err := x.scan(usageSQL)
	if err != nil {
		return nil, err
	}
	calls, err := x.scan(callsSQL)
	if err != nil {
		return nil, err
	}
	for _, export := range []func() error{
		func() error { return exportTable(x, "entries", entries, x.entryRows) },
		func() error { return exportTable(x, "messages", messages, x.messageRows) },
		func() error { return exportTable(x, "usage", usage, x.usageRows) },
		func() error { return exportTable(x, "tool_calls", calls, x.callRows) },
	} {
		if err := export(); err != nil {
			return x.files, err
		}
	}
	return x.files, nil
}

// lock keeps other exports out of a folder.
func lock(dir string) (unlock func(), err error) {
	path := filepath.Join(dir, lockName)
	f, err := os.OpenFile(path, os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return nil, err
	}
	ok, err := osfile.TryLock(f.Fd())
	if err == nil && !ok {
		err = eventlog.Errorf(eventlog.Busy, "%s: another export writes here", dir)
	}
	if err != nil {
		f.Close()
		return nil, err
	}
	return func() {
		osfile.Unlock(f.Fd())
		f.Close()
	}, nil
}

// sweep removes what a run that was killed left half written.
func (x *run) sweep() error {
	left, err := filepath.Glob(filepath.Join(globbed(x.dir), "*", "month=*", tempPrefix+"*"))
	if err != nil {
		return err
	}
	for _, path := range left {
		if err := os.Remove(path); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
	return nil
}

// globbed is a folder's name as a pattern for it.
func globbed(dir string) string {
	if os.PathSeparator == '\\' {
		return dir // there is no escape there
	}
	return strings.NewReplacer(`\`, `\\`, "*", `\*`, "?", `\?`, "[", `\[`).Replace(dir)
}

// rowsOf writes the rows of a month, and gives their fingerprint.
type rowsOf[T any] func(month string, p *part, write func(T) error) (digest, error)

// exportTable brings the files of a table up.
func exportTable[T any](x *run, table string, months parts, rows rowsOf[T]) error {
	there, err := x.months(table)
	if err != nil {
		return err
	}
	all := there
	for month := range months {
		all = append(all, month)
	}
	slices.Sort(all)
	for _, month := range slices.Compact(all) {
		if err := x.ctx.Err(); err != nil {
			return err
		}
		f := File{Table: table, Month: month, Path: filepath.Join(x.dir, table, "month="+month, fileName)}
		if month == noMonth {
			f.Month = ""
		}
		p := months[month]
		had, err := fingerprint(f.Path)
		switch {
		case err != nil:
			return err
		case p == nil && had == "":
			continue
		case p == nil:
			f.State = Removed
			err = remove(f.Path)
		case had == p.String():
			f.State, f.Rows = Unchanged, p.rows
		default:
			f.State = Written
			f.Rows, err = writeFile(f.Path, func(write func(T) error) (digest, error) { return rows(month, p, write) })
		}
		if err != nil {
			return err
		}
		x.files = append(x.files, f)
		if x.each != nil {
			x.each(f)
		}
	}
	return nil
}

// months are the partitions of a table that are there.
func (x *run) months(table string) (months []string, err error) {
	paths, err := filepath.Glob(filepath.Join(globbed(x.dir), table, "month=*", fileName))
	for _, path := range paths {
		months = append(months, strings.TrimPrefix(filepath.Base(filepath.Dir(path)), "month="))
	}
	return months, err
}

// remove takes a file away, and its partition, unless somebody put more into it.
func remove(path string) error {
	if err := os.Remove(path); err != nil {
		return err
	}
	os.Remove(filepath.Dir(path))
	return nil
}
