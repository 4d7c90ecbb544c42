package sqlitestore_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/sessiontree/sessiontree/eventlog"
	"github.com/sessiontree/sessiontree/eventlog/js"
	"github.com/sessiontree/sessiontree/query"
	"github.com/sessiontree/sessiontree/sqlitestore"
	"github.com/sessiontree/sessiontree/sqlitestore/sqlitestoretest"
)

// madeChain is a chain of entries, two seconds apart, of their bodies.
func madeChain(t *testing.T, bodies ...string) (all []eventlog.Entry) {
	t.Helper()
	parent := "null"
	for i, body := range bodies {
		at := noon.Add(time.Duration(2*i) * time.Second)
		e, err := eventlog.ParseEntry(fmt.Sprintf(`{"id":"e%d","parentId":%s,"timestamp":%q,%s}`, i, parent, js.ISO(at), body))
		require.NoError(t, err)
		all, parent = append(all, e), fmt.Sprintf("%q", e.ID())
	}
	return all
}

func said(role, rest string) string {
	return fmt.Sprintf(`"type":"message","message":{"role":%q%s}`, role, rest)
}

func calls(pairs ...string) string {
	blocks := ""
	for i := 0; i < len(pairs); i += 2 {
		blocks += fmt.Sprintf(`,{"type":"toolCall","id":%q,"name":%q,"arguments":{"a":1}}`, pairs[i], pairs[i+1])
	}
	return said("assistant", `,"content":[`+blocks[1:]+`]`)
}

func result(call string, failed bool, content string) string {
	return said("toolResult", fmt.Sprintf(`,"toolCallId":%q,"isError":%v,"content":%s`, call, failed, content))
}

func TestToolsTurnsAndCompactions(t *testing.T) {
	s := sqlitestoretest.Open(t, sqlitestore.Options{Source: ticking(), Synchronous: sqlitestore.Normal})
	ctx := t.Context()
	_, err := s.Add(ctx, eventlog.Metadata{ID: "s", CreatedAt: js.ISO(noon), CWD: "/x"}, madeChain(t,
		said("user", `,"content":"go"`),
		calls("c1", "edit", "c2", "bash"),
		result("c1", true, `"no"`),
		result("c2", false, `[]`),
		calls("c3", "edit"), // tries again
		result("c3", false, `"yes"`),
		said("user", `,"content":"more"`),
		calls("c4", "edit", "c5", "edit"), // the one before did not fail
		`"type":"compaction","summary":"s","tokensBefore":5000,"firstKeptEntryId":"e6"`,
		`"type":"compaction","summary":"s","tokensBefore":700,"retainedTail":[{"role":"user","content":"x"}]`))
	require.NoError(t, err)
	for range 2 { // a fork and a fork of it change nothing
		want := []query.ToolSpend{
			{Name: "edit", Calls: 4, Failed: 1, Retries: 1, NoResult: 2, InputBytes: 4 * 7, ResultBytes: 4 + 5, Millis: 4000},
			{Name: "bash", Calls: 1, InputBytes: 7, ResultBytes: 2, Millis: 4000},
		}
		tools, err := s.Tools(ctx, query.WorkOptions{})
		require.NoError(t, err)
		require.Equal(t, want, tools)

		turns, err := s.SlowTurns(ctx, query.WorkOptions{Limit: 5})
		require.NoError(t, err)
		require.Equal(t, []query.Turn{
			{Session: "s", Entry: "e0", At: noon, Took: 10 * time.Second, Responses: 2, Calls: 3},
			{Session: "s", Entry: "e6", At: noon.Add(12 * time.Second), Took: 2 * time.Second, Responses: 1, Calls: 2},
		}, turns)

		open, err := s.OpenCalls(ctx, query.WorkOptions{})
		require.NoError(t, err)
		at := noon.Add(14 * time.Second)
		require.Equal(t, []query.OpenCall{{Session: "s", Entry: "e7", Call: "c5", Tool: "edit", At: at}, {Session: "s", Entry: "e7", Call: "c4", Tool: "edit", At: at}}, open)

		compactions, err := s.Compactions(ctx, query.WorkOptions{})
		require.NoError(t, err)
		require.Equal(t, []query.Compaction{
			{Session: "s", Entry: "e9", At: noon.Add(18 * time.Second), TokensBefore: 700, Kept: 1, ByValue: true},
			{Session: "s", Entry: "e8", At: noon.Add(16 * time.Second), TokensBefore: 5000, Kept: 2},
		}, compactions)

		listed, err := s.List(ctx, "")
		require.NoError(t, err)
		fork, err := s.Fork(ctx, listed[0].Metadata, eventlog.ForkOptions{})
		require.NoError(t, err)
		require.NoError(t, fork.Close())
	}
	// Bounds and folders.
	tools, err := s.Tools(ctx, query.WorkOptions{Since: noon.Add(9 * time.Second), Session: "s", CWD: "/x"})
	require.NoError(t, err)
	require.Equal(t, []query.ToolSpend{{Name: "edit", Calls: 2, NoResult: 2, InputBytes: 14}}, tools)
}

func TestReport_K6_BranchesSplitWhatWasSpent(t *testing.T) {
	s := sqlitestoretest.Open(t, sqlitestore.Options{Source: ticking(), Synchronous: sqlitestore.Normal})
	ctx := t.Context()
	session, err := s.Create(ctx, eventlog.CreateOptions{ID: "s"})
	require.NoError(t, err)
	_, err = session.Append(ctx, user("go").WithID("q"), billed("a", 100, noon), user("plan A"), billed("b", 20, noon))
	require.NoError(t, err)
	_, err = session.MoveTo(ctx, eventlog.At("a"), &eventlog.Summary{Text: "A was slow", Usage: usageValue(eventlog.Usage{Input: 3, Cost: 0.003})})
	require.NoError(t, err)
	_, err = session.Append(ctx, user("plan B"), billed("c", 7, noon))
	require.NoError(t, err)
	_, err = session.MoveTo(ctx, eventlog.At("q"), nil)
	require.NoError(t, err)
	_, err = session.Append(ctx, billed("d", 1000, noon))
	require.NoError(t, err)

	r, err := s.Branches(ctx, "s")
	require.NoError(t, err)
	tokens := func(n int64) query.Spend { return query.Spend{Responses: 1, Input: n, Cost: n * 1e6} }
	require.Equal(t, query.BranchReport{Session: "s", Depth: 6, Branches: []query.BranchUsage{
		{BranchSpend: query.BranchSpend{Session: "s", Tip: "d", Live: true, Entries: 2}, Split: query.Split{Live: tokens(1000)}},
		// It has what it shares with the one before, whose last entry is earlier.
		{BranchSpend: query.BranchSpend{Session: "s", Tip: "c", From: "q", Entries: 5}, Split: query.Split{Abandoned: query.Spend{Responses: 2, Input: 107, Cost: 107e6}, BranchSummary: tokens(3)}},
		{BranchSpend: query.BranchSpend{Session: "s", Tip: "b", From: "a", Entries: 3}, Split: query.Split{Abandoned: tokens(20)}},
	}}, r)
	all, err := s.AllBranches(ctx, query.WorkOptions{})
	require.NoError(t, err)
	require.Equal(t, []query.SessionBranches{{Session: "s", Depth: 6, Branches: 3, GivenUp: 2, Split: query.Split{
		Live: tokens(1000), Abandoned: query.Spend{Responses: 3, Input: 127, Cost: 127e6}, BranchSummary: tokens(3)}}}, all)
	requireSums(t, s)
	_, err = s.Branches(ctx, "nobody")
	require.ErrorIs(t, err, eventlog.ErrNotFound)
}
