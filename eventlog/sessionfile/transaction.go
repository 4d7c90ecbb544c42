package sessionfile

import (
	"fmt"

	"github.com/sessiontree/sessiontree/eventlog"
	"github.com/sessiontree/sessiontree/eventlog/js"
	"github.com/sessiontree/sessiontree/eventlog/textedit"
)

// The addresses of version 4 at which Pi's harness keeps what version 3 has as
// entries.
const (
	branchTip   = "pi.branch.tip" // key: the branch
	entryLabel  = "pi.entry.label"
	sessionName = "pi.session.name"
	mainBranch  = "main"
)

// transactions are the lines of version 4.
type transactions struct {
	leaf eventlog.Ref            // where the log stands so far, as version 3 has it
	tips map[string]eventlog.Ref // by branch
	// main is the branch whose tip is the leaf: the one of that name, else the first.
	main  string
	stamp string // of the last entry
}

// committed: a transaction counts when its newline is there. Pi cuts one off that
// has none.
func (*transactions) committed() bool { return false }

func (t *transactions) part(text string, add adder) error { return t.record(text, add) }

// record reads a transaction, all of it or nothing.
func (t *transactions) record(text string, add adder) error {
	writes, err := writesOf(text)
	if err != nil {
		return err
	}
	made := make([]eventlog.Entry, len(writes))
	backs := make([]Edits, len(writes))
	for i, w := range writes {
		if made[i], backs[i], err = w.check(); err != nil {
			return err
		}
	}
	for i, w := range writes {
		if made[i].ID() != "" {
			add(w.start, w.end, made[i], backs[i])
			t.leaf, t.stamp = eventlog.At(made[i].ID()), made[i].Timestamp()
		} else {
			t.note(w, add)
		}
	}
	if tip, ok := t.tips[t.main]; ok && tip != t.leaf {
		seq := writes[len(writes)-1].seq
		t.control(len(text), add, eventlog.TypeLeaf, "tip", seq, js.Member{Key: "targetId", Value: tip.Value()})
		t.leaf = tip
	}
	return nil
}

// note takes a value that version 3 has as an entry.
func (t *transactions) note(w write, add adder) {
	if !w.value.Get("kind").Is("value") {
		return
	}
	key, _ := w.value.Get("key").Str()
	set := w.value.Get("value")
	if w.value.Get("op").Is("delete") {
		set = js.NullValue()
	}
	text, _ := set.Str()
	switch namespace, _ := w.value.Get("namespace").Str(); namespace {
	case branchTip:
		if t.main == "" || key == mainBranch {
			t.main = key
		}
		tip := eventlog.None()
		if text != "" {
			tip = eventlog.At(text)
		}
		t.tips[key] = tip
	case entryLabel:
		t.control(w.end, add, eventlog.TypeLabel, "label", w.seq,
			js.Member{Key: "targetId", Value: js.Text(key)}, js.Member{Key: "label", Value: js.Text(text)})
	case sessionName:
		t.control(w.end, add, eventlog.TypeSessionInfo, "name", w.seq, js.Member{Key: "name", Value: js.Text(text)})
	}
}

// control adds an entry that the file does not have as one. Its id is made of the
// sequence number that the write has in its session.
func (t *transactions) control(at int, add adder, typ eventlog.Type, what string, seq int64, fields ...js.Member) {
	stamp := t.stamp
	if stamp == "" {
		stamp = "1970-01-01T00:00:00.000Z" // a value before the first entry, which has no time
	}
	e, err := eventlog.ParseEntry(js.Fields(append([]js.Member{
		{Key: "type", Value: js.Text(string(typ))},
		{Key: "id", Value: js.Text(fmt.Sprintf("%s-%d", what, seq))},
		{Key: "parentId", Value: t.leaf.Value()},
		{Key: "timestamp", Value: js.Text(stamp)},
	}, fields...)...).JSON())
	if err != nil {
		panic(err) // it is made of what is needed
	}
	add(at, at, e, Edits{{Delete: len(e.JSON())}})
	t.leaf = e.LeafAfter()
}

// write is one write of a transaction.
type write struct {
	value      js.Value
	start, end int // in the transaction's text
	seq        int64
}

func invalidWrite(format string, args ...any) error {
	return eventlog.Errorf(eventlog.InvalidEntry, "is no transaction: "+format, args...)
}

// writesOf are the writes of a transaction: an object, or a list of them.
func writesOf(text string) ([]write, error) {
	v, err := js.Parse(text)
	if err != nil {
		return nil, &eventlog.Error{Code: eventlog.InvalidEntry, Message: "is not valid JSON", Err: err}
	}
	switch v.Kind() {
	case js.Object:
		return []write{{value: v, end: len(text)}}, nil
	case js.Array:
	default:
		return nil, invalidWrite("it is %s", v.Kind())
	}
	var writes []write
	at := 1
	for element := range v.Elements() {
		for text[at] != element.JSON()[0] { // a comma, white space
			at++
		}
		end := at + len(element.JSON())
		writes = append(writes, write{value: element, start: at, end: end})
		at = end
	}
	return writes, nil
}

// check says what is wrong with a write (parseCommittedWrite in Pi), and makes an
// entry of version 3 of one that is an entry.
func (w *write) check() (e eventlog.Entry, back Edits, err error) {
	if w.value.Kind() != js.Object {
		return e, nil, invalidWrite("a write is %s", w.value.Kind())
	}
	seq, ok := w.value.Get("seq").Float()
	if !ok || seq < 1 || seq != float64(int64(seq)) {
		return e, nil, invalidWrite("invalid write seq")
	}
	w.seq = int64(seq)
	op := w.value.Get("op")
	switch kind, _ := w.value.Get("kind").Str(); kind {
	case "entry":
		return w.entry()
	case "usage":
	case "value":
		if !op.Is("set") && !op.Is("delete") {
			return e, nil, invalidWrite("invalid value operation")
		}
	case "list":
		if !op.Is("append") && !op.Is("delete") {
			return e, nil, invalidWrite("invalid list operation")
		}
	default:
		return e, nil, invalidWrite("invalid write kind %q", js.Prefix(kind, 20))
	}
	return e, nil, nil
}

// entry makes an entry of version 3: its kind goes, its time becomes a date.
func (w *write) entry() (eventlog.Entry, Edits, error) {
	stamp, ok := isoTime(w.value.Get("timestamp"))
	if !ok {
		return eventlog.Entry{}, nil, invalidWrite("invalid entry timestamp")
	}
	text := w.value.JSON()
	kind, _ := textedit.Find(text, 0, "kind")
	at, _ := textedit.Find(text, 0, "timestamp")
	made, back := textedit.Rewrite(text, textedit.Ordered(Edits{kind.Remove(text), at.Set(js.Text(stamp))}))
	e, err := eventlog.ParseEntry(made)
	return e, back, err
}
