package older

import (
	"crypto/sha256"
	"encoding/hex"
	"math"

	"github.com/sessiontree/sessiontree/eventlog"
	"github.com/sessiontree/sessiontree/eventlog/js"
	"github.com/sessiontree/sessiontree/eventlog/textedit"
)

// Chain brings the entries of version 1 to version 3, one after another: each hangs
// below the one before. Ids that were there are replaced all the same.
type Chain struct {
	// Source gives the new ids if it makes any; else they are made of the text and of
	// the id before, 16 hexadecimal digits.
	Source eventlog.Source
	// Later is the id that a record has, by its index, which has not come yet: Pi
	// writes that for a compaction that keeps from there. It keeps nothing either way,
	// for that id is replaced. nil knows none.
	Later func(index int) js.Value

	last  string   // id of the last entry
	ids   []string // by index of the record, from 1; "" for one that is no entry
	taken map[string]bool
}

// Record makes an entry of a line's text, which is an object: take reads it. back
// leads back to the text.
func (c *Chain) Record(text string, take func(text string) (eventlog.Entry, error)) (e eventlog.Entry, back textedit.Edits, err error) {
	e, back, err = c.entry(text, len(c.ids)+1, take)
	c.ids = append(c.ids, e.ID())
	return e, back, err
}

// Inside is Record for an entry inside a line that is no record.
func (c *Chain) Inside(text string, take func(text string) (eventlog.Entry, error)) (eventlog.Entry, textedit.Edits, error) {
	return c.entry(text, 0, take)
}

// Pass counts a record that is no entry.
func (c *Chain) Pass() { c.ids = append(c.ids, "") }

func (c *Chain) entry(text string, index int, take func(text string) (eventlog.Entry, error)) (eventlog.Entry, textedit.Edits, error) {
	id := c.id(text)
	made, back := textedit.Rewrite(text, c.changes(js.Trusted(text), id, index))
	e, err := take(made)
	if err != nil {
		return eventlog.Entry{}, nil, err
	}
	c.last = id
	return e, back, nil
}

// id is the id of the next entry.
func (c *Chain) id(text string) string {
	if c.Source.NewID == nil {
		sum := sha256.Sum256([]byte(c.last + "\n" + text))
		return hex.EncodeToString(sum[:8])
	}
	if c.taken == nil {
		c.taken = map[string]bool{}
	}
	id, _ := c.Source.EntryID(func(id string) (bool, error) { return c.taken[id], nil })
	c.taken[id] = true
	return id
}

// changes bring an entry to version 3.
func (c *Chain) changes(v js.Value, id string, index int) textedit.Edits {
	text := v.JSON()
	parent := js.NullValue()
	if c.last != "" {
		parent = js.Text(c.last)
	}
	var changes textedit.Edits
	var last []js.Member
	set := func(key string, value js.Value) {
		if m, ok := textedit.Find(text, 0, key); ok {
			changes = append(changes, m.Set(value))
		} else {
			last = append(last, js.Member{Key: key, Value: value})
		}
	}
	set("id", js.Text(id))
	set("parentId", parent)
	if v.Get("type").Is(string(eventlog.TypeCompaction)) {
		if kept, ok := v.Get("firstKeptEntryIndex").Float(); ok {
			m, _ := textedit.Find(text, 0, "firstKeptEntryIndex")
			changes = append(changes, m.Remove(text))
			if first := c.kept(kept, id, index); first.Exists() {
				set("firstKeptEntryId", first)
			}
		}
	} else if isHook(v) {
		changes = append(changes, roleToday(text))
	}
	if last != nil {
		changes = append(changes, textedit.Add(text, last...))
	}
	return textedit.Ordered(changes)
}

// kept is the id of the record with an index, absent for none; own and at are those
// of the record that asks, 0 if it is none.
func (c *Chain) kept(index float64, own string, at int) js.Value {
	i := int(index)
	switch {
	case index != math.Trunc(index) || index < 1 || index > math.MaxInt32:
	case i <= len(c.ids):
		if id := c.ids[i-1]; id != "" {
			return js.Text(id)
		}
	case i == at:
		return js.Text(own)
	case c.Later != nil:
		return c.Later(i)
	}
	return js.Value{}
}
