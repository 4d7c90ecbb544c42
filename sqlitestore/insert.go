package sqlitestore

import (
	"context"
	"strings"

	"github.com/sessiontree/sessiontree/eventlog"
	"github.com/sessiontree/sessiontree/projections"
)

const (
	insertEvent = "INSERT INTO events (session, n, id, parent, type, timestamp, hash, payload) VALUES " + insertValues

	insertValues  = "(?, ?, ?, ?, ?, ?, ?, ?)"
	insertColumns = 8

	// insertRows is how many rows one statement of a batch writes. AUTOINCREMENT
	// looks its counter up and writes it back once a statement: with one row each, a
	// batch takes a fifth longer.
	insertRows = 16
)

var insertEvents = insertEvent + strings.Repeat(", "+insertValues, insertRows-1)

func nullable(r eventlog.Ref) any {
	if r.IsNone() {
		return nil
	}
	return r.ID()
}

// insertInto appends entries exactly as they are.
func (s *Store) insertInto(ctx context.Context, tx *projections.Tx, session int64, entries []eventlog.Entry) error {
	v := s.view(ctx, tx, session)
	if _, err := v.Tip(); err != nil {
		return err
	}
	return s.insert(v, entries, false)
}

// insert appends entries to the session that v shows, and applies the branch set
// to them in the same transaction. Checked says that their ids are new in the
// session.
func (s *Store) insert(v *view, entries []eventlog.Entry, checked bool) error {
	if len(entries) == 0 {
		return nil
	}
	hash, err := v.lastHash()
	if err != nil {
		return err
	}
	events := make([]projections.Event, len(entries))
	for i, e := range entries {
		hash = projections.ChainHash(hash, e.JSON())
		events[i] = projections.Event{Session: v.key, N: v.tip.N + 1 + i, Hash: hash, Entry: e, Checked: checked}
	}
	for rest := events; len(rest) > 0; {
		rows, query := 1, insertEvent
		if len(rest) >= insertRows {
			rows, query = insertRows, insertEvents
		}
		if err := insertInOne(v.ctx, v.tx, query, rest[:rows]); err != nil {
			return err
		}
		rest = rest[rows:]
	}
	if v.head == nil {
		return nil
	}
	return branchStep(func() error { return s.branch.ApplyTo(v.ctx, v.tx, v.head, events) })
}

// insertInOne writes events in one statement, and tells them their seqs.
func insertInOne(ctx context.Context, tx *projections.Tx, query string, events []projections.Event) error {
	args := make([]any, 0, insertRows*insertColumns)
	for _, e := range events {
		args = append(args, e.Session, e.N, e.Entry.ID(), nullable(e.Entry.Parent()), string(e.Entry.Type()), e.Entry.Timestamp(), e.Hash, e.Entry.JSON())
	}
	r, err := tx.Exec(ctx, query, args...)
	if err != nil {
		return err
	}
	// Nobody else inserts meanwhile, and AUTOINCREMENT counts up by one.
	last, err := r.LastInsertId()
	for i := range events {
		events[i].Seq = last - int64(len(events)-1-i)
	}
	return err
}
