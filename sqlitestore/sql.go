package sqlitestore

import (
	"context"
	"database/sql/driver"
	"errors"
	"io"
	"slices"
	"strings"

	"modernc.org/sqlite"
	sqlite3 "modernc.org/sqlite/lib"

	"github.com/sessiontree/sessiontree/eventlog"
	"github.com/sessiontree/sessiontree/projections"
)

// SQL answers one statement of SQL that reads: a SELECT, also with WITH, VALUES, an
// EXPLAIN of these, or a PRAGMA that tells something. columns gets the names of the
// columns, then row each row: nil, int64, float64, string and []byte, which are only
// good until it returns. What either returns as an error ends the answer, and is what
// SQL returns.
//
// The views that the statement reads hold all that was in the log. Nothing can be
// written, in no file: the connection reads only, and what else a statement could do
// is refused when it is compiled. The end of ctx ends the statement.
//
// It fails with [eventlog.ErrInvalidArgument] for a statement that SQLite does not
// understand or that is refused, and with SQLite's own words.
func (s *Store) SQL(ctx context.Context, text string, columns func(names []string) error, row func(values []any) error) error {
	text, err := oneStatement(text)
	if err != nil {
		return err
	}
	var g sqlGuard
	err = s.read(ctx, func(tx *projections.Tx) error {
		return g.on(tx, func(conn sqlConn) error {
			_, err := conn.ColumnInfo(text) // compiles it
			return sqlError(err)
		})
	})
	if err != nil {
		return err
	}
	answer := func(tx *projections.Tx) error {
		return g.on(tx, func(conn sqlConn) error { return answerSQL(ctx, conn, text, columns, row) })
	}
	views := viewsOf(g.tables)
	if slices.Contains(views, s.branch.Name()) {
		return s.withBranch(ctx, answer, views)
	}
	return s.analyse(ctx, answer, views...)
}

// withBranch is [Store.analyse] where the branch views are read too. What the log would
// have to answer SQL cannot ask: it fails while they cannot be brought up.
func (s *Store) withBranch(ctx context.Context, f func(tx *projections.Tx) error, views []string) error {
	behind, err := s.branchIsBehind(ctx)
	if err == nil && behind {
		if s.writer == nil {
			return s.inCopy(ctx, func(copied *Store) error { return copied.withBranch(ctx, f, views) })
		}
		if err = s.bringUpForReader(ctx); err == nil {
			behind, err = s.branchIsBehind(ctx)
		}
	}
	switch {
	case err != nil:
		return err
	case behind:
		return eventlog.Errorf(eventlog.Busy, "%s: the branch views are behind the log, or a newer program's: health says which", s.db.path)
	}
	views = slices.DeleteFunc(views, func(v string) bool { return v == s.branch.Name() })
	return s.analyse(ctx, f, views...)
}

func (s *Store) branchIsBehind(ctx context.Context) (behind bool, err error) {
	err = s.read(ctx, func(tx *projections.Tx) (err error) {
		behind, err = projections.IsBehind(ctx, tx, s.branch)
		return err
	})
	return behind, err
}

// viewsOf are the views of the log that tables belong to.
func viewsOf(tables map[string]bool) (views []string) {
	for _, p := range append(asyncViews(), projections.Branch{}) {
		for _, table := range p.Tables() {
			if tables[table] {
				views = append(views, p.Name())
				break
			}
		}
	}
	return views
}

// sqlConn is the driver's connection.
type sqlConn interface {
	driver.QueryerContext
	sqlite.AuthorizerRegisterer
	ColumnInfo(query string) ([]sqlite.ColumnInfo, error)
}

// answerSQL runs a statement. Two rows are never in memory.
func answerSQL(ctx context.Context, conn sqlConn, text string, columns func([]string) error, row func([]any) error) error {
	rows, err := conn.QueryContext(ctx, text, nil)
	var fromSQLite *sqlite.Error
	switch {
	case err != nil && ctx.Err() == nil && !errors.As(err, &fromSQLite):
		return eventlog.Errorf(eventlog.InvalidArgument, "SQL: %v", err) // the driver's own: a parameter without a value
	case err != nil:
		return sqlError(err)
	}
	defer rows.Close()
	defer interruptAt(ctx, conn)() // before the rows are closed
	if err := columns(rows.Columns()); err != nil {
		return err
	}
	values := make([]driver.Value, len(rows.Columns()))
	out := make([]any, len(values))
	for {
		switch err := rows.Next(values); {
		case err == io.EOF:
			return nil
		case ctx.Err() != nil:
			return ctx.Err()
		case err != nil:
			return sqlError(err)
		}
		for i, v := range values {
			out[i] = v
		}
		if err := row(out); err != nil {
			return err
		}
	}
}

// sqlError makes the statement's fault of an error of the driver, and leaves the
// others (the disk, a lock) as they are.
func sqlError(err error) error {
	var e *sqlite.Error
	if !errors.As(err, &e) {
		return err
	}
	switch e.Code() & 0xff {
	case sqlite3.SQLITE_ERROR, sqlite3.SQLITE_AUTH, sqlite3.SQLITE_TOOBIG, sqlite3.SQLITE_CONSTRAINT, sqlite3.SQLITE_MISMATCH, sqlite3.SQLITE_RANGE, sqlite3.SQLITE_READONLY:
		return &eventlog.Error{Code: eventlog.InvalidArgument, Message: "SQL: " + strings.TrimPrefix(e.Error(), "SQL logic error: ")}
	}
	return err
}

// sqlGuard is asked by SQLite for each thing that a statement would do, while it is
// compiled. It lets it read, and notes from which tables.
type sqlGuard struct {
	tables  map[string]bool
	refused string // what was not allowed
}

// on runs f on a connection that the guard watches.
func (g *sqlGuard) on(tx *projections.Tx, f func(conn sqlConn) error) error {
	return tx.Raw(func(driverConn any) (err error) {
		conn, ok := driverConn.(sqlConn)
		if !ok {
			return eventlog.Errorf(eventlog.StorageFailed, "the driver cannot keep SQL from writing")
		}
		g.tables, g.refused = map[string]bool{}, ""
		if err := conn.RegisterAuthorizer(g.authorize); err != nil {
			return err
		}
		defer func() {
			// Left in place it would refuse the end of the transaction, and the connection
			// is thrown away.
			if off := conn.RegisterAuthorizer(nil); err == nil {
				err = off
			}
		}()
		if err = f(conn); err != nil && g.refused != "" {
			err = eventlog.Errorf(eventlog.InvalidArgument, "SQL: only what reads is allowed, not %s", g.refused)
		}
		return err
	})
}

func (g *sqlGuard) authorize(action sqlite.AuthorizerActionCode, arg1, arg2, _, _ string) sqlite.AuthorizerReturnCode {
	switch action {
	case sqlite.AuthSelect, sqlite.AuthRecursive:
		return sqlite.AuthorizerOK
	case sqlite.AuthRead:
		g.tables[strings.ToLower(arg1)] = true
		return sqlite.AuthorizerOK
	case sqlite.AuthFunction:
		if name := strings.ToLower(arg2); !slices.Contains(harmful, name) {
			return sqlite.AuthorizerOK
		}
		g.refused = "the function " + arg2
	case sqlite.AuthPragma:
		name := strings.ToLower(arg1)
		if slices.Contains(tellingPragmas, name) || arg2 == "" && slices.Contains(readablePragmas, name) {
			return sqlite.AuthorizerOK
		}
		g.refused = "PRAGMA " + arg1
	default:
		if g.refused = actions[action]; g.refused == "" {
			g.refused = "this"
		}
	}
	return sqlite.AuthorizerDeny
}

var (
	// harmful are functions that do more than compute.
	harmful = []string{"load_extension", "fts3_tokenizer", "sqlite_log"}

	// tellingPragmas change nothing, with an argument or without.
	tellingPragmas = []string{
		"table_info", "table_xinfo", "table_list", "index_list", "index_info", "index_xinfo", "foreign_key_list",
		"database_list", "collation_list", "function_list", "module_list", "pragma_list", "compile_options",
		"integrity_check", "quick_check", "foreign_key_check", "data_version",
	}
	// readablePragmas change nothing without an argument.
	readablePragmas = []string{
		"application_id", "user_version", "schema_version", "page_count", "page_size", "freelist_count", "max_page_count",
		"encoding", "journal_mode", "auto_vacuum", "cache_size", "mmap_size", "synchronous", "query_only", "busy_timeout",
	}

	// actions are the names of what is refused.
	actions = map[sqlite.AuthorizerActionCode]string{
		sqlite.AuthInsert: "INSERT", sqlite.AuthUpdate: "UPDATE", sqlite.AuthDelete: "DELETE",
		sqlite.AuthAttach: "ATTACH or VACUUM", sqlite.AuthDetach: "DETACH",
		sqlite.AuthTransaction: "BEGIN, COMMIT or ROLLBACK", sqlite.AuthSavepoint: "SAVEPOINT",
		sqlite.AuthAlterTable: "ALTER", sqlite.AuthReindex: "REINDEX", sqlite.AuthAnalyze: "ANALYZE",
		sqlite.AuthCreateVTable: "CREATE", sqlite.AuthDropVTable: "DROP",
		sqlite.AuthCreateIndex: "CREATE", sqlite.AuthCreateTable: "CREATE", sqlite.AuthCreateTrigger: "CREATE", sqlite.AuthCreateView: "CREATE",
		sqlite.AuthCreateTempIndex: "CREATE", sqlite.AuthCreateTempTable: "CREATE", sqlite.AuthCreateTempTrigger: "CREATE", sqlite.AuthCreateTempView: "CREATE",
		sqlite.AuthDropIndex: "DROP", sqlite.AuthDropTable: "DROP", sqlite.AuthDropTrigger: "DROP", sqlite.AuthDropView: "DROP",
		sqlite.AuthDropTempIndex: "DROP", sqlite.AuthDropTempTable: "DROP", sqlite.AuthDropTempTrigger: "DROP", sqlite.AuthDropTempView: "DROP",
	}
)
