package sqlitestore

import (
	"bufio"
	"bytes"
	"context"
	"crypto/sha256"
	"database/sql"
	"encoding/binary"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/jmoiron/sqlx"
	"github.com/stretchr/testify/require"

	"github.com/sessiontree/sessiontree/eventlog"
)

// openDB opens a database that is closed when the test ends.
func openDB(t testing.TB, path string, o Options) *database {
	t.Helper()
	d, err := openDatabase(t.Context(), path, o)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, d.close()) })
	return d
}

// newPath is the path of a database that is not there yet, in a folder of its own.
func newPath(t testing.TB) string { return filepath.Join(t.TempDir(), "sessions.db") }

// newDB is the path of a database that was created and closed.
func newDB(t testing.TB) string {
	t.Helper()
	path := newPath(t)
	d, err := openDatabase(t.Context(), path, Options{})
	require.NoError(t, err)
	require.NoError(t, d.close())
	return path
}

const insertTombstone = `INSERT INTO tombstones (id, deleted_at) VALUES (?, 'now')`

// add writes a row that count counts.
func (d *database) add(t testing.TB, id string) {
	t.Helper()
	_, err := d.write.Exec(insertTombstone, id)
	require.NoError(t, err)
}

func (d *database) count(t testing.TB) (n int) {
	t.Helper()
	require.NoError(t, d.read.Get(&n, `SELECT count(*) FROM tombstones`))
	return n
}

// leaveWAL puts a database at path whose WAL has a row that the file has not, as
// a process leaves it that was killed.
func leaveWAL(t testing.TB, path string) {
	t.Helper()
	at := newPath(t)
	d := openDB(t, at, Options{})
	d.add(t, "in the WAL")
	for _, suffix := range []string{"", "-wal"} {
		require.NoError(t, copyFile(t.Context(), path+suffix, at+suffix))
	}
	require.Positive(t, stampOf(path+"-wal").size)
}

// contents are the names in a folder with their modes and hashes.
func contents(t testing.TB, dir string) map[string]string {
	t.Helper()
	files := map[string]string{}
	require.NoError(t, filepath.WalkDir(dir, func(path string, e fs.DirEntry, err error) error {
		if err != nil || e.IsDir() {
			return err
		}
		data, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		info, err := e.Info()
		name, _ := filepath.Rel(dir, path)
		files[name] = fmt.Sprintf("%v %d %x", info.Mode(), len(data), sha256.Sum256(data))
		return err
	}))
	return files
}

// Children: this test binary again, running one function.

var children = map[string]func(args []string) error{
	"open": func(args []string) error { // opens when told, says what was logged, closes
		return withDB(args[0], func(d *database) error { return d.checkSchema(context.Background(), d.write) })
	},
	"count": func(paths []string) error { // read-only
		for _, path := range paths {
			d, err := openDatabase(context.Background(), path, Options{ReadOnly: true})
			if err != nil {
				return err
			}
			var n int
			if err := d.read.Get(&n, `SELECT count(*) FROM tombstones`); err != nil {
				return err
			}
			fmt.Println("count", n, "private", d.private != "", "fixed", d.fixed)
			if err := d.close(); err != nil {
				return err
			}
		}
		return nil
	},
	"create in a loop": func(args []string) error { // until it is killed
		for i := 0; ; i++ {
			fmt.Println("creating", i)
			if err := withDB(fmt.Sprintf("%s%d.db", args[0], i), func(*database) error { return nil }); err != nil {
				return err
			}
		}
	},
	"upgrade": func(args []string) error {
		schema = slowSchema()
		fmt.Println("upgrading")
		return withDB(args[0], func(*database) error { return nil })
	},
}

func withDB(path string, f func(*database) error) error {
	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
	defer cancel()
	d, err := openDatabase(ctx, path, Options{Logger: slog.New(slog.NewTextHandler(os.Stdout, nil))})
	if err != nil {
		return err
	}
	if err := f(d); err != nil {
		return err
	}
	return d.close()
}

const childEnv = "SESSIONTREE_DATABASE_CHILD"

func TestDatabaseChild(t *testing.T) {
	name := os.Getenv(childEnv)
	if name == "" {
		t.Skip("runs in a process of its own only")
	}
	if _, err := io.ReadAll(os.Stdin); err != nil { // the starting gun
		t.Fatal(err)
	}
	if err := children[name](strings.Split(os.Getenv(childEnv+"_ARGS"), "\n")); err != nil {
		fmt.Println("failed:", err)
		os.Exit(3)
	}
	os.Exit(0)
}

// child is a process that runs one of children.
type child struct {
	*exec.Cmd
	gun io.WriteCloser // the child begins when it is closed
}

func newChild(t testing.TB, name string, args ...string) *child {
	t.Helper()
	exe, err := os.Executable()
	require.NoError(t, err)
	c := &child{Cmd: exec.Command(exe, "-test.run=^TestDatabaseChild$")}
	c.Env = append(os.Environ(), childEnv+"="+name, childEnv+"_ARGS="+strings.Join(args, "\n"),
		"GORACE=atexit_sleep_ms=0") // with -race, a process sleeps a second before it ends
	c.gun, err = c.StdinPipe()
	require.NoError(t, err)
	return c
}

// start starts the process, which waits for its gun. What it prints is in the
// buffer when it has ended.
func (c *child) start(t testing.TB) *bytes.Buffer {
	t.Helper()
	var out bytes.Buffer
	c.Stdout, c.Stderr = &out, &out
	require.NoError(t, c.Start())
	return &out
}

// run gives what the child printed, and how it ended.
func (c *child) run(t testing.TB) (string, error) {
	t.Helper()
	out := c.start(t)
	c.gun.Close()
	err := c.Wait()
	return out.String(), err
}

// runChild gives what a child printed that must succeed.
func runChild(t testing.TB, name string, args ...string) string {
	t.Helper()
	out, err := newChild(t, name, args...).run(t)
	require.NoError(t, err, out)
	return out
}

// follow starts the child and gives the lines that it prints as they come.
func (c *child) follow(t testing.TB) *bufio.Scanner {
	t.Helper()
	out, err := c.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, c.Start())
	c.gun.Close()
	return bufio.NewScanner(out)
}

// pragmas are the effective values on one connection.
func pragmas(t testing.TB, c *sqlx.Conn, names ...string) map[string]string {
	t.Helper()
	values := map[string]string{}
	for _, name := range names {
		var v string
		require.NoError(t, c.GetContext(t.Context(), &v, "PRAGMA "+name), name)
		values[name] = v
	}
	return values
}

func TestReport_F8_EveryPooledConnectionHasItsSettings(t *testing.T) {
	d := openDB(t, newPath(t), Options{ReadConns: 8})

	// All at the same time, so that no connection is asked twice.
	want := map[string]string{
		"query_only": "1", "busy_timeout": "10000", "journal_mode": "wal", "page_size": "4096",
		"trusted_schema": "0", "cell_size_check": "1", "mmap_size": "0",
	}
	var held []*sqlx.Conn
	for range 8 {
		c, err := d.read.Connx(t.Context())
		require.NoError(t, err)
		held = append(held, c)
	}
	for i, c := range held {
		require.Equal(t, want, pragmas(t, c, "query_only", "busy_timeout", "journal_mode", "page_size", "trusted_schema", "cell_size_check", "mmap_size"), "connection %d", i)
		_, err := c.ExecContext(t.Context(), insertTombstone, "x")
		require.Error(t, err, "readers do not write")
		_, err = c.ExecContext(t.Context(), `PRAGMA query_only = 0`)
		require.NoError(t, err)
		_, err = c.ExecContext(t.Context(), insertTombstone, "x")
		require.Error(t, err, "nor when SQL asks for it")
		require.ErrorIs(t, d.mapError("write", err), eventlog.ErrStorage)
	}
	for _, c := range held {
		require.NoError(t, c.Close())
	}
	require.Equal(t, 8, d.read.Stats().OpenConnections, "idle connections stay")
}

func TestTheWriterHasItsSettingsAlsoAfterItsConnectionWasDropped(t *testing.T) {
	for _, synchronous := range []Synchronous{Full, Normal} {
		t.Run(synchronous.String(), func(t *testing.T) {
			d := openDB(t, newPath(t), Options{Synchronous: synchronous})
			names := []string{"journal_mode", "synchronous", "fullfsync", "checkpoint_fullfsync", "busy_timeout", "wal_autocheckpoint", "journal_size_limit", "trusted_schema", "query_only", "page_size", "application_id"}
			want := map[string]string{
				"journal_mode": "wal", "synchronous": "2", "fullfsync": "1", "checkpoint_fullfsync": "1", "busy_timeout": "5",
				"wal_autocheckpoint": "1000", "journal_size_limit": "67108864", "trusted_schema": "0", "query_only": "0", "page_size": "4096",
				"application_id": fmt.Sprint(applicationID),
			}
			if synchronous == Normal {
				want["synchronous"] = "1"
			}
			check := func() {
				t.Helper()
				c, err := d.write.Connx(t.Context())
				require.NoError(t, err)
				defer c.Close()
				require.Equal(t, want, pragmas(t, c, names...))
			}
			check()

			var before, after int
			require.NoError(t, d.write.Get(&before, `PRAGMA temp_store`))
			_, err := d.write.Exec(`PRAGMA temp_store = 2`) // not ours: it goes with the connection
			require.NoError(t, err)
			ctx, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
			defer cancel()
			_, err = d.write.ExecContext(ctx, `WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) SELECT max(i) FROM n`)
			require.ErrorIs(t, err, context.DeadlineExceeded)
			check()
			require.NoError(t, d.write.Get(&after, `PRAGMA temp_store`))
			require.Equal(t, before, after, "the connection is another one")
		})
	}
}

func TestWritesBeginImmediate(t *testing.T) {
	path := newPath(t)
	a, b := openDB(t, path, Options{}), openDB(t, path, Options{})
	tx, err := a.write.Beginx()
	require.NoError(t, err)
	start := time.Now()
	_, err = b.write.Beginx()
	require.True(t, isBusy(err), "the second one gets no transaction: %v", err)
	require.GreaterOrEqual(t, time.Since(start), writeWait, "and waited a little")
	require.NoError(t, tx.Rollback())
	tx, err = b.write.Beginx()
	require.NoError(t, err)
	require.NoError(t, tx.Rollback())
}

func TestSQLCannotDamageTheFile(t *testing.T) {
	d := openDB(t, newPath(t), Options{})
	_, err := d.write.Exec(`PRAGMA writable_schema = 1`)
	require.NoError(t, err)
	_, err = d.write.Exec(`UPDATE sqlite_schema SET sql = ''`)
	require.Error(t, err)
	_, err = d.write.Exec(`SELECT "no such column"`)
	require.Error(t, err, "a name in double quotes is no string")
}

func TestPathsAreNamesAndNothingElse(t *testing.T) {
	names := []string{
		"a?mode=ro#b", "100% %41%2f", "Ünïcode 会話 🌳", `a&b=c;d+e it's "quoted"`, ":memory:x",
	}
	if runtime.GOOS != "windows" {
		names = append(names, "new\nline\tand back\\slash", "c:drive bytes\xff\xfe")
	} else {
		names = []string{"100% %41%2f #x", "Ünïcode 会話 🌳", "a&b=c;d+e it's"}
	}
	for _, name := range names {
		t.Run(fmt.Sprintf("%q", name), func(t *testing.T) {
			dir := t.TempDir()
			path := filepath.Join(dir, name, name)
			d, err := openDatabase(t.Context(), path, Options{})
			require.NoError(t, err)
			d.add(t, "x")
			require.FileExists(t, path)
			require.FileExists(t, path+"-wal")
			require.NoError(t, d.close())
			d, err = openDatabase(t.Context(), path, Options{ReadOnly: true})
			require.NoError(t, err)
			require.Equal(t, 1, d.count(t))
			require.NoError(t, d.close())
			top, err := os.ReadDir(dir)
			require.NoError(t, err)
			require.Len(t, top, 1)
			files, err := os.ReadDir(filepath.Join(dir, name))
			require.NoError(t, err)
			require.Len(t, files, 1, "no other file was made")
			require.Equal(t, name, files[0].Name())
		})
	}
}

func TestWhatIsNoPathIsRefused(t *testing.T) {
	t.Chdir(t.TempDir())
	for _, path := range []string{"", ":memory:", "file:x.db", "file::memory:?cache=shared", "a\x00b", strings.Repeat("x", 300) + "/" + strings.Repeat("y", 200)} {
		for _, readOnly := range []bool{false, true} {
			_, err := openDatabase(t.Context(), path, Options{ReadOnly: readOnly})
			require.ErrorIs(t, err, eventlog.ErrInvalidArgument, "%q", path)
		}
	}
	left, err := os.ReadDir(".")
	require.NoError(t, err)
	require.Empty(t, left)
}

func TestTheLongestPathWorks(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("its limit is another")
	}
	dir := t.TempDir()
	for len(dir) < maxPath-150 {
		dir = filepath.Join(dir, strings.Repeat("d", 100))
	}
	path := filepath.Join(dir, strings.Repeat("f", maxPath-len(dir)-1))
	require.Len(t, path, maxPath)
	openDB(t, path, Options{}).add(t, "x")
	_, err := openDatabase(t.Context(), path+"f", Options{})
	require.ErrorIs(t, err, eventlog.ErrInvalidArgument)
}

func TestASymbolicLinkIsFollowed(t *testing.T) {
	dir := t.TempDir()
	link := filepath.Join(dir, "link.db")
	if err := os.Symlink(filepath.Join("real", "sessions.db"), link); err != nil {
		t.Skip(err)
	}
	_, err := openDatabase(t.Context(), link, Options{})
	require.ErrorIs(t, err, eventlog.ErrStorage, "to nowhere")
	require.NoError(t, os.Mkdir(filepath.Join(dir, "real"), 0o700))
	real := filepath.Join(dir, "real", "sessions.db")
	openDB(t, real, Options{}).add(t, "x")
	d := openDB(t, link, Options{})
	require.Equal(t, 1, d.count(t))
	require.Equal(t, filepath.Base(real), filepath.Base(d.path))
	require.NoFileExists(t, link+"-wal")
}

func TestOptionsTellAllTheirProblemsAtOnce(t *testing.T) {
	_, err := openDatabase(t.Context(), newPath(t), Options{Synchronous: 7, ReadConns: -1, BusyTimeout: -time.Second})
	require.ErrorIs(t, err, eventlog.ErrInvalidArgument)
	for _, part := range []string{"Synchronous is 7", "ReadConns is -1", "BusyTimeout is -1s"} {
		require.ErrorContains(t, err, part)
	}
	o, err := Options{}.complete()
	require.NoError(t, err)
	require.Equal(t, 10*time.Second, o.BusyTimeout)
	require.GreaterOrEqual(t, o.ReadConns, 4)
	require.Equal(t, Full, o.Synchronous)
}

func TestACancelledContextOpensNothing(t *testing.T) {
	path := newPath(t)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, err := openDatabase(ctx, path, Options{})
	require.ErrorIs(t, err, context.Canceled)
	require.Empty(t, contents(t, filepath.Dir(path)))
}

func TestCloseLeavesOneFileAndClosesOnce(t *testing.T) {
	path := newPath(t)
	d, err := openDatabase(t.Context(), path, Options{})
	require.NoError(t, err)
	d.add(t, "x")
	require.NoError(t, d.close())
	require.NoError(t, d.close())
	require.Len(t, contents(t, filepath.Dir(path)), 1)
	_, err = d.write.Exec(insertTombstone, "y")
	require.ErrorIs(t, d.mapError("write", err), eventlog.ErrClosed)
	require.Equal(t, 1, openDB(t, path, Options{}).count(t))
}

func TestCloseEmptiesTheWALThoughAnotherHasTheDatabaseOpen(t *testing.T) {
	path := newPath(t)
	other := openDB(t, path, Options{})
	require.Zero(t, other.count(t))
	d, err := openDatabase(t.Context(), path, Options{})
	require.NoError(t, err)
	d.add(t, "x")
	require.Positive(t, stampOf(path+"-wal").size)
	require.NoError(t, d.close())
	require.Zero(t, stampOf(path+"-wal").size)
	require.Equal(t, 1, other.count(t))
}

func TestAFileThatWasMovedDeletedOrReplacedIsNoticed(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("open files cannot be moved or deleted there")
	}
	path := newPath(t)
	d := openDB(t, path, Options{})
	require.NoError(t, d.checkFile())
	require.NoError(t, os.Rename(path, path+".moved"))
	require.ErrorIs(t, d.checkFile(), eventlog.ErrStorage)
	require.NoError(t, os.WriteFile(path, []byte("another"), 0o600))
	require.ErrorContains(t, d.checkFile(), "replaced")
	require.NoError(t, os.Rename(path+".moved", path))
	require.NoError(t, d.checkFile())
}

func TestADatabaseWithAWALThatWasLeftOpensWithItsRows(t *testing.T) {
	path := newPath(t)
	leaveWAL(t, path)
	require.Equal(t, 1, openDB(t, path, Options{}).count(t))
}

func TestWhatADeletedDatabaseLeftIsNotReplayedIntoANewOne(t *testing.T) {
	path := newPath(t)
	leaveWAL(t, path)
	require.NoError(t, os.Remove(path))
	wal, err := os.ReadFile(path + "-wal")
	require.NoError(t, err)
	require.Zero(t, openDB(t, path, Options{}).count(t))
	aside, err := os.ReadFile(path + "-wal.orphan")
	require.NoError(t, err, "and not dropped")
	require.Equal(t, wal, aside)
}

// What is no database of ours.

func TestAFileOfAnotherKindIsRefusedAndUntouched(t *testing.T) {
	foreign := func(t *testing.T, wal bool) string {
		path := newPath(t)
		db, err := sql.Open("sqlite", path)
		require.NoError(t, err)
		defer db.Close()
		if wal {
			_, err = db.Exec(`PRAGMA journal_mode = wal`)
			require.NoError(t, err)
		}
		_, err = db.Exec(`CREATE TABLE goose_db_version (version_id INTEGER); INSERT INTO goose_db_version VALUES (1)`)
		require.NoError(t, err)
		if wal { // with a WAL that a checkpoint would empty
			copied := newPath(t)
			require.NoError(t, copyFile(t.Context(), copied, path))
			require.NoError(t, copyFile(t.Context(), copied+"-wal", path+"-wal"))
			return copied
		}
		return path
	}
	text := func(text string) func(*testing.T) string {
		return func(t *testing.T) string {
			path := newPath(t)
			require.NoError(t, os.WriteFile(path, []byte(text), 0o644))
			return path
		}
	}
	header := make([]byte, headerSize)
	copy(header, "SQLite format 3\x00")
	binary.BigEndian.PutUint32(header[68:], 0x0f055112)
	for name, path := range map[string]func(*testing.T) string{
		"a text":                           text("# Read me\n"),
		"one byte":                         text("S"),
		"zeros":                            text(strings.Repeat("\x00", 4096)),
		"a session file":                   text(`{"type":"session","version":3}` + "\n"),
		"a header of another application":  text(string(header)),
		"half a header":                    text("SQLite format 3\x00"),
		"a database of another":            func(t *testing.T) string { return foreign(t, false) },
		"a database of another with a WAL": func(t *testing.T) string { return foreign(t, true) },
	} {
		t.Run(name, func(t *testing.T) {
			path := path(t)
			before := contents(t, filepath.Dir(path))
			for _, readOnly := range []bool{false, true} {
				_, err := openDatabase(t.Context(), path, Options{ReadOnly: readOnly})
				require.ErrorIs(t, err, eventlog.ErrStorage)
				require.ErrorContains(t, err, path)
				require.Equal(t, before, contents(t, filepath.Dir(path)))
			}
		})
	}
	t.Run("a folder", func(t *testing.T) {
		_, err := openDatabase(t.Context(), t.TempDir(), Options{})
		require.ErrorIs(t, err, eventlog.ErrStorage)
	})
}

func TestADamagedDatabaseIsAnError(t *testing.T) {
	path := newDB(t)
	data, err := os.ReadFile(path)
	require.NoError(t, err)
	for i := headerSize; i < len(data); i++ {
		data[i] = 0xa5
	}
	require.NoError(t, os.WriteFile(path, data, 0o600))
	for _, readOnly := range []bool{false, true} {
		_, err = openDatabase(t.Context(), path, Options{ReadOnly: readOnly})
		require.ErrorIs(t, err, eventlog.ErrStorage)
		require.ErrorContains(t, err, path)
	}
}

// Read-only.

func TestReadingAMissingDatabaseIsNotFound(t *testing.T) {
	path := newPath(t)
	_, err := openDatabase(t.Context(), path, Options{ReadOnly: true})
	require.ErrorIs(t, err, eventlog.ErrNotFound)
	_, err = openDatabase(t.Context(), filepath.Join(path, "below", "x.db"), Options{ReadOnly: true})
	require.ErrorIs(t, err, eventlog.ErrNotFound)
	require.NoError(t, os.WriteFile(path, nil, 0o600))
	_, err = openDatabase(t.Context(), path, Options{ReadOnly: true})
	require.ErrorIs(t, err, eventlog.ErrStorage, "an empty file")
	require.Len(t, contents(t, filepath.Dir(path)), 1)
}

func TestReadOnlyWritesNothing(t *testing.T) {
	path := newDB(t)
	before := contents(t, filepath.Dir(path))
	d := openDB(t, path, Options{ReadOnly: true})
	require.True(t, d.readOnly)
	require.Nil(t, d.write)
	require.Zero(t, d.count(t))
	require.Equal(t, before, contents(t, filepath.Dir(path)), "while it is open")
	require.NoError(t, d.close())
	require.Equal(t, before, contents(t, filepath.Dir(path)))
}

func TestReadOnlySeesWhatAnOpenWriterWrote(t *testing.T) {
	path := newPath(t)
	w := openDB(t, path, Options{})
	r := openDB(t, path, Options{ReadOnly: true})
	require.Zero(t, r.count(t))
	w.add(t, "x")
	require.Equal(t, 1, r.count(t))
	require.False(t, r.outdated())
}

func TestReadOnlyLeavesALeftWALAsItIs(t *testing.T) {
	path := newPath(t)
	leaveWAL(t, path)
	before := contents(t, filepath.Dir(path))
	d, err := openDatabase(t.Context(), path, Options{ReadOnly: true})
	require.NoError(t, err)
	require.Equal(t, 1, d.count(t))
	require.NoError(t, d.close())
	after := contents(t, filepath.Dir(path))
	delete(after, filepath.Base(path)+"-shm") // the WAL's index
	require.Equal(t, before, after)
}

func TestAReaderOfAnUnusedDatabaseNoticesAWriter(t *testing.T) {
	path := newDB(t)
	r := openDB(t, path, Options{ReadOnly: true})
	require.True(t, r.fixed)
	require.False(t, r.outdated())
	w := openDB(t, path, Options{})
	w.add(t, "x")
	require.True(t, r.outdated())
	require.Equal(t, 1, openDB(t, path, Options{ReadOnly: true}).count(t))
}

// Network file systems.

// onNetwork makes every folder look like one of another machine.
func onNetwork(t *testing.T) {
	detect := fileSystemOf
	fileSystemOf = func(string) (string, bool, error) { return "nfs", true, nil }
	t.Cleanup(func() { fileSystemOf = detect })
}

func TestReport_G4_ANetworkFileSystemIsRefusedWithTheReason(t *testing.T) {
	onNetwork(t)
	path := filepath.Join(newPath(t), "below", "x.db")
	_, err := openDatabase(t.Context(), path, Options{})
	require.ErrorIs(t, err, eventlog.ErrStorage)
	for _, part := range []string{path, "(nfs)", "WAL", "AllowNetworkFS"} {
		require.ErrorContains(t, err, part)
	}
	require.NoDirExists(t, filepath.Dir(path))
}

func TestReport_G4_AllowedThereItHasARollbackJournalAndOneProcess(t *testing.T) {
	onNetwork(t)
	path := newPath(t)
	var log bytes.Buffer
	o := Options{AllowNetworkFS: true, ReadConns: 4, Logger: slog.New(slog.NewTextHandler(&log, nil))}
	d, err := openDatabase(t.Context(), path, o)
	require.NoError(t, err)
	require.Contains(t, log.String(), "nfs")
	d.add(t, "x")
	require.Equal(t, 1, d.count(t))
	for _, db := range []*sqlx.DB{d.read, d.write} {
		c, err := db.Connx(t.Context())
		require.NoError(t, err)
		require.NotEqual(t, "wal", pragmas(t, c, "journal_mode")["journal_mode"])
		require.NoError(t, c.Close())
	}
	require.NoFileExists(t, path+"-shm")
	require.NoFileExists(t, path+"-wal")

	// Readers and the writer of this process take turns.
	var wg sync.WaitGroup
	for g := range 4 {
		wg.Go(func() {
			for i := range 20 {
				if g == 0 {
					_, err := d.write.Exec(insertTombstone, fmt.Sprint(g, i))
					require.NoError(t, err)
				}
				var n int
				require.NoError(t, d.read.Get(&n, `SELECT count(*) FROM tombstones`))
			}
		})
	}
	wg.Wait()
	require.Equal(t, 21, d.count(t))

	o.BusyTimeout = 50 * time.Millisecond
	_, err = openDatabase(t.Context(), path, o)
	require.ErrorIs(t, err, eventlog.ErrBusy, "another writer")
	r := openDB(t, path, Options{ReadOnly: true})
	require.Equal(t, 21, r.count(t), "a reader may")
	require.NoError(t, d.close())
	require.Len(t, contents(t, filepath.Dir(path)), 1, "not even the lock is left")
}

func TestReport_G4_ADatabaseMovesBetweenNetworkAndLocal(t *testing.T) {
	path := newPath(t)
	leaveWAL(t, path)
	t.Run("to the network", func(t *testing.T) {
		onNetwork(t)
		r, err := openDatabase(t.Context(), path, Options{ReadOnly: true})
		require.NoError(t, err)
		require.NotEmpty(t, r.private, "no shared memory there: its WAL is read in a copy")
		require.Equal(t, 1, r.count(t))
		require.NoError(t, r.close())
		require.NoDirExists(t, r.private)
		require.NoFileExists(t, path+"-shm")

		d := openDB(t, path, Options{AllowNetworkFS: true})
		require.Equal(t, 1, d.count(t))
		require.NoFileExists(t, path+"-wal")
	})
	t.Run("and back", func(t *testing.T) {
		d := openDB(t, path, Options{})
		require.Equal(t, 1, d.count(t))
		var mode string
		require.NoError(t, d.read.Get(&mode, `PRAGMA journal_mode`))
		require.Equal(t, "wal", mode)
	})
}

func TestReport_G4_TheFolderOfThisTestIsLocal(t *testing.T) {
	name, network, err := detectFileSystem(t.TempDir())
	require.NoError(t, err)
	if network {
		t.Skip("it is not: ", name)
	}
	require.NotEmpty(t, name)
	_, _, err = detectFileSystem(newPath(t))
	require.ErrorIs(t, err, fs.ErrNotExist)
}

// A copy that is too big is refused.
func TestAPrivateCopyHasALimit(t *testing.T) {
	path := newPath(t)
	leaveWAL(t, path)
	onNetwork(t)
	limit := maxPrivateCopy
	maxPrivateCopy = 4096
	t.Cleanup(func() { maxPrivateCopy = limit })
	t.Setenv("TMPDIR", t.TempDir())
	_, err := openDatabase(t.Context(), path, Options{ReadOnly: true})
	require.ErrorIs(t, err, eventlog.ErrStorage)
	require.ErrorContains(t, err, "too big")
	left, err := os.ReadDir(os.TempDir())
	require.NoError(t, err)
	require.Empty(t, left, "the folder of the copy is gone")
}

func TestOpenIsFast(t *testing.T) {
	path := newDB(t)
	for _, readOnly := range []bool{false, true} {
		best := time.Hour
		for range 8 {
			start := time.Now()
			d, err := openDatabase(t.Context(), path, Options{ReadOnly: readOnly})
			best = min(best, time.Since(start))
			require.NoError(t, err)
			require.NoError(t, d.close())
		}
		t.Logf("read-only %v: %v", readOnly, best)
		require.Less(t, best, 100*time.Millisecond) // 1.0 and 0.4 ms, 20 times as much with -race
	}
}

func BenchmarkOpen(b *testing.B) {
	path := newDB(b)
	run := func(name string, path func(i int) string, o Options) {
		b.Run(name, func(b *testing.B) {
			for i := 0; b.Loop(); i++ {
				d, err := openDatabase(b.Context(), path(i), o)
				require.NoError(b, err)
				b.StopTimer()
				require.NoError(b, d.close())
				b.StartTimer()
			}
		})
	}
	same := func(int) string { return path }
	run("current", same, Options{})
	run("read-only", same, Options{ReadOnly: true})
	dir := b.TempDir()
	run("create", func(i int) string { return filepath.Join(dir, fmt.Sprint(i, ".db")) }, Options{})
	b.Run("in use", func(b *testing.B) {
		openDB(b, path, Options{})
		for b.Loop() {
			d, err := openDatabase(b.Context(), path, Options{})
			require.NoError(b, err)
			b.StopTimer()
			require.NoError(b, d.close())
			b.StartTimer()
		}
	})
}
