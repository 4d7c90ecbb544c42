package query

import (
	"context"
	"database/sql"
	"flag"
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/pressly/goose/v3"
	"github.com/stretchr/testify/require"
	_ "modernc.org/sqlite"

	"github.com/sessiontree/sessiontree/migrations"
)

var update = flag.Bool("update", false, "write the golden file anew")

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
	for _, q := range []struct {
		name, text string
		sorts      int
	}{
		{"locate", locateSQL, 0},
		{"stop", stopSQL, 0},
		{"hole", holeSQL, 0},
		{"ways", waysSQL, 0},
		{"branch by seqs", seqsSQL, 0},
		{"branch by spans of seqs", spansSQL, 0},
		{"branch by n", entriesSQL, 0},
		{"branch by spans of n", sparseSQL, 0},
		{"entry", entrySQL, 0},
		{"fork", forkSQL, 0},
		{"seq", seqSQL, 0},
		{"the child in the segment", nextInSQL, 0},
		{"children that fork", forksSQL, 0},
		{"what a segment has below", belowSQL, 0},
		{"the first fork", firstForkSQL, 0},
		{"the next fork", nextForkSQL, 0},
		{"the view of ancestors", "SELECT ancestor, distance FROM v_ancestors WHERE entry = ?", 0},
		{"limbs", limbsSQL, 0},
		{"labelled", labelledSQL, 0},
		{"head", leafSQL, 0},
		{"names", namesSQL, 0},
		{"sessions", sessionsSQL, 0},
		{"sessions of a folder", sessionsOfSQL, 0},
		{"all sessions", allSessionsSQL, 0},
	} {
		args := make([]any, strings.Count(q.text, "?"))
		for i := range args {
			if n := i + 1; strings.Contains(q.text, fmt.Sprint("?", n)) {
				args = args[:n]
			}
		}
		for i := range args {
			args[i] = 1
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
				require.Contains(t, []string{"w", "way", "up", "s", "CONSTANT ROW", "r VIRTUAL TABLE INDEX 1:", "way VIRTUAL TABLE INDEX 1:"}, table, "%s scans a table", q.name)
			}
			if strings.Contains(step, "TEMP B-TREE") {
				sorts++
			}
		}
		require.NoError(t, rows.Err())
		require.NoError(t, rows.Close())
		require.Equal(t, q.sorts, sorts, "%s sorts", q.name)
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
