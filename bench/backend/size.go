package backend

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"net/url"
	"strings"
)

// reader opens a database for reading, whoever else has it open.
func reader(path string) (*sql.DB, error) {
	return sql.Open("sqlite", (&url.URL{Scheme: "file", OmitHost: true, Path: path, RawQuery: "mode=ro"}).String())
}

// databaseSize asks SQLite for the pages of each table and index.
func databaseSize(ctx context.Context, path string) (r Reply, err error) {
	db, err := reader(path)
	if err != nil {
		return r, err
	}
	defer func() { err = errors.Join(err, db.Close()) }()
	rows, err := db.QueryContext(ctx, "SELECT name, pgsize FROM dbstat WHERE aggregate = TRUE")
	if err != nil {
		return r, fmt.Errorf("cannot measure %s: %w", path, err)
	}
	defer rows.Close()
	r.Tables = map[string]int64{}
	for rows.Next() {
		var name string
		var bytes int64
		if err := rows.Scan(&name, &bytes); err != nil {
			return r, err
		}
		r.Tables[name] = bytes
		r.Bytes += bytes
	}
	return r, rows.Err()
}

// IsLog says whether a table or index of our database holds the log, rather than
// a view that can be made again from it.
func IsLog(table string) bool {
	for _, prefix := range []string{"sqlite_schema", "sqlite_sequence", "events", "sessions", "guards", "audit", "tombstones", "goose", "sqlite_autoindex_sessions"} {
		if strings.HasPrefix(table, prefix) {
			return true
		}
	}
	return false
}
