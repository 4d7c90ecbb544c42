package sqlitestore

import (
	"context"
	"sync"

	"github.com/sessiontree/sessiontree/eventlog"
	"github.com/sessiontree/sessiontree/projections"
	"github.com/sessiontree/sessiontree/query"
)

// Store is an open database. It is an [eventlog.Repo]. It may be used from many
// goroutines, and a file from many processes.
type Store struct {
	o        Options
	db       *database
	writer   *writer // nil when read-only
	readers  chan *projections.Tx
	branch   projections.Branch
	lockstep lockstep // of the branch set with the log
	builder  builder
	cache    *branchCache
	views    *projections.Runner // the asynchronous ones
	news     beacon              // shines when this process appends

	segments *query.Segments // kept in memory

	bulk sync.Mutex // held while much is written: see inBulk

	copying  sync.RWMutex
	copied   *Store // see inCopy
	copiedTo int64  // its last event
	copyDir  string

	closing sync.Mutex
	open    int // readers that are not closed yet
	closed  bool
}

// keptSegments is how many segments are kept in memory: about 6 MB.
const keptSegments = 1 << 16

// Open opens the database file at path, and makes it if it is not there. It
// fails with [eventlog.ErrStorage], [eventlog.ErrInvalidArgument] for options
// that do not fit, and [eventlog.ErrBusy] when another process holds it for
// longer than the context or [Options.BusyTimeout] allows.
func Open(ctx context.Context, path string, o Options) (*Store, error) {
	d, err := openDatabase(ctx, path, o)
	if err != nil {
		return nil, err
	}
	s := &Store{o: d.o, db: d, cache: newBranchCache(d.o.CacheBytes), segments: query.NewSegments(keptSegments)}
	s.views = projections.NewRunner(viewHost{s}, d.o.Logger, asyncViews()...)
	if err := s.start(ctx); err != nil {
		s.Close(context.WithoutCancel(ctx))
		return nil, err
	}
	return s, nil
}

func (s *Store) start(ctx context.Context) error {
	n := s.o.ReadConns
	s.readers, s.open = make(chan *projections.Tx, n), n
	for range n {
		s.readers <- nil // connected when it is first used
	}
	if s.db.readOnly {
		return nil
	}
	var err error
	if s.writer, err = newWriter(ctx, s.db, s.o); err != nil {
		return err
	}
	s.writer.bringUp = s.bringUp
	if err := s.mend(ctx); err != nil && !s.noteBranch(ctx, err) {
		return err
	}
	if err := s.bringUpBranch(ctx); err != nil && !s.noteBranch(ctx, err) {
		return err
	}
	s.views.Start()
	return nil
}

// mend rebuilds the branch views if their checkpoint cannot be right: beyond the
// log, behind rows that were applied already, or at the end of a log whose last event
// was not applied. What it cannot see from there, Verify finds.
func (s *Store) mend(ctx context.Context) error {
	wrong := false
	err := s.read(ctx, func(tx *projections.Tx) error {
		c, err := projections.ReadCheckpoint(ctx, tx, s.branch.Name())
		if err != nil || c.Version != s.branch.Version() {
			return err
		}
		last, err := projections.LastEvent(ctx, tx)
		if err != nil {
			return err
		}
		var one int64
		applied, err := tx.Row(ctx, appliedBehind, []any{c.Position}, &one)
		if wrong = applied || c.Position > last; err == nil && !wrong && c.Position == last {
			wrong, err = tx.Row(ctx, lastNotApplied, []any{last}, &one)
		}
		return err
	})
	if err != nil || !wrong {
		return err
	}
	s.o.Logger.WarnContext(ctx, "the checkpoint of the branch views is wrong: they are rebuilt", "path", s.db.path)
	return s.rebuildWhole(ctx)
}

// appliedBehind says whether the first entry behind a position was applied: then
// its session's head has come that far.
const appliedBehind = `SELECT 1 FROM events e JOIN heads h ON h.session = e.session
	WHERE e.seq = (SELECT seq FROM events WHERE seq > ? AND n > 0 ORDER BY seq LIMIT 1) AND h.last_seq >= e.seq`

// lastNotApplied says whether the log's last event was not applied: somebody wrote it
// who knows nothing of the views.
const lastNotApplied = `SELECT 1 FROM events e LEFT JOIN heads h ON h.session = e.session
	WHERE e.seq = ? AND NOT (e.n = 0 AND e.type = 'session_deleted') AND coalesce(h.last_seq, 0) < e.seq`

// catchUp applies what the branch views lack, in slices, so that other writers get
// their turns; nothing if a newer program keeps them.
func (s *Store) catchUp(ctx context.Context) error {
	for more := true; more && s.lockstep.mayApply(); {
		behind, newer := false, false
		err := s.read(ctx, func(tx *projections.Tx) error {
			c, err := projections.ReadCheckpoint(ctx, tx, s.branch.Name())
			if newer = c.Version > s.branch.Version(); err != nil || newer {
				return err
			}
			behind, err = projections.IsBehind(ctx, tx, s.branch)
			return err
		})
		if err != nil || newer {
			return err
		}
		if !behind {
			break
		}
		err = s.writer.update(ctx, func(ctx context.Context, tx *projections.Tx) (err error) {
			more, err = s.applySlice(ctx, tx)
			return err
		})
		if err != nil {
			return err
		}
	}
	if s.lockstep.mayApply() {
		s.branchWorks()
	}
	return nil
}

// asyncViews are the views that follow the log by themselves.
func asyncViews() []projections.Projection {
	return []projections.Projection{projections.Catalog{}, projections.Usage{}, projections.Search{}}
}

// ViewNames are the names of the views, as [Store.Rebuild] takes them: the branch
// set, and the asynchronous ones.
func ViewNames() []string {
	names := []string{projections.Branch{}.Name()}
	for _, v := range asyncViews() {
		names = append(names, v.Name())
	}
	return names
}

// viewHost is the store as the runner of the asynchronous views uses it.
type viewHost struct{ *Store }

// Read implements [projections.Host].
func (s viewHost) Read(ctx context.Context, f func(tx *projections.Tx) error) error {
	return s.read(ctx, f)
}

// Update implements [projections.Host].
func (s viewHost) Update(ctx context.Context, f func(ctx context.Context, tx *projections.Tx) error) error {
	if s.writer == nil {
		return s.readOnly()
	}
	return s.writer.updateLazily(ctx, f)
}

// Appended implements [projections.Host].
func (s viewHost) Appended() <-chan struct{} { return s.news.next() }

// read runs f on a connection of the read pool, in one snapshot.
func (s *Store) read(ctx context.Context, f func(tx *projections.Tx) error) error {
	return s.withReader(ctx, func(tx *projections.Tx) (broken bool, err error) {
		// A cancelled BEGIN may have begun: the connection would go back into the pool
		// inside a transaction.
		if _, err := tx.Exec(context.WithoutCancel(ctx), "BEGIN"); err != nil {
			return true, err
		}
		defer func() {
			// The end of a read does not depend on the caller's patience. One that fails
			// leaves who knows what: the connection must not go back.
			if _, rollback := tx.Exec(context.WithoutCancel(ctx), "ROLLBACK"); rollback != nil {
				broken = true
			}
		}()
		return false, f(tx)
	})
}

// withReader runs f on a connection of the read pool; one that f says is broken
// does not go back into it.
func (s *Store) withReader(ctx context.Context, f func(tx *projections.Tx) (broken bool, err error)) error {
	var tx *projections.Tx
	select {
	case <-ctx.Done():
		return ctx.Err()
	case t, ok := <-s.readers:
		if !ok {
			return errClosed
		}
		tx = t
	}
	defer func() { s.readers <- tx }()
	if tx == nil {
		conn, err := s.db.read.Connx(ctx)
		if err != nil {
			return s.db.mapError("cannot open a read connection", err)
		}
		tx = projections.NewTx(conn)
	}
	if s.db.outdated() {
		// Reads of a file that is taken for immutable may mix old and new.
		return eventlog.Errorf(eventlog.StorageFailed, "%s was written to since it was opened for reading: open it again", s.db.path)
	}
	broken, err := f(tx)
	if broken {
		tx.DiscardConn()
		tx = nil
	}
	if err != nil && ctx.Err() != nil {
		return ctx.Err()
	}
	return s.db.mapError("cannot read", err)
}

// Close waits for the writes and reads under way, brings the asynchronous views
// up to the end of the log and closes the database; a second Close does nothing.
// The context bounds the wait: views that are not ready by then are brought up by
// whoever opens the store next; for readers the database stays open, and Close may
// be called again.
func (s *Store) Close(ctx context.Context) error {
	s.closing.Lock()
	defer s.closing.Unlock()
	if s.closed {
		return nil
	}
	s.dropCopy(ctx)
	s.stopBuilding()
	if s.writer != nil {
		s.views.Close(ctx)
		s.writer.close()
	}
	for s.open > 0 {
		var tx *projections.Tx
		select {
		case tx = <-s.readers: // an idle one is closed, whatever the context says
		default:
			select {
			case tx = <-s.readers:
			case <-ctx.Done():
				return ctx.Err()
			}
		}
		s.open--
		if tx != nil {
			tx.CloseConn()
		}
	}
	close(s.readers) // who reads now is told
	s.closed = true
	return s.db.close()
}

var (
	_ eventlog.Repo           = (*Store)(nil)
	_ eventlog.LeafBrancher   = (*Storage)(nil)
	_ eventlog.BranchStreamer = (*Storage)(nil)
)
