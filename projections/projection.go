package projections

import (
	"context"

	"github.com/sessiontree/sessiontree/eventlog"
)

// The events of a session itself; their n is 0.
const (
	SessionCreated = "session_created" // payload: the header
	SessionForked  = "session_forked"  // like session_created, with the source in the sessions table
	SessionDeleted = "session_deleted"
)

// Event is one row of the log.
type Event struct {
	Seq     int64
	Session int64
	N       int
	// Entry is the event of an n above 0.
	Entry eventlog.Entry
	// Type is the event's type where n is 0.
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
	// Apply adds events, which come in the order of seq and each once.
	Apply(ctx context.Context, tx *Tx, events []Event) error
	// Reset deletes all of the view's rows.
	Reset(ctx context.Context, tx *Tx) error
}

// Checkpoint is how far a projection has come.
type Checkpoint struct {
	Version  int
	Position int64 // seq of the last event that was applied
}

// ReadCheckpoint is a projection's checkpoint; the zero one if it has none.
func ReadCheckpoint(ctx context.Context, tx *Tx, name string) (c Checkpoint, err error) {
	_, err = tx.Row(ctx, "SELECT version, position FROM checkpoints WHERE projection = ?", []any{name}, &c.Version, &c.Position)
	return c, err
}

// WriteCheckpoint moves a projection's checkpoint.
func WriteCheckpoint(ctx context.Context, tx *Tx, p Projection, position int64) error {
	_, err := tx.Exec(ctx, "INSERT INTO checkpoints (projection, version, position) VALUES (?1, ?2, ?3) ON CONFLICT (projection) DO UPDATE SET version = ?2, position = ?3", p.Name(), p.Version(), position)
	return err
}

// ReadEvents reads up to limit events behind a position, in order.
func ReadEvents(ctx context.Context, tx *Tx, after int64, limit int) ([]Event, error) {
	rows, err := tx.Rows(ctx, "SELECT seq, session, n, type, payload FROM events WHERE seq > ? ORDER BY seq LIMIT ?", after, limit)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	var events []Event
	for rows.Next() {
		var e Event
		var payload string
		if err := rows.Scan(&e.Seq, &e.Session, &e.N, &e.Type, &payload); err != nil {
			return nil, err
		}
		if e.N > 0 {
			e.Entry = eventlog.TrustedEntry(payload)
		}
		events = append(events, e)
	}
	return events, rows.Err()
}

// catchUpBatch is how many events one transaction of a catch-up applies: large
// enough to make the commit cheap, small enough to let writers in between.
const catchUpBatch = 2000

// CatchUp applies the next batch of events to a projection that is behind, or
// that another version wrote, and says whether there is more. It is called in a
// write transaction.
func CatchUp(ctx context.Context, tx *Tx, p Projection) (more bool, err error) {
	c, err := ReadCheckpoint(ctx, tx, p.Name())
	if err != nil {
		return false, err
	}
	if c.Version != p.Version() {
		if err := p.Reset(ctx, tx); err != nil {
			return false, err
		}
		c.Position = 0
	}
	events, err := ReadEvents(ctx, tx, c.Position, catchUpBatch)
	if err != nil {
		return false, err
	}
	if len(events) > 0 {
		if err := p.Apply(ctx, tx, events); err != nil {
			return false, err
		}
		c.Position = events[len(events)-1].Seq
	} else if c.Version == p.Version() {
		return false, nil
	}
	return len(events) == catchUpBatch, WriteCheckpoint(ctx, tx, p, c.Position)
}
