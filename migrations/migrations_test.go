package migrations_test

import (
	"database/sql"
	"fmt"
	"io/fs"
	"regexp"
	"strings"
	"testing"

	"github.com/pressly/goose/v3"
	"github.com/stretchr/testify/require"
	_ "modernc.org/sqlite"

	"github.com/sessiontree/sessiontree/migrations"
)

func newDB(t *testing.T) (*sql.DB, *goose.Provider) {
	t.Helper()
	db, err := sql.Open("sqlite", ":memory:")
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, db.Close()) })
	db.SetMaxOpenConns(1)
	p, err := goose.NewProvider(goose.DialectSQLite3, db, migrations.FS, goose.WithLogger(goose.NopLogger()), goose.WithDisableGlobalRegistry(true))
	require.NoError(t, err)
	return db, p
}

// schemaOf is all that was made, without goose's own table and SQLite's.
func schemaOf(t *testing.T, db *sql.DB) (objects []string) {
	t.Helper()
	rows, err := db.Query(`
		SELECT type, name, coalesce(sql, '') FROM sqlite_schema
		WHERE tbl_name NOT IN ('goose_db_version', 'sqlite_sequence') AND name NOT GLOB 'sqlite_stat*' ORDER BY type, name`)
	require.NoError(t, err)
	defer rows.Close()
	for rows.Next() {
		var kind, name, text string
		require.NoError(t, rows.Scan(&kind, &name, &text))
		objects = append(objects, kind+" "+name+": "+text)
	}
	require.NoError(t, rows.Err())
	return objects
}

func files(t *testing.T) []string {
	t.Helper()
	names, err := fs.Glob(migrations.FS, "*")
	require.NoError(t, err)
	require.NotEmpty(t, names)
	return names
}

func TestMigrationsAreNumberedWithoutGaps(t *testing.T) {
	for i, name := range files(t) {
		require.Regexp(t, fmt.Sprintf(`^%05d_[a-z0-9_]+\.sql$`, i+1), name)
	}
}

func TestEveryMigrationGoesBothWaysInOneTransaction(t *testing.T) {
	for _, name := range files(t) {
		data, err := fs.ReadFile(migrations.FS, name)
		require.NoError(t, err)
		text := string(data)
		require.Equal(t, 1, strings.Count(text, "-- +goose Up\n"), name)
		require.Equal(t, 1, strings.Count(text, "-- +goose Down\n"), name)
		require.NotContains(t, text, "NO TRANSACTION", name)
		require.NotRegexp(t, regexp.MustCompile(`(?im)^\s*(PRAGMA|ATTACH|VACUUM|BEGIN TRANSACTION|COMMIT)\b`), text, name)
	}
}

func TestUpDownUp(t *testing.T) {
	db, p := newDB(t)
	last := int64(len(files(t)))
	states := [][]string{schemaOf(t, db)}
	require.Empty(t, states[0])
	for v := range last { // one at a time up
		_, err := p.UpTo(t.Context(), v+1)
		require.NoError(t, err)
		states = append(states, schemaOf(t, db))
		require.NotEqual(t, states[v], states[v+1], "migration %d does something", v+1)
	}
	for v := last - 1; v >= 0; v-- { // and down
		_, err := p.DownTo(t.Context(), v)
		require.NoError(t, err)
		require.Equal(t, states[v], schemaOf(t, db), "down to %d", v)
	}
	_, err := p.Up(t.Context())
	require.NoError(t, err)
	require.Equal(t, states[last], schemaOf(t, db))

	fresh, p := newDB(t)
	_, err = p.Up(t.Context())
	require.NoError(t, err)
	require.Equal(t, schemaOf(t, fresh), schemaOf(t, db), "upgraded step by step is as made in one go")
	version, err := p.GetDBVersion(t.Context())
	require.NoError(t, err)
	require.Equal(t, last, version)
}

func TestEveryTableIsStrictAndEveryViewCanBeRead(t *testing.T) {
	db, p := newDB(t)
	_, err := p.Up(t.Context())
	require.NoError(t, err)
	var views int
	for _, object := range schemaOf(t, db) {
		head, text, _ := strings.Cut(object, ": ")
		kind, name, _ := strings.Cut(head, " ")
		switch kind {
		case "table":
			if !strings.HasPrefix(text, "CREATE VIRTUAL") && !strings.HasPrefix(text, "CREATE TABLE '") { // FTS5's own
				require.Regexp(t, `(?s)\)\s*STRICT(, WITHOUT ROWID)?$`, text, name)
			}
		case "view":
			views++
			rows, err := db.Query("SELECT * FROM " + name)
			require.NoError(t, err, name)
			require.False(t, rows.Next(), name)
			require.NoError(t, rows.Err(), name)
			require.NoError(t, rows.Close())
		}
	}
	require.Positive(t, views)
}
