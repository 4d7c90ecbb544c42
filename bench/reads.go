package bench

import (
	"context"

	"github.com/sessiontree/sessiontree/bench/backend"
)

// readsFor is how often something is read that gives so many entries.
func readsFor(entries int) int { return min(max(400_000/max(entries, 1), 9), 100) }

func (b *bed) empty(ctx context.Context) error {
	return b.repeat(ctx, "empty", Nanos, 10, 1000, func() asked { return same(backend.Request{Op: backend.Empty}) })
}

func (b *bed) branch(ctx context.Context) error {
	return b.repeat(ctx, "branch", NanosPerEntry, 1, readsFor(len(b.path)), func() asked {
		return asked{
			backend.Request{Op: backend.Branch, Session: mainSession, Entry: b.nearLeaf()},
			&backend.Request{Op: backend.Branch, Session: branchSession},
		}
	})
}

func (b *bed) branchPages(ctx context.Context) error {
	return b.repeat(ctx, "branch-pages", NanosPerEntry, 1, readsFor(len(b.path)), func() asked {
		return asked{
			backend.Request{Op: backend.BranchPages, Session: mainSession, Entry: b.nearLeaf()},
			&backend.Request{Op: backend.BranchPages, Session: branchSession},
		}
	})
}

// limitContext is what a limit reads in place of the leaf's context.
func limitContext() *backend.Request {
	return &backend.Request{Op: backend.Context, Session: contextSession}
}

// nearLeaf is an entry near the end of the leaf's branch: not the leaf itself,
// whose branch a store may keep in memory.
func (b *bed) nearLeaf() string {
	const near = 7
	return b.path[max(0, len(b.path)-2-b.rng.IntN(near))]
}

func (b *bed) context(ctx context.Context) error {
	return b.repeat(ctx, "context", NanosPerEntry, 1, readsFor(len(b.path)), func() asked {
		return asked{backend.Request{Op: backend.Context, Session: mainSession, Entry: b.nearLeaf()}, limitContext()}
	})
}

func (b *bed) contextAgain(ctx context.Context) error {
	return b.repeat(ctx, "context-again", NanosPerEntry, 2, readsFor(len(b.path)), func() asked {
		return asked{backend.Request{Op: backend.Context, Session: mainSession}, limitContext()}
	})
}

// contextFirst opens the stores anew before each context: their files are in the
// system's cache, and nothing is in theirs.
func (b *bed) contextFirst(ctx context.Context) error {
	m := b.measure("context-first", NanosPerEntry)
	for range b.config.samples(min(readsFor(len(b.path)), 30)) {
		for _, c := range b.stores {
			if c.Memory || c.Process {
				m.missing[c] = true
				continue
			}
			if err := c.reopen(ctx, backend.Options{}); err != nil {
				return err
			}
		}
		if err := m.turn(ctx, asked{backend.Request{Op: backend.Context, Session: mainSession}, limitContext()}); err != nil {
			return err
		}
	}
	m.done()
	return nil
}

func (b *bed) stream(ctx context.Context) error {
	return b.repeat(ctx, "stream", NanosPerEntry, 1, readsFor(b.size), func() asked {
		return same(backend.Request{Op: backend.Stream, Session: mainSession})
	})
}

func (b *bed) export(ctx context.Context) error {
	return b.repeat(ctx, "export", NanosPerEntry, 1, readsFor(b.size), func() asked {
		return same(backend.Request{Op: backend.Export, Session: mainSession})
	})
}

func (b *bed) descendants(ctx context.Context) error {
	return b.repeat(ctx, "descendants", NanosPerEntry, 1, readsFor(b.size), func() asked {
		return asked{
			backend.Request{Op: backend.Descendants, Session: mainSession, Entry: b.messages[0]},
			&backend.Request{Op: backend.Stream, Session: mainSession},
		}
	})
}

// pairsOfEntries is how many pairs of entries are asked about.
const pairsOfEntries = 300

func (b *bed) isAncestor(ctx context.Context) error {
	return b.repeat(ctx, "is-ancestor", Nanos, 1, pairsOfEntries, func() asked {
		return asked{ours: backend.Request{Op: backend.IsAncestor, Session: mainSession, Entry: b.anywhere(), Other: b.anywhere()}}
	})
}

func (b *bed) commonAncestor(ctx context.Context) error {
	return b.repeat(ctx, "common-ancestor", Nanos, 1, pairsOfEntries, func() asked {
		return asked{ours: backend.Request{Op: backend.CommonAncestor, Session: mainSession, Entry: b.anywhere(), Other: b.anywhere()}}
	})
}

// forks is how often a fork of so many entries is made.
func forks(entries int) int { return min(max(50_000/max(entries, 1), 3), 20) }

func (b *bed) forkWhole(ctx context.Context) error {
	return b.repeat(ctx, "fork-whole", NanosPerEntry, 0, forks(b.size), func() asked {
		return same(backend.Request{Op: backend.Fork, Session: mainSession, NewSession: b.name()})
	})
}

func (b *bed) forkHalf(ctx context.Context) error {
	return b.repeat(ctx, "fork-half", NanosPerEntry, 0, forks(len(b.path)/2), func() asked {
		name := b.name()
		return asked{
			backend.Request{Op: backend.Fork, Session: mainSession, NewSession: name, Entry: b.path[(len(b.path)-1)/2]},
			&backend.Request{Op: backend.Fork, Session: halfSession, NewSession: name},
		}
	})
}

// rebuild makes each view anew, one after the other.
func (b *bed) rebuild(ctx context.Context) error {
	const rounds = 3
	for _, c := range b.stores {
		for _, view := range c.Views {
			m := b.measure("rebuild-"+view, NanosPerEntry)
			for range rounds {
				reply, err := c.do(ctx, backend.Request{Op: backend.Rebuild, View: view})
				if err != nil {
					return err
				}
				reply.Count = b.size // which the store does not say
				m.take(c, reply)
			}
			m.done()
		}
	}
	return nil
}
