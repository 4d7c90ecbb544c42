package sqlitestore_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/sessiontree/sessiontree/eventlog"
	"github.com/sessiontree/sessiontree/eventlog/conformance"
	"github.com/sessiontree/sessiontree/eventlog/jsonl"
	"github.com/sessiontree/sessiontree/sqlitestore"
	"github.com/sessiontree/sessiontree/sqlitestore/sqlitestoretest"
)

// adder is a repository that takes sessions as they are.
type adder interface {
	eventlog.Repo
	Add(ctx context.Context, m eventlog.Metadata, entries []eventlog.Entry) (*eventlog.Session, error)
}

// backend is the store with repositories of another make.
func backend(open func(path string, o sqlitestore.Options) (adder, error)) conformance.Backend {
	b := sqlitestoretest.Backend()
	b.New = func(dir string, source eventlog.Source) (eventlog.Repo, error) {
		return open(filepath.Join(dir, "sessions.db"), sqlitestore.Options{Source: source, Synchronous: sqlitestore.Normal})
	}
	b.Load = func(ctx context.Context, repo eventlog.Repo, _, name string, file []byte) (*eventlog.Session, error) {
		c, err := jsonl.Parse(name, string(file), jsonl.Options{Strict: true})
		if err != nil {
			return nil, err
		}
		return repo.(adder).Add(ctx, c.Metadata, c.Entries)
	}
	return b
}

// held is a store whose branch views somebody holds back. When it is closed they
// are let go, and must become what a rebuild gives.
type held struct{ *sqlitestore.Store }

func holding(who string) func(path string, o sqlitestore.Options) (adder, error) {
	return func(path string, o sqlitestore.Options) (adder, error) {
		s, err := sqlitestore.Open(ctx, path, o)
		if err == nil {
			s.HoldBranch(who)
		}
		return held{s}, err
	}
}

func (h held) Close(ctx context.Context) error {
	h.HoldBranch("")
	err := h.Restore(ctx, "") // a write, which brings the views up
	if errors.Is(err, eventlog.ErrClosed) {
		return nil
	}
	problems, verifyErr := h.Verify(ctx)
	if len(problems) > 0 {
		verifyErr = fmt.Errorf("verify: %v", problems)
	}
	return errors.Join(err, verifyErr, h.Store.Close(ctx))
}

// conforms runs the suite against a store that is slow on purpose: some groups of
// its vectors, unless there is time.
func conforms(t *testing.T, open func(path string, o sqlitestore.Options) (adder, error), groups ...string) {
	if os.Getenv("SESSIONTREE_LONG") != "" {
		conformance.Test(t, backend(open))
		return
	}
	conformance.TestGroups(t, backend(open), groups...)
}

// Views that are never current: every answer is the log's.
func TestTheStoreConformsWithItsViewsHeldBack(t *testing.T) {
	conforms(t, holding("all"), "handmade", "malformed", "navigate")
}

// Views that each read finds behind, and brings up.
func TestTheStoreConformsWithReadersThatBringTheViewsUp(t *testing.T) {
	conforms(t, holding("writers"), "navigate")
}

// readApart reads through a store of its own, which is open for reading only.
type readApart struct {
	held
	reader *sqlitestore.Store
}

func (r *readApart) Close(ctx context.Context) error {
	return errors.Join(r.reader.Close(ctx), r.held.Close(ctx))
}

func (r *readApart) apart(s *eventlog.Session, err error) (*eventlog.Session, error) {
	if err != nil {
		return nil, err
	}
	m, err := s.Metadata(ctx)
	if err != nil {
		return nil, err
	}
	reads, err := r.reader.Open(ctx, m)
	if err != nil {
		return nil, err
	}
	return eventlog.NewSession(&splitStorage{Storage: reads.Storage(), writes: s.Storage()}), nil
}

func (r *readApart) Create(ctx context.Context, o eventlog.CreateOptions) (*eventlog.Session, error) {
	return r.apart(r.held.Create(ctx, o))
}

func (r *readApart) Open(ctx context.Context, m eventlog.Metadata) (*eventlog.Session, error) {
	return r.apart(r.held.Open(ctx, m))
}

func (r *readApart) Fork(ctx context.Context, m eventlog.Metadata, o eventlog.ForkOptions) (*eventlog.Session, error) {
	return r.apart(r.held.Fork(ctx, m, o))
}

func (r *readApart) Add(ctx context.Context, m eventlog.Metadata, entries []eventlog.Entry) (*eventlog.Session, error) {
	return r.apart(r.held.Add(ctx, m, entries))
}

func (r *readApart) List(ctx context.Context, cwd string) ([]eventlog.Listed, error) {
	return r.reader.List(ctx, cwd)
}

// splitStorage reads from one storage and writes to another.
type splitStorage struct {
	eventlog.Storage
	writes eventlog.Storage
}

func (s *splitStorage) Append(ctx context.Context, b eventlog.Batch) ([]eventlog.Entry, error) {
	return s.writes.Append(ctx, b)
}

func (s *splitStorage) AppendRaw(ctx context.Context, entries ...eventlog.Entry) error {
	return s.writes.AppendRaw(ctx, entries...)
}

func (s *splitStorage) Close() error { return errors.Join(s.Storage.Close(), s.writes.Close()) }

// A store that may not write answers from the log where the views are behind.
func TestTheStoreConformsReadOnlyWithViewsBehind(t *testing.T) {
	conforms(t, func(path string, o sqlitestore.Options) (adder, error) {
		writer, err := holding("all")(path, o)
		if err != nil {
			return nil, err
		}
		o.ReadOnly = true
		reader, err := sqlitestore.Open(ctx, path, o)
		return &readApart{writer.(held), reader}, err
	}, "navigate")
}
