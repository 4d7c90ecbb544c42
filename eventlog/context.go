package eventlog

// A Projector makes messages of a custom entry, for the context. index is its
// place among entries, the context's entries.
type Projector func(e Entry, index int, entries []Entry) ([]Message, error)

// A Transform changes the list of entries that make a context. It runs after
// the default selection, and must not change what it is given.
type Transform func(entries []Entry) ([]Entry, error)

// ContextOptions change what a context is made of. Settings do not depend on
// them: they come from the whole branch.
type ContextOptions struct {
	Transforms []Transform
	Projectors map[string]Projector // by customType
}

// merged is o with more behind it; more's projectors win.
func (o ContextOptions) merged(more []ContextOptions) ContextOptions {
	if len(more) == 0 {
		return o
	}
	m := ContextOptions{Transforms: append([]Transform(nil), o.Transforms...), Projectors: map[string]Projector{}}
	for k, p := range o.Projectors {
		m.Projectors[k] = p
	}
	for _, x := range more {
		m.Transforms = append(m.Transforms, x.Transforms...)
		for k, p := range x.Projectors {
			m.Projectors[k] = p
		}
	}
	return m
}

// Context is what the model gets to see of a session.
type Context struct {
	Settings
	Messages []Message
}

// contextEntries selects a branch's context entries and runs the transforms.
func (o ContextOptions) contextEntries(d Dialect, branch []Entry) ([]Entry, error) {
	return o.transformed(d.ContextEntries(branch))
}

// transformed runs the transforms over a context's entries.
func (o ContextOptions) transformed(entries []Entry) ([]Entry, error) {
	for _, transform := range o.Transforms {
		var err error
		if entries, err = transform(entries); err != nil {
			return nil, err
		}
	}
	return entries, nil
}

// BuildContext makes the context of a branch, as [Storage.Branch] gives it. It
// fails with [ErrInvalidEntry] where an entry on the branch lacks what the
// context needs, and with what a transform or projector returns.
func (d Dialect) BuildContext(branch []Entry, o ContextOptions) (Context, error) {
	var c Context
	var err error
	if c.Settings, err = d.Settings(branch); err != nil {
		return Context{}, err
	}
	entries, err := o.contextEntries(d, branch)
	if err != nil {
		return Context{}, err
	}
	return d.contextOf(c.Settings, entries, o)
}

// contextOf makes the context of its entries.
func (d Dialect) contextOf(s Settings, entries []Entry, o ContextOptions) (Context, error) {
	c := Context{Settings: s, Messages: make([]Message, 0, len(entries))}
	r, ed := d.rules(), d.rules().edits(entries)
	var system []Message // those that may be system messages
	var err error
	for i := range entries {
		before := len(c.Messages)
		if c.Messages, err = r.messages(c.Messages, i, entries, ed, &o); err != nil {
			return Context{}, err
		}
		if entries[i].mayBeSystem() {
			system = append(system, c.Messages[before:]...)
		}
	}
	if c.ActiveTools, err = r.tools(s, system); err != nil {
		return Context{}, err
	}
	return c, nil
}
