package sqlitestore

import (
	"cmp"
	"context"
	"database/sql"
	"github.com/sessiontree/sessiontree/migrations"
	"iter"
	"math"
	"slices"
	"sort"
	"time"

	"github.com/sessiontree/sessiontree/eventlog"
	"github.com/sessiontree/sessiontree/eventlog/js"
	"github.com/sessiontree/sessiontree/projections"
)

// Event is one event of the log, as [Store.Watch] gives it.
type Event struct {
	// Seq is the event's place in the store's log. It only rises; there are gaps.
	Seq int64
	// Session is the id of the session, and N the place of the entry in it, from 1.
	Session string
	N       int
	// Entry is what was appended, where N is above 0; else it may be the move of a
	// [projections.LeafMoved].
	Entry eventlog.Entry
	// Kind is what became of the session itself, where N is 0:
	// [projections.SessionCreated], [projections.SessionForked],
	// [projections.SessionDeleted], or, in a dialect in which that is no entry,
	// [projections.LeafMoved].
	Kind string
}

// watchPoll is how often a feed looks for what other processes appended.
const watchPoll = 100 * time.Millisecond

// pageBytes ends a page of a feed early, so that large entries are not held by the
// hundred.
const pageBytes = 16 << 20

// Watch gives the events behind seq after, of one session or, if session is "", of
// all, in the order of the log: those that are there, and then those that come, of
// this process at once and of others within a tenth of a second. It misses none
// and repeats none: writers take turns, so what is committed later has a higher
// seq. (Entries of a session that was deleted meanwhile are gone from the log; its
// deletion comes instead.) It holds no transaction while it waits.
//
// The sequence ends with the context (without an error), with the deletion of the
// session, or with an error: [eventlog.ErrNotFound] if there is no such session.
func (s *Store) Watch(ctx context.Context, session string, after int64) iter.Seq2[Event, error] {
	return func(yield func(Event, error) bool) {
		feed := &feed{store: s, after: after}
		if session != "" {
			st, err := s.session(ctx, session)
			if err != nil {
				yield(Event{}, err)
				return
			}
			feed.session = st
		}
		for {
			appended := s.news.next()
			events, err := feed.page(ctx)
			if ctx.Err() != nil {
				return
			}
			if err != nil {
				yield(Event{}, err)
				return
			}
			for _, e := range events {
				if !yield(e, nil) || session != "" && e.Kind == projections.SessionDeleted {
					return
				}
			}
			if len(events) > 0 {
				continue
			}
			t := time.NewTimer(watchPoll)
			select {
			case <-ctx.Done():
			case <-appended:
			case <-t.C:
			}
			t.Stop()
		}
	}
}

// feed is where a watcher stands.
type feed struct {
	store   *Store
	session *Storage // nil: all sessions
	after   int64
	n       int   // of a session: the entry that was given last
	own     int64 // and the seq of the event, 0 if it is not known
	placed  bool  // n is known
}

const (
	eventColumns = `SELECT e.seq, e.session, e.n, e.type, ` + migrations.Payload + `, s.id, coalesce(s.dialect, 'harness') FROM events e LEFT JOIN sessions s ON s.key = e.session `

	watchAllSQL     = eventColumns + `WHERE e.seq > ? ORDER BY e.seq LIMIT ?`
	watchSessionSQL = eventColumns + `WHERE e.session = ? AND e.n > ? ORDER BY e.n LIMIT ?`
	watchOwnSQL     = eventColumns + `WHERE e.session = ? AND e.n = 0 AND e.seq > ?`

	// The n of a move is the seq of the session's event before it, negative: those
	// behind an event of the session are found by their n.
	watchMovesSQL = eventColumns + `WHERE e.session = ? AND e.n < 0 AND e.n <= ? AND e.seq > ? ORDER BY e.n DESC LIMIT ?`
)

// page is what came behind the last page.
func (f *feed) page(ctx context.Context) (events []Event, err error) {
	err = f.store.read(ctx, func(tx *projections.Tx) error {
		if f.session == nil {
			events, err = readFeed(ctx, tx, watchAllSQL, f.after, page)
			return err
		}
		// The session's own event: its creation comes before all entries, its deletion
		// leaves none.
		if events, err = readFeed(ctx, tx, watchOwnSQL, f.session.key, f.after); err != nil || len(events) > 0 {
			return err
		}
		if !f.placed {
			if f.n, err = f.place(ctx, tx); err != nil {
				return err
			}
			f.placed = true
		}
		if events, err = readFeed(ctx, tx, watchSessionSQL, f.session.key, f.n, page); err != nil {
			return err
		}
		events, err = f.withMoves(ctx, tx, events)
		return err
	})
	if err != nil {
		return nil, err
	}
	if len(events) > 0 {
		for _, e := range events {
			f.after, f.n = e.Seq, max(f.n, e.N)
		}
		f.own = f.after
	}
	return events, nil
}

// withMoves puts moves of the leaf, where they are no entries, between a page of
// entries.
func (f *feed) withMoves(ctx context.Context, tx *projections.Tx, entries []Event) ([]Event, error) {
	if f.session.Dialect().LogsMoves() {
		return entries, nil
	}
	moves, err := readFeed(ctx, tx, watchMovesSQL, f.session.key, -f.own, f.after, page)
	if err != nil || len(moves) == 0 {
		return entries, err
	}
	// Behind the end of a page that is not the last there may be more of its kind.
	end := int64(math.MaxInt64)
	for _, part := range [][]Event{entries, moves} {
		if n := len(part); n > 0 && (n == page || payloadBytes(part) >= pageBytes) {
			end = min(end, part[n-1].Seq)
		}
	}
	all := slices.DeleteFunc(append(entries, moves...), func(e Event) bool { return e.Seq > end })
	slices.SortFunc(all, func(a, b Event) int { return cmp.Compare(a.Seq, b.Seq) })
	return all, nil
}

func payloadBytes(events []Event) (size int) {
	for _, e := range events {
		size += len(e.Entry.JSON())
	}
	return size
}

// place is the n of the session's last entry that is not behind f.after: n and seq
// rise together, so a few look-ups find it.
func (f *feed) place(ctx context.Context, tx *projections.Tx) (int, error) {
	entries, err := lastN(ctx, tx, f.session.key)
	if err != nil {
		return 0, err
	}
	n := sort.Search(entries, func(i int) bool {
		var seq int64
		if err == nil {
			_, err = tx.Row(ctx, "SELECT seq FROM events WHERE session = ? AND n = ?", []any{f.session.key, i + 1}, &seq)
		}
		return seq > f.after
	})
	return n, err
}

func readFeed(ctx context.Context, tx *projections.Tx, query string, args ...any) (events []Event, err error) {
	rows, err := tx.Rows(ctx, query, args...)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	for size := 0; size < pageBytes && rows.Next(); {
		var e Event
		var key int64
		var payload string
		var id sql.NullString
		var dialect string
		if err := rows.Scan(&e.Seq, &key, &e.N, &e.Kind, &payload, &id, &dialect); err != nil {
			return nil, err
		}
		size += len(payload)
		e.Session = id.String
		switch {
		case e.N > 0:
			d, err := eventlog.ParseDialect(dialect)
			if err != nil {
				return nil, err
			}
			e.Entry, e.Kind = d.TrustedEntry(payload), ""
		case e.N < 0:
			e.Entry, e.N = eventlog.MoveOf(js.Trusted(payload).Get("targetId")), 0
		case !id.Valid:
			e.Session, _ = js.Trusted(payload).Get("id").Str()
		}
		events = append(events, e)
	}
	return events, rows.Err()
}
