package sqlitestore_test

import (
	"database/sql"
	"encoding/json"
	"fmt"
	"math"
	"math/rand/v2"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/sessiontree/sessiontree/eventlog"
	"github.com/sessiontree/sessiontree/eventlog/js"
	"github.com/sessiontree/sessiontree/query"
	"github.com/sessiontree/sessiontree/sqlitestore"
	"github.com/sessiontree/sessiontree/sqlitestore/sqlitestoretest"
)

// countByHand counts what sessions spent from their raw lines: another program
// than the views, in another style. Each line is decoded as a whole; what was seen
// with the same id and the same bill is not counted again; what stands on no way
// from a leaf to a root is abandoned.
func countByHand(t *testing.T, s *sqlitestore.Store) (cents map[string]float64, responses int) {
	cents, seen, onWay := map[string]float64{}, map[string]string{}, map[string]bool{}
	spent := map[string]float64{}
	listed, err := s.List(t.Context(), "")
	require.NoError(t, err)
	for _, l := range listed {
		session, err := s.Open(t.Context(), l.Metadata)
		require.NoError(t, err)
		lines, leaf := map[string]map[string]any{}, ""
		for e, err := range session.Entries(t.Context(), 0, math.MaxInt) {
			require.NoError(t, err)
			var line map[string]any
			require.NoError(t, json.Unmarshal([]byte(e.Line()), &line))
			lines[line["id"].(string)], leaf = line, line["id"].(string)
			if line["type"] == "leaf" {
				leaf, _ = line["targetId"].(string)
			}
			bill := line
			if m, ok := line["message"].(map[string]any); ok {
				bill = m
			}
			u, ok := bill["usage"].(map[string]any)
			if !ok {
				continue
			}
			key := fmt.Sprint(line["id"], u)
			seen[key] = fmt.Sprint(line["type"])
			spent[key] = u["cost"].(map[string]any)["total"].(float64)
			line["key"] = key
		}
		for id := leaf; lines[id] != nil; id, _ = lines[id]["parentId"].(string) {
			if key, ok := lines[id]["key"].(string); ok {
				onWay[key] = true
			}
		}
	}
	for key, kind := range seen {
		switch {
		case kind == "compaction" || kind == "branch_summary":
		case onWay[key]:
			kind = "live"
		default:
			kind = "abandoned"
		}
		cents[kind] += spent[key] * 100
	}
	return cents, len(seen)
}

// requireSums holds a report, by whatever it is grouped, against the count by hand.
func requireSums(t *testing.T, s *sqlitestore.Store) query.Split {
	t.Helper()
	cents, responses := countByHand(t, s)
	var total query.Split
	for _, by := range append(query.Groupings(), query.ByNothing) {
		report, err := s.Usage(t.Context(), query.UsageOptions{By: by, Zone: time.UTC})
		require.NoError(t, err)
		var rows query.Split
		for _, r := range report.Rows {
			rows.Add(r.Split)
		}
		require.Equal(t, report.Total, rows, "the rows by %q add up", by)
		require.EqualValues(t, responses, report.Total.Total().Responses)
		for class, spend := range map[string]query.Spend{
			"live": rows.Live, "abandoned": rows.Abandoned, "compaction": rows.Compaction, "branch_summary": rows.BranchSummary,
		} {
			require.InDelta(t, cents[class], float64(spend.Cost)/1e7, 1e-4, "%s by %q, in cents", class, by)
		}
		total = report.Total
	}
	return total
}

func bill(r *rand.Rand) eventlog.Usage {
	return eventlog.Usage{
		Input: float64(r.IntN(3000)), Output: float64(r.IntN(900)), CacheRead: float64(r.IntN(50000)), CacheWrite: float64(r.IntN(700)),
		Cost: float64(r.IntN(1e9)) / 3e9,
	}
}

func usageValue(u eventlog.Usage) js.Value {
	return eventlog.AssistantMessage("", "", "", u, time.UnixMilli(0)).Get("usage")
}

// play appends to sessions at random, forks, imports and deletes them, and holds
// the sums against the count by hand again and again.
func play(t *testing.T, seed uint64) {
	r := rand.New(rand.NewPCG(seed, 1))
	path := filepath.Join(t.TempDir(), "sessions.db")
	s := sqlitestoretest.OpenAt(t, path, sqlitestore.Options{Source: ticking(), Synchronous: sqlitestore.Normal})
	ctx := t.Context()
	var sessions []*eventlog.Session
	add := func(session *eventlog.Session, err error) {
		require.NoError(t, err)
		sessions = append(sessions, session)
	}
	add(s.Create(ctx, eventlog.CreateOptions{ID: "first", CWD: "/a"}))
	for step := range 200 {
		i := r.IntN(len(sessions))
		session := sessions[i]
		meta, err := session.Metadata(ctx)
		require.NoError(t, err)
		var ids []string
		var entries []eventlog.Entry
		for e, err := range session.Entries(ctx, 0, math.MaxInt) {
			require.NoError(t, err)
			ids, entries = append(ids, e.ID()), append(entries, e)
		}
		at := time.Date(2026, 3, 1, 0, step*7, 0, 0, time.UTC)
		model := fmt.Sprint("model-", r.IntN(3))
		switch op := r.IntN(20); {
		case op < 9 || len(ids) < 3:
			_, err = session.Append(ctx, user("go on"), eventlog.MessageDraft(eventlog.AssistantMessage("done", "acme", model, bill(r), at)))
		case op < 11:
			_, err = session.MoveTo(ctx, eventlog.At(ids[r.IntN(len(ids))]), nil)
		case op < 12:
			_, err = session.MoveTo(ctx, eventlog.At(ids[r.IntN(len(ids))]), &eventlog.Summary{Text: "left", Usage: usageValue(bill(r))})
		case op < 13:
			_, err = session.Append(ctx, eventlog.CompactionDraft(eventlog.Compaction{Summary: "s", FirstKeptEntryID: js.Text(ids[r.IntN(len(ids))]), Usage: usageValue(bill(r))}))
		case op < 14:
			_, err = session.Append(ctx, eventlog.UsageDraft(eventlog.UsageEntry{Kind: "cache_warm", Provider: "acme", Model: model, Usage: usageValue(bill(r))}))
		case op < 16 && len(sessions) < 9:
			id := fmt.Sprintf("fork-%c", 'z'-rune(step%26))
			o := eventlog.ForkOptions{CreateOptions: eventlog.CreateOptions{ID: id + fmt.Sprint(step)}}
			if r.IntN(2) == 0 {
				o.EntryID, o.Position = ids[r.IntN(len(ids))], eventlog.AtIt
			}
			var fork *eventlog.Session
			if fork, err = s.Fork(ctx, meta, o); eventlog.CodeOf(err) == eventlog.InvalidSession {
				err = nil // a hole: a branch of a fork that was cut
			} else {
				add(fork, err)
			}
		case op < 17 && len(sessions) < 9:
			add(s.Add(ctx, eventlog.Metadata{ID: fmt.Sprintf("%d-copy", 999-step), CreatedAt: "2026-01-01T00:00:00.000Z", CWD: "/b"}, entries))
		case op < 18 && len(sessions) > 3:
			require.NoError(t, s.Delete(ctx, meta))
			sessions = append(sessions[:i], sessions[i+1:]...)
		}
		require.NoError(t, err)
		if step%20 == 0 {
			requireSums(t, s)
		}
	}
	total := requireSums(t, s)
	requireViews(t, path, total)
	problems, err := s.Verify(ctx)
	require.NoError(t, err)
	require.Empty(t, problems)
	require.NoError(t, s.Rebuild(ctx, "usage"))
	requireSums(t, s)
}

// requireViews holds the views for SQL against a report.
func requireViews(t *testing.T, path string, total query.Split) {
	t.Helper()
	db, err := sql.Open("sqlite", "file:"+path+"?mode=ro&_pragma=busy_timeout(10000)")
	require.NoError(t, err)
	defer db.Close()
	for _, text := range []string{
		"SELECT class, count(*), sum(cost) FROM v_usage GROUP BY class",
		"SELECT class, sum(responses), sum(cost) FROM v_usage_daily GROUP BY class",
	} {
		rows, err := db.Query(text)
		require.NoError(t, err)
		got := map[string]query.Spend{}
		for rows.Next() {
			var class string
			var s query.Spend
			var cost float64
			require.NoError(t, rows.Scan(&class, &s.Responses, &cost))
			s.Cost = int64(math.Round(cost * 1e9))
			got[class] = s
		}
		require.NoError(t, rows.Close())
		for class, want := range map[string]query.Spend{"live": total.Live, "abandoned": total.Abandoned, "compaction": total.Compaction, "branch_summary": total.BranchSummary} {
			require.Equal(t, query.Spend{Responses: want.Responses, Cost: want.Cost}, got[class], "%s: %s", class, text)
		}
	}
	var lag int64
	require.NoError(t, db.QueryRow("SELECT lag FROM v_freshness WHERE view = 'usage'").Scan(&lag))
	require.Zero(t, lag)
	var calls int64
	require.NoError(t, db.QueryRow("SELECT count(*) FROM v_tool_calls").Scan(&calls))
	require.Zero(t, calls, "nobody called a tool")
}

func TestReport_K1_K6_K7_UsageAddsUpToTheCountByHand(t *testing.T) {
	for _, seed := range []uint64{1, 2, 3} {
		t.Run(fmt.Sprint("seed=", seed), func(t *testing.T) { play(t, seed) })
	}
}
