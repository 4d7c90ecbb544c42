package bench

import (
	"time"

	"github.com/sessiontree/sessiontree/bench/machine"
	"github.com/sessiontree/sessiontree/bench/stats"
)

// Result is what a run found. Its JSON is what "sessiontree bench --json" prints
// and "bench compare" reads.
type Result struct {
	Machine  machine.Fingerprint `json:"machine"`
	Seed     uint64              `json:"seed"`
	Started  time.Time           `json:"started"`
	Duration time.Duration       `json:"duration"` // nanoseconds
	Rows     []Row               `json:"rows"`
	Growth   []Growth            `json:"growth"`
	NotRun   []NotRun            `json:"notRun,omitempty"`
}

// NotRun is what was not measured of a backend, and why: an operation on a tree,
// and what follows from it for the same reason, or everything.
type NotRun struct {
	Backend   string `json:"backend"`
	Operation string `json:"operation,omitempty"` // "" is everything
	Shape     string `json:"shape,omitempty"`
	Size      int    `json:"size,omitempty"`
	Reason    string `json:"reason"`
}

// Unit is what a figure counts.
type Unit string

const (
	Nanos         Unit = "ns"       // nanoseconds an operation
	NanosPerEntry Unit = "ns/entry" // nanoseconds for each entry that is read or written
	Bytes         Unit = "B"
	BytesPerEntry Unit = "B/entry"
)

// Row is one figure: an operation of a backend on a tree.
type Row struct {
	Operation string `json:"operation"`
	Backend   string `json:"backend"`
	Shape     string `json:"shape"`
	Size      int    `json:"size"` // entries of the tree; sessions of a list; levels of a comb built one by one
	Unit      Unit   `json:"unit"`
	// Entries is how many entries an operation reads or writes, the median; 0 where
	// that is no matter.
	Entries float64 `json:"entries,omitempty"`

	Samples []float64      `json:"samples"`
	Value   stats.Estimate `json:"value"`
	P99     float64        `json:"p99"`

	// Against is what Limit holds the samples of: the limit's name, or another
	// operation. "" is nothing.
	Against string    `json:"against,omitempty"`
	Limit   []float64 `json:"limit,omitempty"`
	// Ratio is the median of the samples by those of Limit, pair by pair.
	Ratio *stats.Estimate `json:"ratio,omitempty"`
	// Quiet is the tenth percentile of the samples by that of Limit: the ratio in
	// moments in which nothing else ran. 0 where there is no limit.
	Quiet float64 `json:"quiet,omitempty"`

	// CPU is the processor time of this process for each unit, the mean: what other
	// programs do does not change it. 0 where the system does not tell, and for
	// stores in other processes. CPURatio is that by the limit's.
	CPU      float64 `json:"cpu,omitempty"`
	CPURatio float64 `json:"cpuRatio,omitempty"`

	// Unsure says that the interval reaches farther than a tenth: of the ratio
	// where there is one, else of the value.
	Unsure bool `json:"unsure,omitempty"`

	Target *Target `json:"target,omitempty"`
	Met    bool    `json:"met,omitempty"` // the target
}

// quiet is the percentile that stands for a machine at rest.
const quiet = 0.1

// unsureBeyond is the part of a figure by which two runs may differ.
const unsureBeyond = 0.1

// finish fills in what follows from the samples.
func (r *Row) finish() {
	r.Value = stats.Median(r.Samples)
	r.P99 = stats.Quantile(r.Samples, 0.99)
	r.Unsure = r.Value.Wide(unsureBeyond)
	if len(r.Limit) > 0 {
		ratio := stats.Median(stats.Ratios(r.Samples, r.Limit))
		r.Ratio, r.Unsure = &ratio, ratio.Wide(unsureBeyond)
		r.Quiet = stats.Quantile(r.Samples, quiet) / stats.Quantile(r.Limit, quiet)
	}
	if r.Target = targetOf(r); r.Target != nil {
		r.Met = r.Target.met(r)
	}
}

// Growth is how the cost of an operation grows, fitted over all sizes.
type Growth struct {
	Operation string  `json:"operation"`
	Backend   string  `json:"backend"`
	Shape     string  `json:"shape"`
	Sizes     []int   `json:"sizes"`
	By        string  `json:"by"`       // "size" of the tree, or "entries" that are read or written
	Exponent  float64 `json:"exponent"` // cost grows as the size, or the entries, to this power
	Expected  float64 `json:"expected"` // 0 is flat, 1 linear
}
