package jsonl

import (
	"context"
	"math"
	"slices"

	"github.com/sessiontree/sessiontree/eventlog"
	"github.com/sessiontree/sessiontree/eventlog/js"
)

// batchSpan bounds, in ms, how far apart the times of the entries of one append are.
const batchSpan = 1000

// gap is a damaged range with NULs in it: what a loss of power leaves of pages that
// did not come to the disk. JSON has none.
type gap struct {
	Damage
	entries int // that stand before it
}

// cutOff finds an append that a loss of power cut off: its last lines may be on the
// disk and its first ones not. Then there are entries at the end of the file, all of
// one time, no earlier than the one before the gap, that hang on one that was lost.
// Nobody was told that they were written, and the session must not go on below them.
// It gives the gap from which on this is so. before is the entry in front of entries.
//
// What hangs on an entry that was lost in another way is kept, as an island.
func cutOff(gaps []gap, before eventlog.Entry, entries []eventlog.Entry, known func(id string) bool) (from gap, found bool) {
	earliest, latest := math.Inf(1), math.Inf(-1)
	i, lost := len(entries), false
	for _, g := range slices.Backward(gaps) {
		for ; i > g.entries; i-- {
			at := js.ParseDate(entries[i-1].Timestamp())
			earliest, latest = min(earliest, at), max(latest, at)
			parent := entries[i-1].Parent()
			lost = lost || !parent.IsNone() && !known(parent.ID())
		}
		if i > 0 {
			before = entries[i-1]
		}
		if !(latest-earliest <= batchSpan) { // or a time that is none
			break
		}
		if lost && !(earliest < js.ParseDate(before.Timestamp())) {
			from, found = g, true
		}
		lost = false
	}
	return from, found
}

// cutOff makes what a cut-off append left the torn end of the file.
func (c *Contents) cutOff(gaps []gap) {
	if len(gaps) == 0 {
		return
	}
	ids := idsOf(c.Entries)
	from, found := cutOff(gaps, eventlog.Entry{}, c.Entries, func(id string) bool { return ids[id] })
	if !found {
		return
	}
	c.Entries = c.Entries[:from.entries:from.entries]
	c.Damage = from.swallow(c.Damage, c.tail.size)
	c.tail.tear(from)
	if c.Lines != nil {
		c.Lines = c.Lines[:from.entries]
	}
}

// cutOff does so with what was read behind what there is.
func (s *Storage) cutOff(p *parsed) {
	if len(p.gaps) == 0 {
		return
	}
	ctx, ids := context.Background(), idsOf(p.entries)
	head, _ := s.Head(ctx) // of a leaf that is not there too
	var before eventlog.Entry
	for before = range s.Entries(ctx, max(head.N-1, 0), 1) {
	}
	from, found := cutOff(p.gaps, before, p.entries, func(id string) bool {
		_, err := s.Entry(ctx, id)
		return err == nil || ids[id]
	})
	if found {
		p.entries, p.damage = p.entries[:from.entries], from.swallow(p.damage, s.tail.size)
		s.tail.tear(from)
	}
}

func idsOf(entries []eventlog.Entry) map[string]bool {
	ids := make(map[string]bool, len(entries))
	for _, e := range entries {
		ids[e.ID()] = true
	}
	return ids
}

// swallow makes one range of all that stands from the gap on.
func (g gap) swallow(damage []Damage, size int64) []Damage {
	for i, d := range damage {
		if d.Offset == g.Offset {
			return append(damage[:i:i], Damage{g.Line, g.Offset, size - g.Offset, "an append that a loss of power cut off: what it hangs on was lost"})
		}
	}
	return damage
}
