package bench

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/sessiontree/sessiontree/bench/backend"
)

// serving is a contender's backend, opened in a process of its own.
func (b *bed) serving(c *contender) backend.Backend {
	if c.Process {
		return c.Backend
	}
	return backend.Process(c.Name, "", "", b.config.Serve(c.Name)...)
}

// inProcesses says whether a store can be opened by other processes.
func (b *bed) inProcesses(c *contender) bool {
	return !c.Memory && (c.Process || b.config.Serve != nil)
}

// outside closes the stores that other processes can open, has f ask these for a
// reply, in turns with the limits, and opens them again.
func (b *bed) outside(ctx context.Context, m *measurement, rounds int, f func(c *contender) (backend.Reply, error)) (err error) {
	for _, c := range b.stores {
		if !b.inProcesses(c) {
			m.missing[c] = true
			continue
		}
		if err := c.store.Close(ctx); err != nil {
			return err
		}
		defer func() {
			if err == nil {
				c.store, err = c.Open(ctx, c.dir, backend.Options{})
			}
		}()
	}
	n := len(b.stores)
	for round := range b.config.samples(rounds) {
		for i := range n {
			c := b.stores[(i+round)%n]
			if m.missing[c] {
				continue
			}
			reply, err := f(c)
			if unsupported(err) {
				m.missing[c] = true
				b.leaveOut(c, m.operation, m.shape.Name, m.size, err)
				continue
			}
			if err != nil {
				return err
			}
			m.take(c, reply)
		}
	}
	m.done()
	return nil
}

const freshProcesses = 9

// freshProcess takes the time from starting the process to its answer.
func (b *bed) freshProcess(ctx context.Context) error {
	m := b.measure("fresh-process", Nanos)
	return b.outside(ctx, m, freshProcesses, func(c *contender) (backend.Reply, error) {
		r := backend.Request{Op: backend.Context, Session: mainSession}
		if c.limit {
			r = *limitContext()
		}
		start := time.Now()
		s, err := b.serving(c).Open(ctx, c.dir, backend.Options{})
		if err != nil {
			return backend.Reply{}, err
		}
		defer s.Close(ctx)
		reply, err := s.Do(ctx, r)
		reply.Nanos = time.Since(start).Nanoseconds()
		return reply, err
	})
}

// streamMemory reads the branch in a new process and asks for the most memory that
// it held.
func (b *bed) streamMemory(ctx context.Context) error {
	const rounds = 3
	m := b.measure("stream-memory", Bytes)
	m.value = func(r backend.Reply) float64 { return float64(r.Bytes) }
	return b.outside(ctx, m, rounds, func(c *contender) (backend.Reply, error) {
		s, err := b.serving(c).Open(ctx, c.dir, backend.Options{})
		if err != nil {
			return backend.Reply{}, err
		}
		defer s.Close(ctx)
		r := backend.Request{Op: backend.BranchPages, Session: mainSession}
		if c.limit {
			r.Session = branchSession
		}
		if _, err := s.Do(ctx, r); err != nil {
			return backend.Reply{}, err
		}
		return s.Do(ctx, backend.Request{Op: backend.Peak})
	})
}

// twoProcesses has two processes append to one session. A figure is the time
// until both are done by the number of appends.
func (b *bed) twoProcesses(ctx context.Context) error {
	const rounds = 3
	each := b.config.samples(150)
	m := b.measure("append-2-processes", NanosPerEntry)
	return b.outside(ctx, m, rounds, func(c *contender) (backend.Reply, error) {
		if c.limit {
			// A bare file or table has no order that two processes could keep.
			return backend.Reply{}, errUnsupported
		}
		var stores [2]backend.Store
		for i := range stores {
			var err error
			if stores[i], err = b.serving(c).Open(ctx, c.dir, backend.Options{}); err != nil {
				return backend.Reply{}, err
			}
			defer stores[i].Close(ctx)
			// Open the session before the clock runs.
			if _, err := stores[i].Do(ctx, backend.Request{Op: backend.Append, Session: mainSession, Lines: b.someMessages(1)}); err != nil {
				return backend.Reply{}, errors.Join(errUnsupported, err) // one writer at a time
			}
		}
		var replies [2]backend.Reply
		var errs [2]error
		lines := [2][]string{b.someMessages(each), b.someMessages(each)}
		var running sync.WaitGroup
		for i := range stores {
			running.Go(func() {
				replies[i], errs[i] = stores[i].Do(ctx, backend.Request{Op: backend.Append, Session: mainSession, Lines: lines[i]})
			})
		}
		running.Wait()
		for _, err := range errs {
			if err != nil {
				return backend.Reply{}, err
			}
		}
		return backend.Reply{Nanos: max(replies[0].Nanos, replies[1].Nanos), Count: 2 * each}, nil
	})
}
