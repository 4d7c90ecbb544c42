package eventlog

import (
	"time"

	"github.com/sessiontree/sessiontree/eventlog/js"
)

// The roles that messages have. Messages of other roles are kept, count as part
// of the context, and do not reach the model.
const (
	RoleUser              = "user"
	RoleAssistant         = "assistant"
	RoleToolResult        = "toolResult"
	RoleSystem            = "system" // the coding agent's: prompts and tools
	RoleBashExecution     = "bashExecution"
	RoleCustom            = "custom"
	RoleBranchSummary     = "branchSummary"
	RoleCompactionSummary = "compactionSummary"
)

type role uint8

const (
	roleOther role = iota
	roleUser
	roleAssistant
	roleToolResult
	roleBashExecution
	roleCustom
	roleBranchSummary
	roleCompactionSummary
)

func roleOf(v js.Value) role {
	s, _ := v.Str()
	switch s {
	case RoleUser:
		return roleUser
	case RoleAssistant:
		return roleAssistant
	case RoleToolResult:
		return roleToolResult
	case RoleBashExecution:
		return roleBashExecution
	case RoleCustom:
		return roleCustom
	case RoleBranchSummary:
		return roleBranchSummary
	case RoleCompactionSummary:
		return roleCompactionSummary
	}
	return roleOther
}

// Message is one message of a context, held as its JSON text. Its fields are
// read with Get; the As methods decode the roles that hosts handle.
type Message struct{ js.Value }

// ParseMessage checks that text is a JSON object and takes it as a message.
func ParseMessage(text string) (Message, error) {
	v, err := js.Parse(text)
	if err != nil {
		return Message{}, &Error{InvalidArgument, "the message is not valid JSON", err}
	}
	if v.Kind() != js.Object {
		return Message{}, Errorf(InvalidArgument, "a message is an object, not %s", v.Kind())
	}
	return Message{v}, nil
}

// Role is the message's role, "" if it has none.
func (m Message) Role() string {
	s, _ := m.Get("role").Str()
	return s
}

// Time is the message's time in milliseconds since 1970, and whether it has one.
func (m Message) Time() (ms float64, ok bool) { return m.Get("timestamp").Float() }

// PlainText is the text of the message's content: a text as it is, else its
// text blocks joined by newlines. It never fails: what is no text gives none.
func (m Message) PlainText() string {
	text, err := contentText(m.Get("content"), "\n")
	if err != nil {
		return ""
	}
	return text
}

// UserMessage makes a message of role user with one text block.
func UserMessage(text string, at time.Time) Message {
	return Message{js.Fields(
		js.Member{Key: "role", Value: js.Text(RoleUser)},
		js.Member{Key: "content", Value: textBlocks(text)},
		js.Member{Key: "timestamp", Value: js.Num(float64(at.UnixMilli()))},
	)}
}

// Usage is what a response cost. Cost is in the currency that the host counts
// in (Pi: US dollars); the rest are tokens.
type Usage struct {
	Input, Output, CacheRead, CacheWrite float64
	Cost                                 float64
}

// value has Pi's fields.
func (u Usage) value() js.Value {
	n := js.Num
	return js.Fields(
		js.Member{Key: "input", Value: n(u.Input)},
		js.Member{Key: "output", Value: n(u.Output)},
		js.Member{Key: "cacheRead", Value: n(u.CacheRead)},
		js.Member{Key: "cacheWrite", Value: n(u.CacheWrite)},
		js.Member{Key: "totalTokens", Value: n(u.Input + u.Output + u.CacheRead + u.CacheWrite)},
		js.Member{Key: "cost", Value: js.Fields(
			js.Member{Key: "input", Value: n(0)}, js.Member{Key: "output", Value: n(0)},
			js.Member{Key: "cacheRead", Value: n(0)}, js.Member{Key: "cacheWrite", Value: n(0)},
			js.Member{Key: "total", Value: n(u.Cost)})},
	)
}

// usageOf reads a usage that is whole: all five numbers are there. Pi counts no
// other.
func usageOf(v js.Value) (u Usage, ok bool) {
	fields := [...]struct {
		to *float64
		v  js.Value
	}{
		{&u.Input, v.Get("input")}, {&u.Output, v.Get("output")},
		{&u.CacheRead, v.Get("cacheRead")}, {&u.CacheWrite, v.Get("cacheWrite")},
		{&u.Cost, v.Get("cost").Get("total")},
	}
	for _, f := range fields {
		if *f.to, ok = f.v.Float(); !ok {
			return Usage{}, false
		}
	}
	return u, true
}

// Assistant is a message of role assistant, decoded. Fields that a message
// lacks are zero; Message has all of it.
type Assistant struct {
	Message
	Content      []Block
	API          string
	Provider     string
	Model        string
	StopReason   string
	ErrorMessage string
	Usage        Usage
}

// Block is one block of a message's content.
type Block struct {
	js.Value
	Type      string // text, thinking, image, toolCall, or another
	Text      string // of text and thinking
	ID        string // of toolCall
	Name      string // of toolCall
	Arguments js.Value
}

// AsAssistant decodes a message of role assistant.
func (m Message) AsAssistant() (Assistant, bool) {
	if !m.Get("role").Is(RoleAssistant) {
		return Assistant{}, false
	}
	a := Assistant{Message: m, Content: m.Blocks()}
	for key, to := range map[string]*string{"api": &a.API, "provider": &a.Provider, "model": &a.Model, "stopReason": &a.StopReason, "errorMessage": &a.ErrorMessage} {
		*to, _ = m.Get(key).Str()
	}
	a.Usage, _ = usageOf(m.Get("usage"))
	return a, true
}

// Blocks are the blocks of the content; a content that is a text is one block.
func (m Message) Blocks() []Block {
	content := m.Get("content")
	if s, ok := content.Str(); ok {
		return []Block{{Type: "text", Text: s}}
	}
	var blocks []Block
	for v := range content.Elements() {
		b := Block{Value: v, Arguments: v.Get("arguments")}
		b.Type, _ = v.Get("type").Str()
		b.ID, _ = v.Get("id").Str()
		b.Name, _ = v.Get("name").Str()
		if b.Text, _ = v.Get("text").Str(); b.Type == "thinking" {
			b.Text, _ = v.Get("thinking").Str()
		}
		blocks = append(blocks, b)
	}
	return blocks
}

// ToolResult is a message of role toolResult, decoded.
type ToolResult struct {
	Message
	CallID  string
	Tool    string
	IsError bool
}

// AsToolResult decodes a message of role toolResult.
func (m Message) AsToolResult() (ToolResult, bool) {
	if !m.Get("role").Is(RoleToolResult) {
		return ToolResult{}, false
	}
	r := ToolResult{Message: m, IsError: m.Get("isError").Truthy()}
	r.CallID, _ = m.Get("toolCallId").Str()
	r.Tool, _ = m.Get("toolName").Str()
	return r, true
}

// textBlocks is the content that is one text block.
func textBlocks(text string) js.Value {
	return js.List(js.Fields(js.Member{Key: "type", Value: js.Text("text")}, js.Member{Key: "text", Value: js.Text(text)}))
}

// AssistantMessage makes a message of role assistant with one text block.
func AssistantMessage(text, provider, model string, usage Usage, at time.Time) Message {
	return Message{js.Fields(
		js.Member{Key: "role", Value: js.Text(RoleAssistant)},
		js.Member{Key: "content", Value: textBlocks(text)},
		js.Member{Key: "provider", Value: js.Text(provider)},
		js.Member{Key: "model", Value: js.Text(model)},
		js.Member{Key: "usage", Value: usage.value()},
		js.Member{Key: "stopReason", Value: js.Text("stop")},
		js.Member{Key: "timestamp", Value: js.Num(float64(at.UnixMilli()))},
	)}
}
