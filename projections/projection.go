package projections

import (
	"context"
	"github.com/sessiontree/sessiontree/migrations"
	"math"

	"github.com/sessiontree/sessiontree/eventlog"
	"github.com/sessiontree/sessiontree/eventlog/js"
)

// The events of a session itself; their n is 0.
const (
	SessionCreated = "session_created" // payload: the header
	SessionForked  = "session_forked"  // like session_created, with the source in the sessions table
	SessionDeleted = "session_deleted"
	// LeafMoved moves the leaf where that is no entry; its n is negative.
	LeafMoved = "leaf_moved" // payload: {"targetId"}
)

// Event is one row of the log.
type Event struct {
	Seq     int64
	Session int64
	N       int
	Hash    []byte // see [ChainHash]
	// Entry is the event of an n above 0, and the move of a LeafMoved.
	Entry eventlog.Entry
	// Type is the event's type where n is not above 0.
	Type string
	// Checked says that the id is known to be new in its session.
	Checked bool
}

// Projection is a view of the log.
type Projection interface {
	// Name is the view's name in the checkpoints.
	Name() string
	// Version rises when the view's rows would be others; the view is rebuilt then.
	Version() int
	// Tables are the tables that the view's rows are in.
	Tables() []string
	// Apply adds events, which come in the order of seq and each once.
	Apply(ctx context.Context, tx *Tx, events []Event) error
	// Reset deletes all of the view's rows.
	Reset(ctx context.Context, tx *Tx) error
}

// deleteRows deletes all rows of a view.
func deleteRows(ctx context.Context, tx *Tx, p Projection) error {
	for _, table := range p.Tables() {
		if _, err := tx.Exec(ctx, "DELETE FROM "+table); err != nil {
			return err
		}
	}
	return nil
}

// Depends is a projection that reads another's rows. Ready fails while these are not
// such that they can be read: nothing is applied then.
type Depends interface {
	Ready(ctx context.Context, tx *Tx) error
}

// Paced is a projection to which a single event may mean more work than a transaction
// should hold.
type Paced interface {
	// Pace is called with the events that come next, and does a part of the work ahead,
	// if there is too much. ready says that they can be applied now; else it is called
	// again in the next transaction.
	Pace(ctx context.Context, tx *Tx, events []Event) (ready bool, err error)
}

// Checkpoint is how far a projection has come.
type Checkpoint struct {
	Version  int
	Position int64 // seq of the last event that was applied
	// Lockstep says that whoever writes an event applies it too, in the same
	// transaction: the position is that of the last event without being written each
	// time, which would cost every append a page.
	Lockstep bool
}

// ReadCheckpoint is a projection's checkpoint; the zero one if it has none.
func ReadCheckpoint(ctx context.Context, tx *Tx, name string) (c Checkpoint, err error) {
	_, err = tx.Row(ctx, `SELECT version, CASE WHEN position < 0 THEN (SELECT coalesce(max(seq), 0) FROM events) ELSE position END, position < 0
		FROM checkpoints WHERE projection = ?`, []any{name}, &c.Version, &c.Position, &c.Lockstep)
	return c, err
}

// EnterLockstep notes that a projection holds the whole log, and that from here on
// whoever writes events applies them.
func EnterLockstep(ctx context.Context, tx *Tx, p Projection) error {
	_, err := tx.Exec(ctx, "UPDATE checkpoints SET position = -1 WHERE projection = ?", p.Name())
	return err
}

// LeaveLockstep is called in a transaction before events are written that are not
// applied.
func LeaveLockstep(ctx context.Context, tx *Tx, p Projection) error {
	_, err := tx.Exec(ctx, "UPDATE checkpoints SET position = (SELECT coalesce(max(seq), 0) FROM events) WHERE projection = ? AND position < 0", p.Name())
	return err
}

// WriteCheckpoint moves a projection's checkpoint.
func WriteCheckpoint(ctx context.Context, tx *Tx, p Projection, position int64) error {
	_, err := tx.Exec(ctx, "INSERT INTO checkpoints (projection, version, position) VALUES (?1, ?2, ?3) ON CONFLICT (projection) DO UPDATE SET version = ?2, position = ?3", p.Name(), p.Version(), position)
	return err
}

// Invalid is the position of rows that cannot be used: see [Invalidate].
const Invalid = math.MaxInt64

// Invalidate has a projection made again from the log when it is brought up next:
// its position becomes one that cannot be.
func Invalidate(ctx context.Context, tx *Tx, p Projection) error {
	_, err := tx.Exec(ctx, "UPDATE checkpoints SET position = ? WHERE projection = ?", int64(Invalid), p.Name())
	return err
}

// LastEvent is the seq of the last event of the log, 0 for none.
func LastEvent(ctx context.Context, tx *Tx) (seq int64, err error) {
	_, err = tx.Row(ctx, "SELECT seq FROM events ORDER BY seq DESC LIMIT 1", nil, &seq)
	return seq, err
}

// sliceBytes bounds the payloads that are held at a time: a few entries may be as
// large as thousands of others.
const sliceBytes = 16 << 20

// ReadEvents reads up to limit events behind a position, in order; fewer when
// they are large, but one at least if there is one. more is false when these
// were the last.
func ReadEvents(ctx context.Context, tx *Tx, after int64, limit int) (events []Event, more bool, err error) {
	return readEvents(ctx, tx, limit, "SELECT seq, session, n, type, hash, "+migrations.Payload+" FROM events WHERE seq > ? ORDER BY seq LIMIT ?", after, limit)
}

// readSession is ReadEvents for the entries of one session behind an n.
func readSession(ctx context.Context, tx *Tx, session, after int64, limit int) (events []Event, more bool, err error) {
	return readEvents(ctx, tx, limit, "SELECT seq, session, n, type, hash, "+migrations.Payload+" FROM events WHERE session = ? AND n > ? ORDER BY n LIMIT ?", session, after, limit)
}

func readEvents(ctx context.Context, tx *Tx, limit int, query string, args ...any) (events []Event, more bool, err error) {
	rows, err := tx.Rows(ctx, query, args...)
	if err != nil {
		return nil, false, err
	}
	defer rows.Close()
	for size := 0; rows.Next(); {
		var e Event
		var payload string
		if err := rows.Scan(&e.Seq, &e.Session, &e.N, &e.Type, &e.Hash, &payload); err != nil {
			return nil, false, err
		}
		if e.N > 0 {
			e.Entry = eventlog.TrustedEntry(payload)
		} else if e.Type == LeafMoved {
			e.Entry = eventlog.MoveOf(js.Trusted(payload).Get("targetId"))
		}
		events = append(events, e)
		if size += len(payload); size > sliceBytes {
			return events, true, nil
		}
	}
	return events, len(events) == limit, rows.Err()
}

const (
	// BranchSlice is how many events one transaction of a catch-up of the branch
	// set applies: large enough to make the commit cheap, small enough to let
	// writers in between.
	BranchSlice = 2000
	// sliceEvents is the same for the asynchronous views, behind which nobody
	// waits: an append waits for one slice at most.
	sliceEvents = 250
)

// IsBehind says whether there are events that a projection has not applied, or
// whether another version wrote its rows.
func IsBehind(ctx context.Context, tx *Tx, p Projection) (bool, error) {
	c, err := ReadCheckpoint(ctx, tx, p.Name())
	if err != nil {
		return false, err
	}
	last, err := LastEvent(ctx, tx)
	return c.Version != p.Version() || c.Position != last, err
}

// NewerView is the error for rows that a newer program wrote.
func NewerView(p Projection, c Checkpoint) error {
	return eventlog.Errorf(eventlog.StorageFailed, "the view %s is of version %d, and this program writes version %d: use the newer program", p.Name(), c.Version, p.Version())
}

// CatchUp applies the next events, up to limit, to a projection that is behind,
// or that an older version wrote, and says whether there may be more. It is called
// in a write transaction. Versions only rise: what a newer program wrote is an
// error, and stays.
func CatchUp(ctx context.Context, tx *Tx, p Projection, limit int) (more bool, err error) {
	more, _, err = catchUp(ctx, tx, p, limit, false)
	return more, err
}

// catchUp is CatchUp, with events that mean much work in several transactions, if
// paced; waits says that this one applied none, for that reason.
func catchUp(ctx context.Context, tx *Tx, p Projection, limit int, paced bool) (more, waits bool, err error) {
	c, err := ReadCheckpoint(ctx, tx, p.Name())
	if err != nil {
		return false, false, err
	}
	if c.Version > p.Version() {
		return false, false, NewerView(p, c)
	}
	// An error here would undo what others write in the same transaction.
	if d, ok := p.(Depends); ok && d.Ready(ctx, tx) != nil {
		return false, false, nil
	}
	last, err := LastEvent(ctx, tx)
	if err != nil {
		return false, false, err
	}
	// A position beyond the log cannot be right either.
	anew := c.Version != p.Version() || c.Position > last
	if anew {
		if err := p.Reset(ctx, tx); err != nil {
			return false, false, err
		}
		c.Position = 0
	}
	events, more, err := ReadEvents(ctx, tx, c.Position, limit)
	if err != nil {
		return false, false, err
	}
	if long, ok := p.(Paced); ok && paced && len(events) > 0 {
		ready, err := long.Pace(ctx, tx, events)
		if err == nil && !ready && anew {
			err = WriteCheckpoint(ctx, tx, p, 0)
		}
		if err != nil || !ready {
			return true, true, err
		}
	}
	if len(events) > 0 {
		if err := p.Apply(ctx, tx, events); err != nil {
			return false, false, err
		}
		c.Position = events[len(events)-1].Seq
	} else if !anew {
		return false, false, nil
	}
	return more, false, WriteCheckpoint(ctx, tx, p, c.Position)
}
