// Package query reads the views of the log: every question of a session as a few
// indexed statements, whose cost is that of the answer and not of the tree.
//
// The functions take a [Conn], a connection inside a read transaction if several
// answers have to fit together. They only read.
package query

import _ "embed"

// Views is the page about the views for SQL: each with its columns, their types and
// units, and queries that work.
//
//go:embed VIEWS.md
var Views string
