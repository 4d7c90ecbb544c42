package eventlog_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/sessiontree/sessiontree/eventlog"
	"github.com/sessiontree/sessiontree/eventlog/js"
	"github.com/sessiontree/sessiontree/eventlog/jsonl"
	"github.com/sessiontree/sessiontree/eventlog/memory"
)

// toolCall is an assistant's message that calls a tool; toolResult answers it.
func toolCall(id, parent string) string {
	return entry("message", id, parent, `"message":{"role":"assistant","content":[{"type":"toolCall","id":"call-1","name":"read","arguments":{"path":"x.go"}}],"provider":"acme","model":"m-1","timestamp":2}`)
}

func toolResult(id, parent string) string {
	return entry("message", id, parent, `"message":{"role":"toolResult","toolCallId":"call-1","toolName":"read","content":[{"type":"text","text":"result"}],"isError":false,"timestamp":3}`)
}

func compaction(id, parent, summary, kept string) string {
	fields := fmt.Sprintf(`"summary":%q,"tokensBefore":10`, summary)
	if kept != "" {
		fields = fmt.Sprintf(`"summary":%q,"firstKeptEntryId":%q,"tokensBefore":10`, summary, kept)
	}
	return entry("compaction", id, parent, fields)
}

// eachRepo runs a test against an empty repository of each backend.
func eachRepo(t *testing.T, test func(t *testing.T, repo eventlog.Repo)) {
	t.Run("memory", func(t *testing.T) { test(t, memory.NewRepo(steady())) })
	t.Run("jsonl", func(t *testing.T) {
		test(t, jsonl.NewRepo(t.TempDir(), jsonl.Options{NoSync: true, Source: steady()}))
	})
}

// created makes a session of the entries.
func created(t testing.TB, repo eventlog.Repo, texts ...string) (*eventlog.Session, eventlog.Metadata) {
	t.Helper()
	s, err := repo.Create(t.Context(), eventlog.CreateOptions{CWD: "/project"})
	require.NoError(t, err)
	t.Cleanup(func() { s.Close() })
	require.NoError(t, s.Storage().AppendRaw(t.Context(), parse(t, texts...)...))
	m, err := s.Metadata(t.Context())
	require.NoError(t, err)
	return s, m
}

func forked(t testing.TB, repo eventlog.Repo, m eventlog.Metadata, id string, p eventlog.Position) *eventlog.Session {
	t.Helper()
	s, err := repo.Fork(t.Context(), m, eventlog.ForkOptions{EntryID: id, Position: p, CreateOptions: eventlog.CreateOptions{CWD: "/project"}})
	require.NoError(t, err)
	t.Cleanup(func() { s.Close() })
	return s
}

// TestReport_D2_ForkWhileAToolCallIsOpen is allowed; the result can follow in
// the fork.
func TestReport_D2_ForkWhileAToolCallIsOpen(t *testing.T) {
	eachRepo(t, func(t *testing.T, repo eventlog.Repo) {
		_, m := created(t, repo, user("u", "", "go"), toolCall("call", "u"))
		fork := forked(t, repo, m, "call", eventlog.AtIt)
		require.Equal(t, "u call", branchOf(t, fork, eventlog.None()))
		require.NoError(t, fork.Storage().AppendRaw(t.Context(), parse(t, toolResult("result", "call"))...))
		c, err := fork.BuildContext(t.Context(), eventlog.None())
		require.NoError(t, err)
		r, ok := c.Messages[2].AsToolResult()
		require.True(t, ok)
		require.Equal(t, []string{"call-1", "read"}, []string{r.CallID, r.Tool})
		a, ok := c.Messages[1].AsAssistant()
		require.True(t, ok)
		require.Equal(t, []string{"call-1", "read"}, []string{a.Content[0].ID, a.Content[0].Name})
	})
}

// TestReport_D5_TheLeafMovesBetweenCallAndResult: the result goes where the leaf
// is.
func TestReport_D5_TheLeafMovesBetweenCallAndResult(t *testing.T) {
	eachBackend(t, parse(t, user("u", "", "go"), toolCall("call", "u")), func(t *testing.T, s *eventlog.Session, again func() *eventlog.Session) {
		moved, err := s.MoveTo(t.Context(), eventlog.At("u"), &eventlog.Summary{Text: "left"})
		require.NoError(t, err)
		result := add(t, s, eventlog.MessageDraft(eventlog.Message{Value: parse(t, toolResult("r", ""))[0].Message().Value}))
		require.Equal(t, eventlog.At(moved[1].ID()), result.Parent(), "below the summary")
		s = again()
		require.Equal(t, "u "+moved[1].ID()+" "+result.ID(), branchOf(t, s, eventlog.None()))
		require.Equal(t, "u call", branchOf(t, s, eventlog.At("call")), "the call is still there")
	})
}

// TestReport_D7_ForksKeepLabelsInTheChain: whatever stands on the branch may be a
// parent.
func TestReport_D7_ForksKeepLabelsInTheChain(t *testing.T) {
	eachRepo(t, func(t *testing.T, repo eventlog.Repo) {
		s, m := created(t, repo, user("u1", "", "one"))
		_, err := s.SetLabel(t.Context(), "u1", "here")
		require.NoError(t, err)
		_, err = s.SetName(t.Context(), "a name")
		require.NoError(t, err)
		moveTo(t, s, eventlog.At("u1"))
		moved := add(t, s, eventlog.LabelDraft("u1", js.Text("there")))
		_, err = s.AppendThinkingLevelChange(t.Context(), "high")
		require.NoError(t, err)
		last := add(t, s, message("last"))

		fork := forked(t, repo, m, last.ID(), eventlog.AtIt)
		entries := entriesOf(t, fork)
		require.Equal(t, idsOf(entries), strings.Fields(branchOf(t, s, eventlog.None())))
		require.Contains(t, idsOf(entries), moved.ID())
		parent := eventlog.None()
		for _, e := range entries {
			require.Equal(t, parent, e.Parent(), "the chain is whole")
			parent = eventlog.At(e.ID())
		}
		label, err := fork.Label(t.Context(), "u1")
		require.NoError(t, err)
		require.Equal(t, "there", label)

		whole := forked(t, repo, m, "", "")
		require.Equal(t, textsOf(entriesOf(t, s)), textsOf(entriesOf(t, whole)), "without an entry: every byte, leaf entries too")
	})
}

// TestReport_D8_AForkSeesWhatItsParentSaw at each entry, through compactions of
// all kinds.
func TestReport_D8_AForkSeesWhatItsParentSaw(t *testing.T) {
	texts := []string{
		user("u1", "", "one"), assistant("a1", "u1", "eins"), user("u2", "a1", "two"), assistant("a2", "u2", "zwei"),
		compaction("c1", "a2", "first summary", "u2"),
		user("u3", "c1", "three"), toolCall("call", "u3"), toolResult("result", "call"),
		compaction("c2", "result", "second summary", "a2"),
		entry("thinking_level_change", "t", "c2", `"thinkingLevel":"high"`),
		user("u4", "t", "four"),
		entry("compaction", "c3", "u4", `"summary":"third summary","tokensBefore":5,"retainedTail":[{"role":"user","content":"kept by value"}]`),
		user("u5", "c3", "five"),
		compaction("c4", "u5", "keeps none", ""),
		user("u6", "c4", "six"),
	}
	eachRepo(t, func(t *testing.T, repo eventlog.Repo) {
		s, m := created(t, repo, texts...)
		for _, e := range entriesOf(t, s) {
			want, err := s.BuildContext(t.Context(), eventlog.At(e.ID()))
			require.NoError(t, err)
			fork := forked(t, repo, m, e.ID(), eventlog.AtIt)
			got, err := fork.BuildContext(t.Context(), eventlog.None())
			require.NoError(t, err)
			require.Equal(t, want, got, "byte for byte, at %s", e.ID())
			if e.IsUserMessage() {
				want, err := s.BuildContext(t.Context(), e.Parent())
				if e.Parent().IsNone() {
					want, err = eventlog.Context{Settings: eventlog.Settings{ThinkingLevel: js.Text("off")}, Messages: []eventlog.Message{}}, nil
				}
				require.NoError(t, err)
				got, err := forked(t, repo, m, e.ID(), "").BuildContext(t.Context(), eventlog.None())
				require.NoError(t, err)
				require.Equal(t, want, got, "before %s", e.ID())
			}
		}
	})
}

// TestReport_D12_ForksNameTheirSource
func TestReport_D12_ForksNameTheirSource(t *testing.T) {
	eachRepo(t, func(t *testing.T, repo eventlog.Repo) {
		_, m := created(t, repo, user("u1", "", "one"), assistant("a1", "u1", "eins"), user("u2", "a1", "two"))
		source := eventlog.At(m.ID)
		if m.Path != "" {
			source = eventlog.At(m.Path)
		}
		for range 3 {
			forked(t, repo, m, "u2", "")
		}
		listed, err := repo.List(t.Context(), "/project")
		require.NoError(t, err)
		require.Len(t, listed, 4)
		for i, l := range listed {
			if i < 3 {
				require.Equal(t, source, l.ParentSession)
			} else {
				require.Equal(t, m.ID, l.ID)
				require.True(t, l.ParentSession.IsNone())
			}
		}
	})
}

// TestReport_D14_TheWayBackIsFindable after a navigation with a summary.
func TestReport_D14_TheWayBackIsFindable(t *testing.T) {
	eachBackend(t, parse(t, user("u1", "", "one"), assistant("a1", "u1", "eins"), user("u2", "a1", "two"), assistant("a2", "u2", "zwei")), func(t *testing.T, s *eventlog.Session, again func() *eventlog.Session) {
		n, err := s.Navigate(t.Context(), "a1", eventlog.NavigateOptions{Summarize: true, Summarizer: func(_ context.Context, r eventlog.SummaryRequest) (eventlog.Summary, error) {
			require.Equal(t, []string{"u2", "a2"}, idsOf(r.Entries))
			return eventlog.Summary{Text: "was there"}, nil
		}})
		require.NoError(t, err)
		s = again()
		all := entriesOf(t, s)
		leaf := all[4]
		require.Equal(t, eventlog.TypeLeaf, leaf.Type())
		require.Equal(t, eventlog.At("a2"), leaf.Parent(), "the old leaf")
		require.Equal(t, eventlog.At("a1"), leaf.Target())
		require.True(t, n.SummaryEntry.Get("fromId").Is("a1"), "as Pi has it: the target")
		require.Equal(t, []string{
			"u1 active branch",
			". a1 active branch",
			". . u2",
			". . . a2",
			". . . . " + leaf.ID() + " control",
			". . " + n.SummaryEntry.ID() + " active branch leaf",
		}, outline(treeOf(t, s)))
	})
}

// TestReport_E1_ASecondCompactionStartsFromWhatTheFirstKept
func TestReport_E1_ASecondCompactionStartsFromWhatTheFirstKept(t *testing.T) {
	eachBackend(t, parse(t, user("u1", "", "one"), user("u2", "u1", "two"), user("u3", "u2", "three"), compaction("c1", "u3", "sum of one", "u2")), func(t *testing.T, s *eventlog.Session, again func() *eventlog.Session) {
		add(t, s, message("four").WithID("u4"))
		add(t, s, message("five").WithID("u5"))
		require.Equal(t, []string{"compactionSummary: sum of one", "user: two", "user: three", "user: four", "user: five"}, contextOf(t, s, eventlog.None()), "what a second compaction has to sum up")
		_, err := s.Append(t.Context(), eventlog.CompactionDraft(eventlog.Compaction{Summary: "sum of one to four", FirstKeptEntryID: js.Text("u5")}).WithID("c2"))
		require.NoError(t, err)
		s = again()
		require.Equal(t, []string{"compactionSummary: sum of one to four", "user: five"}, contextOf(t, s, eventlog.None()))
		// A boundary before the first compaction reaches back over it.
		moveTo(t, s, eventlog.At("u5"))
		_, err = s.Append(t.Context(), eventlog.CompactionDraft(eventlog.Compaction{Summary: "again", FirstKeptEntryID: js.Text("u3")}).WithID("c3"))
		require.NoError(t, err)
		require.Equal(t, "u2 u3 c1 u4 u5 c3", branchOf(t, s, eventlog.None()), "the older compaction's boundary is remembered last")
		require.Equal(t, []string{"compactionSummary: again", "user: three", "compactionSummary: sum of one", "user: four", "user: five"}, contextOf(t, s, eventlog.None()))
	})
}

// TestReport_E2_ASiblingsCompactionIsNoneOfOurs, even of the same second.
func TestReport_E2_ASiblingsCompactionIsNoneOfOurs(t *testing.T) {
	eachBackend(t, parse(t,
		user("root", "", "root"), user("l1", "root", "left one"), user("l2", "l1", "left two"), user("r1", "root", "right one"), user("r2", "r1", "right two"),
		compaction("lc", "l2", "left summary", "l2"), user("l3", "lc", "left three"),
		compaction("rc", "r2", "right summary", "r2"), user("r3", "rc", "right three"),
		compaction("lc2", "l3", "left again", "l3"),
	), func(t *testing.T, s *eventlog.Session, again func() *eventlog.Session) {
		for range 2 {
			require.Equal(t, []string{"compactionSummary: right summary", "user: right two", "user: right three"}, contextOf(t, s, eventlog.At("r3")))
			require.Equal(t, []string{"compactionSummary: left summary", "user: left two", "user: left three"}, contextOf(t, s, eventlog.At("l3")))
			require.Equal(t, []string{"compactionSummary: left again", "user: left three"}, contextOf(t, s, eventlog.At("lc2")))
			require.Equal(t, []string{"user: root", "user: left one", "user: left two"}, contextOf(t, s, eventlog.At("l2")))
			s = again()
		}
	})
}

// TestReport_E3_ACompactionBetweenCallAndResult: the context is Pi's.
func TestReport_E3_ACompactionBetweenCallAndResult(t *testing.T) {
	eachBackend(t, parse(t, user("u", "", "go"), toolCall("call", "u"), compaction("c1", "call", "first", "call"), toolResult("result", "c1"), user("u2", "result", "next"), compaction("c2", "u2", "second", "call")),
		func(t *testing.T, s *eventlog.Session, again func() *eventlog.Session) {
			require.Equal(t, []string{"compactionSummary: first", "assistant: ", "toolResult: result"}, contextOf(t, s, eventlog.At("result")))
			require.Equal(t, []string{"compactionSummary: second", "assistant: ", "compactionSummary: first", "toolResult: result", "user: next"}, contextOf(t, s, eventlog.At("c2")), "the older summary stands where it was written")
			// The option that leaves it out is a transform.
			out := eventlog.ContextOptions{Transforms: []eventlog.Transform{func(entries []eventlog.Entry) ([]eventlog.Entry, error) {
				return slices.DeleteFunc(slices.Clone(entries), func(e eventlog.Entry) bool { return e.ID() == "c1" }), nil
			}}}
			require.Equal(t, []string{"compactionSummary: second", "assistant: ", "toolResult: result", "user: next"}, contextOf(t, s, eventlog.At("c2"), out))
		})
}

// TestReport_E5_TheLogIsNeverEdited: an old compaction serves the branch that
// still uses it, whatever comes later.
func TestReport_E5_TheLogIsNeverEdited(t *testing.T) {
	eachBackend(t, chain(t, 3), func(t *testing.T, s *eventlog.Session, again func() *eventlog.Session) {
		add(t, s, eventlog.CompactionDraft(eventlog.Compaction{Summary: "first", FirstKeptEntryID: js.Text("m3")}).WithID("c1"))
		add(t, s, message("four").WithID("m4"))
		want := contextOf(t, s, eventlog.At("m4"))
		logged := textsOf(entriesOf(t, s))
		add(t, s, eventlog.CompactionDraft(eventlog.Compaction{Summary: "second", FirstKeptEntryID: js.Text("m4")}).WithID("c2"))
		_, err := s.AppendAt(t.Context(), eventlog.At("m4"), message("branch").WithID("b1"), eventlog.CompactionDraft(eventlog.Compaction{Summary: "third"}).WithID("c3"))
		require.NoError(t, err)
		_, err = s.MoveTo(t.Context(), eventlog.At("m2"), &eventlog.Summary{Text: "gone back"})
		require.NoError(t, err)
		s = again()
		require.Equal(t, want, contextOf(t, s, eventlog.At("m4")))
		require.Equal(t, []string{"compactionSummary: first", "user: text 3", "user: four"}, want)
		require.Equal(t, append(slices.Clone(want), "user: branch"), contextOf(t, s, eventlog.At("b1")))
		require.Equal(t, []string{"user: text 1", "user: text 2", "branchSummary: gone back"}, contextOf(t, s, eventlog.None()))
		require.Equal(t, logged, textsOf(entriesOf(t, s))[:len(logged)])
	})
}

// TestReport_E7_BoundariesThatNameNobody: its own id keeps none; an absent one
// keeps none of what is before, and the branch goes to the root; an empty one is
// none.
func TestReport_E7_BoundariesThatNameNobody(t *testing.T) {
	for kept, want := range map[string]struct {
		branch  string
		context []string
	}{
		"nowhere": {"m1 m2 m3 c m4", []string{"compactionSummary: s", "user: after"}},
		"c":       {"m1 m2 m3 c m4", []string{"compactionSummary: s", "user: after"}},
		// Behind the compaction, so that it is never met on the way up.
		"m4": {"m1 m2 m3 c m4", []string{"compactionSummary: s", "user: after"}},
		"":   {"m1 m2 m3 c m4", []string{"compactionSummary: s", "user: after"}},
		"m1": {"m1 m2 m3 c m4", []string{"compactionSummary: s", "user: text 1", "user: text 2", "user: text 3", "user: after"}},
		"m3": {"m3 c m4", []string{"compactionSummary: s", "user: text 3", "user: after"}},
	} {
		t.Run("kept="+kept, func(t *testing.T) {
			eachBackend(t, chain(t, 3), func(t *testing.T, s *eventlog.Session, again func() *eventlog.Session) {
				add(t, s, eventlog.CompactionDraft(eventlog.Compaction{Summary: "s", FirstKeptEntryID: js.Text(kept)}).WithID("c"))
				add(t, s, message("after").WithID("m4"))
				s = again()
				require.Equal(t, want.branch, branchOf(t, s, eventlog.None()))
				require.Equal(t, want.context, contextOf(t, s, eventlog.None()))
			})
		})
	}
}

// TestReport_E8_AnEmptySummaryIsKept, as Pi keeps it: a compaction's shows as a
// message, a branch summary's does not.
func TestReport_E8_AnEmptySummaryIsKept(t *testing.T) {
	eachBackend(t, chain(t, 2), func(t *testing.T, s *eventlog.Session, again func() *eventlog.Session) {
		c, err := s.AppendCompaction(t.Context(), eventlog.Compaction{})
		require.NoError(t, err)
		moved, err := s.MoveTo(t.Context(), eventlog.At(c.ID()), &eventlog.Summary{})
		require.NoError(t, err)
		s = again()
		require.Equal(t, []string{"compactionSummary: "}, contextOf(t, s, eventlog.None()))
		require.Equal(t, "m1 m2 "+c.ID()+" "+moved[1].ID(), branchOf(t, s, eventlog.None()))
		require.True(t, moved[1].Get("summary").Is(""))
	})
}

// TestReport_J1_J2_OrderIsTheOrderOfAppends, whatever clocks and ids say.
func TestReport_J1_J2_OrderIsTheOrderOfAppends(t *testing.T) {
	at := time.UnixMilli(1767225600000)
	ids := []string{"zz", "aa", "mm", "00", "~~", "Aa"}
	back := 0
	source := eventlog.Source{
		Now:   func() time.Time { at = at.Add(-10 * time.Minute); return at },
		NewID: func() string { back++; return ids[back%len(ids)] },
	}
	s := eventlog.NewSession(memory.New(meta, nil, memory.Options{Source: source}))
	var want []string
	for i := range len(ids) {
		want = append(want, add(t, s, message(fmt.Sprint(i))).ID())
	}
	require.ElementsMatch(t, ids, want)
	// All short ids are taken now: whole ones take over.
	for i := range 20 {
		want = append(want, add(t, s, message(fmt.Sprint(len(ids)+i))).ID())
		require.Len(t, want[len(want)-1], 36)
	}
	require.Equal(t, want, idsOf(entriesOf(t, s)))
	require.Equal(t, strings.Join(want, " "), branchOf(t, s, eventlog.None()))
	for i, line := range contextOf(t, s, eventlog.None()) {
		require.Equal(t, fmt.Sprintf("user: %d", i), line)
	}
	head, err := s.Head(t.Context())
	require.NoError(t, err)
	require.Equal(t, eventlog.Head{Leaf: eventlog.At(want[25]), N: 26}, head)
	// The ids of sessions rise, though the clock falls.
	last := ""
	for range 1000 {
		id := source.SessionID()
		require.Greater(t, id, last)
		last = id
	}
}

// TestReport_K3_TotalsNeverFall: a compaction or a move changes what the model
// sees, not what was spent.
func TestReport_K3_K7_TotalsNeverFall(t *testing.T) {
	eachBackend(t, nil, func(t *testing.T, s *eventlog.Session, again func() *eventlog.Session) {
		spend := eventlog.Usage{Input: 100, Output: 20, CacheRead: 7, CacheWrite: 3, Cost: 0.25}
		said := eventlog.AssistantMessage("x", "acme", "m-1", spend, time.UnixMilli(1))
		cost := js.Fields(said.Get("usage").Members()...)
		var last eventlog.Stats
		rises := func(what string, by float64) {
			now, err := s.Stats(t.Context())
			require.NoError(t, err)
			require.Equal(t, last.TotalTokens+130*by, now.TotalTokens, what)
			require.Equal(t, last.CachedTokens+7*by, now.CachedTokens, what)
			require.Equal(t, last.UncachedTokens+103*by, now.UncachedTokens, what)
			require.Equal(t, last.Cost+0.25*by, now.Cost, what)
			last = now
		}
		u := add(t, s, message("u"))
		rises("a user message", 0)
		_, err := s.AppendMessage(t.Context(), said)
		require.NoError(t, err)
		rises("an answer", 1)
		_, err = s.AppendCompaction(t.Context(), eventlog.Compaction{Summary: "s"})
		require.NoError(t, err)
		rises("a compaction", 0)
		_, err = s.AppendCompaction(t.Context(), eventlog.Compaction{Summary: "s", Usage: cost})
		require.NoError(t, err)
		rises("a compaction that was billed", 1)
		_, err = s.MoveTo(t.Context(), eventlog.At(u.ID()), &eventlog.Summary{Text: "s", Usage: cost})
		require.NoError(t, err)
		rises("a summary that was billed", 1)
		moveTo(t, s, eventlog.None())
		rises("a move", 0)
		s = again()
		rises("closing", 0)
		require.Equal(t, 2, last.Messages)
	})
}

// TestReport_L1_LoneSurrogatesAreKept in the log and in the context; what goes
// out can be made well-formed.
func TestReport_L1_LoneSurrogatesAreKept(t *testing.T) {
	line := entry("message", "m1", "", `"message":{"role":"user","content":[{"type":"text","text":"a\ud83d b\uDE00 \ud83d\ude00 c"}],"x\udfff":["\ud800"],"timestamp":1}`)
	eachBackend(t, parse(t, line), func(t *testing.T, s *eventlog.Session, again func() *eventlog.Session) {
		half := js.Prefix("cut 😀", 5) // between the halves of the pair
		m := add(t, s, message(half))
		require.Contains(t, m.JSON(), `"cut \ud83d"`)
		for range 2 {
			all := entriesOf(t, s)
			require.Equal(t, line, all[0].JSON(), "the bytes as they came")
			require.Equal(t, half, all[1].Message().PlainText())
			c, err := s.BuildContext(t.Context(), eventlog.None())
			require.NoError(t, err)
			require.Equal(t, all[0].Message().JSON(), c.Messages[0].JSON())
			require.Equal(t, "a\xED\xA0\xBD b\xED\xB8\x80 😀 c", c.Messages[0].PlainText())
			llm, err := eventlog.Harness.ToLLM(c.Messages)
			require.NoError(t, err)
			out := eventlog.WellFormed(llm)
			require.Equal(t, "a\uFFFD b\uFFFD 😀 c", out[0].PlainText())
			require.Equal(t, "cut \uFFFD", out[1].PlainText())
			require.NotContains(t, out[0].JSON(), `\ud8`)
			require.Equal(t, "a\xED\xA0\xBD b\xED\xB8\x80 😀 c", llm[0].PlainText(), "what it was made from is as before")
			s = again()
		}
	})
	// What has none stays byte for byte, escapes and all.
	fine, err := eventlog.ParseMessage(`{ "role":"user", "content":"\u0041\/\ud83d\ude00" , "n":1.50}`)
	require.NoError(t, err)
	require.Equal(t, fine.JSON(), eventlog.WellFormed([]eventlog.Message{fine})[0].JSON())
}
