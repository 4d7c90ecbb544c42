package sqlitestore_test

import (
	"context"
	"database/sql/driver"
	"slices"
	"strings"
	"sync"
)

// faults makes a statement of a database fail, or several.
type faults struct {
	mu     sync.Mutex
	at     int  // the statement that fails, from 1; 0: none
	sticky bool // and all behind it
	after  bool // it is carried out all the same
	err    error
	done   int
	only   func(query string) bool // which statements count; nil: all
	// cancels says that nothing fails: the context of the operation under way ends.
	cancels bool
	cancel  context.CancelFunc
	failed  []string // the statements that failed
}

// start makes the at-th statement from now on fail; 0 ends that.
func (f *faults) start(at int) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.at, f.done = at, 0
	if at > 0 {
		f.failed = nil
	}
}

// count is how many statements there were since the start that count.
func (f *faults) count() int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.done
}

// stick says whether all statements behind the one that fails do so too.
func (f *faults) stick(sticky bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.sticky = sticky
}

func (f *faults) fails(query string) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.only != nil && !f.only(query) {
		return false
	}
	f.done++
	if f.at == 0 || f.done < f.at || f.done > f.at && !f.sticky {
		return false
	}
	f.failed = append(f.failed, query)
	if f.cancels {
		f.cancel()
	}
	return !f.cancels
}

// during runs an operation while its at-th statement fails, and gives the statements
// that did.
func (f *faults) during(at int, op func(ctx context.Context) error) (hit []string, err error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	f.mu.Lock()
	f.cancel = cancel
	f.mu.Unlock()
	f.start(at)
	err = op(ctx)
	f.mu.Lock()
	hit = slices.Clone(f.failed)
	f.mu.Unlock()
	f.start(0)
	return hit, err
}

// statement carries a statement out, or not, and fails or not.
func statement[T any](f *faults, query string, run func() (T, error)) (result T, err error) {
	if !f.fails(query) {
		return run()
	}
	// Nothing comes back of a BEGIN that failed, or of rows.
	if f.after && !strings.HasPrefix(query, "BEGIN") {
		run()
	}
	return result, f.err
}

// connector opens connections that fail so.
func (f *faults) connector(c driver.Connector) driver.Connector { return faultyConnector{c, f} }

type faultyConnector struct {
	driver.Connector
	f *faults
}

func (c faultyConnector) Connect(ctx context.Context) (driver.Conn, error) {
	conn, err := c.Connector.Connect(ctx)
	if err != nil {
		return nil, err
	}
	return &faultyConn{conn.(sqliteConn), c.f}, nil
}

// sqliteConn is what is used of SQLite's connections.
type sqliteConn interface {
	driver.Conn
	driver.ConnPrepareContext
	driver.ConnBeginTx
	driver.ExecerContext
	driver.QueryerContext
	driver.SessionResetter
	driver.Validator
	IsReadOnly(schema string) (bool, error)
}

type faultyConn struct {
	sqliteConn
	f *faults
}

func (c *faultyConn) PrepareContext(ctx context.Context, query string) (driver.Stmt, error) {
	s, err := statement(c.f, "PREPARE "+query, func() (driver.Stmt, error) { return c.sqliteConn.PrepareContext(ctx, query) })
	if err != nil {
		return nil, err
	}
	return &faultyStmt{s.(sqliteStmt), c.f, query}, nil
}

func (c *faultyConn) ExecContext(ctx context.Context, query string, args []driver.NamedValue) (driver.Result, error) {
	return statement(c.f, query, func() (driver.Result, error) { return c.sqliteConn.ExecContext(ctx, query, args) })
}

func (c *faultyConn) QueryContext(ctx context.Context, query string, args []driver.NamedValue) (driver.Rows, error) {
	return c.f.query(query, func() (driver.Rows, error) { return c.sqliteConn.QueryContext(ctx, query, args) })
}

type sqliteStmt interface {
	driver.Stmt
	driver.StmtExecContext
	driver.StmtQueryContext
}

type faultyStmt struct {
	sqliteStmt
	f     *faults
	query string
}

func (s *faultyStmt) ExecContext(ctx context.Context, args []driver.NamedValue) (driver.Result, error) {
	return statement(s.f, s.query, func() (driver.Result, error) { return s.sqliteStmt.ExecContext(ctx, args) })
}

func (s *faultyStmt) QueryContext(ctx context.Context, args []driver.NamedValue) (driver.Rows, error) {
	return s.f.query(s.query, func() (driver.Rows, error) { return s.sqliteStmt.QueryContext(ctx, args) })
}

func (f *faults) query(query string, run func() (driver.Rows, error)) (driver.Rows, error) {
	if f.fails(query) {
		return nil, f.err
	}
	rows, err := run()
	if err != nil {
		return nil, err
	}
	return &faultyRows{rows, f, query}, nil
}

type faultyRows struct {
	driver.Rows
	f     *faults
	query string
}

func (r *faultyRows) Next(dest []driver.Value) error {
	if r.f.fails("ROW OF " + r.query) {
		return r.f.err
	}
	return r.Rows.Next(dest)
}
