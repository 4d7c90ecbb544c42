package sqlitestore_test

import (
	"bytes"
	"context"
	"database/sql"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/sessiontree/sessiontree/eventlog"
	"github.com/sessiontree/sessiontree/sqlitestore"
	"github.com/sessiontree/sessiontree/sqlitestore/sqlitestoretest"
)

// TestReport_G1_AReaderThatNeverEndsMeetsTheLimit: another program opens a read
// transaction and forgets it.
func TestReport_G1_AReaderThatNeverEndsMeetsTheLimit(t *testing.T) {
	const limit = 2 << 20
	var logged bytes.Buffer
	path := filepath.Join(t.TempDir(), "sessions.db")
	s := sqlitestoretest.OpenAt(t, path, sqlitestore.Options{
		Synchronous: sqlitestore.Normal, MaxWALBytes: limit, BusyTimeout: 300 * time.Millisecond, Logger: slog.New(slog.NewTextHandler(&logged, nil)),
	})
	tree, err := s.Create(ctx, eventlog.CreateOptions{ID: "s"})
	require.NoError(t, err)
	require.NoError(t, appendTo(tree, "before"))

	foreign, err := sql.Open("sqlite", path)
	require.NoError(t, err)
	defer foreign.Close()
	reader, err := foreign.Conn(ctx)
	require.NoError(t, err)
	var n int
	_, err = reader.ExecContext(ctx, "BEGIN")
	require.NoError(t, err)
	require.NoError(t, reader.QueryRowContext(ctx, "SELECT count(*) FROM events").Scan(&n))

	message := func() eventlog.Draft {
		return eventlog.MessageDraft(eventlog.UserMessage(strings.Repeat("x", 100<<10), time.Now()))
	}
	appended := 1
	var failed error
	for failed == nil {
		require.Less(t, appended, 100)
		if _, failed = tree.Append(ctx, message()); failed == nil {
			appended++
		}
	}
	require.ErrorIs(t, failed, eventlog.ErrBusy)
	require.ErrorContains(t, failed, "write-ahead log has ")
	require.ErrorContains(t, failed, "the limit is 2097152")
	h, err := s.Health(ctx)
	require.NoError(t, err)
	require.Greater(t, h.WALBytes, int64(limit))
	require.Contains(t, logged.String(), "the write-ahead log grows")
	require.LessOrEqual(t, strings.Count(logged.String(), "the write-ahead log grows"), 2, "once for each doubling")

	// A caller that can wait gets through when the reader ends.
	patient, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	time.AfterFunc(50*time.Millisecond, func() { reader.ExecContext(ctx, "ROLLBACK") })
	_, err = tree.Append(patient, message())
	require.NoError(t, err)
	info, err := os.Stat(path + "-wal")
	require.NoError(t, err)
	require.Less(t, info.Size(), int64(limit))
	require.Len(t, chainOf(t, tree), appended+1)
}

func TestMaxWALBytesIsChecked(t *testing.T) {
	_, err := sqlitestore.Open(ctx, filepath.Join(t.TempDir(), "x.db"), sqlitestore.Options{MaxWALBytes: -1})
	require.ErrorIs(t, err, eventlog.ErrInvalidArgument)
}
