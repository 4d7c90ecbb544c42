package eventlog_test

import (
	"encoding/json"
	"fmt"
	"math"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/sessiontree/sessiontree/eventlog"
	"github.com/sessiontree/sessiontree/eventlog/js"
)

// FuzzEntryCodec reads arbitrary text as an entry. What is taken keeps its bytes
// and means the same in its canonical form.
func FuzzEntryCodec(f *testing.F) {
	for _, text := range []string{
		"", "null", "[]", "{}", " {} ", `{"type":"message"}`, user("a", "", "x"), assistant("b", "a", `\ud83d "`),
		entry("leaf", "l", "a", `"targetId":null`), entry("leaf", "l", "a", `"targetId":"\ud800"`), entry("leaf", "l", "a", `"targetId":0`),
		entry("compaction", "c", "a", `"summary":"s","firstKeptEntryId":"a","tokensBefore":1e21,"retainedTail":[{"role":"user","content":"x"},null]`),
		entry("custom", "x", "a", `"customType":"t","data":{"2":1,"10":2,"a":3,"a":4,"-0":-0.0,"n":1e400}`),
		entry("message", "m", "", `"message":{"role":"user"},"message":7`), entry("unknown", "u", "", `"id":"twice"`),
		"\t" + entry("label", "l", "", `"targetId":"a","label":" x "`) + "\r\n", `{"type":"x","id":"\u0061","parentId":"","timestamp":"t"}`,
		entry("message", "m", "", `"message":{"role":"assistant","content":[{"type":"toolCall","name":"n","arguments":"\udc00"},{"type":"thinking"}],"usage":{"input":1}}`),
		entry("message", "m", "", `"message":{"role":"bashExecution","command":["a",[1]],"output":{},"exitCode":-0,"cancelled":""}`),
		entry("branch_summary", "s", "", `"summary":{},"details":{"readFiles":["a",1,"a"],"modifiedFiles":{}}`),
		`{"type":"x","id":"` + "\xFF\xED\xA0\x80" + `","parentId":null,"timestamp":"t"}`, strings.Repeat("[", 300) + strings.Repeat("]", 300),
	} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		v, err := js.Parse(text)
		// encoding/json has the same grammar, save for a limit to its depth.
		if strings.Count(text, "[")+strings.Count(text, "{") < 9000 {
			require.Equal(t, json.Valid([]byte(text)), err == nil, "%v", err)
		}
		if err == nil {
			canonical := js.Canonical(v)
			require.Equal(t, canonical.JSON(), js.Canonical(canonical).JSON())
			if d := js.Diff(v, canonical); d != nil {
				n, _ := d.Want.Float()
				require.True(t, math.IsInf(n, 0) && d.Got.Kind() == js.Null, "%v", d)
				return // JSON.stringify makes null of an infinity
			}
		}
		e, err := eventlog.ParseEntry(text)
		if err != nil {
			require.ErrorIs(t, err, eventlog.ErrInvalidEntry)
			require.Equal(t, eventlog.Entry{}, e)
			return
		}
		require.Equal(t, v.JSON(), e.JSON(), "its bytes")
		require.NotEmpty(t, e.ID())
		again, err := eventlog.ParseEntry(e.JSON())
		require.NoError(t, err)
		require.Equal(t, e, again)
		require.Equal(t, e, eventlog.TrustedEntry(e.JSON()))

		canonical := js.Canonical(e.Value()).JSON()
		c, err := eventlog.ParseEntry(canonical)
		require.NoError(t, err)
		require.Equal(t, canonical, c.JSON())
		type answers struct {
			id, time      string
			parent, after eventlog.Ref
			target        eventlog.Ref
			typ           eventlog.Type
			user          bool
		}
		of := func(e eventlog.Entry) answers {
			return answers{e.ID(), e.Timestamp(), e.Parent(), e.LeafAfter(), e.Target(), e.Type(), e.IsUserMessage()}
		}
		require.Equal(t, of(e), of(c))
		require.Nil(t, js.Diff(e.Message().Value, c.Message().Value))

		// What is made of it never panics, and is the same for both.
		shown := func(e eventlog.Entry) (all []string) {
			say := func(what any, err error) { all = append(all, fmt.Sprint(what, eventlog.CodeOf(err))) }
			context, err := eventlog.Harness.BuildContext([]eventlog.Entry{e}, eventlog.ContextOptions{})
			say(canonicals(context.Messages), err)
			llm, err := eventlog.Harness.ToLLM(context.Messages)
			say(canonicals(llm), err)
			text, err := eventlog.Harness.ConversationText(llm)
			say(text, err)
			say(canonicals(eventlog.WellFormed(llm)), nil)
			p, err := eventlog.Harness.PrepareBranch([]eventlog.Entry{e}, 10)
			say(fmt.Sprint(canonicals(p.Messages), p.Tokens), err)
			for _, m := range context.Messages {
				m.AsAssistant()
				m.AsToolResult()
				say(m.PlainText(), nil)
				for _, b := range m.Blocks() {
					say([]string{b.Type, b.Text, b.ID, b.Name}, nil)
				}
			}
			var stats eventlog.Stats
			say(stats, eventlog.Harness.Count(&stats, e))
			name, err := eventlog.Harness.Name(e)
			say(name, err)
			target, label, ok, err := eventlog.Harness.Label(e)
			say([]any{target, label, ok}, err)
			return all
		}
		require.Equal(t, shown(e), shown(c))
	})
}

func canonicals(messages []eventlog.Message) []string {
	var texts []string
	for _, m := range messages {
		texts = append(texts, js.Canonical(m.Value).JSON())
	}
	return texts
}

// FuzzBranchWalk makes small logs of entries with ids, parents and boundaries
// from few names, and compares all walks with the naive ones.
func FuzzBranchWalk(f *testing.F) {
	f.Add([]byte{0, 1, 0, 0, 0, 2, 1, 0, 0, 3, 2, 0})                         // a chain
	f.Add([]byte{0, 1, 2, 0, 0, 2, 1, 0})                                     // a cycle
	f.Add([]byte{0, 1, 1, 0, 2, 2, 1, 1})                                     // itself
	f.Add([]byte{0, 1, 3, 0, 0, 2, 1, 0, 2, 3, 2, 1, 0, 4, 3, 0})             // a cycle with a compaction
	f.Add([]byte{0, 1, 2, 0, 0, 2, 3, 0, 2, 3, 4, 1, 0, 4, 5, 0, 0, 5, 1, 0}) // one that is longer than the log
	f.Add([]byte{0, 1, 0, 0, 2, 2, 1, 1, 2, 3, 2, 2, 1, 4, 3, 2})             // two compactions, a move
	f.Add([]byte{0, 1, 0, 0, 3, 2, 1, 0, 0, 2, 2, 0, 1, 5, 2, 7})             // an id twice, a move to nowhere
	f.Add([]byte{5, 1, 8, 0, 4, 2, 1, 1, 0, 3, 7, 0, 2, 4, 3, 4, 9})          // a hole, a label
	f.Fuzz(func(t *testing.T, program []byte) {
		if len(program) > 4*40 {
			return
		}
		entries, n := fewNames(t, program)
		compareWalks(t, inMemory(entries...), n, fewIDs)
		// One by one, as a session grows.
		s := inMemory()
		for _, e := range entries {
			require.NoError(t, s.Storage().AppendRaw(t.Context(), e))
		}
		compareWalks(t, s, n, fewIDs)
	})
}

var fewIDs = []string{"a", "b", "c", "d", "e", "f", "g", "h"}

// fewNames makes a log of a program: four bytes an entry, its type, its id, its
// parent, and what it refers to.
func fewNames(t testing.TB, program []byte) ([]eventlog.Entry, *naive) {
	n := &naive{}
	var texts []string
	name := func(b byte) string { return fewIDs[int(b)%len(fewIDs)] }
	for len(program) >= 4 {
		kind, id, parent, ref := program[0], name(program[1]), program[2], program[3]
		program = program[4:]
		up := ""
		if parent%16 != 0 {
			up = name(parent)
		}
		fields := map[byte]string{
			0: `"message":{"role":"user","content":"` + id + `"}`,
			1: `"targetId":"` + name(ref) + `"`,
			2: `"summary":"` + id + `","firstKeptEntryId":"` + name(ref) + `"`,
			3: `"summary":"` + id + `","firstKeptEntryId":"` + name(ref) + `","retainedTail":` + []string{"[]", "null", "0", `[{"role":"user","content":"kept"}]`, "false"}[ref%5],
			4: `"targetId":"` + name(ref) + `","label":" ` + name(ref/8) + ` "`,
			5: `"summary":"` + id + `"`,
			6: `"targetId":null`,
			7: `"customType":"t"`,
			8: `"message":{"role":"assistant","content":[{"type":"text","text":"` + id + `"}],"provider":"p","model":"` + name(ref) + `"}`,
			9: `"name":"` + name(ref) + `"`,
		}
		types := []string{"message", "leaf", "compaction", "compaction", "label", "compaction", "leaf", "custom", "message", "session_info"}
		k := kind % byte(len(types))
		text := entry(types[k], id, up, fields[k])
		if parent%16 == 8 {
			text = strings.Replace(text, `"parentId":"`+up+`"`, `"parentId":""`, 1) // a root too
		}
		texts = append(texts, text)
	}
	n.append(texts...)
	return parse(t, texts...), n
}

// compareWalks asks a session and the naive reference all questions, of the
// entries with the ids given.
func compareWalks(t testing.TB, s *eventlog.Session, n *naive, ids []string) {
	t.Helper()
	ctx := t.Context()
	want, wantErr := n.head()
	head, err := s.Head(ctx)
	require.True(t, sameError(wantErr, err), "head: want %v, got %v", wantErr, err)
	require.Equal(t, want, head)

	refs := []*string{nil}
	for i := range ids {
		refs = append(refs, &ids[i])
	}
	ref := func(id *string) eventlog.Ref {
		if id == nil {
			return eventlog.None()
		}
		return eventlog.At(*id)
	}
	for _, from := range refs {
		var want []record
		if from == nil {
			want, wantErr = n.current()
		} else {
			want, wantErr = n.branch(*from)
		}
		branch, err := s.Branch(ctx, ref(from))
		require.True(t, sameError(wantErr, err), "branch of %v: want %v, got %v", ref(from), wantErr, err)
		require.Equal(t, recordIDs(want), idsOf(branch), "branch of %v", ref(from))
		var wantMessages []string
		if wantErr == nil {
			wantMessages, wantErr = messages(contextEntries(want))
		}
		c, err := s.BuildContext(ctx, ref(from))
		require.True(t, sameError(wantErr, err), "context of %v: want %v, got %v", ref(from), wantErr, err)
		if err == nil {
			inContext, err := s.ContextEntries(ctx, ref(from))
			require.NoError(t, err)
			require.Equal(t, recordIDs(contextEntries(want)), idsOf(inContext), "context entries of %v", ref(from))
			require.Equal(t, wantMessages, shown(c.Messages), "context of %v", ref(from))
			require.Equal(t, settings(want), settingsOf(c), "settings at %v", ref(from))
		}
		for _, target := range refs {
			want, common, wantErr := n.collect(from, target)
			left, err := s.CollectBranch(ctx, ref(from), ref(target))
			require.True(t, sameError(wantErr, err), "left from %v to %v: want %v, got %v", ref(from), ref(target), wantErr, err)
			if err == nil {
				require.Equal(t, want, idsOf(left.Entries), "left from %v to %v", ref(from), ref(target))
				require.Equal(t, ref(common), left.CommonAncestor, "shared by %v and %v", ref(from), ref(target))
			}
		}
		for _, position := range []eventlog.Position{eventlog.AtIt, eventlog.Before} {
			if from == nil {
				continue
			}
			want, wantErr := n.fork(*from, position == eventlog.AtIt)
			copied, err := s.ForkEntries(ctx, *from, position, eventlog.Source{})
			if wantErr != nil && errorOfHole(wantErr, err) {
				continue
			}
			require.True(t, sameError(wantErr, err), "fork %s %v: want %v, got %v", position, ref(from), wantErr, err)
			require.Equal(t, recordIDs(want), idsOf(copied), "fork %s %v", position, ref(from))
		}
	}
	labels, err := s.Labels(ctx)
	require.NoError(t, err)
	require.Equal(t, n.labels(), labels)
	name, err := s.Name(ctx)
	require.NoError(t, err)
	require.Equal(t, n.name(), name)
	stats, err := s.Stats(ctx)
	require.NoError(t, err)
	require.Equal(t, n.stats(), stats)
	compareTree(t, s, n)
}

// errorOfHole: a fork before a user message whose parent is not there fails as
// looking that parent up does, in Pi and here.
func errorOfHole(want, got error) bool {
	return sameError(eventlog.ErrNotFound, want) && sameError(eventlog.ErrNotFound, got)
}

// compareTree checks the tree: each entry once, before its children, each mark
// as the plain rules have it.
func compareTree(t testing.TB, s *eventlog.Session, n *naive) {
	t.Helper()
	tree, err := s.Tree(t.Context())
	require.NoError(t, err)
	require.Len(t, tree.Nodes, len(n.log))
	count := map[string]int{}
	for _, r := range n.log {
		count[r.Type+r.ID]++
	}
	labelled := map[string]string{}
	above := map[int]bool{}
	roots := []int{}
	for i, node := range tree.All() {
		count[string(node.Entry.Type())+node.Entry.ID()]--
		if node.Label != "" {
			_, twice := labelled[node.Entry.ID()]
			require.False(t, twice, "a label stands twice")
			labelled[node.Entry.ID()] = node.Label
		}
		require.Equal(t, node.Entry.Type().Control(), node.Control)
		parent := node.Entry.Parent().ID()
		_, known := n.find(parent)
		require.Equal(t, parent != "" && !known, node.Gap, "a gap above %v", node.Entry.ID())
		if node.Parent < 0 {
			roots = append(roots, i)
			require.Zero(t, node.Depth)
			require.True(t, parent == "" || node.Gap || node.Cycle, "a root without a reason: %v", node.Entry.ID())
		} else {
			require.Less(t, node.Parent, i)
			up := tree.Nodes[node.Parent]
			require.Equal(t, parent, up.Entry.ID())
			require.Equal(t, up.Depth+1, node.Depth)
			require.Contains(t, up.Children, i)
			require.Equal(t, up.Cycle, node.Cycle)
		}
		require.Equal(t, n.circular(node.Entry), node.Cycle, "%s", node.Entry.JSON())
		if node.Leaf {
			require.Equal(t, tree.Leaf, eventlog.At(node.Entry.ID()))
			for up := i; up >= 0; up = tree.Nodes[up].Parent {
				above[up] = true
			}
		}
	}
	require.Equal(t, roots, append([]int{}, tree.Roots...))
	for id, left := range count {
		require.Zero(t, left, "%s stands in the tree once", id)
	}
	head, headErr := n.head()
	require.Equal(t, head.Leaf, tree.Leaf)
	require.True(t, sameError(headErr, tree.LeafError))
	onBranch := map[string]bool{}
	current, branchErr := n.current()
	for _, r := range current {
		onBranch[r.ID] = true
	}
	for i, node := range tree.All() {
		require.Equal(t, above[i], node.Active, "active: %v", node.Entry.ID())
		if branchErr == nil && !node.Cycle && node.Active {
			require.Equal(t, onBranch[node.Entry.ID()], node.OnBranch, "on the branch: %v", node.Entry.ID())
		}
		if !node.Active {
			require.False(t, node.OnBranch)
		}
	}
	// Of an id that stands twice, one entry has the label.
	labels := n.labels()
	for id := range labels {
		if _, there := n.find(id); !there {
			delete(labels, id)
		}
	}
	require.Equal(t, labels, labelled)
}

// circular says whether walking up from an entry never ends, boundaries aside.
func (n *naive) circular(e eventlog.Entry) bool {
	at := e.Parent().ID()
	for range len(n.log) + 1 {
		r, ok := n.find(at)
		if at == "" || !ok || r.ParentID == nil {
			return false
		}
		at = *r.ParentID
	}
	return true
}

// FuzzDamaged reads what a disk has spoilt as if it were checked: any answer will do,
// but there has to be one.
func FuzzDamaged(f *testing.F) {
	for _, text := range []string{
		`{"type":"message","id":"a","parentId":null,"timestamp":"t","message":{"role":"user","content":[{"type":"text","text":"x\u00e9\\"}]}}`,
		`{"type":"compaction","id":"a","parentId":"b","timestamp":"t","summary":"s","firstKeptEntryId":"b","retainedTail":[{"role":"assistant","usage":{"cost":{"total":1e21}}}]}`,
		`{"a":"`, `{"`, `{`, `{"a"`, `{"a":`, `{"a":[`, `{"a":"\`, `{"a":"\u12`, `{,}`, `{"a":1 "b"}`, `{"type":`,
	} {
		f.Add(text, 3, byte('"'))
		f.Add(text, len(text)-2, byte('\\'))
	}
	f.Fuzz(func(t *testing.T, text string, at int, b byte) {
		if at >= 0 && at < len(text) {
			text = text[:at] + string([]byte{b}) + text[at+1:]
		}
		for _, d := range eventlog.Dialects() {
			e := d.TrustedEntry(text)
			e.Type()
			e.Timestamp()
			e.LeafAfter()
			e.Message().PlainText()
			e.Message().Blocks()
			e.Message().AsAssistant()
			var stats eventlog.Stats
			_ = d.Count(&stats, e)
			_, _, _, _ = d.Label(e)
			_, _ = d.Name(e)
			if c, err := d.BuildContext([]eventlog.Entry{e}, eventlog.ContextOptions{}); err == nil {
				_, _ = d.ToLLM(c.Messages)
			}
		}
	})
}
