package report

import (
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/olekukonko/tablewriter"
	"github.com/olekukonko/tablewriter/renderer"
	"github.com/olekukonko/tablewriter/tw"

	"github.com/sessiontree/sessiontree/bench"
)

// Table writes a result as text: a table of figures, one of growth, and how many
// targets are met.
func Table(w io.Writer, r *bench.Result) error {
	m := r.Machine
	fmt.Fprintf(w, "%s/%s, %s, %d cores, %s of memory, %s, fsync %s\n%s, %s, seed %d, %s\n\n",
		m.OS, m.Arch, m.CPU, m.Cores, bytes(float64(m.Memory)), m.FileSystem, duration(m.Fsync.Median), m.Go, m.SQLite, r.Seed, r.Duration.Round(time.Second))
	figures := newTable(w, "operation", "backend", "shape", "size", "median", "p99", "limit", "times the limit", "quiet", "cpu", "target", "")
	for _, row := range r.Rows {
		limit, quiet := "", ""
		if row.Ratio != nil {
			limit, quiet = Quantity(row.Value.Median/row.Ratio.Median, row.Unit), digits(row.Quiet)+"×"
		}
		if err := figures.Append(row.Operation, row.Backend, row.Shape, size(row.Size),
			Quantity(row.Value.Median, row.Unit), Quantity(row.P99, row.Unit), limit, ratio(row), quiet, times(row.CPURatio), target(row), verdict(row)); err != nil {
			return err
		}
	}
	if err := figures.Render(); err != nil {
		return err
	}
	fmt.Fprintln(w)
	if len(r.Growth) > 0 {
		growth := newTable(w, "cost grows as", "backend", "shape", "of", "to the", "expected", "sizes")
		for _, g := range r.Growth {
			if err := growth.Append(g.Operation, g.Backend, g.Shape, g.By, digits(g.Exponent), digits(g.Expected), sizes(g.Sizes)); err != nil {
				return err
			}
		}
		if err := growth.Render(); err != nil {
			return err
		}
		fmt.Fprintln(w)
	}
	for _, line := range Left(r) {
		fmt.Fprintln(w, "not run: "+line)
	}
	if text := Overhead(r); text != "" {
		fmt.Fprintln(w, text)
	}
	_, err := fmt.Fprintln(w, Verdict(r))
	return err
}

func sizes(all []int) string {
	texts := make([]string, len(all))
	for i, n := range all {
		texts[i] = size(n)
	}
	return strings.Join(texts, ", ")
}

// Overhead says what measuring costs, and of which figure that is the largest
// part; "" if it was not measured.
func Overhead(r *bench.Result) string {
	costs := map[string]float64{}
	for _, row := range r.Rows {
		if row.Operation == "empty" {
			costs[row.Backend] = row.Value.Median
		}
	}
	most, of := 0.0, bench.Row{}
	for _, row := range r.Rows {
		if row.Operation == "empty" || row.Unit != bench.Nanos && row.Unit != bench.NanosPerEntry {
			continue
		}
		if part := costs[row.Backend] / (row.Value.Median * max(row.Entries, 1)); part > most {
			most, of = part, row
		}
	}
	if most == 0 {
		return ""
	}
	return fmt.Sprintf("Measuring costs %s, at the most %.2g%% of a figure: %s of %s on a %s of %s",
		duration(costs[of.Backend]), most*100, of.Operation, of.Backend, of.Shape, size(of.Size))
}

// Verdict says in a sentence how many targets are met, and how many figures are
// unsure.
func Verdict(r *bench.Result) string {
	met, missed, unsure := 0, 0, 0
	for _, row := range r.Rows {
		switch {
		case row.Target == nil:
		case row.Met:
			met++
		default:
			missed++
		}
		if row.Unsure {
			unsure++
		}
	}
	text := fmt.Sprintf("%d targets met, %d missed; %d figures", met, missed, len(r.Rows))
	if unsure > 0 {
		text += fmt.Sprintf(", %d of them unsure (?): another run may differ by more than a tenth", unsure)
	}
	return text
}

func newTable(w io.Writer, header ...any) *tablewriter.Table {
	plain := tw.Rendition{Borders: tw.BorderNone, Settings: tw.Settings{Separators: tw.SeparatorsNone, Lines: tw.Lines{ShowHeaderLine: tw.Off, ShowFooterLine: tw.Off, ShowTop: tw.Off, ShowBottom: tw.Off}}}
	t := tablewriter.NewTable(w,
		tablewriter.WithRenderer(renderer.NewBlueprint(plain)),
		tablewriter.WithHeaderAutoFormat(tw.Off),
		tablewriter.WithHeaderAlignment(tw.AlignLeft),
		tablewriter.WithRowAutoWrap(tw.WrapNone),
		tablewriter.WithPadding(tw.Padding{Right: "  "}),
	)
	t.Header(header...)
	return t
}

// Left says what was not measured, and why: a line for all trees on which the same
// was not.
func Left(r *bench.Result) []string {
	var lines []string
	trees := map[bench.NotRun][]string{}
	for _, n := range r.NotRun {
		of := bench.NotRun{Backend: n.Backend, Operation: n.Operation, Reason: n.Reason}
		trees[of] = append(trees[of], fmt.Sprintf("%s of %s", n.Shape, size(n.Size)))
	}
	for _, n := range r.NotRun {
		of := bench.NotRun{Backend: n.Backend, Operation: n.Operation, Reason: n.Reason}
		switch on := trees[of]; {
		case on == nil: // said
		case n.Operation == "":
			lines = append(lines, fmt.Sprintf("%s: %s", n.Backend, n.Reason))
		default:
			lines = append(lines, fmt.Sprintf("%s, %s on %s: %s", n.Backend, n.Operation, strings.Join(on, ", "), n.Reason))
		}
		delete(trees, of)
	}
	return lines
}
