package eventlog

import (
	"strings"

	"github.com/sessiontree/sessiontree/eventlog/js"
)

// branchCopy makes the entries of a branched session: the branch without its
// label entries, the chain closed again; a compaction's first kept entry that was
// such a label becomes the next kept entry. Then the labels of what was kept, as
// new entries at the end, each with the time of the last setting.
func (codingAgent) branchCopy(branch []Entry, labels []Label, src Source) ([]Entry, error) {
	kept := map[string]bool{}
	replaced := map[string]string{} // what stands for a label that was left out
	var pending []string
	var entries []Entry
	parent := None()
	for _, e := range branch {
		if e.kind == kindLabel {
			pending = append(pending, e.id)
			continue
		}
		for _, id := range pending {
			replaced[id] = e.id
		}
		pending = pending[:0]
		text := withMember(e.text, "parentId", parent.Value())
		if e.kind == kindCompaction {
			first := keyOf(e.Get("firstKeptEntryId"))
			if to, ok := replaced[first]; ok && first != e.id {
				text = withMember(text, "firstKeptEntryId", keyValue(to))
			}
		}
		if text != e.text {
			e = anyEntry(js.Trusted(text))
		}
		entries = append(entries, e)
		kept[e.id] = true
		parent = At(e.id)
	}
	taken := func(id string) (bool, error) { return kept[id], nil }
	for _, l := range labels {
		if !kept[l.Target] {
			continue
		}
		id, err := src.EntryID(taken)
		if err != nil {
			return nil, err
		}
		kept[id] = true
		e := anyEntry(js.Fields(
			field("type", js.Text(string(TypeLabel))),
			field("id", js.Text(id)),
			field("parentId", parent.Value()),
			field("timestamp", l.Entry.stamp()),
			field("targetId", keyValue(l.Target)),
			field("label", js.Canonical(l.Value))))
		entries = append(entries, e)
		parent = At(id)
	}
	return entries, nil
}

// withMember is the text of an object with a member set to v; all else of it
// stays byte for byte. A key that was not there comes last.
func withMember(text, key string, v js.Value) string {
	start, end := -1, -1
	js.WalkChecked(text, 0, func(k string, at int) int {
		stop := js.SkipChecked(text, at)
		if k == key {
			start, end = at, stop
		}
		return stop
	})
	switch {
	case start >= 0 && js.Diff(js.Trusted(text[start:end]), v) == nil:
		return text
	case start >= 0:
		return text[:start] + v.JSON() + text[end:]
	}
	body := strings.TrimRight(text[:len(text)-1], " \t\r\n")
	if !strings.HasSuffix(body, "{") {
		body += ","
	}
	return body + js.Text(key).JSON() + ":" + v.JSON() + "}"
}
