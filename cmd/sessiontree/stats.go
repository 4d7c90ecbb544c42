package main

import (
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/sessiontree/sessiontree/eventlog"
	"github.com/sessiontree/sessiontree/eventlog/js"
)

const statsLong = `stats counts a session: entries by type, messages by role, the tree's shape,
tokens and cost of the whole log (abandoned branches too), and says what is
suspicious: damaged lines, missing parents, cycles, ids that stand twice, tool
calls without a result, compactions that hide more than they tell, messages that
are none. All of it is the answer, on stdout.

A fork is an entry at which more than one branch begins, a tip one at which a
branch ends; control entries are no branches. The depth counts entries from the
root.

--json:
{` + sessionShape + warningShape + `
  "entries": number
  "types":   {type: number}, in order of first use
  "roles":   {role: number}, of message entries, in order of first use
  "tree":    {"roots", "forks", "tips", "depth"}
  "leaf":    id or null
  "branch":  {"entries", "messages"}: the active branch, and the messages that
             the model sees of it; null if it cannot be read
  "labels":  number
  "totals":  {"messages", "cachedTokens", "uncachedTokens", "totalTokens",
             "cost"}, or null if they cannot be read; of a session of the
             coding agent also "userMessages", "assistantMessages",
             "toolCalls", "toolResults", "input", "output", "cacheRead",
             "cacheWrite", "models": [{"model", "cost", "tokens"}]
}`

func (c *cli) statsCommand() *cobra.Command {
	return c.fileCommand("stats FILE|--session ID", "Count a session and say what is suspicious", statsLong, func(s *source) error {
		v, err := c.count(s)
		if err != nil {
			return err
		}
		if c.json {
			c.out.answerJSON(v.json())
		} else {
			c.statsText(v)
		}
		return nil
	})
}

// statsView is what stats shows.
type statsView struct {
	source       *source
	warnings     []warning
	entries      int
	types, roles tally
	shape        shape
	leaf         eventlog.Ref
	branch       int // entries on the active branch, -1 if it cannot be read
	seen         int // messages that the model sees of it
	labels       int
	totals       *eventlog.Stats // nil if they cannot be read
	models       []eventlog.ModelCost
}

// tally counts by name, in order of first use.
type tally struct {
	names []string
	n     map[string]int
}

func (t *tally) add(name string) {
	if t.n == nil {
		t.n = map[string]int{}
	}
	if t.n[name]++; t.n[name] == 1 {
		t.names = append(t.names, name)
	}
}

func (t *tally) json() js.Value {
	members := make([]js.Member, len(t.names))
	for i, name := range t.names {
		members[i] = field(name, number(t.n[name]))
	}
	return js.Fields(members...)
}

func (c *cli) count(s *source) (*statsView, error) {
	view, err := c.viewTree(s)
	if err != nil {
		return nil, err
	}
	v := &statsView{source: s, warnings: view.warnings, entries: len(view.log), shape: shapeOf(view.tree), leaf: view.tree.Leaf, branch: -1}
	for _, e := range view.log {
		v.types.add(string(e.Type()))
		if e.Type() == eventlog.TypeMessage {
			v.roles.add(e.Message().Role())
		}
	}
	labels, err := s.Labels(c.ctx)
	if err != nil {
		return nil, err
	}
	v.labels = len(labels)
	// What cannot be read is among the warnings.
	if branch, err := s.Branch(c.ctx, eventlog.None()); err == nil {
		if seen, err := s.Dialect().BuildContext(branch, eventlog.ContextOptions{}); err == nil {
			v.branch, v.seen = len(branch), len(seen.Messages)
		}
	}
	if totals, err := s.Stats(c.ctx); err == nil {
		v.totals = &totals
		if s.Dialect() == eventlog.CodingAgent {
			if v.models, err = s.CostByModel(c.ctx); err != nil && eventlog.CodeOf(err) != eventlog.InvalidEntry {
				return nil, err
			}
		}
	}
	return v, c.ctx.Err()
}

func (v *statsView) json() js.Value {
	branch, totals := js.NullValue(), js.NullValue()
	if v.branch >= 0 {
		branch = js.Fields(field("entries", number(v.branch)), field("messages", number(v.seen)))
	}
	if t := v.totals; t != nil {
		fields := []js.Member{
			field("messages", number(t.Messages)),
			field("cachedTokens", js.Num(t.CachedTokens)),
			field("uncachedTokens", js.Num(t.UncachedTokens)),
			field("totalTokens", js.Num(t.TotalTokens)),
			field("cost", js.Num(t.Cost)),
		}
		if v.source.meta.Dialect == eventlog.CodingAgent {
			fields = append(fields, v.agentTotals()...)
		}
		totals = js.Fields(fields...)
	}
	return js.Fields(
		field("session", v.source.json()),
		field("damage", damageJSON(v.source.damage)),
		field("warnings", warningsJSON(v.warnings)),
		field("entries", number(v.entries)),
		field("types", v.types.json()),
		field("roles", v.roles.json()),
		field("tree", js.Fields(
			field("roots", number(v.shape.roots)),
			field("forks", number(v.shape.forks)),
			field("tips", number(v.shape.tips)),
			field("depth", number(v.shape.depth)))),
		field("leaf", v.leaf.Value()),
		field("branch", branch),
		field("labels", number(v.labels)),
		field("totals", totals))
}

// agentTotals are the totals that the coding agent shows: by role, by kind of tokens,
// by model.
func (v *statsView) agentTotals() []js.Member {
	t := v.totals
	models := make([]js.Value, len(v.models))
	for i, m := range v.models {
		models[i] = js.Fields(field("model", js.Text(m.Key)), field("cost", js.Num(m.Cost)), field("tokens", js.Num(m.Tokens)))
	}
	return []js.Member{
		field("userMessages", number(t.UserMessages)),
		field("assistantMessages", number(t.AssistantMessages)),
		field("toolCalls", number(t.ToolCalls)),
		field("toolResults", number(t.ToolResults)),
		field("input", js.Num(t.Input)),
		field("output", js.Num(t.Output)),
		field("cacheRead", js.Num(t.CacheRead)),
		field("cacheWrite", js.Num(t.CacheWrite)),
		field("models", js.List(models...)),
	}
}

func (c *cli) statsText(v *statsView) {
	o, s := c.out, v.source
	row := func(name, value string) { o.line(o.paint(dim, padded(name, roleWidth)), value) }
	optionalRow := func(name, value string) {
		if value != "" {
			row(name, oneLine(value))
		}
	}
	row("session", shownID(s.meta.ID))
	optionalRow("name", s.name)
	if s.path != "" {
		row("file", safe(s.path))
	} else {
		row("database", safe(s.database))
	}
	optionalRow("created", s.meta.CreatedAt)
	optionalRow("folder", s.meta.CWD)
	row("dialect", dialectText(s.meta))
	optionalRow("forked from", s.meta.ParentSession.ID())
	o.line()
	row("entries", grouped(float64(v.entries)))
	o.tally(&v.types)
	if len(v.roles.names) > 0 {
		row("messages", grouped(float64(v.types.n[string(eventlog.TypeMessage)])))
		o.tally(&v.roles)
	}
	row("tree", strings.Join([]string{
		count(v.shape.roots, "root"), count(v.shape.forks, "fork"), count(v.shape.tips, "tip"), "depth " + grouped(float64(v.shape.depth)),
	}, ", "))
	leaf := "none"
	if !v.leaf.IsNone() {
		leaf = shownID(v.leaf.ID())
	}
	row("leaf", leaf)
	if v.branch >= 0 {
		row("active branch", count(v.branch, "entry")+", of which the model sees "+count(v.seen, "message"))
	}
	row("labels", grouped(float64(v.labels)))
	if t := v.totals; t != nil {
		row("tokens", grouped(t.TotalTokens)+" in all: "+grouped(t.UncachedTokens)+" uncached input, "+grouped(t.CachedTokens)+" from the cache")
		row("cost", money(t.Cost))
		for _, m := range v.models {
			row("", oneLine(m.Key)+"  "+money(m.Cost)+", "+grouped(m.Tokens)+" tokens")
		}
	}
	o.line()
	o.list("damage", red, len(s.damage), func(i int) string {
		return "line " + strconv.Itoa(s.damage[i].Line) + ": " + safe(damageText(s.damage[i]))
	})
	warnings := warningLines(v.warnings)
	o.list("warnings", yellow, len(warnings), func(i int) string { return safe(warnings[i]) })
}

// tally writes names with their numbers, most frequent first.
func (o *output) tally(t *tally) {
	names := slices.Clone(t.names)
	slices.SortStableFunc(names, func(a, b string) int { return t.n[b] - t.n[a] })
	width := 0
	shown := make([]string, len(names))
	for i, name := range names {
		if shown[i] = cut(safe(name), maxTag); shown[i] == "" {
			shown[i] = "(none)"
		}
		width = max(width, cells.StringWidth(shown[i]))
	}
	for i, name := range names {
		o.line(strings.Repeat(" ", roleWidth), padded(shown[i], width), "  ", grouped(float64(t.n[name])))
	}
}

// list writes a heading and lines below it, as many as people read.
func (o *output) list(name string, look style, n int, line func(i int) string) {
	if n == 0 {
		o.line(o.paint(dim, padded(name, roleWidth)), "none")
		return
	}
	for i := range n {
		head := strings.Repeat(" ", roleWidth)
		if i == 0 {
			head = o.paint(dim, padded(name, roleWidth))
		}
		if i == maxReports && name == "damage" {
			o.line(head, o.paint(look, count(n-i, "more place")))
			return
		}
		o.line(head, o.paint(look, line(i)))
	}
}
