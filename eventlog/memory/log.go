package memory

import (
	"slices"

	"github.com/sessiontree/sessiontree/eventlog"
)

// log is a list of entries that grows without moving those that it holds: to move
// them is half of what an append to a long session costs, and holds its readers up.
type log struct {
	first []eventlog.Entry   // what the session was opened with
	pages [][]eventlog.Entry // what came since, all but the last one full
	n     int
}

// page is how many entries stand side by side.
const page = 512

func (l *log) len() int { return l.n }

// at is the ith entry, which nobody writes to.
func (l *log) at(i int32) *eventlog.Entry {
	first := int32(len(l.first))
	if i < first {
		return &l.first[i]
	}
	return &l.pages[(i-first)/page][(i-first)%page]
}

func (l *log) add(e eventlog.Entry) {
	last := len(l.pages) - 1
	if last < 0 || len(l.pages[last]) == page {
		l.pages = append(l.pages, make([]eventlog.Entry, 0, page))
		last++
	}
	l.pages[last] = append(l.pages[last], e)
	l.n++
}

// from gives entries from the ith on, one at least and at most limit, as many as
// stand side by side there. They are never written to again.
func (l *log) from(i, limit int) []eventlog.Entry {
	run := l.first
	if i >= len(l.first) {
		i -= len(l.first)
		run, i = l.pages[i/page], i%page
	}
	return run[i:min(len(run), i+min(limit, page))]
}

func (l *log) all() []eventlog.Entry {
	return slices.Concat(append([][]eventlog.Entry{l.first}, l.pages...)...)
}
