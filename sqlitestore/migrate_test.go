package sqlitestore

import (
	"bytes"
	"context"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"testing/fstest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/sessiontree/sessiontree/eventlog"
	"github.com/sessiontree/sessiontree/migrations"
)

// withMigration is the real schema and one more migration.
func withMigration(up string) fs.FS {
	all := fstest.MapFS{}
	names, err := fs.Glob(migrations.FS, "*.sql")
	if err != nil {
		panic(err)
	}
	for _, name := range names {
		data, err := fs.ReadFile(migrations.FS, name)
		if err != nil {
			panic(err)
		}
		all[name] = &fstest.MapFile{Data: data}
	}
	all["90000_test.sql"] = &fstest.MapFile{Data: []byte("-- +goose Up\n" + up)}
	return all
}

// slowSchema has a migration of many steps that can be cut off between any two.
func slowSchema() fs.FS {
	var up strings.Builder
	for i := range 10 {
		fmt.Fprintf(&up, "CREATE TABLE step%02d (x INTEGER) STRICT;\n", i)
		fmt.Fprintf(&up, "INSERT INTO step%02d WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 200) SELECT i FROM n;\n", i)
	}
	return withMigration(up.String())
}

// nextSchema has a small migration.
func nextSchema() fs.FS {
	return withMigration("CREATE TABLE next (x INTEGER) STRICT;\nALTER TABLE sessions ADD COLUMN note TEXT;\n")
}

func useSchema(t testing.TB, s fs.FS) {
	old := schema
	schema = s
	t.Cleanup(func() { schema = old })
}

func schemaOf(t testing.TB, d *database) (all []struct{ Type, Name, SQL string }) {
	t.Helper()
	require.NoError(t, d.read.Select(&all, `SELECT type, name, coalesce(sql, '') AS sql FROM sqlite_schema ORDER BY type, name`))
	return all
}

func TestReport_F7_ManyProcessesCreateTheDatabaseAtOnce(t *testing.T) {
	path := filepath.Join(t.TempDir(), "new", "folder", "sessions.db")
	var procs [8]*child
	var outs [8]*bytes.Buffer
	for i := range procs {
		procs[i] = newChild(t, "open", path)
		outs[i] = procs[i].start(t)
	}
	for _, c := range procs {
		c.gun.Close()
	}
	created := 0
	for i, c := range procs {
		require.NoError(t, c.Wait(), outs[i])
		created += strings.Count(outs[i].String(), "database created")
	}
	require.Equal(t, 1, created, "one creates, the others wait")
	require.Len(t, contents(t, filepath.Dir(path)), 1, "nothing is left beside it")
	d := openDB(t, path, Options{})
	require.NoError(t, d.checkSchema(t.Context(), d.write))
}

func TestReport_F7_ManyGoroutinesUpgradeTheDatabaseAtOnce(t *testing.T) {
	path := newDB(t)
	useSchema(t, nextSchema())
	var wg sync.WaitGroup
	errs := make([]error, 8)
	for i := range errs {
		wg.Go(func() {
			d, err := openDatabase(t.Context(), path, Options{})
			if err == nil {
				err = d.close()
			}
			errs[i] = err
		})
	}
	wg.Wait()
	for _, err := range errs {
		require.NoError(t, err)
	}
}

func TestReport_F7_TheWaitEndsWithTheCallersDeadline(t *testing.T) {
	path := newPath(t)
	held, err := tryLockFile(path + ".lock")
	require.NoError(t, err)
	require.NotNil(t, held)

	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Millisecond)
	defer cancel()
	_, err = openDatabase(ctx, path, Options{BusyTimeout: time.Hour})
	require.ErrorIs(t, err, context.DeadlineExceeded)
	require.ErrorIs(t, err, eventlog.ErrBusy)

	_, err = openDatabase(t.Context(), path, Options{BusyTimeout: 30 * time.Millisecond})
	require.ErrorIs(t, err, eventlog.ErrBusy, "without one after the busy timeout")
	require.ErrorContains(t, err, path)
	require.NoFileExists(t, path)

	time.AfterFunc(30*time.Millisecond, held.release)
	openDB(t, path, Options{})
	require.NoFileExists(t, path+".lock")
}

func TestACurrentDatabaseOpensWithoutTheLock(t *testing.T) {
	path := newDB(t)
	held, err := tryLockFile(path + ".lock")
	require.NoError(t, err)
	defer held.release()
	before := contents(t, filepath.Dir(path))
	d, err := openDatabase(t.Context(), path, Options{BusyTimeout: time.Millisecond})
	require.NoError(t, err)
	require.NoError(t, d.close())
	require.Equal(t, before, contents(t, filepath.Dir(path)), "and unchanged")
}

func TestOnlyOneHandleGetsTheLock(t *testing.T) {
	name := newPath(t) + ".lock"
	var wg sync.WaitGroup
	var mu sync.Mutex
	inside, most, got := 0, 0, 0
	for range 8 {
		wg.Go(func() {
			for range 50 {
				lock, err := tryLockFile(name)
				require.NoError(t, err)
				if lock == nil {
					continue
				}
				mu.Lock()
				inside++
				got++
				most = max(most, inside)
				mu.Unlock()
				time.Sleep(10 * time.Microsecond)
				mu.Lock()
				inside--
				mu.Unlock()
				lock.release()
			}
		})
	}
	wg.Wait()
	require.Equal(t, 1, most)
	require.Positive(t, got)
}

func TestReport_H1_AFileThatIsThereIsNotTakenForASchemaThatIs(t *testing.T) {
	t.Run("an empty file", func(t *testing.T) {
		path := newPath(t)
		require.NoError(t, os.WriteFile(path, nil, 0o644))
		d := openDB(t, path, Options{})
		require.NoError(t, d.checkSchema(t.Context(), d.write))
		d.add(t, "x")
	})
	t.Run("our mark and nothing else", func(t *testing.T) {
		path := newPath(t)
		require.NoError(t, createFile(path))
		db := connect(path, 1, nil)
		_, err := db.Exec(fmt.Sprintf(`PRAGMA application_id = %d`, applicationID))
		require.NoError(t, err)
		require.NoError(t, db.Close())
		_, err = openDatabase(t.Context(), path, Options{ReadOnly: true})
		require.ErrorContains(t, err, "open it once for writing")
		d := openDB(t, path, Options{})
		require.NoError(t, d.checkSchema(t.Context(), d.write))
		d.add(t, "x")
	})
	t.Run("what a creation that was killed left", func(t *testing.T) {
		path := newPath(t)
		for _, suffix := range []string{".new", ".new-journal", ".new-wal", ".lock"} {
			require.NoError(t, os.WriteFile(path+suffix, []byte("half"), 0o600))
		}
		d, err := openDatabase(t.Context(), path, Options{})
		require.NoError(t, err)
		require.NoError(t, d.checkSchema(t.Context(), d.write))
		require.NoError(t, d.close())
		require.Len(t, contents(t, filepath.Dir(path)), 1)
	})
}

func TestReport_H5_ACreationThatWasKilledIsDoneAgain(t *testing.T) {
	base := filepath.Join(t.TempDir(), "db")
	total := 0
	for range 3 {
		c := newChild(t, "create in a loop", base)
		printed := c.follow(t)
		require.True(t, printed.Scan())
		time.Sleep(rand.N(40 * time.Millisecond))
		require.NoError(t, c.Process.Kill())
		last := printed.Text()
		for printed.Scan() {
			last = printed.Text()
		}
		_ = c.Wait()
		require.NotContains(t, last, "failed")
		files, err := filepath.Glob(base + "*.db")
		require.NoError(t, err)
		new, err := filepath.Glob(base + "*.db.new")
		require.NoError(t, err)
		for _, f := range append(files, new...) {
			d, err := openDatabase(t.Context(), strings.TrimSuffix(f, ".new"), Options{})
			require.NoError(t, err)
			require.NoError(t, d.checkSchema(t.Context(), d.write))
			var ok string
			require.NoError(t, d.read.Get(&ok, `PRAGMA integrity_check`))
			require.Equal(t, "ok", ok)
			require.NoError(t, d.close())
			require.NoError(t, removeDatabase(d.path))
			total++
		}
		left, err := filepath.Glob(base + "*")
		require.NoError(t, err)
		for _, name := range left {
			require.Equal(t, ".lock", filepath.Ext(name), "nothing else is left")
		}
	}
	require.Positive(t, total)
}

func TestReport_H5_AnUpgradeThatWasKilledIsWholeOrUndone(t *testing.T) {
	useSchema(t, slowSchema())
	fresh := openDB(t, newPath(t), Options{})
	want := schemaOf(t, fresh)
	undone := 0
	for i := range 3 {
		schema = migrations.FS
		path := newDB(t)
		c := newChild(t, "upgrade", path)
		require.True(t, c.follow(t).Scan())
		time.Sleep(time.Duration(i) * 10 * time.Millisecond)
		require.NoError(t, c.Process.Kill())
		_ = c.Wait()

		if d, err := openDatabase(t.Context(), path, Options{}); err == nil { // still the old one
			require.NoError(t, d.checkSchema(t.Context(), d.write))
			var steps int
			require.NoError(t, d.read.Get(&steps, `SELECT count(*) FROM sqlite_schema WHERE name LIKE 'step%'`))
			require.Zero(t, steps, "nothing of the new one")
			require.NoError(t, d.close())
			undone++
		} else {
			var newer *SchemaError
			require.ErrorAs(t, err, &newer)
		}
		schema = slowSchema()
		d := openDB(t, path, Options{})
		require.Equal(t, want, schemaOf(t, d))
	}
	t.Logf("%d of 3 were cut off", undone)
	require.Positive(t, undone)
}

func TestReport_H5_AMigrationThatFailsChangesNothing(t *testing.T) {
	path := newDB(t)
	before := contents(t, filepath.Dir(path))
	useSchema(t, withMigration("CREATE TABLE made (x INTEGER) STRICT;\nINSERT INTO nowhere VALUES (1);\n"))
	_, err := openDatabase(t.Context(), path, Options{})
	require.ErrorIs(t, err, eventlog.ErrStorage)
	require.ErrorContains(t, err, path)
	require.Equal(t, before, contents(t, filepath.Dir(path)))

	none := newPath(t)
	_, err = openDatabase(t.Context(), none, Options{})
	require.ErrorIs(t, err, eventlog.ErrStorage)
	require.Empty(t, contents(t, filepath.Dir(none)), "nor does it make half a database")
}

func TestReport_H5_ASchemaThatLacksAColumnIsAnError(t *testing.T) {
	path := newPath(t)
	d := openDB(t, path, Options{})
	for _, harm := range []string{`ALTER TABLE heads DROP COLUMN cost`, `DROP INDEX events_by_n`, `DROP TRIGGER events_are_never_deleted`} {
		_, err := d.write.Exec(harm)
		require.NoError(t, err)
	}
	_, err := d.write.Exec(`CREATE VIEW mine AS SELECT 1`)
	require.NoError(t, err)
	err = d.checkSchema(t.Context(), d.write)
	require.ErrorIs(t, err, eventlog.ErrStorage)
	for _, part := range []string{"heads", "irregular", "index events_by_n", "trigger events_are_never_deleted"} {
		require.ErrorContains(t, err, part)
	}
	require.NotContains(t, err.Error(), "mine", "more than ours may be there")
}

func TestAnUpgradedSchemaIsAFreshOne(t *testing.T) {
	path := newPath(t)
	d, err := openDatabase(t.Context(), path, Options{})
	require.NoError(t, err)
	d.add(t, "kept")
	require.NoError(t, d.close())
	useSchema(t, nextSchema())
	_, err = openDatabase(t.Context(), path, Options{ReadOnly: true})
	var older *SchemaError
	require.ErrorAs(t, err, &older, "read-only does not upgrade")
	require.Less(t, older.Version, older.Supported)
	upgraded, fresh := openDB(t, path, Options{}), openDB(t, newPath(t), Options{})
	require.Equal(t, schemaOf(t, fresh), schemaOf(t, upgraded))
	require.Equal(t, 1, upgraded.count(t))
}

func TestAnUpgradeWaitsForAWriter(t *testing.T) {
	path := newPath(t)
	d := openDB(t, path, Options{})
	tx, err := d.write.Beginx()
	require.NoError(t, err)
	useSchema(t, nextSchema())

	ctx, cancel := context.WithTimeout(t.Context(), time.Second)
	defer cancel()
	_, err = openDatabase(ctx, path, Options{})
	require.ErrorIs(t, err, context.DeadlineExceeded)
	require.ErrorIs(t, err, eventlog.ErrBusy)
	time.AfterFunc(50*time.Millisecond, func() { _ = tx.Rollback() })
	openDB(t, path, Options{})
}

func TestReport_H6_ANewerDatabaseIsRefusedAndUntouched(t *testing.T) {
	for _, left := range []bool{false, true} {
		t.Run(fmt.Sprintf("with a WAL that was left %v", left), func(t *testing.T) {
			path := newPath(t)
			t.Run("made", func(t *testing.T) {
				useSchema(t, withMigration("CREATE TABLE newer (x INTEGER) STRICT;\n"))
				if left {
					leaveWAL(t, path)
				} else {
					openDB(t, path, Options{})
				}
			})
			before := contents(t, filepath.Dir(path))
			for _, readOnly := range []bool{false, true} {
				_, err := openDatabase(t.Context(), path, Options{ReadOnly: readOnly})
				require.ErrorIs(t, err, eventlog.ErrStorage)
				var newer *SchemaError
				require.ErrorAs(t, err, &newer)
				latest, err2 := latestVersion()
				require.NoError(t, err2)
				require.Equal(t, SchemaError{newer.Path, 90000, latest}, *newer)
				for _, part := range []string{path, "newer sessiontree", "90000", fmt.Sprint(latest)} {
					require.ErrorContains(t, err, part)
				}
			}
			after := contents(t, filepath.Dir(path))
			delete(after, filepath.Base(path)+"-shm") // the WAL's index
			if !left {
				delete(after, filepath.Base(path)+"-wal") // without content
			}
			require.Equal(t, before, after)
		})
	}
}
