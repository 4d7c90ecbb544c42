package bench

import (
	"slices"
	"strings"

	"github.com/sessiontree/sessiontree/bench/backend"
)

// Target is what a figure should be at the most. The targets come from
// experiments with bare SQL and from measurements of other stores, on a machine
// with two cores on which an entry is scanned in 0.85 µs. Where a time has both, one
// of them will do: a slower machine needs more time, its limit too, and the ratio
// is that of the time to the limit where it was set.
type Target struct {
	// Ratio is at the most so many times the limit, or 0.
	Ratio float64 `json:"ratio,omitempty"`
	// Value is at the most so many of the row's unit, or 0.
	Value float64 `json:"value,omitempty"`
	// P99 says that Value is for the 99th percentile, not the median.
	P99 bool `json:"p99,omitempty"`
	// Total says that Value is for all entries of an operation together.
	Total bool `json:"total,omitempty"`
}

func (t *Target) met(r *Row) bool {
	if t.Ratio != 0 && r.Ratio != nil && r.Ratio.Median <= t.Ratio {
		return true
	}
	if t.Value == 0 {
		return false
	}
	value := r.Value.Median
	if t.P99 {
		value = r.P99
	}
	if t.Total {
		value *= r.Entries
	}
	return value <= t.Value
}

// targets are those of each operation; the first that fits holds.
var targets = []struct {
	operation string
	backend   string
	shapes    []string // none is all
	sizes     [2]int   // from, to; 0 is no bound
	Target
}{
	{operation: "build", backend: "sqlite", Target: Target{Ratio: 3}},
	{operation: "batch", backend: "sqlite", Target: Target{Ratio: 3}},
	{operation: "append", backend: "sqlite", Target: Target{Ratio: 1.4}},
	{operation: "append-normal", backend: "sqlite", Target: Target{Ratio: 5}},
	{operation: "append-32-writers", backend: "sqlite", Target: Target{Ratio: 1 / 0.7}},
	{operation: "append-at", backend: "sqlite", Target: Target{Ratio: 1.6}},
	{operation: "append-at-bytes", backend: "sqlite", shapes: []string{"chain"}, Target: Target{Value: 1500}},
	{operation: "move", backend: "sqlite", Target: Target{Ratio: 1.5}},
	{operation: "branch", backend: "sqlite", shapes: []string{"comb"}, sizes: [2]int{10_000, 0}, Target: Target{Value: 2500, Ratio: 2500.0 / 870}},
	{operation: "branch", backend: "sqlite", shapes: []string{"chain", "realistic"}, sizes: [2]int{10_000, 0}, Target: Target{Ratio: 1.5}},
	{operation: "context", backend: "sqlite", shapes: []string{"chain"}, sizes: [2]int{1_000, 1_000}, Target: Target{Value: 1e6, Total: true, Ratio: 1 / 0.4}},
	{operation: "context", backend: "sqlite", shapes: []string{"compacted"}, sizes: [2]int{100_000, 100_000}, Target: Target{Value: 15e6, Total: true, Ratio: 15.0 / 8}},
	// Longer branches than these are too large for the store's cache.
	{operation: "context-again", backend: "sqlite", shapes: []string{"chain", "comb", "compacted", "walk"}, sizes: [2]int{1_000, 50_000}, Target: Target{Value: 300}},
	{operation: "context-after-append", backend: "sqlite", shapes: []string{"chain", "comb", "compacted", "walk"}, sizes: [2]int{1_000, 50_000}, Target: Target{Value: 300}},
	{operation: "fresh-process", backend: "sqlite", shapes: []string{"compacted"}, sizes: [2]int{100_000, 100_000}, Target: Target{Value: 40e6, Ratio: 40.0 / 10}},
	{operation: "comb-level", backend: "sqlite", Target: Target{Ratio: 1.3}},
	{operation: "fork-whole", backend: "sqlite", sizes: [2]int{100_000, 100_000}, Target: Target{Value: 1.2e9, Total: true, Ratio: 1.2 / 0.5}},
	{operation: "list", backend: "sqlite", sizes: [2]int{10_000, 10_000}, Target: Target{Value: 60e6}},
	{operation: "list-page", backend: "sqlite", sizes: [2]int{10_000, 10_000}, Target: Target{Value: 5e6}},
	{operation: "import", backend: "sqlite", sizes: [2]int{5_000, 0}, Target: Target{Value: 20e3, Ratio: 20 / 5.5}},
	{operation: "create", backend: "sqlite", Target: Target{Value: 500e3, Ratio: 0.5 / 0.2}},
	// 780 bytes for entries of 480; those of our plain shapes have 549.
	{operation: "disk", backend: "sqlite", shapes: []string{"chain", "comb", "compacted", "walk"}, sizes: [2]int{10_000, 0}, Target: Target{Value: 780 + 549 - 480}},
	{operation: "disk-branch-set", backend: "sqlite", shapes: []string{"chain", "comb", "realistic"}, Target: Target{Value: 60}},
	{operation: "stream-memory", backend: "sqlite", sizes: [2]int{100_000, 100_000}, Target: Target{Value: 60 << 20}},
	{operation: "context-during-build", backend: "sqlite", Target: Target{Value: 5e6, P99: true}},

	{operation: "usage-by-day", backend: "sqlite", Target: Target{Value: 100e6}},
	{operation: "usage-by-month", backend: "sqlite", Target: Target{Value: 100e6}},
	{operation: "usage-by-model", backend: "sqlite", Target: Target{Value: 100e6}},
	{operation: "tools", backend: "sqlite", Target: Target{Value: 300e6}},
	{operation: "search-common", backend: "sqlite", Target: Target{Value: 50e6}},
	{operation: "search-rare", backend: "sqlite", Target: Target{Value: 50e6}},
	{operation: "search-absent", backend: "sqlite", Target: Target{Value: 50e6}},
	{operation: "search-ranked-common", backend: "sqlite", Target: Target{Ratio: 1.5}},
	{operation: "search-ranked-rare", backend: "sqlite", Target: Target{Ratio: 1.5}},
	{operation: "search-ranked-rare-page", backend: "sqlite", Target: Target{Ratio: 1.5}},
	{operation: "catch-up-branch", backend: "sqlite", Target: Target{Value: 10e3}},
	{operation: "catch-up-search", backend: "sqlite", Target: Target{Value: 100e3}},
	{operation: "catch-up-usage", backend: "sqlite", Target: Target{Value: 25e3}},
	{operation: "catch-up", backend: "sqlite", Target: Target{Value: 25e3}},
	{operation: "rebuild-branch", backend: "sqlite", sizes: [2]int{10_000, 0}, Target: Target{Value: 10e3}},

	{operation: "append", backend: "jsonl", Target: Target{Ratio: 1.2}},
	{operation: "branch", backend: "jsonl", sizes: [2]int{10_000, 0}, Target: Target{Value: 300}},
	{operation: "context-again", backend: "jsonl", sizes: [2]int{10_000, 0}, Target: Target{Value: 300}},
	{operation: "fresh-process", backend: "jsonl", shapes: []string{"chain"}, sizes: [2]int{100_000, 100_000}, Target: Target{Value: 250e6}},
	{operation: "fork-whole", backend: "jsonl", sizes: [2]int{100_000, 100_000}, Target: Target{Value: 0.5e9, Total: true}},
}

// targetOf is the target of a row; it holds in both dialects.
func targetOf(r *Row) *Target {
	of := strings.TrimSuffix(r.Backend, backend.InCodingAgent)
	for _, t := range targets {
		from, to := t.sizes[0], t.sizes[1]
		switch {
		case t.operation != r.Operation, t.backend != of:
		case len(t.shapes) > 0 && !slices.Contains(t.shapes, r.Shape):
		case r.Size < from, to != 0 && r.Size > to:
		default:
			return &t.Target
		}
	}
	return nil
}
