package sqlitestore

// gap is a run of ids that a session does not have: all between two. Ids that this
// process makes follow each other, so that one look-up says of many that they are
// free.
type gap struct {
	low, high string
	endless   bool // there is no high
}

func (g gap) has(id string) bool { return g.low < id && (g.endless || id < g.high) }

// gapSQL is the first id that does not stand before one, and whether it is that one.
const gapSQL = "SELECT id, id = ?2 FROM events WHERE session = ?1 AND id >= ?2 ORDER BY id LIMIT 1"

// exists says whether the session that v shows has an id, and keeps what else that
// tells.
func (t *tips) exists(v *view, id string) (exists bool, err error) {
	if t.gaps[v.key].has(id) {
		return false, nil
	}
	g := gap{low: id}
	found, err := v.tx.Row(v.ctx, gapSQL, []any{v.key, id}, &g.high, &exists)
	if err != nil || exists || !t.known {
		return exists, err
	}
	if t.gaps == nil {
		t.gaps = map[int64]gap{}
	}
	g.endless = !found
	t.gaps[v.key] = g
	return false, nil
}

// took notes that a session has an id now. It need not know which others below it are
// free still: the next ones stand above.
func (t *tips) took(session int64, id string) {
	if g := t.gaps[session]; g.has(id) {
		g.low = id
		t.gaps[session] = g
	}
}
