package eventlog

import (
	"strings"

	"github.com/sessiontree/sessiontree/eventlog/js"
)

// The texts that Pi puts around a summary for the model.
const (
	compactionPrefix = "The conversation history before this point was compacted into the following summary:\n\n<summary>\n"
	compactionSuffix = "\n</summary>"
	branchPrefix     = "The following is a summary of a branch that this conversation came back from:\n\n<summary>\n"
	branchSuffix     = "</summary>"
)

// ToLLM makes of a context's messages those that a provider takes: messages of
// role bashExecution, custom, branchSummary and compactionSummary become user
// messages, user, assistant and toolResult pass as they are, and the rest (a
// shell run that is kept from the context, an unknown role) is dropped. It fails
// with [ErrInvalidEntry] when a message is null. The coding agent passes system
// messages too.
func (d Dialect) ToLLM(messages []Message) ([]Message, error) {
	out := make([]Message, 0, len(messages))
	for _, m := range messages {
		if m.Nullish() {
			return nil, Errorf(InvalidEntry, "a message of the context is null")
		}
		switch r := m.Get("role"); roleOf(r) {
		case roleUser, roleAssistant, roleToolResult:
			out = append(out, m)
		case roleOther:
			if r.Is(RoleSystem) && d.rules().knowsSystem() {
				out = append(out, m)
			}
		case roleBashExecution:
			if !m.Get("excludeFromContext").Truthy() {
				out = append(out, asUser(m, textBlocks(bashText(m))))
			}
		case roleCustom:
			content := m.Get("content")
			if s, ok := content.Str(); ok {
				content = textBlocks(s)
			}
			out = append(out, asUser(m, content))
		case roleBranchSummary:
			out = append(out, asUser(m, textBlocks(js.Concat(branchPrefix, js.ToString(m.Get("summary")), branchSuffix))))
		case roleCompactionSummary:
			out = append(out, asUser(m, textBlocks(js.Concat(compactionPrefix, js.ToString(m.Get("summary")), compactionSuffix))))
		}
	}
	return out, nil
}

func asUser(m Message, content js.Value) Message {
	return Message{js.Fields(
		field("role", js.Text(RoleUser)),
		field("content", content),
		field("timestamp", m.Get("timestamp")))}
}

// bashText tells the model of a command that the user ran.
func bashText(m Message) string {
	var b strings.Builder
	b.WriteString("Ran `" + js.ToString(m.Get("command")) + "`\n")
	if output := m.Get("output"); output.Truthy() {
		b.WriteString("```\n" + js.ToString(output) + "\n```")
	} else {
		b.WriteString("(no output)")
	}
	exit := m.Get("exitCode")
	code, isNumber := exit.Float()
	switch {
	case m.Get("cancelled").Truthy():
		b.WriteString("\n\n(command cancelled)")
	case !exit.Nullish() && !(isNumber && code == 0):
		b.WriteString("\n\nCommand exited with code " + js.ToString(exit))
	}
	if path := m.Get("fullOutputPath"); m.Get("truncated").Truthy() && path.Truthy() {
		b.WriteString("\n\n[Output truncated. Full output: " + js.ToString(path) + "]")
	}
	return b.String()
}

// WellFormed gives the messages with each half of a surrogate pair replaced by
// U+FFFD, for providers that refuse it. Messages without one stay byte for byte.
func WellFormed(messages []Message) []Message {
	out := make([]Message, len(messages))
	for i, m := range messages {
		out[i] = Message{js.WellFormed(m.Value)}
	}
	return out
}

// contentText is the text of a content: a text as it is, else its text blocks
// joined by sep. It fails where Pi throws: a content that is no list, a block
// that is null.
func contentText(content js.Value, sep string) (string, error) {
	if s, ok := content.Str(); ok {
		return s, nil
	}
	if content.Kind() != js.Array {
		return "", Errorf(InvalidEntry, "the content of a message is %s, not a text or a list", content.Kind())
	}
	var parts []string
	for block := range content.Elements() {
		if block.Nullish() {
			return "", Errorf(InvalidEntry, "a block of a message's content is null")
		}
		if block.Get("type").Is("text") {
			parts = append(parts, joined(block.Get("text")))
		}
	}
	return js.Join(parts, sep), nil
}

// joined is what Array.prototype.join makes of an element.
func joined(v js.Value) string {
	if v.Nullish() {
		return ""
	}
	return js.ToString(v)
}
