package eventlog

import (
	"context"
	"fmt"
	"regexp"
	"strings"
	"time"

	"github.com/sessiontree/sessiontree/eventlog/js"
)

// Completion is one request to a model: what a [ModelSummarizer] asks.
type Completion struct {
	System       string
	Prompt       string // the conversation between tags, then the instructions
	Conversation string // the conversation alone, as in Prompt
	Instructions string // the instructions alone, as in Prompt
	MaxTokens    int
}

// Retry says how often a passing failure of the model is tried again. The zero
// Retry never tries again.
type Retry struct {
	Max   int
	Delay time.Duration // before the first retry; doubles with each
	// Scheduled, if not nil, is told before each wait.
	Scheduled func(attempt, max int, delay time.Duration, why string)
	// Started is told when a wait is over, Finished once when a series of retries
	// has ended.
	Started, Finished func()
}

// ModelSummarizer makes summaries by asking a model, as Pi's harness does: the
// newest entries that fit into the model's context window less a reserve, as
// text, with the usual instructions, the user's added to them or standing in
// their place; the lists of files read and changed at the end.
type ModelSummarizer struct {
	// Complete asks the model. An assistant message with the stopReason "error" or
	// "aborted" is an answer, not an error.
	Complete func(ctx context.Context, c Completion) (Message, error)
	// ContextWindow of the model in tokens; 0 is 128,000.
	ContextWindow float64
	Retry         Retry
}

const (
	summaryReserve   = 16384 // tokens of the context window left for prompt and answer
	summaryMaxTokens = 2048
	summaryWindow    = 128000
)

// BranchSummaryInstructions are the usual instructions for a branch summary.
const BranchSummaryInstructions = `Create a structured summary of this conversation branch for context when returning later.

Use this EXACT format:

## Goal
[What was the user trying to accomplish in this branch?]

## Constraints & Preferences
- [Any constraints, preferences, or requirements mentioned]
- [Or "(none)" if none were mentioned]

## Progress
### Done
- [x] [Completed tasks/changes]

### In Progress
- [ ] [Work that was started but not finished]

### Blocked
- [Issues preventing progress, if any]

## Key Decisions
- **[Decision]**: [Brief rationale]

## Next Steps
1. [What should happen next to continue this work]

Keep each section concise. Preserve exact file paths, function names, and error messages.`

const summarySystem = `You are a context summarization assistant. Your task is to read a conversation between a user and an AI assistant, then produce a structured summary following the exact format specified.

Do NOT continue the conversation. Do NOT respond to any questions in the conversation. ONLY output the structured summary.`

const summaryPreamble = "The user explored a different conversation branch before returning here.\nSummary of that exploration:\n\n"

// Summarize is a [Summarizer]. It fails with [ErrBranchSummary] when the model
// does, and with [ErrCancelled] when the answer was aborted.
func (m ModelSummarizer) Summarize(ctx context.Context, r SummaryRequest) (Summary, error) {
	window := m.ContextWindow
	if window == 0 {
		window = summaryWindow
	}
	p, err := r.Dialect.PrepareBranch(r.Entries, window-summaryReserve)
	if err != nil {
		return Summary{}, err
	}
	if len(p.Messages) == 0 {
		return Summary{Text: "No content to summarize", Details: fileDetails(nil, nil)}, nil
	}
	messages, err := r.Dialect.ToLLM(p.Messages)
	if err != nil {
		return Summary{}, err
	}
	c := Completion{System: summarySystem, MaxTokens: summaryMaxTokens, Instructions: BranchSummaryInstructions}
	if c.Conversation, err = r.Dialect.ConversationText(messages); err != nil {
		return Summary{}, err
	}
	switch {
	case r.ReplaceInstructions && r.Instructions != "":
		c.Instructions = r.Instructions
	case r.Instructions != "":
		c.Instructions += "\n\nAdditional focus: " + r.Instructions
	}
	c.Prompt = "<conversation>\n" + c.Conversation + "\n</conversation>\n\n" + c.Instructions
	answer, err := m.complete(ctx, c)
	if err != nil {
		return Summary{}, err
	}
	why := answer.Get("errorMessage")
	switch stop := answer.Get("stopReason"); {
	case stop.Is("aborted"):
		return Summary{}, ErrCancelled
	case stop.Is("error"):
		text := "Unknown error"
		if why.Truthy() {
			text = js.ToString(why)
		}
		return Summary{}, Errorf(SummaryFailed, "Branch summary failed: %s", text)
	}
	text, err := contentText(answer.Get("content"), "\n")
	if err != nil {
		return Summary{}, err
	}
	return Summary{
		Text:    js.Concat(summaryPreamble, text, fileSections(p.ReadFiles, p.ModifiedFiles)),
		Details: fileDetails(p.ReadFiles, p.ModifiedFiles),
		Usage:   answer.Get("usage"),
	}, nil
}

func fileDetails(read, modified []js.Value) js.Value {
	return js.Fields(field("readFiles", js.List(read...)), field("modifiedFiles", js.List(modified...)))
}

// complete asks the model, again after a passing failure.
func (m ModelSummarizer) complete(ctx context.Context, c Completion) (Message, error) {
	delay := m.Retry.Delay
	finished := func() {}
	for attempt := 1; ; attempt++ {
		answer, err := m.Complete(ctx, c)
		if err != nil {
			return answer, err
		}
		if !answer.Get("stopReason").Is("error") || attempt > m.Retry.Max || !passing(answer) {
			finished()
			return answer, nil
		}
		if m.Retry.Finished != nil {
			finished = m.Retry.Finished
		}
		if m.Retry.Scheduled != nil {
			m.Retry.Scheduled(attempt, m.Retry.Max, delay, js.ToString(answer.Get("errorMessage")))
		}
		select {
		case <-ctx.Done():
			finished()
			return Message{}, fmt.Errorf("%w while waiting to retry", ErrCancelled)
		case <-time.After(delay):
		}
		if m.Retry.Started != nil {
			m.Retry.Started()
		}
		delay *= 2
	}
}

// passing says whether a failed answer looks like a transient failure of the
// provider or the transport. The lists are those of Pi 0.83.
func passing(answer Message) bool {
	why := answer.Get("errorMessage")
	if !why.Truthy() {
		return false
	}
	text := js.ToString(why)
	return !permanentFailure.MatchString(text) && passingFailure.MatchString(text)
}

var permanentFailure = anyOf(
	"GoUsageLimitError", "FreeUsageLimitError", "Monthly usage limit reached", "available balance",
	"insufficient_quota", "out of budget", "quota exceeded", "billing")

var passingFailure = anyOf(
	"overloaded", "rate.?limit", "too many requests", "429", "500", "502", "503", "504", "524",
	"service.?unavailable", "server.?error", "internal.?error", "provider.?returned.?error",
	"network.?error", "connection.?error", "connection.?refused", "connection.?lost", "other side closed",
	"fetch failed", "getaddrinfo", "ENOTFOUND", "EAI_AGAIN", "upstream.?connect", "reset before headers",
	"socket hang up", "socket connection was closed", "timed? out", "timeout", "terminated",
	"websocket.?closed", "websocket.?error", "ended without", "stream ended before message_stop",
	"stream ended before a terminal response event", "http2 request did not get a response", "retry delay",
	"you can retry your request", "try your request again", "please retry your request", "ResourceExhausted")

func anyOf(patterns ...string) *regexp.Regexp {
	return regexp.MustCompile("(?i)" + strings.Join(patterns, "|"))
}
