package eventlog_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/sessiontree/sessiontree/eventlog"
	"github.com/sessiontree/sessiontree/eventlog/js"
)

func answer(t testing.TB, text string) eventlog.Message {
	t.Helper()
	m, err := eventlog.ParseMessage(text)
	require.NoError(t, err)
	return m
}

func TestModelSummarizerAsksWithTheConversation(t *testing.T) {
	entries := parse(t, user("u", "", "go"), toolCall("call", "u"), toolResult("r", "call"),
		entry("message", "e", "r", `"message":{"role":"assistant","content":[{"type":"text","text":"done"},{"type":"toolCall","id":"2","name":"edit","arguments":{"path":"y.go","n":1.0}}]}`))
	for name, test := range map[string]struct {
		request      eventlog.SummaryRequest
		instructions string
	}{
		"usual":    {eventlog.SummaryRequest{}, eventlog.BranchSummaryInstructions},
		"added":    {eventlog.SummaryRequest{Instructions: "be short"}, eventlog.BranchSummaryInstructions + "\n\nAdditional focus: be short"},
		"replaced": {eventlog.SummaryRequest{Instructions: "be short", ReplaceInstructions: true}, "be short"},
		"nothing":  {eventlog.SummaryRequest{ReplaceInstructions: true}, eventlog.BranchSummaryInstructions},
	} {
		var asked eventlog.Completion
		m := eventlog.ModelSummarizer{Complete: func(_ context.Context, c eventlog.Completion) (eventlog.Message, error) {
			asked = c
			return answer(t, `{"role":"assistant","content":[{"type":"text","text":"line 1"},{"type":"thinking","thinking":"no"},{"type":"text","text":"line 2"}],"usage":{"input":1},"stopReason":"stop"}`), nil
		}}
		test.request.Entries = entries
		s, err := m.Summarize(t.Context(), test.request)
		require.NoError(t, err, name)
		require.Equal(t, "[User]: go\n\n[Assistant tool calls]: read(path=\"x.go\")\n\n[Assistant]: done\n\n[Assistant tool calls]: edit(path=\"y.go\", n=1)", asked.Conversation, name)
		require.Equal(t, test.instructions, asked.Instructions, name)
		require.Equal(t, "<conversation>\n"+asked.Conversation+"\n</conversation>\n\n"+test.instructions, asked.Prompt, name)
		require.Equal(t, 2048, asked.MaxTokens)
		require.Equal(t, "The user explored a different conversation branch before returning here.\nSummary of that exploration:\n\nline 1\nline 2\n\n<read-files>\nx.go\n</read-files>\n\n<modified-files>\ny.go\n</modified-files>", s.Text)
		require.JSONEq(t, `{"readFiles":["x.go"],"modifiedFiles":["y.go"]}`, s.Details.JSON())
		require.Equal(t, `{"input":1}`, s.Usage.JSON())
	}
}

func TestModelSummarizerWithNothingToSayAsksNobody(t *testing.T) {
	m := eventlog.ModelSummarizer{Complete: func(context.Context, eventlog.Completion) (eventlog.Message, error) {
		t.Error("asked")
		return eventlog.Message{}, nil
	}}
	s, err := m.Summarize(t.Context(), eventlog.SummaryRequest{Entries: parse(t, entry("custom", "x", "", `"customType":"t"`))})
	require.NoError(t, err)
	require.Equal(t, "No content to summarize", s.Text)
}

func TestModelSummarizerTriesPassingFailuresAgain(t *testing.T) {
	request := eventlog.SummaryRequest{Entries: parse(t, user("u", "", "go"))}
	failed := func(why string) string {
		return fmt.Sprintf(`{"role":"assistant","content":[],"stopReason":"error","errorMessage":%q}`, why)
	}
	fine := `{"role":"assistant","content":[{"type":"text","text":"fine"}],"stopReason":"stop"}`
	boom := errors.New("boom")
	for name, test := range map[string]struct {
		answers []string // "" is an error of Complete
		max     int
		want    error
		told    string
	}{
		"at once":                {[]string{fine}, 3, nil, ""},
		"the second time":        {[]string{failed("429 Too Many Requests"), fine}, 3, nil, "scheduled 1 started finished"},
		"the last time":          {[]string{failed("overloaded"), failed("503"), fine}, 2, nil, "scheduled 1 started scheduled 2 started finished"},
		"never":                  {[]string{failed("overloaded"), failed("overloaded")}, 1, eventlog.ErrBranchSummary, "scheduled 1 started finished"},
		"no retries wanted":      {[]string{failed("overloaded")}, 0, eventlog.ErrBranchSummary, ""},
		"a failure that stays":   {[]string{failed("bad request")}, 3, eventlog.ErrBranchSummary, ""},
		"out of money":           {[]string{failed("429 insufficient_quota")}, 3, eventlog.ErrBranchSummary, ""},
		"no reason":              {[]string{`{"role":"assistant","content":[],"stopReason":"error"}`}, 3, eventlog.ErrBranchSummary, ""},
		"aborted":                {[]string{`{"role":"assistant","content":[],"stopReason":"aborted"}`}, 3, eventlog.ErrCancelled, ""},
		"an error of the caller": {[]string{""}, 3, boom, ""},
		"no list":                {[]string{`{"role":"assistant","content":7,"stopReason":"stop"}`}, 3, eventlog.ErrInvalidEntry, ""},
	} {
		t.Run(name, func(t *testing.T) {
			var told []string
			asked := 0
			m := eventlog.ModelSummarizer{
				Complete: func(context.Context, eventlog.Completion) (eventlog.Message, error) {
					asked++
					if test.answers[asked-1] == "" {
						return eventlog.Message{}, boom
					}
					return answer(t, test.answers[asked-1]), nil
				},
				Retry: eventlog.Retry{
					Max: test.max, Delay: time.Microsecond,
					Scheduled: func(attempt, max int, delay time.Duration, why string) {
						require.Equal(t, []any{test.max, time.Microsecond << (attempt - 1)}, []any{max, delay})
						require.NotEmpty(t, why)
						told = append(told, fmt.Sprint("scheduled ", attempt))
					},
					Started:  func() { told = append(told, "started") },
					Finished: func() { told = append(told, "finished") },
				},
			}
			s, err := m.Summarize(t.Context(), request)
			require.Equal(t, len(test.answers), asked)
			require.Equal(t, test.told, strings.Join(told, " "))
			if test.want != nil {
				require.ErrorIs(t, err, test.want)
				return
			}
			require.NoError(t, err)
			require.Contains(t, s.Text, "fine")
		})
	}
	t.Run("called off while it waits", func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		m := eventlog.ModelSummarizer{
			Complete: func(context.Context, eventlog.Completion) (eventlog.Message, error) {
				return answer(t, failed("overloaded")), nil
			},
			Retry: eventlog.Retry{Max: 3, Delay: time.Hour, Scheduled: func(int, int, time.Duration, string) { cancel() }},
		}
		s := inMemory(navigable(t)...)
		n, err := s.Navigate(ctx, "a1", eventlog.NavigateOptions{Summarize: true, Summarizer: m.Summarize})
		require.NoError(t, err)
		require.Equal(t, eventlog.Navigation{Cancelled: true}, n)
		unchanged(t, s)
	})
}

func TestConversationTextCutsLongToolResults(t *testing.T) {
	result := func(text string) eventlog.Message {
		return answer(t, `{"role":"toolResult","toolCallId":"c","content":[{"type":"text","text":`+js.Text(text).JSON()+`}]}`)
	}
	for _, test := range []struct{ text, want string }{
		{strings.Repeat("x", 2000), strings.Repeat("x", 2000)},
		{strings.Repeat("x", 2001), strings.Repeat("x", 2000) + "\n\n[... 1 more characters truncated]"},
		{strings.Repeat("😀", 1001), strings.Repeat("😀", 1000) + "\n\n[... 2 more characters truncated]"},
		{"x" + strings.Repeat("😀", 1000), "x" + strings.Repeat("😀", 999) + "\xED\xA0\xBD\n\n[... 1 more characters truncated]"},
	} {
		got, err := eventlog.Harness.ConversationText([]eventlog.Message{result(test.text)})
		require.NoError(t, err)
		require.Equal(t, "[Tool result]: "+test.want, got)
	}
	got, err := eventlog.Harness.ConversationText([]eventlog.Message{result(""), answer(t, `{"role":"user","content":""}`)})
	require.NoError(t, err)
	require.Empty(t, got)
}

func TestRefsAsJSON(t *testing.T) {
	for text, want := range map[string]eventlog.Ref{"null": eventlog.None(), `"a"`: eventlog.At("a"), `""`: eventlog.At(""), `"\ud800"`: eventlog.At("\xED\xA0\x80")} {
		var r eventlog.Ref
		require.NoError(t, json.Unmarshal([]byte(`{"r":`+text+`}`), &struct{ R *eventlog.Ref }{&r}))
		if text != `"\ud800"` { // encoding/json hands its text over as it is
			b, err := json.Marshal(r)
			require.NoError(t, err)
			require.Equal(t, text, string(b))
		}
		require.Equal(t, want, r)
	}
	var r eventlog.Ref
	require.ErrorIs(t, r.UnmarshalJSON([]byte("7")), eventlog.ErrInvalidArgument)
	require.Error(t, r.UnmarshalJSON([]byte("{")))
	require.NotEqual(t, eventlog.None(), eventlog.At(""), "an empty id is not the same as none")
	require.Equal(t, "null", eventlog.None().String())
}

func TestEachTypeIsWrittenAsPiWritesIt(t *testing.T) {
	s := inMemory()
	ctx := t.Context()
	spent := eventlog.Usage{Input: 1, Output: 2, CacheRead: 3, CacheWrite: 4, Cost: 0.5}
	at := time.UnixMilli(1767225600000)
	do := func(_ eventlog.Entry, err error) { require.NoError(t, err) }
	do(s.AppendMessage(ctx, eventlog.UserMessage("<&>\u2028", at)))
	do(s.AppendMessage(ctx, eventlog.AssistantMessage("yes", "acme", "m-1", spent, at)))
	do(s.AppendThinkingLevelChange(ctx, "high"))
	do(s.AppendModelChange(ctx, "acme", "m-2"))
	do(s.AppendActiveToolsChange(ctx, "read", "write"))
	do(s.AppendActiveToolsChange(ctx))
	do(s.AppendCompaction(ctx, eventlog.Compaction{Summary: "s", FirstKeptEntryID: js.Text("e2"), TokensBefore: 1e21, FromHook: js.Boolean(true)}))
	do(s.AppendCompaction(ctx, eventlog.Compaction{RetainedTail: js.List(), FirstKeptEntryID: js.NullValue()}))
	do(s.AppendCustom(ctx, "state", js.Trusted(`{ "b":1.0, "2":0, "1":-0 }`)))
	do(s.AppendCustom(ctx, "none", js.Value{}))
	do(s.AppendCustomMessage(ctx, "note", js.Text("hi"), false, js.NullValue()))
	do(s.SetLabel(ctx, "e1", " x "))
	do(s.SetName(ctx, " a\r\n\nb "))
	_, err := s.MoveTo(ctx, eventlog.None(), &eventlog.Summary{Text: "s", Details: js.List()})
	require.NoError(t, err)
	var got []string
	for _, e := range entriesOf(t, s) {
		_, rest, _ := strings.Cut(e.JSON(), "Z\"")
		got = append(got, string(e.Type())+rest)
		require.True(t, strings.HasPrefix(e.JSON(), fmt.Sprintf(`{"type":"%s","id":"%s","parentId":%s,"timestamp":"2026-01-01T00:00:`, e.Type(), e.ID(), e.Parent().Value().JSON())))
	}
	require.Equal(t, []string{
		"message,\"message\":{\"role\":\"user\",\"content\":[{\"type\":\"text\",\"text\":\"<&>\u2028\"}],\"timestamp\":1767225600000}}",
		`message,"message":{"role":"assistant","content":[{"type":"text","text":"yes"}],"provider":"acme","model":"m-1","usage":{"input":1,"output":2,"cacheRead":3,"cacheWrite":4,"totalTokens":10,"cost":{"input":0,"output":0,"cacheRead":0,"cacheWrite":0,"total":0.5}},"stopReason":"stop","timestamp":1767225600000}}`,
		`thinking_level_change,"thinkingLevel":"high"}`,
		`model_change,"provider":"acme","modelId":"m-2"}`,
		`active_tools_change,"activeToolNames":["read","write"]}`,
		`active_tools_change,"activeToolNames":[]}`,
		`compaction,"summary":"s","firstKeptEntryId":"e2","tokensBefore":1e+21,"fromHook":true}`,
		`compaction,"summary":"","firstKeptEntryId":null,"tokensBefore":0,"retainedTail":[]}`,
		`custom,"customType":"state","data":{"1":0,"2":0,"b":1}}`,
		`custom,"customType":"none"}`,
		`custom_message,"customType":"note","content":"hi","display":false,"details":null}`,
		`label,"targetId":"e1","label":" x "}`,
		`session_info,"name":"a b"}`,
		`leaf,"targetId":null}`,
		`branch_summary,"fromId":"root","summary":"s","details":[]}`,
	}, got)
	types := map[eventlog.Type]bool{}
	for _, e := range entriesOf(t, s) {
		types[e.Type()] = true
	}
	for _, typ := range eventlog.Types() {
		require.True(t, types[typ], "%s", typ)
	}
}

func TestErrorsMatchTheirSentinels(t *testing.T) {
	cause := errors.New("cause")
	err := fmt.Errorf("outer: %w", &eventlog.Error{Code: eventlog.StorageFailed, Message: "inner", Err: cause})
	require.ErrorIs(t, err, eventlog.ErrStorage)
	require.ErrorIs(t, err, cause)
	require.NotErrorIs(t, err, eventlog.ErrNotFound)
	require.NotErrorIs(t, err, eventlog.Errorf(eventlog.StorageFailed, "inner"), "only the sentinel matches all of a code")
	require.Equal(t, eventlog.StorageFailed, eventlog.CodeOf(err))
	require.Equal(t, eventlog.Code(""), eventlog.CodeOf(cause))
	require.Equal(t, eventlog.Code(""), eventlog.CodeOf(nil))
	require.Equal(t, "outer: inner: cause", err.Error())
}
