package sqlitestore

import (
	"context"
	"math/bits"
	"slices"
	"strings"

	"github.com/sessiontree/sessiontree/eventlog"
	"github.com/sessiontree/sessiontree/eventlog/js"
	"github.com/sessiontree/sessiontree/projections"
)

const (
	insertEvent = "INSERT INTO events (session, n, id, parent, type, timestamp, hash, blob, payload) VALUES " + insertValues

	insertValues  = "(?, ?, ?, ?, ?, ?, ?, ?, ?)"
	insertColumns = 9

	// insertRows is how many rows one statement writes at the most: each has a price of
	// its own.
	insertRows = 16
)

// insertEvents is the statement for so many rows.
var insertEvents = map[int]string{}

func init() {
	for rows := 1; rows <= insertRows; rows *= 2 {
		insertEvents[rows] = insertEvent + strings.Repeat(", "+insertValues, rows-1)
	}
}

func nullable(r eventlog.Ref) any {
	if r.IsNone() {
		return nil
	}
	return r.ID()
}

// insertInto appends entries exactly as they are.
func (s *Store) insertInto(ctx context.Context, tx *projections.Tx, session int64, entries []eventlog.Entry) error {
	d, err := projections.DialectOf(ctx, tx, session)
	if err != nil {
		return err
	}
	v := s.view(ctx, tx, session, d)
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
	n := v.tip.N
	last, err := v.lastSeq(entries)
	if err != nil {
		return err
	}
	for i, e := range entries {
		if events[i] = (projections.Event{Session: v.key, Entry: e, Checked: checked}); !e.IsMove() {
			n++
			hash = projections.ChainHash(hash, e.JSON())
			events[i].N, events[i].Hash = n, hash
			v.tips.took(v.key, e.ID())
		}
	}
	if put := &v.tips.put; len(events) > 1 || entries[0].IsMove() || !put.add(&events[0]) {
		if err := s.insertNow(v, last, events); err != nil {
			return err
		}
		put.last = events[len(events)-1].Seq
	}
	if v.head == nil {
		return nil
	}
	return branchStep(func() error {
		if err := s.branch.ApplyTo(v.ctx, v.tx, v.head, events); err != nil {
			return err
		}
		return s.writer.tips.change(v.ctx, v.tx, v.head)
	})
}

// lastSeq is the seq of the session's last event, 0 where no move asks for it.
func (v *view) lastSeq(entries []eventlog.Entry) (seq int64, err error) {
	switch {
	case !slices.ContainsFunc(entries, eventlog.Entry.IsMove):
		return 0, nil
	case v.head != nil:
		return v.head.LastSeq(), nil
	}
	_, err = v.tx.Row(v.ctx, "SELECT max(seq) FROM events WHERE session = ?", []any{v.key}, &seq)
	return seq, err
}

// insertNow writes events of one session, whose last one before them has the seq
// before, and tells them their seqs.
func (s *Store) insertNow(v *view, before int64, events []projections.Event) error {
	for len(events) > 0 {
		run := slices.IndexFunc(events, func(e projections.Event) bool { return e.Entry.IsMove() })
		var err error
		switch run {
		case 0:
			run, err = 1, s.insertMove(v, before, &events[0])
		case -1:
			run = len(events)
			fallthrough
		default:
			err = insertEntries(v.ctx, v.tx, events[:run])
		}
		if err != nil {
			return err
		}
		before = events[run-1].Seq
		events = events[run:]
	}
	return nil
}

// insertMove writes a move of the leaf that is no entry, behind the session's event
// before.
func (s *Store) insertMove(v *view, before int64, e *projections.Event) error {
	e.N, e.Type = int(-before), projections.LeafMoved
	payload := js.Fields(js.Member{Key: "targetId", Value: e.Entry.Get("targetId")}).JSON()
	r, err := v.tx.Exec(v.ctx, insertEvent, e.Session, e.N, nil, nil, e.Type, s.o.Source.Time(), nil, nil, payload)
	if err != nil {
		return err
	}
	e.Seq, err = r.LastInsertId()
	return err
}

// insertEntries writes events that are entries in few statements, and tells them
// their seqs.
func insertEntries(ctx context.Context, tx *projections.Tx, events []projections.Event) error {
	for len(events) > 0 {
		rows := min(1<<(bits.Len(uint(len(events)))-1), insertRows)
		args := make([]any, 0, insertRows*insertColumns)
		for _, e := range events[:rows] {
			blob, payload, err := projections.Stored(ctx, tx, e.Entry.JSON())
			if err != nil {
				return err
			}
			args = append(args, e.Session, e.N, e.Entry.ID(), nullable(e.Entry.Parent()), string(e.Entry.Type()), e.Entry.Timestamp(), e.Hash, blob, payload)
		}
		r, err := tx.Exec(ctx, insertEvents[rows], args...)
		if err != nil {
			return err
		}
		// Nobody else inserts meanwhile, and SQLite counts up by one from the largest (rowid).
		last, err := r.LastInsertId()
		if err != nil {
			return err
		}
		for i := range rows {
			events[i].Seq = last - int64(rows-1-i)
		}
		events = events[rows:]
	}
	return nil
}
