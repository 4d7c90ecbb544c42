package sqlitestore

import (
	"context"

	"github.com/sessiontree/sessiontree/projections"
)

// tips is what appends know of the database from one transaction to the next: the
// heads of the sessions that they appended to, which ids these do not have, and that
// the branch views have all events. It holds as long as no other connection has
// written, which SQLite tells (PRAGMA data_version), and no other kind of write came
// in between in this one. So an append need not read the checkpoint, the end of the
// log and the head again, and of many that are committed together only the last
// writes a session's head.
//
// Only who holds the write gate touches it.
type tips struct {
	known    bool  // what follows was so after the last transaction
	version  int64 // data_version then
	current  bool  // the branch views have all events, and work
	unleased bool  // no session has a lease
	heads    map[int64]*projections.Head
	gaps     map[int64]gap
	changed  map[int64]*projections.Head // not written yet
	put      putOff
}

// maxTips is how many heads are kept: about a kilobyte each.
const maxTips = 1000

// forget drops everything; what was not written has to be undone.
func (t *tips) forget() { *t = tips{} }

// begin drops what is known, if it need not be so any more.
func (t *tips) begin(ctx context.Context, tx *projections.Tx) error {
	var version int64
	if _, err := tx.Row(ctx, "PRAGMA data_version", nil, &version); err != nil {
		return err
	}
	if !t.known || t.version != version || len(t.heads) > maxTips {
		t.forget()
	}
	t.known, t.version = true, version
	return nil
}

// head is the session's, nil if there is no such session.
func (t *tips) head(ctx context.Context, tx *projections.Tx, session int64) (*projections.Head, error) {
	if h := t.heads[session]; h != nil {
		return h, nil
	}
	h, err := projections.ReadHead(ctx, tx, session)
	if err != nil || h == nil || !t.known {
		return h, err
	}
	if t.heads == nil {
		t.heads = map[int64]*projections.Head{}
	}
	t.heads[session] = h
	return h, nil
}

// change notes that a head is another than the database has.
func (t *tips) change(ctx context.Context, tx *projections.Tx, h *projections.Head) error {
	if !t.known {
		return h.Write(ctx, tx)
	}
	if t.changed == nil {
		t.changed = map[int64]*projections.Head{}
	}
	t.changed[h.Session()] = h
	return nil
}

// write writes what was put off, and the heads that changed.
func (t *tips) write(ctx context.Context, tx *projections.Tx) error {
	if err := t.put.write(ctx, tx); err != nil {
		return err
	}
	for _, h := range t.changed {
		if err := branchStep(func() error { return h.Write(ctx, tx) }); err != nil {
			return err
		}
	}
	t.changed = nil
	return nil
}

// nobodyLeases says whether no session has a lease, so that none can be in the way.
func (t *tips) nobodyLeases(ctx context.Context, tx *projections.Tx) (bool, error) {
	if t.unleased {
		return true, nil
	}
	var one int
	leased, err := tx.Row(ctx, "SELECT 1 FROM leases LIMIT 1", nil, &one)
	t.unleased = t.known && err == nil && !leased
	return err == nil && !leased, err
}
