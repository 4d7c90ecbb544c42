package projections

import "context"

// copyOf is one row of those with one identity.
type copyOf struct {
	seq, n, at int64
	counted    int
	key        usageKey
	sum        usageSum
	gone       bool // its session was deleted since: that event comes
	forked     bool // its session was forked here
	id         string
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
SELECT u.seq, u.n, u.at, u.counted, u.session, u.model, u.kind, u.input, u.output, u.cache_read, u.cache_write, u.cost,
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
		if err := rows.Scan(&c.seq, &c.n, &c.at, &c.counted, &c.key.session, &c.key.model, &c.key.kind,
			&c.sum.input, &c.sum.output, &c.sum.cacheRead, &c.sum.cacheWrite, &c.sum.cost, &c.gone, &c.forked, &c.id); err != nil {
			return nil, err
		}
		c.key.bucket = c.at / BucketMillis
		all = append(all, c)
	}
	return all, rows.Err()
}

// copied recounts a response of which an entry of a session came as a further copy.
// Copies in sessions that are gone go first: no way says any more what they are.
func (b *usageBatch) copied(ctx context.Context, session, identity int64) error {
	all, err := b.copies(ctx, identity)
	if err != nil {
		return err
	}
	for _, c := range all {
		if c.gone && c.key.session != session {
			if err := b.delete(ctx, c.key.session); err != nil {
				return err
			}
		}
	}
	return b.recount(ctx, identity)
}

// recount finds out which of the copies of a response counts, and as what.
func (b *usageBatch) recount(ctx context.Context, identity int64) error {
	all, err := b.copies(ctx, identity)
	if err != nil || len(all) == 0 {
		return err
	}
	owner, as := 0, CountedByWay
	for i, c := range all {
		if c.before(all[owner]) {
			owner = i
		}
	}
	if len(all) > 1 {
		if as, err = b.anyLive(ctx, all); err != nil {
			return err
		}
	}
	for i, c := range all {
		now := CountedNot
		if i == owner {
			now = as
		}
		if err := b.recountAs(ctx, c, now); err != nil {
			return err
		}
	}
	return nil
}

// anyLive says as what a response counts that has several copies.
func (b *usageBatch) anyLive(ctx context.Context, all []copyOf) (as int, err error) {
	for _, c := range all {
		if as, err = b.wayOf(ctx, c); err != nil || as == CountedLive {
			return as, err
		}
	}
	return CountedAbandoned, nil
}

// wayOf is what a row is by the way of its own session.
func (b *usageBatch) wayOf(ctx context.Context, c copyOf) (int, error) {
	live, err := b.isLive(ctx, c.key.session, c.seq, c.n)
	if err != nil || live {
		return CountedLive, err
	}
	return CountedAbandoned, nil
}

// recountAs moves a row from what it counts as to now, in the sums too.
func (b *usageBatch) recountAs(ctx context.Context, c copyOf, now int) error {
	if now == c.counted {
		return nil
	}
	if _, err := b.tx.Exec(ctx, "UPDATE usage SET counted = ? WHERE seq = ?", now, c.seq); err != nil {
		return err
	}
	for _, step := range []struct {
		counted int
		sign    int64
	}{{c.counted, -1}, {now, 1}} {
		key, err := c.key, error(nil)
		if key.counted = step.counted; key.counted == CountedByWay {
			key.counted, err = b.wayOf(ctx, c)
		}
		if err != nil {
			return err
		}
		if key.counted != CountedNot {
			b.count(key, c.sum, step.sign)
		}
	}
	if (now == CountedNot) == (c.counted == CountedNot) {
		return nil
	}
	return b.recountWork(ctx, c.seq, now != CountedNot)
}

// summedSQL are the sums of a session: by the times of its rows, since nothing finds
// them by the session alone.
const summedSQL = `
SELECT r.bucket, r.model, r.kind, r.counted, r.responses, r.input, r.output, r.cache_read, r.cache_write, r.cost
FROM (SELECT DISTINCT at / 900000 AS bucket FROM usage WHERE session = ?1) t CROSS JOIN usage_rollup r WHERE r.bucket = t.bucket AND r.session = ?1`

// delete takes a session's rows out. What it counted for is in its sums: there is no
// way any more that would say it of each row.
func (b *usageBatch) delete(ctx context.Context, session int64) error {
	if err := b.deleteWork(ctx, session); err != nil {
		return err
	}
	shared, err := Column[int64](ctx, b.tx, "SELECT DISTINCT identity FROM usage WHERE session = ? AND counted <> ?", session, CountedByWay)
	if err != nil {
		return err
	}
	if err := b.write(ctx); err != nil {
		return err
	}
	rows, err := b.tx.Rows(ctx, summedSQL, session)
	if err != nil {
		return err
	}
	if err := addRows(rows, session, func(k usageKey, s usageSum) { b.count(k, s, -1) }); err != nil {
		return err
	}
	if _, err := b.tx.Exec(ctx, "DELETE FROM usage WHERE session = ?", session); err != nil {
		return err
	}
	if err := b.forgetLeaf(ctx, session); err != nil {
		return err
	}
	for _, identity := range shared {
		if err := b.recount(ctx, identity); err != nil {
			return err
		}
	}
	return nil
}
