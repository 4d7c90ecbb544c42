package sqlitestore_test

import (
	"database/sql"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/sessiontree/sessiontree/eventlog"
	"github.com/sessiontree/sessiontree/query"
	"github.com/sessiontree/sessiontree/sqlitestore"
	"github.com/sessiontree/sessiontree/sqlitestore/sqlitestoretest"
)

// billed is an assistant message of so many tokens, which costs a tenth of a
// cent each.
func billed(id string, tokens int, at time.Time) eventlog.Draft {
	u := eventlog.Usage{Input: float64(tokens), Cost: float64(tokens) / 1000}
	return eventlog.MessageDraft(eventlog.AssistantMessage("done", "acme", "coder", u, at)).WithID(id).WithTime(at)
}

func usageBy(t *testing.T, s *sqlitestore.Store, o query.UsageOptions) map[string]int64 {
	t.Helper()
	report, err := s.Usage(t.Context(), o)
	require.NoError(t, err)
	tokens := map[string]int64{}
	for _, r := range report.Rows {
		tokens[r.Key] = r.Total().Tokens()
	}
	return tokens
}

var noon = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

func TestReport_K1_ForksAddOnlyWhatIsNew(t *testing.T) {
	s := sqlitestoretest.Open(t, sqlitestore.Options{Source: ticking(), Synchronous: sqlitestore.Normal})
	ctx := t.Context()
	root, err := s.Create(ctx, eventlog.CreateOptions{ID: "root"})
	require.NoError(t, err)
	_, err = root.Append(ctx, user("go"), billed("a1", 100, noon))
	require.NoError(t, err)
	for i := range 3 {
		fork, err := s.Fork(ctx, eventlog.Metadata{ID: "root"}, eventlog.ForkOptions{CreateOptions: eventlog.CreateOptions{ID: fmt.Sprint("fork", i)}})
		require.NoError(t, err)
		_, err = fork.Append(ctx, billed(fmt.Sprint("b", i), 7, noon))
		require.NoError(t, err)
	}
	bySession := query.UsageOptions{By: query.BySession}
	require.Equal(t, map[string]int64{"root": 100, "fork0": 7, "fork1": 7, "fork2": 7}, usageBy(t, s, bySession))

	copies, err := s.UsageCopies(ctx)
	require.NoError(t, err)
	require.Equal(t, query.CopiedSpend{Session: "fork0", Owner: "root", Spend: query.Spend{Responses: 1, Input: 100, Cost: 1e8}}, copies[0])

	// What a living fork shows is not lost with its owner.
	require.NoError(t, s.Delete(ctx, eventlog.Metadata{ID: "root"}))
	require.Equal(t, map[string]int64{"fork0": 107, "fork1": 7, "fork2": 7}, usageBy(t, s, bySession))
	require.NoError(t, s.Delete(ctx, eventlog.Metadata{ID: "fork0"}))
	require.Equal(t, map[string]int64{"fork1": 107, "fork2": 7}, usageBy(t, s, bySession))
}

func TestReport_K3_TheTotalNeverFalls(t *testing.T) {
	s := sqlitestoretest.Open(t, sqlitestore.Options{Source: ticking(), Synchronous: sqlitestore.Normal})
	ctx := t.Context()
	session, err := s.Create(ctx, eventlog.CreateOptions{ID: "s"})
	require.NoError(t, err)
	spend := func() (tokens, live, abandoned int64) {
		r, err := s.Usage(ctx, query.UsageOptions{})
		require.NoError(t, err)
		return r.Total.Total().Tokens(), r.Total.Live.Tokens(), r.Total.Abandoned.Tokens()
	}
	requireSpend := func(tokens, live, abandoned int64) {
		t.Helper()
		a, b, c := spend()
		require.Equal(t, []int64{tokens, live, abandoned}, []int64{a, b, c})
	}
	_, err = session.Append(ctx, user("go"), billed("a1", 100, noon), user("plan A"), billed("a2", 50, noon))
	require.NoError(t, err)
	requireSpend(150, 150, 0)
	_, err = session.MoveTo(ctx, eventlog.At("a1"), nil)
	require.NoError(t, err)
	requireSpend(150, 100, 50)
	_, err = session.Append(ctx, eventlog.CompactionDraft(eventlog.Compaction{Summary: "short"}), billed("a3", 5, noon))
	require.NoError(t, err)
	requireSpend(155, 105, 50)
	// The plan that was given up lives on in a fork.
	fork, err := s.Fork(ctx, eventlog.Metadata{ID: "s"}, eventlog.ForkOptions{EntryID: "a2", Position: eventlog.AtIt})
	require.NoError(t, err)
	requireSpend(155, 155, 0)
	_, err = fork.MoveTo(ctx, eventlog.None(), nil)
	require.NoError(t, err)
	requireSpend(155, 105, 50)
	_, err = session.MoveTo(ctx, eventlog.At("a2"), nil)
	require.NoError(t, err)
	requireSpend(155, 150, 5)
}

// The owner is the same in whatever order sessions came.
func TestTheOrderOfImportsDoesNotMatter(t *testing.T) {
	line := func(at time.Time) eventlog.Entry {
		e, err := eventlog.ParseEntry(fmt.Sprintf(`{"type":"message","id":"a1","parentId":null,"timestamp":%q,"message":{"role":"assistant","content":[],"provider":"p","model":"m","usage":{"input":9,"output":0,"cacheRead":0,"cacheWrite":0,"cost":{"total":1}}}}`, at.Format(time.RFC3339)))
		require.NoError(t, err)
		return e
	}
	at := map[string]time.Time{"late": noon.Add(time.Hour), "b": noon, "c": noon}
	for _, order := range [][]string{{"late", "b", "c"}, {"c", "late", "b"}, {"b", "c", "late"}, {"c", "b", "late"}} {
		s := sqlitestoretest.Open(t, sqlitestore.Options{Synchronous: sqlitestore.Normal})
		for _, id := range order {
			_, err := s.Add(t.Context(), eventlog.Metadata{ID: id, CreatedAt: "2026-03-01T00:00:00.000Z"}, []eventlog.Entry{line(at[id])})
			require.NoError(t, err)
			_, err = s.Usage(t.Context(), query.UsageOptions{}) // each is applied by itself
			require.NoError(t, err)
		}
		bySession := query.UsageOptions{By: query.BySession}
		require.Equal(t, map[string]int64{"b": 9}, usageBy(t, s, bySession), "%v", order)
		require.NoError(t, s.Delete(t.Context(), eventlog.Metadata{ID: "b"}))
		require.Equal(t, map[string]int64{"c": 9}, usageBy(t, s, bySession), "%v", order)
		require.NoError(t, s.Delete(t.Context(), eventlog.Metadata{ID: "c"}))
		require.Equal(t, map[string]int64{"late": 9}, usageBy(t, s, bySession), "%v", order)
	}
}

// Days are those of the zone, those on which clocks are changed too.
func TestReport_J4_DaysAreThoseOfTheZone(t *testing.T) {
	zone, err := time.LoadLocation("America/New_York")
	require.NoError(t, err)
	s := sqlitestoretest.Open(t, sqlitestore.Options{Synchronous: sqlitestore.Normal})
	session, err := s.Create(t.Context(), eventlog.CreateOptions{ID: "s"})
	require.NoError(t, err)
	// On March 8, 2026 the clocks there went from 2 to 3, on November 1 from 2 to 1.
	for i, at := range []time.Time{
		time.Date(2026, 3, 7, 23, 30, 0, 0, zone), // the next day in UTC
		time.Date(2026, 3, 8, 0, 0, 0, 0, zone),
		time.Date(2026, 3, 8, 23, 59, 59, 0, zone),
		time.Date(2026, 3, 9, 0, 0, 0, 0, zone),
		time.Date(2026, 11, 1, 0, 0, 0, 0, zone),
		time.Date(2026, 11, 1, 5, 30, 0, 0, time.UTC), // 1:30
		time.Date(2026, 11, 1, 6, 30, 0, 0, time.UTC), // 1:30 again
		time.Date(2026, 11, 1, 23, 59, 59, 0, zone),
		time.Date(2026, 11, 2, 0, 0, 0, 0, zone),
	} {
		_, err := session.Append(t.Context(), billed(fmt.Sprint("a", i), 1<<i, at))
		require.NoError(t, err)
	}
	day := query.UsageOptions{By: query.ByDay, Zone: zone}
	require.Equal(t, map[string]int64{"2026-03-07": 1, "2026-03-08": 2 + 4, "2026-03-09": 8, "2026-11-01": 16 + 32 + 64 + 128, "2026-11-02": 256}, usageBy(t, s, day))
	require.Equal(t, map[string]int64{"2026-03-02": 1 + 2 + 4, "2026-03-09": 8, "2026-10-26": 16 + 32 + 64 + 128, "2026-11-02": 256}, usageBy(t, s, query.UsageOptions{By: query.ByWeek, Zone: zone}))
	require.Equal(t, map[string]int64{"2026-03": 15, "2026-11": 496}, usageBy(t, s, query.UsageOptions{By: query.ByMonth, Zone: zone}))

	// A day of 25 hours as bounds; bounds that are not on a quarter of an hour.
	from := time.Date(2026, 11, 1, 0, 0, 0, 0, zone)
	day.Since, day.Until = from, from.AddDate(0, 0, 1)
	require.Equal(t, map[string]int64{"2026-11-01": 16 + 32 + 64 + 128}, usageBy(t, s, day))
	day.Since, day.Until = from.Add(1), time.Date(2026, 11, 1, 23, 59, 59, 0, zone)
	require.Equal(t, map[string]int64{"2026-11-01": 32 + 64}, usageBy(t, s, day))
	day.Until = day.Until.Add(time.Nanosecond)
	require.Equal(t, map[string]int64{"2026-11-01": 32 + 64 + 128}, usageBy(t, s, day))
}

// Periods that are counted off and periods that are found for each moment are the
// same, where clocks are changed at night, at midnight, by half an hour, and where
// a day was left out.
func TestPeriodsAreThoseOfEachMoment(t *testing.T) {
	s := sqlitestoretest.Open(t, sqlitestore.Options{Synchronous: sqlitestore.Normal})
	session, err := s.Create(t.Context(), eventlog.CreateOptions{ID: "s"})
	require.NoError(t, err)
	for name, at := range map[string]time.Time{
		"America/Sao_Paulo":   time.Date(2018, 11, 4, 3, 0, 0, 0, time.UTC),
		"America/Havana":      time.Date(2025, 11, 2, 5, 0, 0, 0, time.UTC),
		"Australia/Lord_Howe": time.Date(2026, 4, 4, 15, 0, 0, 0, time.UTC),
		"Pacific/Apia":        time.Date(2011, 12, 30, 10, 0, 0, 0, time.UTC),
		"Asia/Kathmandu":      time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC),
	} {
		zone, err := time.LoadLocation(name)
		require.NoError(t, err)
		var drafts []eventlog.Draft
		for i := -200; i < 200; i++ {
			drafts = append(drafts, billed(fmt.Sprint(name, i), 1, at.Add(time.Duration(i)*15*time.Minute)))
		}
		_, err = session.Append(t.Context(), drafts...)
		require.NoError(t, err)
		for _, by := range []query.Grouping{query.ByDay, query.ByWeek, query.ByMonth} {
			counted := usageBy(t, s, query.UsageOptions{By: by, Zone: zone})
			require.Equal(t, usageBy(t, s, query.UsageOptions{By: by, Zone: zone, Model: "coder"}), counted, "%s by %s", name, by)
		}
	}
}

// A store that only reads answers from all of the log, whoever left its views
// behind, and leaves the file as it is.
func TestUsageOfAStoreThatOnlyReads(t *testing.T) {
	path := t.TempDir() + "/sessions.db"
	s, err := sqlitestore.Open(t.Context(), path, sqlitestore.Options{})
	require.NoError(t, err)
	session, err := s.Create(t.Context(), eventlog.CreateOptions{ID: "s"})
	require.NoError(t, err)
	_, err = session.Append(t.Context(), billed("a1", 5, noon))
	require.NoError(t, err)
	require.NoError(t, s.Close(t.Context()))
	execRaw(t, path, "DELETE FROM usage", "DELETE FROM usage_rollup", "DELETE FROM checkpoints WHERE projection = 'usage'")

	reading, err := sqlitestore.Open(t.Context(), path, sqlitestore.Options{ReadOnly: true})
	require.NoError(t, err)
	for range 2 {
		require.Equal(t, map[string]int64{"": 5}, usageBy(t, reading, query.UsageOptions{}))
	}
	health, err := reading.Health(t.Context())
	require.NoError(t, err)
	for _, v := range health.Views {
		require.Equal(t, v.Name == "usage", v.Lag > 0, v.Name)
	}
	require.NoError(t, reading.Close(t.Context()))
}

// execRaw writes into a database past the store.
func execRaw(t *testing.T, path string, statements ...string) {
	t.Helper()
	db, err := sql.Open("sqlite", "file:"+path+"?_pragma=busy_timeout(10000)")
	require.NoError(t, err)
	for _, statement := range statements {
		_, err := db.ExecContext(t.Context(), statement)
		require.NoError(t, err)
	}
	require.NoError(t, db.Close())
}

// What a context holds is read off the branch of the leaf, not off the last line.
func TestReport_K5_AContextIsMeasuredAtTheLeaf(t *testing.T) {
	for _, dialect := range []eventlog.Dialect{eventlog.Harness, eventlog.CodingAgent} {
		t.Run(dialect.String(), func(t *testing.T) {
			s := sqlitestoretest.Open(t, sqlitestore.Options{Source: ticking(), Synchronous: sqlitestore.Normal})
			ctx := t.Context()
			session, err := s.Create(ctx, eventlog.CreateOptions{ID: "s", Dialect: dialect})
			require.NoError(t, err)
			measure := func() (context, live int64) {
				seen, err := session.BuildContext(ctx, eventlog.None())
				require.NoError(t, err)
				for _, m := range seen.Messages {
					if a, ok := m.AsAssistant(); ok {
						context = int64(a.Usage.Input) // of the latest response
					}
				}
				r, err := s.Usage(ctx, query.UsageOptions{Session: "s"})
				require.NoError(t, err)
				last, err := asked(ctx, s, "SELECT u.input FROM v_live l JOIN v_usage u ON u.session = l.session AND u.n = l.n ORDER BY l.depth DESC LIMIT 1")
				require.NoError(t, err)
				require.Equal(t, context, last[1][0], "the views for SQL say the same")
				return context, r.Total.Live.Tokens()
			}
			requireMeasure := func(context, live int64) {
				t.Helper()
				a, b := measure()
				require.Equal(t, []int64{context, live}, []int64{a, b})
			}
			_, err = session.Append(ctx, user("go"), billed("a1", 100, noon), user("plan A").WithID("q2"), billed("a2", 90_000, noon))
			require.NoError(t, err)
			requireMeasure(90_000, 90_100)
			_, err = session.MoveTo(ctx, eventlog.At("a1"), nil)
			require.NoError(t, err)
			requireMeasure(100, 100)
			_, err = session.Append(ctx, user("plan B"), billed("b1", 150, noon))
			require.NoError(t, err)
			requireMeasure(150, 250)
			_, err = session.MoveTo(ctx, eventlog.At("a2"), nil)
			require.NoError(t, err)
			requireMeasure(90_000, 90_100)
		})
	}
}
