package projections

import "context"

// Copy makes the rows of the branch set for a session whose events are a copy of
// all of another's, in the same order, with seqs from base+1. It is what applying
// them one by one would give, at the cost of a few statements.
func (b Branch) Copy(ctx context.Context, tx *Tx, from, to, base int64) error {
	// The copies of segments get fresh keys, shifted as a whole so that the order
	// and the references stay.
	var shift int64
	_, err := tx.Row(ctx, `SELECT coalesce((SELECT seq FROM sqlite_sequence WHERE name = 'segments'), 0) + 1 - coalesce(min(key), 0) FROM segments WHERE session = ?`, []any{from}, &shift)
	if err != nil {
		return err
	}
	var last int64
	if _, err := tx.Row(ctx, "SELECT coalesce(max(key), 0) FROM segments WHERE session = ?", []any{from}, &last); err != nil {
		return err
	}
	if err := checkKey(last + shift); err != nil {
		return err
	}
	for _, step := range []struct {
		query string
		args  []any
	}{
		{`INSERT INTO segments (key, session, parent, start, hops, jump, jump_shared, compaction, stop, missing)
			SELECT key + ?3, ?2, parent + ?3, start, hops, jump + ?3, jump_shared, compaction, stop, missing FROM segments WHERE session = ?1 ORDER BY key`,
			[]any{from, to, shift}},
		{`INSERT INTO nodes (pos, seq)
			SELECT n.pos + (?2 << 32), ?3 + e.n
			FROM segments s CROSS JOIN nodes n CROSS JOIN events e
			WHERE s.session = ?1 AND n.pos BETWEEN s.key << 32 AND s.key << 32 | 0xffffffff AND e.seq = n.seq`,
			[]any{from, shift, base}},
		{`INSERT INTO cuts (pos, stop)
			SELECT c.pos + (?2 << 32), c.stop
			FROM segments s CROSS JOIN cuts c
			WHERE s.session = ?1 AND c.pos BETWEEN s.key << 32 AND s.key << 32 | 0xffffffff`,
			[]any{from, shift}},
		{`INSERT INTO labels (session, target, label) SELECT ?2, target, label FROM labels WHERE session = ?1`,
			[]any{from, to}},
		{`INSERT OR REPLACE INTO heads (session, leaf, pos, n, last_seq, name_seq, irregular, messages, cached, uncached, total, cost, fault)
			SELECT ?2, leaf, pos + (?3 << 32), n, ?4 + n, ?4 + (SELECT n FROM events WHERE seq = name_seq), irregular, messages, cached, uncached, total, cost, fault
			FROM heads WHERE session = ?1`,
			[]any{from, to, shift, base}},
	} {
		if _, err := tx.Exec(ctx, step.query, step.args...); err != nil {
			return err
		}
	}
	return nil
}
