package projections

import "context"

// Copy makes the rows of the branch set for a session whose events are a copy of
// all of another's, in the same order, with seqs from base+1. It is what applying
// them one by one would give, at the cost of a few statements.
func (b Branch) Copy(ctx context.Context, tx *Tx, from, to, base int64) error {
	for _, step := range []struct {
		query string
		args  []any
	}{
		{`INSERT INTO segments (key, session, first, parent, start, hops, jump, jump_shared, compaction, stop, missing, settings, kept)
			SELECT ?3 + s.first, ?2, s.first, ?3 + p.first, s.start, s.hops, ?3 + j.first, s.jump_shared, s.compaction, s.stop, s.missing, s.settings, s.kept
			FROM segments s LEFT JOIN segments p ON p.key = s.parent LEFT JOIN segments j ON j.key = s.jump
			WHERE s.session = ?1 ORDER BY s.key`, []any{from, to, base}},
		{`INSERT INTO settings (session, n, value) SELECT ?2, n, value FROM settings WHERE session = ?1`, []any{from, to}},
		{`INSERT INTO labels (session, target, label) SELECT ?2, target, label FROM labels WHERE session = ?1`, []any{from, to}},
		{`INSERT OR REPLACE INTO heads (session, leaf, leaf_n, segment, n, last_seq, hash, name_seq, irregular, messages, cached, uncached, total, cost, fault, users, assistants, tool_calls, tool_results, input, output, cache_read, cache_write, settings)
			SELECT ?2, h.leaf, h.leaf_n, ?3 + s.first, h.n, ?3 + h.n, h.hash, ?3 + (SELECT n FROM events WHERE seq = h.name_seq), h.irregular, h.messages, h.cached, h.uncached, h.total, h.cost, h.fault, h.users, h.assistants, h.tool_calls, h.tool_results, h.input, h.output, h.cache_read, h.cache_write, h.settings
			FROM heads h LEFT JOIN segments s ON s.key = h.segment WHERE h.session = ?1`, []any{from, to, base}},
	} {
		if _, err := tx.Exec(ctx, step.query, step.args...); err != nil {
			return err
		}
	}
	return nil
}
