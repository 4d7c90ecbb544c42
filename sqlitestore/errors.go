package sqlitestore

import (
	"context"
	"errors"
	"fmt"

	"modernc.org/sqlite"
	sqlite3 "modernc.org/sqlite/lib"

	"github.com/sessiontree/sessiontree/eventlog"
)

// SchemaError is the cause of an error that refuses a database because of its
// schema's version. The database was not changed.
type SchemaError struct {
	Path      string
	Version   int64 // what the database has
	Supported int64 // what this program knows
}

func (e *SchemaError) Error() string {
	return fmt.Sprintf("schema version %d, this program has %d", e.Version, e.Supported)
}

// mapError makes the one error of this module out of a driver's. what says what
// failed, as in "cannot append". Errors of a context, and those that are mapped
// already, pass as they are.
func (d *database) mapError(what string, err error) error {
	var mapped *eventlog.Error
	switch {
	case err == nil:
		return nil
	case errors.Is(err, context.Canceled), errors.Is(err, context.DeadlineExceeded), errors.As(err, &mapped):
		return err
	case d.closed.Load():
		return eventlog.Errorf(eventlog.Closed, "%s is closed", d.path)
	}
	e := &eventlog.Error{Code: eventlog.StorageFailed, Err: err}
	reason := ""
	switch code := resultCode(err); code & 0xff {
	case sqlite3.SQLITE_INTERRUPT:
		return context.Canceled // nothing but the end of a context interrupts
	case sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED:
		e.Code = eventlog.Busy
		reason = ": locked by another writer"
	case sqlite3.SQLITE_FULL:
		reason = ": the disk is full"
	case sqlite3.SQLITE_IOERR:
		reason = ": the disk failed"
	case sqlite3.SQLITE_READONLY:
		reason = ": the file or its folder cannot be written"
		switch code {
		case sqlite3.SQLITE_READONLY_DBMOVED:
			reason = ": the file was moved or deleted while it was open"
		case sqlite3.SQLITE_READONLY_ROLLBACK, sqlite3.SQLITE_READONLY_RECOVERY:
			reason = ": a write that was cut off must be undone first, which a reader cannot do"
		}
	case sqlite3.SQLITE_CANTOPEN:
		reason = ": the file, or one beside it, cannot be opened"
	case sqlite3.SQLITE_PERM, sqlite3.SQLITE_AUTH:
		reason = ": access denied"
	case sqlite3.SQLITE_CORRUPT:
		reason = ": the file is damaged"
	case sqlite3.SQLITE_NOTADB:
		reason = ": the file is no SQLite database"
	case sqlite3.SQLITE_NOMEM:
		reason = ": out of memory"
	case sqlite3.SQLITE_TOOBIG:
		reason = ": a value is too big"
	case sqlite3.SQLITE_PROTOCOL:
		reason = ": the file system's locks do not work"
	}
	e.Message = fmt.Sprintf("%s: %s%s", d.path, what, reason)
	return e
}

// resultCode is SQLite's extended result code in err, 0 if there is none.
func resultCode(err error) int {
	var e *sqlite.Error
	if errors.As(err, &e) {
		return e.Code()
	}
	return 0
}

// waited is the error for a caller that waited in vain for others; busy says for
// whom. If it was cancelled, it is told that. Else it gets busy, and where it was its
// context's deadline that has passed, the chain has context.DeadlineExceeded too.
func waited(ctx context.Context, busy error) error {
	if errors.Is(ctx.Err(), context.Canceled) {
		return ctx.Err()
	}
	var e *eventlog.Error
	if _, ok := ctx.Deadline(); !ok || !errors.As(busy, &e) {
		return busy
	}
	return &eventlog.Error{Code: e.Code, Message: e.Message, Err: &deadlineError{e.Err}}
}

// deadlineError is what a caller waited for until its deadline.
type deadlineError struct{ cause error }

func (e *deadlineError) Error() string {
	if e.cause == nil {
		return context.DeadlineExceeded.Error()
	}
	return e.cause.Error()
}

func (e *deadlineError) Unwrap() []error { return []error{context.DeadlineExceeded, e.cause} }

// isBusy says whether SQLite found a lock taken; trying the whole transaction
// again may succeed. Mapped errors count too.
func isBusy(err error) bool {
	code := resultCode(err) & 0xff
	return code == sqlite3.SQLITE_BUSY || code == sqlite3.SQLITE_LOCKED
}

// cannotOpenSo says whether opening in another way may succeed where it failed
// with err: files beside the database that cannot be made or mapped, or locks
// that the file system does not have.
func cannotOpenSo(err error) bool {
	switch resultCode(err) & 0xff {
	case sqlite3.SQLITE_CANTOPEN, sqlite3.SQLITE_READONLY, sqlite3.SQLITE_IOERR, sqlite3.SQLITE_PROTOCOL, sqlite3.SQLITE_PERM:
		return true
	}
	return false
}
