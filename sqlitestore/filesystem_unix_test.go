//go:build unix

package sqlitestore

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"
)

var umasks = []int{0, 0o022, 0o277}

func init() {
	children["modes"] = func(dirs []string) error { // makes a database in each, with its umask, and says all modes
		for i, dir := range dirs {
			syscall.Umask(umasks[i])
			err := withDB(filepath.Join(dir, "a", "b", "sessions.db"), func(d *database) error {
				if _, err := d.write.Exec(insertTombstone, "x"); err != nil {
					return err
				}
				lock, err := tryLockFile(d.path + ".lock")
				if err != nil {
					return err
				}
				defer lock.release()
				return filepath.Walk(dir, func(path string, info os.FileInfo, err error) error {
					if err == nil && path != dir {
						fmt.Printf("mode %04o %v %s\n", umasks[i], info.Mode(), strings.TrimPrefix(path, dir))
					}
					return err
				})
			})
			if err != nil {
				return err
			}
		}
		return nil
	}
	children["count as nobody"] = func(args []string) error {
		if err := syscall.Setuid(65534); err != nil {
			return err
		}
		return children["count"](args)
	}
	children["open as nobody"] = func(args []string) error {
		if err := syscall.Setuid(65534); err != nil {
			return err
		}
		return children["open"](args)
	}
}

func TestReport_N1_FilesAndFoldersAreTheirOwnersWhateverTheUmask(t *testing.T) {
	out := runChild(t, "modes", t.TempDir(), t.TempDir(), t.TempDir())
	var modes []string
	for line := range strings.Lines(out) {
		if strings.HasPrefix(line, "mode ") {
			modes = append(modes, strings.TrimSpace(line))
		}
	}
	var want []string
	for _, umask := range umasks {
		for _, file := range []string{
			"drwx------ /a",
			"drwx------ /a/b",
			"-rw------- /a/b/sessions.db",
			"-rw------- /a/b/sessions.db-shm",
			"-rw------- /a/b/sessions.db-wal",
			"-rw------- /a/b/sessions.db.lock",
		} {
			want = append(want, fmt.Sprintf("mode %04o %s", umask, file))
		}
	}
	require.Equal(t, want, modes, out)
}

func TestReport_N1_AnEmptyFileThatIsTakenOverGetsItsMode(t *testing.T) {
	path := newPath(t)
	require.NoError(t, os.WriteFile(path, nil, 0o600))
	require.NoError(t, os.Chmod(path, 0o666))
	openDB(t, path, Options{})
	info, err := os.Stat(path)
	require.NoError(t, err)
	require.Equal(t, os.FileMode(0o600), info.Mode())
}

func TestReport_N1_APrivateCopyIsItsOwners(t *testing.T) {
	path := newPath(t)
	leaveWAL(t, path)
	require.NoError(t, os.Chmod(path, 0o644))
	onNetwork(t)
	old := syscall.Umask(0)
	d := openDB(t, path, Options{ReadOnly: true})
	syscall.Umask(old)
	require.Equal(t, 1, d.count(t))
	info, err := os.Stat(d.private)
	require.NoError(t, err)
	require.Equal(t, os.FileMode(0o700), info.Mode().Perm())
	files, err := os.ReadDir(d.private)
	require.NoError(t, err)
	require.Len(t, files, 3)
	for _, f := range files {
		info, err := f.Info()
		require.NoError(t, err)
		require.Equal(t, os.FileMode(0o600), info.Mode(), f.Name())
	}
}

// readOnlyFolder makes a folder and its files unwritable for the one who reads
// it: another user if this is root, who may write everywhere.
func readOnlyFolder(t *testing.T, dir string) (as string) {
	t.Helper()
	entries, err := os.ReadDir(dir)
	require.NoError(t, err)
	for _, e := range entries {
		require.NoError(t, os.Chmod(filepath.Join(dir, e.Name()), 0o444))
	}
	require.NoError(t, os.Chmod(dir, 0o555))
	t.Cleanup(func() { _ = os.Chmod(dir, 0o755) })
	if os.Getuid() != 0 {
		return ""
	}
	for up := filepath.Dir(dir); up != filepath.Dir(os.TempDir()) && strings.HasPrefix(up, os.TempDir()+"/"); up = filepath.Dir(up) {
		require.NoError(t, os.Chmod(up, 0o755))
	}
	return " as nobody"
}

func TestReadOnlyWorksInAFolderThatCannotBeWritten(t *testing.T) {
	var paths, want, as []string
	var before []map[string]string
	ready := func(path, answer string) {
		paths, want = append(paths, path), append(want, answer)
		as = append(as, readOnlyFolder(t, filepath.Dir(path)))
		before = append(before, contents(t, filepath.Dir(path)))
	}

	closed := newPath(t)
	d, err := openDatabase(t.Context(), closed, Options{})
	require.NoError(t, err)
	d.add(t, "x")
	require.NoError(t, d.close())
	ready(closed, "count 1 private false fixed true")

	withWAL := newPath(t)
	leaveWAL(t, withWAL)
	ready(withWAL, "count 1 private true fixed true")

	withIndex := newPath(t)
	leaveWAL(t, withIndex)
	d, err = openDatabase(t.Context(), withIndex, Options{ReadOnly: true})
	require.NoError(t, err)
	require.NoError(t, d.close())
	require.FileExists(t, withIndex+"-shm")
	ready(withIndex, "count 1 private false fixed false")

	inUse := newPath(t)
	openDB(t, inUse, Options{}).add(t, "x")
	ready(inUse, "count 1 private false fixed false")

	withJournal := newPath(t)
	leaveJournal(t, withJournal)
	ready(withJournal, "count 0 private true fixed true")

	out := runChild(t, "count"+as[0], paths...)
	require.Equal(t, strings.Join(want, "\n")+"\n", out)
	for i, path := range paths {
		require.Equal(t, before[i], contents(t, filepath.Dir(path)))
	}
}

// leaveJournal puts a database at path whose rollback journal must undo a write.
func leaveJournal(t testing.TB, path string) {
	t.Helper()
	at := newDB(t)
	db := connect(at, 1, nil)
	defer db.Close()
	for _, statement := range []string{
		`PRAGMA journal_mode = delete`, `PRAGMA cache_spill = 1`, `PRAGMA cache_size = 1`, `BEGIN`,
		`INSERT INTO tombstones WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 50) SELECT hex(randomblob(500)), '' FROM n`,
	} {
		_, err := db.Exec(statement)
		require.NoError(t, err)
	}
	require.Positive(t, stampOf(at+"-journal").size)
	for _, suffix := range []string{"", "-journal"} {
		require.NoError(t, copyFile(t.Context(), path+suffix, at+suffix))
	}
}

func TestAWriteThatWasCutOffIsUndone(t *testing.T) {
	path := newPath(t)
	leaveJournal(t, path)
	r := openDB(t, path, Options{ReadOnly: true})
	require.Zero(t, r.count(t))
	require.NotEmpty(t, r.private)
	d := openDB(t, path, Options{})
	require.Zero(t, d.count(t))
	require.NoFileExists(t, path+"-journal")
}

func TestAFileThatCannotBeWrittenIsRefusedForWriting(t *testing.T) {
	path := newDB(t)
	dir := filepath.Dir(path)
	as := readOnlyFolder(t, dir)
	require.NoError(t, os.Chmod(dir, 0o777)) // the folder can be
	out, err := newChild(t, "open"+as, path).run(t)
	require.Error(t, err)
	require.Contains(t, out, "open it read-only")
}

func TestAFifoIsRefused(t *testing.T) {
	path := newPath(t)
	require.NoError(t, syscall.Mkfifo(path, 0o600))
	_, err := openDatabase(t.Context(), path, Options{})
	require.ErrorContains(t, err, "is no file")
}

// locksOf are the lines of the kernel's table of locks for a file.
func locksOf(t *testing.T, path string) (locks []string) {
	t.Helper()
	table, err := os.ReadFile("/proc/locks")
	if err != nil {
		t.Skip(err)
	}
	info, err := os.Stat(path)
	require.NoError(t, err)
	inode := fmt.Sprintf(":%d", info.Sys().(*syscall.Stat_t).Ino)
	for line := range strings.Lines(string(table)) {
		if f := strings.Fields(line); len(f) > 5 && strings.HasSuffix(f[5], inode) {
			locks = append(locks, strings.Join(f[1:], " "))
		}
	}
	return locks
}

// POSIX drops the locks of a process when it closes any descriptor of the file.
// Were the header read by hand while SQLite has the file open here, another
// process could take itself for the last user, and delete the WAL.
func TestOpeningAgainKeepsTheLocksOfTheFirstHandle(t *testing.T) {
	path := newPath(t)
	d := openDB(t, path, Options{})
	d.add(t, "before")
	require.Equal(t, 1, d.count(t))
	locks := locksOf(t, path)
	require.Len(t, locks, 1, "SQLite's, for as long as the database is open")
	for _, readOnly := range []bool{false, true} {
		again := openDB(t, path, Options{ReadOnly: readOnly})
		require.Equal(t, 1, again.count(t))
		require.Equal(t, locks, locksOf(t, path))
		require.NoError(t, again.close())
		require.Equal(t, locks, locksOf(t, path))
	}
	runChild(t, "open", path)
	d.add(t, "after")
	require.Equal(t, 2, d.count(t))
	require.Contains(t, runChild(t, "count", path), "count 2")
	require.Equal(t, locks, locksOf(t, path))
	require.NoError(t, d.close())
	require.Empty(t, locksOf(t, path))
}
