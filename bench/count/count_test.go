package count_test

import (
	"database/sql"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/sessiontree/sessiontree/bench/count"
)

func open(t *testing.T, path string) *sql.DB {
	db, err := sql.Open("sqlite", "file:"+path+"?_pragma=journal_mode(wal)&_pragma=synchronous(normal)&_pragma=wal_autocheckpoint(0)")
	require.NoError(t, err)
	db.SetMaxOpenConns(1)
	t.Cleanup(func() { db.Close() })
	return db
}

func exec(t *testing.T, db *sql.DB, query string) {
	t.Helper()
	_, err := db.Exec(query)
	require.NoError(t, err)
}

func TestRowsPagesAndFramesAreCounted(t *testing.T) {
	dir, err := filepath.EvalSymlinks(t.TempDir())
	require.NoError(t, err)
	path := filepath.Join(dir, "with space.db")
	counter := count.Watch(path)
	defer counter.Close()
	db, other := open(t, path), open(t, filepath.Join(dir, "other.db"))
	exec(t, db, "CREATE TABLE t (k INTEGER PRIMARY KEY, v TEXT)")
	exec(t, other, "CREATE TABLE t (k INTEGER PRIMARY KEY, v TEXT)")
	since := func(queries ...string) count.Counts {
		before, err := counter.Now()
		require.NoError(t, err)
		for _, q := range queries {
			exec(t, db, q)
		}
		after, err := counter.Now()
		require.NoError(t, err)
		return after.Since(before)
	}
	const numbers = "WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 5000) "

	filled := since("INSERT INTO t " + numbers + "SELECT i, printf('%0200d', i) FROM n")
	assert.Equal(t, map[string]int64{"t": 5000}, filled.Rows)
	assert.InDelta(t, 5000*205/4096, filled.Frames, 30)

	assert.Equal(t, map[string]int64{"t": 2}, since("UPDATE t SET v = 'x' WHERE k = 7", "DELETE FROM t WHERE k = 8").Rows)
	exec(t, other, "INSERT INTO t VALUES (1, 'elsewhere')")

	read := func(where string) int64 {
		since("BEGIN", "ROLLBACK") // what a commit left to count
		return since("BEGIN", "SELECT sum(length(v)) FROM t"+where, "ROLLBACK").Pages
	}
	scan, look := read(""), read(" WHERE k = 4321")
	assert.Greater(t, scan, int64(200))
	assert.Less(t, look, int64(10))
	assert.Equal(t, scan, read(""), "the same again, from SQLite's cache")
	assert.Zero(t, since("BEGIN", "SELECT 1", "ROLLBACK").Frames)
}
