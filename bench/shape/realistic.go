package shape

import (
	"fmt"
	"math"

	"github.com/sessiontree/sessiontree/eventlog"
	"github.com/sessiontree/sessiontree/eventlog/js"
)

// The distributions of realistic, after a published session of Pi's (medians of
// an entry there: 240 bytes of a user, 720 of an assistant, 790 of a tool, which
// has one in ten above 2,300). Texts are log-normal: median, sigma, limit.
var (
	questionSize = size{110, 0.9, 4_000}
	answerSize   = size{220, 0.9, 8_000}
	resultSize   = size{520, 1.0, 30_000}
	summarySize  = size{900, 0.4, 4_000}
)

const (
	goOn           = 0.6  // of a response: another tool call follows
	edits          = 0.04 // of a turn: an old question is asked again, otherwise
	plans          = 0.02 // of a turn: back, with a summary of what is left
	backTurns      = 8    // how many turns it goes back at the most
	compactMin     = 250  // entries between two compactions, at least
	compactRange   = 200  // and so many more at the most
	keptTurns      = 3    // turns that a compaction keeps
	thinkingLevels = 0.05 // of a turn: the thinking level changes
)

type size struct {
	median float64
	sigma  float64
	limit  int
}

func (b *builder) text(s size) string {
	n := int(s.median * math.Exp(s.sigma*b.rng.NormFloat64()))
	return words(b.rng, min(max(n, 2), s.limit))
}

func (b *builder) chance(p float64) bool { return b.rng.Float64() < p }

// conversation is where a realistic session stands.
type conversation struct {
	*builder
	at    string   // the leaf
	turns []string // user messages on the way down to it, that may be gone back to
	above []string // their parents
	calls int
	since int // entries since the last compaction
	next  int // entries after which the next one comes
}

func realistic(b *builder) {
	c := &conversation{builder: b, next: compactMin}
	c.put(eventlog.TypeModelChange, field("provider", js.Text(provider)), field("modelId", js.Text(model)))
	for b.more() {
		switch {
		case c.since > c.next && len(c.turns) > keptTurns:
			c.compact()
		case len(c.turns) > 1 && c.chance(edits):
			c.back()
		case len(c.turns) > 1 && c.chance(plans):
			c.back()
			from := js.Text("root")
			if c.at != "" {
				from = js.Text(c.at)
			}
			c.put(eventlog.TypeBranchSummary, field("fromId", from), field("summary", js.Text(c.text(summarySize))))
		case c.chance(thinkingLevels):
			level := []string{"off", "low", "medium", "high"}[c.rng.IntN(4)]
			c.put(eventlog.TypeThinkingLevelChange, field("thinkingLevel", js.Text(level)))
		}
		c.turn()
	}
}

// put appends at the leaf.
func (c *conversation) put(typ eventlog.Type, fields ...js.Member) {
	c.at = c.add(typ, c.at, fields...)
	c.since++
}

// turn is a question, calls of tools with their results, and an answer.
func (c *conversation) turn() {
	c.above = append(c.above, c.at)
	c.put(eventlog.TypeMessage, field("message", eventlog.UserMessage(c.text(questionSize), c.now()).Value))
	c.turns = append(c.turns, c.at)
	for c.more() && c.chance(goOn) {
		c.calls++
		id := fmt.Sprintf("call_%06d", c.calls)
		c.put(eventlog.TypeMessage, field("message", c.response(id)))
		c.put(eventlog.TypeMessage, field("message", c.result(id)))
	}
	c.put(eventlog.TypeMessage, field("message", c.response("")))
}

// response is a message of the assistant, with a call of a tool unless call is "".
func (c *conversation) response(call string) js.Value {
	text := js.Fields(field("type", js.Text("text")), field("text", js.Text(c.text(answerSize))))
	blocks, stop := []js.Value{text}, "stop"
	if call != "" {
		stop = "toolUse"
		blocks = append(blocks, js.Fields(
			field("type", js.Text("toolCall")), field("id", js.Text(call)), field("name", js.Text("bash")),
			field("arguments", js.Fields(field("command", js.Text("go test ./"+words(c.rng, 12)))))))
	}
	whole := eventlog.AssistantMessage("", provider, model, eventlog.Usage{
		Input: float64(c.rng.IntN(3000)), Output: float64(c.rng.IntN(800)), CacheRead: float64(c.rng.IntN(90_000)), Cost: float64(c.rng.IntN(4000)) / 1e5}, c.now())
	return js.Fields(
		field("role", js.Text(eventlog.RoleAssistant)), field("content", js.List(blocks...)),
		field("provider", js.Text(provider)), field("model", js.Text(model)),
		field("usage", whole.Get("usage")), field("stopReason", js.Text(stop)),
		field("timestamp", whole.Get("timestamp")))
}

func (c *conversation) result(call string) js.Value {
	return js.Fields(
		field("role", js.Text(eventlog.RoleToolResult)),
		field("toolCallId", js.Text(call)), field("toolName", js.Text("bash")),
		field("content", js.List(js.Fields(field("type", js.Text("text")), field("text", js.Text(c.text(resultSize)))))),
		field("isError", js.Boolean(c.chance(0.1))),
		field("timestamp", js.Num(float64(c.now().UnixMilli()))))
}

// back moves the leaf to the parent of one of the last questions.
func (c *conversation) back() {
	i := len(c.turns) - 1 - c.rng.IntN(min(backTurns, len(c.turns)-1))
	target := js.NullValue()
	if c.above[i] != "" {
		target = js.Text(c.above[i])
	}
	c.put(eventlog.TypeLeaf, field("targetId", target))
	c.at, c.turns, c.above = c.above[i], c.turns[:i], c.above[:i]
}

// compact keeps the last turns; nobody goes back behind them.
func (c *conversation) compact() {
	kept := len(c.turns) - keptTurns
	c.put(eventlog.TypeCompaction, compaction(c.text(summarySize), c.turns[kept])...)
	c.turns, c.above = c.turns[:0], c.above[:0]
	c.since, c.next = 0, compactMin+c.rng.IntN(compactRange)
}
