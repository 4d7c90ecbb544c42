package eventlog

// manyIDs is how many ids a batch must bring for asking for all at once to pay.
const manyIDs = 16

// ask draws the ids that a large batch will need ahead of their use, and asks a
// view that can for all ids of the batch at once. It says which are known to be
// free, and gives the source that has the drawn ones.
func (b Batch) ask(v View, s Source) (free map[string]bool, _ Source, err error) {
	many, ok := v.(ManyView)
	if !ok || len(b.Drafts) < manyIDs {
		return nil, s, nil
	}
	draw := s.NewID
	if draw == nil {
		draw = randomID
	}
	var drawn, ids []string
	for _, d := range b.Drafts {
		id := d.ID
		if id == "" {
			id = draw()
			drawn = append(drawn, id)
		}
		if isPlain(id) {
			ids = append(ids, id)
		}
	}
	taken, err := many.Taken(ids)
	if err != nil {
		return nil, s, err
	}
	free = make(map[string]bool, len(ids))
	for _, id := range ids {
		free[id] = !taken[id]
	}
	s.NewID = func() string {
		if len(drawn) == 0 {
			return draw()
		}
		id := drawn[0]
		drawn = drawn[1:]
		return id
	}
	return free, s, nil
}

// isPlain says whether an id is the same in any encoding.
func isPlain(id string) bool {
	for i := range len(id) {
		switch c := id[i]; {
		case 'a' <= c && c <= 'z', 'A' <= c && c <= 'Z', '0' <= c && c <= '9', c == '-', c == '_':
		default:
			return false
		}
	}
	return true
}
