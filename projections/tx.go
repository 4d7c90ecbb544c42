package projections

import (
	"context"
	"database/sql"
	"database/sql/driver"

	"github.com/jmoiron/sqlx"
)

// Tx is a connection inside a transaction, with the statements that were
// prepared on it. One goroutine uses it at a time.
type Tx struct {
	conn  *sqlx.Conn
	stmts map[string]*sql.Stmt

	before func(ctx context.Context) error
}

// NewTx makes a Tx of a connection, whose transactions the caller begins and ends.
func NewTx(conn *sqlx.Conn) *Tx { return &Tx{conn: conn, stmts: map[string]*sql.Stmt{}} }

// Before has f called before each statement from now on, those of f too: so what a
// transaction puts off is written before anybody can ask for it.
func (t *Tx) Before(f func(ctx context.Context) error) { t.before = f }

// stmt prepares each statement once: a prepared one is 5 µs cheaper than text.
func (t *Tx) stmt(ctx context.Context, query string) (*sql.Stmt, error) {
	if t.before != nil {
		if err := t.before(ctx); err != nil {
			return nil, err
		}
	}
	if s := t.stmts[query]; s != nil {
		return s, nil
	}
	s, err := t.conn.PrepareContext(ctx, query)
	if err != nil {
		return nil, err
	}
	t.stmts[query] = s
	return s, nil
}

// Exec runs a statement.
func (t *Tx) Exec(ctx context.Context, query string, args ...any) (sql.Result, error) {
	s, err := t.stmt(ctx, query)
	if err != nil {
		return nil, err
	}
	return s.ExecContext(ctx, args...)
}

// Row reads one row into dest; ok is false when there is none.
func (t *Tx) Row(ctx context.Context, query string, args []any, dest ...any) (ok bool, err error) {
	s, err := t.stmt(ctx, query)
	if err != nil {
		return false, err
	}
	switch err := s.QueryRowContext(ctx, args...).Scan(dest...); err {
	case nil:
		return true, nil
	case sql.ErrNoRows:
		return false, nil
	default:
		return false, err
	}
}

// Rows reads rows; the caller closes them.
func (t *Tx) Rows(ctx context.Context, query string, args ...any) (*sql.Rows, error) {
	s, err := t.stmt(ctx, query)
	if err != nil {
		return nil, err
	}
	return s.QueryContext(ctx, args...)
}

// Raw runs f on the driver's connection.
func (t *Tx) Raw(f func(driverConn any) error) error { return t.conn.Raw(f) }

// Close gives the statements back. The connection is the caller's.
func (t *Tx) Close() error {
	for _, s := range t.stmts {
		s.Close()
	}
	t.stmts = map[string]*sql.Stmt{}
	return nil
}

// CloseConn closes the statements and the connection.
func (t *Tx) CloseConn() error {
	t.Close()
	return t.conn.Close()
}

// DiscardConn closes the statements and the connection, which does not go back to
// its pool: it may be inside a transaction.
func (t *Tx) DiscardConn() error {
	t.Close()
	return t.conn.Raw(func(any) error { return driver.ErrBadConn })
}

// Column reads a query of one column.
func Column[T any](ctx context.Context, tx *Tx, query string, args ...any) (all []T, err error) {
	rows, err := tx.Rows(ctx, query, args...)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	for rows.Next() {
		var v T
		if err := rows.Scan(&v); err != nil {
			return nil, err
		}
		all = append(all, v)
	}
	return all, rows.Err()
}
