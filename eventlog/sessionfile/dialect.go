package sessionfile

import (
	"github.com/sessiontree/sessiontree/eventlog"
)

// Dialect is who wrote a session, so far as its entries tell: two programs of Pi
// write files of version 3 and answer them by different rules.
type Dialect string

const (
	Harness     Dialect = "harness"
	CodingAgent Dialect = "coding-agent"
)

// dialects collects what the entries of a file tell.
type dialects struct{ harness bool }

// observe looks for what only Pi's harness writes.
func (d *dialects) observe(e eventlog.Entry) {
	switch e.Type() {
	case eventlog.TypeLeaf, eventlog.TypeActiveToolsChange:
		d.harness = true
	case eventlog.TypeCompaction:
		d.harness = d.harness || e.Get("retainedTail").Exists()
	}
}

// Dialect is the dialect of the entries that were read so far: the harness's if
// there was a leaf entry, a change of active tools or a retained tail, which the
// coding agent never writes, else the coding agent's, which writes most files.
// What only the coding agent writes (usage, context_edit, system messages) tells
// no more than that.
func (f *Reader) Dialect() Dialect {
	if f.harness || f.header.Format == V4 {
		return Harness
	}
	return CodingAgent
}
