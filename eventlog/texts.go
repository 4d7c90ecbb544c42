package eventlog

import (
	"strings"

	"github.com/sessiontree/sessiontree/eventlog/js"
)

// TextKind says what a text in an entry is to those who search for it.
type TextKind string

// The kinds of texts.
const (
	TextMessage TextKind = "message" // of users, assistants (thinking too) and hosts
	TextSummary TextKind = "summary" // of compactions and of branches that were left
	TextName    TextKind = "name"    // of a session
	TextLabel   TextKind = "label"
	TextCall    TextKind = "call"   // name and arguments of a tool call; a user's command
	TextResult  TextKind = "result" // of a tool or of a user's command
)

// TextKinds lists the kinds of texts.
func TextKinds() []TextKind {
	return []TextKind{TextMessage, TextSummary, TextName, TextLabel, TextCall, TextResult}
}

// Text is what an entry has to say of one kind.
type Text struct {
	Kind TextKind
	Text string
}

// MaxText is how many bytes of its texts [Entry.Texts] gives at most.
const MaxText = 1 << 20

// Texts are the texts of an entry that people search for, decoded: at most one of
// a kind, and [MaxText] bytes in all.
func (e Entry) Texts() []Text {
	g := gathered{left: MaxText}
	switch e.kind {
	case kindMessage:
		g.message(e.Message())
	case kindCustomMessage:
		g.content(TextMessage, e.Get("content"))
	case kindCompaction, kindBranchSummary:
		g.value(TextSummary, e.Get("summary"))
	case kindSessionInfo:
		g.value(TextName, e.Get("name"))
	case kindLabel:
		g.value(TextLabel, e.Get("label"))
	}
	return g.texts()
}

// gathered are the texts of an entry, as they are found.
type gathered struct {
	parts []Text
	left  int
}

func (g *gathered) add(k TextKind, s string) {
	if s == "" || g.left <= 0 {
		return
	}
	if len(s) > g.left {
		s = strings.ToValidUTF8(s[:g.left], "")
	}
	g.left -= len(s)
	g.parts = append(g.parts, Text{k, s})
}

func (g *gathered) value(k TextKind, v js.Value) {
	s, _ := v.Str()
	g.add(k, s)
}

// content adds a text, or the texts of a list of blocks.
func (g *gathered) content(k TextKind, content js.Value) {
	g.value(k, content)
	for block := range content.Elements() {
		switch t, _ := block.Get("type").Str(); t {
		case "text":
			g.value(k, block.Get("text"))
		case "thinking":
			g.value(k, block.Get("thinking"))
		case "toolCall":
			g.value(TextCall, block.Get("name"))
			g.strings(TextCall, block.Get("arguments").JSON())
		}
	}
}

func (g *gathered) message(m Message) {
	switch m.Role() {
	case RoleToolResult:
		g.value(TextResult, m.Get("toolName"))
		g.content(TextResult, m.Get("content"))
	case RoleBashExecution:
		g.value(TextCall, m.Get("command"))
		g.value(TextResult, m.Get("output"))
	case RoleCompactionSummary, RoleBranchSummary:
		g.value(TextSummary, m.Get("summary"))
	default:
		g.content(TextMessage, m.Get("content"))
	}
}

// strings adds all strings in a JSON text, however deep they are, keys too.
func (g *gathered) strings(k TextKind, text string) {
	for i := 0; i < len(text) && g.left > 0; i++ {
		if text[i] != '"' {
			continue
		}
		end := i + 1
		for end < len(text) && text[end] != '"' {
			if text[end] == '\\' {
				end++
			}
			end++
		}
		g.value(k, js.Trusted(text[i:min(end+1, len(text))]))
		i = end
	}
}

// texts joins the parts of each kind.
func (g *gathered) texts() (all []Text) {
	if len(g.parts) < 2 {
		return g.parts
	}
	for _, k := range TextKinds() {
		var parts []string
		for _, p := range g.parts {
			if p.Kind == k {
				parts = append(parts, p.Text)
			}
		}
		if len(parts) > 0 {
			all = append(all, Text{k, strings.Join(parts, "\n")})
		}
	}
	return all
}
