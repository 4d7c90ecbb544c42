// Package memory keeps sessions in memory: the reference for what a session
// answers, and what eventlog/jsonl keeps of an open file.
package memory

import (
	"context"
	"iter"
	"sync"

	"github.com/sessiontree/sessiontree/eventlog"
)

// Options configure a [Storage]. The zero value is a storage with the system's
// clock and random ids that keeps entries in memory alone.
type Options struct {
	Source eventlog.Source

	// Leaf, if not nil, is where the leaf was moved to since the last entry, in a
	// dialect that does not log moves.
	Leaf *eventlog.Ref

	// Write, if not nil, makes entries durable before the storage takes them: one
	// call an append, one at a time. When it fails the append fails, and the
	// storage is as before. Where moves are not logged (see [eventlog.Entry.IsMove])
	// they are among them. It must not keep the slice.
	Write func(ctx context.Context, entries []eventlog.Entry) error

	// Lock, if not nil, is called before each append reads the leaf, and may bring
	// in what others wrote meanwhile by calling [Storage.Load].
	Lock func(ctx context.Context) error

	// Done, if not nil, is called once by Close.
	Done func() error
}

// Storage is an [eventlog.Storage] in memory.
type Storage struct {
	meta eventlog.Metadata // its Dialect is the log's
	o    Options

	writing sync.Mutex // held for the whole of an append, so that a slow Write delays no reader

	mu      sync.RWMutex // guards what follows
	closed  bool
	log     log
	byID    map[string]int32 // the last entry with the id
	parents []int32          // index of each entry's parent, or one of the two below
	// missing are the parents that no entry has had so far.
	missing map[string]bool
	// irregular logs hold an id twice, or a parent behind its child: then an
	// index that was right once may be wrong now, and walks look ids up.
	irregular bool
	leaf      eventlog.Ref
	labels    map[string]string
	name      int32 // index of the last session_info entry, -1 for none

	statsMu  sync.Mutex // guards what follows; taken after mu
	stats    eventlog.Stats
	statsErr error
	counted  int32 // how many entries the stats hold
}

const (
	isRoot  = -1
	isAHole = -2
)

// New makes a storage that holds entries. It keeps the slice; the caller must
// not use it any more.
func New(meta eventlog.Metadata, entries []eventlog.Entry, o Options) *Storage {
	if meta.Header == "" {
		meta.Header = meta.HeaderText()
	}
	s := &Storage{
		meta: meta, o: o, name: -1,
		log:     log{first: entries},
		parents: make([]int32, 0, len(entries)+page),
		byID:    make(map[string]int32, len(entries)),
		labels:  map[string]string{},
		missing: map[string]bool{},
	}
	for ; s.log.n < len(entries); s.log.n++ {
		s.index(&entries[s.log.n])
	}
	if o.Leaf != nil {
		s.leaf = *o.Leaf
	}
	return s
}

// Dialect implements [eventlog.Storage].
func (s *Storage) Dialect() eventlog.Dialect { return s.meta.Dialect }

// End is the number of entries and the last one's id.
func (s *Storage) End() (n int, last eventlog.Ref) {
	s.mu.RLock()
	defer s.mu.RUnlock()
	if n = s.log.len(); n > 0 {
		last = eventlog.At(s.log.at(int32(n - 1)).ID())
	}
	return n, last
}

// MoveLeaf sets the leaf without an entry. It is for the Lock option.
func (s *Storage) MoveLeaf(to eventlog.Ref) { s.Load([]eventlog.Entry{eventlog.MoveOf(to.Value())}) }

// Load takes entries that others appended to what the storage stands for. It is
// for the Lock option.
func (s *Storage) Load(entries []eventlog.Entry) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for i := range entries {
		if e := &entries[i]; e.IsMove() {
			s.leaf = e.LeafAfter()
		} else {
			s.index(e)
			s.log.add(*e)
		}
	}
}

// index takes the entry that the log is about to have into the indices.
func (s *Storage) index(e *eventlog.Entry) {
	at := int32(s.log.len())
	parent := int32(isRoot)
	if p := e.Parent().ID(); !e.IsRoot() {
		if at > 0 && s.log.at(at-1).ID() == p {
			parent = at - 1 // the usual case needs no look-up
		} else if found, ok := s.byID[p]; ok {
			parent = found
		} else {
			parent = isAHole
			s.missing[p] = true
		}
	}
	if len(s.missing) > 0 && s.missing[e.ID()] {
		s.irregular = true
	}
	known := len(s.byID)
	s.byID[e.ID()] = at
	if len(s.byID) == known {
		s.irregular = true
	}
	s.parents = append(s.parents, parent)
	switch e.Type() {
	case eventlog.TypeLabel:
		// A label that is no text is refused when the file is opened strictly, and
		// else changes nothing.
		if target, label, ok, err := s.Dialect().Label(*e); err == nil && ok {
			if label == "" {
				delete(s.labels, target)
			} else {
				s.labels[target] = label
			}
		}
	case eventlog.TypeSessionInfo:
		s.name = at
	}
	s.leaf = e.LeafAfter()
}

var errClosed = eventlog.Errorf(eventlog.Closed, "the session is closed")

// read runs f with the indices held still.
func (s *Storage) read(ctx context.Context, f func() error) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	s.mu.RLock()
	defer s.mu.RUnlock()
	if s.closed {
		return errClosed
	}
	return f()
}

// Metadata implements [eventlog.Storage].
func (s *Storage) Metadata(ctx context.Context) (m eventlog.Metadata, err error) {
	err = s.read(ctx, func() error { m = s.meta; return nil })
	return m, err
}

// Head implements [eventlog.Storage].
func (s *Storage) Head(ctx context.Context) (h eventlog.Head, err error) {
	err = s.read(ctx, func() error {
		h = eventlog.Head{Leaf: s.leaf, N: s.log.len()}
		if _, ok := s.byID[s.leaf.ID()]; !ok && !s.leaf.IsNone() {
			return eventlog.EntryNotFound(eventlog.InvalidSession, s.leaf.ID())
		}
		return nil
	})
	return h, err
}

// Entry implements [eventlog.Storage].
func (s *Storage) Entry(ctx context.Context, id string) (e eventlog.Entry, err error) {
	err = s.read(ctx, func() error {
		at, ok := s.byID[id]
		if !ok {
			return eventlog.EntryNotFound(eventlog.NotFound, id)
		}
		e = *s.log.at(at)
		return nil
	})
	return e, err
}

// Entries implements [eventlog.Storage]. Entries that are appended while the
// sequence runs are part of it.
func (s *Storage) Entries(ctx context.Context, after, limit int) iter.Seq2[eventlog.Entry, error] {
	return func(yield func(eventlog.Entry, error) bool) {
		if err := eventlog.CheckWindow(after, limit); err != nil {
			yield(eventlog.Entry{}, err)
			return
		}
		for limit > 0 {
			var entries []eventlog.Entry
			err := s.read(ctx, func() error {
				if after < s.log.len() {
					entries = s.log.from(after, limit)
				}
				return nil
			})
			if err != nil {
				yield(eventlog.Entry{}, err)
				return
			}
			if len(entries) == 0 {
				return
			}
			for _, e := range entries { // never written again once appended
				if !yield(e, nil) {
					return
				}
			}
			after += len(entries)
			limit -= len(entries)
		}
	}
}

// Find implements [eventlog.Storage].
func (s *Storage) Find(ctx context.Context, t eventlog.Type) (found []eventlog.Entry, err error) {
	err = s.read(ctx, func() error {
		for i := range int32(s.log.len()) {
			if e := s.log.at(i); e.Type() == t {
				found = append(found, *e)
			}
		}
		return nil
	})
	return found, err
}

// Branch implements [eventlog.Storage].
func (s *Storage) Branch(ctx context.Context, from eventlog.Ref) (branch []eventlog.Entry, err error) {
	if from.IsNone() {
		return nil, s.read(ctx, func() error { return nil })
	}
	err = s.read(ctx, func() error {
		at, ok := s.byID[from.ID()]
		if !ok {
			return eventlog.EntryNotFound(eventlog.NotFound, from.ID())
		}
		if s.irregular {
			branch, err = s.Dialect().Walk(*s.log.at(at), s.log.len(), s.lookup)
			return err
		}
		branch, err = s.follow(at)
		return err
	})
	return branch, err
}

// follow walks up by index: in a regular log each parent stands before its
// child, so the walk ends.
func (s *Storage) follow(at int32) ([]eventlog.Entry, error) {
	cut := s.Dialect().Cut()
	path := make([]int32, 0, 64)
	for {
		path = append(path, at)
		parent := s.parents[at]
		if cut.Stops(*s.log.at(at)) || parent == isRoot || parent == isAHole && s.Dialect().HoleEnds() {
			break
		}
		if parent == isAHole {
			return nil, eventlog.EntryNotFound(eventlog.InvalidSession, s.log.at(at).Parent().ID())
		}
		at = parent
	}
	branch := make([]eventlog.Entry, len(path))
	for i, at := range path {
		branch[len(path)-1-i] = *s.log.at(at)
	}
	return branch, nil
}

func (s *Storage) lookup(id string) (eventlog.Entry, bool, error) {
	at, ok := s.byID[id]
	if !ok {
		return eventlog.Entry{}, false, nil
	}
	return *s.log.at(at), true, nil
}

// Label implements [eventlog.Storage].
func (s *Storage) Label(ctx context.Context, id string) (label string, err error) {
	err = s.read(ctx, func() error { label = s.labels[id]; return nil })
	return label, err
}

// Labels implements [eventlog.Storage].
func (s *Storage) Labels(ctx context.Context) (labels map[string]string, err error) {
	err = s.read(ctx, func() error {
		labels = make(map[string]string, len(s.labels))
		for id, l := range s.labels {
			labels[id] = l
		}
		return nil
	})
	return labels, err
}

// Name implements [eventlog.Storage].
func (s *Storage) Name(ctx context.Context) (name string, err error) {
	err = s.read(ctx, func() error {
		if s.name >= 0 {
			name, err = s.Dialect().Name(*s.log.at(s.name))
		}
		return err
	})
	return name, err
}

// Stats implements [eventlog.Storage]. Only entries that are new since the last
// call are counted.
func (s *Storage) Stats(ctx context.Context) (stats eventlog.Stats, err error) {
	err = s.read(ctx, func() error {
		s.statsMu.Lock()
		defer s.statsMu.Unlock()
		for s.statsErr == nil && int(s.counted) < s.log.len() {
			s.statsErr = s.Dialect().Count(&s.stats, *s.log.at(s.counted))
			s.counted++
		}
		stats = s.stats
		return s.statsErr
	})
	if err != nil {
		return eventlog.Stats{}, err
	}
	return stats, nil
}

// view shows the log to a batch. Only an append writes, and it holds the writing
// lock, so no other lock is needed to read here.
type view struct{ *Storage }

func (v view) Tip() (eventlog.Head, error) {
	return eventlog.Head{Leaf: v.leaf, N: v.log.len()}, nil
}

func (v view) Lookup(id string) (eventlog.Entry, bool, error) { return v.lookup(id) }

func (v view) Exists(id string) (bool, error) {
	if n := v.log.len(); n > 0 && v.log.at(int32(n-1)).ID() == id {
		return true, nil // the leaf, as a rule
	}
	_, ok := v.byID[id]
	return ok, nil
}

// Append implements [eventlog.Storage].
func (s *Storage) Append(ctx context.Context, b eventlog.Batch) (entries []eventlog.Entry, err error) {
	err = s.write(ctx, func() ([]eventlog.Entry, error) {
		var written bool
		if entries, written, err = b.Prepare(view{s}, s.o.Source); err != nil || !written {
			return nil, err
		}
		return entries, nil
	})
	if err != nil {
		return nil, err
	}
	return entries, nil
}

// AppendRaw implements [eventlog.Storage].
func (s *Storage) AppendRaw(ctx context.Context, entries ...eventlog.Entry) error {
	return s.write(ctx, func() ([]eventlog.Entry, error) { return entries, nil })
}

// write makes what prepare gives durable and takes it, one append at a time.
func (s *Storage) write(ctx context.Context, prepare func() ([]eventlog.Entry, error)) error {
	s.writing.Lock()
	defer s.writing.Unlock()
	if err := ctx.Err(); err != nil {
		return err
	}
	if s.closed { // which Close sets only where nobody writes
		return errClosed
	}
	if s.o.Lock != nil {
		if err := s.o.Lock(ctx); err != nil {
			return err
		}
	}
	entries, err := prepare()
	if err != nil || len(entries) == 0 {
		return err
	}
	if s.o.Write != nil {
		if err := s.o.Write(ctx, entries); err != nil {
			return err
		}
	}
	s.Load(entries)
	return nil
}

// Close implements [eventlog.Storage]. It waits for an append that is under way.
func (s *Storage) Close() error {
	s.writing.Lock()
	defer s.writing.Unlock()
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return nil
	}
	s.closed = true
	if s.o.Done != nil {
		return s.o.Done()
	}
	return nil
}
