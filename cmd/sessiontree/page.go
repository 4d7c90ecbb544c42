package main

import (
	"bufio"
	"fmt"
	"html"
	"io"
	"strings"

	"github.com/sessiontree/sessiontree/eventlog"
)

// entrySays is all that an entry says, in lines.
func entrySays(e eventlog.Entry) string {
	switch e.Type() {
	case eventlog.TypeMessage:
		return messageText(e.Message())
	case eventlog.TypeCustomMessage:
		return eventlog.Message{Value: e.Value()}.PlainText()
	case eventlog.TypeCompaction, eventlog.TypeBranchSummary:
		return text(e.Get("summary"))
	case eventlog.TypeCustom:
		return e.Get("data").JSON()
	}
	return excerpt(e)
}

// shownText is a text of a session fit to be shown: control characters and what
// turns the writing around are visible, line ends stay.
func shownText(s string) string { return strings.Join(lines(s, 0), "\n") }

// title names the session.
func (v *treeView) title() string {
	if v.source.name != "" {
		return oneLine(v.source.name)
	}
	return "Session " + shownID(v.source.meta.ID)
}

// facts are what stands below the title.
func (v *treeView) facts() [][2]string {
	m := v.source.meta
	facts := [][2]string{{"session", safe(m.ID)}, {"created", oneLine(m.CreatedAt)}, {"folder", oneLine(m.CWD)}}
	if !m.ParentSession.IsNone() {
		facts = append(facts, [2]string{"fork of", oneLine(m.ParentSession.ID())})
	}
	shape := shapeOf(v.tree)
	return append(facts, [2]string{"entries", fmt.Sprintf("%s, %s, %s", grouped(float64(len(v.tree.Nodes))), count(shape.forks, "fork"), count(shape.tips, "end"))})
}

// state is where an entry stands, in a word that the page's style knows.
func (v *treeView) state(n *eventlog.Node) string {
	switch {
	case v.seen(n):
		return "active"
	case n.Active:
		return "hidden"
	}
	return "left"
}

// pageStyle is the whole look of the page: no script, no file, no address.
const pageStyle = `body{font:15px/1.5 system-ui,sans-serif;max-width:70em;margin:2em auto;padding:0 1em;color:#222;background:#fff}
dl{display:grid;grid-template-columns:max-content auto;gap:.1em 1em;color:#555}dt{font-weight:600}dd{margin:0}
details{border-left:3px solid transparent}summary{cursor:pointer;white-space:pre;overflow:hidden;text-overflow:ellipsis;font:13px/1.7 ui-monospace,monospace;list-style:none}
.active{border-left-color:#2a7}.hidden{border-left-color:#db5;color:#666}.left{color:#888}
.rails{color:#bbb}.kind{display:inline-block;min-width:9em}.user .kind{font-weight:700}.tag{color:#07a}.leaf{color:#2a7;font-weight:700}.wrong{color:#b00}
pre{white-space:pre-wrap;overflow-wrap:anywhere;font:13px/1.5 ui-monospace,monospace;background:#f6f6f4;color:#222;margin:.2em 0 .6em 2em;padding:.6em .8em;border-radius:4px}
@media(prefers-color-scheme:dark){body{color:#ddd;background:#181818}pre{background:#222;color:#ddd}dl,.hidden{color:#aaa}.left{color:#777}.rails{color:#555}.tag{color:#6bd}}
`

// writeHTML writes the tree as one page that needs nothing else. All text of the
// session is escaped; the page has no script, and its policy allows none.
func writeHTML(w io.Writer, v *treeView) error {
	b := bufio.NewWriter(w)
	title := html.EscapeString(v.title())
	fmt.Fprintf(b, `<!DOCTYPE html>
<html lang="en"><head><meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="default-src 'none'; style-src 'unsafe-inline'">
<meta name="referrer" content="no-referrer"><meta name="viewport" content="width=device-width">
<title>%s</title><style>
%s</style></head><body>
<h1>%s</h1>
<dl>
`, title, pageStyle, title)
	for _, f := range v.facts() {
		fmt.Fprintf(b, "<dt>%s</dt><dd>%s</dd>\n", f[0], html.EscapeString(f[1]))
	}
	b.WriteString("</dl>\n<main>\n")
	l := newLayout(v.tree, v.log, false)
	for i, rails := range l.rows {
		v.writeRow(b, l, i, rails)
	}
	b.WriteString("</main>\n")
	if l.hidden > 0 {
		fmt.Fprintf(b, "<p>%s not shown.</p>\n", count(l.hidden, "control entry"))
	}
	b.WriteString("</body></html>\n")
	return b.Flush()
}

// writeRow writes one entry: a line of the tree, which opens to all that it says.
func (v *treeView) writeRow(b *bufio.Writer, l *layout, i int, rails string) {
	n := &v.tree.Nodes[i]
	mark, _ := v.mark(n)
	class := v.state(n)
	if n.Entry.IsUserMessage() {
		class += " user"
	}
	fmt.Fprintf(b, `<details class="%s"><summary><span class="rails">%s</span>%s <span class="kind">%s</span> `,
		class, rails, mark, html.EscapeString(cut(safe(kindOf(n.Entry)), maxKind)))
	for _, t := range l.tags(i) {
		fmt.Fprintf(b, `<span class="%s">%s</span> `, tagClass(t), html.EscapeString(t.text))
	}
	fmt.Fprintf(b, "%s</summary><pre>%s\n\n%s  %s</pre></details>\n",
		html.EscapeString(cut(excerpt(n.Entry), maxExcerpt)),
		html.EscapeString(shownText(entrySays(n.Entry))),
		html.EscapeString(shownID(n.Entry.ID())), html.EscapeString(oneLine(n.Entry.Timestamp())))
}

func tagClass(t tag) string {
	switch t.style {
	case strong:
		return "leaf"
	case red:
		return "wrong"
	}
	return "tag"
}

// writeMarkdown writes the active branch as a document, and below it each branch
// that was left. Texts stand in fences that are longer than any in them, so that
// nothing in them is taken for Markdown.
func writeMarkdown(w io.Writer, v *treeView) error {
	b := bufio.NewWriter(w)
	fmt.Fprintf(b, "# %s\n\n", markdownText(v.title()))
	for _, f := range v.facts() {
		fmt.Fprintf(b, "- %s: %s\n", f[0], markdownText(f[1]))
	}
	l := newLayout(v.tree, v.log, false)
	runs := v.runs(l)
	for _, r := range runs {
		switch {
		case v.tree.Nodes[r[0]].Active:
			b.WriteString("\n## The active branch\n")
		case l.above[r[0]] >= 0 && v.tree.Nodes[r[0]].Parent >= 0:
			fmt.Fprintf(b, "\n## Left behind, below %s\n", markdownText(shownRef(v.tree.Nodes[r[0]].Entry.Parent())))
		default:
			b.WriteString("\n## Another root\n")
		}
		for _, i := range r {
			v.writeSection(b, l, int(i))
		}
	}
	return b.Flush()
}

// runs are the visible entries as the tree draws them, cut into what stands in one
// column: the active branch first.
func (v *treeView) runs(l *layout) [][]int32 {
	var active [][]int32
	var left [][]int32
	begun := map[int32]bool{}
	take := func(from int32) {
		var r []int32
		for at := from; at >= 0; at = l.main(at) {
			r = append(r, at)
		}
		if v.tree.Nodes[from].Active {
			active = append(active, r)
		} else {
			left = append(left, r)
		}
	}
	for _, root := range l.roots {
		begun[root] = true
	}
	for i := range l.rows {
		at := int32(i)
		main := l.main(at)
		for _, c := range l.children[at] {
			if c != main {
				begun[c] = true
			}
		}
		if begun[at] {
			take(at)
		}
	}
	return append(active, left...)
}

func (v *treeView) writeSection(b *bufio.Writer, l *layout, i int) {
	n := &v.tree.Nodes[i]
	fmt.Fprintf(b, "\n### %s `%s`", markdownText(cut(safe(kindOf(n.Entry)), maxKind)), strings.ReplaceAll(shownID(n.Entry.ID()), "`", "'"))
	if v.state(n) == "hidden" {
		b.WriteString(" (hidden by a compaction)")
	}
	for _, t := range l.tags(i) {
		b.WriteString(" " + markdownText(t.text))
	}
	says := shownText(entrySays(n.Entry))
	if strings.TrimSpace(says) == "" {
		b.WriteString("\n")
		return
	}
	fence := strings.Repeat("`", max(3, longestRun(says, '`')+1))
	fmt.Fprintf(b, "\n\n%stext\n%s\n%s\n", fence, says, fence)
}

// markdownText is a safe line that Markdown takes for text.
func markdownText(s string) string {
	var b strings.Builder
	for _, r := range s {
		if r < 0x80 && strings.ContainsRune("\\`*_[]<>#&|~$", r) {
			b.WriteByte('\\')
		}
		b.WriteRune(r)
	}
	return b.String()
}

func longestRun(s string, c byte) (most int) {
	n := 0
	for i := range len(s) {
		if s[i] != c {
			n = 0
			continue
		}
		n++
		most = max(most, n)
	}
	return most
}
