package main

import (
	"bufio"
	"io"
	"os"
)

const (
	defaultWidth = 100 // where stdout is no terminal
	minWidth     = 40  // below that, lines are left to the terminal
)

// output is stdout: buffered, with the width and the colours that it has.
type output struct {
	*bufio.Writer
	color bool
	width int
	// wraps says whether long text is wrapped at width. What goes to a file or a
	// pipe keeps its lines, unless a width was asked for.
	wraps bool
}

func newOutput(w io.Writer) *output {
	o := &output{Writer: bufio.NewWriterSize(w, 1<<16), width: defaultWidth}
	if width, ok := terminalOf(w); ok {
		o.width, o.wraps = max(width, minWidth), true
		o.color = os.Getenv("NO_COLOR") == "" && os.Getenv("TERM") != "dumb" && enableColor(w.(*os.File))
	}
	return o
}

// style is an SGR parameter. Only the eight basic colours and the weights are
// used, so that the user's own palette decides.
type style string

const (
	plain   style = ""
	bold    style = "1"
	dim     style = "2"
	red     style = "31"
	green   style = "32"
	yellow  style = "33"
	cyan    style = "36"
	strong  style = "1;32" // the leaf
	heading style = "1;36"
)

// paint gives text in a style. The text is safe already.
func (o *output) paint(s style, text string) string {
	if !o.color || s == plain || text == "" {
		return text
	}
	return "\x1b[" + string(s) + "m" + text + "\x1b[0m"
}

// line writes the parts and ends the line.
func (o *output) line(parts ...string) {
	for _, p := range parts {
		o.WriteString(p)
	}
	o.WriteByte('\n')
}
