package query

import (
	"cmp"
	"context"
	"slices"
	"strconv"
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
	name, sums, err := o.source(ctx, c)
	if err != nil {
		return UsageReport{}, err
	}
	groups := map[string]*Split{}
	var report UsageReport
	err = sums(ctx, c, func(group int64, kind eventlog.BillKind, counted int, s Spend) {
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

// source is where a report has its sums from, and what names its groups.
func (o UsageOptions) source(ctx context.Context, c Conn) (name func(int64) string, sums sumsReader, err error) {
	if o.byTime() && o.Session == "" && o.CWD == "" && o.Provider == "" && o.Model == "" && o.aligned() {
		name, sums, err := o.calendar(ctx, c)
		if err != nil || sums != nil {
			return name, sums, err
		}
	}
	name, err = o.namer(ctx, c)
	return name, o.sums, err
}

// sumsReader reads sums by group, kind and what they count as.
type sumsReader func(ctx context.Context, c Conn, add func(group int64, kind eventlog.BillKind, counted int, s Spend)) error

const noBound = 1 << 62

// millis are the bounds in ms since 1970.
func (o UsageOptions) millis() (since, until int64) {
	since, until = -1, noBound
	if !o.Since.IsZero() {
		since = ceilMillis(o.Since)
	}
	if !o.Until.IsZero() {
		until = ceilMillis(o.Until)
	}
	if since > -1 || until < noBound {
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

// The sources of sums, with what a report can be grouped by in integers.
const (
	spendSums = `sum(r.responses), sum(r.input), sum(r.output), sum(r.cache_read), sum(r.cache_write), sum(r.cost)`

	// By time alone: the periods come as a JSON list of their first buckets, each
	// above the number of buckets, and are numbered.
	timesSQL = `SELECT p.key, r.kind, r.counted, ` + spendSums + `
FROM json_each(?1) p CROSS JOIN usage_times r WHERE r.bucket >= p.value >> 20 AND r.bucket < (p.value >> 20) + (p.value & 0xfffff)
GROUP BY 1, 2, 3`

	sessionsFrom = `, r.kind, r.counted, ` + spendSums + ` FROM usage_sessions r WHERE true`
	rollupFrom   = `, r.kind, r.counted, ` + spendSums + ` FROM usage_rollup r WHERE r.bucket >= ? AND r.bucket < ?`
	// Between two moments: the buckets that are whole from their sums, what is before
	// and behind them from its rows.
	momentsFrom = `, r.kind, r.counted, ` + spendSums + ` FROM (
	SELECT bucket, session, model, kind, counted, responses, input, output, cache_read, cache_write, cost FROM usage_rollup WHERE bucket >= ? AND bucket < ?
	UNION ALL SELECT at / 900000, session, model, kind, counted, 1, input, output, cache_read, cache_write, cost FROM usage_counted WHERE at >= ? AND at < ?
	UNION ALL SELECT at / 900000, session, model, kind, counted, 1, input, output, cache_read, cache_write, cost FROM usage_counted WHERE at >= ? AND at < ?
) r WHERE true`

	filterSession  = ` AND r.session = (SELECT key FROM sessions WHERE id = ?)`
	filterCWD      = ` AND r.session IN (SELECT key FROM sessions WHERE cwd = ?)`
	filterProvider = ` AND r.model IN (SELECT key FROM models WHERE provider = ?)`
	filterModel    = ` AND r.model IN (SELECT key FROM models WHERE model = ?)`
)

func (o UsageOptions) byTime() bool {
	return o.By == ByDay || o.By == ByWeek || o.By == ByMonth
}

// aligned says whether the bounds are between buckets.
func (o UsageOptions) aligned() bool {
	since, until := o.millis()
	whole := func(ms int64) bool { return ms <= 1 || ms == noBound || ms%bucketMillis == 0 }
	return whole(since) && whole(until)
}

// sumsSQL is the query of a report.
func (o UsageOptions) sumsSQL() (text string, args []any) {
	since, until := o.millis()
	group, from := "r.session", rollupFrom
	switch {
	case o.By == ByNothing:
		group = "0"
	case o.byTime():
		group = "r.bucket"
	case o.By == ByModel || o.By == ByProvider:
		group = "r.model"
	}
	switch {
	case !o.byTime() && o.Since.IsZero() && o.Until.IsZero():
		from = sessionsFrom
	case o.aligned():
		since, until = o.buckets()
		args = []any{since, until}
	default:
		from, args = momentsFrom, moments(since, until)
	}
	text = "SELECT " + group + from
	for _, f := range []struct{ value, sql string }{
		{o.Session, filterSession}, {o.CWD, filterCWD}, {o.Provider, filterProvider}, {o.Model, filterModel},
	} {
		if f.value != "" {
			text, args = text+f.sql, append(args, f.value)
		}
	}
	return text + " GROUP BY 1, 2, 3", args
}

// moments are the bounds in ms as whole buckets, with what is before and behind them.
func moments(since, until int64) []any {
	first, end := floorDiv(since+bucketMillis-1), until
	if until != noBound {
		end = floorDiv(until)
	}
	behind := until
	if until != noBound {
		behind = max(end*bucketMillis, since)
	}
	before := min(first*bucketMillis, until)
	return []any{first, end, since, before, max(behind, before), until}
}

// buckets are the bounds in buckets, if they are aligned.
func (o UsageOptions) buckets() (since, until int64) {
	since, until = o.millis()
	if until != noBound {
		until /= bucketMillis
	}
	return floorDiv(since + bucketMillis - 1), until
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
	return readSums(ctx, c, add, text, args...)
}

func readSums(ctx context.Context, c Conn, add func(group int64, kind eventlog.BillKind, counted int, s Spend), text string, args ...any) error {
	rows, err := c.Rows(ctx, text, args...)
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

func (o UsageOptions) zone() *time.Location {
	if o.Zone == nil {
		return time.Local
	}
	return o.Zone
}

// periods names the day, week or month of a bucket, in a zone: by the calendar,
// so that the days on which clocks are changed have their 23 or 25 hours.
func (o UsageOptions) periods() func(bucket int64) string {
	zone := o.zone()
	return func(bucket int64) string {
		if bucket == 0 {
			return "" // no time
		}
		return period(time.UnixMilli(bucket*bucketMillis).In(zone), o.By)
	}
}

const timesRangeSQL = `SELECT min(bucket), max(bucket) FROM usage_times WHERE bucket >= ? AND bucket < ?`

// maxPeriods is how many periods are enumerated: 50 years of days. Entries that
// lie farther apart have wrong clocks, and are sorted in one by one.
const maxPeriods = 20_000

// calendar enumerates the periods in which anything was spent, and has the
// database add each up. It gives no reader if they are too many.
func (o UsageOptions) calendar(ctx context.Context, c Conn) (func(int64) string, sumsReader, error) {
	since, until := o.buckets()
	var first, last *int64
	if _, err := c.Row(ctx, timesRangeSQL, []any{max(since, 1), until}, &first, &last); err != nil {
		return nil, nil, err
	}
	names, list := []string{}, []byte{'['}
	add := func(name string, from, to int64) {
		if len(names) > 0 {
			list = append(list, ',')
		}
		names, list = append(names, name), strconv.AppendInt(list, from<<20|(to-from), 10)
	}
	if since <= 0 {
		add("", 0, 1) // no time
	}
	if first != nil {
		zone := o.zone()
		day := begin(time.UnixMilli(*first*bucketMillis).In(zone), o.By)
		for from := *first; from <= *last; {
			if len(names) > maxPeriods {
				return nil, nil, nil
			}
			next := following(day, o.By)
			to := min(floorDiv(next.UnixMilli()+bucketMillis-1), until)
			add(period(day, o.By), from, to)
			day, from = next, to
			if to == until {
				break
			}
		}
	}
	text := string(append(list, ']'))
	return func(i int64) string { return names[i] }, func(ctx context.Context, c Conn, add func(int64, eventlog.BillKind, int, Spend)) error {
		return readSums(ctx, c, add, timesSQL, text)
	}, nil
}

// begin is when the period of a time begins.
func begin(t time.Time, by Grouping) time.Time {
	y, m, d := t.Date()
	switch by {
	case ByWeek:
		d -= (int(t.Weekday()) + 6) % 7
	case ByMonth:
		d = 1
	}
	return midnight(y, m, d, t.Location())
}

// following is when the next period begins.
func following(t time.Time, by Grouping) time.Time {
	y, m, d := t.Date()
	switch by {
	case ByWeek:
		d += 7
	case ByMonth:
		m++
	default:
		d++
	}
	return midnight(y, m, d, t.Location())
}

// midnight is the first moment of a day. Where the clocks are changed at midnight
// there may be no 0:00, or two.
func midnight(y int, m time.Month, d int, zone *time.Location) time.Time {
	t := time.Date(y, m, d, 0, 0, 0, 0, zone)
	day := time.Date(y, m, d, 12, 0, 0, 0, zone).YearDay()
	if t.YearDay() != day {
		_, t = t.ZoneBounds()
	}
	if t.Add(-1).YearDay() == day {
		start, _ := t.ZoneBounds()
		_, was := start.Add(-1).Zone()
		_, is := t.Zone()
		t = t.Add(time.Duration(is-was) * time.Second)
	}
	return t
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
