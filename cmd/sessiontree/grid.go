package main

import "strings"

// grid is a table for a terminal: columns as wide as what is in them, numbers to
// the right. The cells are safe already.
type grid struct {
	right []bool // columns of numbers
	rows  [][]string
}

func newGrid(header ...string) *grid { return &grid{make([]bool, len(header)), [][]string{header}} }

// numbers makes columns that are set to the right.
func (g *grid) numbers(columns ...int) *grid {
	for _, c := range columns {
		g.right[c] = true
	}
	return g
}

func (g *grid) add(row ...string) { g.rows = append(g.rows, row) }

// write puts the grid out, cut at the width of the output.
func (g *grid) write(o *output) {
	const gap = "  "
	widths := make([]int, len(g.right))
	for _, row := range g.rows {
		for i, text := range row {
			widths[i] = max(widths[i], cells.StringWidth(text))
		}
	}
	for i, row := range g.rows {
		line := make([]string, len(row))
		for j, text := range row {
			if g.right[j] {
				line[j] = strings.Repeat(" ", widths[j]-cells.StringWidth(text)) + text
			} else {
				line[j] = padded(text, widths[j])
			}
		}
		text := strings.TrimRight(strings.Join(line, gap), " ")
		if o.wraps {
			text = cut(text, o.width)
		}
		if i == 0 {
			text = o.paint(dim, text)
		}
		o.line(text)
	}
}

// bar is a horizontal bar of a part of a width, in eighths of a cell.
func bar(part float64, width int) string {
	eighths := int(part*float64(8*width) + 0.5)
	text := strings.Repeat("█", eighths/8)
	if rest := eighths % 8; rest > 0 {
		text += string(rune('█' + 8 - rest))
	}
	return text
}
