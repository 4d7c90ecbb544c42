package projections

import (
	"cmp"
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

// knownWay is the way of a session in memory.
type knownWay struct {
	of    standing
	asked int // how often an entry was looked for on it
	spans []spanOf
}

const (
	// askedOften is how often a way is climbed before it is read as a whole, if it is no
	// longer than longWay segments.
	askedOften = 32
	longWay    = 10_000
)

// isLive says whether an entry, which begins or continues the segment that its seq
// tells, is live by the way of its own session.
func (b *usageBatch) isLive(ctx context.Context, session, seq, n int64) (bool, error) {
	s, err := b.standing(ctx, session)
	if err != nil || n > s.n {
		return true, err
	}
	w := b.known[session]
	if w == nil || w.of != s {
		w = &knownWay{of: s}
		b.known[session] = w
	}
	if w.asked++; w.asked == askedOften || s.walked && w.asked == 1 {
		if err := b.know(ctx, session, w); err != nil {
			return false, err
		}
	}
	if w.spans != nil || s.walked {
		i, found := slices.BinarySearchFunc(w.spans, n, func(s spanOf, n int64) int { return cmp.Compare(s.low, n) })
		return found || i > 0 && n <= w.spans[i-1].high, nil
	}
	if n > s.leaf.n {
		return false, nil // parents come first
	}
	p := place{n: n}
	if _, err := b.tx.Row(ctx, "SELECT key FROM segments WHERE session = ? AND key <= ? ORDER BY key DESC LIMIT 1", []any{session, seq}, &p.segment); err != nil {
		return false, err
	}
	return b.ways.isAbove(ctx, p, s.leaf)
}

// know reads a way into memory, unless it is too long for that. A session that has been
// deleted since has none: what has copies there is counted anew when that event comes.
func (b *usageBatch) know(ctx context.Context, session int64, w *knownWay) (err error) {
	if leaf := w.of.leaf.segment; leaf != 0 {
		var one int
		if there, err := b.tx.Row(ctx, "SELECT 1 FROM sessions WHERE key = ?", []any{session}, &one); err != nil || !there {
			w.spans = []spanOf{}
			return err
		}
		l, err := b.ways.limb(ctx, leaf)
		if err != nil || l.hops > longWay {
			return err
		}
	}
	w.spans, err = b.lives(ctx, session, w.of.n, -1, w.of)
	return err
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
	delete(b.known, session)
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

	// sharedSQL are those that have copies, with all copies of each.
	sharedSQL = `SELECT u.seq, c.identity, c.seq, c.session, c.n, c.counted
		FROM json_each(?2) r CROSS JOIN usage u INDEXED BY usage_by_session CROSS JOIN usage c INDEXED BY usage_by_identity
		WHERE u.session = ?1 AND u.counted <> 3 AND u.n BETWEEN r.value >> 20 AND (r.value >> 20) + (r.value & 0xfffff) AND c.identity = u.identity`
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
	return b.shiftShared(ctx, session, list)
}

// sharedCopy is a copy of a response of which a row has changed sides.
type sharedCopy struct {
	row, identity, seq, session, n int64
	counted                        int
}

// shiftShared counts the responses anew that have copies within a list of spans, and
// count as something else now.
func (b *usageBatch) shiftShared(ctx context.Context, session int64, list string) error {
	rows, err := b.tx.Rows(ctx, sharedSQL, session, list)
	if err != nil {
		return err
	}
	var all []sharedCopy
	defer rows.Close()
	for rows.Next() {
		var c sharedCopy
		if err := rows.Scan(&c.row, &c.identity, &c.seq, &c.session, &c.n, &c.counted); err != nil {
			return err
		}
		all = append(all, c)
	}
	if err := rows.Err(); err != nil {
		return err
	}
	for len(all) > 0 {
		n, was, is := 0, CountedNot, CountedAbandoned
		for ; n < len(all) && all[n].row == all[0].row; n++ {
			c := all[n]
			was = max(was, c.counted)
			if is == CountedLive {
				continue
			}
			live, err := b.isLive(ctx, c.session, c.seq, c.n)
			if err != nil {
				return err
			}
			if live {
				is = CountedLive
			}
		}
		if was != is {
			if err := b.recount(ctx, all[0].identity); err != nil {
				return err
			}
		}
		all = all[n:]
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
