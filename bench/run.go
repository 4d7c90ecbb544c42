package bench

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/sessiontree/sessiontree/bench/backend"
	"github.com/sessiontree/sessiontree/bench/machine"
	"github.com/sessiontree/sessiontree/bench/shape"
)

// Run measures what c asks for. It fails with [eventlog.ErrInvalidArgument] for
// a configuration that makes no sense, with the context's error when it ends,
// and with what a store failed with; then there is no result.
func Run(ctx context.Context, c Config) (_ *Result, err error) {
	if c, err = c.complete(); err != nil {
		return nil, err
	}
	dir, err := os.MkdirTemp(c.Dir, "sessiontree-bench-")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(dir)
	r := &Result{Seed: c.Seed, Started: time.Now().UTC()}
	if r.Machine, err = machine.Look(ctx, dir); err != nil {
		return nil, err
	}
	c.Backends, r.NotRun = present(c.Backends)
	plans := c.plans()
	steps := progress{tell: c.Progress}
	for _, p := range plans {
		steps.total += p.steps()
	}
	for i, p := range plans {
		rows, notRun, err := p.run(ctx, filepath.Join(dir, fmt.Sprint(i)), &steps)
		if err != nil {
			return nil, err
		}
		r.Rows, r.NotRun = append(r.Rows, rows...), append(r.NotRun, notRun...)
		r.Growth = growth(r.Rows)
		r.Duration = time.Since(r.Started)
		if c.Keep != nil {
			if err := c.Keep(r); err != nil {
				return nil, err
			}
		}
	}
	return r, nil
}

// progress counts the steps of a run.
type progress struct {
	done, total int
	tell        func(Progress)
}

func (p *progress) step(format string, args ...any) {
	if p.tell != nil {
		p.tell(Progress{p.done, p.total, fmt.Sprintf(format, args...)})
	}
	p.done++
}

// plan is one bed and what is measured on it.
type plan struct {
	config     Config
	subjects   []backend.Backend
	shape      shape.Shape
	size       int
	operations []operation
	silent     bool // building it is no figure
}

// groups are the backends that are measured together: each of this process by
// itself, since what one keeps in memory costs the others; those of other
// processes beside the first.
func (c Config) groups() [][]backend.Backend {
	var groups [][]backend.Backend
	var others []backend.Backend
	for _, b := range c.Backends {
		if b.Process {
			others = append(others, b)
		} else {
			groups = append(groups, []backend.Backend{b})
		}
	}
	switch {
	case len(c.Backends) == 0:
		return nil
	case len(groups) == 0:
		return [][]backend.Backend{others}
	}
	groups[0] = append(groups[0], others...)
	return groups
}

func (c Config) plans() []plan {
	var plans []plan
	for _, subjects := range c.groups() {
		for _, name := range c.Shapes {
			s, _ := shape.Find(name) // complete has found it
			for _, size := range c.Sizes {
				p := plan{config: c, subjects: subjects, shape: s, size: size}
				for _, o := range operations {
					if !o.once && c.wants(o) && (o.shape == "" || o.shape == name) {
						p.operations = append(p.operations, o)
					}
				}
				if len(p.operations) > 0 || len(c.Operations) == 0 {
					plans = append(plans, p)
				}
			}
		}
		// What depends on no tree is measured beside a small chain.
		s, _ := shape.Find("chain")
		p := plan{config: c, subjects: subjects, shape: s, size: minSize, silent: true}
		for _, o := range operations {
			if o.once && c.wants(o) {
				p.operations = append(p.operations, o)
			}
		}
		if len(p.operations) > 0 {
			plans = append(plans, p)
		}
	}
	return plans
}

func (p plan) steps() int { return 1 + len(p.operations) }

func (p plan) run(ctx context.Context, dir string, steps *progress) ([]Row, []NotRun, error) {
	defer os.RemoveAll(dir)
	where := fmt.Sprintf("%s %s %d", p.subjects[0].Name, p.shape.Name, p.size)
	steps.step("%s: build", where)
	b, err := newBed(ctx, p, dir)
	if err != nil {
		return nil, nil, fmt.Errorf("%s: build: %w", where, err)
	}
	defer b.close(context.WithoutCancel(ctx))
	for _, o := range p.operations {
		steps.step("%s: %s", where, o.name)
		err := b.settle(ctx, o.name)
		if err == nil {
			err = o.run(b, ctx)
		}
		if err != nil {
			return nil, nil, fmt.Errorf("%s: %s: %w", where, o.name, err)
		}
	}
	return b.rows, b.notRun, nil
}
