package sqlitestore

import (
	"context"
	"reflect"

	"modernc.org/libc"
	sqlite3 "modernc.org/sqlite/lib"
)

// interruptAt makes the statement that runs on a connection fail when ctx ends, until
// stop is called. The driver does so itself only until the first row is there: a
// statement that then searches for its second row for an hour would go on. The handle
// that SQLite's own call takes is no part of the driver's interface, so it is read out
// of its connection; should that fail, ctx is seen at the next row.
func interruptAt(ctx context.Context, conn any) (stop func()) {
	db, ok := handleOf(conn)
	if !ok || ctx.Done() == nil {
		return func() {}
	}
	ended, watched := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(watched)
		select {
		case <-ctx.Done():
			tls := libc.NewTLS() // the connection's own is in use
			sqlite3.Xsqlite3_interrupt(tls, db)
			tls.Close()
		case <-ended:
		}
	}()
	return func() {
		close(ended)
		<-watched
	}
}

// handleOf is the sqlite3* of a connection.
func handleOf(conn any) (db uintptr, ok bool) {
	v := reflect.ValueOf(conn)
	if v.Kind() != reflect.Pointer || v.Elem().Kind() != reflect.Struct {
		return 0, false
	}
	field := v.Elem().FieldByName("db")
	if field.Kind() != reflect.Uintptr || field.Uint() == 0 {
		return 0, false
	}
	return uintptr(field.Uint()), true
}
