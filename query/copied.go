package query

import (
	"context"
	"errors"
	"sort"
)

// copied says what a session has from the one that it came from here, and that is
// still there.
type copied struct {
	source int64 // 0: none
	// A fork that was made here begins with what it copied: its entries up to n. Of a
	// session that was imported or converted each entry is looked at.
	forked bool
	n      int64
	first  int64 // seq of its first entry
	dense  bool  // the seqs of what it copied follow each other
}

const (
	forkOfSQL = `SELECT f.key, h.n, s.dialect = f.dialect AND NOT EXISTS (SELECT 1 FROM sources i WHERE i.session = s.key)
FROM sessions s CROSS JOIN sessions f ON f.key = s.source CROSS JOIN heads h ON h.session = s.key WHERE s.key = ?`

	// isCopySQL says whether a session's entry is in another one too.
	isCopySQL = `SELECT 1 FROM events a CROSS JOIN events b ON b.session = ?3 AND b.id = a.id WHERE a.session = ?1 AND a.n = ?2 AND b.payload IS a.payload AND b.blob IS a.blob LIMIT 1`

	placesSQL = `SELECT (SELECT seq FROM events WHERE session = ?1 AND n = 1), (SELECT seq FROM events WHERE session = ?1 AND n = ?2)`
)

// isCopy says whether an entry is found in its session's source instead. before is
// where what was copied with it begins in the log, if that lies there in one piece.
func (p *page) isCopy(ctx context.Context, e found) (is bool, before int64, err error) {
	session, n, err := placeOf(ctx, p.c, e.seq)
	if err != nil {
		return false, e.seq, err
	}
	of, err := p.copied(ctx, session)
	switch {
	case err != nil || of.source == 0:
		return false, e.seq, err
	case !of.forked:
		is, err = inSource(ctx, p.c, session, n, of.source)
		return is, e.seq, err
	case n <= of.n && of.dense:
		return true, of.first, nil
	}
	return n <= of.n, e.seq, nil
}

func inSource(ctx context.Context, c Conn, session, n, source int64) (bool, error) {
	var one int
	return c.Row(ctx, isCopySQL, []any{session, n, source}, &one)
}

// copied reads what a session has from its source. The first entry of a fork that is
// its own is searched for by halves.
func (p *page) copied(ctx context.Context, session int64) (of copied, err error) {
	if of, known := p.copies[session]; known {
		return of, nil
	}
	var entries int64
	if _, err = p.c.Row(ctx, forkOfSQL, []any{session}, &of.source, &entries, &of.forked); err != nil {
		return of, err
	}
	if of.forked {
		of.n = int64(sort.Search(int(entries), func(i int) bool {
			there, failed := inSource(ctx, p.c, session, int64(i+1), of.source)
			err = errors.Join(err, failed)
			return !there
		}))
	}
	if err == nil && of.n > 0 {
		var last int64
		_, err = p.c.Row(ctx, placesSQL, []any{session, of.n}, &of.first, &last)
		of.dense = last-of.first == of.n-1
	}
	if err == nil {
		p.copies[session] = of
	}
	return of, err
}
