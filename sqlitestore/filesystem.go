package sqlitestore

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/url"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"time"

	"github.com/sessiontree/sessiontree/eventlog"
	"github.com/sessiontree/sessiontree/eventlog/osfile"
)

// fileSystemOf names the file system that a path is on, and says whether other
// machines can change its files. Tests put an answer of their own here.
var fileSystemOf = detectFileSystem

// maxPrivateCopy is how much of a database a reader copies where it cannot read
// it in place. Tests lower it.
var maxPrivateCopy int64 = 1 << 30

// maxPath is the longest path that a database can have, in bytes: SQLite takes
// 512, and makes it longer.
const maxPath = 512 - len(".new-journal")

// resolvePath is the absolute path of a database, with symbolic links followed:
// the files that SQLite puts beside it are beside the real one.
func resolvePath(path string) (string, error) {
	switch {
	case path == "", path == ":memory:":
		return "", eventlog.Errorf(eventlog.InvalidArgument, "%q is no path: a store is a file (eventlog/memory keeps sessions in memory)", path)
	case strings.HasPrefix(path, "file:"):
		return "", eventlog.Errorf(eventlog.InvalidArgument, "%q is no path: give the file's name, not a URI", path)
	case strings.ContainsRune(path, 0):
		return "", eventlog.Errorf(eventlog.InvalidArgument, "%q is no path: it has a zero byte", path)
	}
	abs, err := filepath.Abs(path)
	if err != nil {
		return "", fileError(path, "cannot resolve the path", err)
	}
	if info, err := os.Lstat(abs); err == nil && info.Mode()&fs.ModeSymlink != 0 {
		real, err := filepath.EvalSymlinks(abs)
		if err != nil {
			return "", fileError(abs, "cannot follow the symbolic link", err)
		}
		abs = real
	}
	if len(abs) > maxPath {
		return "", eventlog.Errorf(eventlog.InvalidArgument, "%s: the path has %d bytes, SQLite takes %d", abs, len(abs), maxPath)
	}
	return abs, nil
}

func fileError(path, what string, err error) error {
	return &eventlog.Error{Code: eventlog.StorageFailed, Message: path + ": " + what, Err: err}
}

// fileURI is the URI of a file with SQLite's and the driver's parameters. Every
// byte of the path that could end it, or be taken for an escape, is escaped.
func fileURI(path string, parameters url.Values) string {
	path = filepath.ToSlash(path)
	var b strings.Builder
	b.WriteString("file://")
	if !strings.HasPrefix(path, "/") {
		b.WriteByte('/') // C:/folder
	}
	for i := range len(path) {
		switch c := path[i]; {
		case 'a' <= c && c <= 'z', 'A' <= c && c <= 'Z', '0' <= c && c <= '9', strings.IndexByte("/:-._~", c) >= 0:
			b.WriteByte(c)
		default:
			fmt.Fprintf(&b, "%%%02X", c)
		}
	}
	return b.String() + "?" + parameters.Encode()
}

// openFiles are the databases that this process has open. POSIX takes *all* locks
// that a process holds on a file away when it closes *any* descriptor of the
// file: reading the header of a database that SQLite has open here would let
// another process believe that nobody uses it, and delete its WAL. So a file is
// opened by hand only while it is not in this map, under its mutex.
var openFiles = struct {
	sync.Mutex
	m map[*database]openFile
}{m: map[*database]openFile{}}

type openFile struct {
	info fs.FileInfo
	wal  bool
}

// applicationID marks our databases ("STre"), in the header that every SQLite
// database begins with.
const applicationID = 0x53547265

const headerSize = 100

// fileState is what is at a database's path.
type fileState struct {
	exists bool
	empty  bool
	wal    bool // else a rollback journal
}

// examine says what is at the path, without changing anything or taking locks.
// It refuses what is no database of ours.
func (d *database) examine() (fileState, error) {
	openFiles.Lock()
	defer openFiles.Unlock()
	info, err := os.Stat(d.path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return fileState{}, nil
	case err != nil:
		return fileState{}, fileError(d.path, "cannot open", err)
	case !info.Mode().IsRegular():
		return fileState{}, eventlog.Errorf(eventlog.StorageFailed, "%s is no file", d.path)
	case info.Size() == 0:
		return fileState{exists: true, empty: true}, nil
	}
	for _, f := range openFiles.m {
		if os.SameFile(f.info, info) {
			openFiles.m[d] = openFile{info, f.wal}
			return fileState{exists: true, wal: f.wal}, nil
		}
	}
	header, err := readHeader(d.path)
	if err != nil {
		return fileState{}, fileError(d.path, "cannot read", err)
	}
	if string(header[:16]) != "SQLite format 3\x00" {
		return fileState{}, eventlog.Errorf(eventlog.StorageFailed, "%s is no SQLite database; nothing was changed", d.path)
	}
	if id := binary.BigEndian.Uint32(header[68:]); id != applicationID {
		return fileState{}, eventlog.Errorf(eventlog.StorageFailed, "%s is a database of another application (application_id %#x); nothing was changed", d.path, id)
	}
	state := fileState{exists: true, wal: header[18] == 2}
	openFiles.m[d] = openFile{info, state.wal}
	return state, nil
}

func readHeader(path string) (header [headerSize]byte, err error) {
	f, err := os.Open(path)
	if err != nil {
		return header, err
	}
	defer f.Close()
	if _, err := io.ReadFull(f, header[:]); err != nil && !errors.Is(err, io.ErrUnexpectedEOF) {
		return header, err
	}
	return header, nil
}

// createFile makes a new file that only its owner can read, whatever the umask.
// SQLite gives the mode of a database to the files that it puts beside it.
func createFile(name string) error {
	f, err := os.OpenFile(name, os.O_RDWR|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	return errors.Join(f.Chmod(0o600), f.Close())
}

func syncFile(name string) error {
	f, err := os.OpenFile(name, os.O_RDWR, 0)
	if err != nil {
		return err
	}
	return errors.Join(f.Sync(), f.Close())
}

// removeDatabase removes a file and those that SQLite puts beside it, if they are
// there.
func removeDatabase(name string) error {
	for _, suffix := range []string{"", "-wal", "-shm", "-journal"} {
		if err := os.Remove(name + suffix); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
	return nil
}

// remember corrects what examine found, once it was changed.
func (d *database) remember(wal bool) {
	openFiles.Lock()
	defer openFiles.Unlock()
	openFiles.m[d] = openFile{openFiles.m[d].info, wal}
}

// forget says that the database's file is no longer open here.
func (d *database) forget() {
	openFiles.Lock()
	defer openFiles.Unlock()
	delete(openFiles.m, d)
}

// checkFile fails when the file at the path is no longer the one that was
// opened. SQLite would go on writing to the file without a name.
func (d *database) checkFile() error {
	info, err := os.Stat(d.path)
	if err == nil && os.SameFile(info, d.file) {
		return nil
	}
	if err == nil {
		return eventlog.Errorf(eventlog.StorageFailed, "%s was replaced while it was open", d.path)
	}
	return fileError(d.path, "the file was moved or deleted while it was open", err)
}

// fileLock is a lock between processes: a file beside the database. The kernel
// drops it when the process ends.
type fileLock struct{ f *os.File }

// lock takes the lock of the database, and makes its folder for that. It waits
// until the context's deadline, or if that has none for the busy timeout.
func (d *database) lock(ctx context.Context) (*fileLock, error) {
	if err := osfile.MakeDir(filepath.Dir(d.path)); err != nil {
		return nil, fileError(filepath.Dir(d.path), "cannot create the folder", err)
	}
	start := time.Now()
	var timeout <-chan time.Time
	if _, ok := ctx.Deadline(); !ok {
		timeout = time.After(d.o.BusyTimeout)
	}
	for pause := time.Millisecond; ; pause = min(2*pause, 50*time.Millisecond) {
		lock, err := tryLockFile(d.path + ".lock")
		if err != nil {
			return nil, fileError(d.path+".lock", "cannot lock", err)
		}
		if lock != nil {
			return lock, nil
		}
		select {
		case <-ctx.Done():
			return nil, waited(ctx, inUse(d.path, time.Since(start)))
		case <-timeout:
			return nil, inUse(d.path, time.Since(start))
		case <-time.After(pause):
		}
	}
}

func inUse(path string, after time.Duration) error {
	return eventlog.Errorf(eventlog.Busy, "%s is being created or upgraded, or used alone, by another process (waited %v)", path, after.Round(time.Millisecond))
}

// tryLockFile gives nil if another has the lock.
func tryLockFile(name string) (*fileLock, error) {
	for {
		f, err := os.OpenFile(name, os.O_RDWR|os.O_CREATE, 0o600)
		if err != nil {
			return nil, err
		}
		_ = f.Chmod(0o600) // whatever the umask; another owner's stays as it is
		ok, err := osfile.TryLock(f.Fd())
		if err == nil && ok {
			var info fs.FileInfo
			if info, err = f.Stat(); err == nil && !osfile.IsDeleted(info) {
				return &fileLock{f}, nil
			}
		}
		f.Close()
		if err != nil || !ok {
			return nil, err
		}
		// The one that had it has deleted the file: lock the next one.
	}
}

// release deletes the lock's file first, while nobody else can hold it, so that
// no litter stays beside the database. On Windows, which deletes no file that
// somebody waits for, it stays.
func (l *fileLock) release() {
	if l == nil {
		return
	}
	if runtime.GOOS != "windows" {
		os.Remove(l.f.Name())
	}
	l.f.Close()
}

// stamp tells whether a file was written.
type stamp struct {
	size int64
	time time.Time
}

func stampOf(path string) stamp {
	info, err := os.Stat(path)
	if err != nil {
		return stamp{size: -1}
	}
	return stamp{info.Size(), info.ModTime()}
}

// stamps are those of a database's file, its WAL and its rollback journal.
type stamps [3]stamp

var suffixes = [3]string{"", "-wal", "-journal"}

func (d *database) stamps() (s stamps) {
	for i, suffix := range suffixes {
		s[i] = stampOf(d.path + suffix)
	}
	return s
}

var errWritten = errors.New("written while it was copied")

// copyTo copies the database, with what SQLite needs to complete it, to name.
func (d *database) copyTo(ctx context.Context, name string) error {
	before := d.stamps()
	var size int64
	for _, s := range before {
		size += max(s.size, 0)
	}
	if size > maxPrivateCopy {
		return eventlog.Errorf(eventlog.StorageFailed,
			"%s has writes in %s-wal that cannot be read in place, because the folder cannot be written, and is too big for a private copy (%d bytes, the limit is %d): open it once for writing, or copy both files elsewhere",
			d.path, filepath.Base(d.path), size, maxPrivateCopy)
	}
	for i, s := range before {
		if s.size <= 0 {
			continue
		}
		if err := copyFile(ctx, name+suffixes[i], d.path+suffixes[i]); err != nil {
			return err
		}
	}
	if d.stamps() != before {
		return errWritten
	}
	return nil
}

func copyFile(ctx context.Context, to, from string) (err error) {
	source, err := os.Open(from)
	if err != nil {
		return err
	}
	defer source.Close()
	target, err := os.OpenFile(to, os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o600)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, target.Close()) }()
	for {
		if err := ctx.Err(); err != nil {
			return err
		}
		if n, err := io.CopyN(target, source, 16<<20); n == 0 || err != nil {
			if errors.Is(err, io.EOF) {
				return nil
			}
			return err
		}
	}
}
