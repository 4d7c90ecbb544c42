package eventlog

import "github.com/sessiontree/sessiontree/eventlog/js"

// Dialect is the set of rules by which a log is answered. Two programs write
// session files of version 3 and read them by different rules; all places where
// they differ are methods of this type. The zero Dialect is [Harness].
type Dialect uint8

// Harness is the dialect of Pi's agent core 0.83, the reference.
const Harness Dialect = 0

func (d Dialect) String() string { return "harness" }

// Cut follows a walk from an entry towards the root and says where the branch
// stops. Use a new one for each walk.
type Cut struct {
	dialect Dialect
	wanted  string // the first kept entry of the last compaction passed
}

// Cut starts a walk.
func (d Dialect) Cut() Cut { return Cut{dialect: d} }

// Stops says whether the branch begins at e. Entries are shown from the leaf up.
//
// Pi's rule: stop at the remembered first kept entry; at a compaction that
// retains messages by value (any retainedTail that JavaScript takes for true);
// any other compaction replaces what is remembered by its own firstKeptEntryId,
// or by nothing.
func (c *Cut) Stops(e Entry) bool {
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

// Walk is the branch that ends at from, by following parents: the reference for
// every indexed read. lookup finds an entry by id. A cycle of parents ends as
// [ErrInvalidSession], unless the branch stops at an entry of the cycle, which
// may be in its second round; limit is the number of entries there are.
func (d Dialect) Walk(from Entry, limit int, lookup func(id string) (Entry, bool, error)) ([]Entry, error) {
	cut := d.Cut()
	var path []Entry
	for e := from; ; {
		path = append(path, e)
		if cut.Stops(e) || e.isRoot() {
			break
		}
		// What is remembered at the end of a round is the same after each, so a walk
		// that does not stop in its second has no end.
		if len(path) > 2*limit {
			return nil, endless(from.id)
		}
		parent, ok, err := lookup(e.parent.id)
		if err != nil {
			return nil, err
		}
		if !ok {
			return nil, EntryNotFound(InvalidSession, e.parent.id)
		}
		e = parent
	}
	for i, j := 0, len(path)-1; i < j; i, j = i+1, j-1 {
		path[i], path[j] = path[j], path[i]
	}
	return path, nil
}

// endless is our answer where Pi never returns.
func endless(id string) *Error {
	return Errorf(InvalidSession, "Entry %s is part of, or below, a cycle of parents", id)
}

// contextEntries are the entries of a branch that make its context, in the order
// in which they count: the last compaction; unless it retains messages by value,
// the entries from its first kept one up to it; all after it.
func (d Dialect) contextEntries(branch []Entry) []Entry {
	last := -1
	for i := len(branch) - 1; i >= 0; i-- {
		if branch[i].kind == kindCompaction {
			last = i
			break
		}
	}
	if last < 0 {
		return branch[:len(branch):len(branch)]
	}
	compaction := branch[last]
	// It may stand there twice, where the branch went around a cycle of parents.
	for i := range branch[:last] {
		if branch[i].kind == kindCompaction && branch[i].id == compaction.id {
			last = i
			break
		}
	}
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

// Model names a model. A part is absent where the entry that sets it lacks it.
type Model struct{ Provider, ID js.Value }

// Settings are what a branch says of how the next turn is to run.
type Settings struct {
	ThinkingLevel js.Value   // a text; "off" if nothing sets it
	Model         *Model     // nil if nothing sets it
	ActiveTools   []js.Value // nil if nothing sets them; not the same as none
}

// settings derives the settings from a branch. It fails with ErrInvalidEntry
// where Pi throws: a message entry without a message, active tools that are no
// list.
func (d Dialect) settings(branch []Entry) (Settings, error) {
	s := Settings{ThinkingLevel: js.Text("off")}
	thinking, model := -1, -1
	for i := range branch {
		e := &branch[i]
		switch e.kind {
		case kindMessage:
			if e.role == roleAssistant {
				model = i
			} else if e.role == roleOther && e.Message().Nullish() {
				return s, e.faulty("message", "is missing")
			}
		case kindThinkingLevelChange:
			thinking = i
		case kindModelChange:
			model = i
		case kindActiveToolsChange:
			names, ok := e.Get("activeToolNames").Spread()
			if !ok {
				return s, e.faulty("activeToolNames", "is no list")
			}
			s.ActiveTools = append([]js.Value{}, names...)
		}
	}
	if thinking >= 0 {
		s.ThinkingLevel = branch[thinking].Get("thinkingLevel")
	}
	if model >= 0 {
		if e := branch[model]; e.kind == kindModelChange {
			s.Model = &Model{e.Get("provider"), e.Get("modelId")}
		} else {
			m := e.Message()
			s.Model = &Model{m.Get("provider"), m.Get("model")}
		}
	}
	return s, nil
}

// messages appends the messages that one of the context entries gives.
func (d Dialect) messages(dst []Message, i int, entries []Entry, o *ContextOptions) ([]Message, error) {
	e := entries[i]
	switch e.kind {
	case kindMessage:
		return append(dst, e.Message()), nil
	case kindCustomMessage:
		return append(dst, customMessage(e)), nil
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

func entryTime(e Entry) js.Value { return js.Num(js.ParseDate(e.Timestamp())) }

func customMessage(e Entry) Message {
	return Message{js.Fields(
		field("role", js.Text(RoleCustom)),
		field("customType", e.Get("customType")),
		field("content", e.Get("content")),
		field("display", e.Get("display")),
		field("details", e.Get("details")),
		field("timestamp", entryTime(e)))}
}

func compactionMessage(e Entry) Message {
	return Message{js.Fields(
		field("role", js.Text(RoleCompactionSummary)),
		field("summary", e.Get("summary")),
		field("tokensBefore", e.Get("tokensBefore")),
		field("timestamp", entryTime(e)))}
}

func branchSummaryMessage(e Entry) Message {
	return Message{js.Fields(
		field("role", js.Text(RoleBranchSummary)),
		field("summary", e.Get("summary")),
		field("fromId", e.Get("fromId")),
		field("timestamp", entryTime(e)))}
}

// Label is what a label entry does: the label of target becomes the text, or is
// cleared if it is empty. ok is false for other entries, and for label entries
// that name no target. It fails with ErrInvalidEntry when the label is no text,
// where Pi does not open the file.
func (d Dialect) Label(e Entry) (target, label string, ok bool, err error) {
	if e.kind != kindLabel {
		return "", "", false, nil
	}
	v := e.Get("label")
	if !v.Nullish() && v.Kind() != js.String {
		return "", "", false, e.faulty("label", "is no text")
	}
	label, _ = v.Str()
	target, ok = e.Get("targetId").Str()
	return target, js.Trim(label), ok, nil
}

// Name is the name that a session_info entry gives, "" for none. It fails with
// ErrInvalidEntry when the name is no text.
func (d Dialect) Name(e Entry) (string, error) {
	v := e.Get("name")
	if v.Nullish() {
		return "", nil
	}
	name, ok := v.Str()
	if !ok {
		return "", e.faulty("name", "is no text")
	}
	return js.Trim(name), nil
}

// Count adds an entry to the session's totals. It fails with ErrInvalidEntry
// for a message entry without a message, where Pi throws.
func (d Dialect) Count(s *Stats, e Entry) error {
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
