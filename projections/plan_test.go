package projections

import (
	"database/sql"
	"testing"

	"github.com/pressly/goose/v3"
	"github.com/stretchr/testify/require"
	_ "modernc.org/sqlite"

	"github.com/sessiontree/sessiontree/migrations"
)

// What is asked for each entry that is applied goes by an index.
func TestPlacingAnEntryScansNothing(t *testing.T) {
	db, err := sql.Open("sqlite", ":memory:")
	require.NoError(t, err)
	defer db.Close()
	db.SetMaxOpenConns(1)
	provider, err := goose.NewProvider(goose.DialectSQLite3, db, migrations.FS)
	require.NoError(t, err)
	_, err = provider.Up(t.Context())
	require.NoError(t, err)
	for _, q := range []struct {
		text string
		args []any
		plan []string
	}{
		{findSQL, []any{1, "a", 2}, []string{
			"SEARCH e USING INDEX events_by_id (session=? AND id=? AND rowid<?)",
			"SEARCH s USING INTEGER PRIMARY KEY (rowid=?)",
			"CORRELATED SCALAR SUBQUERY 1",
			"SEARCH segments USING COVERING INDEX segments_by_session (session=? AND rowid<?)",
		}},
		{suspectSQL, []any{1, 2, 3, 4}, []string{
			"SEARCH e USING INDEX events_by_n (session=? AND n>? AND n<?)",
			"SEARCH before USING COVERING INDEX events_by_id (session=? AND id=? AND rowid<?)",
		}},
	} {
		rows, err := db.Query("EXPLAIN QUERY PLAN "+q.text, q.args...)
		require.NoError(t, err)
		var plan []string
		for rows.Next() {
			var id, parent, unused int
			var step string
			require.NoError(t, rows.Scan(&id, &parent, &unused, &step))
			plan = append(plan, step)
		}
		require.NoError(t, rows.Close())
		require.Equal(t, q.plan, plan)
	}
}
