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

// Sure says whether what comes cannot change the result any more.
func (t *Detector) Sure() bool { return t.what[Harness] != "" }

// NoMark is the basis of a dialect that no mark decided.
const NoMark = "no mark of either: the coding agent writes most files"

// Result is the dialect, and what decided it: the otherwise one where nothing did.
func (t *Detector) Result(otherwise Dialect) (d Dialect, basis string) {
	for _, d := range Dialects() {
		if t.what[d] != "" {
			return d, t.what[d]
		}
	}
	return otherwise, NoMark
}

// mark is what only the programs of one dialect write, "" for none.
func mark(e Entry) (Dialect, string) {
	switch e.Type() {
	case TypeLeaf, TypeActiveToolsChange:
		return Harness, "an entry of type " + string(e.Type())
	case TypeUsage, TypeContextEdit:
		return CodingAgent, "an entry of type " + string(e.Type())
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
