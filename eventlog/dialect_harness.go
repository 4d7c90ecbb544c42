package eventlog

import "github.com/sessiontree/sessiontree/eventlog/js"

// harness is the rules of Pi's agent core 0.83.
type harness struct{}

func (harness) name() string                     { return "harness" }
func (harness) parse(text string) (Entry, error) { return ParseEntry(text) }
func (harness) trusted(text string) Entry        { return TrustedEntry(text) }
func (harness) holeEnds() bool                   { return false }
func (harness) logsMoves() bool                  { return true }
func (harness) thinks() bool                     { return true }
func (harness) idBehindFields(Type) bool         { return false }
func (harness) inherits() bool                   { return true }
func (harness) checkSessionID(string) error      { return nil }

// stops: at the remembered first kept entry; at a compaction that retains
// messages by value (any retainedTail that JavaScript takes for true); any other
// compaction replaces what is remembered by its own firstKeptEntryId, or by
// nothing.
func (harness) stops(c *Cut, e Entry) bool {
	if c.wanted != "" && e.id == c.wanted {
		return true
	}
	if e.kind == kindCompaction {
		if e.Get("retainedTail").Truthy() {
			return true
		}
		c.wanted, _ = e.Get("firstKeptEntryId").Str()
	}
	return false
}

// contextEntries: the last compaction; unless it retains messages by value, the
// entries from its first kept one up to it; all after it.
func (harness) contextEntries(branch []Entry) []Entry {
	last := lastCompaction(branch)
	if last < 0 {
		return branch[:len(branch):len(branch)]
	}
	compaction := branch[last]
	entries := make([]Entry, 0, len(branch))
	entries = append(entries, compaction)
	if !compaction.Get("retainedTail").Truthy() {
		if first, _ := compaction.Get("firstKeptEntryId").Str(); first != "" {
			for i, e := range branch[:last] {
				if e.id == first {
					entries = append(entries, branch[i:last]...)
					break
				}
			}
		}
	}
	return append(entries, branch[last+1:]...)
}

func (harness) settings(branch []Entry) (Settings, error) {
	return lastSettings(branch, func(s *Settings, e Entry) error {
		if e.kind != kindActiveToolsChange {
			return nil
		}
		names, ok := e.Get("activeToolNames").Spread()
		if !ok {
			return e.faulty("activeToolNames", "is no list")
		}
		s.ActiveTools = append([]js.Value{}, names...)
		return nil
	})
}

func (harness) messages(dst []Message, i int, entries []Entry, _ edits, o *ContextOptions) ([]Message, error) {
	e := entries[i]
	switch e.kind {
	case kindMessage:
		return append(dst, e.Message()), nil
	case kindCustomMessage:
		return append(dst, customMessage(e, e.Get("content"))), nil
	case kindCompaction:
		dst = append(dst, compactionMessage(e))
		if tail := e.Get("retainedTail"); !tail.Nullish() {
			kept, ok := tail.Spread()
			if !ok {
				return nil, e.faulty("retainedTail", "is no list")
			}
			for _, m := range kept {
				dst = append(dst, Message{m})
			}
		}
	case kindBranchSummary:
		if e.Get("summary").Truthy() {
			return append(dst, branchSummaryMessage(e)), nil
		}
	case kindCustom:
		customType, _ := e.Get("customType").Str()
		if project := o.Projectors[customType]; project != nil {
			made, err := project(e, i, entries)
			return append(dst, made...), err
		}
	}
	return dst, nil
}

func (harness) edits([]Entry) edits { return nil }

func (harness) tools(s Settings, _ []Message) ([]js.Value, error) { return s.ActiveTools, nil }

func (harness) knowsSystem() bool { return false }

// toolResultText cuts a text, through a surrogate pair if it comes so.
func (harness) toolResultText(text string) string { return js.Prefix(text, toolResultUnits) }

func (harness) label(e Entry) (target string, label js.Value, ok bool, err error) {
	if e.kind != kindLabel {
		return "", js.Value{}, false, nil
	}
	v := e.Get("label")
	if !v.Nullish() && v.Kind() != js.String {
		return "", js.Value{}, false, e.faulty("label", "is no text")
	}
	target, ok = e.Get("targetId").Str()
	return target, v, ok, nil
}

// labelText: labels are trimmed, a blank one clears.
func (harness) labelText(label js.Value) string {
	text, _ := label.Str()
	return js.Trim(text)
}

func (harness) count(s *Stats, e Entry) error {
	var usage js.Value
	switch e.kind {
	case kindMessage:
		s.Messages++
		if e.role == roleOther && e.Message().Nullish() {
			return e.faulty("message", "is missing")
		}
		if e.role != roleAssistant {
			return nil
		}
		usage = e.Message().Get("usage")
	case kindCompaction, kindBranchSummary:
		usage = e.Get("usage")
	default:
		return nil
	}
	if u, ok := usageOf(usage); ok {
		s.CachedTokens += u.CacheRead
		s.UncachedTokens += u.Input + u.CacheWrite
		s.TotalTokens += u.Input + u.Output + u.CacheRead + u.CacheWrite
		s.Cost += u.Cost
	}
	return nil
}

// moveDrafts: a leaf entry, and the summary below its target.
func (harness) moveDrafts(target Ref, s *Summary) []Draft {
	leaf := draft(TypeLeaf, field("targetId", target.Value()))
	if s == nil {
		return []Draft{leaf}
	}
	from := "root"
	if !target.IsNone() {
		from = target.ID()
	}
	return []Draft{leaf, summaryDraft(field("fromId", js.Text(from)), *s).Under(target)}
}

// branchCopy: a fork's entries are the branch's, byte for byte.
func (harness) branchCopy(branch []Entry, _ []Label, _ Source) ([]Entry, error) { return branch, nil }
