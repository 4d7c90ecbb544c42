package query

import (
	"context"
	"database/sql"
	"flag"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/pressly/goose/v3"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	_ "modernc.org/sqlite"

	"github.com/sessiontree/sessiontree/migrations"
)

var update = flag.Bool("update", false, "write the golden file anew")

// planned is a query with what its plan may do.
type planned struct {
	name, text string
	args       []any // nil: a one for each
	sorts      int
	scans      []string // beside walks of what was made for the query
}

// ones are arguments for a query, which do not matter for its plan.
func ones(text string) []any {
	args := make([]any, strings.Count(text, "?"))
	for i := range args {
		if n := i + 1; strings.Contains(text, fmt.Sprint("?", n)) {
			args = args[:n]
		}
	}
	for i := range args {
		args[i] = 1
	}
	return args
}

// analytics are the queries of reports. Those about all of a database read all rows of
// the smallest table that has the answer; those about a session or a time none else.
func analytics() (all []planned) {
	day := time.Date(2026, 3, 1, 0, 0, 0, 0, time.UTC)
	usage := func(name string, o UsageOptions, sorts int, scans ...string) {
		text, args := o.sumsSQL()
		all = append(all, planned{name: "usage " + name, text: text, args: args, sorts: sorts, scans: scans})
	}
	usage("in all", UsageOptions{}, 1, "r")
	usage("by model", UsageOptions{By: ByModel}, 1, "r")
	usage("of a session by model", UsageOptions{By: ByModel, Session: "s"}, 0)
	usage("by model since a day", UsageOptions{By: ByModel, Since: day}, 1)
	usage("by session within a day", UsageOptions{By: BySession, Since: day, Until: day.AddDate(0, 0, 1)}, 1)
	usage("by model since a moment", UsageOptions{By: ByModel, Since: day.Add(time.Second)}, 1, "r")
	work := func(name, text, end string, o WorkOptions, sorts int, scans ...string) {
		where, args := o.where()
		if strings.Contains(end, "?") {
			args = append(args, o.limit())
		}
		all = append(all, planned{name: name, text: text + where + end, args: args, sorts: sorts, scans: scans})
	}
	const (
		turns       = " ORDER BY r.millis DESC, r.seq DESC LIMIT ?"
		calls       = " ORDER BY r.seq DESC, r.idx DESC LIMIT ?"
		compactions = " ORDER BY r.seq DESC"
	)
	tools := func(name string, o WorkOptions, sorts int, scans ...string) {
		text, args := o.toolsSQL()
		all = append(all, planned{name: "tools " + name, text: text, args: args, sorts: sorts, scans: scans})
	}
	tools("in all", WorkOptions{}, 2, "r")
	tools("of a session", WorkOptions{Session: "s"}, 2)
	tools("of a folder", WorkOptions{CWD: "/x"}, 2)
	tools("since a day", WorkOptions{Since: day}, 2, "r")
	tools("within a part of a day", WorkOptions{Since: day, Until: day.Add(time.Hour)}, 2)
	tools("from one part of a day to another", WorkOptions{Since: day.Add(time.Hour), Until: day.Add(100 * time.Hour)}, 2, "r", "part")
	tools("of a session from one part of a day to another", WorkOptions{Session: "s", Since: day.Add(time.Hour), Until: day.Add(100 * time.Hour)}, 2, "part")
	work("slow turns", slowTurnsSQL, turns, WorkOptions{}, 0, "r USING INDEX turns_by_length")
	work("slow turns of a session", slowTurnsSQL, turns, WorkOptions{Session: "s"}, 1)
	work("slow turns since a day", slowTurnsSQL, turns, WorkOptions{Since: day}, 1)
	work("open calls", openCallsSQL, calls, WorkOptions{}, 0, "r")
	work("open calls of a session", openCallsSQL, calls, WorkOptions{Session: "s"}, 1)
	work("compactions", compactionsSQL, compactions, WorkOptions{}, 0, "r")
	work("compactions of a session", compactionsSQL, compactions, WorkOptions{Session: "s"}, 0)
	return append(all,
		planned{name: "usage by periods", text: timesSQL, sorts: 1, scans: []string{"p VIRTUAL TABLE INDEX 1:"}},
		planned{name: "the first and the last bucket", text: timesRangeSQL},
		planned{name: "the bills of a session", text: sessionBillsSQL},
		planned{name: "for which leaf the sums of a session hold", text: standingSQL},
		planned{name: "what is live of a session", text: liveSQL},
		planned{name: "what is live of an irregular session", text: walksSQL},
		planned{name: "the sessions of a folder", text: usageFolderSQL},
		planned{name: "the tip of a branch", text: tipSQL},
		planned{name: "copies", text: copiesSQL, sorts: 2, scans: []string{"c", "c USING INDEX usage_by_session"}},
		planned{name: "forks of a session", text: forkedSQL, scans: []string{"o"}},
		planned{name: "the newest hits", text: newestHitsSQL, scans: []string{"d", "search VIRTUAL TABLE INDEX 192:M7<"}},
		planned{name: "the best hits", text: bestHitsSQL, sorts: 1, scans: []string{"d", "search VIRTUAL TABLE INDEX 0:M7"}},
		planned{name: "whether hits are live", text: climbsSQL, scans: []string{"u", "up"}},
		planned{name: "where an entry stands", text: placeSQL},
		planned{name: "what a fork was made of", text: forkOfSQL},
		planned{name: "whether an entry is a copy", text: isCopySQL},
		planned{name: "v_sessions, a page", text: "SELECT session FROM v_sessions ORDER BY active DESC LIMIT 10", scans: []string{"c USING INDEX catalog_by_activity", "c USING COVERING INDEX catalog_by_activity"}},
		planned{name: "v_sessions since a time", text: "SELECT session FROM v_sessions WHERE active >= ?"},
		planned{name: "v_sessions of a folder", text: "SELECT session FROM v_sessions WHERE cwd = ? ORDER BY active DESC"},
		planned{name: "v_messages of a session", text: "SELECT * FROM v_messages WHERE session = ? AND role = 'user'", scans: []string{"b VIRTUAL TABLE INDEX 3:"}},
		planned{name: "v_entries of a session", text: "SELECT * FROM v_entries WHERE session = ? ORDER BY n"},
		planned{name: "v_labels of a session", text: "SELECT * FROM v_labels WHERE session = ?"},
		planned{name: "v_live of a session", text: "SELECT * FROM v_live WHERE session = ?"},
		planned{name: "v_branches of a session", text: "SELECT * FROM v_branches WHERE session = ?"},
		planned{name: "v_usage of a session", text: "SELECT * FROM v_usage WHERE session = ?"},
		planned{name: "v_usage since a time", text: "SELECT sum(cost) FROM v_usage WHERE at >= ?"},
		planned{name: "v_usage, all of it", text: "SELECT class, sum(cost) FROM v_usage GROUP BY class", sorts: 1, scans: []string{"u", "m"}},
		planned{name: "v_tool_calls, all of them", text: "SELECT tool, count(*) FROM v_tool_calls GROUP BY tool", sorts: 1, scans: []string{"c"}},
		planned{name: "v_tool_calls of a session", text: "SELECT * FROM v_tool_calls WHERE session = ?"},
		planned{name: "v_tool_calls since a time", text: "SELECT count(*) FROM v_tool_calls WHERE at >= ?"},
		planned{name: "v_turns of a session", text: "SELECT * FROM v_turns WHERE session = ?"},
		planned{name: "v_turns since a time", text: "SELECT count(*) FROM v_turns WHERE at >= ?"},
		planned{name: "v_turns, the longest", text: "SELECT * FROM v_turns ORDER BY millis DESC LIMIT 10", scans: []string{"t USING INDEX turns_by_length"}},
		planned{name: "v_compactions of a session", text: "SELECT * FROM v_compactions WHERE session = ?"},
	)
}

// TestEveryQueryIsIndexed holds the plan of each query against a golden file: a
// changed plan is looked at by a person. Two things are never allowed: a scan of
// a table, and a sort of more than the ranges of a branch.
func TestEveryQueryIsIndexed(t *testing.T) {
	ctx := context.Background()
	db, err := sql.Open("sqlite", ":memory:")
	require.NoError(t, err)
	defer db.Close()
	db.SetMaxOpenConns(1)
	provider, err := goose.NewProvider(goose.DialectSQLite3, db, migrations.FS)
	require.NoError(t, err)
	_, err = provider.Up(ctx)
	require.NoError(t, err)

	var plans strings.Builder
	queries := []planned{
		{name: "locate", text: locateSQL},
		{name: "stop", text: stopSQL},
		{name: "hole", text: holeSQL},
		{name: "ways", text: waysSQL},
		{name: "branch by seqs", text: seqsSQL},
		{name: "branch by spans of seqs", text: spansSQL},
		{name: "branch by n", text: entriesSQL},
		{name: "branch by spans of n", text: sparseSQL},
		{name: "entry", text: entrySQL},
		{name: "fork", text: forkSQL},
		{name: "seq", text: seqSQL},
		{name: "the child in the segment", text: nextInSQL},
		{name: "children that fork", text: forksSQL},
		{name: "what a segment has below", text: belowSQL},
		{name: "the first fork", text: firstForkSQL},
		{name: "the next fork", text: nextForkSQL},
		{name: "the view of ancestors", text: "SELECT ancestor, distance FROM v_ancestors WHERE entry = ?"},
		{name: "limbs", text: limbsSQL},
		{name: "labelled", text: labelledSQL},
		{name: "head", text: leafSQL},
		{name: "names", text: namesSQL},
		{name: "sessions", text: sessionsSQL},
		{name: "sessions of a folder", text: sessionsOfSQL},
		{name: "all sessions", text: allSessionsSQL},
	}
	queries = append(queries, analytics()...)
	for _, q := range queries {
		args := q.args
		if args == nil {
			args = ones(q.text)
		}
		rows, err := db.Query("EXPLAIN QUERY PLAN "+q.text, args...)
		require.NoError(t, err, q.name)
		fmt.Fprintf(&plans, "%s\n", q.name)
		sorts := 0
		for rows.Next() {
			var id, parent, unused int
			var step string
			require.NoError(t, rows.Scan(&id, &parent, &unused, &step))
			fmt.Fprintf(&plans, "    %s\n", step)
			if table, ok := strings.CutPrefix(step, "SCAN "); ok {
				assert.Contains(t, append([]string{"w", "way", "up", "s", "CONSTANT ROW", "r VIRTUAL TABLE INDEX 1:", "way VIRTUAL TABLE INDEX 1:"}, q.scans...), table, "%s scans a table", q.name)
			}
			if strings.Contains(step, "TEMP B-TREE") {
				sorts++
			}
		}
		require.NoError(t, rows.Err())
		require.NoError(t, rows.Close())
		assert.Equal(t, q.sorts, sorts, "%s sorts", q.name)
	}
	const golden = "testdata/plans.golden"
	if *update {
		require.NoError(t, os.MkdirAll("testdata", 0o755))
		require.NoError(t, os.WriteFile(golden, []byte(plans.String()), 0o644))
	}
	want, err := os.ReadFile(golden)
	require.NoError(t, err)
	require.Equal(t, string(want), plans.String())
}
