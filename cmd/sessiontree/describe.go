package main

import (
	"math"
	"strconv"
	"strings"

	"github.com/sessiontree/sessiontree/eventlog"
	"github.com/sessiontree/sessiontree/eventlog/js"
)

// kindOf is what an entry is in one word: a message's role, else the type. It
// comes from the file: it has to go through [safe].
func kindOf(e eventlog.Entry) string {
	if e.Type() == eventlog.TypeMessage {
		if role := e.Message().Role(); role != "" {
			return role
		}
	}
	return string(e.Type())
}

// excerpt is the beginning of what an entry says, in one safe line.
func excerpt(e eventlog.Entry) string {
	switch e.Type() {
	case eventlog.TypeMessage:
		return oneLine(messageExcerpt(e.Message()))
	case eventlog.TypeCustomMessage:
		return oneLine(about(e.Get("customType"), eventlog.Message{Value: e.Value()}.PlainText()))
	case eventlog.TypeCompaction:
		return keeps(e) + oneLine(text(e.Get("summary")))
	case eventlog.TypeBranchSummary:
		return oneLine(text(e.Get("summary")))
	case eventlog.TypeCustom:
		return oneLine(about(e.Get("customType"), compact(e.Get("data"))))
	case eventlog.TypeLabel:
		target := shownID(js.ToString(e.Get("targetId")))
		if label := js.Trim(text(e.Get("label"))); label != "" {
			return "[" + oneLine(label) + "] on " + target
		}
		return "cleared on " + target
	case eventlog.TypeSessionInfo:
		return quoted(text(e.Get("name")))
	case eventlog.TypeModelChange:
		return oneLine(text(e.Get("provider")) + "/" + text(e.Get("modelId")))
	case eventlog.TypeThinkingLevelChange:
		return oneLine(text(e.Get("thinkingLevel")))
	case eventlog.TypeActiveToolsChange:
		return oneLine(toolNames(e.Get("activeToolNames")))
	case eventlog.TypeLeaf:
		return move(e)
	}
	// Some other program's entry: what it holds beside the usual fields.
	var rest []js.Member
	for _, m := range e.Value().Members() {
		switch m.Key {
		case "type", "id", "parentId", "timestamp":
		default:
			rest = append(rest, m)
		}
	}
	if rest == nil {
		return ""
	}
	return oneLine(js.Fields(rest...).JSON())
}

// move tells of a leaf entry where the user came from, which is its parent, and
// where to.
func move(e eventlog.Entry) string {
	if e.Target().IsNone() {
		return shownRef(e.Parent()) + " → before the first entry"
	}
	return shownRef(e.Parent()) + " → " + shownRef(e.Target())
}

func shownRef(r eventlog.Ref) string {
	if r.IsNone() {
		return "nowhere"
	}
	return shownID(r.ID())
}

func quoted(s string) string {
	if s == "" {
		return "cleared"
	}
	return `"` + oneLine(s) + `"`
}

// keeps says what of the entries before a compaction the model still sees.
func keeps(e eventlog.Entry) string {
	if tail := e.Get("retainedTail"); tail.Truthy() {
		n := 0
		for range tail.Elements() {
			n++
		}
		return "(keeps " + count(n, "message") + " by value) "
	}
	if first, _ := e.Get("firstKeptEntryId").Str(); first != "" {
		return "(keeps from " + shownID(first) + ") "
	}
	return "(keeps nothing) "
}

// text is a field that should be a text; null and none are empty.
func text(v js.Value) string {
	if v.Nullish() {
		return ""
	}
	return js.ToString(v)
}

// compact is a value's own JSON, bounded.
func compact(v js.Value) string { return js.Prefix(v.JSON(), excerptUnits) }

func about(what js.Value, says string) string {
	if says == "" {
		return text(what)
	}
	return text(what) + ": " + says
}

func toolNames(v js.Value) string {
	names, ok := v.Spread()
	if !ok {
		return ""
	}
	if len(names) == 0 {
		return "(none)"
	}
	var parts []string
	for _, n := range names {
		parts = append(parts, js.ToString(n))
	}
	return strings.Join(parts, ", ")
}

func messageExcerpt(m eventlog.Message) string {
	role := m.Role()
	switch role {
	case eventlog.RoleBashExecution:
		return "$ " + text(m.Get("command"))
	case eventlog.RoleCompactionSummary, eventlog.RoleBranchSummary:
		return text(m.Get("summary"))
	case eventlog.RoleCustom:
		return about(m.Get("customType"), m.PlainText())
	}
	var parts []string
	if role == eventlog.RoleToolResult {
		r, _ := m.AsToolResult()
		parts = append(parts, r.Tool+":")
		if r.IsError {
			parts[0] = r.Tool + " failed:"
		}
	}
	thought := ""
	for _, b := range m.Blocks() {
		switch b.Type {
		case "text":
			parts = append(parts, b.Text)
		case "thinking":
			thought = "(thinking) " + b.Text
		case "toolCall":
			parts = append(parts, "→ "+call(b))
		default:
			parts = append(parts, "["+b.Type+"]")
		}
	}
	if parts == nil && thought != "" {
		parts = []string{thought}
	}
	if role == eventlog.RoleAssistant {
		if stop := m.Get("stopReason"); stop.Is("error") || stop.Is("aborted") {
			parts = append(parts, "("+about(stop, text(m.Get("errorMessage")))+")")
		}
	}
	return strings.Join(parts, " ")
}

// telling are the arguments that say most of a tool call, best first.
var telling = []string{"path", "file_path", "command", "pattern", "query", "url"}

// call is a tool call in a few words.
func call(b eventlog.Block) string {
	for _, key := range telling {
		if s, ok := b.Arguments.Get(key).Str(); ok {
			return b.Name + "(" + js.Prefix(s, excerptUnits) + ")"
		}
	}
	return b.Name + "(" + compact(b.Arguments) + ")"
}

func count(n int, what string) string {
	if n != 1 {
		switch {
		case strings.HasSuffix(what, "y"):
			what = strings.TrimSuffix(what, "y") + "ie"
		case strings.HasSuffix(what, "ch"):
			what += "e"
		}
		what += "s"
	}
	return grouped(float64(n)) + " " + what
}

// unreadable is where the digits of a number stop telling people anything.
const unreadable = 1e15

// grouped is a number with its thousands apart; a fraction stays as it is.
func grouped(f float64) string {
	if !(math.Abs(f) < unreadable) { // nor is it, if it is no number
		return strconv.FormatFloat(f, 'g', -1, 64)
	}
	s := strconv.FormatFloat(f, 'f', -1, 64)
	sign := ""
	if strings.HasPrefix(s, "-") {
		sign, s = "-", s[1:]
	}
	whole, fraction, _ := strings.Cut(s, ".")
	if fraction != "" {
		fraction = "." + fraction
	}
	for i := len(whole) - 3; i > 0; i -= 3 {
		whole = whole[:i] + "," + whole[i:]
	}
	return sign + whole + fraction
}

// money is an amount of whatever currency the host counts in.
func money(f float64) string {
	if !(math.Abs(f) < unreadable) {
		return grouped(f)
	}
	return strconv.FormatFloat(f, 'f', 4, 64)
}
