package eventlog

import "fmt"

// Detector finds out by which dialect a log was written, from what only one of the
// two programs writes. Marks of the harness win: newer harnesses write usage
// entries too, while the coding agent never writes what the harness does.
type Detector struct {
	what [2]string // the first mark of each dialect
	seen int
}

// Observe looks at the next entry of the log.
func (t *Detector) Observe(e Entry) {
	t.seen++
	d, what := mark(e)
	if what != "" && t.what[d] == "" {
		t.what[d] = fmt.Sprintf("%s (entry %d)", what, t.seen)
	}
}

// Result is the dialect, and what decided it; ok is false when nothing did.
func (t *Detector) Result() (d Dialect, basis string, ok bool) {
	for _, d := range Dialects() {
		if t.what[d] != "" {
			return d, t.what[d], true
		}
	}
	return CodingAgent, "", false
}

// DialectOf is the dialect of a log: what is told, nil for nothing; else what its
// marks say; else the coding agent's, which writes most files.
func DialectOf(entries []Entry, told *Dialect) (Dialect, string) {
	if told != nil {
		return *told, "asked for"
	}
	var t Detector
	for _, e := range entries {
		t.Observe(e)
	}
	d, basis, ok := t.Result()
	if !ok {
		basis = "no mark of either: the coding agent writes the files"
	}
	return d, basis
}

// mark is what only the programs of one dialect write, "" for none.
func mark(e Entry) (Dialect, string) {
	switch e.Type() {
	case TypeLeaf, TypeActiveToolsChange:
		return Harness, "a " + string(e.Type()) + " entry"
	case TypeUsage, TypeContextEdit:
		return CodingAgent, "a " + string(e.Type()) + " entry"
	case TypeMessage:
		if e.isSystem() {
			return CodingAgent, "a system message"
		}
	case TypeCompaction:
		switch {
		case e.Get("retainedTail").Exists():
			return Harness, "a compaction with a retainedTail"
		case e.Get("systemMessage").Exists():
			return CodingAgent, "a compaction with a systemMessage"
		case e.Get("firstKeptEntryId").Is(e.id):
			return CodingAgent, "a compaction that names itself as boundary"
		}
	}
	return 0, ""
}
