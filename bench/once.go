package bench

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"

	"github.com/sessiontree/sessiontree/bench/backend"
)

var errUnsupported = errors.ErrUnsupported

func unsupported(err error) bool { return errors.Is(err, errUnsupported) }

// combLevels builds a comb as a host does, level by level, beside three plain
// appends a level in another session of the same store. It is longer where large
// trees are asked for.
func (b *bed) combLevels(ctx context.Context) error {
	for _, levels := range []int{2_000, 10_000} {
		if levels > 2_000 && slices.Max(b.config.Sizes) < 100_000 {
			continue
		}
		levels = b.config.samples(levels)
		for _, c := range b.stores {
			if c.limit {
				continue
			}
			err := b.combOf(ctx, c, levels)
			if unsupported(err) {
				b.leaveOut(c, "comb-level", "comb", levels, err)
				continue
			}
			if err != nil {
				return err
			}
		}
	}
	return nil
}

func (b *bed) combOf(ctx context.Context, c *contender, levels int) error {
	comb, plain := b.name(), b.name()
	for _, name := range []string{comb, plain} {
		if _, err := c.do(ctx, backend.Request{Op: backend.Create, Session: name}); err != nil {
			return err
		}
	}
	r := Row{Operation: "comb-level", Backend: c.Name, Shape: "comb", Size: levels, Unit: Nanos, Against: "3 appends"}
	parent := ""
	for range levels {
		level, next, err := c.combLevel(ctx, comb, parent, b.someMessages(2))
		if err != nil {
			return err
		}
		parent = next
		appends, err := c.do(ctx, backend.Request{Op: backend.Append, Session: plain, Lines: b.someMessages(3)})
		if err != nil {
			return err
		}
		r.Samples, r.Limit = append(r.Samples, float64(level)), append(r.Limit, float64(appends.Nanos))
	}
	b.row(r)
	return nil
}

// combLevel appends a dead entry, moves back and appends the entry that the comb
// goes on from. At the root there is nothing to move back to.
func (c *contender) combLevel(ctx context.Context, session, parent string, lines []string) (nanos int64, next string, err error) {
	requests := []backend.Request{
		{Op: backend.Append, Session: session, Lines: lines[:1]},
		{Op: backend.Move, Session: session, Entry: parent},
		{Op: backend.Append, Session: session, Lines: lines[1:]},
	}
	for _, r := range requests {
		reply, err := c.do(ctx, r)
		if err != nil {
			return 0, "", err
		}
		nanos += reply.Nanos
		next = reply.Leaf
	}
	return nanos, next, nil
}

// contextDuringBuild reads a short session again and again while another is
// built in bulk in the same store.
func (b *bed) contextDuringBuild(ctx context.Context) error {
	const messages, batches = 50, 10
	batch := b.config.samples(10_000)
	for _, c := range b.stores {
		if c.limit || c.Process {
			continue
		}
		short, long := b.name(), b.name()
		for _, name := range []string{short, long} {
			if _, err := c.do(ctx, backend.Request{Op: backend.Create, Session: name}); err != nil {
				return err
			}
		}
		if _, err := c.do(ctx, backend.Request{Op: backend.Batch, Session: short, Lines: b.someMessages(messages)}); err != nil {
			return err
		}
		lines, built := b.someMessages(batch), make(chan error, 1)
		go func() {
			var err error
			for i := 0; i < batches && err == nil; i++ {
				_, err = c.do(ctx, backend.Request{Op: backend.Batch, Session: long, Lines: lines})
			}
			built <- err
		}()
		r := Row{Operation: "context-during-build", Backend: c.Name, Shape: "chain", Size: messages, Unit: Nanos}
		for building := true; building; {
			reply, err := c.do(ctx, backend.Request{Op: backend.Context, Session: short})
			if err != nil {
				<-built
				return err
			}
			r.Samples = append(r.Samples, float64(reply.Nanos))
			select {
			case err := <-built:
				if err != nil {
					return err
				}
				building = false
			default:
			}
		}
		b.row(r)
	}
	return nil
}

// list makes a store of many short sessions, and lists them.
func (b *bed) list(ctx context.Context) error {
	lists := &bed{plan: b.plan, dir: filepath.Join(b.dir, "list"), rng: b.rng}
	defer func() {
		lists.close(context.WithoutCancel(ctx))
		os.RemoveAll(lists.dir)
	}()
	for _, c := range b.stores {
		l := &contender{Backend: c.Backend, dir: filepath.Join(lists.dir, c.Name), limit: c.limit}
		if err := os.MkdirAll(l.dir, 0o700); err != nil {
			return err
		}
		var err error
		if l.store, err = l.Open(ctx, l.dir, backend.Options{Normal: true}); err != nil {
			return err
		}
		if _, err := l.do(ctx, backend.Request{Op: backend.List}); unsupported(err) {
			if err := l.store.Close(ctx); err != nil {
				return err
			}
			continue
		}
		lists.stores = append(lists.stores, l)
		err = l.fillWithSessions(ctx, b.config.Sessions, b.someMessages(2))
		if unsupported(err) {
			b.leaveOut(l, "list", b.shape.Name, b.config.Sessions, err)
			lists.stores = lists.stores[:len(lists.stores)-1]
			if err := l.store.Close(ctx); err != nil {
				return err
			}
			continue
		}
		if err != nil {
			return err
		}
	}
	if err := lists.settle(ctx, "list"); err != nil {
		return err
	}
	for _, page := range []struct {
		name  string
		limit int
	}{{"list", 0}, {"list-page", 50}} {
		m := lists.measure(page.name, Nanos)
		m.size = b.config.Sessions
		const rounds = 11
		for range b.config.samples(rounds) {
			if err := m.turn(ctx, same(backend.Request{Op: backend.List, Limit: page.limit})); err != nil {
				return err
			}
		}
		m.done()
	}
	b.rows, b.notRun = append(b.rows, lists.rows...), append(b.notRun, lists.notRun...)
	return nil
}

func (c *contender) fillWithSessions(ctx context.Context, sessions int, lines []string) error {
	for i := range sessions {
		name := fmt.Sprintf("listed-%d", i)
		for _, r := range []backend.Request{
			{Op: backend.Create, Session: name},
			{Op: backend.Batch, Session: name, Lines: lines},
			{Op: backend.Leave, Session: name},
		} {
			if _, err := c.do(ctx, r); err != nil {
				return err
			}
		}
	}
	return nil
}
