package report

import (
	"fmt"
	"io"
	"strings"

	"github.com/sessiontree/sessiontree/bench/check"
)

// Check writes what a check counted as a table, and what is off.
func Check(w io.Writer, r *check.Report) error {
	t := newTable(w, "operation", "shape", "metric", "of sizes", "counted", "at most", "grows as the size to the", "at most", "")
	for _, f := range r.Figures {
		metric := string(f.Metric)
		if f.PerEntry {
			metric += " an entry"
		}
		off := ""
		if f.Problem != "" {
			off = "OFF"
		}
		if err := t.Append(f.Operation, f.Shape, metric, sizes(f.Sizes), numbers(f.Values), digits(f.Max), digits(f.Exponent), digits(f.MaxExponent), off); err != nil {
			return err
		}
	}
	if err := t.Render(); err != nil {
		return err
	}
	problems := r.Problems()
	fmt.Fprintf(w, "\n%d figures, %d off\n", len(r.Figures), len(problems))
	for _, f := range problems {
		if _, err := fmt.Fprintf(w, "%s of %s, %s: %s\n", f.Operation, f.Shape, f.Metric, f.Problem); err != nil {
			return err
		}
	}
	return nil
}

func numbers(values []float64) string {
	texts := make([]string, len(values))
	for i, v := range values {
		texts[i] = digits(v)
	}
	return strings.Join(texts, ", ")
}
