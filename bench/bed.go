package bench

import (
	"context"
	"errors"
	"fmt"
	"hash/fnv"
	"math/rand/v2"
	"os"
	"path/filepath"
	"runtime"
	"time"

	"github.com/sessiontree/sessiontree/bench/backend"
	"github.com/sessiontree/sessiontree/bench/shape"
	"github.com/sessiontree/sessiontree/eventlog"
	"github.com/sessiontree/sessiontree/eventlog/memory"
)

// Sessions of a bed. The limits have no trees: what they shall read in place of
// a branch is laid out for them in a session of its own.
const (
	mainSession    = "main"
	branchSession  = "branch"  // of a limit: the branch of the leaf
	contextSession = "context" // of a limit: the context of the leaf
	halfSession    = "half"    // of a limit: the first half of the branch
)

// bed is where operations are measured: the same tree in one or more stores and
// in their limits.
type bed struct {
	plan
	dir      string
	stores   []*contender
	messages []string // ids of the messages in the tree, in log order
	path     []string // ids on the branch of the leaf
	rng      *rand.Rand
	fresh    int // counts names
	rows     []Row
	notRun   []NotRun
}

// contender is a store on a bed.
type contender struct {
	backend.Backend
	dir   string
	store backend.Store
	limit bool // it is what others are held against
}

// newBed builds the tree in every store, and measures that.
func newBed(ctx context.Context, p plan, dir string) (_ *bed, err error) {
	b := &bed{plan: p, dir: dir}
	defer func() {
		if err != nil {
			b.close(context.WithoutCancel(ctx))
		}
	}()
	for _, s := range p.subjects {
		if err := b.add(ctx, s, false); err != nil {
			return nil, err
		}
	}
	for _, s := range p.subjects {
		limit, ok := backend.FindLimit(s.Limit)
		if ok && b.find(s.Limit) == nil {
			if err := b.add(ctx, limit, true); err != nil {
				return nil, err
			}
		}
	}
	if err := b.settle(ctx, "build"); err != nil {
		return nil, err
	}
	if err := b.build(ctx); err != nil {
		return nil, err
	}
	return b, b.lay(ctx)
}

func (b *bed) add(ctx context.Context, of backend.Backend, limit bool) error {
	c := &contender{Backend: of, dir: filepath.Join(b.dir, of.Name), limit: limit}
	if err := os.MkdirAll(c.dir, 0o700); err != nil {
		return err
	}
	var err error
	if c.store, err = of.Open(ctx, c.dir, backend.Options{}); err != nil {
		return fmt.Errorf("%s: %w", of.Name, err)
	}
	b.stores = append(b.stores, c)
	_, err = c.do(ctx, backend.Request{Op: backend.Create, Session: mainSession})
	if unsupported(err) {
		b.leaveOut(c, "create", b.shape.Name, b.size, err)
		return nil
	}
	return err
}

func (b *bed) find(name string) *contender {
	for _, c := range b.stores {
		if c.Name == name {
			return c
		}
	}
	return nil
}

func (c *contender) do(ctx context.Context, r backend.Request) (backend.Reply, error) {
	reply, err := c.store.Do(ctx, r)
	if err != nil && !errors.Is(err, errors.ErrUnsupported) {
		err = fmt.Errorf("%s: %s: %w", c.Name, r.Op, err)
	}
	return reply, err
}

// reopen closes the store and opens it again.
func (c *contender) reopen(ctx context.Context, o backend.Options) error {
	if err := c.store.Close(ctx); err != nil {
		return err
	}
	var err error
	c.store, err = c.Open(ctx, c.dir, o)
	return err
}

func (b *bed) close(ctx context.Context) {
	for _, c := range b.stores {
		if c.store != nil {
			c.store.Close(ctx)
		}
	}
}

// settle prepares for an operation: it starts from its own seed, whatever ran
// before, with no garbage of others, and with no view that still works at what
// they appended.
func (b *bed) settle(ctx context.Context, operation string) error {
	h := fnv.New64a()
	fmt.Fprint(h, operation, b.shape.Name, b.size)
	b.rng = rand.New(rand.NewPCG(b.config.Seed, h.Sum64()))
	for _, c := range b.stores {
		if !c.Ours {
			continue
		}
		if err := c.awaitViews(ctx); err != nil {
			return err
		}
	}
	runtime.GC()
	return nil
}

// awaitViews waits until the asynchronous views of a store hold all of its log.
func (c *contender) awaitViews(ctx context.Context) error {
	for {
		r, err := c.do(ctx, backend.Request{Op: backend.Lag})
		if err != nil || r.Count == 0 {
			return err
		}
		time.Sleep(5 * time.Millisecond)
	}
}

// batchSize is how many entries a build appends at a time: a tenth of the tree,
// within what one would hold in memory.
func batchSize(size int) int { return min(max(size/10, 100), 10_000) }

func (b *bed) build(ctx context.Context) error {
	m := b.measure("build", NanosPerEntry)
	var lines []string
	flush := func() error {
		r := backend.Request{Op: backend.Build, Session: mainSession, Lines: lines}
		err := m.turn(ctx, asked{r, &r})
		lines = nil
		return err
	}
	for e := range b.shape.Entries(b.size, b.config.Seed) {
		lines = append(lines, e.JSON())
		if e.Type() == eventlog.TypeMessage {
			b.messages = append(b.messages, e.ID())
		}
		if len(lines) == batchSize(b.size) {
			if err := flush(); err != nil {
				return err
			}
		}
	}
	if len(lines) > 0 {
		if err := flush(); err != nil {
			return err
		}
	}
	if !b.silent {
		m.done()
	}
	return nil
}

// lay finds the branch of the leaf, by the reference walk, and lays out for the
// limits what they shall read.
func (b *bed) lay(ctx context.Context) error {
	var entries []eventlog.Entry
	for e := range b.shape.Entries(b.size, b.config.Seed) {
		entries = append(entries, e)
	}
	reference := eventlog.NewSession(memory.New(b.shape.Metadata(b.size, b.config.Seed), entries, memory.Options{}))
	branch, err := reference.Branch(ctx, eventlog.None())
	if err != nil {
		return err
	}
	seen, err := reference.ContextEntries(ctx, eventlog.None())
	if err != nil {
		return err
	}
	for _, e := range branch {
		b.path = append(b.path, e.ID())
	}
	for _, c := range b.stores {
		if !c.limit {
			continue
		}
		for name, entries := range map[string][]eventlog.Entry{branchSession: branch, contextSession: seen, halfSession: branch[:(len(branch)+1)/2]} {
			if err := c.fill(ctx, name, entries); err != nil {
				return err
			}
		}
	}
	return nil
}

func (c *contender) fill(ctx context.Context, session string, entries []eventlog.Entry) error {
	if _, err := c.do(ctx, backend.Request{Op: backend.Create, Session: session}); err != nil {
		return err
	}
	lines := make([]string, len(entries))
	for i, e := range entries {
		lines[i] = e.JSON()
	}
	_, err := c.do(ctx, backend.Request{Op: backend.Build, Session: session, Lines: lines})
	return err
}

// name gives a name that no session of the bed has.
func (b *bed) name() string {
	b.fresh++
	return fmt.Sprintf("fresh-%d", b.fresh)
}

// anywhere is a message of the tree.
func (b *bed) anywhere() string { return b.messages[b.rng.IntN(len(b.messages))] }

// message is the JSON of a message that a host would append next.
func (b *bed) message() string {
	b.fresh++
	return shape.Plain(b.rng, b.fresh, time.Date(2026, 6, 1, 0, 0, b.fresh, 0, time.UTC)).JSON()
}

func (b *bed) someMessages(n int) []string {
	all := make([]string, n)
	for i := range all {
		all[i] = b.message()
	}
	return all
}
