package eventlog

import (
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"github.com/google/uuid"

	"github.com/sessiontree/sessiontree/eventlog/js"
)

// Source gives new entries their times and ids, and new sessions their times.
// The zero Source is the system's clock and random ids.
type Source struct {
	Now   func() time.Time
	NewID func() string // a candidate for an entry id; asked again while it is taken
}

// Time is the time for the next entry, as the text that an entry holds.
func (s Source) Time() string {
	if s.Now != nil {
		return js.ISO(s.Now())
	}
	return js.ISO(time.Now())
}

// SessionID makes the id of a new session: a uuid v7, which never goes back,
// even when the clock does.
func (s Source) SessionID() string { return uuid.Must(uuid.NewV7()).String() }

// EntryID makes an id that taken does not know: eight random hexadecimal digits,
// as in Pi; a whole uuid if they keep colliding.
func (s Source) EntryID(taken func(id string) (bool, error)) (string, error) {
	for range 100 {
		var id string
		if s.NewID != nil {
			id = s.NewID()
		} else {
			id = randomID()
		}
		if used, err := taken(id); err != nil || !used {
			return id, err
		}
	}
	return s.SessionID(), nil
}

// idStep is how far apart the ids are at the most that this process draws one after
// the other.
const idStep = 1 << 15

var lastID atomic.Uint32

func init() { lastID.Store(rand.Uint32()) }

// randomID needs no secrecy, only that ids of many processes differ: the runtime's
// generator, seeded by the system, is that at a hundredth of the cost of asking the
// system each time. From a random place on each id is a random step above the one
// before, so that those of one time are neighbours in an index: ids drawn apart make
// every append of a group write a page of its own. Two ids of two processes are equal
// as seldom as if they were, and those of one not before 130,000 others.
func randomID() string {
	var raw [4]byte
	binary.BigEndian.PutUint32(raw[:], lastID.Add(1+rand.Uint32N(idStep)))
	var digits [2 * len(raw)]byte
	hex.Encode(digits[:], raw[:])
	return string(digits[:])
}

// Draft is an entry that is not written yet. What is left empty is filled in
// when the storage writes it, inside its lock or transaction.
type Draft struct {
	Type   Type
	ID     string      // "" lets the storage choose
	Time   string      // "" is now
	Parent *Ref        // nil is the leaf at that time
	Fields []js.Member // behind the four that every entry has, in Pi's order; absent ones are left out

	checked Message // a message that is known to be JSON, so that it is not read again
	role    role    // which it has
	content bool    // whether it has content

	// complete sets fields that depend on what the storage chooses.
	complete func(d *Draft, w writing)
}

// writing is what is known of an entry when it is written.
type writing struct {
	id   string
	at   string // its time
	left Ref    // the leaf before it
}

// set sets one of the draft's fields, which it has, absent until now or not. The
// caller's draft stays as it is.
func (d *Draft) set(key string, v js.Value) {
	d.Fields = slices.Clone(d.Fields)
	for i := range d.Fields {
		if d.Fields[i].Key == key {
			d.Fields[i].Value = v
		}
	}
}

// Batch is what one append writes: all of its drafts, or nothing.
//
// A draft without a parent attaches to the leaf that the draft before it left.
// A draft whose ID exists already is a retry: if the entry there has the same
// bytes (its time and parent count only where the draft gives them) nothing is
// written and the append succeeds, else it fails with [ErrAlreadyExists]; a
// batch is retried as a whole.
type Batch struct {
	Drafts []Draft
	If     *Head // nil appends whatever the head is
}

// View is what [Batch.Prepare] needs to know of a session, as it stands inside
// the writer's lock or transaction.
type View interface {
	// Dialect is the session's.
	Dialect() Dialect
	// Tip is the leaf, readable or not, and the number of entries.
	Tip() (Head, error)
	// Lookup finds an entry by id.
	Lookup(id string) (e Entry, ok bool, err error)
	// Exists says whether there is an entry with the id.
	Exists(id string) (bool, error)
}

// ManyView is a View that looks for many ids at less cost than one by one.
type ManyView interface {
	View
	// Taken says which of the ids there are, after Tip was asked. The ids are made
	// of ASCII letters, digits, '-' and '_'.
	Taken(ids []string) (map[string]bool, error)
}

// Prepare makes the batch's entries for a session in the state that v shows, and
// checks all that an append checks. Every backend calls it under its own lock,
// so that all refuse the same things. When written is false the batch is a retry
// of what is there already, and entries are those. The errors are those of
// [Storage.Append].
func (b Batch) Prepare(v View, s Source) (entries []Entry, written bool, err error) {
	if existing, err := b.retried(v); err != nil || existing != nil {
		return existing, false, err
	}
	head, err := v.Tip()
	if err != nil {
		return nil, false, err
	}
	if b.If != nil && *b.If != head {
		return nil, false, &Error{Conflict, "the session has moved on", &ConflictError{*b.If, head}}
	}
	var fresh map[string]bool // ids that the batch brings; nobody asks for the last one's
	if len(b.Drafts) > 1 {
		fresh = make(map[string]bool, len(b.Drafts))
	}
	entries = make([]Entry, 0, len(b.Drafts))
	free, s, err := b.ask(v, s)
	if err != nil {
		return nil, false, err
	}
	exists := func(id string) (bool, error) {
		switch {
		case fresh[id]:
			return true, nil
		case free[id]:
			return false, nil
		}
		return v.Exists(id)
	}
	mustExist := func(code Code, id string) error {
		if ok, err := exists(id); err != nil || ok {
			return err
		}
		return EntryNotFound(code, id)
	}
	leaf, dialect := head.Leaf, v.Dialect()
	for _, d := range b.Drafts {
		if d.Type == TypeLeaf && !dialect.LogsMoves() {
			move, err := d.move(mustExist)
			if err != nil {
				return nil, false, err
			}
			leaf = move.LeafAfter()
			entries = append(entries, move)
			continue
		}
		parent := leaf
		switch {
		case d.Parent != nil:
			if parent = *d.Parent; !parent.IsNone() {
				if err := mustExist(NotFound, parent.ID()); err != nil {
					return nil, false, err
				}
			}
		case d.Type != TypeLeaf && !parent.IsNone():
			// A leaf entry may leave a leaf that cannot be read: so a session heals.
			if err := mustExist(InvalidSession, parent.ID()); err != nil {
				return nil, false, err
			}
		}
		if d.ID == "" {
			if d.ID, err = s.EntryID(exists); err != nil {
				return nil, false, err
			}
		} else if ok, err := exists(d.ID); err != nil {
			return nil, false, err
		} else if ok {
			return nil, false, alreadyExists(d.ID)
		}
		if d.Time == "" {
			d.Time = s.Time()
		}
		if d.complete != nil {
			d.complete(&d, writing{d.ID, d.Time, leaf})
		}
		e, err := d.entry(parent, dialect)
		if err != nil {
			return nil, false, err
		}
		if target := e.names(); !target.IsNone() {
			if err := mustExist(NotFound, target.id); err != nil {
				return nil, false, err
			}
		}
		if fresh != nil {
			fresh[e.id] = true
		}
		leaf = e.LeafAfter()
		entries = append(entries, e)
	}
	return entries, true, nil
}

// entry makes the draft's entry, and refuses what would be read as another one,
// or would spoil an answer of the session for ever: a log takes nothing back.
func (d Draft) entry(parent Ref, dialect Dialect) (Entry, error) {
	e, plain := d.plainEntry(parent, dialect)
	if !plain {
		var err error
		if e, err = dialect.ParseEntry(e.text); err != nil {
			return e, &Error{InvalidArgument, fmt.Sprintf("a draft of type %q with the id %q", d.Type, d.ID), err}
		}
		if d.Type == "" || e.id != d.ID || e.parent != parent || e.Type() != d.Type || e.Timestamp() != d.Time {
			return e, Errorf(InvalidArgument, "a draft of type %q with the id %q would be read as another: text that is no UTF-8, or a field that stands twice", d.Type, d.ID)
		}
	}
	for _, c := range requires[e.kind] {
		v := e.Message().Value
		if c.field != "message" {
			v = e.Get(c.field)
		}
		if kind := v.Kind(); kind == c.kind || (c.orNone && v.Nullish()) {
			continue
		}
		return e, Errorf(InvalidArgument, "a draft of type %q: %s is %s, not %s", d.Type, c.field, v.Kind(), c.kind)
	}
	return e, nil
}

// plainEntry is the draft's entry as [ParseEntry] would read its text, without
// reading all of it again: what we wrote is known, and only the fields' values
// are checked, because a host may call any text a checked one. ok is false where
// more may be wrong; then only the text counts.
func (d Draft) plainEntry(parent Ref, dialect Dialect) (e Entry, ok bool) {
	e = d.encode(parent, dialect)
	e.kind, e.parent = kindOf(string(d.Type)), parent
	ok = e.kind != kindOther && e.kind != kindLeaf && !dialect.rules().idBehindFields(d.Type) && d.ID != "" && d.Time != "" &&
		js.IsPlain(d.ID) && js.IsPlain(parent.id) && js.IsPlain(d.Time)
	for _, f := range d.Fields {
		text := f.Value.JSON()
		if text == "" {
			continue
		}
		var end int
		var err error
		switch f.Key {
		case "type", "id", "parentId", "timestamp":
			return e, false
		case "message":
			if end, e.role, e.hasContent = len(text), d.role, d.content; f.Value != d.checked.Value {
				end, err = e.skipMessage(text, 0)
			}
		default:
			end, err = js.Skip(text, 0)
		}
		if err != nil || end != len(text) || js.IsBlank(text[:1]) {
			return e, false
		}
	}
	return e, ok
}

// requires is what a type's entries must hold. Files may hold anything; then Pi
// cannot give the totals, or the session at all, ever again. A compaction's
// retained tail is not here: Pi takes any, and only branches through one that is
// no list have no context.
var requires = [...][]struct {
	field  string
	kind   js.Kind
	orNone bool
}{
	kindMessage:           {{"message", js.Object, false}},
	kindActiveToolsChange: {{"activeToolNames", js.Array, false}},
	kindLabel:             {{"targetId", js.String, false}, {"label", js.String, true}},
	kindSessionInfo:       {{"name", js.String, true}},
	kindContextEdit:       nil,
}

// names is the entry that a leaf or label entry is about.
func (e Entry) names() Ref {
	if e.kind == kindLeaf || e.kind == kindLabel {
		return e.Target()
	}
	return None()
}

// retried gives the entries of a batch that was written before: all of them, each
// as the batch would write it.
func (b Batch) retried(v View) ([]Entry, error) {
	if len(b.Drafts) == 0 || b.Drafts[0].ID == "" {
		return nil, nil
	}
	var entries []Entry
	seen := map[string]bool{}
	for i, d := range b.Drafts {
		if d.ID == "" {
			return nil, nil
		}
		e, ok, err := v.Lookup(d.ID)
		if err != nil {
			return nil, err
		}
		if !ok {
			if i > 0 {
				return nil, Errorf(AlreadyExists, "Entry %s exists already, and %s, which is to follow it, does not", b.Drafts[i-1].ID, d.ID)
			}
			return nil, nil
		}
		if d.Time == "" {
			d.Time = e.Timestamp()
		}
		parent := e.Parent()
		if d.Parent != nil {
			parent = *d.Parent
		}
		follows := i == 0 || d.Parent != nil || parent == entries[i-1].LeafAfter()
		if d.complete != nil {
			d.complete(&d, writing{e.id, d.Time, parent})
		}
		if d.encode(parent, v.Dialect()).text != e.text || !follows || seen[d.ID] {
			return nil, alreadyExists(d.ID)
		}
		seen[d.ID] = true
		entries = append(entries, e)
	}
	return entries, nil
}

func alreadyExists(id string) *Error {
	return Errorf(AlreadyExists, "Entry %s exists already with other content", id)
}

// encode writes the entry's text, as Pi writes it. Of the entry it gives the text
// and the places in it alone.
func (d Draft) encode(parent Ref, dialect Dialect) (e Entry) {
	var buf [1024]byte
	b := append(buf[:0], `{"type":`...)
	b = js.AppendQuote(b, string(d.Type))
	if dialect.rules().idBehindFields(d.Type) {
		fields := append(slices.Clone(d.Fields), field("id", js.Text(d.ID)), field("parentId", parent.Value()), field("timestamp", js.Text(d.Time)))
		e.text = string(js.AppendFields(b, fields...))
		return e
	}
	b = append(b, `,"id":`...)
	id := len(b)
	b = js.AppendQuote(b, d.ID)
	idEnd := len(b)
	if !parent.IsNone() && js.IsPlain(parent.id) { // as a rule
		b = append(append(append(b, `,"parentId":"`...), parent.id...), '"')
	} else if p := parent.Value(); p.Exists() {
		b = append(append(b, `,"parentId":`...), p.JSON()...)
	}
	b = append(b, `,"timestamp":`...)
	e.stampStart = uint32(len(b))
	b = js.AppendQuote(b, d.Time)
	e.stampEnd = uint32(len(b))
	for _, f := range d.Fields {
		b = js.AppendField(b, f)
		if f.Key == "message" && f.Value.Exists() {
			e.messageStart, e.messageEnd = uint32(len(b)-len(f.Value.JSON())), uint32(len(b))
		}
	}
	e.text = string(append(b, '}'))
	e.id = e.text[id+1 : idEnd-1] // as it stands there, so that it is kept once
	return e
}

// WithID sets the id, so that an append can be retried safely.
func (d Draft) WithID(id string) Draft { d.ID = id; return d }

// WithTime sets the timestamp.
func (d Draft) WithTime(at time.Time) Draft { d.Time = js.ISO(at); return d }

// Under sets the parent: the draft opens a branch there, without a leaf entry.
func (d Draft) Under(parent Ref) Draft { d.Parent = &parent; return d }

func draft(t Type, fields ...js.Member) Draft {
	for i := range fields {
		fields[i].Value = js.Canonical(fields[i].Value)
	}
	return Draft{Type: t, Fields: fields}
}

func field(key string, v js.Value) js.Member { return js.Member{Key: key, Value: v} }

// MessageDraft is a message entry.
func MessageDraft(m Message) Draft {
	if !js.IsCanonical(m.Value) {
		return draft(TypeMessage, field("message", m.Value))
	}
	d := Draft{Type: TypeMessage, Fields: []js.Member{field("message", m.Value)}, checked: m}
	d.role, d.content = m.canonicalFacts()
	return d
}

// ThinkingLevelDraft sets the thinking level of what follows; any text passes.
func ThinkingLevelDraft(level string) Draft {
	return draft(TypeThinkingLevelChange, field("thinkingLevel", js.Text(level)))
}

// ModelDraft sets the model of what follows.
func ModelDraft(provider, modelID string) Draft {
	return draft(TypeModelChange, field("provider", js.Text(provider)), field("modelId", js.Text(modelID)))
}

// ActiveToolsDraft sets the tools that are switched on.
func ActiveToolsDraft(names ...string) Draft {
	return draft(TypeActiveToolsChange, field("activeToolNames", js.Texts(names...)))
}

// Compaction is a summary that stands for what came before it.
type Compaction struct {
	Summary string
	// FirstKeptEntryID is the first entry before the compaction that the context
	// keeps. Absent, null or empty keeps nothing.
	FirstKeptEntryID js.Value
	TokensBefore     float64 // size of the context that was compacted, in tokens
	// RetainedTail, a list of messages, stands for kept entries by value: then the
	// branch stops at the compaction, even if the list is empty.
	RetainedTail js.Value
	Details      js.Value
	Usage        js.Value // what making the summary cost
	FromHook     js.Value // whether a hook made it
}

// CompactionDraft is a compaction entry.
func CompactionDraft(c Compaction) Draft {
	return draft(TypeCompaction,
		field("summary", js.Text(c.Summary)),
		field("firstKeptEntryId", c.FirstKeptEntryID),
		field("tokensBefore", js.Num(c.TokensBefore)),
		field("retainedTail", c.RetainedTail),
		field("details", c.Details),
		field("usage", c.Usage),
		field("fromHook", c.FromHook))
}

// checkpointDraft is a compaction entry of the coding agent: it names itself where
// it keeps nothing, and carries what the system messages came to.
func checkpointDraft(c Compaction, system Message) Draft {
	d := draft(TypeCompaction,
		field("summary", js.Text(c.Summary)),
		field("firstKeptEntryId", c.FirstKeptEntryID),
		field("tokensBefore", js.Num(c.TokensBefore)),
		field("details", c.Details),
		field("usage", c.Usage),
		field("fromHook", c.FromHook),
		field("systemMessage", js.Value{}))
	d.complete = func(d *Draft, w writing) {
		if c.FirstKeptEntryID.Nullish() {
			d.set("firstKeptEntryId", js.Text(w.id))
		}
		if system.Exists() {
			d.set("systemMessage", system.with("timestamp", js.Num(js.ParseDate(w.at))).Value)
		}
	}
	return d
}

// UsageEntry is what a call of a model cost that gave no message.
type UsageEntry struct {
	Kind, Provider, Model string
	Usage                 js.Value
	Note                  string // "" leaves it out
}

// UsageDraft is a usage entry.
func UsageDraft(u UsageEntry) Draft {
	note := js.Value{}
	if u.Note != "" {
		note = js.Text(u.Note)
	}
	return draft(TypeUsage,
		field("kind", js.Text(u.Kind)),
		field("provider", js.Text(u.Provider)),
		field("model", js.Text(u.Model)),
		field("usage", u.Usage),
		field("note", note))
}

// CustomDraft is an entry of the host's own: no part of the context unless a
// projector for customType makes messages of it.
func CustomDraft(customType string, data js.Value) Draft {
	return draft(TypeCustom, field("customType", js.Text(customType)), field("data", data))
}

// CustomMessageDraft is a message of the host's own, which the model sees as a
// user message. content is a text or a list of blocks.
func CustomMessageDraft(customType string, content js.Value, display bool, details js.Value) Draft {
	return draft(TypeCustomMessage,
		field("customType", js.Text(customType)),
		field("content", content),
		field("display", js.Boolean(display)),
		field("details", details))
}

// LabelDraft labels the entry target. Labels are trimmed when read; a blank,
// null or absent one clears. The append fails with [ErrNotFound] when there is
// no such entry.
func LabelDraft(target string, label js.Value) Draft {
	return draft(TypeLabel, field("targetId", js.Text(target)), field("label", label))
}

// NameDraft names the session: line breaks become a space and the ends are
// trimmed, as in Pi; an empty name clears.
func NameDraft(name string) Draft {
	return draft(TypeSessionInfo, field("name", js.Text(cleanName(name))))
}

// cleanName is name.replace(/[\r\n]+/g, " ").trim().
func cleanName(name string) string {
	var b strings.Builder
	inBreak := false
	for i := range len(name) {
		c := name[i]
		isBreak := c == '\r' || c == '\n'
		if isBreak && !inBreak {
			b.WriteByte(' ')
		} else if !isBreak {
			b.WriteByte(c)
		}
		inBreak = isBreak
	}
	return js.Trim(b.String())
}

// Summary is what is written of a branch that a move leaves behind.
type Summary struct {
	Text     string
	Details  js.Value
	Usage    js.Value // what making it cost
	FromHook js.Value // whether a hook made it
}

// summaryDraft is a branch_summary entry; from is its field fromId.
func summaryDraft(from js.Member, s Summary) Draft {
	return draft(TypeBranchSummary, from,
		field("summary", js.Text(s.Text)),
		field("details", s.Details),
		field("usage", s.Usage),
		field("fromHook", s.FromHook))
}

// move is a leaf draft where moves are no entries.
func (d Draft) move(mustExist func(Code, string) error) (Entry, error) {
	if d.ID != "" || d.Parent != nil {
		return Entry{}, Errorf(InvalidArgument, "a move of the leaf is no entry here: it has no id and no parent")
	}
	text := js.Fields(append([]js.Member{field("type", js.Text(string(TypeLeaf)))}, d.Fields...)...).JSON()
	move := Entry{text: text, kind: kindLeaf}
	if target := move.Target(); !target.IsNone() {
		if err := mustExist(NotFound, target.id); err != nil {
			return Entry{}, err
		}
	}
	return move, nil
}

// MoveOf is the move to a target (an id, or null), for a storage that reads back
// what it kept.
func MoveOf(target js.Value) Entry {
	e, _ := draft(TypeLeaf, field("targetId", target)).move(func(Code, string) error { return nil })
	return e
}
