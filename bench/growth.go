package bench

import "github.com/sessiontree/sessiontree/bench/stats"

// fewestSizes are needed for a slope that means anything.
const fewestSizes = 4

// growth fits an exponent for each operation, backend and shape that was
// measured at four sizes or more. An operation that reads or writes many entries
// is held against their number; another against the size of the tree.
func growth(rows []Row) []Growth {
	type key struct{ operation, backend, shape string }
	var order []key
	series := map[key][]Row{}
	for _, r := range rows {
		if r.Unit != Nanos && r.Unit != NanosPerEntry {
			continue
		}
		k := key{r.Operation, r.Backend, r.Shape}
		if series[k] == nil {
			order = append(order, k)
		}
		series[k] = append(series[k], r)
	}
	var all []Growth
	for _, k := range order {
		g := Growth{Operation: k.operation, Backend: k.backend, Shape: k.shape, By: "size"}
		var x, y []float64
		for _, r := range series[k] {
			g.Sizes = append(g.Sizes, r.Size)
			if r.Unit == NanosPerEntry {
				g.By, g.Expected = "entries", 1
				x, y = append(x, r.Entries), append(y, r.Value.Median*r.Entries)
				continue
			}
			x, y = append(x, float64(r.Size)), append(y, r.Value.Median)
		}
		if len(g.Sizes) < fewestSizes {
			continue
		}
		var ok bool
		if g.Exponent, ok = stats.Exponent(x, y); ok {
			all = append(all, g)
		}
	}
	return all
}
