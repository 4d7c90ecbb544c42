// Package migrations holds the database's schema as goose migrations, numbered
// and embedded. Only sqlitestore opens them.
package migrations

import "embed"

// FS has the migrations, NNNNN_name.sql, at its root.
//
//go:embed *.sql
var FS embed.FS
