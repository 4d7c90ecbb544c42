package eventlog

import (
	"iter"
	"math"

	"github.com/sessiontree/sessiontree/eventlog/js"
)

// Dialect is the set of rules by which a log is answered. Two programs write
// session files of version 3 and read them by different rules; all places where
// they differ are methods of this type. The zero Dialect is [Harness].
type Dialect uint8

const (
	// Harness is the dialect of Pi's agent core 0.83, the reference, and the one of
	// the sessions that we create unless told otherwise.
	Harness Dialect = iota
	// CodingAgent is the dialect of Pi's coding agent 1.6, which writes the files
	// that people have on their disks.
	CodingAgent
)

// Dialects lists all dialects.
func Dialects() []Dialect { return []Dialect{Harness, CodingAgent} }

// ParseDialect is the dialect of a name. It fails with [ErrInvalidArgument].
func ParseDialect(name string) (Dialect, error) {
	for _, d := range Dialects() {
		if d.String() == name {
			return d, nil
		}
	}
	return 0, Errorf(InvalidArgument, "there is no dialect %q: it is %s or %s", name, Harness, CodingAgent)
}

// rules are what a dialect decides. Each method's meaning is that of the method
// of [Dialect] with its name.
type rules interface {
	name() string
	parse(text string) (Entry, error)
	trusted(text string) Entry
	holeEnds() bool
	stops(c *Cut, e Entry) bool
	contextEntries(branch []Entry) []Entry
	settings(branch []Entry) (Settings, error)
	edits(entries []Entry) edits
	messages(dst []Message, i int, entries []Entry, ed edits, o *ContextOptions) ([]Message, error)
	tools(s Settings, system []Message) ([]js.Value, error)
	knowsSystem() bool
	isTop(e Entry) bool
	orderChildren(n int, entry func(int) Entry, reorder func([]int))
	toolResultText(text string) string
	thinks() bool
	label(e Entry) (target string, label js.Value, ok bool, err error)
	labelText(label js.Value) string
	count(s *Stats, e Entry) error
	logsMoves() bool
	moveDrafts(target Ref, s *Summary) []Draft
	idBehindFields(t Type) bool
	inherits() bool
	checkSessionID(id string) error
	branchCopy(s []Entry, labels []Label, src Source) ([]Entry, error)
}

func (d Dialect) rules() rules {
	if d == CodingAgent {
		return codingAgent{}
	}
	return harness{}
}

// String is the dialect's name: harness or coding-agent.
func (d Dialect) String() string { return d.rules().name() }

// MarshalText gives the name.
func (d Dialect) MarshalText() ([]byte, error) { return []byte(d.String()), nil }

// ParseEntry reads one record of a session file as the dialect's program does.
// For [Harness] that is [ParseEntry]. The coding agent takes anything for an
// entry that is JSON and that JavaScript takes for true, save a further header:
// an id that is no text then stands in [Entry.ID] as a byte 0xFF with its JSON
// behind it (nothing for none), which no text begins with.
func (d Dialect) ParseEntry(text string) (Entry, error) { return d.rules().parse(text) }

// TrustedEntry is [TrustedEntry] for an entry that the dialect's ParseEntry took.
func (d Dialect) TrustedEntry(text string) Entry { return d.rules().trusted(text) }

// HoleEnds says whether a parent that is not there ends a branch, as a root does;
// otherwise the branch cannot be read.
func (d Dialect) HoleEnds() bool { return d.rules().holeEnds() }

// LogsMoves says whether moving the leaf appends an entry. Otherwise the store
// keeps the leaf beside the entries.
func (d Dialect) LogsMoves() bool { return d.rules().logsMoves() }

// Cut follows a walk from an entry towards the root and says where the branch
// stops. Use a new one for each walk.
type Cut struct {
	dialect Dialect
	wanted  string // the first kept entry of the last compaction passed
}

// Cut starts a walk.
func (d Dialect) Cut() Cut { return Cut{dialect: d} }

// Stops says whether the branch begins at e. Entries are shown from the leaf up.
func (c *Cut) Stops(e Entry) bool {
	return c.dialect.rules().stops(c, e)
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
		if cut.Stops(e) || e.IsRoot() {
			break
		}
		// What is remembered at the end of a round is the same after each, so a walk
		// that does not stop in its second has no end.
		if len(path)-limit > limit {
			return nil, endless(from.id)
		}
		parent, ok, err := lookup(e.parent.id)
		if err != nil {
			return nil, err
		}
		if !ok {
			if d.HoleEnds() {
				break
			}
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

// Model names a model. A part is absent where the entry that sets it lacks it.
type Model struct{ Provider, ID js.Value }

// Settings are what a branch says of how the next turn is to run.
type Settings struct {
	ThinkingLevel js.Value // a text; "off" if nothing sets it
	Model         *Model   // nil if nothing sets it
	// ActiveTools are the names of the tools that are switched on; nil if nothing
	// sets them, which is not the same as none. The coding agent has them from the
	// system messages of the context, so they are never nil there.
	ActiveTools []js.Value
}

// Settings derives the settings from a branch. It fails with [ErrInvalidEntry]
// where Pi throws: a message entry without a message, active tools that are no
// list. In the coding agent's dialect the active tools are not among them: they
// come from the context's messages.
func (d Dialect) Settings(branch []Entry) (Settings, error) { return d.rules().settings(branch) }

// lastSettings are a branch's: thinking level and model where they were set last,
// and what other makes of the rest of the entries.
func lastSettings(branch []Entry, other func(s *Settings, e Entry) error) (Settings, error) {
	s := Settings{ThinkingLevel: js.Text("off")}
	thinking, model := -1, -1
	for i := range branch {
		switch e := &branch[i]; e.kind {
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
		default:
			if err := other(&s, *e); err != nil {
				return s, err
			}
		}
	}
	if thinking >= 0 {
		s.ThinkingLevel = branch[thinking].Get("thinkingLevel")
	}
	if model >= 0 {
		s.Model = modelOf(branch[model])
	}
	return s, nil
}

// modelOf is the model that an entry sets: a model_change entry, or a message of
// role assistant.
func modelOf(e Entry) *Model {
	if e.kind == kindModelChange {
		return &Model{e.Get("provider"), e.Get("modelId")}
	}
	m := e.Message()
	return &Model{m.Get("provider"), m.Get("model")}
}

// ContextEntries are the entries of a branch that make its context, in the order
// in which they count.
func (d Dialect) ContextEntries(branch []Entry) []Entry { return d.rules().contextEntries(branch) }

// lastCompaction is the index of a branch's last compaction, -1 for none. Where
// the branch went around a cycle and has it twice, the first place counts.
func lastCompaction(branch []Entry) int {
	last := -1
	for i := len(branch) - 1; i >= 0; i-- {
		if branch[i].kind == kindCompaction {
			last = i
			break
		}
	}
	for i := 0; i < last; i++ {
		if branch[i].kind == kindCompaction && branch[i].id == branch[last].id {
			return i
		}
	}
	return last
}

// Projected gives, for each of a context's entries, the messages that it gives,
// edits applied: what [Dialect.BuildContext] puts into one list. The sequence ends
// at the first error.
func (d Dialect) Projected(entries []Entry, o ContextOptions) iter.Seq2[[]Message, error] {
	return func(yield func([]Message, error) bool) {
		r := d.rules()
		ed := r.edits(entries)
		for i := range entries {
			made, err := r.messages(nil, i, entries, ed, &o)
			if !yield(made, err) || err != nil {
				return
			}
		}
	}
}

func entryTime(e Entry) js.Value { return js.Num(dateOf(e.stamp())) }

// dateOf is new Date(v).getTime().
func dateOf(v js.Value) float64 {
	switch v.Kind() {
	case js.String:
		s, _ := v.Str()
		return js.ParseDate(s)
	case js.Absent, js.Array, js.Object:
		return math.NaN()
	}
	n := js.ToNumber(v)
	if math.IsInf(n, 0) || math.Abs(n) > 8.64e15 {
		return math.NaN()
	}
	return math.Trunc(n)
}

func customMessage(e Entry, content js.Value) Message {
	return Message{js.Fields(
		field("role", js.Text(RoleCustom)),
		field("customType", e.Get("customType")),
		field("content", content),
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
// that name no target. It fails with [ErrInvalidEntry] when the label is no text,
// where the harness does not open the file.
func (d Dialect) Label(e Entry) (target, label string, ok bool, err error) {
	target, v, ok, err := d.rules().label(e)
	return target, d.rules().labelText(v), ok, err
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

// Count adds an entry to the session's totals. It fails with [ErrInvalidEntry]
// where Pi throws: a message entry without a message; for the coding agent also
// an assistant message without usage.
func (d Dialect) Count(s *Stats, e Entry) error { return d.rules().count(s, e) }
