package projections

import (
	"context"
	"database/sql"
	"math"
	"slices"
)

// standing is for which leaf the sums of a session hold: what is live of its entries
// up to n is the way from the leaf to the root. What came behind n is live, so that
// an append behind the leaf changes no row: n and the leaf are those behind which
// every entry has the next below it. The zero standing is that of a session whose
// entries are all live; no row says so.
type standing struct {
	leaf   place // nowhere: nothing up to n is live
	n      int64
	walked bool // the session is irregular: its live entries are in usage_walks
}

// standing reads a session's.
func (b *usageBatch) standing(ctx context.Context, session int64) (s standing, err error) {
	if s, ok := b.standings[session]; ok {
		return s, nil
	}
	_, err = b.tx.Row(ctx, "SELECT segment, leaf, n, walked FROM usage_leaves WHERE session = ?", []any{session}, &s.leaf.segment, &s.leaf.n, &s.n, &s.walked)
	if err == nil {
		b.standings[session] = s
	}
	return s, err
}

// keep writes a session's standing.
func (b *usageBatch) keep(ctx context.Context, session int64, s standing) (err error) {
	b.standings[session] = s
	if s == (standing{}) {
		_, err = b.tx.Exec(ctx, "DELETE FROM usage_leaves WHERE session = ?", session)
	} else {
		_, err = b.tx.Exec(ctx, `INSERT INTO usage_leaves (session, segment, leaf, n, walked) VALUES (?1, ?2, ?3, ?4, ?5)
			ON CONFLICT (session) DO UPDATE SET segment = ?2, leaf = ?3, n = ?4, walked = ?5`, session, s.leaf.segment, s.leaf.n, s.n, s.walked)
	}
	return err
}

// forgetLeaf drops what is kept of a session that is gone.
func (b *usageBatch) forgetLeaf(ctx context.Context, session int64) error {
	if _, err := b.tx.Exec(ctx, "DELETE FROM usage_walks WHERE session = ?", session); err != nil {
		return err
	}
	return b.keep(ctx, session, standing{})
}

const walkedSQL = `SELECT high FROM usage_walks WHERE session = ? AND low <= ? ORDER BY low DESC LIMIT 1`

// isLive says whether an entry, which begins or continues the segment that its seq
// tells, is live by the way of its own session.
func (b *usageBatch) isLive(ctx context.Context, session, seq, n int64) (bool, error) {
	s, err := b.standing(ctx, session)
	switch {
	case err != nil || n > s.n:
		return true, err
	case s.walked:
		var high int64
		ok, err := b.tx.Row(ctx, walkedSQL, []any{session, n}, &high)
		return ok && n <= high, err
	case n > s.leaf.n:
		return false, nil // parents come first
	}
	p := place{n: n}
	if _, err := b.tx.Row(ctx, "SELECT key FROM segments WHERE session = ? AND key <= ? ORDER BY key DESC LIMIT 1", []any{session, seq}, &p.segment); err != nil {
		return false, err
	}
	return b.ways.isAbove(ctx, p, s.leaf)
}

// tip is what the branch views say of a session.
type tip struct {
	n         int64 // entries
	leaf      place
	id        sql.NullString // of the leaf
	irregular bool
}

// tip reads a session's; ok is false when it is gone, or has events behind last: those
// will say more.
func (b *usageBatch) tip(ctx context.Context, session, last int64) (t tip, ok bool, err error) {
	var lastSeq int64
	ok, err = b.tx.Row(ctx, "SELECT n, last_seq, irregular, leaf, coalesce(leaf_n, 0), coalesce(segment, 0) FROM heads WHERE session = ?",
		[]any{session}, &t.n, &lastSeq, &t.irregular, &t.id, &t.leaf.n, &t.leaf.segment)
	return t, ok && lastSeq <= last, err
}

// follow has the sums hold for a session's leaf, once the view has the session's
// last event, at last or before.
func (b *usageBatch) follow(ctx context.Context, session, last int64) error {
	t, ok, err := b.tip(ctx, session, last)
	if err != nil || !ok {
		return err
	}
	if t.irregular {
		way, err := walkedWay(ctx, b.tx, session, t.id)
		if err != nil {
			return err
		}
		return b.walk(ctx, session, t.n, way)
	}
	to := standing{leaf: t.leaf, n: t.n}
	if t.leaf.n == t.n && t.n > 0 {
		if to.n, to.leaf, err = b.ways.followed(ctx, t.leaf); err != nil {
			return err
		}
		to.n--
	}
	return b.stand(ctx, session, t.n, to)
}

// stand moves a regular session of n entries from one leaf to another: what only one
// of the two ways has changes sides.
func (b *usageBatch) stand(ctx context.Context, session, n int64, to standing) error {
	from, err := b.standing(ctx, session)
	if err != nil || from == to {
		return err
	}
	top := int64(-1)
	if !from.walked {
		if top, err = b.ways.shared(ctx, from.leaf, to.leaf); err != nil {
			return err
		}
	}
	was, err := b.lives(ctx, session, n, top, from)
	if err != nil {
		return err
	}
	is, err := b.lives(ctx, session, n, top, to)
	if err != nil {
		return err
	}
	if from.walked {
		if _, err := b.tx.Exec(ctx, "DELETE FROM usage_walks WHERE session = ?", session); err != nil {
			return err
		}
	}
	return b.change(ctx, session, to, was, is)
}

// lives are the live entries of a session of n entries, below a depth.
func (b *usageBatch) lives(ctx context.Context, session, n, top int64, s standing) (live []spanOf, err error) {
	if s.walked {
		live, err = b.walks(ctx, session)
	} else {
		live, err = b.ways.way(ctx, s.leaf, top)
	}
	return appendSpan(live, spanOf{s.n + 1, n}), err
}

// walk is stand for an irregular session, with what is live of it. This is kept: no
// segments tell it.
func (b *usageBatch) walk(ctx context.Context, session, n int64, is []spanOf) error {
	from, err := b.standing(ctx, session)
	if err != nil {
		return err
	}
	was, err := b.lives(ctx, session, n, -1, from)
	if err != nil {
		return err
	}
	kept, err := b.walks(ctx, session)
	if err != nil {
		return err
	}
	if !slices.Equal(kept, is) {
		if _, err := b.tx.Exec(ctx, "DELETE FROM usage_walks WHERE session = ?", session); err != nil {
			return err
		}
		for _, s := range is {
			if _, err := b.tx.Exec(ctx, "INSERT INTO usage_walks (session, low, high) VALUES (?, ?, ?)", session, s.low, s.high); err != nil {
				return err
			}
		}
	}
	return b.change(ctx, session, standing{n: n, walked: true}, was, is)
}

// walks are the live entries of an irregular session.
func (b *usageBatch) walks(ctx context.Context, session int64) (live []spanOf, err error) {
	rows, err := b.tx.Rows(ctx, "SELECT low, high FROM usage_walks WHERE session = ? ORDER BY low", session)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	for rows.Next() {
		var s spanOf
		if err := rows.Scan(&s.low, &s.high); err != nil {
			return nil, err
		}
		live = append(live, s)
	}
	return live, rows.Err()
}

// change keeps a session's standing, and moves its sums to it.
func (b *usageBatch) change(ctx context.Context, session int64, to standing, was, is []spanOf) error {
	if to != b.standings[session] {
		if err := b.keep(ctx, session, to); err != nil {
			return err
		}
	}
	if err := b.shift(ctx, session, without(was, is), CountedLive, CountedAbandoned); err != nil {
		return err
	}
	return b.shift(ctx, session, without(is, was), CountedAbandoned, CountedLive)
}

// Around runs f, which makes a session's rows of the branch set again, and keeps the
// sums right should these be others than before. If that fails the view is made again
// from the log.
func (u Usage) Around(ctx context.Context, tx *Tx, session int64, f func() error) error {
	c, err := ReadCheckpoint(ctx, tx, u.Name())
	if err != nil {
		return err
	}
	if c.Version != u.Version() {
		return f()
	}
	failed := u.release(ctx, tx, session)
	if err := f(); err != nil {
		return err
	}
	if failed == nil {
		failed = u.settle(ctx, tx, session)
	}
	if failed != nil {
		return Invalidate(ctx, tx, u)
	}
	return nil
}

// release makes all entries of a session live.
func (u Usage) release(ctx context.Context, tx *Tx, session int64) error {
	b, err := newUsageBatch(ctx, tx)
	if err != nil {
		return err
	}
	s, err := b.standing(ctx, session)
	if err != nil || s == (standing{}) {
		return err
	}
	if err := b.stand(ctx, session, s.n, standing{}); err != nil {
		return err
	}
	return b.end(ctx)
}

// settle has the sums hold for a session's leaf, whether the view has all of it or not.
func (u Usage) settle(ctx context.Context, tx *Tx, session int64) error {
	b, err := newUsageBatch(ctx, tx)
	if err != nil {
		return err
	}
	if err := b.follow(ctx, session, math.MaxInt64); err != nil {
		return err
	}
	return b.end(ctx)
}

const (
	// shiftedSQL are the sums of a session's rows within spans: first those that have no
	// copies, then, in rows of their own, those that have.
	shiftedSQL = `SELECT u.at / 900000, u.model, u.kind, u.counted = 3, count(*), sum(u.input), sum(u.output), sum(u.cache_read), sum(u.cache_write), sum(u.cost)
		FROM json_each(?2) r CROSS JOIN usage u INDEXED BY usage_by_session
		WHERE u.session = ?1 AND u.n BETWEEN r.value >> 20 AND (r.value >> 20) + (r.value & 0xfffff) GROUP BY 1, 2, 3, 4`

	// sharedSQL are those that have copies.
	sharedSQL = `SELECT u.identity FROM json_each(?2) r CROSS JOIN usage u INDEXED BY usage_by_session
		WHERE u.session = ?1 AND u.counted <> 3 AND u.n BETWEEN r.value >> 20 AND (r.value >> 20) + (r.value & 0xfffff)`
)

// shift moves a session's rows within spans from one side to the other. Of those that
// have copies the rows say what they count as.
func (b *usageBatch) shift(ctx context.Context, session int64, spans []spanOf, from, to int) error {
	if len(spans) == 0 {
		return nil
	}
	list := listSpans(spans)
	rows, err := b.tx.Rows(ctx, shiftedSQL, session, list)
	if err != nil {
		return err
	}
	copies := false
	err = addRows(rows, session, func(k usageKey, s usageSum) {
		if k.counted == 0 {
			copies = true
			return
		}
		k.counted = from
		b.count(k, s, -1)
		k.counted = to
		b.count(k, s, 1)
	})
	if err != nil || !copies {
		return err
	}
	identities, err := Column[int64](ctx, b.tx, sharedSQL, session, list)
	if err != nil {
		return err
	}
	for _, identity := range identities {
		if err := b.recount(ctx, identity); err != nil {
			return err
		}
	}
	return nil
}

// walkedWay is the way of an irregular session, by its parents: of entries with
// one id the last counts, and a cycle ends where it began.
func walkedWay(ctx context.Context, tx *Tx, session int64, leaf sql.NullString) (way []spanOf, err error) {
	rows, err := tx.Rows(ctx, "SELECT n, id, coalesce(parent, '') FROM events WHERE session = ? AND n > 0 ORDER BY n", session)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	type entry struct {
		n      int64
		parent string
	}
	entries := map[string]entry{}
	for rows.Next() {
		var e entry
		var id string
		if err := rows.Scan(&e.n, &id, &e.parent); err != nil {
			return nil, err
		}
		entries[id] = e
	}
	if err := rows.Err(); err != nil {
		return nil, err
	}
	var ns []int64
	for id := leaf.String; leaf.Valid; {
		e, ok := entries[id]
		if !ok {
			break
		}
		ns = append(ns, e.n)
		delete(entries, id)
		id = e.parent
	}
	slices.Sort(ns)
	for _, n := range ns {
		way = appendSpan(way, spanOf{n, n})
	}
	return way, nil
}
