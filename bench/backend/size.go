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
		if !strings.HasPrefix(name, searchIndex) {
			r.Bytes += bytes
		}
	}
	return r, rows.Err()
}

// searchIndex is how the names of the full-text index begin. It has a budget of its
// own, and how much of it is merged depends on when it was written.
const searchIndex = "search"

// Part is what a table or index of our database is for.
type Part string

const (
	Log       Part = "log"
	BranchSet Part = "branch set" // what a branch is read by: ancestry, heads, labels
	OtherView Part = "other view" // lists, search, analytics
)

// parts are the prefixes of names; what has none of them is of the branch set.
var parts = map[Part][]string{
	Log:       {"sqlite_", "events", "blobs", "sessions", "guards", "audit", "tombstones", "checkpoints", "goose", "imports", "schema"},
	OtherView: {"catalog", "usage", "models", "tool", "turns", "compactions", searchIndex},
}

// PartOf says what a table or index is for.
func PartOf(table string) Part {
	for part, prefixes := range parts {
		for _, prefix := range prefixes {
			if strings.HasPrefix(table, prefix) {
				return part
			}
		}
	}
	return BranchSet
}
