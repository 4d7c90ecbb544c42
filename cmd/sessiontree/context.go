package main

import (
	"strings"

	"github.com/spf13/cobra"

	"github.com/sessiontree/sessiontree/eventlog"
	"github.com/sessiontree/sessiontree/eventlog/js"
)

const contextLong = `context shows what the model gets to see at the leaf, or at another entry: the
last compaction's summary, the entries that it keeps, and all that follows, as
messages; and the model, thinking level and tools that the branch sets.

--llm takes the last step before a provider: shell runs, custom messages and
summaries become user messages, and what no provider takes is left out.
--well-formed replaces each half of a surrogate pair, which providers refuse, by
U+FFFD. The file keeps what it holds.

Damaged lines are reported on stderr.

--json gives the messages as they stand in the file, those of other entries with
Pi's fields:
{` + sessionShape + `
  "from":    id of the last entry, null for an empty branch
  "thinkingLevel": text, or null if the entry that sets it has none
  "model":   {"provider", "modelId"}, either null if the entry that sets the
             model lacks it; or null if nothing sets it
  "activeToolNames": [text, …] or null; none set is null, an empty list is none
  "messages": [message, …]
}`

func (c *cli) contextCommand() *cobra.Command {
	var id string
	var llm, wellFormed bool
	var cmd *cobra.Command
	cmd = c.fileCommand("context FILE|--session ID", "Show what the model gets to see", contextLong, func(s *source) error {
		branch, err := s.Branch(c.ctx, from(cmd, "from", id))
		if err != nil {
			return err
		}
		seen, err := s.Dialect().BuildContext(branch, eventlog.ContextOptions{})
		if err != nil {
			return err
		}
		if llm {
			if seen.Messages, err = s.Dialect().ToLLM(seen.Messages); err != nil {
				return err
			}
		}
		if wellFormed {
			seen.Messages = eventlog.WellFormed(seen.Messages)
		}
		if c.json {
			c.out.answerJSON(contextJSON(s, branch, seen))
			return nil
		}
		c.contextText(s, seen)
		c.reportDamage(s)
		return nil
	})
	cmd.Flags().StringVar(&id, "from", "", "the entry whose context to show (default the leaf)")
	cmd.Flags().BoolVar(&llm, "llm", false, "as it goes to the provider")
	cmd.Flags().BoolVar(&wellFormed, "well-formed", false, "replace halves of surrogate pairs by U+FFFD")
	return cmd
}

func contextJSON(s *source, branch []eventlog.Entry, seen eventlog.Context) js.Value {
	model, tools := js.NullValue(), js.NullValue()
	if m := seen.Model; m != nil {
		model = js.Fields(field("provider", orNull(m.Provider)), field("modelId", orNull(m.ID)))
	}
	if seen.ActiveTools != nil {
		tools = js.List(seen.ActiveTools...)
	}
	return js.Fields(
		field("session", s.json()),
		field("damage", damageJSON(s.damage)),
		field("from", lastOf(branch).Value()),
		field("thinkingLevel", orNull(seen.ThinkingLevel)),
		field("model", model),
		field("activeToolNames", tools),
		field("messages", messageList(seen.Messages)))
}

// roleWidth is the column of the roles; what a message says stands to the right
// of it, in each of its lines, so that no text can pass for another message.
const roleWidth = 14

func (c *cli) contextText(s *source, seen eventlog.Context) {
	o := c.out
	model, tools := "not set", "not set"
	if m := seen.Model; m != nil {
		model = oneLine(text(m.Provider) + "/" + text(m.ID))
	}
	if seen.ActiveTools != nil {
		tools = oneLine(toolNames(js.List(seen.ActiveTools...)))
	}
	settings := [][2]string{
		{"model", model},
		{"thinking", oneLine(text(seen.ThinkingLevel))},
		{"tools", tools},
		{"messages", grouped(float64(len(seen.Messages)))},
	}
	if s.path != "" {
		settings = append(settings, [2]string{"dialect", dialectText(s.meta)})
	}
	for _, setting := range settings {
		o.line(o.paint(dim, padded(setting[0], roleWidth)+setting[1]))
	}
	width := 0
	if o.wraps {
		width = max(o.width-roleWidth, 20)
	}
	for _, m := range seen.Messages {
		role := "(no role)"
		if r := m.Role(); r != "" {
			role = cut(safe(r), maxKind)
		}
		o.line()
		indent := o.paint(bold, padded(role, roleWidth))
		if cells.StringWidth(role) >= roleWidth {
			o.line(indent)
			indent = strings.Repeat(" ", roleWidth)
		}
		for _, line := range lines(messageText(m), width) {
			if line == "" {
				indent = strings.TrimRight(indent, " ")
			}
			o.line(indent, line)
			indent = strings.Repeat(" ", roleWidth)
		}
	}
}

// argumentLines are the arguments of a tool call, one a line; texts as they are.
func argumentLines(arguments js.Value) []string {
	if arguments.Kind() != js.Object {
		return []string{"  " + string(appendSafeJSON(nil, arguments.JSON()))}
	}
	var out []string
	for _, m := range arguments.Members() {
		value, isText := m.Value.Str()
		if !isText {
			value = string(appendSafeJSON(nil, m.Value.JSON()))
		}
		if strings.Contains(value, "\n") {
			value = "\n    " + strings.ReplaceAll(value, "\n", "\n    ")
		} else {
			value = " " + value
		}
		out = append(out, "  "+m.Key+":"+value)
	}
	return out
}

// messageText is all that a message says, in lines.
func messageText(m eventlog.Message) string {
	var parts []string
	switch m.Role() {
	case eventlog.RoleBashExecution:
		parts = append(parts, "$ "+text(m.Get("command")))
		if output := text(m.Get("output")); output != "" {
			parts = append(parts, output)
		}
		if code := text(m.Get("exitCode")); code != "" && code != "0" {
			parts = append(parts, "(exit code "+code+")")
		}
		if m.Get("excludeFromContext").Truthy() {
			parts = append(parts, "(kept from the model)")
		}
	case eventlog.RoleCompactionSummary, eventlog.RoleBranchSummary:
		parts = append(parts, text(m.Get("summary")))
	default:
		if r, ok := m.AsToolResult(); ok {
			how := " answers:"
			if r.IsError {
				how = " failed:"
			}
			parts = append(parts, r.Tool+how)
		}
		blocks := m.Blocks()
		for _, b := range blocks {
			switch b.Type {
			case "text":
				parts = append(parts, b.Text)
			case "thinking":
				parts = append(parts, "(thinking) "+b.Text)
			case "toolCall":
				parts = append(parts, "→ "+b.Name)
				parts = append(parts, argumentLines(b.Arguments)...)
			case "image":
				parts = append(parts, "[image "+text(b.Get("mimeType"))+"]")
			default:
				parts = append(parts, "["+b.Type+"]")
			}
		}
		if why := text(m.Get("errorMessage")); why != "" {
			parts = append(parts, "("+text(m.Get("stopReason"))+": "+why+")")
		}
		if parts == nil && m.Kind() != js.Object {
			parts = append(parts, m.JSON())
		}
	}
	return js.Join(parts, "\n")
}
