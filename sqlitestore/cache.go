package sqlitestore

import (
	"container/list"
	"context"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/sessiontree/sessiontree/eventlog"
)

// branchCache keeps the branches of sessions' leaves, the latest used ones, up to
// a number of bytes. What it keeps is asked for only with the [version] that a
// snapshot of the database shows, so nobody has to tell it of writes.
type branchCache struct {
	limit int64 // in bytes; 0 keeps nothing

	mu    sync.Mutex
	size  int64
	kept  map[int64]*list.Element // of *keptBranch, by session
	order list.List               // the latest used first

	// How often a branch was asked for, and was there, or was there in an earlier
	// version that could be carried on.
	asked, hits, grown int
}

// keptBranch is the branch of a session's leaf. It is never changed: what the
// session becomes is another one.
type keptBranch struct {
	session int64
	version
	head    eventlog.Head
	entries []eventlog.Entry
	size    int64
	// grown is set by whoever first takes the room behind entries to append to.
	grown atomic.Bool
}

func newBranchCache(limit int64) *branchCache {
	return &branchCache{limit: limit, kept: map[int64]*list.Element{}}
}

func (c *branchCache) get(session int64) *keptBranch {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.asked++
	e := c.kept[session]
	if e == nil {
		return nil
	}
	c.order.MoveToFront(e)
	return e.Value.(*keptBranch)
}

// put keeps a branch, unless a later one is there. One that would take more than
// half of the room is not kept: it would drive out all others.
func (c *branchCache) put(b *keptBranch) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if e := c.kept[b.session]; e != nil {
		if old := e.Value.(*keptBranch); old.build == b.build && old.last > b.last {
			return
		}
		c.remove(e)
	}
	if b.size > c.limit/2 {
		return
	}
	c.kept[b.session] = c.order.PushFront(b)
	c.size += b.size
	for c.size > c.limit {
		c.remove(c.order.Back())
	}
}

func (c *branchCache) count(n *int) {
	c.mu.Lock()
	*n++
	c.mu.Unlock()
}

func (c *branchCache) drop(session int64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if e := c.kept[session]; e != nil {
		c.remove(e)
	}
}

func (c *branchCache) remove(e *list.Element) {
	b := c.order.Remove(e).(*keptBranch)
	delete(c.kept, b.session)
	c.size -= b.size
}

// entryOverhead is what an entry takes beside its text.
const entryOverhead = 96

func sizeOf(entries []eventlog.Entry) (size int64) {
	for i := range entries {
		size += entryOverhead + int64(len(entries[i].JSON()))
	}
	return size
}

// leafBranch is the branch of the session's leaf, which is not none: the kept one
// if it is of this version; the kept one and what was appended since; or it is
// read.
func (s *Storage) leafBranch(ctx context.Context, tx reading) ([]eventlog.Entry, error) {
	cache := s.store.cache
	if cache.limit == 0 || s.uncached {
		return s.readWindow(ctx, tx, tx.head.Leaf.ID())
	}
	kept := cache.get(s.key)
	if kept != nil && kept.version == tx.version {
		cache.count(&cache.hits)
		return slices.Clone(kept.entries), nil
	}
	next := &keptBranch{session: s.key, version: tx.version, head: tx.head}
	ok, err := s.grow(ctx, tx, kept, next)
	if err != nil {
		return nil, err
	}
	if ok {
		cache.count(&cache.grown)
	} else {
		if next.entries, err = s.readWindow(ctx, tx, tx.head.Leaf.ID()); err != nil {
			return nil, err
		}
		next.size = sizeOf(next.entries)
	}
	cache.put(next)
	return slices.Clone(next.entries), nil
}

// grow makes the entries of next from those of an earlier version of the same
// session, and reads only what was appended since; ok is false when it cannot.
func (s *Storage) grow(ctx context.Context, tx reading, kept, next *keptBranch) (ok bool, err error) {
	if kept == nil || tx.walks() || kept.build != tx.build || kept.last > tx.last {
		return false, nil
	}
	appended := tx.head.N - kept.head.N
	if appended > page+len(kept.entries)/2 {
		return false, nil // reading the branch costs no more
	}
	news, err := s.log(ctx, tx.Tx).after(kept.head.N, appended)
	if err != nil {
		return false, err
	}
	next.size = kept.size + sizeOf(news)
	entries := kept.entries
	if !kept.grown.CompareAndSwap(false, true) {
		entries = slices.Clip(entries)
	}
	path, leaf, whole := follow(entries, kept.head.Leaf, news)
	if leaf != tx.head.Leaf || len(path) == 0 {
		return false, nil
	}
	if !whole {
		start := startOf(s.Dialect(), path)
		if start < 0 {
			return false, nil
		}
		path = slices.Clone(path[start:]) // lets go of what is no longer on it
		next.size = sizeOf(path)
	}
	next.entries = path
	return true, nil
}

// follow carries on a path, which ends at leaf, through what was appended. What it
// returns ends at another leaf than the session's when it cannot follow: an entry
// or a move that leads off the path. whole says that the path begins where it
// began; else it may have to be cut anew.
func follow(path []eventlog.Entry, leaf eventlog.Ref, appended []eventlog.Entry) (_ []eventlog.Entry, _ eventlog.Ref, whole bool) {
	whole = true
	for _, e := range appended {
		switch {
		case e.Type() == eventlog.TypeLeaf:
			whole = false
			end := len(path)
			for end > 0 && eventlog.At(path[end-1].ID()) != e.Target() {
				end--
			}
			if end == 0 && !e.Target().IsNone() {
				return nil, eventlog.None(), false
			}
			path = path[:end:end]
		case e.Parent() == leaf:
			whole = whole && e.Type() != eventlog.TypeCompaction
			path = append(path, e)
		default:
			return nil, eventlog.None(), false
		}
		leaf = e.LeafAfter()
	}
	return path, leaf, whole
}

// startOf is where the branch of the last entry of path begins in it, -1 if path
// does not reach so far up.
func startOf(d eventlog.Dialect, path []eventlog.Entry) int {
	if d.KeepsSettings() {
		return windowStart(path)
	}
	cut := d.Cut()
	for i := len(path) - 1; i >= 0; i-- {
		if cut.Stops(path[i]) || path[i].Parent().ID() == "" {
			return i
		}
	}
	return -1
}

// windowStart is startOf for the part of a branch that a context is made from: it
// begins at what the last compaction keeps, or at the compaction.
func windowStart(path []eventlog.Entry) int {
	last := len(path) - 1
	for last >= 0 && path[last].Type() != eventlog.TypeCompaction {
		last--
	}
	if last < 0 {
		if len(path) > 0 && path[0].IsRoot() {
			return 0
		}
		return -1
	}
	first := eventlog.RefOf(path[last].Get("firstKeptEntryId"))
	if first == eventlog.At(path[last].ID()) || first.IsNone() {
		return last
	}
	for i := range path[:last] {
		if eventlog.At(path[i].ID()) == first {
			return i
		}
	}
	return -1 // it may stand further up, or nowhere
}
