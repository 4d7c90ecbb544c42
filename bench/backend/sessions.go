package backend

import (
	"context"
	"errors"
	"fmt"
	"io"
	"iter"
	"sync"
	"time"

	"github.com/sessiontree/sessiontree/eventlog"
)

// sessions is a store of this module: any repository of sessions.
type sessions struct {
	repo    eventlog.Repo
	dialect eventlog.Dialect // of sessions that are created

	// find gives what the repository needs to open a session.
	find func(id string) (eventlog.Metadata, error)
	// list lists the first limit sessions, and all if that is 0. nil lists all with
	// what every repository has.
	list func(ctx context.Context, limit int) (int, error)
	// lag is how many events the view that is farthest behind lacks, nil if there
	// are no views.
	lag func(ctx context.Context) (int, error)
	// take imports a session file and gives its entries, nil if that cannot be done.
	take func(ctx context.Context, file string) (int, error)
	// rebuild makes a view anew, nil if there are none.
	rebuild func(ctx context.Context, view string) error
	// analyse answers what is asked of all sessions, nil if that cannot be done.
	analyse func(ctx context.Context, r Request) (Reply, error)
	// size gives the bytes on disk, nil for none.
	size func(ctx context.Context) (Reply, error)
	// end closes the repository, nil if there is nothing to close.
	end func(ctx context.Context) error

	mu   sync.Mutex
	open map[string]*eventlog.Session
}

func (s *sessions) Do(ctx context.Context, r Request) (Reply, error) {
	switch r.Op {
	case Empty:
		return timed(func() (Reply, error) { return Reply{}, nil })
	case Create:
		return s.create(ctx, r)
	case Leave:
		return Reply{}, s.leave(r.Session)
	case List:
		return s.listed(ctx, r)
	case Rebuild:
		if s.rebuild == nil {
			return Reply{}, errors.ErrUnsupported
		}
		return timed(func() (Reply, error) { return Reply{}, s.rebuild(ctx, r.View) })
	case Import:
		if s.take == nil {
			return Reply{}, errors.ErrUnsupported
		}
		return timed(func() (Reply, error) {
			n, err := s.take(ctx, r.File)
			return Reply{Count: n}, err
		})
	case Lag:
		if s.lag == nil {
			return Reply{}, nil
		}
		n, err := s.lag(ctx)
		return Reply{Count: n}, err
	case Usage, Tools, Search:
		if s.analyse == nil {
			return Reply{}, errors.ErrUnsupported
		}
		return s.analyse(ctx, r)
	case Peak:
		return peak()
	case Size:
		if s.size == nil {
			return Reply{}, errors.ErrUnsupported
		}
		return s.size(ctx)
	case Fork:
		return s.fork(ctx, r)
	}
	on, ok := operations[r.Op]
	if !ok {
		return Reply{}, errors.ErrUnsupported
	}
	session, err := s.session(ctx, r.Session)
	if err != nil {
		return Reply{}, err
	}
	return on(ctx, session, r)
}

// timed gives the reply of f, with how long it took.
func timed(f func() (Reply, error)) (Reply, error) {
	start := time.Now()
	r, err := f()
	r.Nanos = time.Since(start).Nanoseconds()
	return r, err
}

func (s *sessions) session(ctx context.Context, id string) (*eventlog.Session, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if session := s.open[id]; session != nil {
		return session, nil
	}
	m, err := s.find(id)
	if err != nil {
		return nil, err
	}
	session, err := s.repo.Open(ctx, m)
	if err == nil {
		s.open[id] = session
	}
	return session, err
}

func (s *sessions) leave(id string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	session := s.open[id]
	delete(s.open, id)
	if session == nil {
		return nil
	}
	return session.Close()
}

func (s *sessions) keep(id string, session *eventlog.Session) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.open[id] = session
}

// folder is the working folder of sessions that are measured.
const folder = "/project"

func (s *sessions) create(ctx context.Context, r Request) (Reply, error) {
	var session *eventlog.Session
	reply, err := timed(func() (_ Reply, err error) {
		session, err = s.repo.Create(ctx, eventlog.CreateOptions{ID: r.Session, CWD: folder, Dialect: s.dialect})
		return Reply{Count: 1}, err
	})
	if err == nil {
		s.keep(r.Session, session)
	}
	return reply, err
}

func (s *sessions) fork(ctx context.Context, r Request) (Reply, error) {
	m, err := s.find(r.Session)
	if err != nil {
		return Reply{}, err
	}
	o := eventlog.ForkOptions{CreateOptions: eventlog.CreateOptions{ID: r.NewSession}}
	if r.Entry != "" {
		o.EntryID, o.Position = r.Entry, eventlog.AtIt
	}
	var session *eventlog.Session
	reply, err := timed(func() (_ Reply, err error) {
		session, err = s.repo.Fork(ctx, m, o)
		return Reply{}, err
	})
	if err != nil {
		return Reply{}, err
	}
	s.keep(r.NewSession, session)
	head, err := session.Head(ctx)
	reply.Count = head.N
	return reply, err
}

func (s *sessions) listed(ctx context.Context, r Request) (Reply, error) {
	if s.list != nil {
		return timed(func() (Reply, error) {
			n, err := s.list(ctx, r.Limit)
			return Reply{Count: n}, err
		})
	}
	if r.Limit != 0 {
		return Reply{}, errors.ErrUnsupported // a repository has no pages
	}
	return timed(func() (Reply, error) {
		listed, err := s.repo.List(ctx, "")
		return Reply{Count: len(listed)}, err
	})
}

func (s *sessions) Close(ctx context.Context) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	var errs []error
	for id, session := range s.open {
		errs = append(errs, session.Close())
		delete(s.open, id)
	}
	if s.end != nil {
		errs = append(errs, s.end(ctx))
	}
	return errors.Join(errs...)
}

// operations are those of one session.
var operations = map[Op]func(ctx context.Context, s *eventlog.Session, r Request) (Reply, error){
	Build:          build,
	Append:         appendEach,
	Batch:          batch,
	Branch:         branch,
	BranchPages:    branchPages,
	Context:        buildContext,
	Turn:           turn,
	AppendAt:       appendAt,
	Move:           move,
	IsAncestor:     isAncestor,
	CommonAncestor: commonAncestor,
	Descendants:    descendants,
	Stream:         stream,
	Export:         export,
}

func build(ctx context.Context, s *eventlog.Session, r Request) (Reply, error) {
	entries := make([]eventlog.Entry, len(r.Lines))
	for i, line := range r.Lines {
		var err error
		if entries[i], err = eventlog.ParseEntry(line); err != nil {
			return Reply{}, fmt.Errorf("entry %d: %w", i, err)
		}
	}
	return timed(func() (Reply, error) {
		return Reply{Count: len(entries)}, s.Storage().AppendRaw(ctx, entries...)
	})
}

// messages are what a host has in its hands before it appends.
func messages(lines []string) ([]eventlog.Message, error) {
	m := make([]eventlog.Message, len(lines))
	for i, line := range lines {
		var err error
		if m[i], err = eventlog.ParseMessage(line); err != nil {
			return nil, fmt.Errorf("message %d: %w", i, err)
		}
	}
	return m, nil
}

func appendEach(ctx context.Context, s *eventlog.Session, r Request) (Reply, error) {
	m, err := messages(r.Lines)
	if err != nil {
		return Reply{}, err
	}
	var last string
	reply, err := each(len(m), r.Writers, func(i int) error {
		e, err := s.AppendMessage(ctx, m[i])
		if r.Writers <= 1 {
			last = e.ID()
		}
		return err
	})
	reply.Leaf = last
	return reply, err
}

// each does n things by so many goroutines and times each of them and the whole.
func each(n, writers int, do func(i int) error) (Reply, error) {
	if writers <= 1 && n == 1 {
		return timed(func() (Reply, error) { return Reply{Count: 1}, do(0) })
	}
	r := Reply{Count: n, Each: make([]int64, n)}
	next, errs := make(chan int, n), make([]error, n)
	for i := range n {
		next <- i
	}
	close(next)
	start := time.Now()
	var running sync.WaitGroup
	for range max(writers, 1) {
		running.Go(func() {
			for i := range next {
				from := time.Now()
				errs[i] = do(i)
				r.Each[i] = time.Since(from).Nanoseconds()
			}
		})
	}
	running.Wait()
	r.Nanos = time.Since(start).Nanoseconds()
	return r, errors.Join(errs...)
}

func batch(ctx context.Context, s *eventlog.Session, r Request) (Reply, error) {
	m, err := messages(r.Lines)
	if err != nil {
		return Reply{}, err
	}
	return timed(func() (Reply, error) {
		drafts := make([]eventlog.Draft, len(m))
		for i := range m {
			drafts[i] = eventlog.MessageDraft(m[i])
		}
		_, err := s.Append(ctx, drafts...)
		return Reply{Count: len(m)}, err
	})
}

func branch(ctx context.Context, s *eventlog.Session, r Request) (Reply, error) {
	var entries []eventlog.Entry
	reply, err := timed(func() (_ Reply, err error) {
		entries, err = s.Branch(ctx, ref(r.Entry))
		return Reply{Count: len(entries)}, err
	})
	for _, e := range entries {
		reply.Bytes += int64(len(e.JSON()))
	}
	return reply, err
}

func buildContext(ctx context.Context, s *eventlog.Session, r Request) (Reply, error) {
	var c eventlog.Context
	reply, err := timed(func() (_ Reply, err error) {
		c, err = s.BuildContext(ctx, ref(r.Entry))
		return Reply{Count: len(c.Messages)}, err
	})
	for _, m := range c.Messages {
		reply.Bytes += int64(len(m.JSON()))
	}
	return reply, err
}

func turn(ctx context.Context, s *eventlog.Session, r Request) (Reply, error) {
	m, err := messages(r.Lines)
	if err != nil {
		return Reply{}, err
	}
	start := time.Now()
	for i := range m {
		if _, err := s.AppendMessage(ctx, m[i]); err != nil {
			return Reply{}, err
		}
	}
	appended := time.Now()
	c, err := s.BuildContext(ctx, eventlog.None())
	end := time.Now()
	return Reply{
		Nanos: end.Sub(start).Nanoseconds(),
		Each:  []int64{appended.Sub(start).Nanoseconds(), end.Sub(appended).Nanoseconds()},
		Count: len(c.Messages),
	}, err
}

func appendAt(ctx context.Context, s *eventlog.Session, r Request) (Reply, error) {
	m, err := messages(r.Lines)
	if err != nil {
		return Reply{}, err
	}
	return timed(func() (Reply, error) {
		_, err := s.AppendAt(ctx, ref(r.Entry), eventlog.MessageDraft(m[0]))
		return Reply{Count: 1}, err
	})
}

func move(ctx context.Context, s *eventlog.Session, r Request) (Reply, error) {
	return timed(func() (Reply, error) {
		_, err := s.MoveTo(ctx, ref(r.Entry), nil)
		return Reply{Count: 1, Leaf: r.Entry}, err
	})
}

// ancestry is what a storage knows that finds ancestors without a walk.
type ancestry interface {
	IsAncestor(ctx context.Context, a, b string) (bool, error)
	CommonAncestor(ctx context.Context, a, b string) (eventlog.Ref, error)
}

func isAncestor(ctx context.Context, s *eventlog.Session, r Request) (Reply, error) {
	a, ok := s.Storage().(ancestry)
	if !ok {
		return Reply{}, errors.ErrUnsupported
	}
	return timed(func() (Reply, error) {
		above, err := a.IsAncestor(ctx, r.Entry, r.Other)
		if above {
			return Reply{Count: 1}, err
		}
		return Reply{}, err
	})
}

func commonAncestor(ctx context.Context, s *eventlog.Session, r Request) (Reply, error) {
	a, ok := s.Storage().(ancestry)
	if !ok {
		return Reply{}, errors.ErrUnsupported
	}
	return timed(func() (Reply, error) {
		_, err := a.CommonAncestor(ctx, r.Entry, r.Other)
		return Reply{Count: 1}, err
	})
}

// below is what a storage knows that finds all entries below one.
type below interface {
	Descendants(ctx context.Context, id string) iter.Seq2[eventlog.Entry, error]
}

func descendants(ctx context.Context, s *eventlog.Session, r Request) (Reply, error) {
	b, ok := s.Storage().(below)
	if !ok {
		return Reply{}, errors.ErrUnsupported
	}
	return timed(func() (Reply, error) { return read(b.Descendants(ctx, r.Entry)) })
}

func branchPages(ctx context.Context, s *eventlog.Session, r Request) (Reply, error) {
	return timed(func() (Reply, error) { return read(s.BranchSeq(ctx, ref(r.Entry))) })
}

func stream(ctx context.Context, s *eventlog.Session, _ Request) (Reply, error) {
	return timed(func() (Reply, error) { return read(s.Entries(ctx, 0, eventlog.All)) })
}

// read counts entries and their bytes, and keeps none.
func read(entries iter.Seq2[eventlog.Entry, error]) (r Reply, err error) {
	for e, err := range entries {
		if err != nil {
			return r, err
		}
		r.Count++
		r.Bytes += int64(len(e.JSON()))
	}
	return r, nil
}

func export(ctx context.Context, s *eventlog.Session, _ Request) (Reply, error) {
	return timed(func() (Reply, error) {
		var to counter
		err := s.Export(ctx, &to)
		return Reply{Count: to.lines - 1, Bytes: to.bytes}, err
	})
}

// counter counts what is written to it.
type counter struct {
	bytes int64
	lines int
}

func (c *counter) Write(b []byte) (int, error) {
	c.bytes += int64(len(b))
	for _, x := range b {
		if x == '\n' {
			c.lines++
		}
	}
	return len(b), nil
}

var _ io.Writer = (*counter)(nil)

func ref(id string) eventlog.Ref {
	if id == "" {
		return eventlog.None()
	}
	return eventlog.At(id)
}
