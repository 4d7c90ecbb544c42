package sqlitestore

import (
	"context"
	"errors"
	"slices"
	"sync"
	"time"

	"github.com/jmoiron/sqlx"

	"github.com/sessiontree/sessiontree/eventlog"
	"github.com/sessiontree/sessiontree/projections"
)

// writer is the one gate through which a process writes. Callers that wait while
// another commits are committed together (one fsync for all); a lone caller
// commits by itself, in its own goroutine.
type writer struct {
	db   *database
	wait time.Duration // for a lock, when the caller has no deadline
	full bool          // commits are synced, unless a request is lazy
	lazy bool          // the connection does not sync now
	wal  walWatch
	conn *sqlx.Conn
	tx   *projections.Tx

	// bringUp is what a transaction does for all of its requests that need the branch
	// views, before the first of them.
	bringUp func(ctx context.Context, tx *projections.Tx) error

	tips  tips
	begun bool // tips are those of this transaction
	turn  turn

	mu      sync.Mutex
	queue   []*request
	leading bool // somebody commits now
	closed  bool
	crowd   crowd
	idle    *sync.Cond // signalled when nobody leads any more
}

// request is one caller's write.
type request struct {
	ctx context.Context
	run func(ctx context.Context, tx *projections.Tx) error
	err error

	turn   chan bool // what became of a request that waits: true, it is to lead the next commit; false, it is committed or has failed
	called bool      // to lead
	told   bool      // the latter

	alone    bool      // runs by itself, outside of a transaction
	views    bool      // needs the branch views current, and keeps them so
	appends  bool      // changes nothing but sessions' logs: see tips
	lazy     bool      // may be lost with the power: it can be made again
	rebuilds bool      // lazy, and changes what appends read
	deadline time.Time // until when it waits for another process' lock; known when its turn comes
	panicked any       // what run panicked with: the caller's own, given back to it
}

// groupLimit is how many requests one transaction takes.
const groupLimit = 64

func newWriter(ctx context.Context, d *database, o Options) (*writer, error) {
	conn, err := d.write.Connx(ctx)
	if err != nil {
		return nil, d.mapError("cannot open the write connection", err)
	}
	// A rollback journal must be synced before the database is written to: what is
	// not synced may there cost the whole.
	full := o.Synchronous == Full && !d.exclusive
	w := &writer{db: d, wait: o.BusyTimeout, full: full, conn: conn, tx: projections.NewTx(conn)}
	w.tx.Before(func(ctx context.Context) error { return w.tips.put.write(ctx, w.tx) })
	w.idle = sync.NewCond(&w.mu)
	return w, nil
}

// update runs f in a write transaction and commits it, perhaps with those of
// others. An error of f undoes what it wrote, and no more. f may be run twice.
// A context that ends while the caller waits leaves nothing behind; once its
// turn has come the write is carried out.
func (w *writer) update(ctx context.Context, f func(ctx context.Context, tx *projections.Tx) error) error {
	return w.do(&request{ctx: ctx, run: f})
}

// updateLazily is update with the branch views current before f, for what can be
// made again: the commit does not wait for the disk. What is committed later, and
// synced, syncs it too (SQLite's WAL).
func (w *writer) updateLazily(ctx context.Context, f func(ctx context.Context, tx *projections.Tx) error) error {
	return w.do(&request{ctx: ctx, run: f, lazy: true, views: true})
}

// exclusively runs f on the write connection, outside of a transaction, while
// nobody of this process writes.
func (w *writer) exclusively(ctx context.Context, f func(ctx context.Context, tx *projections.Tx) error) error {
	return w.do(&request{ctx: ctx, run: f, alone: true})
}

func (w *writer) do(r *request) error {
	ctx := r.ctx
	if err := ctx.Err(); err != nil {
		return err
	}
	w.mu.Lock()
	if w.closed {
		w.mu.Unlock()
		return errClosed
	}
	w.queue = append(w.queue, r)
	leads := !w.leading
	if leads {
		w.leading = true
	} else {
		r.turn = make(chan bool, 1)
	}
	w.mu.Unlock()
	defer func() {
		if r.panicked != nil {
			panic(r.panicked)
		}
	}()
	if !leads {
		var err error
		if leads, err = w.await(r); err != nil {
			return err
		}
	}
	if leads {
		w.commitNext(r)
	}
	return r.err
}

// await waits until the request was carried out, or is to lead the next commit.
func (w *writer) await(r *request) (leads bool, err error) {
	select {
	case leads = <-r.turn:
	case <-r.ctx.Done():
		if w.withdraw(r) {
			return false, waited(r.ctx, &eventlog.Error{Code: eventlog.Busy, Message: "cannot write to " + w.db.path, Err: errNoTurn})
		}
		leads = <-r.turn // too late: its turn has come
	}
	return leads, nil
}

// withdraw takes a waiting request back; false when it is being carried out.
func (w *writer) withdraw(r *request) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	i := slices.Index(w.queue, r)
	if i < 0 || r.called {
		return false
	}
	w.queue = slices.Delete(w.queue, i, i+1)
	return true
}

// commitNext commits the requests that wait, the leader among them, and hands the
// lead to the next.
func (w *writer) commitNext(leader *request) {
	w.gather()
	w.mu.Lock()
	n := groupSize(w.queue)
	group := slices.Clone(w.queue[:n])
	w.queue = w.queue[n:]
	w.mu.Unlock()

	for _, r := range group {
		r.setDeadline(w.wait)
	}
	start := time.Now()
	rest := w.commit(slices.Clone(group), leader)

	var next *request
	w.mu.Lock()
	if len(rest) > 0 {
		w.queue = slices.Concat(rest, w.queue)
	}
	w.crowd.note(group, len(w.queue), time.Since(start))
	if len(w.queue) > 0 {
		next = w.queue[0]
		next.called = true
	} else {
		w.leading = false
		w.idle.Broadcast()
	}
	w.mu.Unlock()
	for _, r := range group {
		if r != leader && !slices.Contains(rest, r) {
			r.tell()
		}
	}
	if next != nil {
		next.turn <- true
	}
}

// tell says that the request was carried out or has failed, once.
func (r *request) tell() {
	if r.turn != nil && !r.told {
		r.told = true
		r.turn <- false
	}
}

// setDeadline says until when the request waits for another process. The time that
// it waited for others of this process does not count: they may have had much to
// write.
func (r *request) setDeadline(wait time.Duration) {
	if !r.deadline.IsZero() {
		return // it waits already
	}
	var ok bool
	if r.deadline, ok = r.ctx.Deadline(); !ok {
		r.deadline = time.Now().Add(wait)
	}
}

// groupSize is how many of the waiting requests one transaction takes.
func groupSize(queue []*request) int {
	for i, r := range queue {
		switch {
		case r.alone:
			return max(i, 1)
		case i == groupLimit:
			return i
		}
	}
	return len(queue)
}

// commit carries a group out in one transaction. If one of several fails, the
// transaction is undone and run again with each request behind a savepoint, so
// that a failure is its own and costs the others no sync; if even that cannot be,
// each is carried out by itself. Where another process has the lock for longer than
// the leader waits, it gives those that wait on.
func (w *writer) commit(group []*request, leader *request) (rest []*request) {
	for apart := false; len(group) > 0; {
		err := w.transact(group, apart)
		switch {
		case err == nil:
			return nil
		case errors.Is(err, errWaited):
			// Another process held the lock until the first of them ran out of time:
			// nothing has run yet, and the others go on waiting.
			group = slices.DeleteFunc(group, func(r *request) bool {
				if r.ctx.Err() == nil && time.Now().Before(r.deadline) {
					return false
				}
				if r.err = waited(r.ctx, err); r != leader {
					r.tell()
				}
				return true
			})
			if leader != nil && !slices.Contains(group, leader) {
				return group
			}
		case len(group) == 1:
			group[0].err = err
			return nil
		case !apart:
			apart = true
		default:
			for i := range group {
				w.commit(group[i:i+1:i+1], nil)
			}
			return nil
		}
	}
	return nil
}

// transact runs the group in one transaction; on an error nothing was written.
// A caller's cancellation does not reach the statements: a transaction is short,
// and is finished or undone as a whole.
func (w *writer) transact(group []*request, apart bool) (err error) {
	// A panic that is no caller's own, of a view say, must not stop the gate for
	// everybody, nor the goroutine that happens to commit.
	defer func() {
		if p := recover(); p != nil {
			w.tips.forget()
			w.rollback()
			err = eventlog.Errorf(eventlog.StorageFailed, "cannot write to %s: panic: %v", w.db.path, p)
		}
	}()
	// SQLite does not notice that its file was deleted or replaced, and would
	// write into what nobody finds again.
	if err := w.db.checkFile(); err != nil {
		return err
	}
	if err := w.limitWAL(group); err != nil {
		return err
	}
	if err := w.setSync(group); err != nil {
		return err
	}
	if group[0].alone {
		return w.runAlone(group[0])
	}
	w.letIn(group)
	defer func() { w.turn.ended = time.Now() }()
	if err := w.begin(group); err != nil {
		return err
	}
	w.begun = false
	if err := w.run(group, apart); err != nil {
		w.tips.forget()
		w.rollback()
		return w.db.mapError("cannot write", err)
	}
	if _, err := w.tx.Exec(context.Background(), "COMMIT"); err != nil {
		w.tips.forget()
		w.rollback()
		return w.db.mapError("cannot commit", err)
	}
	return nil
}

// run runs the group inside the transaction. If each is to fail apart, an error is
// one of the transaction itself.
func (w *writer) run(group []*request, apart bool) error {
	ctx, views := context.Background(), false
	for i, r := range group {
		if err := w.prepareTips(ctx, r, apart); err != nil {
			return err
		}
		if r.views && !views {
			if err := w.bringUp(ctx, w.tx); err != nil {
				return err
			}
		}
		views = r.views // another may have moved the checkpoint
		w.tips.put.allowed = w.tips.known && i < len(group)-1
		carryOut := r.carryOut
		if apart {
			carryOut = r.carryOutApart
		}
		if err := carryOut(w.tx); err != nil {
			return err
		}
	}
	return w.tips.write(ctx, w.tx)
}

// prepareTips gives a request that appends what the ones before it knew, and drops
// that for another. With failures kept apart a head may be of what was undone.
func (w *writer) prepareTips(ctx context.Context, r *request, apart bool) error {
	switch {
	case r.lazy && !r.rebuilds: // asynchronous views: nothing that an append reads
		if err := w.tips.write(ctx, w.tx); err != nil || w.begun {
			return err
		}
		w.begun = true // what comes next in this transaction does not ask again
		return w.tips.begin(ctx, w.tx)
	case apart || !r.appends:
		err := w.tips.write(ctx, w.tx)
		w.tips.forget()
		return err
	case !w.begun:
		w.begun = true
		return w.tips.begin(ctx, w.tx)
	case !w.tips.known: // another kind of write came before it in this transaction
		return w.tips.begin(ctx, w.tx)
	}
	return nil
}

// carryOutApart runs the request behind a savepoint: what it wrote is undone if it
// fails, and nothing else.
func (r *request) carryOutApart(tx *projections.Tx) error {
	ctx := context.Background()
	if _, err := tx.Exec(ctx, "SAVEPOINT request"); err != nil {
		return err
	}
	if r.err = r.carryOut(tx); r.err != nil {
		if _, err := tx.Exec(ctx, "ROLLBACK TO request"); err != nil {
			return err
		}
	}
	_, err := tx.Exec(ctx, "RELEASE request")
	return err
}

// runAlone runs a request outside of a transaction, again while another process
// has a lock that it needs.
func (w *writer) runAlone(r *request) error {
	for {
		err := r.carryOut(w.tx)
		if !isBusy(err) {
			return w.db.mapError("cannot write", err)
		}
		if outOfTime([]*request{r}) {
			return waited(r.ctx, w.db.mapError("cannot write", err))
		}
		time.Sleep(time.Millisecond)
	}
}

// setSync makes the next commit wait for the disk, if one of the group has to.
// SQLite takes the setting only between transactions.
func (w *writer) setSync(group []*request) error {
	lazy := true
	for _, r := range group {
		lazy = lazy && r.lazy
	}
	if !w.full || lazy == w.lazy {
		return nil
	}
	pragma := "PRAGMA synchronous = FULL"
	if lazy {
		pragma = "PRAGMA synchronous = NORMAL"
	}
	if _, err := w.conn.ExecContext(context.Background(), pragma); err != nil {
		return w.db.mapError("cannot set how commits are synced", err)
	}
	w.lazy = lazy
	return nil
}

// carryOut runs the request. A panic in it, of the host's clock or ids perhaps, is
// its caller's: it must not stop the gate for everybody.
func (r *request) carryOut(tx *projections.Tx) (err error) {
	r.err = nil // an earlier try's
	defer func() {
		if r.panicked = recover(); r.panicked != nil {
			err = eventlog.Errorf(eventlog.StorageFailed, "a write panicked: %v", r.panicked)
		}
	}()
	return r.run(context.WithoutCancel(r.ctx), tx)
}

func (w *writer) rollback() {
	// An error here means that SQLite has rolled back already.
	w.tx.Exec(context.Background(), "ROLLBACK")
}

// errWaited is in the chain of the error for a lock that did not come free.
var errWaited = errors.New("another process writes")

// errNoTurn is the cause where a caller's turn did not come: this process wrote, or
// waited for another.
var errNoTurn = errors.New("others write")

// begin starts the transaction. Another process may hold the lock: it waits until
// the first deadline in the group, or until one of the callers has gone.
func (w *writer) begin(group []*request) error {
	for again := false; ; {
		_, err := w.tx.Exec(context.Background(), "BEGIN IMMEDIATE")
		if err == nil {
			return nil
		}
		if !isBusy(err) {
			if again {
				return w.db.mapError("cannot begin to write", err)
			}
			// A transaction whose end failed may still be open: what it wrote must not be
			// committed with what comes now.
			w.rollback()
			again = true
			continue
		}
		if outOfTime(group) {
			return &eventlog.Error{Code: eventlog.Busy, Message: "cannot write to " + w.db.path, Err: errWaited}
		}
		time.Sleep(time.Millisecond)
	}
}

// outOfTime says whether one of the callers waits no longer.
func outOfTime(group []*request) bool {
	return slices.ContainsFunc(group, func(r *request) bool { return r.ctx.Err() != nil || !time.Now().Before(r.deadline) })
}

// close waits for what is being written and refuses what comes.
func (w *writer) close() error {
	w.mu.Lock()
	again := w.closed
	w.closed = true
	for w.leading {
		w.idle.Wait()
	}
	w.mu.Unlock()
	if again {
		return nil
	}
	return w.tx.CloseConn()
}

var errClosed = eventlog.Errorf(eventlog.Closed, "the store is closed")
