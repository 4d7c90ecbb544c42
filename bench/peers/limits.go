package peers

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"sync"

	"github.com/sessiontree/sessiontree/bench/backend"
)

// Limits are what a peer is not asked, since it would fail or take minutes. A
// limit of 0 is none.
type Limits struct {
	// Branch is how many entries a branch may have since its last compaction.
	Branch       int
	BranchReason string

	// Copies are how many entries of a store an operation may copy in all. A peer
	// with such a limit copies, when an entry gets its second child, the way from
	// the last compaction to it.
	Copies map[backend.Op]int

	// OneWriter is why two processes do not write to a session; "" if they do.
	OneWriter string
}

// Guard puts the limits before a backend. What a store of it fails with, or cannot
// be opened for, becomes a [backend.NotRun], which ends no run.
func (l Limits) Guard(b backend.Backend) backend.Backend {
	var mu sync.Mutex
	ledgers, open := map[string]*ledger{}, b.Open
	b.Open = func(ctx context.Context, dir string, o backend.Options) (backend.Store, error) {
		mu.Lock()
		of := ledgers[dir]
		if of == nil {
			of = &ledger{limits: l, trees: map[string]*tree{}, copied: map[backend.Op]int{}}
			ledgers[dir] = of
		}
		mu.Unlock()
		store, err := open(ctx, dir, o)
		if ctx.Err() != nil {
			return nil, ctx.Err()
		}
		if err != nil {
			return &guarded{ledger: of, failed: err}, nil
		}
		of.opened(1)
		return &guarded{store: store, ledger: of}, nil
	}
	return b
}

// guarded is a store behind limits.
type guarded struct {
	store  backend.Store
	ledger *ledger
	failed error // why there is none
	closed bool
}

func (g *guarded) Do(ctx context.Context, r backend.Request) (backend.Reply, error) {
	if g.failed != nil {
		return backend.Reply{}, &backend.NotRun{Reason: g.failed.Error()}
	}
	if err := g.ledger.admit(r); err != nil {
		return backend.Reply{}, err
	}
	reply, err := g.store.Do(ctx, r)
	switch {
	case err == nil:
		g.ledger.record(r, reply)
	case ctx.Err() != nil || errors.Is(err, errors.ErrUnsupported):
	default:
		err = g.ledger.fail(r, err)
	}
	return reply, err
}

func (g *guarded) Close(ctx context.Context) error {
	if g.store == nil || g.closed {
		return nil
	}
	g.closed = true
	g.ledger.opened(-1)
	return g.store.Close(ctx)
}

// ledger is what is known of a store, whoever has it open: of each session the
// tree, as far as what comes next costs by it.
type ledger struct {
	limits Limits

	mu     sync.Mutex
	open   int
	trees  map[string]*tree
	copied map[backend.Op]int
}

type tree struct {
	refused error          // it is not as it was asked for
	way     map[string]int // how many entries there are from the last compaction to each
	parents map[string]bool
	leaf    string
}

func newTree() *tree { return &tree{way: map[string]int{}, parents: map[string]bool{}} }

func (l *ledger) opened(n int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.open += n
}

func (l *ledger) tree(session string) *tree {
	if l.trees[session] == nil {
		l.trees[session] = newTree()
	}
	return l.trees[session]
}

// line is what counts of an entry.
type line struct {
	Type, ID, ParentID, TargetID string
}

// admit says whether a request is within the limits. One that builds a tree and
// is not leaves a session that is refused for all else.
func (l *ledger) admit(r backend.Request) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	t := l.tree(r.Session)
	if t.refused != nil {
		return t.refused
	}
	way, copies := 0, 0
	switch r.Op {
	case backend.Build:
		var err error
		if way, copies, err = t.add(r.Lines); err != nil {
			return err
		}
	case backend.Append, backend.Batch, backend.Turn:
		way, copies = t.way[t.leaf]+len(r.Lines), t.copies(t.leaf)
	case backend.AppendAt:
		way, copies = t.way[r.Entry]+1, t.copies(r.Entry)
	default:
		return nil
	}
	err := l.within(r.Op, way, copies)
	if err != nil && r.Op == backend.Build {
		t.refused = err
	}
	return err
}

func (l *ledger) within(op backend.Op, way, copies int) error {
	if l.limits.OneWriter != "" && l.open > 1 {
		return &backend.NotRun{Reason: l.limits.OneWriter}
	}
	if most := l.limits.Branch; most != 0 && way > most {
		return &backend.NotRun{Reason: fmt.Sprintf("%s; up to %d are measured", l.limits.BranchReason, most)}
	}
	if most := l.limits.Copies[op]; most != 0 && l.copied[op]+copies > most {
		return &backend.NotRun{Reason: fmt.Sprintf("each new branch copies the way to it, here %d entries or more in all; up to %d are measured", l.copied[op]+copies, most)}
	}
	l.copied[op] += copies
	return nil
}

// copies is how many entries are copied for a child of an entry.
func (t *tree) copies(parent string) int {
	if t.parents[parent] {
		return t.way[parent]
	}
	return 0
}

// add puts entries into the tree, and gives the longest way to one of them and
// how many entries are copied for them.
func (t *tree) add(lines []string) (way, copies int, err error) {
	for i, text := range lines {
		var e line
		if err := json.Unmarshal([]byte(text), &e); err != nil {
			return 0, 0, fmt.Errorf("entry %d: %w", i, err)
		}
		if e.Type == "leaf" {
			t.leaf = e.TargetID
			continue
		}
		copies += t.copies(e.ParentID)
		t.below(e.ParentID, e.ID, e.Type == "compaction")
		way = max(way, t.way[e.ID])
	}
	return way, copies, nil
}

func (t *tree) below(parent, id string, compaction bool) {
	t.parents[parent] = parent != ""
	t.way[id] = t.way[parent] + 1
	if compaction {
		t.way[id] = 1
	}
	t.leaf = id
}

// record keeps what a request has changed.
func (l *ledger) record(r backend.Request, reply backend.Reply) {
	l.mu.Lock()
	defer l.mu.Unlock()
	t := l.tree(r.Session)
	switch r.Op {
	case backend.Append, backend.Batch, backend.Turn:
		t.parents[t.leaf] = t.leaf != ""
		t.way[reply.Leaf], t.leaf = t.way[t.leaf]+len(r.Lines), reply.Leaf
	case backend.AppendAt:
		t.below(r.Entry, reply.Leaf, false)
	case backend.Move:
		t.leaf = r.Entry
	}
}

// fail gives a failure as a reason. A session of which a part is missing is
// refused from then on.
func (l *ledger) fail(r backend.Request, err error) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	why := &backend.NotRun{Reason: "it failed: " + err.Error()}
	if r.Op == backend.Build || r.Op == backend.Create {
		l.tree(r.Session).refused = why
	}
	return why
}
