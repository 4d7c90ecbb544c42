package eventlog

import (
	"math"
	"regexp"
	"strings"

	"github.com/sessiontree/sessiontree/eventlog/js"
)

// codingAgent is the rules of Pi's coding agent 1.6, as its SessionManager has
// them.
type codingAgent struct{}

func (codingAgent) name() string               { return "coding-agent" }
func (codingAgent) holeEnds() bool             { return true }
func (codingAgent) logsMoves() bool            { return false }
func (codingAgent) thinks() bool               { return false }
func (codingAgent) inherits() bool             { return false }
func (codingAgent) stops(*Cut, Entry) bool     { return false }
func (codingAgent) trusted(t string) Entry     { return anyEntry(js.Trusted(t)) }
func (codingAgent) idBehindFields(t Type) bool { return t == TypeCustom || t == TypeCustomMessage }

var sessionID = regexp.MustCompile(`^[A-Za-z0-9]([A-Za-z0-9._-]*[A-Za-z0-9])?$`)

func (codingAgent) checkSessionID(id string) error {
	if sessionID.MatchString(id) {
		return nil
	}
	return Errorf(InvalidArgument, "Session id must be non-empty, contain only alphanumeric characters, '-', '_', and '.', and start and end with an alphanumeric character")
}

// contextEntries: the last compaction; the entries from its first kept one up to
// it, without system messages; all after it. A first kept entry that is not above
// it, its own id for one, keeps nothing.
func (codingAgent) contextEntries(branch []Entry) []Entry {
	last := lastCompaction(branch)
	if last < 0 {
		return branch[:len(branch):len(branch)]
	}
	entries := make([]Entry, 0, len(branch))
	entries = append(entries, branch[last])
	first, kept := keyOf(branch[last].Get("firstKeptEntryId")), false
	for _, e := range branch[:last] {
		kept = kept || e.id == first
		if kept && !e.isSystem() {
			entries = append(entries, e)
		}
	}
	return append(entries, branch[last+1:]...)
}

func (e Entry) isSystem() bool {
	return e.kind == kindMessage && e.role == roleOther && e.Message().Get("role").Is(RoleSystem)
}

// mayBeSystem says whether a system message may be among what e gives to a context.
func (e *Entry) mayBeSystem() bool {
	return e.kind == kindMessage && e.role == roleOther || e.kind == kindCompaction
}

func (codingAgent) settings(branch []Entry) (Settings, error) {
	return lastSettings(branch, func(*Settings, Entry) error { return nil })
}

// messages: as they are, but for content that is not there, and for edits. Only
// the compaction that leads the context gives its system message and summary.
func (codingAgent) messages(dst []Message, i int, entries []Entry, ed edits, _ *ContextOptions) ([]Message, error) {
	e := entries[i]
	if e.kind == kindCompaction && i > 0 {
		return dst, nil
	}
	start := len(dst)
	switch e.kind {
	case kindMessage:
		m, err := withContent(e)
		if err != nil {
			return dst, err
		}
		dst = append(dst, m)
	case kindCustomMessage:
		content := e.Get("content")
		if content.Nullish() {
			content = js.List()
		}
		dst = append(dst, customMessage(e, content))
	case kindBranchSummary:
		if e.Get("summary").Truthy() {
			dst = append(dst, branchSummaryMessage(e))
		}
	case kindCompaction:
		if system := e.Get("systemMessage"); system.Truthy() {
			dst = append(dst, Message{system})
		}
		dst = append(dst, compactionMessage(e))
	}
	if edit, ok := ed[e.id]; ok {
		made, err := edited(dst[start:], edit)
		return append(dst[:start], made...), err
	}
	return dst, nil
}

// withContent is a message, with empty content where it has none.
func withContent(e Entry) (Message, error) {
	m := e.Message()
	if m.Nullish() {
		return m, e.faulty("message", "is missing")
	}
	if e.hasContent {
		return m, nil
	}
	switch m.Role() {
	case RoleSystem:
		return m.with("content", js.Text("")), nil
	case RoleUser, RoleAssistant, RoleToolResult:
		return m.with("content", js.List()), nil
	}
	return m, nil
}

// with is {...m, key: v}.
func (m Message) with(key string, v js.Value) Message {
	members := m.Members()
	for i := range members {
		if members[i].Key == key {
			members[i].Value = v
			return Message{js.Fields(members...)}
		}
	}
	return Message{js.Fields(append(members, field(key, v))...)}
}

// tools are those that stand after replaying the context's system messages.
func (codingAgent) tools(_ Settings, system []Message) ([]js.Value, error) {
	tools, err := currentTools(system)
	return toolNames(tools), err
}

func (codingAgent) knowsSystem() bool { return true }

// toolResultText cuts a text, never inside a surrogate pair.
func (codingAgent) toolResultText(text string) string {
	cut := js.Prefix(text, toolResultUnits)
	if !strings.HasPrefix(text, cut) { // it ends with half of a pair
		cut = js.Prefix(text, toolResultUnits-1)
	}
	return cut
}

// label: kept as it comes, whatever it is; only what JavaScript takes for false
// clears.
func (codingAgent) label(e Entry) (target string, label js.Value, ok bool, err error) {
	if e.kind != kindLabel {
		return "", js.Value{}, false, nil
	}
	return keyOf(e.Get("targetId")), e.Get("label"), true, nil
}

func (codingAgent) labelText(label js.Value) string {
	if !label.Truthy() {
		return ""
	}
	return js.ToString(label)
}

// count: by role and by kind. Incomplete usage makes the sums NaN, as adding
// undefined does.
func (codingAgent) count(s *Stats, e Entry) error {
	switch {
	case e.kind == kindMessage:
		return countMessage(s, e)
	case e.kind == kindUsage:
		return s.addUsage(e, e.Get("usage"))
	case e.kind == kindCompaction || e.kind == kindBranchSummary:
		if usage := e.Get("usage"); usage.Truthy() {
			return s.addUsage(e, usage)
		}
	}
	return nil
}

func countMessage(s *Stats, e Entry) error {
	s.Messages++
	m := e.Message()
	if m.Nullish() {
		return e.faulty("message", "is missing")
	}
	switch e.role {
	case roleUser:
		s.UserMessages++
	case roleToolResult:
		s.ToolResults++
		if usage := m.Get("usage"); usage.Truthy() {
			return s.addUsage(e, usage)
		}
	case roleAssistant:
		s.AssistantMessages++
		for block := range m.Get("content").Elements() {
			if block.Nullish() {
				return e.faulty("content", "has a block that is null")
			}
			if block.Get("type").Is("toolCall") {
				s.ToolCalls++
			}
		}
		return s.addUsage(e, m.Get("usage"))
	}
	return nil
}

// addUsage adds a usage, whatever it holds. It fails where JavaScript throws: no
// usage, or one without a cost.
func (s *Stats) addUsage(e Entry, usage js.Value) error {
	u, err := anyUsage(e, usage)
	if err != nil {
		return err
	}
	s.Input += u.Input
	s.Output += u.Output
	s.CacheRead += u.CacheRead
	s.CacheWrite += u.CacheWrite
	s.Cost += u.Cost
	s.CachedTokens = s.CacheRead
	s.UncachedTokens = s.Input + s.CacheWrite
	s.TotalTokens = s.Input + s.Output + s.CacheRead + s.CacheWrite
	return nil
}

func anyUsage(e Entry, usage js.Value) (u Usage, err error) {
	if usage.Nullish() {
		return u, e.faulty("usage", "is missing")
	}
	cost := usage.Get("cost")
	if cost.Nullish() {
		return u, e.faulty("usage.cost", "is missing")
	}
	return Usage{
		addend(usage.Get("input")), addend(usage.Get("output")),
		addend(usage.Get("cacheRead")), addend(usage.Get("cacheWrite")),
		addend(cost.Get("total")),
	}, nil
}

// addend is what + adds to a number: what is no number, nor null or a boolean,
// makes no number of the sum.
func addend(v js.Value) float64 {
	if k := v.Kind(); k == js.Number || k == js.Null || k == js.Bool {
		return js.ToNumber(v)
	}
	return math.NaN()
}

// moveDrafts: a move is kept by the store, and is no entry; a summary is one
// entry below the target, with the leaf that was left as its source.
func (codingAgent) moveDrafts(target Ref, s *Summary) []Draft {
	if s == nil {
		return []Draft{draft(TypeLeaf, field("targetId", target.Value()))}
	}
	d := summaryDraft(field("fromId", js.Value{}), *s).Under(target)
	d.complete = func(d *Draft, w writing) {
		from := js.Text("root")
		if w.left.Value().Exists() && !w.left.IsNone() {
			from = w.left.Value()
		}
		d.set("fromId", from)
	}
	return []Draft{d}
}
