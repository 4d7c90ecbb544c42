package main

import (
	"github.com/sessiontree/sessiontree/eventlog"
)

// tag is a remark about an entry, between its kind and what it says.
type tag struct {
	text  string // safe
	style style
}

const (
	idWidth   = 8 // what hosts write; longer ones push the rest to the right
	kindWidth = 14
	maxKind   = 24
	maxTag    = 32
)

// entryLine writes one entry in one line: rails, mark, id, kind, remarks, and
// the beginning of what it says, cut where the line ends.
func (o *output) entryLine(rails, mark string, look style, e eventlog.Entry, tags []tag) {
	id := padded(shownID(e.ID()), idWidth)
	kind := padded(cut(safe(kindOf(e)), maxKind), kindWidth)
	used := cells.StringWidth(rails) + cells.StringWidth(id) + 2 + cells.StringWidth(kind) + 2
	o.WriteString(o.paint(dim, rails))
	if mark != "" {
		markLook := look
		if look == plain {
			markLook = strong
		}
		o.WriteString(o.paint(markLook, mark) + " ")
		used += cells.StringWidth(mark) + 1
	}
	kindLook := look
	if look == plain && e.IsUserMessage() {
		kindLook = bold
	}
	o.WriteString(o.paint(look, id) + "  ")
	says := excerpt(e)
	if says == "" && len(tags) == 0 {
		o.line(o.paint(kindLook, cut(safe(kindOf(e)), maxKind)))
		return
	}
	o.WriteString(o.paint(kindLook, kind) + "  ")
	for i, t := range tags {
		if i > 0 {
			o.WriteByte(' ')
			used++
		}
		o.WriteString(o.paint(t.style, t.text))
		used += cells.StringWidth(t.text)
	}
	gap := ""
	if len(tags) > 0 {
		gap = "  "
	}
	if says = cut(says, o.width-used-len(gap)); says != "" {
		o.WriteString(gap)
	}
	o.line(o.paint(look, says))
}

func labelTag(label string) tag { return tag{"[" + cut(oneLine(label), maxTag) + "]", yellow} }
