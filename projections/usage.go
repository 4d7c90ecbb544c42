package projections

import (
	"cmp"
	"context"
	"maps"
	"math"
	"slices"
	"strings"

	"github.com/sessiontree/sessiontree/eventlog"
	"github.com/sessiontree/sessiontree/eventlog/js"
)

// Usage is the view of what was spent: a row for each copy of a billed response,
// of which one counts, and sums of those that do by quarter of an hour, session,
// model and kind. Quarters make the day of any time zone. With it go the calls of
// tools, with sums by session, day and tool, and the turns, which count if their
// response does, and the compactions.
//
// # What is counted once
//
// Forks, resumed copies and imported copies hold the same responses again. Two
// rows are copies of one response if their identity is the same
// ([eventlog.Bill]). The one that counts is that of a session that was not forked
// here, for it is the root of its lineage; then the one with the earliest time;
// then the one whose session has the lowest id; never the one that came first.
// When its session is deleted, the next in this order counts.
//
// # What is live
//
// A response is live if it stands on the way, past compactions up to the root,
// from the leaf of a session that has a copy of it. All others are abandoned. The
// ways come from the branch views, which are never behind this one; a session's
// rows are marked when its last event is applied, and count as live before.
type Usage struct{}

// Name implements [Projection].
func (Usage) Name() string { return "usage" }

// Version implements [Projection].
func (Usage) Version() int { return 1 }

// Tables implements [Projection].
func (Usage) Tables() []string {
	return []string{"usage", "usage_rollup", "usage_times", "usage_sessions", "models", "tool_calls", "tool_sums", "tools", "turns", "compactions"}
}

// Reset implements [Projection].
func (u Usage) Reset(ctx context.Context, tx *Tx) error { return deleteRows(ctx, tx, u) }

// BucketMillis is the width of a bucket of sums. Every zone's clock differs from
// UTC by a multiple of it (since 1972).
const BucketMillis = 15 * 60 * 1000

// What a row counts as.
const (
	CountedNot       = 0 // another copy counts
	CountedLive      = 1
	CountedAbandoned = 2
)

// usageKey is the key of a sum.
type usageKey struct {
	bucket, session, model int64
	kind                   eventlog.BillKind
	counted                int
}

// compare orders keys as the tables have them.
func (k usageKey) compare(l usageKey) int {
	return cmp.Or(cmp.Compare(k.bucket, l.bucket), cmp.Compare(k.session, l.session), cmp.Compare(k.model, l.model),
		cmp.Compare(k.kind, l.kind), cmp.Compare(k.counted, l.counted))
}

// usageSum is a sum.
type usageSum struct{ responses, input, output, cacheRead, cacheWrite, cost int64 }

// usageBatch applies events. What they change of the sums is written at its end.
type usageBatch struct {
	tx     *Tx
	models map[modelName]int64
	sums   map[usageKey]usageSum

	tools toolsBatch
	turns map[int64]*turn // of each session, the one that goes on; nil: none
}

// Apply implements [Projection].
func (Usage) Apply(ctx context.Context, tx *Tx, events []Event) error {
	b := &usageBatch{tx: tx, models: map[modelName]int64{}, sums: map[usageKey]usageSum{}, turns: map[int64]*turn{}}
	if err := b.tools.begin(ctx, tx); err != nil {
		return err
	}
	touched := map[int64]bool{}
	for _, e := range events {
		if e.N == 0 && e.Type == SessionDeleted {
			if err := b.delete(ctx, e.Session); err != nil {
				return err
			}
			continue
		}
		touched[e.Session] = true
		if e.N <= 0 {
			continue // an event of the session itself; the leaf may have moved
		}
		if err := b.add(ctx, e); err != nil {
			return err
		}
		if err := b.work(ctx, e); err != nil {
			return err
		}
	}
	if err := b.writeWork(ctx); err != nil {
		return err
	}
	for session := range touched {
		if err := b.markLive(ctx, session, events[len(events)-1].Seq); err != nil {
			return err
		}
	}
	if err := b.writeToolSums(ctx); err != nil {
		return err
	}
	return b.write(ctx)
}

// entryTime is an entry's time in ms since 1970, or its message's, or 0.
func entryTime(e eventlog.Entry) int64 {
	ms := js.ParseDate(e.Timestamp())
	if math.IsNaN(ms) {
		ms, _ = e.Message().Time()
	}
	const maxDate = 8.64e15
	if math.IsNaN(ms) || ms < 0 || ms > maxDate {
		return 0
	}
	return int64(ms)
}

// add adds an entry's bill, if it has one and it is not there yet.
func (b *usageBatch) add(ctx context.Context, e Event) error {
	bill, ok := e.Entry.Bill()
	if !ok {
		return nil
	}
	model, err := b.model(ctx, modelName{bill.Provider, bill.Model})
	if err != nil {
		return err
	}
	var one int
	copied, err := b.tx.Row(ctx, "SELECT 1 FROM usage WHERE identity = ? LIMIT 1", []any{bill.Identity}, &one)
	if err != nil {
		return err
	}
	counted := CountedLive
	if copied {
		counted = CountedNot
	}
	at := entryTime(e.Entry)
	r, err := b.tx.Exec(ctx, `INSERT OR IGNORE INTO usage (seq, session, n, identity, at, kind, model, input, output, cache_read, cache_write, cost, live, counted)
		VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, 1, ?)`,
		e.Seq, e.Session, e.N, bill.Identity, at, int(bill.Kind), model, bill.Input, bill.Output, bill.CacheRead, bill.CacheWrite, bill.Cost, counted)
	if err != nil {
		return err
	}
	if copied {
		return b.recount(ctx, bill.Identity) // finds out too when the row was there
	}
	if n, err := r.RowsAffected(); err != nil || n == 0 {
		return err
	}
	b.count(usageKey{at / BucketMillis, e.Session, model, bill.Kind, counted},
		usageSum{1, bill.Input, bill.Output, bill.CacheRead, bill.CacheWrite, bill.Cost}, 1)
	return nil
}

// count adds a row to the sums, or with sign -1 takes it away.
func (b *usageBatch) count(k usageKey, s usageSum, sign int64) { addTo(b.sums, k, s, sign) }

func addTo(sums map[usageKey]usageSum, k usageKey, s usageSum, sign int64) {
	was := sums[k]
	sums[k] = usageSum{
		was.responses + sign*s.responses, was.input + sign*s.input, was.output + sign*s.output,
		was.cacheRead + sign*s.cacheRead, was.cacheWrite + sign*s.cacheWrite, was.cost + sign*s.cost,
	}
}

type modelName struct{ provider, model string }

// model is the key of a model.
func (b *usageBatch) model(ctx context.Context, m modelName) (key int64, err error) {
	if key, ok := b.models[m]; ok {
		return key, nil
	}
	const find = "SELECT key FROM models WHERE provider = ? AND model = ?"
	ok, err := b.tx.Row(ctx, find, []any{m.provider, m.model}, &key)
	if err != nil {
		return 0, err
	}
	if !ok {
		r, err := b.tx.Exec(ctx, "INSERT INTO models (provider, model) VALUES (?, ?)", m.provider, m.model)
		if err != nil {
			return 0, err
		}
		if key, err = r.LastInsertId(); err != nil {
			return 0, err
		}
	}
	b.models[m] = key
	return key, nil
}

// copyOf is one row of those with one identity.
type copyOf struct {
	seq, at int64
	live    bool
	counted int
	key     usageKey
	sum     usageSum
	gone    bool // its session was deleted since: that event comes
	forked  bool // its session was forked here
	id      string
}

// before says whether c counts rather than d.
func (c copyOf) before(d copyOf) bool {
	switch {
	case c.gone != d.gone:
		return d.gone
	case c.forked != d.forked:
		return d.forked
	case c.at != d.at:
		return c.at < d.at
	case c.id != d.id:
		return c.id < d.id
	}
	return c.seq < d.seq
}

const copiesSQL = `
SELECT u.seq, u.at, u.live, u.counted, u.session, u.model, u.kind, u.input, u.output, u.cache_read, u.cache_write, u.cost,
	s.key IS NULL, s.source IS NOT NULL, coalesce(s.id, '')
FROM usage u LEFT JOIN sessions s ON s.key = u.session WHERE u.identity = ?`

func (b *usageBatch) copies(ctx context.Context, identity int64) (all []copyOf, err error) {
	rows, err := b.tx.Rows(ctx, copiesSQL, identity)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	for rows.Next() {
		c := copyOf{sum: usageSum{responses: 1}}
		if err := rows.Scan(&c.seq, &c.at, &c.live, &c.counted, &c.key.session, &c.key.model, &c.key.kind,
			&c.sum.input, &c.sum.output, &c.sum.cacheRead, &c.sum.cacheWrite, &c.sum.cost, &c.gone, &c.forked, &c.id); err != nil {
			return nil, err
		}
		c.key.bucket = c.at / BucketMillis
		all = append(all, c)
	}
	return all, rows.Err()
}

// recount finds out which of the copies of a response counts, and as what.
func (b *usageBatch) recount(ctx context.Context, identity int64) error {
	all, err := b.copies(ctx, identity)
	if err != nil || len(all) == 0 {
		return err
	}
	owner, as := 0, CountedAbandoned
	for i, c := range all {
		if c.before(all[owner]) {
			owner = i
		}
		if c.live {
			as = CountedLive
		}
	}
	for i, c := range all {
		now := CountedNot
		if i == owner {
			now = as
		}
		if now == c.counted {
			continue
		}
		if _, err := b.tx.Exec(ctx, "UPDATE usage SET counted = ? WHERE seq = ?", now, c.seq); err != nil {
			return err
		}
		b.recountAs(c, now)
		if (now == CountedNot) != (c.counted == CountedNot) {
			if err := b.recountWork(ctx, c.seq, now != CountedNot); err != nil {
				return err
			}
		}
	}
	return nil
}

// recountAs moves a row in the sums from what it counts as to now.
func (b *usageBatch) recountAs(c copyOf, now int) {
	for counted, sign := range map[int]int64{c.counted: -1, now: 1} {
		if counted != CountedNot {
			c.key.counted = counted
			b.count(c.key, c.sum, sign)
		}
	}
}

// delete takes a session's rows out.
func (b *usageBatch) delete(ctx context.Context, session int64) error {
	if err := b.deleteWork(ctx, session); err != nil {
		return err
	}
	identities, err := Column[int64](ctx, b.tx, `SELECT DISTINCT identity FROM usage WHERE session = ?`, session)
	if err != nil {
		return err
	}
	for _, identity := range identities {
		all, err := b.copies(ctx, identity)
		if err != nil {
			return err
		}
		others := 0
		for _, c := range all {
			if c.key.session != session {
				others++
				continue
			}
			b.recountAs(c, CountedNot)
			if _, err := b.tx.Exec(ctx, "DELETE FROM usage WHERE seq = ?", c.seq); err != nil {
				return err
			}
		}
		if others > 0 {
			if err := b.recount(ctx, identity); err != nil {
				return err
			}
		}
	}
	return nil
}

// markLive marks which of a session's rows are live, once the view has the
// session's last event, at last or before.
func (b *usageBatch) markLive(ctx context.Context, session, last int64) error {
	abandoned, live, ok, err := ways(ctx, b.tx, session, last)
	if err != nil || !ok {
		return err
	}
	for _, step := range []struct {
		spans string
		query string
		now   int
	}{
		{abandoned, liveInSQL, 0},
		{live, leftInSQL, 1},
	} {
		changed, err := b.changed(ctx, step.query, session, step.spans)
		if err != nil {
			return err
		}
		for seq, identity := range changed {
			if _, err := b.tx.Exec(ctx, "UPDATE usage SET live = ? WHERE seq = ?", step.now, seq); err != nil {
				return err
			}
			if err := b.recount(ctx, identity); err != nil {
				return err
			}
		}
	}
	return nil
}

// The rows of a session that are marked as live, or as left, within spans.
const (
	liveInSQL = `SELECT u.seq, u.identity FROM json_each(?2) r CROSS JOIN usage u INDEXED BY usage_by_session
		WHERE u.session = ?1 AND u.live = 1 AND u.n BETWEEN r.value >> 20 AND (r.value >> 20) + (r.value & 0xfffff)`
	leftInSQL = `SELECT u.seq, u.identity FROM json_each(?2) r CROSS JOIN usage u INDEXED BY usage_by_session
		WHERE u.session = ?1 AND u.live = 0 AND u.n BETWEEN r.value >> 20 AND (r.value >> 20) + (r.value & 0xfffff)`
)

func (b *usageBatch) changed(ctx context.Context, query string, session int64, spans string) (map[int64]int64, error) {
	if spans == "[]" {
		return nil, nil
	}
	rows, err := b.tx.Rows(ctx, query, session, spans)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	changed := map[int64]int64{}
	for rows.Next() {
		var seq, identity int64
		if err := rows.Scan(&seq, &identity); err != nil {
			return nil, err
		}
		changed[seq] = identity
	}
	return changed, rows.Err()
}

// The three tables of sums: what a row is added with, and what takes it away when
// nothing is left.
var (
	rollup         = sumsTable("usage_rollup", "bucket", "session", "model", "kind", "counted")
	rollupTimes    = sumsTable("usage_times", "bucket", "kind", "counted")
	rollupSessions = sumsTable("usage_sessions", "session", "model", "kind", "counted")
)

type sumsSQL struct{ add, tidy string }

func sumsTable(name string, key ...string) sumsSQL {
	sums := []string{"responses", "input", "output", "cache_read", "cache_write", "cost"}
	columns := strings.Join(append(slices.Clone(key), sums...), ", ")
	added := make([]string, len(sums))
	for i, sum := range sums {
		added[i] = sum + " = " + sum + " + excluded." + sum
	}
	return sumsSQL{
		add: "INSERT INTO " + name + " (" + columns + ") VALUES (?" + strings.Repeat(", ?", len(key)+len(sums)-1) + ")" +
			" ON CONFLICT (" + strings.Join(key, ", ") + ") DO UPDATE SET " + strings.Join(added, ", "),
		tidy: "DELETE FROM " + name + " WHERE " + strings.Join(key, " = ? AND ") + " = ? AND responses = 0",
	}
}

// write adds what changed to the sums.
func (b *usageBatch) write(ctx context.Context) error {
	times, sessions := map[usageKey]usageSum{}, map[usageKey]usageSum{}
	for k, s := range b.sums {
		addTo(times, usageKey{bucket: k.bucket, kind: k.kind, counted: k.counted}, s, 1)
		addTo(sessions, usageKey{session: k.session, model: k.model, kind: k.kind, counted: k.counted}, s, 1)
	}
	for _, t := range []struct {
		sumsSQL
		sums map[usageKey]usageSum
		key  func(k usageKey) []any
	}{
		{rollup, b.sums, func(k usageKey) []any { return []any{k.bucket, k.session, k.model, int(k.kind), k.counted} }},
		{rollupTimes, times, func(k usageKey) []any { return []any{k.bucket, int(k.kind), k.counted} }},
		{rollupSessions, sessions, func(k usageKey) []any { return []any{k.session, k.model, int(k.kind), k.counted} }},
	} {
		for _, k := range slices.SortedFunc(maps.Keys(t.sums), usageKey.compare) {
			s := t.sums[k]
			if s == (usageSum{}) {
				continue
			}
			key := t.key(k)
			if _, err := b.tx.Exec(ctx, t.add, append(slices.Clone(key), s.responses, s.input, s.output, s.cacheRead, s.cacheWrite, s.cost)...); err != nil {
				return err
			}
			if s.responses >= 0 {
				continue
			}
			if _, err := b.tx.Exec(ctx, t.tidy, key...); err != nil {
				return err
			}
		}
	}
	return nil
}

// Ready implements [Depends]. What is live is read from the branch set, and what was
// read from one that is behind would stay.
func (Usage) Ready(ctx context.Context, tx *Tx) error {
	behind, err := IsBehind(ctx, tx, Branch{})
	if err == nil && behind {
		err = eventlog.Errorf(eventlog.StorageFailed, "the view usage waits for the branch views, which are behind")
	}
	return err
}
