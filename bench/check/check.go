// Package check asserts what a store must do, in counts that are the same on
// every machine: pages asked for, pages written, rows changed, bytes on the disk
// and allocations, each by size and shape, and the exponents with which they
// grow. Times are not looked at.
//
// An operation that should be flat may grow with the depth of SQLite's trees and
// no faster; one that reads or writes many entries is held to its cost an entry.
// What asynchronous views do on their own is kept out: they are waited for before
// each operation, and figures are medians.
package check

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"time"

	"github.com/sessiontree/sessiontree/bench/backend"
	"github.com/sessiontree/sessiontree/bench/count"
	"github.com/sessiontree/sessiontree/bench/shape"
	"github.com/sessiontree/sessiontree/bench/stats"
	"github.com/sessiontree/sessiontree/eventlog"
	"github.com/sessiontree/sessiontree/eventlog/memory"
)

// Config says what is checked. Its zero value checks this module's store.
type Config struct {
	// Backend keeps its database where [backend.SQLite] does. Its zero value is that.
	Backend backend.Backend

	// Sizes are four numbers of entries or more; none is 500, 2,000, 8,000 and
	// 24,000.
	Sizes []int

	// Shapes are names of shapes; none is chain, comb, walk and realistic.
	Shapes []string

	// Seed draws the trees.
	Seed uint64

	// Dir is where databases are made and removed; "" is the system's folder for
	// temporary files.
	Dir string

	// Progress is told of each tree, if it is there.
	Progress func(shape string, size int)
}

const fewestSizes = 4

func (c Config) complete() (Config, error) {
	if c.Backend.Open == nil {
		c.Backend = backend.SQLite()
	}
	if len(c.Sizes) == 0 {
		c.Sizes = []int{500, 2_000, 8_000, 24_000}
	}
	if len(c.Shapes) == 0 {
		c.Shapes = []string{"chain", "comb", "walk", "realistic"}
	}
	if len(c.Sizes) < fewestSizes {
		return c, eventlog.Errorf(eventlog.InvalidArgument, "growth is fitted over %d sizes or more, not %d", fewestSizes, len(c.Sizes))
	}
	for _, n := range c.Sizes {
		if n < smallest {
			return c, eventlog.Errorf(eventlog.InvalidArgument, "a tree has %d entries or more here, not %d", smallest, n)
		}
	}
	return c, nil
}

// smallest is the size at which a context of [window] entries has room.
const smallest = 2 * window

// Figure is one count of an operation on a shape, at all sizes.
type Figure struct {
	Operation string    `json:"operation"`
	Shape     string    `json:"shape"`
	Metric    Metric    `json:"metric"`
	PerEntry  bool      `json:"perEntry"` // Values are for each entry that is read or written
	Sizes     []int     `json:"sizes"`
	Values    []float64 `json:"values"` // one a size
	Exponent  float64   `json:"exponent"`
	// MaxExponent and Max are what Exponent and the value of the largest tree may be
	// at the most.
	MaxExponent float64 `json:"maxExponent"`
	Max         float64 `json:"max"`
	// Problem says what is wrong, "" if nothing is.
	Problem string `json:"problem,omitempty"`
}

// Report is what a check found.
type Report struct {
	Seed    uint64   `json:"seed"`
	Figures []Figure `json:"figures"`
}

// Problems are the figures that are off.
func (r *Report) Problems() (off []Figure) {
	for _, f := range r.Figures {
		if f.Problem != "" {
			off = append(off, f)
		}
	}
	return off
}

// Run counts on trees of every shape and size. It fails with
// [eventlog.ErrInvalidArgument] and with what a store fails with; a figure that
// is off is no error.
func Run(ctx context.Context, c Config) (_ *Report, err error) {
	if c, err = c.complete(); err != nil {
		return nil, err
	}
	r := &Report{Seed: c.Seed}
	for _, name := range c.Shapes {
		s, err := shape.Find(name)
		if err != nil {
			return nil, err
		}
		var trees []counted
		for _, size := range c.Sizes {
			if c.Progress != nil {
				c.Progress(name, size)
			}
			t, err := c.tree(ctx, s, size)
			if err != nil {
				return nil, fmt.Errorf("%s of %d: %w", name, size, err)
			}
			trees = append(trees, t)
		}
		r.Figures = append(r.Figures, figures(name, c.Sizes, trees)...)
	}
	return r, nil
}

// counted are the values of a tree, by operation.
type counted map[string]values

// values are the medians of an operation.
type values map[Metric]float64

// tree builds a tree and counts what each operation does on it.
func (c Config) tree(ctx context.Context, s shape.Shape, size int) (_ counted, err error) {
	dir, err := os.MkdirTemp(c.Dir, "sessiontree-check-")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(dir)
	if dir, err = filepath.EvalSymlinks(dir); err != nil {
		return nil, err
	}
	t := &tree{counter: count.Watch(filepath.Join(dir, backend.DatabaseName)), rng: rand.New(rand.NewPCG(c.Seed, 1))}
	defer t.counter.Close()
	if t.store, err = c.Backend.Open(ctx, dir, backend.Options{Normal: true}); err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, t.store.Close(ctx)) }()
	if err := t.build(ctx, s, size, c.Seed); err != nil {
		return nil, err
	}
	all := counted{"disk": t.disk}
	for _, o := range operations {
		if all[o.name], err = t.measure(ctx, o); err != nil {
			return nil, fmt.Errorf("%s: %w", o.name, err)
		}
	}
	return all, nil
}

// tree is a tree in a store.
type tree struct {
	store    backend.Store
	counter  *count.Counter
	rng      *rand.Rand
	messages []string // ids, in log order
	path     []string // ids on the branch of the leaf
	fresh    int
	disk     values
}

const session = "checked"

func (t *tree) build(ctx context.Context, s shape.Shape, size int, seed uint64) error {
	if _, err := t.do(ctx, backend.Request{Op: backend.Create, Session: session}); err != nil {
		return err
	}
	var entries []eventlog.Entry
	var lines []string
	for e := range s.Entries(size, seed) {
		entries, lines = append(entries, e), append(lines, e.JSON())
		if e.Type() == eventlog.TypeMessage {
			t.messages = append(t.messages, e.ID())
		}
	}
	for len(lines) > 0 {
		const batch = 1000
		n := min(len(lines), batch)
		if _, err := t.do(ctx, backend.Request{Op: backend.Build, Session: session, Lines: lines[:n]}); err != nil {
			return err
		}
		lines = lines[n:]
	}
	branch, err := memory.New(s.Metadata(size, seed), entries, memory.Options{}).Branch(ctx, eventlog.At(entries[len(entries)-1].LeafAfter().ID()))
	if err != nil {
		return err
	}
	for _, e := range branch {
		t.path = append(t.path, e.ID())
	}
	return t.measureDisk(ctx, size, entries)
}

// measureDisk tells what the tree takes on the disk beyond its own text.
func (t *tree) measureDisk(ctx context.Context, size int, entries []eventlog.Entry) error {
	r, err := t.do(ctx, backend.Request{Op: backend.Size})
	if err != nil {
		return err
	}
	text := 0
	for _, e := range entries {
		text += len(e.JSON())
	}
	parts := map[backend.Part]int64{}
	for table, bytes := range r.Tables {
		parts[backend.PartOf(table)] += bytes
	}
	n := float64(size)
	t.disk = values{
		LogBytes:    float64(parts[backend.Log]-int64(text)) / n,
		BranchBytes: float64(parts[backend.BranchSet]) / n,
	}
	return nil
}

func (t *tree) do(ctx context.Context, r backend.Request) (backend.Reply, error) {
	reply, err := t.store.Do(ctx, r)
	if err != nil {
		err = fmt.Errorf("%s: %w", r.Op, err)
	}
	return reply, err
}

// measure counts an operation, several times over.
func (t *tree) measure(ctx context.Context, o operation) (values, error) {
	samples := map[Metric][]float64{}
	for i := range o.rounds + 1 {
		if i == 0 || samples[Rows][i-1] > 0 {
			if err := t.settle(ctx); err != nil {
				return nil, err
			}
		}
		v, err := t.once(ctx, o)
		if err != nil {
			return nil, err
		}
		for metric, value := range v {
			samples[metric] = append(samples[metric], value)
		}
	}
	counted := values{}
	for metric, s := range samples {
		usual := 0.5
		if metric == Allocations {
			usual = 0.25 // what else the process does is added to some of them
		}
		// The first time statements are prepared.
		counted[metric] = stats.Quantile(s[1:], usual)
	}
	return counted, nil
}

// patience is how long asynchronous views may take to come to rest.
const patience = time.Minute

// settle waits until the asynchronous views have caught up.
func (t *tree) settle(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	for {
		r, err := t.do(ctx, backend.Request{Op: backend.Lag})
		if err != nil || r.Count == 0 {
			return err
		}
		time.Sleep(time.Millisecond)
	}
}
