package eventlog

import (
	"encoding/json"
	"strings"

	"github.com/sessiontree/sessiontree/eventlog/js"
)

// Type is the type of an entry. Types that are not among the constants are kept
// as they came: they stand on the branch and add nothing to the context.
type Type string

// The eleven entry types of Pi's version 3.
const (
	TypeMessage             Type = "message"
	TypeThinkingLevelChange Type = "thinking_level_change"
	TypeModelChange         Type = "model_change"
	TypeActiveToolsChange   Type = "active_tools_change"
	TypeCompaction          Type = "compaction"
	TypeBranchSummary       Type = "branch_summary"
	TypeCustom              Type = "custom"
	TypeCustomMessage       Type = "custom_message"
	TypeLabel               Type = "label"
	TypeSessionInfo         Type = "session_info"
	TypeLeaf                Type = "leaf"
)

// Two more types that the coding agent writes; in the harness's dialect they are
// like any type that is not known.
const (
	TypeUsage       Type = "usage"
	TypeContextEdit Type = "context_edit"
)

// Types lists the eleven known types.
func Types() []Type {
	return append([]Type(nil), typeNames[1:kindUsage]...)
}

var typeNames = [...]Type{"", TypeMessage, TypeThinkingLevelChange, TypeModelChange, TypeActiveToolsChange, TypeCompaction, TypeBranchSummary, TypeCustom, TypeCustomMessage, TypeLabel, TypeSessionInfo, TypeLeaf, TypeUsage, TypeContextEdit}

// Control says whether entries of the type are bookkeeping: they steer the
// session and are no part of the conversation.
func (t Type) Control() bool {
	switch t {
	case TypeThinkingLevelChange, TypeModelChange, TypeActiveToolsChange, TypeLabel, TypeSessionInfo, TypeLeaf:
		return true
	}
	return false
}

// kind is a known type as a small number; 0 is any other.
type kind uint8

const (
	kindOther kind = iota
	kindMessage
	kindThinkingLevelChange
	kindModelChange
	kindActiveToolsChange
	kindCompaction
	kindBranchSummary
	kindCustom
	kindCustomMessage
	kindLabel
	kindSessionInfo
	kindLeaf
	kindUsage
	kindContextEdit
)

func kindOf(t string) kind {
	for k := kindMessage; k <= kindContextEdit; k++ {
		if string(typeNames[k]) == t {
			return k
		}
	}
	return kindOther
}

// Ref names an entry, or none (JSON's null): a parent, a leaf, the target of a
// move. The zero Ref is none. An empty id is not the same as none.
type Ref struct {
	id  string
	set bool
}

// At refers to the entry with the id.
func At(id string) Ref { return Ref{id, true} }

// None refers to no entry: the parent of a root, the leaf of an empty session.
func None() Ref { return Ref{} }

// IsNone says whether r refers to no entry.
func (r Ref) IsNone() bool { return !r.set }

// ID is the id, "" for none.
func (r Ref) ID() string { return r.id }

// String is the id, or "null"; the JSON of one that is no text, and "(no id)" for
// none.
func (r Ref) String() string {
	switch v := r.Value(); {
	case v.Kind() == js.String:
		return r.id
	case v.Exists():
		return v.JSON()
	}
	return "(no id)"
}

// Value is the JSON value: a text, or null; what it was in the file where that is
// another (see [Dialect.ParseEntry]).
func (r Ref) Value() js.Value {
	if !r.set {
		return js.NullValue()
	}
	return keyValue(r.id)
}

// MarshalJSON gives the id as a text, or null.
func (r Ref) MarshalJSON() ([]byte, error) { return r.Value().MarshalJSON() }

// UnmarshalJSON reads a text or null.
func (r *Ref) UnmarshalJSON(b []byte) error {
	v, err := js.Parse(string(b))
	if err != nil {
		return err
	}
	if s, ok := v.Str(); ok {
		*r = At(s)
		return nil
	}
	if !v.Nullish() {
		return Errorf(InvalidArgument, "an entry id is a text or null, not %s", v.Kind())
	}
	*r = None()
	return nil
}

var _ json.Unmarshaler = (*Ref)(nil)

// Entry is one event of a session's log. It holds its JSON text as it came and
// is immutable: entries are handed out by value and share nothing that a caller
// could change.
type Entry struct {
	text   string
	id     string
	parent Ref

	// Offsets into text, found in the one pass that checks it.
	stampStart, stampEnd     uint32
	messageStart, messageEnd uint32
	kind                     kind
	role                     role
	hasContent               bool // the message has content, and it is not null
}

// ParseEntry reads one entry. What it checks is what Pi's reader checks, in its
// order: JSON; an object; a text as type; a non-empty text as id; a text or null
// as parentId; a non-empty text as timestamp; for a leaf entry a text or null as
// targetId. The error is an [InvalidEntry] whose message is Pi's wording.
func ParseEntry(text string) (Entry, error) {
	e, err := parseEntry(text)
	if err != nil {
		return Entry{}, err
	}
	return e, nil
}

func parseEntry(text string) (Entry, error) {
	var e Entry
	// The usual line has no white space around it; Parse handles the rest.
	if text == "" || text[0] != '{' || text[len(text)-1] != '}' {
		v, err := js.Parse(text)
		if err != nil {
			return e, &Error{InvalidEntry, "is not valid JSON", err}
		}
		switch v.Kind() {
		case js.Object:
		case js.Array:
			return e, Errorf(InvalidEntry, "is missing entry type")
		default:
			return e, Errorf(InvalidEntry, "is not a valid session entry")
		}
		text = v.JSON()
	}
	var typ, id, parent, target js.Value
	end, err := js.WalkObject(text, 0, func(key string, at int) (int, error) {
		if key == "message" {
			end, err := e.skipMessage(text, at)
			e.messageStart, e.messageEnd = uint32(at), uint32(end)
			return end, err
		}
		end, err := js.Skip(text, at)
		if err != nil {
			return end, err
		}
		v := js.Trusted(text[at:end])
		switch key {
		case "type":
			typ = v
		case "id":
			id = v
		case "parentId":
			parent = v
		case "timestamp":
			e.stampStart, e.stampEnd = uint32(at), uint32(end)
		case "targetId":
			target = v
		}
		return end, nil
	})
	if err == nil && end != len(text) {
		err = &js.SyntaxError{Offset: end, Reason: "more text after the value"}
	}
	if err != nil {
		return e, &Error{InvalidEntry, "is not valid JSON", err}
	}
	e.text = text
	t, ok := typ.Str()
	if !ok {
		return e, Errorf(InvalidEntry, "is missing entry type")
	}
	e.kind = kindOf(t)
	if e.id, _ = id.Str(); e.id == "" {
		return e, Errorf(InvalidEntry, "is missing entry id")
	}
	switch p, ok := parent.Str(); {
	case ok:
		e.parent = At(p)
	case parent.Kind() != js.Null:
		return e, Errorf(InvalidEntry, "has invalid parentId")
	}
	if s := e.stamp(); s.Kind() != js.String || s.JSON() == `""` {
		return e, Errorf(InvalidEntry, "is missing timestamp")
	}
	if e.kind == kindLeaf && target.Kind() != js.Null && target.Kind() != js.String {
		return e, Errorf(InvalidEntry, "has invalid targetId")
	}
	return e, nil
}

// skipMessage checks the value at text[at] as [js.Skip] does, and finds what the
// entry knows of it as a message.
func (e *Entry) skipMessage(text string, at int) (end int, err error) {
	if e.role, e.hasContent = roleOther, false; at == len(text) || text[at] != '{' {
		return js.Skip(text, at)
	}
	var role js.Value
	end, err = js.WalkObject(text, at, func(key string, at int) (int, error) {
		end, err := js.Skip(text, at)
		if err != nil {
			return end, err
		}
		switch key {
		case "role":
			role = js.Trusted(text[at:end])
		case "content":
			e.hasContent = text[at] != 'n'
		}
		return end, nil
	})
	e.role = roleOf(role)
	return end, err
}

// TrustedEntry reads an entry whose text [ParseEntry] took before, and was kept
// as it was: a store reads its own log with it, at a third of the cost.
func TrustedEntry(text string) Entry {
	if text == "" || text[0] != '{' { // of a file where anything may be an entry
		return Entry{text: text}
	}
	e := Entry{text: text}
	js.WalkChecked(text, 0, func(key string, at int) int {
		if key == "message" && text[at] == '{' {
			var r js.Value
			e.hasContent = false
			end := js.WalkChecked(text, at, func(key string, at int) int {
				end := js.SkipChecked(text, at)
				switch key {
				case "role":
					r = js.Trusted(text[at:end])
				case "content":
					e.hasContent = text[at] != 'n'
				}
				return end
			})
			e.messageStart, e.messageEnd, e.role = uint32(at), uint32(end), roleOf(r)
			return end
		}
		end := js.SkipChecked(text, at)
		switch v := js.Trusted(text[at:end]); key {
		case "type":
			t, _ := v.Str()
			e.kind = kindOf(t)
		case "id":
			e.id, _ = v.Str()
		case "parentId":
			e.parent = None()
			if p, ok := v.Str(); ok {
				e.parent = At(p)
			}
		case "timestamp":
			e.stampStart, e.stampEnd = uint32(at), uint32(end)
		case "message":
			e.messageStart, e.messageEnd, e.role, e.hasContent = uint32(at), uint32(end), roleOther, false
		}
		return end
	})
	return e
}

func (e Entry) stamp() js.Value { return js.Trusted(e.text[e.stampStart:e.stampEnd]) }

// JSON is the entry's text as it came, without the white space around it.
func (e Entry) JSON() string { return e.text }

// Line is the text as a line of a file: a newline in JSON text can only be white
// space between values, and is written as a blank.
func (e Entry) Line() string {
	if strings.IndexByte(e.text, '\n') < 0 {
		return e.text
	}
	return strings.ReplaceAll(e.text, "\n", " ")
}

// MarshalJSON gives the text as it came; encoding/json may still escape some of
// it (<, >, &), and refuses what is nested deeper than 10,000.
func (e Entry) MarshalJSON() ([]byte, error) { return e.Value().MarshalJSON() }

// Value is the entry as a JSON value.
func (e Entry) Value() js.Value { return js.Trusted(e.text) }

// Get is one of the entry's fields.
func (e Entry) Get(key string) js.Value { return e.Value().Get(key) }

// ID is the entry's id: any non-empty text.
func (e Entry) ID() string { return e.id }

// Parent is the entry that this one was appended to, or none for a root. An
// empty parentId in a file is a root too, as in Pi.
func (e Entry) Parent() Ref { return e.parent }

// IsRoot says whether walking up ends here: the entry names no parent.
func (e Entry) IsRoot() bool { return idle(e.parent.id) }

// Type is the entry's type.
func (e Entry) Type() Type {
	if e.kind != kindOther {
		return typeNames[e.kind]
	}
	t, _ := e.Get("type").Str()
	return Type(t)
}

// Timestamp is the text that the entry has for its time, an ISO date if we or
// Pi wrote it.
func (e Entry) Timestamp() string {
	s, _ := e.stamp().Str()
	return s
}

// Target is what a leaf entry moves the leaf to.
func (e Entry) Target() Ref {
	switch v := e.Get("targetId"); {
	case v.Kind() == js.String, e.IsMove() && !v.Nullish():
		return At(keyOf(v))
	}
	return None()
}

// LeafAfter is the session's leaf once the entry is appended: its target for a
// leaf entry, else the entry itself.
func (e Entry) LeafAfter() Ref {
	if e.kind == kindLeaf {
		return e.Target()
	}
	if e.id == noText+"null" {
		return None()
	}
	return At(e.id)
}

// IsMove says whether e stands for a move of the leaf that is no entry of the log:
// what a leaf draft makes in a dialect that does not log moves. Such an e has no
// id; a storage keeps its target beside the entries.
func (e Entry) IsMove() bool { return e.kind == kindLeaf && e.id == "" }

// Message is the message of a message entry. It is absent (its Kind is
// [js.Absent]) for other types and where the field is missing.
func (e Entry) Message() Message {
	if e.kind != kindMessage {
		return Message{}
	}
	return Message{js.Trusted(e.text[e.messageStart:e.messageEnd])}
}

// IsUserMessage says whether the entry holds a message of role user.
func (e Entry) IsUserMessage() bool { return e.kind == kindMessage && e.role == roleUser }

// faulty is the error for an entry that Pi trips over: JavaScript throws where a
// value is missing or of another type.
func (e Entry) faulty(field, what string) *Error {
	return Errorf(InvalidEntry, "Entry %s: %s %s", e.id, field, what)
}
