package sessionfile

import "fmt"

// gap collects what stands between two items.
type gap struct {
	newline string // what the usual gap is; "" before the header
	parts   []Part
	open    []byte // of the part that grows, if it is more than first
	first   string // the only piece of that part: no copy is made of a newline
	size    int
	begun   bool    // the beginning was handed out
	tooLong *Damage // of the line whose parts come
}

// text adds bytes that are no damage.
func (g *gap) text(s string) {
	if s == "" {
		return
	}
	g.size += len(s)
	switch {
	case g.open != nil:
		g.open = append(g.open, s...)
	case g.first == "":
		g.first = s
	default:
		g.open = append(append(make([]byte, 0, 2*(len(g.first)+len(s))), g.first...), s...)
		g.first = ""
	}
}

func (g *gap) close() {
	switch {
	case g.open != nil:
		g.parts = append(g.parts, Part{Bytes: string(g.open)})
	case g.first != "":
		g.parts = append(g.parts, Part{Bytes: g.first})
	}
	g.open, g.first = nil, ""
}

// damage adds bytes that cannot be read.
func (g *gap) damage(s string, d *Damage) {
	g.close()
	g.size += len(s)
	g.parts = append(g.parts, Part{s, d})
}

// long adds a part of a line that is longer than the limit.
func (g *gap) long(l line, limit int) {
	if g.tooLong == nil {
		g.tooLong = &Damage{Line: l.number, Offset: l.offset, Reason: fmt.Sprintf("the line is longer than the limit of %d bytes", limit)}
	}
	g.tooLong.Length += int64(len(l.text))
	if !l.ended {
		g.close()
		g.size += len(l.text)
		g.parts = append(g.parts, Part{Bytes: l.text})
	}
}

// endLong ends such a line with its last bytes.
func (g *gap) endLong(s string) {
	if g.tooLong != nil {
		g.damage(s, g.tooLong)
	}
	g.tooLong = nil
}

// begin hands out the beginning of a gap that goes on.
func (g *gap) begin() []Part {
	g.close()
	parts := g.parts
	g.parts, g.size, g.begun = nil, 0, true
	return parts
}

// take hands the gap out, or what is left of it.
func (g *gap) take() []Part {
	usual := !g.begun && g.open == nil && g.parts == nil && g.first == g.newline
	parts := g.begin()
	switch g.begun = false; {
	case usual:
		return nil
	case parts == nil:
		return []Part{} // nothing at all, where a newline is usual
	}
	return parts
}
