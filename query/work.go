package query

import (
	"cmp"
	"context"
	"slices"
	"time"

	"github.com/sessiontree/sessiontree/eventlog"
)

// WorkOptions say what a report about tools, turns or compactions is about. The
// zero value is all of it.
type WorkOptions struct {
	Since, Until time.Time // the time of the call, turn or compaction: from Since on, before Until
	Session      string    // the id of the only session, "" for all
	CWD          string    // the only working folder, "" for all
	Limit        int       // of lists: how many at most; 0 is 20
}

func (o WorkOptions) limit() int {
	if o.Limit > 0 {
		return o.Limit
	}
	return 20
}

// where is the condition that the options are, on a table r with at and session,
// with its arguments.
func (o WorkOptions) where() (string, []any) {
	since, until := o.millis()
	text, args := "", []any{}
	if since > -1 || until < noBound {
		text, args = " AND r.at >= ? AND r.at < ?", []any{since, until}
	}
	of, more := o.whose()
	return text + of, append(args, more...)
}

func (o WorkOptions) millis() (since, until int64) {
	return UsageOptions{Since: o.Since, Until: o.Until}.millis()
}

// whose is the part of the condition that is not about the time.
func (o WorkOptions) whose() (text string, args []any) {
	if o.Session != "" {
		text, args = text+" AND r.session = (SELECT key FROM sessions WHERE id = ?)", append(args, o.Session)
	}
	if o.CWD != "" {
		text, args = text+" AND r.session IN (SELECT key FROM sessions WHERE cwd = ?)", append(args, o.CWD)
	}
	return text, args
}

// Turn is a message of the user with what its session got until the next.
type Turn struct {
	Session   string // id
	Entry     string // id of the user's message
	At        time.Time
	Took      time.Duration // from the message to the latest response or result
	Responses int64
	Calls     int64
}

const slowTurnsSQL = `SELECT s.id, e.id, r.at, r.millis, r.responses, r.calls
FROM turns r CROSS JOIN events e ON e.seq = r.seq CROSS JOIN sessions s ON s.key = r.session WHERE r.counted = 1`

// SlowTurns are the turns that took longest.
func SlowTurns(ctx context.Context, c Conn, o WorkOptions) (all []Turn, err error) {
	where, args := o.where()
	rows, err := c.Rows(ctx, slowTurnsSQL+where+" ORDER BY r.millis DESC, r.seq DESC LIMIT ?", append(args, o.limit())...)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	for rows.Next() {
		var t Turn
		var at, millis int64
		if err := rows.Scan(&t.Session, &t.Entry, &at, &millis, &t.Responses, &t.Calls); err != nil {
			return nil, err
		}
		t.At, t.Took = time.UnixMilli(at).UTC(), time.Duration(millis)*time.Millisecond
		all = append(all, t)
	}
	return all, rows.Err()
}

// OpenCall is a call of a tool without a result.
type OpenCall struct {
	Session, Entry string // ids of the session and of the message that calls
	Call, Tool     string // id of the call, and name of the tool
	At             time.Time
}

const openCallsSQL = `SELECT s.id, e.id, r.call_id, t.name, r.at
FROM tool_calls r CROSS JOIN tools t ON t.key = r.tool CROSS JOIN events e ON e.seq = r.seq CROSS JOIN sessions s ON s.key = r.session
WHERE r.counted = 1 AND r.result_seq IS NULL`

// OpenCalls are the calls that have no result, the latest first.
func OpenCalls(ctx context.Context, c Conn, o WorkOptions) (all []OpenCall, err error) {
	where, args := o.where()
	rows, err := c.Rows(ctx, openCallsSQL+where+" ORDER BY r.seq DESC, r.idx DESC LIMIT ?", append(args, o.limit())...)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	for rows.Next() {
		var call OpenCall
		var at int64
		if err := rows.Scan(&call.Session, &call.Entry, &call.Call, &call.Tool, &at); err != nil {
			return nil, err
		}
		call.At = time.UnixMilli(at).UTC()
		all = append(all, call)
	}
	return all, rows.Err()
}

// Compaction is one compaction; copies in forks are left out.
type Compaction struct {
	Session, Entry string // ids
	At             time.Time
	TokensBefore   int64 // of the context that was compacted
	// Kept is how many entries or messages the context keeps from before: by place,
	// or by value; -1 where the session is answered by the walk.
	Kept    int64
	ByValue bool
	Spend   // of making the summary; its Responses is 0 where the entry does not say
}

const compactionsSQL = `SELECT s.id, e.id, r.at, r.tokens_before, coalesce(r.retained, g.start - g.stop, -1), r.retained IS NOT NULL,
	u.seq IS NOT NULL, coalesce(u.input, 0), coalesce(u.output, 0), coalesce(u.cache_read, 0), coalesce(u.cache_write, 0), coalesce(u.cost, 0)
FROM compactions r CROSS JOIN events e ON e.seq = r.seq CROSS JOIN sessions s ON s.key = r.session
LEFT JOIN segments g ON g.key = r.seq LEFT JOIN usage u ON u.seq = r.seq
WHERE NOT EXISTS (SELECT 1 FROM compactions d CROSS JOIN sessions o ON o.key = d.session
	WHERE d.identity = r.identity AND (o.source IS NOT NULL, d.at, o.id, d.seq) < (s.source IS NOT NULL, r.at, s.id, r.seq))`

// Compactions lists compactions, the latest first.
func Compactions(ctx context.Context, c Conn, o WorkOptions) (all []Compaction, err error) {
	where, args := o.where()
	rows, err := c.Rows(ctx, compactionsSQL+where+" ORDER BY r.seq DESC", args...)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	for rows.Next() {
		var p Compaction
		var at int64
		if err := rows.Scan(&p.Session, &p.Entry, &at, &p.TokensBefore, &p.Kept, &p.ByValue,
			&p.Responses, &p.Input, &p.Output, &p.CacheRead, &p.CacheWrite, &p.Cost); err != nil {
			return nil, err
		}
		p.At = time.UnixMilli(at).UTC()
		all = append(all, p)
	}
	return all, rows.Err()
}

// BranchReport says how a session branched.
type BranchReport struct {
	Session  string // id
	Source   string // id of the session that it was forked from here, "" for none
	Forks    int64  // sessions that were forked from it here
	Depth    int64  // entries on the longest way from a root
	Branches []BranchUsage
}

// BranchUsage is a branch with what it has for itself. From is where people turned
// back, the turning point, and the spend is that after it.
type BranchUsage struct {
	BranchSpend
	Split
}

const forkedSQL = `SELECT f.key, coalesce(s.id, ''), (SELECT count(*) FROM sessions o WHERE o.source = f.key)
FROM sessions f LEFT JOIN sessions s ON s.key = f.source WHERE f.id = ?`

// Branches says how a session branched, its leaf's branch first. Branches of
// nothing but moves, labels and names are left out. It fails with
// [eventlog.ErrNotFound].
func Branches(ctx context.Context, c Conn, session string) (report BranchReport, err error) {
	report.Session = session
	var key int64
	ok, err := c.Row(ctx, forkedSQL, []any{session}, &key, &report.Source, &report.Forks)
	if err != nil {
		return report, err
	}
	if !ok {
		return report, eventlog.Errorf(eventlog.NotFound, "Session not found: %s", session)
	}
	t, err := readTree(ctx, c, key)
	if err != nil {
		return report, err
	}
	report.Depth = t.depth()
	parts := t.parts()
	splits := make([]Split, len(parts)+1)
	if err := (UsageOptions{}).bills(ctx, c, key, nil, partOf(parts), splits); err != nil {
		return report, err
	}
	for i, p := range parts {
		b := BranchUsage{BranchSpend: BranchSpend{Session: session}, Split: splits[i]}
		if err := b.fill(ctx, c, key, p); err != nil {
			return report, err
		}
		if b.Tip == "" {
			continue
		}
		report.Branches = append(report.Branches, b)
	}
	return report, nil
}

// depth is the number of entries on the longest way from a root.
func (t tree) depth() (most int64) {
	depths := make([]int64, len(t.runs))
	for i, r := range t.runs {
		above := int64(0)
		if r.parent >= 0 && r.parent < i {
			above = depths[r.parent] - (t.runs[r.parent].last - r.at)
		}
		depths[i] = above + r.last - r.first + 1
		most = max(most, depths[i])
	}
	return most
}

// SessionBranches sums up how one of many sessions branched.
type SessionBranches struct {
	Session  string // id
	Forks    int64  // sessions that were forked from it here
	Depth    int64
	Branches int64 // last entries of branches, that of the leaf too
	GivenUp  int64 // of them that are not the leaf's
	Split
}

const allForksSQL = `SELECT s.id, count(*) FROM sessions f JOIN sessions s ON s.key = f.source GROUP BY s.key`

// forkCounts is how often each session was forked here, by id.
func forkCounts(ctx context.Context, c Conn) (map[string]int64, error) {
	rows, err := c.Rows(ctx, allForksSQL)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	counts := map[string]int64{}
	for rows.Next() {
		var id string
		var n int64
		if err := rows.Scan(&id, &n); err != nil {
			return nil, err
		}
		counts[id] = n
	}
	return counts, rows.Err()
}

// AllBranches sums up the sessions that branched, by what was spent on abandoned
// branches, the most first.
func AllBranches(ctx context.Context, c Conn, o WorkOptions) (all []SessionBranches, err error) {
	usage := UsageOptions{Session: o.Session, CWD: o.CWD, Since: o.Since, Until: o.Until, By: BySession}
	report, err := Usage(ctx, c, usage)
	if err != nil {
		return nil, err
	}
	spent := map[string]Split{}
	for _, r := range report.Rows {
		spent[r.Key] = r.Split
	}
	forks, err := forkCounts(ctx, c)
	if err != nil {
		return nil, err
	}
	sessions, err := usage.asked(ctx, c)
	if err != nil {
		return nil, err
	}
	for _, s := range sessions {
		t, err := readTree(ctx, c, s.key)
		if err != nil {
			return nil, err
		}
		b := SessionBranches{Session: s.id, Forks: forks[s.id], Depth: t.depth(), Split: spent[s.id]}
		parts := t.parts()
		for _, p := range parts {
			tip, err := p.tipID(ctx, c, s.key)
			switch {
			case err != nil:
				return nil, err
			case tip == "":
				continue
			case !p.live:
				b.GivenUp++
			}
			b.Branches++
		}
		if b.Branches > 1 || b.Forks > 0 {
			all = append(all, b)
		}
	}
	slices.SortStableFunc(all, func(a, b SessionBranches) int { return cmp.Compare(b.Abandoned.Cost, a.Abandoned.Cost) })
	return all, nil
}
