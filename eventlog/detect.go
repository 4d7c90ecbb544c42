package eventlog

import (
	"fmt"
	"strings"
)

// Detector finds out by which dialect a log was written, from what only one of the
// two programs writes. Marks of the harness win: newer harnesses write usage
// entries too, while the coding agent never writes what the harness does.
type Detector struct {
	what [2]string // the first mark of each dialect
	seen int
}

// Skip passes over entries that were looked at before.
func (t *Detector) Skip(entries int) { t.seen += entries }

// Observe looks at the next entry of the log.
func (t *Detector) Observe(e Entry) {
	t.seen++
	d, what := mark(e)
	if what != "" && t.what[d] == "" {
		t.what[d] = fmt.Sprintf("%s"+markPlace+"%d)", what, t.seen)
	}
}

// markPlace stands in the basis of a dialect that a mark decided.
const markPlace = " (entry "

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

// ByMarks says whether the basis of a dialect is what a log's marks say, or that it
// had none; else somebody chose it, or the file's format did.
func ByMarks(basis string) bool { return basis == NoMark || strings.Contains(basis, markPlace) }

// Correct is Result for a log that had a dialect already, and a basis for it, and
// went on: the same as for the whole log at once. A dialect that was chosen stays.
func (t *Detector) Correct(has Dialect, basis string) (Dialect, string) {
	switch {
	case !ByMarks(basis):
	case has != Harness && t.what[Harness] != "":
		return Harness, t.what[Harness]
	case basis == NoMark && t.what[CodingAgent] != "":
		return CodingAgent, t.what[CodingAgent]
	}
	return has, basis
}

// Against is the first mark of a dialect other than d, "" for none.
func (t *Detector) Against(d Dialect) string {
	for _, other := range Dialects() {
		if other != d && t.what[other] != "" {
			return t.what[other]
		}
	}
	return ""
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
