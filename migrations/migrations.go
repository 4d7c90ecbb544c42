// Package migrations holds the database's schema as goose migrations, numbered
// and embedded. Only sqlitestore opens them.
//
// A migration that a release has is never changed. Of each version of the schema
// sqlitestore's tests keep a database (testdata/released), which every later program
// has to open: a new migration, or a change of one that is not released yet, comes
// with its own, made by
//
//	go test ./sqlitestore -run TestReport_H5_H9 -update
package migrations

import "embed"

// FS has the migrations, NNNNN_name.sql, at its root.
//
//go:embed *.sql
var FS embed.FS
