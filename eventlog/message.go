package eventlog

import (
	"strings"
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

// canonicalFacts are what an entry knows of a message that is canonical: no key
// stands twice there, and role and content come first as a rule.
func (m Message) canonicalFacts() (r role, hasContent bool) {
	const first, second = `{"role":`, `,"content":`
	text := m.JSON()
	if !strings.HasPrefix(text, first) {
		return roleOf(m.Get("role")), !m.Get("content").Nullish()
	}
	end := js.SkipChecked(text, len(first))
	r = roleOf(js.Trusted(text[len(first):end]))
	if rest, ok := strings.CutPrefix(text[end:], second); ok {
		return r, rest[0] != 'n'
	}
	return r, !m.Get("content").Nullish()
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
	var buf [messageSize]byte
	b := append(buf[:0], `{"role":"user","content":`...)
	b = appendTextBlocks(b, text)
	b = append(b, `,"timestamp":`...)
	b = js.AppendNumber(b, float64(at.UnixMilli()))
	return Message{js.Trusted(string(append(b, '}')))}
}

// messageSize is what most messages have room in while they are made.
const messageSize = 512

// Usage is what a response cost. Cost is in the currency that the host counts
// in (Pi: US dollars); the rest are tokens.
type Usage struct {
	Input, Output, CacheRead, CacheWrite float64
	Cost                                 float64
}

// append writes Pi's fields.
func (u Usage) append(b []byte) []byte {
	b = js.AppendNumber(append(b, `{"input":`...), u.Input)
	b = js.AppendNumber(append(b, `,"output":`...), u.Output)
	b = js.AppendNumber(append(b, `,"cacheRead":`...), u.CacheRead)
	b = js.AppendNumber(append(b, `,"cacheWrite":`...), u.CacheWrite)
	b = js.AppendNumber(append(b, `,"totalTokens":`...), u.Input+u.Output+u.CacheRead+u.CacheWrite)
	b = append(b, `,"cost":{"input":0,"output":0,"cacheRead":0,"cacheWrite":0,"total":`...)
	return append(js.AppendNumber(b, u.Cost), "}}"...)
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
	return js.Trusted(string(appendTextBlocks(make([]byte, 0, len(text)+32), text)))
}

// appendTextBlocks writes the content that is one text block.
func appendTextBlocks(b []byte, text string) []byte {
	b = append(b, `[{"type":"text","text":`...)
	return append(js.AppendQuote(b, text), "}]"...)
}

// AssistantMessage makes a message of role assistant with one text block.
func AssistantMessage(text, provider, model string, usage Usage, at time.Time) Message {
	var buf [messageSize]byte
	b := append(buf[:0], `{"role":"assistant","content":`...)
	b = appendTextBlocks(b, text)
	b = js.AppendQuote(append(b, `,"provider":`...), provider)
	b = js.AppendQuote(append(b, `,"model":`...), model)
	b = usage.append(append(b, `,"usage":`...))
	b = append(b, `,"stopReason":"stop","timestamp":`...)
	b = js.AppendNumber(b, float64(at.UnixMilli()))
	return Message{js.Trusted(string(append(b, '}')))}
}
