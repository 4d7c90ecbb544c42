package query

import (
	"context"
	"database/sql"
	"math"
	"strings"

	"github.com/sessiontree/sessiontree/eventlog"
	"github.com/sessiontree/sessiontree/migrations"
)

// The searches: by number of the document, which is the order of the log, and by
// rank. To sort by bm25 here and not by FTS5's own column rank keeps no more than the
// page; FTS5 sorts all that it found, with the places of the words, on disk where they
// are many: of 230,000 documents the best come in two thirds of the time.
const (
	newestSQL = `SELECT rowid FROM search WHERE search MATCH ?1 AND rowid < ?2 ORDER BY rowid DESC LIMIT ?3`
	rankedSQL = `SELECT rowid FROM search WHERE search MATCH ?1 ORDER BY bm25(search), rowid LIMIT ?2 OFFSET ?3`

	// hitsSQL reads the entries of documents in their order: none where the session has
	// gone. Each column costs as much as a look-up, so it has few.
	hitsSQL = `SELECT d.rowid, coalesce(s.id, ''), coalesce(e.id, ''), coalesce(` + migrations.Payload + `, ''), s.source IS NOT NULL,
	CASE WHEN h.irregular THEN 3 ELSE CASE sign(h.segment - ` + segmentOfSQL + `) WHEN 0 THEN e.n <= h.leaf_n WHEN 1 THEN 2 ELSE 0 END END
FROM (`
	ofHitsSQL = `) d LEFT JOIN events e ON e.seq = d.rowid LEFT JOIN sessions s ON s.key = e.session LEFT JOIN heads h ON h.session = e.session`

	// segmentOfSQL is the segment of an entry.
	segmentOfSQL = `(SELECT key FROM segments WHERE session = e.session AND key <= e.seq ORDER BY key DESC LIMIT 1)`

	newestHitsSQL = hitsSQL + newestSQL + ofHitsSQL
	bestHitsSQL   = hitsSQL + rankedSQL + ofHitsSQL
)

// found is a document's entry.
type found struct {
	Hit
	seq    int64
	gone   bool // its session is not there
	forked bool // its session came from another
	live   liveness
}

// page is a page of hits while it is filled.
type page struct {
	SearchOptions
	c       Conn
	phrases [][]string
	copies  map[int64]copied // of sessions
	hits    []found
}

func (p *page) limit() int {
	if p.Limit > 0 {
		return p.Limit
	}
	return 20
}

// newest fills the page backwards through the log. What a fork was made with lies
// there in one piece, which is stepped over.
func (p *page) newest(ctx context.Context, match string) error {
	before := int64(math.MaxInt64)
	if p.Before > 0 {
		before = p.Before
	}
	for {
		want := p.limit() - len(p.hits)
		found, err := p.read(ctx, newestHitsSQL, match, before, want)
		if err != nil {
			return err
		}
		for _, e := range found {
			if e.seq >= before {
				continue // stepped over
			}
			if before, err = p.add(ctx, e, e.seq); err != nil {
				return err
			}
		}
		if len(found) < want || len(p.hits) == p.limit() {
			return nil
		}
	}
}

// best fills the page by rank. It reads a few more than it shows, for those of forks.
func (p *page) best(ctx context.Context, match string) error {
	for skip := p.Skip; ; {
		more := 2 * p.limit()
		found, err := p.read(ctx, bestHitsSQL, match, more, skip)
		if err != nil {
			return err
		}
		for _, e := range found {
			skip++
			if _, err := p.add(ctx, e, int64(skip)); err != nil || len(p.hits) == p.limit() {
				return err
			}
		}
		if len(found) < more {
			return nil
		}
	}
}

// add adds a document to the page, unless it is a copy. next is where those before it
// in the log begin that are not known to be copies too.
func (p *page) add(ctx context.Context, e found, cursor int64) (next int64, err error) {
	if e.gone {
		return e.seq, nil
	}
	if e.forked && p.Session == "" {
		copied, before, err := p.isCopy(ctx, e)
		if err != nil || copied {
			return before, err
		}
	}
	e.Cursor = cursor
	p.hits = append(p.hits, e)
	return e.seq, nil
}

// read reads the documents that one of the searches finds, until there are as many as
// the page lacks that cannot be copies.
func (p *page) read(ctx context.Context, text, match string, args ...any) (list []found, err error) {
	rows, err := p.c.Rows(ctx, text, append([]any{match}, args...)...)
	if err == nil {
		defer rows.Close()
		for own := len(p.hits); own < p.limit() && rows.Next(); {
			e, err := p.scan(rows)
			if err != nil {
				return nil, err
			}
			if list = append(list, e); !e.gone && !e.forked {
				own++
			}
		}
		err = rows.Err()
	}
	if err != nil && p.Syntax && ctx.Err() == nil {
		return nil, &eventlog.Error{Code: eventlog.InvalidArgument, Message: "the query is not understood", Err: err}
	}
	return list, err
}

// scan reads a document's entry. Its text, which may be long, is not kept.
func (p *page) scan(rows *sql.Rows) (e found, err error) {
	var payload string
	err = rows.Scan(&e.seq, &e.Session, &e.Entry, &payload, &e.forked, &e.live)
	if e.gone = e.Session == ""; err != nil || e.gone {
		return e, err
	}
	entry := eventlog.TrustedEntry(payload)
	e.Type, e.At, e.Role = entry.Type(), strings.Clone(entry.Timestamp()), entry.Message().Role()
	e.show(entry, p.Kinds, p.phrases)
	e.Snippet = strings.Clone(e.Snippet)
	return e, nil
}

// shown are the hits of the page.
func (p *page) shown(ctx context.Context) ([]Hit, error) {
	if err := markLive(ctx, p.c, p.hits); err != nil {
		return nil, err
	}
	var all []Hit
	for _, f := range p.hits {
		all = append(all, f.Hit)
	}
	return all, nil
}
