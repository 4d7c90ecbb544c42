package projections

import (
	"cmp"
	"context"
	"database/sql"
	"maps"
	"slices"
	"strings"

	"github.com/sessiontree/sessiontree/eventlog"
)

// BucketMillis is the width of a bucket of sums. Every zone's clock differs from
// UTC by a multiple of it (since 1972).
const BucketMillis = 15 * 60 * 1000

// What a row counts as. Sums have CountedLive and CountedAbandoned alone.
const (
	CountedNot       = 0 // another copy counts
	CountedLive      = 1
	CountedAbandoned = 2
	CountedByWay     = 3 // it has no copies: as the way of its session says
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

// count adds a row to the sums, or with sign -1 takes it away.
func (b *usageBatch) count(k usageKey, s usageSum, sign int64) { addTo(b.sums, k, s, sign) }

func addTo(sums map[usageKey]usageSum, k usageKey, s usageSum, sign int64) {
	was := sums[k]
	sums[k] = usageSum{
		was.responses + sign*s.responses, was.input + sign*s.input, was.output + sign*s.output,
		was.cacheRead + sign*s.cacheRead, was.cacheWrite + sign*s.cacheWrite, was.cost + sign*s.cost,
	}
}

// addRows gives the sums that rows hold: bucket, model, kind, what they count as, and
// the sums themselves. It closes the rows.
func addRows(rows *sql.Rows, session int64, add func(usageKey, usageSum)) error {
	defer rows.Close()
	for rows.Next() {
		k, s := usageKey{session: session}, usageSum{}
		if err := rows.Scan(&k.bucket, &k.model, &k.kind, &k.counted, &s.responses, &s.input, &s.output, &s.cacheRead, &s.cacheWrite, &s.cost); err != nil {
			return err
		}
		add(k, s)
	}
	return rows.Err()
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

// write adds what changed to the sums that are kept.
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
	clear(b.sums)
	return nil
}
