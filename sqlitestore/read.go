package sqlitestore

import (
	"context"
	"github.com/sessiontree/sessiontree/migrations"
	"iter"

	"github.com/sessiontree/sessiontree/eventlog"
	"github.com/sessiontree/sessiontree/projections"
	"github.com/sessiontree/sessiontree/query"
)

// readLog runs f in one snapshot of the database in which the session is there.
// f reads the log alone.
func (s *Storage) readLog(ctx context.Context, f func(tx *projections.Tx) error) error {
	if err := s.check(); err != nil {
		return err
	}
	return s.store.read(ctx, func(tx *projections.Tx) error {
		var dialect string
		ok, err := tx.Row(ctx, "SELECT dialect FROM sessions WHERE key = ?", []any{s.key}, &dialect)
		switch {
		case err != nil:
			return err
		case !ok:
			return s.deleted()
		case dialect != s.Dialect().String():
			return s.corrected()
		}
		return f(tx)
	})
}

// read runs f in one snapshot of the database in which the session is there, and
// says how its branch views stand. If they lack events of the session a reader
// that may write brings them up first; where that cannot be, f answers from the
// log.
func (s *Storage) read(ctx context.Context, f func(tx reading) error) error {
	behind := false
	read := func(answer func(st state) bool) error {
		return s.store.read(ctx, func(tx *projections.Tx) error {
			st, err := s.observe(ctx, tx)
			if err != nil {
				return err
			}
			if behind = !answer(st); behind {
				return nil
			}
			return f(reading{tx, st})
		})
	}
	if err := s.check(); err != nil {
		return err
	}
	err := read(func(st state) bool { return st.current || !s.store.mayBringUp(st) })
	if err != nil || !behind {
		return err
	}
	if err := s.store.bringUpForReader(ctx); err != nil {
		return err
	}
	return read(func(state) bool { return true })
}

// Head implements [eventlog.Storage].
func (s *Storage) Head(ctx context.Context) (head eventlog.Head, err error) {
	err = s.read(ctx, func(tx reading) error {
		head = tx.head
		return s.checkLeaf(ctx, tx)
	})
	return head, err
}

// checkLeaf fails when the leaf names an entry that is not there.
func (s *Storage) checkLeaf(ctx context.Context, tx reading) error {
	if tx.head.Leaf.IsNone() || tx.leafIsThere {
		return nil
	}
	if ok, err := s.log(ctx, tx.Tx).Exists(tx.head.Leaf.ID()); err != nil || ok {
		return err
	}
	return eventlog.EntryNotFound(eventlog.InvalidSession, tx.head.Leaf.ID())
}

// Entry implements [eventlog.Storage].
func (s *Storage) Entry(ctx context.Context, id string) (e eventlog.Entry, err error) {
	err = s.readLog(ctx, func(tx *projections.Tx) error {
		found, ok, err := s.log(ctx, tx).Lookup(id)
		if err == nil && !ok {
			err = eventlog.EntryNotFound(eventlog.NotFound, id)
		}
		e = found
		return err
	})
	return e, err
}

// page is how many entries are read at a time: a cursor left open would hold a
// snapshot, and with it the WAL.
const page = 512

// Entries implements [eventlog.Storage]. Each page is a snapshot. Nothing moves in
// a log, so the pages together miss nothing and repeat nothing; what is appended
// while the sequence runs is part of it.
func (s *Storage) Entries(ctx context.Context, after, limit int) iter.Seq2[eventlog.Entry, error] {
	return func(yield func(eventlog.Entry, error) bool) {
		if err := eventlog.CheckWindow(after, limit); err != nil {
			yield(eventlog.Entry{}, err)
			return
		}
		for limit > 0 {
			var entries []eventlog.Entry
			want := min(limit, page)
			err := s.readLog(ctx, func(tx *projections.Tx) (err error) {
				entries, err = s.log(ctx, tx).after(after, want)
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
			if len(entries) < want {
				return
			}
			after += len(entries)
			limit -= len(entries)
		}
	}
}

// Find implements [eventlog.Storage].
func (s *Storage) Find(ctx context.Context, t eventlog.Type) (entries []eventlog.Entry, err error) {
	err = s.readLog(ctx, func(tx *projections.Tx) error {
		rows, err := tx.Rows(ctx, "SELECT "+migrations.Payload+" FROM events WHERE session = ? AND n > 0 AND type = ? ORDER BY n", s.key, string(t))
		if err != nil {
			return err
		}
		entries, err = query.Entries(rows, s.Dialect())
		return err
	})
	return entries, err
}

// Branch implements [eventlog.Storage]. The branch of the leaf is kept; see
// [Options.CacheBytes].
func (s *Storage) Branch(ctx context.Context, from eventlog.Ref) (branch []eventlog.Entry, err error) {
	err = s.read(ctx, func(tx reading) error {
		if from.IsNone() {
			return nil
		}
		if from == tx.head.Leaf && s.cachesBranch() {
			branch, err = s.leafBranch(ctx, tx)
		} else {
			branch, err = s.readBranch(ctx, tx, from.ID())
		}
		return err
	})
	return branch, err
}

// LeafBranch implements [eventlog.LeafBrancher].
func (s *Storage) LeafBranch(ctx context.Context) (branch []eventlog.Entry, err error) {
	err = s.read(ctx, func(tx reading) error {
		if tx.head.Leaf.IsNone() {
			return nil
		}
		if err := s.checkLeaf(ctx, tx); err != nil {
			return err
		}
		if s.cachesBranch() {
			branch, err = s.leafBranch(ctx, tx)
		} else {
			branch, err = s.readBranch(ctx, tx, tx.head.Leaf.ID())
		}
		return err
	})
	return branch, err
}

// cachesBranch says whether the branch of the leaf is what a context is made from,
// and kept. Where branches go to the root it is the context's part of it.
func (s *Storage) cachesBranch() bool { return !s.Dialect().KeepsSettings() }

// Window implements [eventlog.Windower]: of a branch that goes to the root only what
// the context needs is read, and the settings are found without walking.
func (s *Storage) Window(ctx context.Context, from eventlog.Ref) (w eventlog.Window, err error) {
	err = s.read(ctx, func(tx reading) error {
		leaf := from.IsNone()
		if leaf {
			if err := s.checkLeaf(ctx, tx); err != nil {
				return err
			}
			from = tx.head.Leaf
		}
		var part []eventlog.Entry
		var err error
		switch {
		case from.IsNone():
		case from == tx.head.Leaf:
			part, err = s.leafBranch(ctx, tx)
		default:
			part, err = s.readWindow(ctx, tx, from.ID())
		}
		if err != nil {
			return err
		}
		if w = s.Dialect().Window(part); from.IsNone() || tx.walks() || s.cachesBranch() {
			return nil
		}
		kept, err := s.settings(ctx, tx, from)
		w.Settings = func() (eventlog.Settings, error) { return eventlog.KeptSettings(kept) }
		return err
	})
	return w, err
}

// settings are those at an entry, as the views keep them.
func (s *Storage) settings(ctx context.Context, tx reading, at eventlog.Ref) (kept string, err error) {
	if at == tx.head.Leaf {
		_, err = tx.Row(ctx, "SELECT settings FROM heads WHERE session = ?", []any{s.key}, &kept)
		return kept, err
	}
	p, err := query.Locate(ctx, tx, s.key, at.ID())
	if err != nil {
		return "", err
	}
	return query.Settings(ctx, tx, p)
}

// readWindow reads the part of a branch that its context is made from.
func (s *Storage) readWindow(ctx context.Context, tx reading, id string) ([]eventlog.Entry, error) {
	if tx.walks() || s.cachesBranch() {
		return s.readBranch(ctx, tx, id)
	}
	p, err := query.Locate(ctx, tx, s.key, id)
	if err != nil {
		return nil, err
	}
	start, err := query.Window(ctx, tx, p)
	if err != nil {
		return nil, err
	}
	return query.Branch(ctx, tx, s.Dialect(), s.store.segments.Of(tx.build), p, start)
}

// readBranch reads a branch from the database.
func (s *Storage) readBranch(ctx context.Context, tx reading, id string) ([]eventlog.Entry, error) {
	if tx.walks() {
		return s.walk(ctx, tx, id)
	}
	p, err := query.Locate(ctx, tx, s.key, id)
	if err != nil {
		return nil, err
	}
	stop, err := query.Stop(ctx, tx, p)
	if err != nil {
		return nil, err
	}
	return query.Branch(ctx, tx, s.Dialect(), s.store.segments.Of(tx.build), p, stop)
}

// walk answers by the reference.
func (s *Storage) walk(ctx context.Context, tx reading, id string) ([]eventlog.Entry, error) {
	log := s.log(ctx, tx.Tx)
	from, ok, err := log.Lookup(id)
	if err != nil {
		return nil, err
	}
	if !ok {
		return nil, eventlog.EntryNotFound(eventlog.NotFound, id)
	}
	return log.dialect.Walk(from, tx.head.N, log.Lookup)
}

// Label implements [eventlog.Storage].
func (s *Storage) Label(ctx context.Context, id string) (label string, err error) {
	err = s.read(ctx, func(tx reading) error {
		if !tx.current {
			labels, err := s.log(ctx, tx.Tx).labels()
			label = labels[id]
			return err
		}
		_, err := tx.Row(ctx, "SELECT label FROM labels WHERE session = ? AND target = ?", []any{s.key, id}, &label)
		return err
	})
	return label, err
}

// Labels implements [eventlog.Storage].
func (s *Storage) Labels(ctx context.Context) (labels map[string]string, err error) {
	err = s.read(ctx, func(tx reading) error {
		if !tx.current {
			labels, err = s.log(ctx, tx.Tx).labels()
			return err
		}
		rows, err := tx.Rows(ctx, "SELECT target, label FROM labels WHERE session = ?", s.key)
		if err != nil {
			return err
		}
		defer rows.Close()
		labels = map[string]string{}
		for rows.Next() {
			var target, label string
			if err := rows.Scan(&target, &label); err != nil {
				return err
			}
			labels[target] = label
		}
		return rows.Err()
	})
	return labels, err
}

// Name implements [eventlog.Storage].
func (s *Storage) Name(ctx context.Context) (name string, err error) {
	err = s.read(ctx, func(tx reading) error {
		if !tx.current {
			name, err = s.log(ctx, tx.Tx).name()
			return err
		}
		var payload string
		ok, err := tx.Row(ctx, "SELECT "+migrations.Payload+" FROM heads h JOIN events e ON e.seq = h.name_seq WHERE h.session = ?", []any{s.key}, &payload)
		if err != nil || !ok {
			return err
		}
		name, err = s.Dialect().Name(eventlog.TrustedEntry(payload))
		return err
	})
	return name, err
}

// Stats implements [eventlog.Storage].
func (s *Storage) Stats(ctx context.Context) (stats eventlog.Stats, err error) {
	err = s.read(ctx, func(tx reading) error {
		if !tx.current {
			stats, err = s.log(ctx, tx.Tx).stats()
			return err
		}
		var fault *string
		ok, err := tx.Row(ctx, "SELECT users, assistants, tool_calls, tool_results, input, output, cache_read, cache_write, messages, cached, uncached, total, cost, fault FROM heads WHERE session = ?", []any{s.key},
			&stats.UserMessages, &stats.AssistantMessages, &stats.ToolCalls, &stats.ToolResults,
			(*projections.Total)(&stats.Input), (*projections.Total)(&stats.Output), (*projections.Total)(&stats.CacheRead), (*projections.Total)(&stats.CacheWrite),
			&stats.Messages, (*projections.Total)(&stats.CachedTokens), (*projections.Total)(&stats.UncachedTokens), (*projections.Total)(&stats.TotalTokens), (*projections.Total)(&stats.Cost), &fault)
		switch {
		case err != nil || !ok:
			return err
		case fault != nil:
			stats = eventlog.Stats{}
			return eventlog.Errorf(eventlog.InvalidEntry, "%s", *fault)
		}
		return nil
	})
	return stats, err
}
