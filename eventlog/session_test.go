package eventlog_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/sessiontree/sessiontree/eventlog"
	"github.com/sessiontree/sessiontree/eventlog/js"
)

func TestTreeMarksWhatTheUserSees(t *testing.T) {
	s := inMemory(parse(t,
		user("u1", "", "one"),
		assistant("a1", "u1", "eins"),
		compaction("c", "a1", "s", "a1"),
		entry("label", "l", "c", `"targetId":"a1","label":" a label "`),
		user("u2", "l", "two"),
		user("side", "u1", "side"),
		entry("leaf", "m", "side", `"targetId":"u2"`),
		user("island", "gone", "island"), user("below", "island", "below"),
		user("x", "y", "x"), user("y", "x", "y"), user("z", "y", "z"),
		entry("newer_type", "n", "u2", `"field":1`),
	)...)
	require.Equal(t, []string{
		"u1 active",
		". a1 [a label] active branch",
		". . c active branch",
		". . . l control active branch",
		". . . . u2 active branch",
		". . . . . n active branch leaf",
		". side",
		". . m control",
		"island gap",
		". below",
		"x cycle",
		". y cycle",
		". . z cycle",
	}, outline(treeOf(t, s)))

	moveTo(t, s, eventlog.None())
	tree := treeOf(t, s)
	require.True(t, tree.Leaf.IsNone())
	for _, n := range tree.All() {
		require.False(t, n.Active || n.OnBranch || n.Leaf, "without a leaf nothing is active: %s", n.Entry.ID())
	}
}

func TestTreeOfALeafThatIsNotThere(t *testing.T) {
	s := inMemory(parse(t, user("u1", "", "one"), entry("leaf", "l", "u1", `"targetId":"gone"`))...)
	tree := treeOf(t, s)
	require.ErrorIs(t, tree.LeafError, eventlog.ErrInvalidSession)
	require.Equal(t, eventlog.At("gone"), tree.Leaf)
	require.Equal(t, []string{"u1", ". l control"}, outline(tree))
	// Such a session heals by moving the leaf, and by nothing that needs it.
	_, err := s.Append(t.Context(), message("x"))
	require.ErrorIs(t, err, eventlog.ErrInvalidSession)
	moveTo(t, s, eventlog.At("u1"))
	add(t, s, message("x").WithID("x"))
	require.Equal(t, "u1 x", branchOf(t, s, eventlog.None()))
}

func TestTreeOfNothing(t *testing.T) {
	tree := treeOf(t, inMemory())
	require.Empty(t, tree.Nodes)
	require.Empty(t, tree.Roots)
	require.NoError(t, tree.LeafError)
}

func TestCollectBranchGivesWhatAMoveLeavesBehind(t *testing.T) {
	s := inMemory(parse(t,
		user("u1", "", "1"), assistant("a1", "u1", "1"), user("u2", "a1", "2"), assistant("a2", "u2", "2"),
		user("v2", "a1", "2'"), assistant("b2", "v2", "2'"),
		compaction("c", "a2", "s", "a2"), user("u3", "c", "3"),
		user("other", "", "another root"),
		user("hole", "gone", "x"),
	)...)
	none := eventlog.None()
	for _, test := range []struct{ old, target, left, common string }{
		{"a2", "b2", "u2 a2", "a1"},
		{"b2", "a2", "v2 b2", "a1"},
		{"a2", "u1", "a1 u2 a2", "u1"},
		{"u1", "a2", "", "u1"}, // forward: nothing is left behind
		{"a2", "a2", "", "a2"}, // to itself
		{"u3", "a2", "c u3", "a2"},
		// The branch of u3 begins at a2: it shares nothing with what is before, so
		// all of it is left, past the boundary.
		{"u3", "u2", "u1 a1 u2 a2 c u3", ""},
		{"u3", "other", "u1 a1 u2 a2 c u3", ""},
		{"other", "u3", "other", ""},
		{"", "u3", "", ""},
		{"a2", "", "u1 a1 u2 a2", ""}, // none means the leaf, which is the island
	} {
		ref := func(id string) eventlog.Ref {
			if id == "" {
				return none
			}
			return eventlog.At(id)
		}
		if test.target == "" {
			moveTo(t, s, eventlog.At("other"))
		}
		left, err := s.CollectBranch(t.Context(), ref(test.old), ref(test.target))
		require.NoError(t, err, "%v", test)
		require.Equal(t, test.left, strings.Join(idsOf(left.Entries), " "), "%v", test)
		require.Equal(t, ref(test.common), left.CommonAncestor, "%v", test)
	}
	_, err := s.CollectBranch(t.Context(), eventlog.At("nobody"), eventlog.At("u1"))
	require.ErrorIs(t, err, eventlog.ErrNotFound)
	_, err = s.CollectBranch(t.Context(), eventlog.At("u1"), eventlog.At("nobody"))
	require.ErrorIs(t, err, eventlog.ErrNotFound)
	_, err = s.CollectBranch(t.Context(), eventlog.At("hole"), eventlog.At("u1"))
	require.ErrorIs(t, err, eventlog.ErrInvalidSession)
}

func TestPrepareBranchTakesTheNewestThatFit(t *testing.T) {
	long := strings.Repeat("x", 400) // 100 tokens
	entries := parse(t,
		user("u1", "", long), assistant("a1", "u1", long), user("u2", "a1", long), toolResult("r", "u2"), assistant("a2", "r", long),
		entry("custom", "x", "a2", `"customType":"t"`), entry("label", "l", "x", `"targetId":"u1","label":"x"`))
	ids := func(budget float64) (string, float64) {
		p, err := eventlog.Harness.PrepareBranch(entries, budget)
		require.NoError(t, err)
		var texts []string
		for _, m := range p.Messages {
			texts = append(texts, m.Role())
		}
		return strings.Join(texts, " "), p.Tokens
	}
	for _, test := range []struct {
		budget float64
		want   string
		tokens float64
	}{
		{0, "user assistant user assistant", 400}, {-1, "user assistant user assistant", 400},
		{400, "user assistant user assistant", 400}, {399, "assistant user assistant", 300},
		{299.5, "user assistant", 200}, {100, "assistant", 100}, {99, "", 0},
	} {
		got, tokens := ids(test.budget)
		require.Equal(t, test.want, got, "budget %v", test.budget)
		require.Equal(t, test.tokens, tokens, "budget %v", test.budget)
	}

	// A summary that no longer fits is taken while less than nine tenths are used.
	summed := parse(t, compaction("c", "", long, ""), user("u", "c", strings.Repeat("x", 356)), user("v", "u", strings.Repeat("x", 4)))
	p, err := eventlog.Harness.PrepareBranch(summed, 101)
	require.NoError(t, err)
	require.Equal(t, []string{"compactionSummary: " + long, "user: " + strings.Repeat("x", 356), "user: xxxx"}, shown(p.Messages))
	require.Equal(t, 190.0, p.Tokens)
	p, err = eventlog.Harness.PrepareBranch(summed, 100)
	require.NoError(t, err)
	require.Len(t, p.Messages, 2, "exactly nine tenths are used")

	// Units are UTF-16's; an image costs 4,800 of them.
	p, err = eventlog.Harness.PrepareBranch(parse(t, user("u", "", "😀😀"), entry("message", "i", "u", `"message":{"role":"user","content":[{"type":"image","data":"…"},{"type":"text","text":"a"}]}`)), 0)
	require.NoError(t, err)
	require.Equal(t, 1.0+1201, p.Tokens)

	for _, broken := range []string{
		entry("message", "m", "", ""), entry("message", "m", "", `"message":null`), entry("message", "m", "", `"message":{"role":"user"}`),
		entry("message", "m", "", `"message":{"role":"user","content":[null]}`), entry("message", "m", "", `"message":{"role":"assistant","content":7}`),
		entry("compaction", "c", "", ""),
	} {
		_, err := eventlog.Harness.PrepareBranch(parse(t, broken), 0)
		require.ErrorIs(t, err, eventlog.ErrInvalidEntry, broken)
	}
	p, err = eventlog.Harness.PrepareBranch(nil, 10)
	require.NoError(t, err)
	require.Empty(t, p.Messages)
}

func TestPrepareBranchListsFiles(t *testing.T) {
	call := func(id, name, args string) string {
		return entry("message", id, "", fmt.Sprintf(`"message":{"role":"assistant","content":[{"type":"toolCall","id":"c","name":%q,"arguments":%s}]}`, name, args))
	}
	p, err := eventlog.Harness.PrepareBranch(parse(t,
		call("1", "read", `{"path":"b.go"}`), call("2", "read", `{"path":"a.go"}`), call("3", "edit", `{"path":"a.go"}`), call("4", "write", `{"path":"c.go"}`),
		call("5", "read", `{"path":""}`), call("6", "read", `{"path":7}`), call("7", "bash", `{"path":"no.go"}`), call("8", "read", `{"path":"b.go"}`),
		entry("branch_summary", "s", "", `"summary":"s","fromId":"x","details":{"readFiles":["old.go","c.go"],"modifiedFiles":["B.go"]}`),
		entry("branch_summary", "h", "", `"summary":"s","fromId":"x","fromHook":true,"details":{"readFiles":["hook.go"],"modifiedFiles":[]}`),
		entry("branch_summary", "n", "", `"summary":"s","fromId":"x"`),
	), 0)
	require.NoError(t, err)
	texts := func(values []js.Value) (all []string) {
		for _, v := range values {
			s, _ := v.Str()
			all = append(all, s)
		}
		return all
	}
	require.Equal(t, []string{"b.go", "old.go"}, texts(p.ReadFiles), "what was changed is not listed as read")
	require.Equal(t, []string{"B.go", "a.go", "c.go"}, texts(p.ModifiedFiles))
}

func TestToLLMTurnsEachRoleIntoWhatProvidersTake(t *testing.T) {
	summary := func(prefix, text, suffix string) string { return prefix + "\n\n<summary>\n" + text + suffix }
	for _, test := range []struct{ message, role, text string }{
		{`{"role":"user","content":"hi","timestamp":1}`, "user", "hi"},
		{`{"role":"assistant","content":[{"type":"text","text":"yes"}]}`, "assistant", "yes"},
		{`{"role":"toolResult","toolCallId":"c","content":[{"type":"text","text":"out"}]}`, "toolResult", "out"},
		{`{"role":"custom","customType":"t","content":"a note","display":true,"timestamp":5}`, "user", "a note"},
		{`{"role":"custom","customType":"t","content":[{"type":"text","text":"a"},{"type":"text","text":"b"}]}`, "user", "a\nb"},
		{`{"role":"compactionSummary","summary":"short","tokensBefore":9,"timestamp":5}`, "user", summary("The conversation history before this point was compacted into the following summary:", "short", "\n</summary>")},
		{`{"role":"branchSummary","summary":"there","fromId":"x","timestamp":5}`, "user", summary("The following is a summary of a branch that this conversation came back from:", "there", "</summary>")},
		{`{"role":"bashExecution","command":"ls","output":"a\nb","exitCode":0,"timestamp":5}`, "user", "Ran `ls`\n```\na\nb\n```"},
		{`{"role":"bashExecution","command":"ls","output":"","exitCode":2}`, "user", "Ran `ls`\n(no output)\n\nCommand exited with code 2"},
		{`{"role":"bashExecution","command":"ls","output":"","exitCode":2,"cancelled":true}`, "user", "Ran `ls`\n(no output)\n\n(command cancelled)"},
		{`{"role":"bashExecution","command":"ls","output":"x","truncated":true,"fullOutputPath":"/tmp/o"}`, "user", "Ran `ls`\n```\nx\n```\n\n[Output truncated. Full output: /tmp/o]"},
		{`{"role":"bashExecution","command":"secret","output":"x","excludeFromContext":true}`, "", ""},
		{`{"role":"newer","content":"x"}`, "", ""},
		{`{"content":"x"}`, "", ""},
	} {
		m, err := eventlog.ParseMessage(test.message)
		require.NoError(t, err)
		out, err := eventlog.Harness.ToLLM([]eventlog.Message{m})
		require.NoError(t, err)
		if test.role == "" {
			require.Empty(t, out, test.message)
			continue
		}
		require.Len(t, out, 1)
		require.Equal(t, []string{test.role, test.text}, []string{out[0].Role(), out[0].PlainText()}, test.message)
		require.Equal(t, m.Get("timestamp"), out[0].Get("timestamp"), test.message)
		if test.role != "user" || m.Role() == "user" {
			require.Equal(t, m, out[0], "as it is")
		}
	}
	_, err := eventlog.Harness.ToLLM([]eventlog.Message{{Value: js.NullValue()}})
	require.ErrorIs(t, err, eventlog.ErrInvalidEntry)
	out, err := eventlog.Harness.ToLLM(nil)
	require.NoError(t, err)
	require.Empty(t, out)
}

// navigable is a session with two branches; its leaf is a2.
func navigable(t testing.TB) []eventlog.Entry {
	return parse(t,
		user("u1", "", "first question"), assistant("a1", "u1", "first answer"),
		user("u2", "a1", "second question"), assistant("a2", "u2", "second answer"))
}

func summarizing(text string) eventlog.Summarizer {
	return func(context.Context, eventlog.SummaryRequest) (eventlog.Summary, error) {
		return eventlog.Summary{Text: text}, nil
	}
}

// unchanged asks that a session has only what it was made of, and is idle.
func unchanged(t testing.TB, s *eventlog.Session) {
	t.Helper()
	require.Equal(t, textsOf(navigable(t)), textsOf(entriesOf(t, s)))
	require.Equal(t, "u1 a1 u2 a2", branchOf(t, s, eventlog.None()))
	require.Equal(t, eventlog.Idle, s.Phase())
}

func TestNavigateHandsBackTheTextOfWhatTheUserSaid(t *testing.T) {
	eachBackend(t, navigable(t), func(t *testing.T, s *eventlog.Session, again func() *eventlog.Session) {
		n, err := s.Navigate(t.Context(), "u2", eventlog.NavigateOptions{})
		require.NoError(t, err)
		require.Equal(t, "second question", *n.EditorText)
		require.Nil(t, n.SummaryEntry)
		require.Equal(t, "u1 a1", branchOf(t, s, eventlog.None()))
		n, err = s.Navigate(t.Context(), "a2", eventlog.NavigateOptions{})
		require.NoError(t, err)
		require.Nil(t, n.EditorText)
		require.Equal(t, "u1 a1 u2 a2", branchOf(t, s, eventlog.None()))
		n, err = s.Navigate(t.Context(), "u1", eventlog.NavigateOptions{})
		require.NoError(t, err)
		require.Equal(t, "first question", *n.EditorText)
		s = again()
		head, err := s.Head(t.Context())
		require.NoError(t, err)
		require.Equal(t, eventlog.Head{N: 7}, head, "before the root there is no leaf")
	})
}

func TestNavigateWritesTheSummaryAndTheMoveTogether(t *testing.T) {
	eachBackend(t, navigable(t), func(t *testing.T, s *eventlog.Session, again func() *eventlog.Session) {
		var prepared eventlog.Preparation
		var told eventlog.Navigated
		n, err := s.Navigate(t.Context(), "a1", eventlog.NavigateOptions{
			Summarize: true, Instructions: "asked", Label: "l",
			Summarizer: func(_ context.Context, r eventlog.SummaryRequest) (eventlog.Summary, error) {
				require.Equal(t, []string{"u2", "a2"}, idsOf(r.Entries))
				require.Equal(t, "from the hook", r.Instructions)
				require.True(t, r.ReplaceInstructions)
				require.Equal(t, eventlog.Navigating, s.Phase())
				require.Len(t, entriesOf(t, s), 4, "nothing is written before the summary is there")
				return eventlog.Summary{Text: "a summary", Details: js.Fields(js.Member{Key: "k", Value: js.Num(1)})}, nil
			},
			Before: func(_ context.Context, p eventlog.Preparation) (eventlog.BeforeResult, error) {
				prepared = p
				instructions, replace := "from the hook", true
				return eventlog.BeforeResult{Instructions: &instructions, ReplaceInstructions: &replace}, nil
			},
			After: func(_ context.Context, n eventlog.Navigated) error { told = n; return nil },
		})
		require.NoError(t, err)
		require.Equal(t, []string{"u2", "a2"}, idsOf(prepared.EntriesToSummarize))
		prepared.EntriesToSummarize = nil
		require.Equal(t, eventlog.Preparation{Target: "a1", OldLeaf: eventlog.At("a2"), CommonAncestor: eventlog.At("a1"), WantsSummary: true, Instructions: "asked", Label: "l"}, prepared)
		require.Equal(t, eventlog.Navigated{NewLeaf: eventlog.At(n.SummaryEntry.ID()), OldLeaf: eventlog.At("a2"), SummaryEntry: n.SummaryEntry}, told)
		require.True(t, n.SummaryEntry.Get("summary").Is("a summary"))
		require.Equal(t, "false", n.SummaryEntry.Get("fromHook").JSON())
		s = again()
		require.Equal(t, []string{"user: first question", "assistant: first answer", "branchSummary: a summary"}, contextOf(t, s, eventlog.None()))
	})
}

func TestNavigateWithASummaryOfTheHook(t *testing.T) {
	s := inMemory(navigable(t)...)
	n, err := s.Navigate(t.Context(), "u2", eventlog.NavigateOptions{
		Summarize: true,
		Summarizer: func(context.Context, eventlog.SummaryRequest) (eventlog.Summary, error) {
			t.Error("nobody needs to be asked")
			return eventlog.Summary{}, nil
		},
		Before: func(context.Context, eventlog.Preparation) (eventlog.BeforeResult, error) {
			return eventlog.BeforeResult{Summary: &eventlog.Summary{Text: "by the hook"}}, nil
		},
	})
	require.NoError(t, err)
	require.Equal(t, "second question", *n.EditorText)
	require.Equal(t, "true", n.SummaryEntry.Get("fromHook").JSON())
	require.Equal(t, eventlog.At("a1"), n.SummaryEntry.Parent())
}

func TestNavigateThatDoesNotHappenChangesNothing(t *testing.T) {
	boom := errors.New("boom")
	before := func(r eventlog.BeforeResult, err error) eventlog.NavigateOptions {
		return eventlog.NavigateOptions{Summarize: true, Summarizer: summarizing("x"), Before: func(context.Context, eventlog.Preparation) (eventlog.BeforeResult, error) { return r, err }}
	}
	summary := func(err error) eventlog.NavigateOptions {
		return eventlog.NavigateOptions{Summarize: true, Summarizer: func(context.Context, eventlog.SummaryRequest) (eventlog.Summary, error) {
			return eventlog.Summary{}, err
		}}
	}
	for name, test := range map[string]struct {
		target    string
		o         eventlog.NavigateOptions
		want      error // nil is cancelled
		cause     error
		cancelled bool
	}{
		"to the leaf":               {"a2", eventlog.NavigateOptions{Summarize: true}, nil, nil, false},
		"to nobody":                 {"nobody", eventlog.NavigateOptions{}, eventlog.ErrInvalidArgument, nil, false},
		"the hook cancels":          {"u1", before(eventlog.BeforeResult{Cancel: true}, nil), nil, nil, true},
		"the hook fails":            {"u1", before(eventlog.BeforeResult{}, boom), eventlog.ErrHook, boom, false},
		"no summarizer":             {"u1", eventlog.NavigateOptions{Summarize: true}, eventlog.ErrInvalidState, nil, false},
		"the summarizer fails":      {"u1", summary(boom), eventlog.ErrBranchSummary, boom, false},
		"the summary is cancelled":  {"u1", summary(fmt.Errorf("by the user: %w", eventlog.ErrCancelled)), nil, nil, true},
		"the context is over":       {"u1", summary(context.Canceled), context.Canceled, nil, false},
		"the summarizer is no good": {"u1", summary(eventlog.Errorf(eventlog.InvalidEntry, "x")), eventlog.ErrBranchSummary, eventlog.ErrInvalidEntry, false},
	} {
		t.Run(name, func(t *testing.T) {
			s := inMemory(navigable(t)...)
			n, err := s.Navigate(t.Context(), test.target, test.o)
			if test.want == nil {
				require.NoError(t, err)
			} else {
				require.ErrorIs(t, err, test.want)
			}
			if test.cause != nil {
				require.ErrorIs(t, err, test.cause)
			}
			require.Equal(t, eventlog.Navigation{Cancelled: test.cancelled}, n)
			unchanged(t, s)
		})
	}
}

func TestNavigateThatPanicsLeavesTheSessionIdle(t *testing.T) {
	for name, o := range map[string]eventlog.NavigateOptions{
		"summarizer": {Summarize: true, Summarizer: func(context.Context, eventlog.SummaryRequest) (eventlog.Summary, error) { panic("summarizer") }},
		"before":     {Before: func(context.Context, eventlog.Preparation) (eventlog.BeforeResult, error) { panic("before") }},
	} {
		s := inMemory(navigable(t)...)
		require.PanicsWithValue(t, name, func() { s.Navigate(t.Context(), "a1", o) })
		unchanged(t, s)
		_, err := s.Navigate(t.Context(), "a1", eventlog.NavigateOptions{})
		require.NoError(t, err)
	}
	s := inMemory(navigable(t)...)
	require.Panics(t, func() {
		s.Navigate(t.Context(), "a1", eventlog.NavigateOptions{After: func(context.Context, eventlog.Navigated) error { panic("after") }})
	})
	require.Equal(t, eventlog.Idle, s.Phase())
	require.Equal(t, "u1 a1", branchOf(t, s, eventlog.None()), "the move stays")
}

func TestNavigateListenerThatFails(t *testing.T) {
	boom := errors.New("boom")
	s := inMemory(navigable(t)...)
	_, err := s.Navigate(t.Context(), "a1", eventlog.NavigateOptions{After: func(context.Context, eventlog.Navigated) error { return boom }})
	require.ErrorIs(t, err, eventlog.ErrHook)
	require.ErrorIs(t, err, boom)
	require.Equal(t, "u1 a1", branchOf(t, s, eventlog.None()), "the move stays")
}

func TestOnePhaseAtATime(t *testing.T) {
	s := inMemory(navigable(t)...)
	end, err := s.Begin(eventlog.Turn)
	require.NoError(t, err)
	require.Equal(t, eventlog.Turn, s.Phase())
	_, err = s.Begin(eventlog.Compacting)
	require.ErrorIs(t, err, eventlog.ErrBusy)
	require.ErrorContains(t, err, "turn")
	_, err = s.Navigate(t.Context(), "u1", eventlog.NavigateOptions{})
	require.ErrorIs(t, err, eventlog.ErrBusy)
	end()
	unchanged(t, s)

	later, err := s.Begin(eventlog.Compacting)
	require.NoError(t, err)
	end() // a second time, as a deferred call does
	require.Equal(t, eventlog.Compacting, s.Phase(), "ends its own phase only")
	later()
	require.Equal(t, eventlog.Idle, s.Phase())

	// From within a navigation, and from elsewhere meanwhile.
	_, err = s.Navigate(t.Context(), "a1", eventlog.NavigateOptions{Before: func(ctx context.Context, _ eventlog.Preparation) (eventlog.BeforeResult, error) {
		_, err := s.Navigate(ctx, "u1", eventlog.NavigateOptions{})
		require.ErrorIs(t, err, eventlog.ErrBusy)
		_, err = s.Begin(eventlog.Turn)
		require.ErrorIs(t, err, eventlog.ErrBusy)
		return eventlog.BeforeResult{}, nil
	}})
	require.NoError(t, err)
}

func TestOnlyOneOfManyNavigatesAtATime(t *testing.T) {
	s := inMemory(navigable(t)...)
	inside, release := make(chan bool), make(chan bool)
	var all sync.WaitGroup
	all.Go(func() {
		_, err := s.Navigate(t.Context(), "a1", eventlog.NavigateOptions{Summarize: true, Summarizer: func(context.Context, eventlog.SummaryRequest) (eventlog.Summary, error) {
			close(inside)
			<-release
			return eventlog.Summary{Text: "s"}, nil
		}})
		if err != nil {
			t.Error(err)
		}
	})
	<-inside
	for range 10 {
		_, err := s.Navigate(t.Context(), "u1", eventlog.NavigateOptions{})
		require.ErrorIs(t, err, eventlog.ErrBusy)
	}
	// What arrives is held back, and written behind the summary.
	written, err := s.AppendWhenIdle(t.Context(), message("held").WithID("h1"))
	require.NoError(t, err)
	require.False(t, written)
	written, err = s.AppendWhenIdle(t.Context(), eventlog.NameDraft("n").WithID("h2"), message("held too").WithID("h3"))
	require.NoError(t, err)
	require.False(t, written)
	require.Len(t, entriesOf(t, s), 4)
	close(release)
	all.Wait()
	require.Len(t, entriesOf(t, s), 6)
	entries, err := s.Flush(t.Context())
	require.NoError(t, err)
	require.Equal(t, []string{"h1", "h2", "h3"}, idsOf(entries))
	require.Equal(t, []string{"user: first question", "assistant: first answer", "branchSummary: s", "user: held", "user: held too"}, contextOf(t, s, eventlog.None()))
	entries, err = s.Flush(t.Context())
	require.NoError(t, err)
	require.Empty(t, entries)
	written, err = s.AppendWhenIdle(t.Context(), message("at once"))
	require.NoError(t, err)
	require.True(t, written)
}

func TestFlushThatFailsHoldsAllOfItStill(t *testing.T) {
	s := inMemory(navigable(t)...)
	end, err := s.Begin(eventlog.Turn)
	require.NoError(t, err)
	_, err = s.AppendWhenIdle(t.Context(), message("one").WithID("h1"), message("bad").WithID("u1"))
	require.NoError(t, err)
	_, err = s.Flush(t.Context())
	require.ErrorIs(t, err, eventlog.ErrAlreadyExists)
	unchangedLog := textsOf(entriesOf(t, s))
	require.Equal(t, textsOf(navigable(t)), unchangedLog)
	cancelled, cancel := context.WithCancel(t.Context())
	cancel()
	_, err = s.Flush(cancelled)
	require.ErrorIs(t, err, context.Canceled)
	end()
	_, err = s.Flush(t.Context())
	require.ErrorIs(t, err, eventlog.ErrAlreadyExists, "nothing was forgotten")
}

func TestContextOptions(t *testing.T) {
	texts := []string{user("u1", "", "one"), entry("custom", "x", "u1", `"customType":"note","data":{"text":"a note"}`), entry("custom", "y", "x", `"customType":"other"`), assistant("a1", "y", "eins")}
	s := inMemory(parse(t, texts...)...)
	require.Equal(t, []string{"user: one", "assistant: eins"}, contextOf(t, s, eventlog.None()), "custom entries add nothing by themselves")

	project := func(prefix string) eventlog.Projector {
		return func(e eventlog.Entry, index int, entries []eventlog.Entry) ([]eventlog.Message, error) {
			require.Equal(t, e, entries[index])
			text, _ := e.Get("data").Get("text").Str()
			at := time.UnixMilli(0)
			return []eventlog.Message{eventlog.UserMessage(prefix+text, at), eventlog.UserMessage("and more", at)}, nil
		}
	}
	without := func(id string) eventlog.Transform {
		return func(entries []eventlog.Entry) ([]eventlog.Entry, error) {
			var out []eventlog.Entry
			for _, e := range entries {
				if e.ID() != id {
					out = append(out, e)
				}
			}
			return out, nil
		}
	}
	s.Defaults = eventlog.ContextOptions{Projectors: map[string]eventlog.Projector{"note": project("default: ")}, Transforms: []eventlog.Transform{without("a1")}}
	require.Equal(t, []string{"user: one", "user: default: a note", "user: and more"}, contextOf(t, s, eventlog.None()))
	call := eventlog.ContextOptions{Projectors: map[string]eventlog.Projector{"note": project("call: ")}, Transforms: []eventlog.Transform{without("u1")}}
	require.Equal(t, []string{"user: call: a note", "user: and more"}, contextOf(t, s, eventlog.None(), call), "the call's projector wins, its transforms run behind")
	require.Equal(t, []string{"user: one", "user: default: a note", "user: and more"}, contextOf(t, s, eventlog.None()), "and the defaults stay")
	entries, err := s.ContextEntries(t.Context(), eventlog.None(), call)
	require.NoError(t, err)
	require.Equal(t, []string{"x", "y"}, idsOf(entries))
	c, err := s.BuildContext(t.Context(), eventlog.None(), call)
	require.NoError(t, err)
	require.Equal(t, "off acme/m-1 none", settingsOf(c), "settings come from the whole branch")

	// A transform may give what it likes, also to its own list.
	twice := eventlog.ContextOptions{Transforms: []eventlog.Transform{func(entries []eventlog.Entry) ([]eventlog.Entry, error) {
		return append(entries, entries...), nil
	}}}
	s.Defaults = eventlog.ContextOptions{}
	require.Equal(t, []string{"user: one", "assistant: eins", "user: one", "assistant: eins"}, contextOf(t, s, eventlog.None(), twice))
	require.Equal(t, texts, textsOf(entriesOf(t, s)))

	boom := errors.New("boom")
	for name, o := range map[string]eventlog.ContextOptions{
		"transform": {Transforms: []eventlog.Transform{func([]eventlog.Entry) ([]eventlog.Entry, error) { return nil, boom }}},
		"projector": {Projectors: map[string]eventlog.Projector{"other": func(eventlog.Entry, int, []eventlog.Entry) ([]eventlog.Message, error) { return nil, boom }}},
	} {
		c, err := s.BuildContext(t.Context(), eventlog.None(), o)
		require.ErrorIs(t, err, boom, name)
		require.Equal(t, eventlog.Context{}, c, name)
	}
}

func TestSettingsFollowTheBranch(t *testing.T) {
	s := inMemory(parse(t,
		entry("thinking_level_change", "t1", "", `"thinkingLevel":"high"`),
		entry("model_change", "m1", "t1", `"provider":"acme","modelId":"big"`),
		entry("active_tools_change", "x1", "m1", `"activeToolNames":["read","write"]`),
		user("u1", "x1", "one"),
		assistant("a1", "u1", "eins"),
		entry("active_tools_change", "x2", "a1", `"activeToolNames":[]`),
		entry("model_change", "m2", "x2", `"provider":"acme"`),
		entry("thinking_level_change", "t2", "m2", ``),
	)...)
	for id, want := range map[string]string{
		"t1": "high none none", "m1": "high acme/big none", "u1": "high acme/big [read write]", "a1": "high acme/m-1 [read write]", "x2": "high acme/m-1 []", "m2": "high acme/ []",
	} {
		c, err := s.BuildContext(t.Context(), eventlog.At(id))
		require.NoError(t, err)
		require.Equal(t, want, settingsOf(c), "at %s", id)
	}
	c, err := s.BuildContext(t.Context(), eventlog.At("t2"))
	require.NoError(t, err)
	require.False(t, c.ThinkingLevel.Exists(), "what the last entry lacks is absent")
	require.False(t, c.Model.ID.Exists())
	c, err = inMemory().BuildContext(t.Context(), eventlog.None())
	require.NoError(t, err)
	require.Equal(t, "off none none", settingsOf(c))
	require.Empty(t, c.Messages)
}

func TestSessionsCannotBeChangedThroughWhatTheyGive(t *testing.T) {
	eachBackend(t, chain(t, 3), func(t *testing.T, s *eventlog.Session, again func() *eventlog.Session) {
		want := textsOf(entriesOf(t, s))
		other := parse(t, user("evil", "", "evil"))[0]
		b, err := s.Branch(t.Context(), eventlog.None())
		require.NoError(t, err)
		clear(b)
		b = append(b[:0], other)
		found, err := s.FindEntries(t.Context(), eventlog.TypeMessage)
		require.NoError(t, err)
		found[0] = other
		fork, err := s.ForkEntries(t.Context(), "", "", eventlog.Source{})
		require.NoError(t, err)
		fork[0] = other
		c, err := s.BuildContext(t.Context(), eventlog.None())
		require.NoError(t, err)
		clear(c.Messages)
		written, err := s.Append(t.Context(), message("four"), message("five"))
		require.NoError(t, err)
		want = append(want, textsOf(written)...)
		clear(written)
		_, err = s.SetLabel(t.Context(), "m1", "label")
		require.NoError(t, err)
		labels, err := s.Labels(t.Context())
		require.NoError(t, err)
		labels["m1"], labels["m2"] = "evil", "evil"
		raw := parse(t, user("raw", "m1", "raw"))
		require.NoError(t, s.Storage().AppendRaw(t.Context(), raw...))
		raw[0] = other
		tree := treeOf(t, s)
		clear(tree.Nodes)
		require.Equal(t, want, textsOf(entriesOf(t, s))[:5])
		require.Equal(t, "m1 raw", branchOf(t, s, eventlog.None()))
		label, err := s.Label(t.Context(), "m1")
		require.NoError(t, err)
		require.Equal(t, "label", label)
		_ = b
	})
}
