package eventlog

import "github.com/sessiontree/sessiontree/eventlog/js"

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
		record := js.WithMember(e.Value(), "parentId", parent.Value())
		if e.kind == kindCompaction {
			first := keyOf(e.Get("firstKeptEntryId"))
			if to, ok := replaced[first]; ok && first != e.id {
				record = js.WithMember(record, "firstKeptEntryId", keyValue(to))
			}
		}
		if record.JSON() != e.text {
			e = anyEntry(record)
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
