package sessionfile

import (
	"crypto/sha256"
	"encoding/hex"
	"math"

	"github.com/sessiontree/sessiontree/eventlog"
	"github.com/sessiontree/sessiontree/eventlog/js"
)

func rulesOf(f Format, as eventlog.Dialect) rules {
	switch f {
	case V1:
		return &chain{as: as, ids: []string{""}}
	case V2:
		return hookMessages{as}
	case V4:
		return &transactions{tips: map[string]eventlog.Ref{}}
	}
	return entries{as}
}

// strictly is an entry of a dialect that is one by the harness's rules too: what
// stands inside a line that is no record is not taken for an entry otherwise.
func strictly(as eventlog.Dialect, text string) (eventlog.Entry, error) {
	e, err := eventlog.ParseEntry(text)
	if err == nil && as != eventlog.Harness {
		e, err = as.ParseEntry(text)
	}
	return e, err
}

// adder takes an entry that stands at start to end of a text.
type adder = func(start, end int, e eventlog.Entry, back Edits)

// entries are the lines of version 3.
type entries struct{ as eventlog.Dialect }

func (r entries) record(text string, add adder) error {
	e, err := r.as.ParseEntry(text)
	if err == nil {
		add(0, len(text), e, nil)
	}
	return err
}

func (r entries) part(text string, add adder) error {
	e, err := strictly(r.as, text)
	if err == nil {
		add(0, len(text), e, nil)
	}
	return err
}

func (entries) committed() bool { return true }

// hookMessages are the lines of version 2.
type hookMessages struct{ as eventlog.Dialect }

func (r hookMessages) record(text string, add adder) error {
	e, err := r.as.ParseEntry(text)
	if err == nil {
		r.add(e, add)
	}
	return err
}

func (r hookMessages) part(text string, add adder) error {
	e, err := strictly(r.as, text)
	if err == nil {
		r.add(e, add)
	}
	return err
}

func (r hookMessages) add(e eventlog.Entry, add adder) {
	text := e.JSON()
	made, back := rewrite(text, roleToday(e))
	if back != nil {
		e = r.as.TrustedEntry(made)
	}
	add(0, len(text), e, back)
}

func (hookMessages) committed() bool { return true }

// roleToday is the change that makes custom of the role hookMessage.
func roleToday(e eventlog.Entry) Edits {
	if e.Type() != eventlog.TypeMessage || e.Message().Role() != "hookMessage" {
		return nil
	}
	text := e.JSON()
	message, _ := find(text, 0, "message")
	role, _ := find(text, message.start, "role")
	return Edits{role.set(js.Text(eventlog.RoleCustom))}
}

// chain is version 1: entries without ids, each below the one before. Ids are made
// of the text and of the id before, 16 hexadecimal digits.
type chain struct {
	as   eventlog.Dialect
	last string   // id of the last entry
	ids  []string // by record, the header being 0; "" for one that is no entry
	// inside says that a text is part of a line that is no record, which Pi does
	// not count.
	inside bool
}

func (c *chain) record(text string, add adder) error {
	if _, err := js.Parse(text); err != nil {
		return notJSON(err)
	}
	c.inside = false
	return c.take(text, add)
}

func (c *chain) part(text string, add adder) error {
	c.inside = true
	return c.take(text, add)
}

func (*chain) committed() bool { return true }

func (c *chain) take(text string, add adder) error {
	v := js.Trusted(text)
	if !v.Truthy() {
		return eventlog.Errorf(eventlog.InvalidEntry, "is not a valid session entry")
	}
	count := func(id string) {
		if !c.inside {
			c.ids = append(c.ids, id)
		}
	}
	if v.Kind() != js.Object || v.Get("type").Is("session") {
		count("")
		return eventlog.Errorf(eventlog.InvalidEntry, "is not a valid session entry")
	}
	sum := sha256.Sum256([]byte(c.last + "\n" + text))
	id := hex.EncodeToString(sum[:8])
	made, back := rewrite(text, c.changes(v, id))
	parse := c.as.ParseEntry
	if c.inside {
		parse = func(text string) (eventlog.Entry, error) { return strictly(c.as, text) }
	}
	e, err := parse(made)
	if err != nil {
		count("")
		return err
	}
	count(id)
	c.last = id
	add(0, len(text), e, back)
	return nil
}

// changes bring an entry to version 3.
func (c *chain) changes(v js.Value, id string) Edits {
	text := v.JSON()
	parent := js.NullValue()
	if c.last != "" {
		parent = js.Text(c.last)
	}
	var changes Edits
	var last []js.Member
	set := func(key string, value js.Value) {
		if m, ok := find(text, 0, key); ok {
			changes = append(changes, m.set(value))
		} else {
			last = append(last, js.Member{Key: key, Value: value})
		}
	}
	set("id", js.Text(id))
	set("parentId", parent)
	switch {
	case v.Get("type").Is(string(eventlog.TypeCompaction)):
		if index, ok := v.Get("firstKeptEntryIndex").Float(); ok {
			m, _ := find(text, 0, "firstKeptEntryIndex")
			changes = append(changes, m.remove(text))
			if kept := c.kept(index, id); kept != "" {
				set("firstKeptEntryId", js.Text(kept))
			}
		}
	case v.Get("type").Is(string(eventlog.TypeMessage)) && v.Get("message").Get("role").Is("hookMessage"):
		message, _ := find(text, 0, "message")
		role, _ := find(text, message.start, "role")
		changes = append(changes, role.set(js.Text(eventlog.RoleCustom)))
	}
	if last != nil {
		changes = append(changes, add(text, last...))
	}
	return ordered(changes)
}

// kept is the id of the record with an index, "" for none; the next one's is own.
// Of a later record Pi takes the id that it had before, which none has after that:
// here it is none.
func (c *chain) kept(index float64, own string) string {
	switch {
	case index != math.Trunc(index) || index < 0 || index > float64(len(c.ids)):
		return ""
	case int(index) == len(c.ids):
		if c.inside {
			return ""
		}
		return own
	}
	return c.ids[int(index)]
}
