package sqlitestore

import (
	"context"
	"github.com/sessiontree/sessiontree/migrations"

	"github.com/sessiontree/sessiontree/eventlog"
	"github.com/sessiontree/sessiontree/eventlog/js"
	"github.com/sessiontree/sessiontree/projections"
	"github.com/sessiontree/sessiontree/query"
)

// logView is a session as its log alone has it, for when the views cannot be
// asked: the reference, at the cost of reading what it takes.
type logView struct {
	ctx     context.Context
	tx      *projections.Tx
	key     int64
	dialect eventlog.Dialect
}

func (s *Storage) log(ctx context.Context, tx *projections.Tx) *logView {
	return &logView{ctx, tx, s.key, s.Dialect()}
}

// Dialect implements [eventlog.View].
func (v *logView) Dialect() eventlog.Dialect { return v.dialect }

// Tip implements [eventlog.View]: a session's leaf is where its last entry left
// it. It fails with [eventlog.ErrNotFound] when the session was deleted.
func (v *logView) Tip() (head eventlog.Head, err error) {
	var payload string
	var seq int64
	ok, err := v.tx.Row(v.ctx, "SELECT seq, n, "+migrations.Payload+" FROM events WHERE session = ? ORDER BY n DESC LIMIT 1", []any{v.key}, &seq, &head.N, &payload)
	if err != nil {
		return head, err
	}
	if head.N > 0 {
		head.Leaf = v.dialect.TrustedEntry(payload).LeafAfter()
		return head, v.moved(&head, seq)
	}
	// What is left is the event of its beginning, or of its end.
	var one int
	if ok {
		ok, err = v.tx.Row(v.ctx, "SELECT 1 FROM sessions WHERE key = ?", []any{v.key}, &one)
	}
	if err == nil && !ok {
		err = errDeleted
	}
	return head, err
}

// moved makes the leaf what a move that is no entry made it, if one came behind the
// last entry, whose seq is given.
func (v *logView) moved(head *eventlog.Head, seq int64) error {
	if v.dialect.LogsMoves() {
		return nil
	}
	var at int64
	var payload string
	ok, err := v.tx.Row(v.ctx, "SELECT seq, payload FROM events WHERE session = ? AND n < 0 ORDER BY n LIMIT 1", []any{v.key}, &at, &payload)
	if err == nil && ok && at > seq {
		head.Leaf = eventlog.MoveOf(js.Trusted(payload).Get("targetId")).LeafAfter()
	}
	return err
}

// lastN is how many entries a session has; 0 for one that is not there.
func lastN(ctx context.Context, tx *projections.Tx, session int64) (n int, err error) {
	_, err = tx.Row(ctx, "SELECT n FROM events WHERE session = ? ORDER BY n DESC LIMIT 1", []any{session}, &n)
	return n, err
}

// Lookup implements [eventlog.View]. Of several entries with an id it finds the
// last.
func (v *logView) Lookup(id string) (e eventlog.Entry, ok bool, err error) {
	var payload string
	ok, err = v.tx.Row(v.ctx, "SELECT "+migrations.Payload+" FROM events WHERE session = ? AND id = ? ORDER BY seq DESC LIMIT 1", []any{v.key, id}, &payload)
	if err != nil || !ok {
		return e, false, err
	}
	return v.dialect.TrustedEntry(payload), true, nil
}

// Exists implements [eventlog.View].
func (v *logView) Exists(id string) (bool, error) {
	var one int
	return v.tx.Row(v.ctx, "SELECT 1 FROM events WHERE session = ? AND id = ? LIMIT 1", []any{v.key, id}, &one)
}

// after gives up to limit entries behind the first n.
func (v *logView) after(n, limit int) ([]eventlog.Entry, error) {
	rows, err := v.tx.Rows(v.ctx, "SELECT "+migrations.Payload+" FROM events WHERE session = ? AND n > ? ORDER BY n LIMIT ?", v.key, n, limit)
	if err != nil {
		return nil, err
	}
	return query.Entries(rows, v.dialect)
}

// each shows the entries of one type, or of all for "", in log order.
func (v *logView) each(t eventlog.Type, f func(e eventlog.Entry) error) error {
	rows, err := v.tx.Rows(v.ctx, "SELECT "+migrations.Payload+" FROM events WHERE session = ?1 AND n > 0 AND (?2 = '' OR type = ?2) ORDER BY n", v.key, string(t))
	if err != nil {
		return err
	}
	defer rows.Close()
	for rows.Next() {
		var payload string
		if err := rows.Scan(&payload); err != nil {
			return err
		}
		if err := f(v.dialect.TrustedEntry(payload)); err != nil {
			return err
		}
	}
	return rows.Err()
}

func (v *logView) labels() (map[string]string, error) {
	labels := map[string]string{}
	return labels, v.each(eventlog.TypeLabel, func(e eventlog.Entry) error {
		// A label that is no text changes nothing.
		if target, label, ok, err := v.dialect.Label(e); err == nil && ok {
			if labels[target] = label; label == "" {
				delete(labels, target)
			}
		}
		return nil
	})
}

func (v *logView) name() (string, error) {
	var payload string
	ok, err := v.tx.Row(v.ctx, "SELECT "+migrations.Payload+" FROM events WHERE session = ? AND n > 0 AND type = ? ORDER BY n DESC LIMIT 1", []any{v.key, string(eventlog.TypeSessionInfo)}, &payload)
	if err != nil || !ok {
		return "", err
	}
	return v.dialect.Name(eventlog.TrustedEntry(payload))
}

func (v *logView) stats() (stats eventlog.Stats, err error) {
	err = v.each("", func(e eventlog.Entry) error { return v.dialect.Count(&stats, e) })
	if err != nil {
		return eventlog.Stats{}, err
	}
	return stats, nil
}

// wholeIfMoved is the whole log of a session whose leaf was moved since its last
// entry, by a move that is none: a copy of the log ends elsewhere than the session.
// It is nil for others.
func (v *logView) wholeIfMoved() ([]eventlog.Entry, error) {
	if v.dialect.LogsMoves() {
		return nil, nil
	}
	var moved int
	ok, err := v.tx.Row(v.ctx, `SELECT 1 FROM events m WHERE m.session = ?1 AND m.n < 0
		AND m.seq > coalesce((SELECT seq FROM events WHERE session = ?1 AND n > 0 ORDER BY n DESC LIMIT 1), 0) ORDER BY m.n LIMIT 1`, []any{v.key}, &moved)
	if err != nil || !ok {
		return nil, err
	}
	return v.after(0, eventlog.All)
}
