// Package shape draws session trees for measurements. A shape, a size and a
// seed always give the same entries, byte for byte (realistic: on one architecture).
//
// All shapes but realistic hold user and assistant messages by turns, with
// texts of 256 bytes, about 550 bytes of JSON each. Where a shape goes back it
// does so with a parent and no leaf entry; realistic moves the leaf, as a host
// does.
package shape

import (
	"bufio"
	"fmt"
	"io"
	"iter"
	"slices"
	"strings"
	"time"

	"github.com/sessiontree/sessiontree/eventlog"
)

// Shape is one form of tree.
type Shape struct {
	Name  string
	About string
	draw  func(b *builder)
	start time.Time
}

var shapes = []Shape{
	{Name: "chain", About: "one branch: each entry below the one before", draw: chain},
	{Name: "compacted", About: "a chain with a compaction at nine tenths: its context is the last tenth", draw: compacted},
	{Name: "comb", About: "at each level a dead child, then on from its sibling", draw: comb},
	{Name: "star", About: "all entries are children of the first", draw: star},
	{Name: "balanced", About: "each entry has four children, level by level", draw: balanced},
	{Name: "walk", About: "a chain that goes back 1 to 20 entries one time in 50, and anywhere one time in 500", draw: walk},
	{Name: "realistic", About: "turns with tool calls, edits of old questions, branches with a summary, compactions", draw: realistic},
}

// All are the shapes, in the order in which reports show them.
func All() []Shape { return slices.Clone(shapes) }

// Names are the names of all shapes.
func Names() []string {
	names := make([]string, len(shapes))
	for i, s := range shapes {
		names[i] = s.Name
	}
	return names
}

// Find is the shape with a name. It fails with [eventlog.ErrInvalidArgument].
func Find(name string) (Shape, error) {
	for _, s := range shapes {
		if s.Name == name {
			return s, nil
		}
	}
	return Shape{}, eventlog.Errorf(eventlog.InvalidArgument, "there is no shape %q, only %s", name, strings.Join(Names(), ", "))
}

// From is the shape in trees whose first entry is of a given time.
func (s Shape) From(start time.Time) Shape {
	s.start = start
	return s
}

// Entries draws a tree of size entries, in log order. The sequence may be drawn
// again.
func (s Shape) Entries(size int, seed uint64) iter.Seq[eventlog.Entry] {
	return func(yield func(eventlog.Entry) bool) {
		if size < 1 {
			return
		}
		start := s.start
		if start.IsZero() {
			start = firstStart
		}
		s.draw(newBuilder(size, seed, start, yield))
	}
}

// Metadata is the header of a session that holds a drawn tree.
func (s Shape) Metadata(size int, seed uint64) eventlog.Metadata {
	m := eventlog.Metadata{
		ID:        fmt.Sprintf("bench-%s-%d-%d", s.Name, size, seed),
		CreatedAt: "2026-01-01T00:00:00.000Z",
		CWD:       "/project",
	}
	m.Header = m.HeaderText()
	return m
}

// Write writes the tree as a session file of version 3.
func (s Shape) Write(w io.Writer, size int, seed uint64) error {
	b := bufio.NewWriterSize(w, 1<<16)
	b.WriteString(s.Metadata(size, seed).Header)
	b.WriteByte('\n')
	for e := range s.Entries(size, seed) {
		b.WriteString(e.JSON())
		if err := b.WriteByte('\n'); err != nil {
			return err
		}
	}
	return b.Flush()
}
