package sqlitestore_test

import (
	"fmt"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/sessiontree/sessiontree/eventlog"
	"github.com/sessiontree/sessiontree/query"
	"github.com/sessiontree/sessiontree/sqlitestore"
	"github.com/sessiontree/sessiontree/sqlitestore/sqlitestoretest"
)

// requireLive holds what is live and what is abandoned, in tokens, however it is asked
// for, and that a view made from nothing has the same rows.
func requireLive(t *testing.T, s *sqlitestore.Store, live, abandoned int64) {
	t.Helper()
	for _, o := range []query.UsageOptions{
		{}, {By: query.BySession}, {By: query.ByModel}, {By: query.ByBranch}, {By: query.ByDay, Zone: time.UTC},
		{Since: noon.Add(-time.Second), Until: noon.Add(24 * time.Hour)},
	} {
		r, err := s.Usage(t.Context(), o)
		require.NoError(t, err)
		require.Equal(t, []int64{live, abandoned}, []int64{r.Total.Live.Tokens(), r.Total.Abandoned.Tokens()}, "by %q", o.By)
	}
	rows, err := asked(t.Context(), s, "SELECT coalesce(sum(tokens * (class = 'live')), 0), coalesce(sum(tokens * (class = 'abandoned')), 0) FROM v_usage")
	require.NoError(t, err)
	require.Equal(t, []any{live, abandoned}, rows[1])
	problems, err := s.Verify(t.Context())
	require.NoError(t, err)
	require.Empty(t, problems)
}

func billedLine(id, parent string, tokens int) string {
	up := "null"
	if parent != "" {
		up = fmt.Sprintf("%q", parent)
	}
	return fmt.Sprintf(`{"type":"message","id":%q,"parentId":%s,"timestamp":"2026-03-01T12:00:00.000Z","message":{"role":"assistant","content":[],"provider":"acme","model":"coder","usage":{"input":%d,"output":0,"cacheRead":0,"cacheWrite":0,"cost":{"total":0.001}}}}`,
		id, up, tokens)
}

// In a session with an id twice the last entry of it is meant, and no segment tells the
// way.
func TestWhatIsLiveInAnIrregularSession(t *testing.T) {
	s := sqlitestoretest.Open(t, sqlitestore.Options{Source: ticking(), Synchronous: sqlitestore.Normal})
	session, err := s.Create(t.Context(), eventlog.CreateOptions{ID: "s"})
	require.NoError(t, err)
	raw := func(line string) {
		t.Helper()
		e, err := eventlog.ParseEntry(line)
		require.NoError(t, err)
		require.NoError(t, session.Storage().AppendRaw(t.Context(), e))
	}
	move := func(id string) {
		t.Helper()
		_, err := session.MoveTo(t.Context(), eventlog.At(id), nil)
		require.NoError(t, err)
	}
	raw(billedLine("a1", "", 1))
	raw(billedLine("a2", "a1", 2))
	raw(billedLine("a3", "a2", 4))
	requireLive(t, s, 7, 0)
	move("a1")
	requireLive(t, s, 1, 6)
	raw(billedLine("a2", "", 8))
	requireLive(t, s, 8, 7)
	move("a3")
	requireLive(t, s, 12, 3)
	move("a1")
	requireLive(t, s, 1, 14)
	fork, err := s.Fork(t.Context(), eventlog.Metadata{ID: "s"}, eventlog.ForkOptions{CreateOptions: eventlog.CreateOptions{ID: "fork"}})
	require.NoError(t, err)
	_, err = fork.MoveTo(t.Context(), eventlog.At("a3"), nil)
	require.NoError(t, err)
	requireLive(t, s, 13, 2)
	require.NoError(t, s.Delete(t.Context(), eventlog.Metadata{ID: "s"}))
	requireLive(t, s, 12, 3)
}

// A session whose dialect is corrected has another leaf, and may have other segments.
func TestWhatIsLiveFollowsADialectThatIsCorrected(t *testing.T) {
	s := sqlitestoretest.Open(t, sqlitestore.Options{Synchronous: sqlitestore.Normal})
	path := filepath.Join(t.TempDir(), "x.jsonl")
	text := header("x", "") + billedLine("a", "", 1) + "\n" + billedLine("b", "a", 2) + "\n" + billedLine("c", "a", 4) + "\n"
	write(t, path, text)
	importAll(t, s, sqlitestore.ImportOptions{}, path)
	requireLive(t, s, 5, 2)
	write(t, path, text+leafLine("l", "c", "b"))
	importAll(t, s, sqlitestore.ImportOptions{}, path)
	require.Equal(t, "b", leafOf(t, s, "x"))
	requireLive(t, s, 3, 4)
	require.NoError(t, s.Rebuild(t.Context(), "branch"))
	requireLive(t, s, 3, 4)
}

// A leaf that moves over more entries than a transaction takes is followed in several.
func TestALeafThatMovesFar(t *testing.T) {
	s := sqlitestoretest.Open(t, sqlitestore.Options{Source: ticking(), Synchronous: sqlitestore.Normal})
	session, err := s.Create(t.Context(), eventlog.CreateOptions{ID: "s"})
	require.NoError(t, err)
	const entries = 40_000
	var drafts []eventlog.Draft
	for i := range entries {
		drafts = append(drafts, billed(fmt.Sprint("a", i), 1, noon.Add(time.Duration(i)*time.Second)))
	}
	_, err = session.Append(t.Context(), drafts...)
	require.NoError(t, err)
	for i, at := range []int64{99, entries - 100, 20_000} {
		_, err = session.AppendAt(t.Context(), eventlog.At(fmt.Sprint("a", at)), billed(fmt.Sprint("b", i), 1, noon))
		require.NoError(t, err)
		report, err := s.Usage(t.Context(), query.UsageOptions{})
		require.NoError(t, err)
		require.Equal(t, []int64{at + 2, entries - at - 1 + int64(i)}, []int64{report.Total.Live.Responses, report.Total.Abandoned.Responses})
	}
	requireLive(t, s, 20_002, entries-20_001+2)
}
