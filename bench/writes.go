package bench

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/sessiontree/sessiontree/bench/backend"
)

// singleAppends is how many single writes are measured.
const singleAppends = 300

func (b *bed) append(ctx context.Context) error {
	return b.repeat(ctx, "append", Nanos, 20, singleAppends, func() asked {
		return same(backend.Request{Op: backend.Append, Session: mainSession, Lines: b.someMessages(1)})
	})
}

// writers appends by so many goroutines at a time. A figure is the time of all by
// their number: what an append costs in throughput. What one of them waits for is
// a row of its own.
func writers(n int) func(*bed, context.Context) error {
	const rounds, appends = 12, 20
	return func(b *bed, ctx context.Context) error {
		name := fmt.Sprintf("append-%d-writers", n)
		m := b.measure(name, NanosPerEntry)
		for range b.config.samples(rounds) {
			r := backend.Request{Op: backend.Append, Session: mainSession, Lines: b.someMessages(n * appends), Writers: n}
			if err := m.turn(ctx, same(r)); err != nil {
				return err
			}
		}
		m.done()
		wait := b.measure(name+"-wait", Nanos)
		for c, replies := range m.replies {
			for _, r := range replies {
				for _, nanos := range r.Each {
					wait.take(c, backend.Reply{Nanos: nanos})
				}
			}
		}
		wait.done()
		return nil
	}
}

func (b *bed) appendNormal(ctx context.Context) error {
	reopen := func(o backend.Options) error {
		for _, c := range b.stores {
			if c.Memory {
				continue
			}
			if err := c.reopen(ctx, o); err != nil {
				return err
			}
		}
		return nil
	}
	if err := reopen(backend.Options{Normal: true}); err != nil {
		return err
	}
	err := b.repeat(ctx, "append-normal", Nanos, 20, 2*singleAppends, func() asked {
		return same(backend.Request{Op: backend.Append, Session: mainSession, Lines: b.someMessages(1)})
	})
	if err != nil {
		return err
	}
	return reopen(backend.Options{})
}

// imports takes files of the same shape and size, of other seeds: so many that
// their entries are no fewer than those of the forks.
func (b *bed) imports(ctx context.Context) error {
	m := b.measure("import", NanosPerEntry)
	for i := range b.config.samples(forks(b.size)) {
		path := filepath.Join(b.dir, fmt.Sprintf("import-%d.jsonl", i))
		file, err := os.Create(path)
		if err != nil {
			return err
		}
		err = errors.Join(b.shape.Write(file, b.size, b.config.Seed+uint64(i)+1), file.Close())
		if err != nil {
			return err
		}
		if err := m.turn(ctx, same(backend.Request{Op: backend.Import, File: path})); err != nil {
			return err
		}
	}
	m.done()
	return nil
}

func (b *bed) batch(ctx context.Context) error {
	const batches = 10
	return b.repeat(ctx, "batch", NanosPerEntry, 0, batches, func() asked {
		return same(backend.Request{Op: backend.Batch, Session: mainSession, Lines: b.someMessages(batchSize(b.size))})
	})
}

// turns appends and builds the context. The limit of the turn is an append: a
// host that has all in memory needs no more.
func (b *bed) turns(ctx context.Context) error {
	both, alone := b.measure("turn", Nanos), b.measure("context-after-append", NanosPerEntry)
	for range b.config.samples(min(readsFor(len(b.path)), 50)) + 1 {
		lines := b.someMessages(1)
		err := both.turn(ctx, asked{
			backend.Request{Op: backend.Turn, Session: mainSession, Lines: lines},
			&backend.Request{Op: backend.Append, Session: mainSession, Lines: lines},
		})
		if err != nil {
			return err
		}
	}
	for c, replies := range both.replies {
		if !c.limit {
			alone.replies[c] = replies[1:] // the first context is not yet one after another
		}
	}
	alone.value = func(r backend.Reply) float64 { return float64(r.Each[1]) }
	both.done()
	alone.done()
	return nil
}

func (b *bed) appendAt(ctx context.Context) error {
	appends := float64(b.config.samples(singleAppends))
	before, err := b.sizes(ctx)
	if err != nil {
		return err
	}
	err = b.repeat(ctx, "append-at", Nanos, 0, singleAppends, func() asked {
		return same(backend.Request{Op: backend.AppendAt, Session: mainSession, Entry: b.anywhere(), Lines: b.someMessages(1)})
	})
	if err != nil {
		return err
	}
	after, err := b.sizes(ctx)
	if err != nil {
		return err
	}
	m := b.measure("append-at-bytes", Bytes)
	m.value = func(r backend.Reply) float64 { return float64(r.Bytes) / appends }
	for c, size := range after {
		m.take(c, backend.Reply{Bytes: size.Bytes - before[c].Bytes})
	}
	m.done()
	return nil
}

// move is held against an append in another session of the same store.
func (b *bed) move(ctx context.Context) error {
	for _, c := range b.stores {
		if c.limit {
			continue
		}
		err := b.moveOf(ctx, c)
		if unsupported(err) {
			b.leaveOut(c, "move", b.shape.Name, b.size, err)
			continue
		}
		if err != nil {
			return err
		}
	}
	return nil
}

func (b *bed) moveOf(ctx context.Context, c *contender) error {
	plain := b.name()
	if _, err := c.do(ctx, backend.Request{Op: backend.Create, Session: plain}); err != nil {
		return err
	}
	r := Row{Operation: "move", Backend: c.Name, Shape: b.shape.Name, Size: b.size, Unit: Nanos, Against: "append"}
	for range b.config.samples(singleAppends) {
		moved, err := c.do(ctx, backend.Request{Op: backend.Move, Session: mainSession, Entry: b.anywhere()})
		if err != nil {
			return err
		}
		appended, err := c.do(ctx, backend.Request{Op: backend.Append, Session: plain, Lines: b.someMessages(1)})
		if err != nil {
			return err
		}
		r.Samples, r.Limit = append(r.Samples, float64(moved.Nanos)), append(r.Limit, float64(appended.Nanos))
	}
	b.row(r)
	return nil
}

func (b *bed) create(ctx context.Context) error {
	return b.repeat(ctx, "create", Nanos, 5, singleAppends, func() asked {
		return same(backend.Request{Op: backend.Create, Session: b.name()})
	})
}
