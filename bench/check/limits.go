package check

import (
	"fmt"
	"slices"

	"github.com/sessiontree/sessiontree/bench/stats"
)

// bound is what a figure may be at the most.
type bound struct {
	max      float64
	exponent float64
}

// Exponents that are allowed. Pages of a look-up grow with the depth of SQLite's
// trees, two levels from 500 entries to 32,000; ancestors are found in O(log)
// look-ups. What was spent has sums by the quarter of an hour, of 900 entries here:
// where a leaf moves far, those of all quarters that it passes change, and no more.
const (
	flat        = 0.2
	logarithmic = 0.35
	byTime      = 0.7
)

// bounds are those of each operation: a quarter above what is measured on the
// shape that costs most, and rows exactly.
var bounds = map[string]map[Metric]bound{
	"disk":            {LogBytes: {320, flat}, BranchBytes: {45, flat}},
	"context-of-50":   {Pages: {150, flat}, Allocations: {400, flat}},
	"is-ancestor":     {Pages: {73, logarithmic}, Allocations: {920, logarithmic}},
	"common-ancestor": {Pages: {122, logarithmic}, Allocations: {1900, logarithmic}},
	"branch":          {Pages: {2.6, flat}, Allocations: {5.2, flat}},
	"branch-pages":    {Pages: {2.7, flat}, Allocations: {6.6, flat}},
	"stream":          {Pages: {0.33, flat}, Allocations: {4, flat}},
	"fork":            {Pages: {6.2, flat}, Frames: {0.35, flat}, Rows: {1.6, flat}, Allocations: {4.8, flat}},
	"append":          {Pages: {14, flat}, Frames: {5, flat}, Rows: {3, flat}, Allocations: {180, flat}},
	"append-at":       {Pages: {45, flat}, Frames: {12, flat}, Rows: {4, flat}, Allocations: {350, flat}, UsageRows: {106, byTime}},
	"move":            {Pages: {50, flat}, Frames: {12, flat}, Rows: {4, flat}, Allocations: {400, flat}, UsageRows: {76, byTime}},
	"create":          {Pages: {35, flat}, Frames: {12, flat}, Rows: {4, flat}, Allocations: {210, flat}},
}

// figures fits the growth of what was counted on the trees of a shape, and holds
// it against the bounds.
func figures(shape string, sizes []int, trees []counted) (all []Figure) {
	for _, name := range names() {
		for _, metric := range []Metric{Pages, Frames, Rows, UsageRows, Allocations, LogBytes, BranchBytes} {
			f := Figure{Operation: name, Shape: shape, Metric: metric, PerEntry: perEntry(name), Sizes: sizes}
			for _, t := range trees {
				if v, ok := t[name][metric]; ok {
					f.Values = append(f.Values, v)
				}
			}
			if len(f.Values) == len(sizes) {
				f.judge(bounds[name][metric])
				all = append(all, f)
			}
		}
	}
	return all
}

func names() []string {
	all := []string{"disk"}
	for _, o := range operations {
		all = append(all, o.name)
	}
	return all
}

func perEntry(name string) bool {
	return name == "disk" || slices.ContainsFunc(operations, func(o operation) bool { return o.name == name && o.perEntry })
}

// judge says what is wrong with a figure.
func (f *Figure) judge(b bound) {
	f.Max, f.MaxExponent = b.max, b.exponent
	x, y := make([]float64, len(f.Sizes)), make([]float64, len(f.Sizes))
	for i := range f.Sizes {
		// One more of everything: zero has no logarithm, and from one to two is no
		// growth to speak of.
		x[i], y[i] = float64(f.Sizes[i]), f.Values[i]+1
	}
	f.Exponent, _ = stats.Exponent(x, y)
	last := f.Values[len(f.Values)-1]
	switch {
	case last > b.max:
		f.Problem = fmt.Sprintf("%.4g at the most, not %.4g", b.max, last)
	case f.Exponent > b.exponent:
		f.Problem = fmt.Sprintf("grows as the size to the power %.2f, not %.2f at the most", f.Exponent, b.exponent)
	}
}
