package main

import (
	"strings"

	"github.com/spf13/cobra"

	"github.com/sessiontree/sessiontree/eventlog"
	"github.com/sessiontree/sessiontree/eventlog/js"
)

const treeLong = `tree shows all entries of a session as a tree, the abandoned branches too.

The active branch, the way from the root to the leaf, is a straight line on the
left; what was left hangs off it, indented. A run of entries never indents, only
a fork does; at a fork off the active branch the child with most entries below
it keeps the column.

  ●  on the active branch       ○  on an abandoned one
  ◐  on the active branch, but hidden from the model by a compaction
  •  ◦  the same for control entries, which steer the session: labels, names,
     moves of the leaf, changes of model, thinking level and tools

  ← leaf         where the next entry goes
  [text]         the entry's label
  ↩ from ID      the first entry after a move: the leaf that was left for it
  ✗ …            the parent is missing, or parents lead in a circle

Control entries are hidden, save the leaf, a labelled one, one that branches
start at, and one where something is wrong. --all shows them all. Damaged lines
and warnings go to stderr.

--json gives all entries, control entries too, in a flat list:
{` + sessionShape + warningShape + `
  "leaf":    id or null
  "total":   number of entries
  "nodes":   [{"id", "parentId" (id or null, as in the file), "parent" (place of
             the parent in this list, or null), "depth" (0 for a root), "type",
             "role" (of a message, or null), "timestamp", "label" (or null),
             "excerpt" (one line, as the tree shows it), "active" (on the way to
             the leaf), "onBranch" (active, and not cut off by a compaction),
             "inContext" (on the branch, and seen by the context), "leaf",
             "control", "gap" (the parent is missing), "cycle", "target" (of a
             leaf entry: id or null), "cameFrom" (the leaf that was left for
             this entry, or null)}], each behind its parent; --limit cuts the
             list
}`

func (c *cli) treeCommand() *cobra.Command {
	var all bool
	var limit int
	cmd := c.fileCommand("tree FILE|--session ID", "Show all entries of a session as a tree", treeLong, func(s *source) error {
		view, err := c.viewTree(s)
		if err != nil {
			return err
		}
		if c.json {
			c.out.answerJSON(view.json(limit))
			return nil
		}
		c.treeText(view, all, limit)
		c.dialectNote(s)
		c.reportDamage(s)
		c.reportWarnings(s, view.warnings)
		return nil
	})
	cmd.Flags().BoolVarP(&all, "all", "a", false, "show control entries too")
	cmd.Flags().IntVarP(&limit, "limit", "n", 0, "show only the first N entries (0: all)")
	cmd.PreRunE = func(cmd *cobra.Command, _ []string) error {
		if limit < 0 {
			return usagef(cmd, "--limit is a number of entries, not %d", limit)
		}
		return nil
	}
	return cmd
}

// treeView is what the tree of a session is shown from.
type treeView struct {
	source   *source
	tree     *eventlog.Tree
	log      []eventlog.Entry
	warnings []warning
	// inContext are the entries that the context at the leaf is made of, nil if
	// it cannot be made.
	inContext map[string]bool
}

func (c *cli) viewTree(s *source) (*treeView, error) {
	v := &treeView{source: s}
	for e, err := range s.Entries(c.ctx, 0, eventlog.All) {
		if err != nil {
			return nil, err
		}
		v.log = append(v.log, e)
	}
	var err error
	if v.tree, err = s.Tree(c.ctx); err != nil {
		return nil, err
	}
	if v.warnings, err = check(c.ctx, s.Session, v.tree); err != nil {
		return nil, err
	}
	if entries, err := s.ContextEntries(c.ctx, eventlog.None()); err == nil {
		v.inContext = make(map[string]bool, len(entries))
		for _, e := range entries {
			v.inContext[e.ID()] = true
		}
	}
	return v, c.ctx.Err()
}

// seen says whether the model sees an entry, or would if it said anything. Where
// the branch cannot be read that is not known; then the cut decides.
func (v *treeView) seen(n *eventlog.Node) bool {
	if v.inContext == nil {
		return n.OnBranch
	}
	return n.OnBranch && v.inContext[n.Entry.ID()]
}

func (c *cli) treeText(v *treeView, all bool, limit int) {
	o := c.out
	if len(v.tree.Nodes) == 0 {
		o.line("No entries.")
		return
	}
	l := newLayout(v.tree, v.log, all)
	total := len(v.tree.Nodes) - l.hidden
	used := map[string]bool{}
	n := 0
	for i, rails := range l.rows {
		if n == limit && limit > 0 {
			break
		}
		node := &v.tree.Nodes[i]
		mark, look := v.mark(node)
		used[mark] = true
		o.entryLine(rails, mark, look, node.Entry, l.tags(i))
		n++
	}
	var notes []string
	for _, m := range legend {
		if used[m.mark] {
			notes = append(notes, m.mark+" "+m.means)
		}
	}
	o.line()
	o.line(o.paint(dim, strings.Join(notes, "   ")))
	switch {
	case n < total:
		o.line(o.paint(dim, "… "+count(total-n, "more entry")+" (--limit)"))
	case l.hidden > 0:
		verb := " are"
		if l.hidden == 1 {
			verb = " is"
		}
		o.line(o.paint(dim, count(l.hidden, "control entry")+verb+" hidden (--all shows them)"))
	}
	if v.tree.Leaf.IsNone() {
		o.line(o.paint(dim, "There is no leaf: the next entry is a new root."))
	}
}

var legend = []struct{ mark, means string }{
	{"●", "active branch"},
	{"◐", "active, hidden by a compaction"},
	{"○", "abandoned"},
	{"•", "control"},
	{"◦", "control, abandoned"},
}

func (v *treeView) mark(n *eventlog.Node) (mark string, look style) {
	switch {
	case n.Control && n.Active:
		return "•", dim
	case n.Control:
		return "◦", dim
	case v.seen(n):
		return "●", plain
	case n.Active:
		return "◐", plain
	}
	return "○", dim
}

func (l *layout) tags(i int) []tag {
	n := &l.tree.Nodes[i]
	var tags []tag
	if n.Gap {
		tags = append(tags, tag{"✗ parent " + shownRef(n.Entry.Parent()) + " is missing", red})
	}
	if n.Cycle && n.Parent < 0 {
		tags = append(tags, tag{"✗ parent " + shownRef(n.Entry.Parent()) + " leads back here", red})
	}
	if came, ok := l.came[i]; ok {
		tags = append(tags, tag{"↩ from " + l.origin(came), cyan})
	}
	if n.Leaf {
		text := "← leaf"
		if l.left != nil && !l.left.IsNone() {
			text += ", ↩ from " + l.origin(*l.left)
		}
		tags = append(tags, tag{text, strong})
	}
	if n.Label != "" {
		tags = append(tags, labelTag(n.Label))
	}
	return tags
}

// json is the whole answer of tree, of so many nodes (0: all).
func (v *treeView) json(limit int) js.Value {
	l := newLayout(v.tree, v.log, true)
	n := len(v.tree.Nodes)
	if limit > 0 {
		n = min(n, limit)
	}
	nodes := []byte{'['}
	for i := range n {
		if i > 0 {
			nodes = append(nodes, ',')
		}
		nodes = v.appendNode(nodes, i, l.came[i])
	}
	return js.Fields(
		field("session", v.source.json()),
		field("damage", damageJSON(v.source.damage)),
		field("warnings", warningsJSON(v.warnings)),
		field("leaf", v.tree.Leaf.Value()),
		field("total", number(len(v.tree.Nodes))),
		field("nodes", js.Trusted(string(append(nodes, ']')))))
}

// appendNode writes a node as JSON.
func (v *treeView) appendNode(dst []byte, i int, came eventlog.Ref) []byte {
	n := &v.tree.Nodes[i]
	e := n.Entry
	parent, target := js.NullValue(), js.NullValue()
	if n.Parent >= 0 {
		parent = number(n.Parent)
	}
	if e.Type() == eventlog.TypeLeaf {
		target = e.Target().Value()
	}
	return js.AppendFields(append(dst, '{'),
		field("id", orNull(eventlog.At(e.ID()).Value())),
		field("parentId", e.Parent().Value()),
		field("parent", parent),
		field("depth", number(n.Depth)),
		field("type", js.Text(string(e.Type()))),
		field("role", optional(e.Message().Role())),
		field("timestamp", js.Text(e.Timestamp())),
		field("label", optional(n.Label)),
		field("excerpt", js.Text(cut(excerpt(e), maxExcerpt))),
		field("active", js.Boolean(n.Active)),
		field("onBranch", js.Boolean(n.OnBranch)),
		field("inContext", js.Boolean(v.inContext != nil && v.seen(n))),
		field("leaf", js.Boolean(n.Leaf)),
		field("control", js.Boolean(n.Control)),
		field("gap", js.Boolean(n.Gap)),
		field("cycle", js.Boolean(n.Cycle)),
		field("target", target),
		field("cameFrom", came.Value()))
}

// maxExcerpt is the width of the excerpts in JSON, in cells.
const maxExcerpt = 200
