package query

import (
	"cmp"
	"context"
	"slices"

	"github.com/sessiontree/sessiontree/eventlog"
)

// BranchSpend is a branch in a report by branch. Its spend is of what the branch
// has for itself: the branch of the leaf has all of its way up to the root; every
// other what it does not share with that, or with one whose last entry is later.
type BranchSpend struct {
	Session string // id
	Tip     string // id of its last entry
	From    string // id of the entry at which it turns off, "" where it begins at a root
	Live    bool   // the branch of the session's leaf
	Entries int64  // that it has for itself
}

const (
	usageSessionsSQL = `SELECT key, id FROM sessions ORDER BY key`
	usageSessionSQL  = `SELECT key, id FROM sessions WHERE id = ?`
	usageFolderSQL   = `SELECT key, id FROM sessions WHERE cwd = ? ORDER BY key`

	sessionBillsSQL = `
SELECT n, at, kind, counted, model, input, output, cache_read, cache_write, cost FROM usage INDEXED BY usage_by_session WHERE session = ? AND counted > 0`

	idOfSQL = `SELECT id FROM events WHERE session = ? AND n = ?`
)

type keyedSession struct {
	key int64
	id  string
}

// asked are the sessions that a report is about.
func (o UsageOptions) asked(ctx context.Context, c Conn) (all []keyedSession, err error) {
	text, args := usageSessionsSQL, []any{}
	switch {
	case o.Session != "":
		text, args = usageSessionSQL, []any{o.Session}
	case o.CWD != "":
		text, args = usageFolderSQL, []any{o.CWD}
	}
	rows, err := c.Rows(ctx, text, args...)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	for rows.Next() {
		var s keyedSession
		if err := rows.Scan(&s.key, &s.id); err != nil {
			return nil, err
		}
		all = append(all, s)
	}
	return all, rows.Err()
}

func usageByBranch(ctx context.Context, c Conn, o UsageOptions) (report UsageReport, err error) {
	sessions, err := o.asked(ctx, c)
	if err != nil {
		return report, err
	}
	models, err := o.models(ctx, c)
	if err != nil {
		return report, err
	}
	for _, s := range sessions {
		rows, err := o.branchesOf(ctx, c, s, models)
		if err != nil {
			return UsageReport{}, err
		}
		for _, r := range rows {
			report.Total.Add(r.Split)
		}
		report.Rows = append(report.Rows, rows...)
	}
	report.sort(o.By)
	return report, nil
}

// models says which models a report is about; nil for all.
func (o UsageOptions) models(ctx context.Context, c Conn) (map[int64]bool, error) {
	if o.Provider == "" && o.Model == "" {
		return nil, nil
	}
	rows, err := c.Rows(ctx, "SELECT key FROM models WHERE (?1 = '' OR provider = ?1) AND (?2 = '' OR model = ?2)", o.Provider, o.Model)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	models := map[int64]bool{}
	for rows.Next() {
		var key int64
		if err := rows.Scan(&key); err != nil {
			return nil, err
		}
		models[key] = true
	}
	return models, rows.Err()
}

// branchesOf are the branches of a session that spent anything.
func (o UsageOptions) branchesOf(ctx context.Context, c Conn, s keyedSession, models map[int64]bool) ([]UsageRow, error) {
	t, err := readTree(ctx, c, s.key)
	if err != nil {
		return nil, err
	}
	parts := t.parts()
	splits := make([]Split, len(parts)+1) // the last: what has no place, which should be nothing
	if err := o.bills(ctx, c, s.key, models, partOf(parts), splits); err != nil {
		return nil, err
	}
	var rows []UsageRow
	for i, split := range splits {
		if split == (Split{}) {
			continue
		}
		b := &BranchSpend{Session: s.id}
		if i < len(parts) {
			if err := b.fill(ctx, c, s.key, parts[i]); err != nil {
				return nil, err
			}
		}
		rows = append(rows, UsageRow{Key: s.id + "/" + b.Tip, Split: split, Branch: b})
	}
	return rows, nil
}

// fill names a branch by the last of its entries that is more than a note about
// the tree: its tip is empty if it has none.
func (b *BranchSpend) fill(ctx context.Context, c Conn, session int64, p part) (err error) {
	b.Live = p.live
	for _, s := range p.spans {
		b.Entries += s.high - s.low + 1
	}
	if b.Tip, err = p.tipID(ctx, c, session); err != nil || p.from == 0 {
		return err
	}
	_, err = c.Row(ctx, idOfSQL, []any{session, p.from}, &b.From)
	return err
}

const tipSQL = `SELECT id FROM events WHERE session = ? AND n BETWEEN ? AND ?
	AND type NOT IN ('leaf', 'label', 'session_info') ORDER BY n DESC LIMIT 1`

func (p part) tipID(ctx context.Context, c Conn, session int64) (id string, err error) {
	if p.live {
		_, err = c.Row(ctx, idOfSQL, []any{session, p.tip}, &id)
		return id, err
	}
	for _, s := range p.spans {
		if ok, err := c.Row(ctx, tipSQL, []any{session, s.low, s.high}, &id); err != nil || ok {
			return id, err
		}
	}
	return "", nil
}

// bills adds the bills of a session up by part.
func (o UsageOptions) bills(ctx context.Context, c Conn, session int64, models map[int64]bool, part func(n int64) int, splits []Split) error {
	live, err := readLive(ctx, c, session)
	if err != nil {
		return err
	}
	rows, err := c.Rows(ctx, sessionBillsSQL, session)
	if err != nil {
		return err
	}
	defer rows.Close()
	since, until := o.millis()
	for rows.Next() {
		var n, at, model int64
		var kind eventlog.BillKind
		var counted int
		s := Spend{Responses: 1}
		if err := rows.Scan(&n, &at, &kind, &counted, &model, &s.Input, &s.Output, &s.CacheRead, &s.CacheWrite, &s.Cost); err != nil {
			return err
		}
		if at < since || at >= until || models != nil && !models[model] {
			continue
		}
		if counted == countedByWay {
			counted = live.class(n)
		}
		i := part(n)
		if i < 0 {
			i = len(splits) - 1
		}
		splits[i].class(kind, counted).Add(s)
	}
	return rows.Err()
}

// live is what of a session's entries the view of usage has for live.
type live struct {
	spans []nSpan // in order
	n     int64   // all that came behind it is
}

const (
	standingSQL = `SELECT n, walked FROM usage_leaves WHERE session = ?`
	walksSQL    = `SELECT low, high FROM usage_walks WHERE session = ? ORDER BY low`

	// liveSQL is the way from the leaf to the root, the deepest run first.
	liveSQL = `
WITH RECURSIVE way (parent, start, low, high) AS (
	SELECT s.parent, s.start, s.first, l.leaf FROM usage_leaves l JOIN segments s ON s.key = l.segment WHERE l.session = ?
	UNION ALL
	SELECT s.parent, s.start, s.first, s.first + w.start - 1 - s.start FROM way w JOIN segments s ON s.key = w.parent
)
SELECT low, high FROM way`
)

func readLive(ctx context.Context, c Conn, session int64) (l live, err error) {
	var walked bool
	ok, err := c.Row(ctx, standingSQL, []any{session}, &l.n, &walked)
	if err != nil || !ok {
		return l, err
	}
	text := liveSQL
	if walked {
		text = walksSQL
	}
	rows, err := c.Rows(ctx, text, session)
	if err != nil {
		return l, err
	}
	defer rows.Close()
	for rows.Next() {
		var s nSpan
		if err := rows.Scan(&s.low, &s.high); err != nil {
			return l, err
		}
		l.spans = append(l.spans, s)
	}
	if !walked {
		slices.Reverse(l.spans)
	}
	return l, rows.Err()
}

// class is as what an entry counts that has no copies.
func (l live) class(n int64) int {
	i, found := slices.BinarySearchFunc(l.spans, n, func(s nSpan, n int64) int { return cmp.Compare(s.low, n) })
	if n > l.n || found || i > 0 && n <= l.spans[i-1].high {
		return countedLive
	}
	return countedAbandoned
}
