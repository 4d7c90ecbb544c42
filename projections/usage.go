package projections

import (
	"context"
	"math"

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
// ways come from the branch views, which are never behind this one.
//
// No row says which side it is on, unless it has copies, so that none is written
// because a leaf moves. For each session the view keeps the leaf for which its sums
// hold (usage_leaves). When the session's last event is applied, the two ways up from
// the old leaf and from the new one are followed to where they meet, and what only one
// of them has changes sides in the sums, added up in memory. What came behind the
// entries that this was done for is live until then. An append behind the leaf changes
// nothing here, and a session without branches has no row.
//
// A leaf that moves far is followed in several transactions (usagepace.go); the sums
// hold for a leaf in between then, and the events that moved it are applied last.
//
// When every row said its side, with an index by it, a move over 900,000 entries of a
// chain of a million took 20 s of processor time in one transaction, and wrote 1.8 GB;
// now it takes 0.8 s, in slices of some 15 ms, and writes 1 MB. What is left is to read
// the rows and add them up, and a row of sums for each quarter of an hour that is
// passed. Sums by block of a session would save the reading, at one row more for each
// block.
//
// Of a response with copies the row that counts says as what: it is asked for all of
// the ways at once. When one of them changes, the responses that have copies there are
// counted anew, one by one.
type Usage struct{}

// Name implements [Projection].
func (Usage) Name() string { return "usage" }

// Version implements [Projection].
func (Usage) Version() int { return 1 }

// Tables implements [Projection].
func (Usage) Tables() []string {
	return []string{"usage", "usage_rollup", "usage_times", "usage_sessions", "usage_leaves", "usage_walks", "models", "tool_calls", "tool_sums", "tools", "turns", "compactions"}
}

// Reset implements [Projection].
func (u Usage) Reset(ctx context.Context, tx *Tx) error { return deleteRows(ctx, tx, u) }

// usageBatch applies events. What they change of the sums is written at its end.
type usageBatch struct {
	tx     *Tx
	models map[modelName]int64
	sums   map[usageKey]usageSum

	ways      climber
	standings map[int64]standing
	known     map[int64]*knownWay

	tools toolsBatch
	turns map[int64]*turn // of each session, the one that goes on; nil: none
}

func newUsageBatch(ctx context.Context, tx *Tx) (*usageBatch, error) {
	b := &usageBatch{
		tx: tx, models: map[modelName]int64{}, sums: map[usageKey]usageSum{},
		ways: climber{tx, map[int64]limb{}}, standings: map[int64]standing{}, known: map[int64]*knownWay{},
		turns: map[int64]*turn{},
	}
	return b, b.tools.begin(ctx, tx)
}

// end writes the sums.
func (b *usageBatch) end(ctx context.Context) error {
	if err := b.writeToolSums(ctx); err != nil {
		return err
	}
	return b.write(ctx)
}

// Apply implements [Projection].
func (Usage) Apply(ctx context.Context, tx *Tx, events []Event) error {
	b, err := newUsageBatch(ctx, tx)
	if err != nil {
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
		if err := b.follow(ctx, session, events[len(events)-1].Seq); err != nil {
			return err
		}
	}
	return b.end(ctx)
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
	counted := CountedByWay
	if copied {
		counted = CountedNot
	}
	at := entryTime(e.Entry)
	r, err := b.tx.Exec(ctx, `INSERT OR IGNORE INTO usage (seq, session, n, identity, at, kind, model, input, output, cache_read, cache_write, cost, counted)
		VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)`,
		e.Seq, e.Session, e.N, bill.Identity, at, int(bill.Kind), model, bill.Input, bill.Output, bill.CacheRead, bill.CacheWrite, bill.Cost, counted)
	if err != nil {
		return err
	}
	if copied {
		return b.copied(ctx, e.Session, bill.Identity) // finds out too when the row was there
	}
	if n, err := r.RowsAffected(); err != nil || n == 0 {
		return err
	}
	live, err := b.isLive(ctx, e.Session, e.Seq, int64(e.N))
	if err != nil {
		return err
	}
	if counted = CountedAbandoned; live {
		counted = CountedLive
	}
	b.count(usageKey{at / BucketMillis, e.Session, model, bill.Kind, counted},
		usageSum{1, bill.Input, bill.Output, bill.CacheRead, bill.CacheWrite, bill.Cost}, 1)
	return nil
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

// Ready implements [Depends]. What is live is read from the branch set, and what was
// read from one that is behind would stay.
func (Usage) Ready(ctx context.Context, tx *Tx) error {
	behind, err := IsBehind(ctx, tx, Branch{})
	if err == nil && behind {
		err = eventlog.Errorf(eventlog.StorageFailed, "the view usage waits for the branch views, which are behind")
	}
	return err
}
