package sqlitestore

import (
	"context"
	"iter"

	"github.com/sessiontree/sessiontree/eventlog"
	"github.com/sessiontree/sessiontree/query"
)

// Children gives the entries that were appended to an entry, in log order. They
// are read in pages, each in a snapshot of its own. The sequence ends at the first
// error; it fails with [eventlog.ErrNotFound].
func (s *Storage) Children(ctx context.Context, id string) iter.Seq2[eventlog.Entry, error] {
	return s.pages(ctx, id, func(tx reading, p query.Place, from query.Cursor) (entries []eventlog.Entry, _ query.Cursor, err error) {
		entries, from.N, err = query.Children(ctx, tx, s.Dialect(), p, from.N, page)
		return entries, from, err
	}, func(below map[string][]eventlog.Entry) []eventlog.Entry { return below[id] })
}

// Descendants gives all entries below an entry, each behind its parent, past
// compactions too. They are read in pages, each in a snapshot of its own: what is
// appended meanwhile may be among them or not. The sequence ends at the first
// error; it fails with [eventlog.ErrNotFound].
func (s *Storage) Descendants(ctx context.Context, id string) iter.Seq2[eventlog.Entry, error] {
	return s.pages(ctx, id, func(tx reading, p query.Place, from query.Cursor) ([]eventlog.Entry, query.Cursor, error) {
		return query.Descendants(ctx, tx, s.Dialect(), p, from, page)
	}, func(below map[string][]eventlog.Entry) (all []eventlog.Entry) {
		seen := map[string]bool{id: true}
		for next := []string{id}; len(next) > 0; next = next[1:] {
			for _, e := range below[next[0]] {
				if !seen[e.ID()] {
					seen[e.ID()] = true
					all, next = append(all, e), append(next, e.ID())
				}
			}
		}
		return all
	})
}

// pages gives what indexed reads, a page from each cursor on until that is the zero
// one again; where the walk answers, what walked finds among the entries of the log
// by their parents, at once.
func (s *Storage) pages(ctx context.Context, id string,
	indexed func(tx reading, p query.Place, from query.Cursor) ([]eventlog.Entry, query.Cursor, error),
	walked func(below map[string][]eventlog.Entry) []eventlog.Entry,
) iter.Seq2[eventlog.Entry, error] {
	return func(yield func(eventlog.Entry, error) bool) {
		var from query.Cursor
		for first := true; first || from != (query.Cursor{}); first = false {
			var entries []eventlog.Entry
			err := s.read(ctx, func(tx reading) error {
				// Places that were there stay, should the session become irregular now.
				if tx.walks() && first {
					below, err := s.below(ctx, tx, id)
					entries = walked(below)
					return err
				}
				p, err := query.Locate(ctx, tx, s.key, id)
				if err == nil {
					entries, from, err = indexed(tx, p, from)
				}
				return err
			})
			if err != nil {
				yield(eventlog.Entry{}, err)
				return
			}
			for _, e := range entries {
				if !yield(e, nil) {
					return
				}
			}
		}
	}
}

// below has the entries of the log by their parents. It fails when there is no
// entry with the id.
func (s *Storage) below(ctx context.Context, tx reading, id string) (map[string][]eventlog.Entry, error) {
	log := s.log(ctx, tx.Tx)
	if ok, err := log.Exists(id); err != nil {
		return nil, err
	} else if !ok {
		return nil, eventlog.EntryNotFound(eventlog.NotFound, id)
	}
	below := map[string][]eventlog.Entry{}
	err := log.each("", func(e eventlog.Entry) error {
		if parent := e.Parent().ID(); parent != "" {
			below[parent] = append(below[parent], e)
		}
		return nil
	})
	return below, err
}
