package projections

import (
	"context"
	"database/sql"

	"github.com/sessiontree/sessiontree/eventlog"
)

// place is where an entry stands. The zero place is nowhere.
type place struct {
	segment int64 // its key
	n       int64
}

// segment is a row of segments.
type segment struct {
	key, first       int64 // seq and n of its first entry
	parent           sql.NullInt64
	start, hops      int64
	jump, jumpShared sql.NullInt64
	compaction, stop int64
	missing          sql.NullString
	settings         string
	kept             int64
}

// depth is the depth of the segment's entry n.
func (s segment) depth(n int64) int64 { return s.start + n - s.first }

// place finds a new entry's place: in the segment of the entry before it in the
// log, if that is its parent, else at the start of a segment of its own.
func (h *Head) place(ctx context.Context, tx *Tx, e Event) error {
	irregular, err := h.breaksOrder(ctx, tx, e)
	if err != nil {
		return err
	}
	if irregular {
		// Its places answer nothing from here on; they stay, and none comes.
		h.irregular, h.leafAt, h.placed = true, place{}, nil
		return nil
	}
	p, err := h.placeBelow(ctx, tx, e)
	if err == nil {
		h.remember(e.Entry.ID(), p)
		err = h.changeSettings(ctx, tx, e)
	}
	return err
}

// changeSettings keeps the settings at an entry that was placed, if it changes
// those that placing it found above it.
func (h *Head) changeSettings(ctx context.Context, tx *Tx, e Event) error {
	if !h.dialect.KeepsSettings() {
		return nil
	}
	before := h.settingsAt
	if h.settingsAt = h.dialect.SettingsAfter(before, e.Entry); h.settingsAt == before {
		return nil
	}
	_, err := tx.Exec(ctx, "INSERT OR REPLACE INTO settings (session, n, value) VALUES (?, ?, ?)", h.session, e.N, h.settingsAt)
	return err
}

// settingsSQL is the last change in the segment up to an entry, else what the
// segment began with.
const settingsSQL = `
SELECT coalesce((SELECT value FROM settings WHERE session = s.session AND n BETWEEN s.first AND ?2 ORDER BY n DESC LIMIT 1), s.settings)
FROM segments s WHERE s.key = ?1`

// settingsOf are the settings at a place.
func (h *Head) settingsOf(ctx context.Context, tx *Tx, p place) (settings string, err error) {
	switch {
	case !h.dialect.KeepsSettings():
		return "", nil
	case p == h.leafAt && h.leafAt.segment != 0:
		return h.settings, nil
	}
	_, err = tx.Row(ctx, settingsSQL, []any{p.segment, p.n}, &settings)
	return settings, err
}

func (h *Head) placeBelow(ctx context.Context, tx *Tx, e Event) (place, error) {
	new := segment{key: e.Seq, first: int64(e.N), compaction: -1}
	id := e.Entry.Parent().ID()
	h.settingsAt = ""
	if e.Entry.IsRoot() {
		return h.open(ctx, tx, e.Entry, new)
	}
	parent, ok, err := h.find(ctx, tx, id)
	switch {
	case err != nil:
		return place{}, err
	case !ok:
		h.hasHoles = true
		if new.missing = (sql.NullString{String: id, Valid: true}); !h.dialect.HoleEnds() {
			new.stop = -1
		}
		return h.open(ctx, tx, e.Entry, new)
	}
	if h.settingsAt, err = h.settingsOf(ctx, tx, parent); err != nil {
		return place{}, err
	}
	switch {
	case parent.n == new.first-1 && e.Entry.Type() != eventlog.TypeCompaction:
		return place{parent.segment, new.first}, nil
	}
	above, err := h.segment(ctx, tx, parent.segment)
	if err != nil {
		return place{}, err
	}
	new.parent = sql.NullInt64{Int64: above.key, Valid: true}
	new.start = above.depth(parent.n) + 1
	new.compaction, new.stop, new.kept, new.settings = above.compaction, above.stop, above.kept, h.settingsAt
	if err := h.jump(ctx, tx, above, &new); err != nil {
		return place{}, err
	}
	return h.open(ctx, tx, e.Entry, new)
}

// jump gives a segment below above its hops and its jump: where the two jumps
// above it are of one length, they make one, else it goes to the parent.
func (h *Head) jump(ctx context.Context, tx *Tx, above segment, s *segment) error {
	s.hops = above.hops + 1
	s.jump = sql.NullInt64{Int64: above.key, Valid: true}
	s.jumpShared = sql.NullInt64{Int64: s.start - 1, Valid: true}
	length := jumpLength(above.hops)
	if length == 0 || length != jumpLength(above.hops-length) {
		return nil
	}
	first, err := h.segment(ctx, tx, above.jump.Int64)
	s.jump, s.jumpShared = first.jump, first.jumpShared
	return err
}

// jumpLength is how many segments the jump of one with so many above it passes:
// the last digit's weight when hops are written in skew-binary (weights 1, 3, 7,
// …, the greatest first); 0 at the root.
func jumpLength(hops int64) (length int64) {
	for hops > 0 {
		for length = 1; 2*length+1 <= hops; {
			length = 2*length + 1
		}
		hops -= length
	}
	return length
}

// open writes a segment that begins with an entry.
func (h *Head) open(ctx context.Context, tx *Tx, e eventlog.Entry, s segment) (place, error) {
	if e.Type() == eventlog.TypeCompaction {
		if err := h.cut(ctx, tx, e, &s); err != nil {
			return place{}, err
		}
	}
	_, err := tx.Exec(ctx, "INSERT INTO segments (key, session, first, parent, start, hops, jump, jump_shared, compaction, stop, missing, settings, kept) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
		s.key, h.session, s.first, s.parent, s.start, s.hops, s.jump, s.jumpShared, s.compaction, s.stop, s.missing, s.settings, s.kept)
	h.keep(s)
	return place{s.key, s.first}, err
}

// cut says where the branches below a compaction stop: at the compaction itself
// if it retains messages by value; else at its first kept entry, if that stands
// above it and not above the next older compaction; else where they stopped
// before. So a branch is never walked to find out where it begins.
func (h *Head) cut(ctx context.Context, tx *Tx, e eventlog.Entry, s *segment) error {
	older, stops := s.compaction, !h.dialect.HoleEnds()
	s.compaction = s.start
	if !stops {
		older, s.kept = 0, s.start
	} else if e.Get("retainedTail").Truthy() {
		s.stop = s.start
		return nil
	}
	id := eventlog.RefOf(e.Get("firstKeptEntryId")).ID()
	if id == "" || id == e.ID() || !s.parent.Valid {
		return nil
	}
	kept, ok, err := h.find(ctx, tx, id)
	if err != nil || !ok {
		return err
	}
	in, err := h.segment(ctx, tx, kept.segment)
	if err != nil {
		return err
	}
	if depth := in.depth(kept.n); depth >= older {
		above, err := h.isAbove(ctx, tx, in.key, depth, *s)
		if err != nil {
			return err
		}
		switch {
		case above && stops:
			s.stop = depth
		case above:
			s.kept = depth
		}
	}
	return nil
}

// isAbove says whether the entry at a depth of segment a is above all of segment
// b, in O(log) steps: each leads to a segment with which b shares that depth.
func (h *Head) isAbove(ctx context.Context, tx *Tx, a, depth int64, b segment) (bool, error) {
	for b.key != a {
		if b.start <= depth || !b.parent.Valid {
			return false, nil
		}
		up := b.parent.Int64
		if b.jumpShared.Int64 >= depth {
			up = b.jump.Int64
		}
		var err error
		if b, err = h.segment(ctx, tx, up); err != nil {
			return false, err
		}
	}
	return true, nil
}
