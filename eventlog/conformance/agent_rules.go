package conformance

import (
	"crypto/sha256"
	"encoding/hex"
	"math"
	"regexp"
	"slices"
	"strings"

	"github.com/sessiontree/sessiontree/eventlog"
	"github.com/sessiontree/sessiontree/eventlog/js"
)

// The rules of the second set. Where one is applied, what is expected is worked out
// by what follows, as Pi's coding agent answers, and what is answered by ours.
const (
	LeafSurvives     Rule = "the leaf survives closing"
	ExistsAtOnce     Rule = "a session exists from its first append"
	NothingOnOpen    Rule = "opening writes nothing"
	UnknownRefused   Rule = "an unknown entry is an error"
	EntryOnce        Rule = "an entry stands once in the tree"
	BadEntryListed   Rule = "a bad entry hides no session"
	ListsWholeLines  Rule = "lists read whole lines"
	WritersTakeTurns Rule = "writers of one session take turns"
	ForksMigrated    Rule = "forks of old versions are migrated"
)

var agentAccident = regexp.MustCompile(`^(Cannot read properties of (undefined|null) \(reading '[\w-]+'\)|Cannot convert undefined or null to object|.{1,80} is not (iterable|a function|a function or its return value is not iterable)|.{0,80}not iterable.{0,80})$`)

// hasConversation says whether the coding agent would have written a file.
func hasConversation(entries []eventlog.Entry) bool {
	return slices.ContainsFunc(entries, func(e eventlog.Entry) bool {
		role := e.Message().Get("role")
		return role.Is("user") || role.Is("assistant")
	})
}

// record is one record of a file, as the coding agent reads it.
type record struct {
	value js.Value
	line  int
}

// agentRecords are the records of a file; pending is what stands behind the last
// newline.
func agentRecords(file []byte) (records []record, pending string) {
	lines := strings.Split(js.DecodeUTF8(string(file)), "\n")
	for i, l := range lines {
		if v, err := js.Parse(l); err == nil && v.Truthy() {
			records = append(records, record{v, i + 1})
		}
	}
	return records, lines[len(lines)-1]
}

// agentOpening is what the coding agent does to a file by opening it.
func agentOpening(file []byte, missing bool) (what string, opens bool) {
	switch {
	case missing:
		return "absent", true
	case len(file) == 0:
		return "created", true
	}
	records, pending := agentRecords(file)
	if len(records) == 0 {
		return "unchanged", false
	}
	header := records[0].value
	if _, ok := header.Get("id").Str(); !ok || !header.Get("type").Is("session") {
		return "unchanged", false
	}
	if v := header.Get("version"); v.Nullish() || !(js.ToNumber(v) >= 3) {
		return "rewritten", true
	}
	if pending != "" {
		return "newline", true
	}
	return "unchanged", true
}

// agentInfo is the list information that the coding agent would give of a file, as
// its line reader cuts it; ok is false where it shows none.
func agentInfo(file []byte, modified string) (info js.Value, ok bool) {
	text := js.DecodeUTF8(string(file))
	var header js.Value
	var name js.Value
	messages, first := 0, ""
	var all []string
	last, active := 0.0, false
	for _, l := range strings.FieldsFunc(text, func(c rune) bool { return c == '\n' || c == '\r' || c == '\u2028' || c == '\u2029' }) {
		v, err := js.Parse(l)
		if err != nil || !v.Truthy() {
			continue
		}
		if !header.Exists() {
			if !v.Get("type").Is("session") {
				return js.Value{}, false
			}
			header = v
			continue
		}
		if v.Get("type").Is("session_info") {
			n := v.Get("name")
			s, isText := n.Str()
			if !n.Nullish() && !isText {
				return js.Value{}, false
			}
			if name = (js.Value{}); js.Trim(s) != "" {
				name = js.Text(js.Trim(s))
			}
		}
		if !v.Get("type").Is("message") {
			continue
		}
		messages++
		m := v.Get("message")
		if m.Nullish() {
			return js.Value{}, false
		}
		role, content := m.Get("role"), m.Get("content")
		if !role.Is("user") && !role.Is("assistant") || !content.Exists() {
			continue
		}
		at, isNumber := m.Get("timestamp").Float()
		if !isNumber {
			at = agentDate(v.Get("timestamp"))
		}
		if !math.IsNaN(at) {
			last, active = max(last, at), true
		}
		said, isText := content.Str()
		if !isText {
			if content.Kind() != js.Array {
				return js.Value{}, false
			}
			var parts []string
			for b := range content.Elements() {
				if b.Nullish() {
					return js.Value{}, false
				}
				if b.Get("type").Is("text") {
					part := ""
					if t := b.Get("text"); !t.Nullish() {
						part = js.ToString(t)
					}
					parts = append(parts, part)
				}
			}
			said = js.Join(parts, " ")
		}
		if said == "" {
			continue
		}
		all = append(all, said)
		if first == "" && role.Is("user") {
			first = said
		}
	}
	if !header.Exists() {
		return js.Value{}, false
	}
	created := agentDate(header.Get("timestamp"))
	if header.Get("timestamp").Kind() == js.Absent {
		created = math.NaN()
	}
	changed := js.ParseDate(modified)
	if active && last > 0 {
		changed = last
	} else if header.Get("timestamp").Kind() == js.String && !math.IsNaN(created) {
		changed = created
	}
	cwd, _ := header.Get("cwd").Str()
	if first == "" {
		first = "(no messages)"
	}
	return js.Fields(
		member("id", header.Get("id")),
		member("cwd", js.Text(cwd)),
		member("name", name),
		member("parentSessionPath", header.Get("parentSession")),
		member("created", isoOf(created)),
		member("modified", isoOf(changed)),
		member("messageCount", js.Num(float64(messages))),
		member("firstMessage", js.Text(first)),
		member("allMessagesText", js.Text(js.Join(all, " ")))), true
}

// agentDate is new Date(v).getTime().
func agentDate(v js.Value) float64 {
	switch v.Kind() {
	case js.String:
		s, _ := v.Str()
		return js.ParseDate(s)
	case js.Number, js.Null, js.Bool:
		return math.Trunc(js.ToNumber(v))
	}
	return math.NaN()
}

// agentTree is the tree that the coding agent shows, flat; ok is false where it
// never ends.
func agentTree(entries []eventlog.Entry, labels map[string]eventlog.Label) (nodes []js.Value, repeats, ok bool) {
	last := map[string]int{}
	for i, e := range entries {
		if _, twice := last[e.ID()]; twice {
			repeats = true
		}
		last[e.ID()] = i
	}
	children := map[int][]int{}
	var roots []int
	for _, e := range entries {
		node := last[e.ID()]
		p, found := last[e.Parent().ID()]
		if e.Parent().IsNone() || e.Parent().ID() == e.ID() || !found {
			roots = append(roots, node)
		} else {
			children[p] = append(children[p], node)
		}
	}
	type step struct{ node, depth int }
	var stack []step
	push := func(of []int, depth int) {
		for i := len(of) - 1; i >= 0; i-- {
			stack = append(stack, step{of[i], depth})
		}
	}
	push(roots, 0)
	for len(stack) > 0 {
		at := stack[len(stack)-1]
		stack = stack[:len(stack)-1]
		if len(nodes) > 100*len(entries)+1000 {
			return nil, repeats, false
		}
		e := entries[at.node]
		nodes = append(nodes, treeNode(e.ID(), at.depth, labels[e.ID()]))
		below := slices.Clone(children[at.node])
		slices.SortStableFunc(below, func(a, b int) int {
			switch d := agentDate(entries[a].Get("timestamp")) - agentDate(entries[b].Get("timestamp")); {
			case d < 0:
				return -1
			case d > 0:
				return 1
			}
			return 0
		})
		push(below, at.depth+1)
	}
	return nodes, repeats, true
}

func treeNode(id string, depth int, l eventlog.Label) js.Value {
	fields := []js.Member{member("id", nullFor(idValue(id))), member("depth", js.Num(float64(depth)))}
	if l.Text != "" {
		fields = append(fields, member("label", l.Value), member("labelTimestamp", l.Entry.Get("timestamp")))
	}
	return js.Fields(fields...)
}

// nullFor is null where there is no value.
func nullFor(v js.Value) js.Value {
	if !v.Exists() {
		return js.NullValue()
	}
	return v
}

// valueSum is the hash of a value: SHA-256 over its JSON without blanks, keys
// sorted by UTF-16 code units.
func valueSum(v js.Value) js.Value {
	var b []byte
	b = appendSorted(b, v)
	h := sha256.Sum256(b)
	return js.Text(hex.EncodeToString(h[:]))
}

func appendSorted(b []byte, v js.Value) []byte {
	switch v.Kind() {
	case js.Object:
		members := v.Members()
		slices.SortFunc(members, func(a, b js.Member) int { return js.Compare(a.Key, b.Key) })
		b = append(b, '{')
		for i, m := range members {
			if i > 0 {
				b = append(b, ',')
			}
			b = append(js.AppendQuote(b, m.Key), ':')
			b = appendSorted(b, m.Value)
		}
		return append(b, '}')
	case js.Array:
		b = append(b, '[')
		first := true
		for e := range v.Elements() {
			if !first {
				b = append(b, ',')
			}
			first = false
			b = appendSorted(b, e)
		}
		return append(b, ']')
	}
	return js.AppendCanonical(b, v)
}

// textSum is the hash of a text in UTF-8.
func textSum(s string) js.Value {
	h := sha256.Sum256([]byte(js.ToWellFormed(s)))
	return js.Text(hex.EncodeToString(h[:]))
}
