package bench

import (
	"encoding/json"
	"fmt"
	"io"

	"github.com/sessiontree/sessiontree/bench/stats"
	"github.com/sessiontree/sessiontree/eventlog"
)

// ReadResult reads a result as its JSON. It fails with
// [eventlog.ErrInvalidArgument] for what is none.
func ReadResult(r io.Reader) (*Result, error) {
	var result Result
	d := json.NewDecoder(r)
	d.DisallowUnknownFields()
	if err := d.Decode(&result); err != nil {
		return nil, &eventlog.Error{Code: eventlog.InvalidArgument, Message: "no result of a bench", Err: err}
	}
	for i, row := range result.Rows {
		if row.Operation == "" || len(row.Samples) == 0 {
			return nil, eventlog.Errorf(eventlog.InvalidArgument, "no result of a bench: row %d has no operation or no samples", i+1)
		}
	}
	return &result, nil
}

// Change is what became of a figure from one run to another.
type Change struct {
	Operation string `json:"operation"`
	Backend   string `json:"backend"`
	Shape     string `json:"shape"`
	Size      int    `json:"size"`
	// Of is what is compared: "ratio", to the limit, where both runs have it, else
	// "value".
	Of     string         `json:"of"`
	Unit   Unit           `json:"unit"`
	Before stats.Estimate `json:"before"`
	After  stats.Estimate `json:"after"`
	// Factor is After by Before.
	Factor  float64 `json:"factor"`
	Verdict Verdict `json:"verdict"`
}

// Verdict says what a change means.
type Verdict string

const (
	Same   Verdict = "same"   // within a tenth
	Better Verdict = "better" // by more than a tenth, and the intervals lie apart
	Worse  Verdict = "worse"
	Unsure Verdict = "unsure" // more than a tenth apart, but the intervals meet
)

// Compare holds the figures of two runs against each other, those that both
// have. The runs are of the same seed, or they asked for different bytes: else
// it fails with [eventlog.ErrInvalidArgument]. Machines may differ: then ratios
// are worth comparing, and values are not.
func Compare(before, after *Result) ([]Change, error) {
	if before.Seed != after.Seed {
		return nil, eventlog.Errorf(eventlog.InvalidArgument, "the runs have different seeds, %d and %d", before.Seed, after.Seed)
	}
	key := func(r Row) string { return fmt.Sprint(r.Operation, "\x00", r.Backend, "\x00", r.Shape, "\x00", r.Size) }
	rows := map[string]Row{}
	for _, r := range before.Rows {
		rows[key(r)] = r
	}
	var changes []Change
	for _, b := range after.Rows {
		a, ok := rows[key(b)]
		if !ok || a.Unit != b.Unit {
			continue
		}
		c := Change{Operation: b.Operation, Backend: b.Backend, Shape: b.Shape, Size: b.Size, Of: "value", Unit: b.Unit, Before: a.Value, After: b.Value}
		if a.Ratio != nil && b.Ratio != nil {
			c.Of, c.Before, c.After = "ratio", *a.Ratio, *b.Ratio
		}
		c.judge()
		changes = append(changes, c)
	}
	return changes, nil
}

func (c *Change) judge() {
	c.Factor = c.After.Median / c.Before.Median
	if c.Before.Median == 0 && c.After.Median == 0 {
		c.Factor = 1
	}
	switch {
	case c.Factor <= 1+unsureBeyond && c.Factor >= 1/(1+unsureBeyond):
		c.Verdict = Same
	case c.After.Low > c.Before.High:
		c.Verdict = Worse
	case c.After.High < c.Before.Low:
		c.Verdict = Better
	default:
		c.Verdict = Unsure
	}
}

// SameMachine says whether two runs are of machines that cannot be told apart.
func SameMachine(a, b *Result) bool {
	x, y := a.Machine, b.Machine
	return x.OS == y.OS && x.Arch == y.Arch && x.CPU == y.CPU && x.Cores == y.Cores && x.Memory == y.Memory && x.FileSystem == y.FileSystem
}
