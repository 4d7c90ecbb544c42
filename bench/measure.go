package bench

import (
	"context"
	"errors"
	"time"

	"github.com/sessiontree/sessiontree/bench/backend"
	"github.com/sessiontree/sessiontree/bench/machine"
	"github.com/sessiontree/sessiontree/bench/stats"
)

// asked is one question: what the stores are asked, and what the limits are
// asked in its place; nil asks them nothing.
type asked struct {
	ours  backend.Request
	limit *backend.Request
}

// same asks the limits what the stores are asked.
func same(r backend.Request) asked { return asked{r, &r} }

// measurement collects the samples of one operation on a bed.
type measurement struct {
	*bed
	operation string
	unit      Unit
	size      int
	value     func(backend.Reply) float64 // what counts of a reply

	turns   int
	replies map[*contender][]backend.Reply
	cpu     map[*contender]time.Duration // of all replies together
	missing map[*contender]bool          // it does not have the operation
}

func (b *bed) measure(operation string, unit Unit) *measurement {
	return &measurement{bed: b, operation: operation, unit: unit, size: b.size,
		value:   func(r backend.Reply) float64 { return float64(r.Nanos) },
		replies: map[*contender][]backend.Reply{}, cpu: map[*contender]time.Duration{}, missing: map[*contender]bool{}}
}

// turn asks every store the same once, a different one first each time.
func (m *measurement) turn(ctx context.Context, a asked) error {
	n := len(m.stores)
	for i := range n {
		c := m.stores[(i+m.turns)%n]
		r := a.ours
		if c.limit {
			if a.limit == nil {
				continue
			}
			r = *a.limit
		}
		if err := m.ask(ctx, c, r); err != nil {
			return err
		}
	}
	m.turns++
	return nil
}

func (m *measurement) ask(ctx context.Context, c *contender, r backend.Request) error {
	if m.missing[c] {
		return nil
	}
	before, ok := machine.CPU()
	reply, err := c.do(ctx, r)
	if errors.Is(err, errors.ErrUnsupported) {
		m.missing[c] = true
		m.leaveOut(c, m.operation, m.shape.Name, m.size, err)
		return nil
	}
	if err != nil {
		return err
	}
	if after, _ := machine.CPU(); ok && !c.Process {
		m.cpu[c] += after - before
	}
	m.take(c, reply)
	return nil
}

func (m *measurement) take(c *contender, r backend.Reply) { m.replies[c] = append(m.replies[c], r) }

// perEntry says whether figures are divided by the number of entries.
func (m *measurement) perEntry() bool { return m.unit == NanosPerEntry || m.unit == BytesPerEntry }

// samples are the figures of a store, and the median of how many entries each
// was about.
func (m *measurement) samples(c *contender) (samples []float64, entries float64) {
	var counts []float64
	for _, r := range m.replies[c] {
		value := m.value(r)
		if m.perEntry() {
			value /= max(float64(r.Count), 1)
			counts = append(counts, float64(r.Count))
		}
		samples = append(samples, value)
	}
	if counts != nil {
		entries = stats.Quantile(counts, 0.5)
	}
	return samples, entries
}

// perUnit is the processor time of a store for each unit, 0 where it is not known.
func (m *measurement) perUnit(c *contender) float64 {
	units := 0.0
	for _, r := range m.replies[c] {
		if m.perEntry() {
			units += float64(r.Count)
		} else {
			units++
		}
	}
	return float64(m.cpu[c]) / max(units, 1)
}

// done makes a row of the samples of each store that did all that it was asked.
func (m *measurement) done() {
	for _, c := range m.stores {
		if c.limit || m.missing[c] || len(m.replies[c]) == 0 {
			continue
		}
		r := Row{Operation: m.operation, Backend: c.Name, Shape: m.shape.Name, Size: m.size, Unit: m.unit}
		r.Samples, r.Entries = m.samples(c)
		r.CPU = m.perUnit(c)
		if limit := m.find(c.Limit); limit != nil && len(m.replies[limit]) == len(r.Samples) {
			r.Against = limit.Name
			r.Limit, _ = m.samples(limit)
			if of := m.perUnit(limit); of > 0 {
				r.CPURatio = r.CPU / of
			}
		}
		m.row(r)
	}
}

// row adds a row of a store.
func (b *bed) row(r Row) {
	r.finish()
	b.rows = append(b.rows, r)
}

// repeat asks as often as n is with the run's effort, and makes rows of it. The
// first warm answers do not count.
func (b *bed) repeat(ctx context.Context, operation string, unit Unit, warm, n int, next func() asked) error {
	cold := b.measure(operation, unit)
	for range warm {
		if err := cold.turn(ctx, next()); err != nil {
			return err
		}
	}
	m := b.measure(operation, unit)
	for range b.config.samples(n) {
		if err := m.turn(ctx, next()); err != nil {
			return err
		}
	}
	m.done()
	return nil
}
