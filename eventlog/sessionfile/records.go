package sessionfile

import (
	"github.com/sessiontree/sessiontree/eventlog"
	"github.com/sessiontree/sessiontree/eventlog/js"
	"github.com/sessiontree/sessiontree/eventlog/older"
)

func rulesOf(f Format, as eventlog.Dialect) rules {
	switch f {
	case V1:
		return &chain{as: as}
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
		made, back := older.Roles(r.as, e)
		add(0, len(text), made, back)
	}
	return err
}

func (r hookMessages) part(text string, add adder) error {
	if _, err := eventlog.ParseEntry(text); err != nil {
		return err
	}
	return r.record(text, add)
}

func (hookMessages) committed() bool { return true }

// chain is version 1. Pi refuses a file with a record that is no object; here that
// is damage.
type chain struct {
	as eventlog.Dialect
	older.Chain
}

func (c *chain) record(text string, add adder) error {
	v, err := js.Parse(text)
	switch {
	case err != nil:
		return notJSON(err)
	case !v.Truthy():
		return eventlog.Errorf(eventlog.InvalidEntry, "holds nothing")
	case v.Get("type").Is("session"):
		c.Pass()
		return eventlog.Errorf(eventlog.InvalidEntry, "is a further header")
	case v.Kind() != js.Object:
		c.Pass()
		return eventlog.Errorf(eventlog.InvalidEntry, "is not a valid session entry")
	}
	return give(add, text)(c.Record(text, c.as.ParseEntry))
}

func (c *chain) part(text string, add adder) error {
	return give(add, text)(c.Inside(text, func(text string) (eventlog.Entry, error) { return strictly(c.as, text) }))
}

func give(add adder, text string) func(e eventlog.Entry, back Edits, err error) error {
	return func(e eventlog.Entry, back Edits, err error) error {
		if err == nil {
			add(0, len(text), e, back)
		}
		return err
	}
}

func (*chain) committed() bool { return true }
