package sqlitestore

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/jmoiron/sqlx"
	"github.com/pressly/goose/v3"
	sqlite3 "modernc.org/sqlite/lib"

	"github.com/sessiontree/sessiontree/eventlog"
	"github.com/sessiontree/sessiontree/eventlog/osfile"
	"github.com/sessiontree/sessiontree/migrations"
)

// schema has the migrations. Tests put others here.
var schema fs.FS = migrations.FS

// pageSize is that of new databases. Pages of 8 KB scan 19% faster and are 13%
// smaller, but a single durable append, what users wait for, takes 15% longer.
const pageSize = 4096

// latestVersion is the schema version that this program writes.
func latestVersion() (int64, error) {
	names, err := fs.Glob(schema, "*.sql")
	if err != nil {
		return 0, err
	}
	var latest int64
	for _, name := range names {
		version, err := goose.NumericComponent(name)
		if err != nil {
			return 0, fmt.Errorf("migration %s: %w", name, err)
		}
		latest = max(latest, version)
	}
	return latest, nil
}

// schemaVersion is the version of a database's schema, 0 if it has none yet.
func schemaVersion(ctx context.Context, db *sqlx.DB) (int64, error) {
	var version int64
	err := db.GetContext(ctx, &version, `SELECT coalesce(max(version_id), 0) FROM goose_db_version`)
	if resultCode(err) == sqlite3.SQLITE_ERROR { // the table may not be there
		var tables int
		if err := db.GetContext(ctx, &tables, `SELECT count(*) FROM sqlite_schema WHERE name = 'goose_db_version'`); err != nil {
			return 0, err
		}
		if tables == 0 {
			return 0, nil
		}
	}
	return version, err
}

// isOlder says whether a schema must be upgraded. It refuses one that is newer
// than this program.
func (d *database) isOlder(ctx context.Context, db *sqlx.DB) (bool, error) {
	latest, err := latestVersion()
	if err != nil {
		return false, err
	}
	version, err := schemaVersion(ctx, db)
	if err == nil && version > latest {
		err = &eventlog.Error{
			Code:    eventlog.StorageFailed,
			Message: d.path + " was written by a newer sessiontree, and needs that one or a newer one; nothing was changed",
			Err:     &SchemaError{d.path, version, latest},
		}
	}
	return version < latest, err
}

// isCurrent says whether the database is there and has this program's schema. It
// takes no lock of ours and writes nothing to the database, whatever it finds:
// the connection is a read-only one, which makes no checkpoint either. If it is
// current, d.read is left open.
func (d *database) isCurrent(ctx context.Context) (bool, error) {
	state, err := d.examine()
	if err != nil || !state.exists || state.empty || !state.wal {
		return false, err
	}
	d.openRead(url.Values{"mode": {"ro"}})
	older, err := d.isOlder(ctx, d.read)
	if err == nil && !older {
		return true, nil
	}
	d.closeRead()
	if err != nil && cannotOpenSo(err) {
		err = nil // say, a write that was cut off, which only a writer can undo
	}
	return false, err
}

// setUp creates the database, or upgrades it, while no other process does. What
// was cut off in the middle is completed.
func (d *database) setUp(ctx context.Context) error {
	if !d.exclusive { // else the lock is held already
		lock, err := d.lock(ctx)
		if err != nil {
			return err
		}
		defer lock.release()
		if current, err := d.isCurrent(ctx); current || err != nil { // another did it while this one waited
			return err
		}
	}
	start := time.Now()
	state, err := d.examine()
	if err != nil {
		return err
	}
	if state.exists && !state.empty {
		if err := d.upgrade(ctx); err != nil {
			return d.mapError("cannot upgrade", err)
		}
		d.remember(!d.exclusive)
		return nil
	}
	if err := d.create(ctx); err != nil {
		return d.mapError("cannot create", err)
	}
	d.o.Logger.InfoContext(ctx, "database created", "path", d.path, "took", time.Since(start))
	_, err = d.examine()
	return err
}

// create makes a database under another name, and gives it its own when it is
// whole and on the disk. So it needs to be careful only once, where a database
// that grows in place would sync 14 times.
func (d *database) create(ctx context.Context) (err error) {
	temp := d.path + ".new"
	defer func() {
		if err != nil {
			removeDatabase(temp)
		}
	}()
	if err := removeDatabase(temp); err != nil { // of one that was cut off
		return err
	}
	if err := createFile(temp); err != nil {
		return err
	}
	db := connect(temp, 1, nil, "journal_mode(memory)", "synchronous(off)")
	defer db.Close()
	for _, pragma := range []string{
		"locking_mode = exclusive", // and so no shared memory for the WAL
		fmt.Sprintf("page_size = %d", pageSize),
		fmt.Sprintf("application_id = %d", applicationID),
	} {
		if _, err := db.ExecContext(ctx, "PRAGMA "+pragma); err != nil {
			return err
		}
	}
	if _, err := runMigrations(ctx, db); err != nil {
		return err
	}
	if err := d.setJournal(ctx, db); err != nil {
		return err
	}
	if err := db.Close(); err != nil {
		return err
	}
	if err := syncFile(temp); err != nil {
		return err
	}
	if info, err := os.Stat(d.path); err == nil && info.Size() > 0 {
		return eventlog.Errorf(eventlog.StorageFailed, "%s: another program wrote the file meanwhile", d.path)
	}
	if err := d.setOrphansAside(ctx); err != nil {
		return err
	}
	if err := os.Rename(temp, d.path); err != nil {
		return err
	}
	_ = osfile.SyncDir(filepath.Dir(d.path))
	return nil
}

// setOrphansAside moves what a database that was deleted or moved away left
// beside it: SQLite would replay such a WAL or journal into the new one. What has
// no content goes.
func (d *database) setOrphansAside(ctx context.Context) error {
	for _, suffix := range []string{"-wal", "-journal", "-shm"} {
		name := d.path + suffix
		switch size := stampOf(name).size; {
		case size < 0:
		case size == 0 || suffix == "-shm":
			if err := os.Remove(name); err != nil {
				return err
			}
		default:
			aside := name + ".orphan"
			for i := 2; stampOf(aside).size >= 0; i++ {
				aside = fmt.Sprintf("%s.orphan%d", name, i)
			}
			if err := os.Rename(name, aside); err != nil {
				return err
			}
			d.o.Logger.WarnContext(ctx, "a database without its log was here: the log is set aside", "path", d.path, "log", aside)
		}
	}
	return nil
}

// upgrade brings the schema and the journal mode of a database to what this
// program has. Each migration commits with the row of its version.
func (d *database) upgrade(ctx context.Context) error {
	db := connect(d.path, 1, url.Values{"mode": {"rw"}, "_txlock": {"immediate"}},
		busyTimeout(d.o.BusyTimeout), "fullfsync(1)", "checkpoint_fullfsync(1)", "synchronous(full)")
	defer db.Close()
	// One by one, not in the DSN, which runs its pragmas in the order of the
	// alphabet. On a network file system the lock comes before the first access,
	// which then makes no shared memory.
	if d.exclusive {
		if _, err := db.ExecContext(ctx, `PRAGMA locking_mode = exclusive`); err != nil {
			return err
		}
	}
	if err := d.setJournal(ctx, db); err != nil {
		return err
	}
	if older, err := d.isOlder(ctx, db); err != nil || !older {
		return err
	}
	if err := d.waitForWriters(ctx, db); err != nil {
		return err
	}
	results, err := runMigrations(ctx, db)
	if err != nil {
		return err
	}
	for _, r := range results {
		d.o.Logger.InfoContext(ctx, "schema migration applied", "path", d.path, "version", r.Source.Version, "took", r.Duration)
	}
	return d.checkSchema(ctx, db)
}

// waitForWriters waits until no other process writes, so that a caller whose
// deadline passes meanwhile is told what it waited for.
func (d *database) waitForWriters(ctx context.Context, db *sqlx.DB) error {
	tx, err := db.BeginTxx(ctx, nil)
	if errors.Is(err, context.DeadlineExceeded) {
		return waited(ctx, &eventlog.Error{Code: eventlog.Busy, Message: "cannot upgrade " + d.path, Err: errWaited})
	}
	if err != nil {
		return err
	}
	return tx.Rollback()
}

// setJournal makes the database keep a WAL, or where it is used alone a rollback
// journal. SQLite answers with the mode that there is, and no error.
func (d *database) setJournal(ctx context.Context, db *sqlx.DB) error {
	want := d.journalMode()
	var mode string
	if err := db.GetContext(ctx, &mode, `PRAGMA journal_mode = `+want); err != nil {
		return err
	}
	if mode != want {
		return eventlog.Errorf(eventlog.StorageFailed, "%s: the journal mode stays %s, %s is needed", d.path, mode, want)
	}
	return nil
}

// runMigrations applies what is missing, each migration with the row of its
// version in one transaction.
func runMigrations(ctx context.Context, db *sqlx.DB) ([]*goose.MigrationResult, error) {
	p, err := goose.NewProvider(goose.DialectSQLite3, db.DB, schema, goose.WithLogger(goose.NopLogger()), goose.WithDisableGlobalRegistry(true))
	if err != nil {
		return nil, err
	}
	return p.Up(ctx) // no p.Close: it would close db
}

// checkSchema fails when a table, index, view or trigger, or a column of one,
// that this program's migrations make is not there. More than those may be: an
// analyst's views are welcome.
func (d *database) checkSchema(ctx context.Context, db *sqlx.DB) error {
	fresh, err := freshSchema(ctx)
	if err != nil {
		return err
	}
	have, err := schemaObjects(ctx, db)
	if err != nil {
		return err
	}
	var missing []string
	for _, o := range fresh {
		if i, ok := slices.BinarySearchFunc(have, o, compareObjects); !ok {
			missing = append(missing, o.Type+" "+o.Name)
		} else if have[i].Columns != o.Columns {
			missing = append(missing, fmt.Sprintf("%s %s with the columns %s (it has %s)", o.Type, o.Name, o.Columns, have[i].Columns))
		}
	}
	if missing != nil {
		return eventlog.Errorf(eventlog.StorageFailed, "%s: the schema lacks %s", d.path, strings.Join(missing, ", "))
	}
	return nil
}

// schemaObject is a row of sqlite_schema.
type schemaObject struct {
	Type, Name, Columns string
}

func compareObjects(a, b schemaObject) int {
	if c := strings.Compare(a.Type, b.Type); c != 0 {
		return c
	}
	return strings.Compare(a.Name, b.Name)
}

func schemaObjects(ctx context.Context, db *sqlx.DB) (objects []schemaObject, err error) {
	err = db.SelectContext(ctx, &objects, `
		SELECT type, name, coalesce((SELECT group_concat(x.name, ' ') FROM pragma_table_xinfo(m.name) x), '') AS columns
		FROM sqlite_schema m ORDER BY type, name`)
	return objects, err
}

// freshSchema is what the migrations make of an empty database.
func freshSchema(ctx context.Context) ([]schemaObject, error) {
	db, err := sqlx.Open("sqlite", "file::memory:")
	if err != nil {
		return nil, err
	}
	defer db.Close()
	db.SetMaxOpenConns(1)
	if _, err := runMigrations(ctx, db); err != nil {
		return nil, err
	}
	return schemaObjects(ctx, db)
}
