package query

import (
	"cmp"
	"context"
	"slices"
	"strings"
	"time"

	"github.com/sessiontree/sessiontree/eventlog"
)

// Grouping says of what the rows of a usage report are the sums.
type Grouping string

// The groupings. ByNothing gives one row.
const (
	ByNothing  Grouping = ""
	ByDay      Grouping = "day"
	ByWeek     Grouping = "week" // from Monday
	ByMonth    Grouping = "month"
	ByModel    Grouping = "model"
	ByProvider Grouping = "provider"
	ByCWD      Grouping = "cwd"
	BySession  Grouping = "session"
	ByBranch   Grouping = "branch"
)

// Groupings lists all groupings but ByNothing.
func Groupings() []Grouping {
	return []Grouping{ByDay, ByWeek, ByMonth, ByModel, ByProvider, ByCWD, BySession, ByBranch}
}

// UsageOptions say what a usage report is about. The zero value is all that was
// ever spent, in one row.
type UsageOptions struct {
	By Grouping
	// Zone is whose days, weeks and months are meant; nil is the local one.
	Zone *time.Location
	// Since and Until bound the time of the responses: from Since on, and before
	// Until. The zero time is no bound. What has no time that can be read is in
	// reports without bounds only.
	Since, Until time.Time
	Session      string // the id of the only session, "" for all
	CWD          string // the only working folder, "" for all
	Provider     string // the only provider, "" for all
	Model        string // the only model, "" for all
}

// UsageRow is a line of a usage report.
type UsageRow struct {
	// Key names the group: a day (2026-03-01), the Monday of a week, a month
	// (2026-03), or what the grouping is called after, with provider/model for a
	// model, and session/entry for a branch, which is called after its last entry.
	// "" where nothing says it: the time cannot be read, the entry has no model.
	Key string
	Split
	Branch *BranchSpend // of a branch
}

// UsageReport is the answer to [Usage]. The rows are in the order of time, or the
// dearest first. Each response is in one row: they add up to Total.
type UsageReport struct {
	Rows  []UsageRow
	Total Split
}

// bucketMillis is the width of the buckets in which the view of usage has sums.
const bucketMillis = 15 * 60 * 1000

// Usage reads what was spent. Responses that forks and other copies have too are
// counted once, for the session that projections.Usage says. Reports within whole
// quarters of an hour come from the sums that the view keeps; others, and those by
// branch, from its rows.
//
// It fails with [eventlog.ErrInvalidArgument] for a grouping that does not exist.
func Usage(ctx context.Context, c Conn, o UsageOptions) (UsageReport, error) {
	if o.By != ByNothing && !slices.Contains(Groupings(), o.By) {
		return UsageReport{}, eventlog.Errorf(eventlog.InvalidArgument, "usage cannot be asked by %q", o.By)
	}
	if o.By == ByBranch {
		return usageByBranch(ctx, c, o)
	}
	name, err := o.namer(ctx, c)
	if err != nil {
		return UsageReport{}, err
	}
	groups := map[string]*Split{}
	var report UsageReport
	err = o.sums(ctx, c, func(group int64, kind eventlog.BillKind, counted int, s Spend) {
		key := name(group)
		g := groups[key]
		if g == nil {
			g = &Split{}
			groups[key] = g
		}
		g.class(kind, counted).Add(s)
		report.Total.class(kind, counted).Add(s)
	})
	if err != nil {
		return UsageReport{}, err
	}
	for key, g := range groups {
		report.Rows = append(report.Rows, UsageRow{Key: key, Split: *g})
	}
	report.sort(o.By)
	return report, nil
}

func (r *UsageReport) sort(by Grouping) {
	slices.SortFunc(r.Rows, func(a, b UsageRow) int {
		switch by {
		case ByDay, ByWeek, ByMonth:
			return cmp.Compare(a.Key, b.Key)
		}
		x, y := a.Total(), b.Total()
		return cmp.Or(cmp.Compare(y.Cost, x.Cost), cmp.Compare(y.Tokens(), x.Tokens()), cmp.Compare(a.Key, b.Key))
	})
}

// millis are the bounds in ms since 1970.
func (o UsageOptions) millis() (since, until int64) {
	since, until = -1, 1<<62
	if !o.Since.IsZero() {
		since = ceilMillis(o.Since)
	}
	if !o.Until.IsZero() {
		until = ceilMillis(o.Until)
	}
	if since > -1 || until < 1<<62 {
		since = max(since, 1) // what has no time has 0
	}
	return since, until
}

// ceilMillis is a time in ms: times of entries are whole, so one is before t if
// and only if it is before this.
func ceilMillis(t time.Time) int64 {
	ms := t.UnixMilli()
	if t.Nanosecond()%1e6 != 0 {
		ms++
	}
	return ms
}

// The two sources of sums, with what a report can be grouped by in integers.
const (
	rollupColumns = `, r.kind, r.counted, sum(r.responses), sum(r.input), sum(r.output), sum(r.cache_read), sum(r.cache_write), sum(r.cost)
FROM usage_rollup r WHERE r.bucket >= ?1 AND r.bucket < ?2`
	rowColumns = `, r.kind, r.counted, count(*), sum(r.input), sum(r.output), sum(r.cache_read), sum(r.cache_write), sum(r.cost)
FROM usage r WHERE r.counted > 0 AND r.at >= ?1 AND r.at < ?2`

	filterSession  = ` AND r.session = (SELECT key FROM sessions WHERE id = ?3)`
	filterCWD      = ` AND r.session IN (SELECT key FROM sessions WHERE cwd = ?4)`
	filterProvider = ` AND r.model IN (SELECT key FROM models WHERE provider = ?5)`
	filterModel    = ` AND r.model IN (SELECT key FROM models WHERE model = ?6)`
)

// sumsSQL is the query of a report; args are its arguments.
func (o UsageOptions) sumsSQL() (text string, args []any) {
	since, until := o.millis()
	group, from := "r.session", rollupColumns
	switch o.By {
	case ByNothing:
		group = "0"
	case ByDay, ByWeek, ByMonth:
		group = "r.bucket"
	case ByModel, ByProvider:
		group = "r.model"
	}
	aligned := func(ms int64) bool { return ms <= 1 || ms == 1<<62 || ms%bucketMillis == 0 }
	if aligned(since) && aligned(until) {
		since, until = floorDiv(since+bucketMillis-1), until/bucketMillis
		if until*bucketMillis > 1<<61 {
			until = 1 << 62
		}
	} else {
		from = rowColumns
		if group == "r.bucket" {
			group = "r.at / 900000"
		}
	}
	text = "SELECT " + group + from
	for _, f := range []struct{ value, sql string }{
		{o.Session, filterSession}, {o.CWD, filterCWD}, {o.Provider, filterProvider}, {o.Model, filterModel},
	} {
		if f.value != "" {
			text += f.sql
		}
	}
	return text + " GROUP BY 1, 2, 3", []any{since, until, o.Session, o.CWD, o.Provider, o.Model}
}

func floorDiv(ms int64) int64 {
	if ms < 0 {
		return -1
	}
	return ms / bucketMillis
}

// sums gives the sums by group, kind and what they count as.
func (o UsageOptions) sums(ctx context.Context, c Conn, add func(group int64, kind eventlog.BillKind, counted int, s Spend)) error {
	text, args := o.sumsSQL()
	used := 2
	for i := 3; i <= len(args); i++ {
		if strings.Contains(text, "?"+string(rune('0'+i))) {
			used = i
		}
	}
	rows, err := c.Rows(ctx, text, args[:used]...)
	if err != nil {
		return err
	}
	defer rows.Close()
	for rows.Next() {
		var group int64
		var kind eventlog.BillKind
		var counted int
		var s Spend
		if err := rows.Scan(&group, &kind, &counted, &s.Responses, &s.Input, &s.Output, &s.CacheRead, &s.CacheWrite, &s.Cost); err != nil {
			return err
		}
		add(group, kind, counted, s)
	}
	return rows.Err()
}

// namer is what names the groups of a report.
func (o UsageOptions) namer(ctx context.Context, c Conn) (func(group int64) string, error) {
	switch o.By {
	case ByDay, ByWeek, ByMonth:
		return o.periods(), nil
	case ByModel:
		return names(ctx, c, "SELECT key, CASE WHEN provider = '' AND model = '' THEN '' ELSE provider || '/' || model END FROM models")
	case ByProvider:
		return names(ctx, c, "SELECT key, provider FROM models")
	case ByCWD:
		return names(ctx, c, "SELECT key, cwd FROM sessions")
	case BySession:
		return names(ctx, c, "SELECT key, id FROM sessions")
	}
	return func(int64) string { return "" }, nil
}

// names reads the names of integer keys.
func names(ctx context.Context, c Conn, query string) (func(int64) string, error) {
	rows, err := c.Rows(ctx, query)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	all := map[int64]string{}
	for rows.Next() {
		var key int64
		var name string
		if err := rows.Scan(&key, &name); err != nil {
			return nil, err
		}
		all[key] = name
	}
	return func(key int64) string { return all[key] }, rows.Err()
}

// periods names the day, week or month of a bucket, in a zone: by the calendar,
// so that the days on which clocks are changed have their 23 or 25 hours.
func (o UsageOptions) periods() func(bucket int64) string {
	zone := o.Zone
	if zone == nil {
		zone = time.Local
	}
	return func(bucket int64) string {
		if bucket == 0 {
			return "" // no time
		}
		return period(time.UnixMilli(bucket*bucketMillis).In(zone), o.By)
	}
}

func period(t time.Time, by Grouping) string {
	switch by {
	case ByWeek:
		back := (int(t.Weekday()) + 6) % 7
		return t.AddDate(0, 0, -back).Format(time.DateOnly)
	case ByMonth:
		return t.Format("2006-01")
	}
	return t.Format(time.DateOnly)
}
