package eventlog

import (
	"iter"
	"math"

	"github.com/sessiontree/sessiontree/eventlog/js"
)

// Info is how a list shows a session, as the coding agent's list does.
type Info struct {
	Metadata
	Name         string  // the last session_info's, trimmed; "" for none
	Modified     float64 // milliseconds since 1970: the last user or assistant message, else the header's time; NaN if there is neither
	Messages     int     // message entries
	FirstMessage string  // the first user message with a text, "" for none
	Text         string  // of all user and assistant messages, joined by a blank
}

// InfoOf makes a session's information from its entries. An entry that has not the
// form it should have is passed over: it hides no session.
func InfoOf(m Metadata, entries iter.Seq2[Entry, error]) (Info, error) {
	info := Info{Metadata: m, Modified: js.ParseDate(m.CreatedAt)}
	var texts []string
	last := 0.0
	for e, err := range entries {
		if err != nil {
			return Info{}, err
		}
		switch e.kind {
		case kindSessionInfo:
			if name := e.Get("name"); name.Nullish() || name.Kind() == js.String {
				text, _ := name.Str()
				info.Name = js.Trim(text)
			}
		case kindMessage:
			info.Messages++
			if e.role != roleUser && e.role != roleAssistant || !e.Message().Get("content").Exists() {
				continue
			}
			at, ok := e.Message().Get("timestamp").Float()
			if !ok {
				at = dateOf(e.stamp())
			}
			if !math.IsNaN(at) {
				last = max(last, at)
			}
			text, err := contentText(e.Message().Get("content"), " ")
			if err != nil || text == "" {
				continue
			}
			texts = append(texts, text)
			if e.role == roleUser && info.FirstMessage == "" {
				info.FirstMessage = text
			}
		}
	}
	if last > 0 {
		info.Modified = last
	}
	info.Text = js.Join(texts, " ")
	return info, nil
}
