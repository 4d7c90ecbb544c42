package projections

import (
	"context"

	"github.com/sessiontree/sessiontree/eventlog"
)

// What a head knows of its session while a batch is applied to it: where the
// entries of the batch stand, and the segments that were read or made. So a
// lookup within the batch costs no query. It is forgotten with the head.

// findSQL is an entry by its id, if it came before another, with its segment: the
// last of its session that does not start behind it.
const findSQL = `
SELECT e.n, s.key, s.first, s.parent, s.start, s.hops, s.jump, s.jump_shared, s.compaction, s.stop, s.settings, s.kept
FROM events e CROSS JOIN segments s
WHERE e.session = ?1 AND e.id = ?2 AND e.seq < ?3
	AND s.key = (SELECT key FROM segments WHERE session = ?1 AND key <= e.seq ORDER BY key DESC LIMIT 1)`

// find is where an entry stands that came before the one that is applied.
func (h *Head) find(ctx context.Context, tx *Tx, id string) (place, bool, error) {
	if h.HasLeaf(id) {
		return h.leafAt, true, nil
	}
	if p, ok := h.placed[id]; ok {
		return p, true, nil
	}
	if h.whole {
		return place{}, false, nil
	}
	var p place
	var s segment
	ok, err := tx.Row(ctx, findSQL, []any{h.session, id, h.lastSeq},
		&p.n, &s.key, &s.first, &s.parent, &s.start, &s.hops, &s.jump, &s.jumpShared, &s.compaction, &s.stop, &s.settings, &s.kept)
	if err != nil || !ok {
		return place{}, false, err
	}
	p.segment = s.key
	h.keep(s)
	return p, true, nil
}

// segment reads a segment.
func (h *Head) segment(ctx context.Context, tx *Tx, key int64) (segment, error) {
	if s, ok := h.segments[key]; ok {
		return s, nil
	}
	s := segment{key: key}
	_, err := tx.Row(ctx, "SELECT first, parent, start, hops, jump, jump_shared, compaction, stop, settings, kept FROM segments WHERE key = ?", []any{key},
		&s.first, &s.parent, &s.start, &s.hops, &s.jump, &s.jumpShared, &s.compaction, &s.stop, &s.settings, &s.kept)
	if err == nil {
		h.keep(s)
	}
	return s, err
}

func (h *Head) keep(s segment) {
	if h.segments == nil {
		h.segments = map[int64]segment{}
	}
	h.segments[s.key] = s
}

func (h *Head) remember(id string, p place) {
	if h.placed == nil {
		h.placed = map[string]place{}
	}
	h.placed[id] = p
}

// breaksOrder says whether an entry has an id that its session has already, or
// is the parent that an earlier entry missed.
func (h *Head) breaksOrder(ctx context.Context, tx *Tx, e Event) (bool, error) {
	id := e.Entry.ID()
	if !e.Checked {
		if _, twice := h.placed[id]; twice || e.Entry.Parent() == eventlog.At(id) {
			return true, nil
		}
	}
	var one int
	if h.suspect {
		twice, err := tx.Row(ctx, "SELECT 1 FROM events WHERE session = ? AND id = ? AND seq < ?", []any{e.Session, id, e.Seq}, &one)
		if err != nil || twice {
			return twice, err
		}
	}
	if !h.hasHoles {
		return false, nil
	}
	return tx.Row(ctx, "SELECT 1 FROM segments WHERE session = ? AND missing = ?", []any{e.Session, id}, &one)
}

// suspectSQL finds an entry of a batch whose id the session had before.
const suspectSQL = `
SELECT 1 FROM events e CROSS JOIN events before
WHERE e.session = ?1 AND e.n BETWEEN ?2 AND ?3
	AND before.session = ?1 AND before.id = e.id AND before.seq < ?4 LIMIT 1`

// expect prepares a head for a batch: its first event of the session, and the n
// of the last. One query says for all that no id was there before.
func (h *Head) expect(ctx context.Context, tx *Tx, first Event, last int) (err error) {
	h.expecting, h.whole, h.suspect = true, first.N == 1, false
	if first.Checked || h.whole {
		return nil
	}
	if h.suspect = true; last > first.N {
		var one int
		h.suspect, err = tx.Row(ctx, suspectSQL, []any{h.session, first.N, last, first.Seq}, &one)
	}
	return err
}
