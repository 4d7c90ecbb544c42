package sqlitestore

import (
	"context"
	"fmt"
	"os"
	"time"

	"github.com/sessiontree/sessiontree/eventlog"
)

// walWatch is what the writer knows of the write-ahead log.
type walWatch struct {
	looked int   // transactions since it was looked at
	warn   int64 // the size of the next warning, 0: the first
}

const (
	// walWarning is the size of the write-ahead log of which a log of what happens
	// should tell: sixty times what it has when no reader holds it.
	walWarning = 256 << 20

	// walPause is how many transactions come between two looks at its size where
	// there is no limit.
	walPause = 64
)

// walError is the cause of an error for a write-ahead log that cannot be cut.
type walError struct{ bytes, limit int64 }

func (e *walError) Error() string {
	return fmt.Sprintf("its write-ahead log has %d bytes, the limit is %d, and a reader that does not end keeps it from being cut", e.bytes, e.limit)
}

// Is makes it wait as for another process' lock.
func (e *walError) Is(target error) bool { return target == errWaited }

// limitWAL keeps the write-ahead log within its limit, before a transaction begins.
func (w *writer) limitWAL(group []*request) error {
	limit := w.db.o.MaxWALBytes
	if w.wal.looked++; w.db.exclusive || limit == 0 && w.wal.looked < walPause {
		return nil
	}
	w.wal.looked = 0
	size := w.walSize()
	w.warnOfWAL(size)
	// Views that are made again, and what cuts the log, do not wait for that.
	if limit == 0 || size <= limit || group[0].alone || allLazy(group) {
		return nil
	}
	for {
		if err := w.cutWAL(); err != nil {
			return err
		}
		if size = w.walSize(); size <= limit {
			return nil
		}
		if outOfTime(group) {
			return &eventlog.Error{Code: eventlog.Busy, Message: "cannot write to " + w.db.path, Err: &walError{size, limit}}
		}
		time.Sleep(time.Millisecond)
	}
}

func allLazy(group []*request) bool {
	for _, r := range group {
		if !r.lazy {
			return false
		}
	}
	return true
}

func (w *writer) walSize() int64 {
	info, err := os.Stat(w.db.path + "-wal")
	if err != nil {
		return 0 // it was never written to
	}
	return info.Size()
}

func (w *writer) warnOfWAL(size int64) {
	first := int64(walWarning)
	if half := w.db.o.MaxWALBytes / 2; half > 0 {
		first = min(first, half)
	}
	switch {
	case size < first:
		w.wal.warn = first
	case size >= max(w.wal.warn, first):
		w.wal.warn = 2 * size
		w.db.o.Logger.Warn("the write-ahead log grows: a reader keeps an old snapshot", "path", w.db.path, "bytes", size)
	}
}

// cutWAL copies the write-ahead log into the database and cuts it, unless somebody
// reads or writes meanwhile.
func (w *writer) cutWAL() error {
	var busy, pages, copied int
	row := w.conn.QueryRowContext(context.Background(), "PRAGMA wal_checkpoint(TRUNCATE)")
	if err := row.Scan(&busy, &pages, &copied); err != nil && !isBusy(err) {
		return w.db.mapError("cannot cut the write-ahead log", err)
	}
	return nil
}
