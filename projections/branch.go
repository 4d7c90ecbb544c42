package projections

import (
	"context"
	"database/sql"
	"math"

	"github.com/sessiontree/sessiontree/eventlog"
)

// Branch is the branch set: where each entry stands in its tree, where each
// branch stops, each session's leaf, totals and labels. The writer applies it in
// its own transaction.
type Branch struct{ Dialect eventlog.Dialect }

// Name implements [Projection].
func (Branch) Name() string { return "branch" }

// Version implements [Projection].
func (Branch) Version() int { return 1 }

// Reset implements [Projection].
func (Branch) Reset(ctx context.Context, tx *Tx) error {
	for _, table := range []string{"segments", "nodes", "cuts", "heads", "labels"} {
		if _, err := tx.Exec(ctx, "DELETE FROM "+table); err != nil {
			return err
		}
	}
	// Nothing names a segment from outside: a rebuild numbers them from 1 again.
	_, err := tx.Exec(ctx, "DELETE FROM sqlite_sequence WHERE name = 'segments'")
	return err
}

// Head is a session's row of heads while events are applied to it, with what is
// known of the entry that was placed last.
type Head struct {
	session   int64
	leaf      sql.NullString
	pos       sql.NullInt64
	n         int
	lastSeq   int64
	nameSeq   sql.NullInt64
	irregular bool
	stats     eventlog.Stats
	fault     sql.NullString
	hasHoles  bool // an island waits for its parent

	lastID string
	last   place
}

// Apply implements [Projection].
func (b Branch) Apply(ctx context.Context, tx *Tx, events []Event) error {
	heads := map[int64]*Head{}
	for _, e := range events {
		if e.N == 0 {
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
		if err := b.applyEntry(ctx, tx, h, e); err != nil {
			return err
		}
	}
	for _, h := range heads {
		if err := h.write(ctx, tx); err != nil {
			return err
		}
	}
	return nil
}

// ApplyTo is Apply for events of one session whose head the caller read in this
// transaction. It makes head current.
func (b Branch) ApplyTo(ctx context.Context, tx *Tx, h *Head, events []Event) error {
	for _, e := range events {
		if err := b.applyEntry(ctx, tx, h, e); err != nil {
			return err
		}
	}
	return h.write(ctx, tx)
}

// applySession applies an event of a session itself.
func (b Branch) applySession(ctx context.Context, tx *Tx, heads map[int64]*Head, e Event) error {
	switch e.Type {
	case SessionCreated, SessionForked:
		heads[e.Session] = &Head{session: e.Session, lastSeq: e.Seq}
	case SessionDeleted:
		delete(heads, e.Session)
		return DeleteBranchRows(ctx, tx, e.Session)
	}
	return nil
}

// DeleteBranchRows deletes a session's rows of the branch set.
func DeleteBranchRows(ctx context.Context, tx *Tx, session int64) error {
	for _, query := range []string{
		"DELETE FROM nodes WHERE pos IN (SELECT n.pos FROM segments s JOIN nodes n ON n.pos BETWEEN s.key << 32 AND s.key << 32 | 0xffffffff WHERE s.session = ?)",
		"DELETE FROM cuts WHERE pos IN (SELECT c.pos FROM segments s JOIN cuts c ON c.pos BETWEEN s.key << 32 AND s.key << 32 | 0xffffffff WHERE s.session = ?)",
		"DELETE FROM segments WHERE session = ?",
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
	h.n, h.lastSeq = e.N, e.Seq
	if !h.irregular {
		if err := b.place(ctx, tx, h, e); err != nil {
			return err
		}
	}
	if h.fault.String == "" {
		if err := b.Dialect.Count(&h.stats, e.Entry); err != nil {
			h.fault = sql.NullString{String: err.Error(), Valid: true}
		}
	}
	switch e.Entry.Type() {
	case eventlog.TypeLabel:
		target, label, ok, err := b.Dialect.Label(e.Entry)
		if err == nil && ok {
			if err := setLabel(ctx, tx, h.session, target, label); err != nil {
				return err
			}
		}
	case eventlog.TypeSessionInfo:
		h.nameSeq = sql.NullInt64{Int64: e.Seq, Valid: true}
	}
	return b.moveLeaf(ctx, tx, h, e.Entry)
}

// moveLeaf makes the leaf what it is behind e.
func (b Branch) moveLeaf(ctx context.Context, tx *Tx, h *Head, e eventlog.Entry) error {
	leaf := e.LeafAfter()
	h.leaf = sql.NullString{String: leaf.ID(), Valid: !leaf.IsNone()}
	h.pos = sql.NullInt64{}
	switch {
	case leaf.IsNone() || h.irregular:
		return nil
	case leaf.ID() == h.lastID:
		h.pos = sql.NullInt64{Int64: h.last.pos, Valid: true}
		return nil
	}
	p, ok, err := find(ctx, tx, h.session, leaf.ID())
	if err == nil && ok {
		h.pos = sql.NullInt64{Int64: p, Valid: true}
	}
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
	ok, err := tx.Row(ctx, `SELECT h.leaf, h.pos, h.n, h.last_seq, h.name_seq, h.irregular, h.messages, h.cached, h.uncached, h.total, h.cost, h.fault,
			EXISTS (SELECT 1 FROM segments s WHERE s.session = h.session AND s.missing IS NOT NULL)
		FROM heads h WHERE h.session = ?`, []any{session},
		&h.leaf, &h.pos, &h.n, &h.lastSeq, &h.nameSeq, &h.irregular,
		&h.stats.Messages, (*Total)(&h.stats.CachedTokens), (*Total)(&h.stats.UncachedTokens), (*Total)(&h.stats.TotalTokens), (*Total)(&h.stats.Cost), &h.fault, &h.hasHoles)
	if err != nil || !ok {
		return nil, err
	}
	return h, nil
}

// Tip is the session's leaf, readable or not, and its number of entries.
func (h *Head) Tip() eventlog.Head {
	tip := eventlog.Head{N: h.n}
	if h.leaf.Valid {
		tip.Leaf = eventlog.At(h.leaf.String)
	}
	return tip
}

// HasLeaf says whether id is the leaf, and there.
func (h *Head) HasLeaf(id string) bool { return h.pos.Valid && h.leaf.String == id }

// Session is the session's key.
func (h *Head) Session() int64 { return h.session }

func (h *Head) write(ctx context.Context, tx *Tx) error {
	_, err := tx.Exec(ctx, `INSERT INTO heads (session, leaf, pos, n, last_seq, name_seq, irregular, messages, cached, uncached, total, cost, fault)
		VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13)
		ON CONFLICT (session) DO UPDATE SET leaf = ?2, pos = ?3, n = ?4, last_seq = ?5, name_seq = ?6, irregular = ?7, messages = ?8, cached = ?9, uncached = ?10, total = ?11, cost = ?12, fault = ?13`,
		h.session, h.leaf, h.pos, h.n, h.lastSeq, h.nameSeq, h.irregular,
		h.stats.Messages, h.stats.CachedTokens, h.stats.UncachedTokens, h.stats.TotalTokens, h.stats.Cost, h.fault)
	return err
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
