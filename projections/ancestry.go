package projections

import (
	"context"
	"database/sql"

	"github.com/sessiontree/sessiontree/eventlog"
)

// Position packs a segment and a depth, so that a run of a branch is a range of
// integer keys.
func Position(segment, depth int64) int64 { return segment<<32 | depth }

// place is where an entry stands, and what its children take from it.
type place struct {
	pos        int64
	compaction int64 // depth of the nearest compaction, itself included; -1 for none
	stop       int64 // depth at which its branch stops; -1 if the branch reaches a hole
}

func (p place) segment() int64 { return p.pos >> 32 }
func (p place) depth() int64   { return p.pos & 0xffffffff }

// segment is a row of segments.
type segment struct {
	key              int64
	parent           sql.NullInt64
	start, hops      int64
	jump, jumpShared sql.NullInt64
	compaction, stop int64
	missing          sql.NullString
}

func readSegment(ctx context.Context, tx *Tx, key int64) (segment, error) {
	s := segment{key: key}
	_, err := tx.Row(ctx, "SELECT parent, start, hops, jump, jump_shared, compaction, stop FROM segments WHERE key = ?", []any{key},
		&s.parent, &s.start, &s.hops, &s.jump, &s.jumpShared, &s.compaction, &s.stop)
	return s, err
}

// find is the position of an entry by its id.
func find(ctx context.Context, tx *Tx, session int64, id string) (pos int64, ok bool, err error) {
	ok, err = tx.Row(ctx, "SELECT n.pos FROM events e JOIN nodes n ON n.seq = e.seq WHERE e.session = ? AND e.id = ?", []any{session, id}, &pos)
	return pos, ok, err
}

// placeAt is the place of an entry that was placed earlier.
func placeAt(ctx context.Context, tx *Tx, pos int64) (place, error) {
	p := place{pos: pos}
	ok, err := tx.Row(ctx, "SELECT pos & 0xffffffff, stop FROM cuts WHERE pos BETWEEN ? AND ? ORDER BY pos DESC LIMIT 1",
		[]any{Position(p.segment(), 0), pos}, &p.compaction, &p.stop)
	if err != nil || ok {
		return p, err
	}
	s, err := readSegment(ctx, tx, p.segment())
	p.compaction, p.stop = s.compaction, s.stop
	return p, err
}

// place finds a new entry's place: behind its parent, if that is the last of its
// segment, else at the start of a segment of its own.
func (b Branch) place(ctx context.Context, tx *Tx, h *Head, e Event) error {
	if !e.Checked || h.hasHoles {
		irregular, err := breaksOrder(ctx, tx, e)
		if err != nil {
			return err
		}
		if irregular {
			// Its places answer nothing from here on; they stay, and so do those that
			// come: none.
			h.irregular, h.pos, h.lastID = true, sql.NullInt64{}, ""
			return nil
		}
	}
	p, err := b.placeBelow(ctx, tx, h, e)
	if err != nil {
		return err
	}
	if e.Entry.Type() == eventlog.TypeCompaction {
		if p, err = b.cut(ctx, tx, h, e.Entry, p); err != nil {
			return err
		}
	}
	h.lastID, h.last = e.Entry.ID(), p
	return nil
}

// breaksOrder says whether an entry has an id that its session has already, or
// is the parent that an earlier entry missed.
func breaksOrder(ctx context.Context, tx *Tx, e Event) (bool, error) {
	var one int
	twice, err := tx.Row(ctx, "SELECT 1 FROM events WHERE session = ? AND id = ? AND seq < ?", []any{e.Session, e.Entry.ID(), e.Seq}, &one)
	if err != nil || twice || e.Entry.Parent() == eventlog.At(e.Entry.ID()) {
		return true, err
	}
	return tx.Row(ctx, "SELECT 1 FROM segments WHERE session = ? AND missing = ?", []any{e.Session, e.Entry.ID()}, &one)
}

func (b Branch) placeBelow(ctx context.Context, tx *Tx, h *Head, e Event) (place, error) {
	parentID := e.Entry.Parent().ID()
	if parentID == "" {
		return newSegment(ctx, tx, h.session, segment{compaction: -1}, e.Seq)
	}
	parent := h.last
	if parentID != h.lastID || h.lastID == "" {
		pos, ok, err := h.find(ctx, tx, parentID)
		if err != nil {
			return place{}, err
		}
		if !ok {
			h.hasHoles = true
			island := segment{compaction: -1, stop: -1, missing: sql.NullString{String: parentID, Valid: true}}
			return newSegment(ctx, tx, h.session, island, e.Seq)
		}
		if parent, err = placeAt(ctx, tx, pos); err != nil {
			return place{}, err
		}
	}
	// The place behind the parent is free if the parent is the last of its segment.
	r, err := tx.Exec(ctx, "INSERT OR IGNORE INTO nodes (pos, seq) VALUES (?, ?)", parent.pos+1, e.Seq)
	if err != nil {
		return place{}, err
	}
	if n, err := r.RowsAffected(); err != nil || n == 1 {
		return place{parent.pos + 1, parent.compaction, parent.stop}, err
	}
	above, err := readSegment(ctx, tx, parent.segment())
	if err != nil {
		return place{}, err
	}
	s := segment{
		parent:     sql.NullInt64{Int64: above.key, Valid: true},
		start:      parent.depth() + 1,
		hops:       above.hops + 1,
		jump:       sql.NullInt64{Int64: above.key, Valid: true},
		jumpShared: sql.NullInt64{Int64: parent.depth(), Valid: true},
		compaction: parent.compaction,
		stop:       parent.stop,
	}
	// Skew-binary jump pointers: two jumps of one length above make one of twice
	// the length, and one.
	if above.jump.Valid {
		first, err := readSegment(ctx, tx, above.jump.Int64)
		if err != nil {
			return place{}, err
		}
		if first.jump.Valid {
			second, err := readSegment(ctx, tx, first.jump.Int64)
			if err != nil {
				return place{}, err
			}
			if above.hops-first.hops == first.hops-second.hops {
				s.jump, s.jumpShared = first.jump, first.jumpShared
			}
		}
	}
	return newSegment(ctx, tx, h.session, s, e.Seq)
}

// find is the position of one of the session's entries; the leaf's is known.
func (h *Head) find(ctx context.Context, tx *Tx, id string) (int64, bool, error) {
	if h.HasLeaf(id) {
		return h.pos.Int64, true, nil
	}
	return find(ctx, tx, h.session, id)
}

// maxSegment is the last key that a position has room for.
const maxSegment = 1<<31 - 1

func checkKey(key int64) error {
	if key > maxSegment {
		return eventlog.Errorf(eventlog.StorageFailed, "the keys of segments are used up: rebuild the branch views")
	}
	return nil
}

// newSegment opens a segment and places its first entry.
func newSegment(ctx context.Context, tx *Tx, session int64, s segment, seq int64) (place, error) {
	r, err := tx.Exec(ctx, "INSERT INTO segments (session, parent, start, hops, jump, jump_shared, compaction, stop, missing) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)",
		session, s.parent, s.start, s.hops, s.jump, s.jumpShared, s.compaction, s.stop, s.missing)
	if err != nil {
		return place{}, err
	}
	key, err := r.LastInsertId()
	if err != nil {
		return place{}, err
	}
	if err := checkKey(key); err != nil {
		return place{}, err
	}
	p := place{Position(key, s.start), s.compaction, s.stop}
	_, err = tx.Exec(ctx, "INSERT INTO nodes (pos, seq) VALUES (?, ?)", p.pos, seq)
	return p, err
}

// cut says where the branches below a compaction stop: at the compaction itself
// if it retains messages by value; else at its first kept entry, if that stands
// above it and not above the next older compaction; else where they stopped
// before. So a branch is never walked to find out where it begins.
func (b Branch) cut(ctx context.Context, tx *Tx, h *Head, e eventlog.Entry, p place) (place, error) {
	older := p.compaction
	p.compaction = p.depth()
	if e.Get("retainedTail").Truthy() {
		p.stop = p.depth()
	} else if id, _ := e.Get("firstKeptEntryId").Str(); id != "" && id != e.ID() {
		kept, ok, err := find(ctx, tx, h.session, id)
		if err != nil {
			return p, err
		}
		if depth := kept & 0xffffffff; ok && depth < p.depth() && depth >= older {
			above, err := isAbove(ctx, tx, kept, p.pos)
			if err != nil {
				return p, err
			}
			if above {
				p.stop = depth
			}
		}
	}
	_, err := tx.Exec(ctx, "INSERT INTO cuts (pos, stop) VALUES (?, ?)", p.pos, p.stop)
	return p, err
}

// isAbove says whether the entry at a is an ancestor of the one at b, or b
// itself, in O(log) steps.
func isAbove(ctx context.Context, tx *Tx, a, b int64) (bool, error) {
	depth := a & 0xffffffff
	if depth > b&0xffffffff {
		return false, nil
	}
	for at := b >> 32; ; {
		if at == a>>32 {
			return true, nil
		}
		s, err := readSegment(ctx, tx, at)
		if err != nil {
			return false, err
		}
		switch {
		case s.start <= depth || !s.parent.Valid:
			return false, nil
		case s.jump.Valid && s.jumpShared.Int64 >= depth:
			at = s.jump.Int64
		default:
			at = s.parent.Int64
		}
	}
}
