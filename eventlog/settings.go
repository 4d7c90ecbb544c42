package eventlog

import "github.com/sessiontree/sessiontree/eventlog/js"

// KeepsSettings says whether the settings behind an entry follow from those behind
// its parent, so that a store can keep them with each entry instead of reading the
// whole way up. (In the harness's dialect a compaction cuts them off.)
func (d Dialect) KeepsSettings() bool { return d.rules().holeEnds() }

// SettingsAfter are the settings behind e, in the form in which a store keeps them:
// before are those behind its parent, "" for a root.
func (d Dialect) SettingsAfter(before string, e Entry) string {
	kept := js.Trusted(before)
	if kept.Get("fault").Exists() {
		return before
	}
	switch e.kind {
	case kindMessage:
		if e.role == roleOther && e.Message().Nullish() {
			return js.Fields(field("fault", js.Text(e.faulty("message", "is missing").Message))).JSON()
		}
		if e.role != roleAssistant {
			return before
		}
	case kindThinkingLevelChange:
		return js.Fields(field("thinking", js.List(e.Get("thinkingLevel"))), field("model", kept.Get("model"))).JSON()
	case kindModelChange:
	default:
		return before
	}
	m := modelOf(e)
	model := js.Fields(field("provider", m.Provider), field("modelId", m.ID))
	if kept.Get("model").JSON() == model.JSON() {
		return before
	}
	return js.Fields(field("thinking", kept.Get("thinking")), field("model", model)).JSON()
}

// KeptSettings reads what SettingsAfter gave. It fails as [Dialect.Settings] does.
func KeptSettings(kept string) (Settings, error) {
	s := Settings{ThinkingLevel: js.Text("off")}
	v := js.Trusted(kept)
	if fault, ok := v.Get("fault").Str(); ok {
		return s, Errorf(InvalidEntry, "%s", fault)
	}
	if level := v.Get("thinking"); level.Exists() {
		s.ThinkingLevel = js.Value{}
		for l := range level.Elements() {
			s.ThinkingLevel = l
		}
	}
	if m := v.Get("model"); m.Exists() {
		s.Model = &Model{m.Get("provider"), m.Get("modelId")}
	}
	return s, nil
}
