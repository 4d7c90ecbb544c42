package sqlitestore

import (
	"context"
	"errors"
	"fmt"
	"os"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	sqlite3 "modernc.org/sqlite/lib"

	"github.com/sessiontree/sessiontree/eventlog"
)

// Each failure here comes from SQLite itself.
func TestErrorsOfTheDriverAreMappedByTheirCode(t *testing.T) {
	path := newPath(t)
	d := openDB(t, path, Options{})
	check := func(err error, primary int, sentinel error) {
		t.Helper()
		require.Equal(t, primary, resultCode(err)&0xff, "%v", err)
		mapped := d.mapError("cannot append", err)
		require.ErrorIs(t, mapped, sentinel)
		require.ErrorIs(t, mapped, err, "the cause stays")
		require.ErrorContains(t, mapped, d.path+": cannot append")
		require.Equal(t, sentinel == eventlog.ErrBusy, isBusy(mapped))
		require.Equal(t, mapped, d.mapError("do something above", mapped), "mapped once")
	}

	other := openDB(t, path, Options{})
	tx, err := other.write.Beginx()
	require.NoError(t, err)
	_, err = d.write.Exec(insertTombstone, "x")
	check(err, sqlite3.SQLITE_BUSY, eventlog.ErrBusy)
	require.NoError(t, tx.Rollback())

	_, err = d.read.Exec(insertTombstone, "x")
	check(err, sqlite3.SQLITE_READONLY, eventlog.ErrStorage)

	_, err = d.write.Exec(`PRAGMA max_page_count = 1`) // as many as there are
	require.NoError(t, err)
	for err == nil {
		_, err = d.write.Exec(`INSERT INTO tombstones (id, deleted_at) VALUES (hex(randomblob(2000)), '')`)
	}
	check(err, sqlite3.SQLITE_FULL, eventlog.ErrStorage)
	require.ErrorContains(t, d.mapError("cannot append", err), "the disk is full")

	_, err = d.write.Exec(`INSERT INTO tombstones (id) VALUES ('x')`)
	check(err, sqlite3.SQLITE_CONSTRAINT, eventlog.ErrStorage)
	_, err = d.write.Exec(`SELECT * FROM nowhere`)
	check(err, sqlite3.SQLITE_ERROR, eventlog.ErrStorage)

	none := connect(path+".d/none.db", 1, nil)
	defer none.Close()
	_, err = none.Exec(`SELECT * FROM sqlite_schema`)
	check(err, sqlite3.SQLITE_CANTOPEN, eventlog.ErrStorage)

	text := path + ".txt"
	require.NoError(t, os.WriteFile(text, make([]byte, 5000), 0o600))
	garbage := connect(text, 1, nil)
	defer garbage.Close()
	_, err = garbage.Exec(`SELECT * FROM sqlite_schema`)
	check(err, sqlite3.SQLITE_NOTADB, eventlog.ErrStorage)
}

func TestErrorsOfAContextPassAsTheyAre(t *testing.T) {
	d := openDB(t, newPath(t), Options{})
	const forever = `WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) SELECT max(i) FROM n`
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Millisecond)
	defer cancel()
	var n int
	err := d.read.GetContext(ctx, &n, forever)
	require.Equal(t, context.DeadlineExceeded, d.mapError("read", err))
	require.Nil(t, d.mapError("read", nil))

	canceled, cancel := context.WithCancel(t.Context())
	time.AfterFunc(10*time.Millisecond, cancel)
	_, err = d.write.ExecContext(canceled, forever)
	require.Equal(t, context.Canceled, d.mapError("write", err))

	wrapped := fmt.Errorf("hook: %w", context.Canceled)
	require.Equal(t, wrapped, d.mapError("write", wrapped))
	require.False(t, isBusy(wrapped))
}

func TestOtherErrorsAreStorageErrorsThatNameTheFile(t *testing.T) {
	d := openDB(t, newPath(t), Options{})
	cause := errors.New("odd")
	err := d.mapError("cannot append", cause)
	require.ErrorIs(t, err, eventlog.ErrStorage)
	require.ErrorIs(t, err, cause)
	require.EqualError(t, err, d.path+": cannot append: odd")
}
