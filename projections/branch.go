package projections

import (
	"context"
	"database/sql"
	"math"
	"slices"

	"github.com/sessiontree/sessiontree/eventlog"
	"github.com/sessiontree/sessiontree/eventlog/js"
)

// Branch is the branch set: where each entry stands in its tree, where each
// branch stops, each session's leaf, totals and labels. The writer applies it in
// its own transaction.
type Branch struct{}

// Name implements [Projection].
func (Branch) Name() string { return "branch" }

// Version implements [Projection].
func (Branch) Version() int { return 1 }

// Tables implements [Projection].
func (Branch) Tables() []string { return []string{"segments", "settings", "heads", "labels"} }

// Reset implements [Projection].
func (b Branch) Reset(ctx context.Context, tx *Tx) error {
	if err := deleteRows(ctx, tx, b); err != nil {
		return err
	}
	return renewBuild(ctx, tx)
}

// Head is a session's row of heads while events are applied to it.
type Head struct {
	session   int64
	dialect   eventlog.Dialect
	leaf      sql.NullString
	leafAt    place // nowhere: no leaf, or one that is not there
	n         int
	lastSeq   int64
	hash      []byte // of the last entry
	nameSeq   sql.NullInt64
	irregular bool
	stats     eventlog.Stats
	fault     sql.NullString
	hasHoles  bool   // an island waits for its parent
	settings  string // at the leaf; "" where they are not kept

	settingsAt string // at the entry that was placed last

	// Of the batch that is applied.
	expecting bool // expect has been called
	whole     bool // the batch began with the session's first entry
	suspect   bool // its ids may have been there before
	placed    map[string]place
	segments  map[int64]segment
}

// Apply implements [Projection].
func (b Branch) Apply(ctx context.Context, tx *Tx, events []Event) error {
	heads, last := map[int64]*Head{}, map[int64]int{}
	for _, e := range events {
		last[e.Session] = e.N
	}
	for _, e := range events {
		if e.N <= 0 && e.Type != LeafMoved {
			if err := b.applySession(ctx, tx, heads, e); err != nil {
				return err
			}
			continue
		}
		h := heads[e.Session]
		if h == nil {
			var err error
			if h, err = ReadHead(ctx, tx, e.Session); err != nil {
				return err
			}
			if h == nil {
				continue // deleted: its entries are gone, but this batch was read before
			}
			heads[e.Session] = h
		}
		if e.Type == LeafMoved && e.N < 0 {
			if err := h.move(ctx, tx, e); err != nil {
				return err
			}
			continue
		}
		e.readAs(h.dialect)
		if !h.expecting {
			if err := h.expect(ctx, tx, e, last[e.Session]); err != nil {
				return err
			}
		}
		if err := b.applyEntry(ctx, tx, h, e); err != nil {
			return err
		}
	}
	for _, h := range heads {
		if err := h.Write(ctx, tx); err != nil {
			return err
		}
	}
	return nil
}

// ApplyTo is Apply for events of one session whose head the caller read in this
// transaction. It makes head current, but does not write it.
func (b Branch) ApplyTo(ctx context.Context, tx *Tx, h *Head, events []Event) error {
	defer h.endBatch()
	first := slices.IndexFunc(events, func(e Event) bool { return e.N > 0 })
	if first >= 0 {
		last := first
		for i, e := range events {
			if e.N > 0 {
				last = i
			}
		}
		if err := h.expect(ctx, tx, events[first], events[last].N); err != nil {
			return err
		}
	}
	for _, e := range events {
		if e.N < 0 {
			if err := h.move(ctx, tx, e); err != nil {
				return err
			}
			continue
		}
		if err := b.applyEntry(ctx, tx, h, e); err != nil {
			return err
		}
	}
	return nil
}

// applySession applies an event of a session itself.
func (b Branch) applySession(ctx context.Context, tx *Tx, heads map[int64]*Head, e Event) error {
	switch e.Type {
	case SessionCreated, SessionForked:
		d, err := DialectOf(ctx, tx, e.Session)
		if err != nil {
			return err
		}
		heads[e.Session] = &Head{session: e.Session, dialect: d, lastSeq: e.Seq}
	case SessionDeleted:
		delete(heads, e.Session)
		return DeleteBranchRows(ctx, tx, e.Session)
	}
	return nil
}

// RebuildSession makes a session's rows again from its events alone, as they would
// be had each been applied as it came. A session that is not there loses its rows.
func (b Branch) RebuildSession(ctx context.Context, tx *Tx, session int64) error {
	if err := DeleteBranchRows(ctx, tx, session); err != nil {
		return err
	}
	var created, after int64 = 0, 0
	ok, err := tx.Row(ctx, "SELECT seq FROM events WHERE session = ? AND n = 0 AND type <> ?", []any{session, SessionDeleted}, &created)
	if err != nil || !ok {
		return err
	}
	d, err := DialectOf(ctx, tx, session)
	if err != nil {
		return err
	}
	h := &Head{session: session, dialect: d, lastSeq: created}
	if err := h.Write(ctx, tx); err != nil {
		return err
	}
	for more := true; more; {
		var events []Event
		if events, more, err = readSession(ctx, tx, session, after, BranchSlice); err != nil {
			return err
		}
		if len(events) == 0 {
			break
		}
		after = int64(events[len(events)-1].N)
		if h, err = ReadHead(ctx, tx, session); err != nil {
			return err
		}
		for i := range events {
			events[i].readAs(d)
		}
		if err := b.ApplyTo(ctx, tx, h, events); err != nil {
			return err
		}
		if err := h.Write(ctx, tx); err != nil {
			return err
		}
	}
	if err := h.moveLast(ctx, tx); err != nil {
		return err
	}
	return renewBuild(ctx, tx)
}

// renewBuild shows whoever keeps answers in memory that they may be others.
func renewBuild(ctx context.Context, tx *Tx) error {
	_, err := tx.Exec(ctx, "UPDATE checkpoints SET build = random() WHERE projection = ?", Branch{}.Name())
	return err
}

// DialectOf is the dialect of a session; the default one's if it is not there.
func DialectOf(ctx context.Context, tx *Tx, session int64) (eventlog.Dialect, error) {
	var name string
	ok, err := tx.Row(ctx, "SELECT dialect FROM sessions WHERE key = ?", []any{session}, &name)
	if err != nil || !ok {
		return eventlog.Harness, err
	}
	return eventlog.ParseDialect(name)
}

// ReadAs makes the entries of events, which were read as the harness's, those of
// their sessions' dialects.
func ReadAs(ctx context.Context, tx *Tx, events []Event) error {
	dialects := map[int64]eventlog.Dialect{}
	for i := range events {
		e := &events[i]
		if e.N <= 0 {
			continue
		}
		d, known := dialects[e.Session]
		if !known {
			var err error
			if d, err = DialectOf(ctx, tx, e.Session); err != nil {
				return err
			}
			dialects[e.Session] = d
		}
		e.readAs(d)
	}
	return nil
}

// readAs makes an event's entry, which was read as the harness's, one of a dialect.
func (e *Event) readAs(d eventlog.Dialect) {
	if d != eventlog.Harness {
		e.Entry = d.TrustedEntry(e.Entry.JSON())
	}
}

// moveLast applies the session's last move that is no entry, if it came behind all
// entries: those before have no effect any more.
func (h *Head) moveLast(ctx context.Context, tx *Tx) error {
	var seq int64
	var payload string
	ok, err := tx.Row(ctx, "SELECT seq, payload FROM events WHERE session = ? AND n < 0 ORDER BY n LIMIT 1", []any{h.session}, &seq, &payload)
	if err != nil || !ok || seq < h.lastSeq {
		return err
	}
	if err := h.move(ctx, tx, Event{Seq: seq, Entry: eventlog.MoveOf(js.Trusted(payload).Get("targetId"))}); err != nil {
		return err
	}
	return h.Write(ctx, tx)
}

// move applies a move of the leaf that is no entry.
func (h *Head) move(ctx context.Context, tx *Tx, e Event) error {
	h.lastSeq = e.Seq
	return h.moveLeaf(ctx, tx, e.Entry)
}

// DeleteBranchRows deletes a session's rows of the branch set.
func DeleteBranchRows(ctx context.Context, tx *Tx, session int64) error {
	for _, query := range []string{
		"DELETE FROM segments WHERE session = ?",
		"DELETE FROM settings WHERE session = ?",
		"DELETE FROM labels WHERE session = ?",
		"DELETE FROM heads WHERE session = ?",
	} {
		if _, err := tx.Exec(ctx, query, session); err != nil {
			return err
		}
	}
	return nil
}

func (b Branch) applyEntry(ctx context.Context, tx *Tx, h *Head, e Event) error {
	h.n, h.lastSeq, h.hash = e.N, e.Seq, e.Hash
	if !h.irregular {
		if err := h.place(ctx, tx, e); err != nil {
			return err
		}
	}
	if h.fault.String == "" {
		if err := h.dialect.Count(&h.stats, e.Entry); err != nil {
			h.fault = sql.NullString{String: err.Error(), Valid: true}
		}
	}
	switch e.Entry.Type() {
	case eventlog.TypeLabel:
		target, label, ok, err := h.dialect.Label(e.Entry)
		if err == nil && ok {
			if err := setLabel(ctx, tx, h.session, target, label); err != nil {
				return err
			}
		}
	case eventlog.TypeSessionInfo:
		h.nameSeq = sql.NullInt64{Int64: e.Seq, Valid: true}
	}
	return h.moveLeaf(ctx, tx, e.Entry)
}

// moveLeaf makes the leaf what it is behind e.
func (h *Head) moveLeaf(ctx context.Context, tx *Tx, e eventlog.Entry) (err error) {
	leaf := e.LeafAfter()
	var at place
	if !leaf.IsNone() && !h.irregular {
		if at, _, err = h.find(ctx, tx, leaf.ID()); err != nil {
			return err
		}
	}
	settings := ""
	if h.dialect.KeepsSettings() && at.segment != 0 {
		if settings = h.settingsAt; e.IsMove() {
			settings, err = h.settingsOf(ctx, tx, at)
		}
	}
	h.leaf, h.leafAt, h.settings = sql.NullString{String: leaf.ID(), Valid: !leaf.IsNone()}, at, settings
	return err
}

func setLabel(ctx context.Context, tx *Tx, session int64, target, label string) (err error) {
	if label == "" {
		_, err = tx.Exec(ctx, "DELETE FROM labels WHERE session = ? AND target = ?", session, target)
	} else {
		_, err = tx.Exec(ctx, "INSERT INTO labels (session, target, label) VALUES (?1, ?2, ?3) ON CONFLICT (session, target) DO UPDATE SET label = ?3", session, target, label)
	}
	return err
}

// ReadHead reads a session's head, nil if there is no such session.
func ReadHead(ctx context.Context, tx *Tx, session int64) (*Head, error) {
	h := &Head{session: session}
	var dialect string
	ok, err := tx.Row(ctx, `SELECT coalesce((SELECT dialect FROM sessions WHERE key = h.session), 'harness'), h.settings, h.users, h.assistants, h.tool_calls, h.tool_results, h.input, h.output, h.cache_read, h.cache_write, h.leaf, coalesce(h.leaf_n, 0), coalesce(h.segment, 0), h.n, h.last_seq, h.hash, h.name_seq, h.irregular, h.messages, h.cached, h.uncached, h.total, h.cost, h.fault,
			EXISTS (SELECT 1 FROM segments s WHERE s.session = h.session AND s.missing IS NOT NULL)
		FROM heads h WHERE h.session = ?`, []any{session},
		&dialect, &h.settings, &h.stats.UserMessages, &h.stats.AssistantMessages, &h.stats.ToolCalls, &h.stats.ToolResults,
		(*Total)(&h.stats.Input), (*Total)(&h.stats.Output), (*Total)(&h.stats.CacheRead), (*Total)(&h.stats.CacheWrite),
		&h.leaf, &h.leafAt.n, &h.leafAt.segment, &h.n, &h.lastSeq, &h.hash, &h.nameSeq, &h.irregular,
		&h.stats.Messages, (*Total)(&h.stats.CachedTokens), (*Total)(&h.stats.UncachedTokens), (*Total)(&h.stats.TotalTokens), (*Total)(&h.stats.Cost), &h.fault, &h.hasHoles)
	if err != nil || !ok {
		return nil, err
	}
	h.dialect, err = eventlog.ParseDialect(dialect)
	return h, err
}

// Dialect is the session's.
func (h *Head) Dialect() eventlog.Dialect { return h.dialect }

// LastSeq is the seq of the session's last event.
func (h *Head) LastSeq() int64 { return h.lastSeq }

// Tip is the session's leaf, readable or not, and its number of entries.
func (h *Head) Tip() eventlog.Head {
	tip := eventlog.Head{N: h.n}
	if h.leaf.Valid {
		tip.Leaf = eventlog.At(h.leaf.String)
	}
	return tip
}

// HasLeaf says whether id is the leaf, and there.
func (h *Head) HasLeaf(id string) bool { return h.leafAt.segment != 0 && h.leaf.String == id }

// Hash is that of the last entry, nil if there is none.
func (h *Head) Hash() []byte { return h.hash }

// Session is the session's key.
func (h *Head) Session() int64 { return h.session }

// endBatch forgets what was known of the batch that was applied.
func (h *Head) endBatch() {
	h.expecting, h.whole, h.suspect, h.placed, h.segments = false, false, false, nil, nil
}

// Write writes the session's row.
func (h *Head) Write(ctx context.Context, tx *Tx) error {
	h.endBatch()
	there := h.leafAt.segment != 0
	_, err := tx.Exec(ctx, `INSERT INTO heads (session, leaf, leaf_n, segment, n, last_seq, name_seq, irregular, messages, cached, uncached, total, cost, fault, users, assistants, tool_calls, tool_results, input, output, cache_read, cache_write, settings, hash)
		VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14, ?15, ?16, ?17, ?18, ?19, ?20, ?21, ?22, ?23, ?24)
		ON CONFLICT (session) DO UPDATE SET leaf = ?2, leaf_n = ?3, segment = ?4, n = ?5, last_seq = ?6, name_seq = ?7, irregular = ?8, messages = ?9, cached = ?10, uncached = ?11, total = ?12, cost = ?13, fault = ?14, users = ?15, assistants = ?16, tool_calls = ?17, tool_results = ?18, input = ?19, output = ?20, cache_read = ?21, cache_write = ?22, settings = ?23, hash = ?24`,
		h.session, h.leaf, sql.NullInt64{Int64: h.leafAt.n, Valid: there}, sql.NullInt64{Int64: h.leafAt.segment, Valid: there}, h.n, h.lastSeq, h.nameSeq, h.irregular,
		h.stats.Messages, h.stats.CachedTokens, h.stats.UncachedTokens, h.stats.TotalTokens, h.stats.Cost, h.fault,
		h.stats.UserMessages, h.stats.AssistantMessages, h.stats.ToolCalls, h.stats.ToolResults, h.stats.Input, h.stats.Output, h.stats.CacheRead, h.stats.CacheWrite, h.settings, blob(h.hash))
	return err
}

// blob is bytes, or null for none.
func blob(b []byte) any {
	if len(b) == 0 {
		return nil
	}
	return b
}

// Total reads a sum of doubles. Sums may be no number (infinities that cancel),
// which SQLite stores as null.
type Total float64

// Scan implements [sql.Scanner].
func (t *Total) Scan(v any) error {
	var f sql.NullFloat64
	err := f.Scan(v)
	if *t = Total(f.Float64); !f.Valid {
		*t = Total(math.NaN())
	}
	return err
}
