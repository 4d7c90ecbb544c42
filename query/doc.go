// Package query reads the views of the log: every question of a session as a few
// indexed statements, whose cost is that of the answer and not of the tree.
//
// The functions take a [Conn], a connection inside a read transaction if several
// answers have to fit together. They only read.
package query
