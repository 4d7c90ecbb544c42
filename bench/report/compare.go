package report

import (
	"fmt"
	"io"

	"github.com/sessiontree/sessiontree/bench"
	"github.com/sessiontree/sessiontree/bench/stats"
)

// Changes writes what became of the figures from one run to another as a table,
// and how many agree.
func Changes(w io.Writer, before, after *bench.Result, changes []bench.Change) error {
	if !bench.SameMachine(before, after) {
		fmt.Fprintln(w, "The runs are of different machines: compare ratios, not values.")
		fmt.Fprintln(w)
	}
	t := newTable(w, "operation", "backend", "shape", "size", "of", "before", "after", "factor", "")
	count := map[bench.Verdict]int{}
	for _, c := range changes {
		count[c.Verdict]++
		verdict := string(c.Verdict)
		if c.Verdict == bench.Same {
			verdict = ""
		}
		if err := t.Append(c.Operation, c.Backend, c.Shape, size(c.Size), c.Of, estimate(c, c.Before), estimate(c, c.After), digits(c.Factor), verdict); err != nil {
			return err
		}
	}
	if err := t.Render(); err != nil {
		return err
	}
	_, err := fmt.Fprintf(w, "\n%d figures: %d agree within a tenth, %d better, %d worse, %d unsure\n",
		len(changes), count[bench.Same], count[bench.Better], count[bench.Worse], count[bench.Unsure])
	return err
}

func estimate(c bench.Change, e stats.Estimate) string {
	if c.Of == "ratio" {
		return fmt.Sprintf("%s× (%s to %s)", digits(e.Median), digits(e.Low), digits(e.High))
	}
	return Quantity(e.Median, c.Unit)
}
