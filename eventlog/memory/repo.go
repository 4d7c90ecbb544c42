package memory

import (
	"context"
	"slices"
	"sync"

	"github.com/sessiontree/sessiontree/eventlog"
)

// Repo is an [eventlog.Repo] in memory. Sessions stay open until they are
// closed or deleted; opening one again gives the same session.
type Repo struct {
	source eventlog.Source

	mu       sync.Mutex
	sessions map[string]*eventlog.Session
	created  []string // ids in order of creation
}

// NewRepo makes an empty repository.
func NewRepo(source eventlog.Source) *Repo {
	return &Repo{source: source, sessions: map[string]*eventlog.Session{}}
}

// Create implements [eventlog.Repo].
func (r *Repo) Create(ctx context.Context, o eventlog.CreateOptions) (*eventlog.Session, error) {
	return r.create(ctx, o, nil)
}

func (r *Repo) create(ctx context.Context, o eventlog.CreateOptions, entries []eventlog.Entry) (*eventlog.Session, error) {
	m, err := o.NewMetadata(r.source)
	if err != nil {
		return nil, err
	}
	return r.Add(ctx, m, entries)
}

// Add takes a session that was read from elsewhere, and keeps the slice. It
// fails with [eventlog.ErrAlreadyExists].
func (r *Repo) Add(ctx context.Context, m eventlog.Metadata, entries []eventlog.Entry) (*eventlog.Session, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.sessions[m.ID] != nil {
		return nil, eventlog.Errorf(eventlog.AlreadyExists, "Session %s exists already", m.ID)
	}
	s := eventlog.NewSession(New(m, entries, Options{Source: r.source}))
	r.sessions[m.ID] = s
	r.created = append(r.created, m.ID)
	return s, nil
}

// Open implements [eventlog.Repo]. A session that was closed is opened anew with
// all that it held.
func (r *Repo) Open(ctx context.Context, m eventlog.Metadata) (*eventlog.Session, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	s := r.sessions[m.ID]
	if s == nil {
		return nil, eventlog.Errorf(eventlog.NotFound, "Session not found: %s", m.ID)
	}
	old := s.Storage().(*Storage)
	old.mu.RLock()
	defer old.mu.RUnlock()
	if old.closed {
		s = eventlog.NewSession(New(old.meta, old.log.all(), Options{Source: r.source, Leaf: &old.leaf}))
		r.sessions[m.ID] = s
	}
	return s, nil
}

// List implements [eventlog.Repo].
func (r *Repo) List(ctx context.Context, cwd string) ([]eventlog.Listed, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	var listed []eventlog.Listed
	for _, id := range r.created {
		m := r.sessions[id].Storage().(*Storage).meta
		if cwd == "" || cwd == m.CWD {
			listed = append(listed, eventlog.Listed{Metadata: m})
		}
	}
	eventlog.SortNewestFirst(listed)
	return listed, nil
}

// Delete implements [eventlog.Repo].
func (r *Repo) Delete(ctx context.Context, m eventlog.Metadata) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if s := r.sessions[m.ID]; s != nil {
		delete(r.sessions, m.ID)
		r.created = slices.DeleteFunc(r.created, func(id string) bool { return id == m.ID })
		return s.Close()
	}
	return nil
}

// Fork implements [eventlog.Repo].
func (r *Repo) Fork(ctx context.Context, source eventlog.Metadata, o eventlog.ForkOptions) (*eventlog.Session, error) {
	from, err := r.Open(ctx, source)
	if err != nil {
		return nil, err
	}
	entries, err := from.ForkEntries(ctx, o.EntryID, o.Position, r.source)
	if err != nil {
		return nil, err
	}
	m, err := from.Metadata(ctx)
	if err != nil {
		return nil, err
	}
	return r.create(ctx, o.From(m, eventlog.At(m.ID)), entries)
}
