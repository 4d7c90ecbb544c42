package sqlitestore

import (
	"cmp"
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"fmt"
	"io/fs"
	"net/url"
	"os"
	"path/filepath"
	"strconv"
	"sync/atomic"
	"time"

	"github.com/jmoiron/sqlx"
	"modernc.org/sqlite"

	"github.com/sessiontree/sessiontree/eventlog"
)

// database is an open SQLite file: one connection that writes, and a pool that
// reads.
type database struct {
	path     string   // absolute, with symbolic links followed
	write    *sqlx.DB // exactly one connection, BEGIN is immediate; nil when read-only
	read     *sqlx.DB // the pool
	readOnly bool

	// exclusive: one process has the database for itself, with a rollback journal
	// instead of a WAL (on a network file system). A commit then waits for the
	// readers that are in a transaction.
	exclusive bool
	lease     *fileLock // held while exclusive

	o       Options
	file    fs.FileInfo // what was at path when it was opened
	private string      // the folder of a private copy, or ""
	fixed   bool        // reads see the file as it was when it was opened: see outdated
	opened  stamps      // of a fixed one
	closed  atomic.Bool
}

const (
	// writeWait is how long SQLite itself waits for another process' lock. The
	// writer tries again until its caller's deadline, and looks every millisecond:
	// SQLite comes to look every 100 only, and would find the lock taken each time
	// by a process that writes much.
	writeWait = 5 * time.Millisecond

	// readWait is for the rare moments in which a reader meets a lock: recovery
	// after a crash, and commits of an exclusive database. The driver gives up
	// earlier if the context ends.
	readWait = 10 * time.Second

	privateName = "copy.db"

	// checkpointPages is the size of the WAL, 4 MB, at which a commit copies it
	// into the database.
	checkpointPages = 1000

	// writeCache is how many bytes of pages the write connection keeps. A batch has to
	// find the place of each id in an index: with SQLite's own 2 MB it writes such
	// pages out and reads them again, and takes a twelfth longer.
	writeCache = 16 << 20

	// maxIdleWAL is what a WAL that a long reader made grow is cut to when it
	// starts again.
	maxIdleWAL = 64 << 20
)

// openDatabase opens the database at path and makes it if it is not there. If
// the context has no deadline, it waits o.BusyTimeout for other processes.
//
// It fails with ErrInvalidArgument for options or a path that make no sense,
// ErrNotFound when read-only and nothing is there, ErrBusy when another process
// holds what it needs, and else with ErrStorage: another application's file, a
// schema that is newer than this program (a [SchemaError]), a network file
// system, or a disk that fails. What it refuses it leaves as it was.
func openDatabase(ctx context.Context, path string, o Options) (_ *database, err error) {
	if o, err = o.complete(); err != nil {
		return nil, err
	}
	if path, err = resolvePath(path); err != nil {
		return nil, err
	}
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	d := &database{path: path, o: o, readOnly: o.ReadOnly}
	defer func() {
		if err != nil {
			_ = d.close() // the first error is the one to tell
		}
	}()
	if d.readOnly {
		err = d.openReadOnly(ctx)
	} else {
		err = d.openForWriting(ctx)
	}
	if err != nil {
		return nil, d.mapError("cannot open", err)
	}
	if d.file, err = os.Stat(d.path); err != nil {
		return nil, fileError(d.path, "cannot open", err)
	}
	return d, nil
}

func (d *database) openForWriting(ctx context.Context) error {
	var err error
	name, network := d.fileSystem()
	if network {
		if !d.o.AllowNetworkFS {
			return eventlog.Errorf(eventlog.StorageFailed,
				"%s is on a network file system (%s), where the memory that SQLite's WAL shares between processes, and often locks, do not work: a write could damage it. Use a local folder, or allow it (AllowNetworkFS), with one process at a time",
				d.path, name)
		}
		d.o.Logger.WarnContext(ctx, "network file system: rollback journal, and no other process", "path", d.path, "filesystem", name)
		d.exclusive = true
		if d.lease, err = d.lock(ctx); err != nil {
			return err
		}
	}
	current := false
	if !d.exclusive {
		if current, err = d.isCurrent(ctx); err != nil {
			return err
		}
	}
	if !current {
		if err := d.setUp(ctx); err != nil {
			return err
		}
	}
	if d.read == nil {
		d.openRead(url.Values{"mode": {"ro"}})
	}
	d.write = connect(d.path, 1, url.Values{"mode": {"rw"}, "_txlock": {"immediate"}},
		busyTimeout(d.writeWait()),
		"fullfsync(1)", // macOS: fsync alone leaves the data in the drive's cache
		"checkpoint_fullfsync(1)",
		"journal_mode("+d.journalMode()+")",
		fmt.Sprintf("journal_size_limit(%d)", maxIdleWAL),
		"synchronous("+d.o.Synchronous.String()+")",
		fmt.Sprintf("wal_autocheckpoint(%d)", checkpointPages),
		fmt.Sprintf("cache_size(-%d)", writeCache>>10),
	)
	if err := d.setJournal(ctx, d.write); err != nil {
		return err
	}
	if readOnly, err := isReadOnly(ctx, d.write); err != nil || readOnly {
		return cmp.Or(err, error(eventlog.Errorf(eventlog.StorageFailed, "%s cannot be written (its mode, or its file system): open it read-only", d.path)))
	}
	if info, err := os.Stat(d.path); err == nil && info.Mode().Perm()&0o077 != 0 && os.PathSeparator == '/' {
		d.o.Logger.WarnContext(ctx, "other users can open the database", "path", d.path, "mode", info.Mode())
	}
	return nil
}

// isReadOnly says whether SQLite, which asked for a file to write, got one that
// it can only read. It would say so at the first write.
func isReadOnly(ctx context.Context, db *sqlx.DB) (readOnly bool, err error) {
	c, err := db.Conn(ctx)
	if err != nil {
		return false, err
	}
	defer c.Close()
	err = c.Raw(func(driver any) (err error) {
		readOnly, err = driver.(interface{ IsReadOnly(string) (bool, error) }).IsReadOnly("main")
		return err
	})
	return readOnly, err
}

// fileSystem asks for the file system of the database's folder, or of the first
// one above it that is there. One that cannot be asked passes as local: what is
// wrong with it shows soon.
func (d *database) fileSystem() (name string, network bool) {
	for dir := filepath.Dir(d.path); ; dir = filepath.Dir(dir) {
		name, network, err := fileSystemOf(dir)
		if err == nil {
			return name, network
		}
		if dir == filepath.Dir(dir) {
			return "unknown", false
		}
	}
}

func (d *database) journalMode() string {
	if d.exclusive {
		return "truncate"
	}
	return "wal"
}

func (d *database) writeWait() time.Duration {
	if d.exclusive {
		return readWait // for this process' own readers
	}
	return writeWait
}

func busyTimeout(t time.Duration) string {
	return "busy_timeout(" + strconv.FormatInt(t.Milliseconds(), 10) + ")"
}

// openRead makes the pool of readers.
func (d *database) openRead(parameters url.Values) {
	path := d.path
	if d.private != "" {
		path = filepath.Join(d.private, privateName)
	}
	d.read = connect(path, d.o.ReadConns, parameters, busyTimeout(readWait), "query_only(1)")
}

func (d *database) closeRead() {
	if d.read != nil {
		d.read.Close()
		d.read = nil
	}
}

// connect makes a pool of up to conns connections, kept open, with pragmas that
// every one of them gets.
//
// What all have: SQL cannot damage the file's structure (_defensive), a schema
// from a stranger's file calls no function that does harm (trusted_schema), a
// name in double quotes is never a string (_dqs). No memory mapping: it saves 7%
// of a scan, but then a disk that fails, or a file that is cut, is a signal that
// ends the host, and not an error.
func connect(path string, conns int, parameters url.Values, pragmas ...string) *sqlx.DB {
	query := url.Values{
		"_defensive": {"1"},
		"_dqs":       {"0"},
		"_error_rc":  {"1"},
		"_pragma":    append(pragmas, "trusted_schema(0)", "cell_size_check(1)", "mmap_size(0)"),
	}
	for k, v := range parameters {
		query[k] = v
	}
	connector, err := sqlite.NewConnector(fileURI(path, query))
	if err != nil {
		panic(err) // says that the parameters, which are ours, cannot be parsed
	}
	db := sql.OpenDB(wrapConnector(connector))
	db.SetMaxOpenConns(conns)
	db.SetMaxIdleConns(conns)
	return sqlx.NewDb(db, "sqlite3") // sqlx's name for the kind of parameters
}

// wrapConnector is where tests put a driver that fails.
var wrapConnector = func(c driver.Connector) driver.Connector { return c }

// openReadOnly opens the database in the first way that works. Where writes are
// in the WAL, SQLite needs shared memory beside it; where none are, nothing.
func (d *database) openReadOnly(ctx context.Context) error {
	state, err := d.examine()
	switch {
	case err != nil:
		return err
	case !state.exists:
		return eventlog.Errorf(eventlog.NotFound, "%s: no such database", d.path)
	case state.empty:
		return eventlog.Errorf(eventlog.StorageFailed, "%s is empty: it becomes a database when it is opened for writing", d.path)
	}
	name, network := d.fileSystem()
	type way struct {
		name string
		open func(context.Context) error
	}
	var (
		plain     = way{"in place", d.readInPlace}
		immutable = way{"as it is", d.readImmutable}
		private   = way{"as a private copy", d.readCopy}
	)
	var ways []way
	at := d.stamps()
	unwritten := at[1].size <= 0 && at[2].size <= 0
	switch {
	case !state.wal && unwritten:
		ways = []way{plain, immutable} // immutable where there are no locks
	case !state.wal:
		ways = []way{plain, private}
	case network && unwritten:
		ways = []way{immutable}
	case network:
		ways = []way{private} // no shared memory there
	case unwritten && (at[1].size < 0 || stampOf(d.path+"-shm").size < 0):
		ways = []way{immutable, plain, private} // nobody has it open
	case unwritten:
		ways = []way{plain, immutable, private}
	default:
		ways = []way{plain, private}
	}
	for _, w := range ways {
		if err = w.open(ctx); err == nil {
			d.o.Logger.DebugContext(ctx, "database opened read-only", "path", d.path, "how", w.name, "filesystem", name)
			return nil
		}
		d.closeRead()
		d.fixed = false
		if !cannotOpenSo(err) && !errors.Is(err, errWritten) {
			return err
		}
	}
	if errors.Is(err, errWritten) {
		return &eventlog.Error{Code: eventlog.Busy, Message: d.path + " is being written, and cannot be read in place", Err: err}
	}
	return err
}

func (d *database) readInPlace(ctx context.Context) error {
	d.openRead(url.Values{"mode": {"ro"}})
	return d.checkVersion(ctx)
}

func (d *database) readImmutable(ctx context.Context) error {
	d.fixed, d.opened = true, d.stamps()
	d.openRead(url.Values{"mode": {"ro"}, "immutable": {"1"}})
	err := d.checkVersion(ctx)
	if d.outdated() {
		return errWritten
	}
	return err
}

func (d *database) readCopy(ctx context.Context) (err error) {
	if d.private, err = os.MkdirTemp("", "sessiontree-*"); err != nil {
		return err
	}
	const attempts = 3
	for range attempts {
		d.fixed, d.opened = true, d.stamps()
		if err = d.copyTo(ctx, filepath.Join(d.private, privateName)); !errors.Is(err, errWritten) {
			break
		}
	}
	if err != nil {
		return err
	}
	d.o.Logger.InfoContext(ctx, "database copied to read it", "path", d.path, "copy", d.private)
	mode := "ro"
	if d.opened[2].size > 0 {
		mode = "rw" // to roll the journal back
	}
	d.openRead(url.Values{"mode": {mode}})
	return d.checkVersion(ctx)
}

// checkVersion refuses a schema that is not this program's.
func (d *database) checkVersion(ctx context.Context) error {
	older, err := d.isOlder(ctx, d.read)
	if err != nil || !older {
		return err
	}
	latest, _ := latestVersion()
	version, err := schemaVersion(ctx, d.read)
	if err != nil {
		return err
	}
	return &eventlog.Error{
		Code:    eventlog.StorageFailed,
		Message: d.path + " is from an older sessiontree: open it once for writing, which upgrades it",
		Err:     &SchemaError{d.path, version, latest},
	}
}

// outdated says whether a read-only database was written since it was opened in
// a way that does not see that: as an immutable file, which then must be opened
// again, because reads may mix old and new; or as a private copy.
func (d *database) outdated() bool { return d.fixed && d.stamps() != d.opened }

// close closes the connections, the readers' first, and copies the WAL into the
// database as far as other processes let it. A connection that was taken out of
// write must be back. Closing again does nothing.
func (d *database) close() error {
	if !d.closed.CompareAndSwap(false, true) {
		return nil
	}
	var errs []error
	if d.read != nil {
		errs = append(errs, d.read.Close())
	}
	if d.write != nil {
		tidy := `PRAGMA wal_checkpoint(truncate)`
		if d.exclusive {
			tidy = `PRAGMA journal_mode = delete` // which deletes the empty journal
		}
		// Best effort: closing the last connection of all makes a checkpoint too.
		ctx, cancel := context.WithTimeout(context.Background(), time.Second)
		if _, err := d.write.ExecContext(ctx, tidy); err != nil {
			d.o.Logger.WarnContext(ctx, "files beside the database stay", "path", d.path, "error", err)
		}
		cancel()
		errs = append(errs, d.write.Close())
	}
	d.forget()
	d.lease.release()
	if d.private != "" {
		errs = append(errs, os.RemoveAll(d.private))
	}
	if err := errors.Join(errs...); err != nil {
		return fileError(d.path, "cannot close", err)
	}
	return nil
}
