package sqlitestore

import (
	"context"

	"github.com/sessiontree/sessiontree/eventlog"
	"github.com/sessiontree/sessiontree/projections"
)

// putOff is what a transaction of several appends has still to insert: many rows in
// one statement cost less than each in its own. Whatever else is asked of the
// connection comes behind them (see [projections.Tx.Before]).
type putOff struct {
	allowed bool  // more may come in this transaction
	last    int64 // seq of the log's last event, with those that wait; 0: not known
	events  []projections.Event
	failed  error // why they could not be written: nothing is done any more
}

// add puts an event off and gives it its seq; false where it has to be written now.
func (p *putOff) add(e *projections.Event) bool {
	if p.last == 0 || !p.allowed && len(p.events) == 0 {
		return false
	}
	p.last++
	e.Seq = p.last
	p.events = append(p.events, *e)
	return true
}

// write inserts what was put off.
func (p *putOff) write(ctx context.Context, tx *projections.Tx) error {
	if len(p.events) == 0 {
		return p.failed
	}
	events := p.events
	p.events = nil // their statements do not wait for them
	p.failed = insertEntries(ctx, tx, events)
	if p.failed == nil && events[len(events)-1].Seq != p.last {
		p.failed = errOtherSeq
	}
	return p.failed
}

var errOtherSeq = eventlog.Errorf(eventlog.StorageFailed, "the log does not go on behind its last known event")
