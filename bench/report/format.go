// Package report shows what a run of bench found: as a table, as one HTML page
// with plots that needs no network, and as a comparison of two runs.
package report

import (
	"fmt"
	"math"
	"strconv"
	"strings"

	"github.com/sessiontree/sessiontree/bench"
)

// Quantity writes a figure with its unit, in three digits.
func Quantity(v float64, u bench.Unit) string {
	switch u {
	case bench.Nanos:
		return duration(v)
	case bench.NanosPerEntry:
		return duration(v) + "/entry"
	case bench.Bytes:
		return bytes(v)
	case bench.BytesPerEntry:
		return bytes(v) + "/entry"
	}
	return digits(v)
}

func duration(ns float64) string {
	switch a := math.Abs(ns); {
	case a >= 1e9:
		return digits(ns/1e9) + " s"
	case a >= 1e6:
		return digits(ns/1e6) + " ms"
	case a >= 1e3:
		return digits(ns/1e3) + " µs"
	}
	return digits(ns) + " ns"
}

func bytes(n float64) string {
	switch a := math.Abs(n); {
	case a >= 1<<20:
		return digits(n/(1<<20)) + " MiB"
	case a >= 10<<10:
		return digits(n/(1<<10)) + " KiB"
	}
	return digits(n) + " B"
}

// digits writes three significant digits, and no exponent.
func digits(v float64) string {
	a := math.Abs(v)
	switch {
	case math.IsNaN(v) || math.IsInf(v, 0):
		return "-"
	case a >= 100:
		return strconv.FormatFloat(v, 'f', 0, 64)
	case a >= 10:
		return strconv.FormatFloat(v, 'f', 1, 64)
	}
	return strconv.FormatFloat(v, 'f', 2, 64)
}

// size writes a number of entries.
func size(n int) string {
	switch {
	case n >= 1_000_000 && n%1_000_000 == 0:
		return fmt.Sprintf("%dM", n/1_000_000)
	case n >= 1_000 && n%1_000 == 0:
		return fmt.Sprintf("%dk", n/1_000)
	}
	return strconv.Itoa(n)
}

// target writes what a figure should be.
func target(r bench.Row) string {
	t := r.Target
	if t == nil {
		return ""
	}
	var most []string
	switch {
	case t.Value == 0:
	case t.P99:
		most = append(most, "p99 ≤ "+Quantity(t.Value, r.Unit))
	case t.Total:
		most = append(most, "≤ "+duration(t.Value)+" in all")
	default:
		most = append(most, "≤ "+Quantity(t.Value, r.Unit))
	}
	if t.Ratio != 0 {
		most = append(most, "≤ "+digits(t.Ratio)+"×")
	}
	return strings.Join(most, " or ")
}

// verdict says whether the target is met.
func verdict(r bench.Row) string {
	switch {
	case r.Target == nil:
		return ""
	case r.Met:
		return "met"
	}
	return "MISSED"
}

// times writes a factor, nothing for none.
func times(factor float64) string {
	if factor == 0 {
		return ""
	}
	return digits(factor) + "×"
}

// ratio writes how often the limit fits into a figure, with the interval.
func ratio(r bench.Row) string {
	if r.Ratio == nil {
		return ""
	}
	text := fmt.Sprintf("%s× (%s to %s)", digits(r.Ratio.Median), digits(r.Ratio.Low), digits(r.Ratio.High))
	if r.Unsure {
		text += " ?"
	}
	return text
}
