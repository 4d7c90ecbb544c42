package eventlog

import (
	"github.com/sessiontree/sessiontree/eventlog/js"
)

// System is what the system messages of a context come to when they are
// replayed: one message with the current prompt and tools (texts joined by a
// blank line, sections patched by name, tools added and removed). It is absent
// when there is none. It fails with [ErrInvalidEntry] where a system message has
// not the form that Pi asks for.
func System(messages []Message) (Message, error) {
	var content []string
	var sections orderedMap
	var at js.Value
	for _, m := range messages {
		if !m.Get("role").Is(RoleSystem) {
			continue
		}
		if at.Nullish() {
			at = m.Get("timestamp")
		}
		text, err := contentText(m.Get("content"), "\n")
		if err != nil {
			return Message{}, err
		}
		if text != "" {
			content = append(content, text)
		}
		patches := m.Get("sections")
		if patches.Nullish() {
			continue
		}
		entries, _ := js.Entries(patches)
		for _, p := range entries {
			if p.Value.Kind() == js.Null {
				sections.delete(p.Key)
			} else {
				sections.set(p.Key, p.Value)
			}
		}
	}
	tools, err := currentTools(messages)
	if err != nil || (!at.Exists() && len(tools) == 0) {
		return Message{}, err
	}
	fields := []js.Member{field("role", js.Text(RoleSystem)), field("content", js.Text(js.Join(content, "\n\n")))}
	if len(sections.members) > 0 {
		fields = append(fields, field("sections", js.Canonical(js.Fields(sections.members...))))
	}
	if len(tools) > 0 {
		fields = append(fields, field("toolsAdded", js.List(tools...)))
	}
	if at.Nullish() {
		at = js.Num(0)
	}
	return Message{js.Fields(append(fields, field("timestamp", at))...)}, nil
}

// SystemPrompt is the text of a system message: its content and its sections,
// with blank lines between.
func SystemPrompt(m Message) (string, error) {
	text, err := contentText(m.Get("content"), "\n")
	if err != nil {
		return "", err
	}
	parts := []string{text}
	for _, s := range m.Get("sections").Members() {
		if part, ok := s.Value.Str(); ok {
			parts = append(parts, part)
		}
	}
	kept := parts[:0]
	for _, p := range parts {
		if p != "" {
			kept = append(kept, p)
		}
	}
	return js.Join(kept, "\n\n"), nil
}

// BranchTools are the names of the tools that stand after replaying all system
// messages of a branch, also those before a compaction: what the coding agent
// switches on when it takes a session up. ok is false when the branch has none.
func BranchTools(branch []Entry) (names []js.Value, ok bool, err error) {
	var system []Message
	for _, e := range branch {
		if e.kind == kindMessage && e.Message().Nullish() {
			return nil, false, e.faulty("message", "is missing")
		}
		if e.isSystem() {
			system = append(system, e.Message())
		}
	}
	if len(system) == 0 {
		return nil, false, nil
	}
	tools, err := currentTools(system)
	return toolNames(tools), true, err
}

// currentTools are the tools after every system message in order.
func currentTools(messages []Message) ([]js.Value, error) {
	var tools orderedMap
	for _, m := range messages {
		if m.Nullish() {
			return nil, Errorf(InvalidEntry, "a message of the context is null")
		}
		if !m.Get("role").Is(RoleSystem) {
			continue
		}
		for _, change := range []struct {
			key string
			do  func(name string, tool js.Value)
		}{
			{"toolsRemoved", func(name string, _ js.Value) { tools.delete(name) }},
			{"toolsAdded", tools.set},
		} {
			list := m.Get(change.key)
			if list.Nullish() {
				continue
			}
			elements, ok := list.Spread()
			if !ok {
				return nil, Errorf(InvalidEntry, "the %s of a system message is no list", change.key)
			}
			for _, tool := range elements {
				if tool.Nullish() {
					return nil, Errorf(InvalidEntry, "the %s of a system message has a tool that is null", change.key)
				}
				change.do(keyOf(tool.Get("name")), tool)
			}
		}
	}
	values := make([]js.Value, len(tools.members))
	for i, t := range tools.members {
		values[i] = t.Value
	}
	return values, nil
}

func toolNames(tools []js.Value) []js.Value {
	names := make([]js.Value, len(tools))
	for i, t := range tools {
		names[i] = t.Get("name")
	}
	return names
}

// orderedMap is a JavaScript Map: in the order in which keys were first set.
type orderedMap struct{ members []js.Member }

func (m *orderedMap) set(key string, v js.Value) {
	for i := range m.members {
		if m.members[i].Key == key {
			m.members[i].Value = v
			return
		}
	}
	m.members = append(m.members, field(key, v))
}

func (m *orderedMap) delete(key string) {
	for i := range m.members {
		if m.members[i].Key == key {
			m.members = append(m.members[:i:i], m.members[i+1:]...)
			return
		}
	}
}
