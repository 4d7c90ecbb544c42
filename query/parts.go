package query

import (
	"cmp"
	"context"
	"database/sql"
	"slices"
)

// A session's tree is cut into parts, one for each branch: what a branch has for
// itself. The branch of the leaf takes all of its way up to the root; then the
// others, the latest first, each from its last entry up to where it meets a part
// that is there. So each entry is in one part.

// run is a row of neighbours in a session's log, each the parent of the next.
type run struct {
	first, last int64 // n
	parent      int   // index of the run above, -1 for none
	at          int64 // the n of the entry above, 0 for none
	start       int64 // depth of the first entry
}

// tree is a session's runs, by n, with its leaf.
type tree struct {
	runs []run
	leaf int64 // its n; 0 for none
}

// part is what a branch has for itself.
type part struct {
	tip   int64 // n of its last entry
	from  int64 // n of the entry below which it begins, 0 for a root
	live  bool  // the branch of the leaf
	spans []nSpan
}

// nSpan is a run of entries of a session, by n.
type nSpan struct{ low, high int64 }

const (
	treeHeadSQL = `SELECT n, irregular, coalesce(leaf_n, 0), leaf FROM heads WHERE session = ?`
	runsSQL     = `SELECT key, first, coalesce(parent, 0), start FROM segments WHERE session = ? ORDER BY key`
	parentsSQL  = `SELECT id, parent FROM events WHERE session = ? AND n > 0 ORDER BY n`
)

// readTree reads the tree of a session; an empty one if it is not there.
func readTree(ctx context.Context, c Conn, session int64) (t tree, err error) {
	var n int64
	var irregular bool
	var leaf sql.NullString
	ok, err := c.Row(ctx, treeHeadSQL, []any{session}, &n, &irregular, &t.leaf, &leaf)
	if err != nil || !ok {
		return tree{}, err
	}
	if irregular {
		return walkedTree(ctx, c, session, leaf)
	}
	rows, err := c.Rows(ctx, runsSQL, session)
	if err != nil {
		return tree{}, err
	}
	defer rows.Close()
	index := map[int64]int{}
	for rows.Next() {
		var key, parent int64
		r := run{parent: -1, last: n}
		if err := rows.Scan(&key, &r.first, &parent, &r.start); err != nil {
			return tree{}, err
		}
		if i, ok := index[parent]; ok {
			r.parent, r.at = i, t.runs[i].first+r.start-1-t.runs[i].start
		}
		if len(t.runs) > 0 {
			t.runs[len(t.runs)-1].last = r.first - 1
		}
		index[key] = len(t.runs)
		t.runs = append(t.runs, r)
	}
	return t, rows.Err()
}

// walkedTree is the tree of an irregular session, an entry a run: of entries with
// one id, the last is meant.
func walkedTree(ctx context.Context, c Conn, session int64, leaf sql.NullString) (t tree, err error) {
	rows, err := c.Rows(ctx, parentsSQL, session)
	if err != nil {
		return tree{}, err
	}
	defer rows.Close()
	index := map[string]int{}
	var parents []string
	for rows.Next() {
		var id string
		var parent sql.NullString
		if err := rows.Scan(&id, &parent); err != nil {
			return tree{}, err
		}
		n := int64(len(t.runs) + 1)
		index[id] = len(t.runs)
		t.runs = append(t.runs, run{first: n, last: n, parent: -1})
		parents = append(parents, parent.String)
	}
	for i, p := range parents {
		if above, ok := index[p]; ok && above != i {
			t.runs[i].parent, t.runs[i].at = above, int64(above+1)
		}
	}
	if i, ok := index[leaf.String]; ok && leaf.Valid {
		t.leaf = int64(i + 1)
	}
	return t, rows.Err()
}

// runOf is the index of the run that has the entry n.
func (t tree) runOf(n int64) int {
	i, found := slices.BinarySearchFunc(t.runs, n, func(r run, n int64) int { return cmp.Compare(r.first, n) })
	if !found {
		i--
	}
	return i
}

// parts cuts the tree. They come in the order in which they took their entries.
func (t tree) parts() (all []part) {
	taken := make([]int64, len(t.runs)) // up to which n, from the first on
	followed := make([]bool, len(t.runs))
	for _, r := range t.runs {
		if r.parent >= 0 && r.at == t.runs[r.parent].last {
			followed[r.parent] = true
		}
	}
	climb := func(n int64, live bool) {
		p := part{tip: n, live: live}
		for i := t.runOf(n); i >= 0; n, i = t.runs[i].at, t.runs[i].parent {
			r := t.runs[i]
			if taken[i] >= n {
				p.from = n
				break
			}
			if taken[i] >= r.first {
				p.spans = append(p.spans, nSpan{taken[i] + 1, n})
				p.from = taken[i]
				taken[i] = n
				break
			}
			p.spans = append(p.spans, nSpan{r.first, n})
			taken[i] = n
		}
		if len(p.spans) > 0 {
			all = append(all, p)
		}
	}
	if t.leaf > 0 && len(t.runs) > 0 {
		climb(t.leaf, true)
	}
	for i := len(t.runs) - 1; i >= 0; i-- {
		if !followed[i] {
			climb(t.runs[i].last, false)
		}
	}
	// What is in a cycle is below nothing that ends.
	for i := len(t.runs) - 1; i >= 0; i-- {
		if taken[i] < t.runs[i].last {
			climb(t.runs[i].last, false)
		}
	}
	return all
}

// partOf gives for each n the index of its part.
func partOf(parts []part) func(n int64) int {
	type at struct {
		nSpan
		part int
	}
	var spans []at
	for i, p := range parts {
		for _, s := range p.spans {
			spans = append(spans, at{s, i})
		}
	}
	slices.SortFunc(spans, func(a, b at) int { return cmp.Compare(a.low, b.low) })
	return func(n int64) int {
		i, found := slices.BinarySearchFunc(spans, n, func(s at, n int64) int { return cmp.Compare(s.low, n) })
		if !found {
			i--
		}
		if i < 0 || spans[i].high < n {
			return -1
		}
		return spans[i].part
	}
}
