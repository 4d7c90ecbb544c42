package backend

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"time"

	"github.com/sessiontree/sessiontree/query"
	"github.com/sessiontree/sessiontree/sqlitestore"
)

// analyst asks a store of ours about all its sessions; what is plain goes to its
// tables through a connection of its own.
type analyst struct {
	store *sqlitestore.Store
	path  string
	plain *sql.DB // nil until it is needed
}

// hits is how many a page of a search shows.
const hits = 20

// What is asked in plain SQL: the rows that count, without their sums; the index
// alone, and the index with the entries that are found, which nobody can show a hit
// without.
const (
	plainUsage = `SELECT %s, sum(input), sum(output), sum(cache_read), sum(cache_write), sum(cost), count(*) FROM usage WHERE counted > 0 GROUP BY 1`
	plainTools = `SELECT tool, count(*), sum(failed), sum(retry), sum(result_bytes) FROM tool_calls WHERE counted = 1 GROUP BY 1`
	plainFound = `SELECT rowid FROM search WHERE search MATCH ? ORDER BY %s LIMIT ?`
	plainPage  = `SELECT e.id, e.payload, s.id FROM (` + plainFound + `) f CROSS JOIN events e ON e.seq = f.rowid CROSS JOIN sessions s ON s.key = e.session`
)

func (a *analyst) do(ctx context.Context, r Request) (Reply, error) {
	if r.Plain {
		return a.plainly(ctx, r)
	}
	return timed(func() (Reply, error) {
		switch r.Op {
		case Usage:
			report, err := a.store.Usage(ctx, query.UsageOptions{By: query.Grouping(r.By), Zone: time.UTC})
			return Reply{Count: len(report.Rows)}, err
		case Tools:
			tools, err := a.store.Tools(ctx, query.WorkOptions{})
			return Reply{Count: len(tools)}, err
		default:
			found, err := a.store.Search(ctx, query.SearchOptions{Text: r.Text, Rank: r.Rank, Limit: hits})
			return Reply{Count: len(found)}, err
		}
	})
}

func (a *analyst) plainly(ctx context.Context, r Request) (_ Reply, err error) {
	if a.plain == nil {
		if a.plain, err = reader(a.path); err != nil {
			return Reply{}, err
		}
	}
	text, args := plainTools, []any{}
	switch r.Op {
	case Usage:
		by := map[string]string{"day": "at / 86400000", "month": "strftime('%Y-%m', at / 1000, 'unixepoch')", "model": "model", "session": "session"}[r.By]
		if by == "" {
			return Reply{}, errors.ErrUnsupported
		}
		text = fmt.Sprintf(plainUsage, by)
	case Search:
		order := "rowid DESC"
		if r.Rank {
			order = "rank"
		}
		found := plainFound
		if r.Entries {
			found = plainPage
		}
		text, args = fmt.Sprintf(found, order), []any{r.Text, hits}
	}
	return timed(func() (reply Reply, err error) {
		rows, err := a.plain.QueryContext(ctx, text, args...)
		if err != nil {
			return reply, err
		}
		defer rows.Close()
		for row := make([]sql.RawBytes, 3); rows.Next(); reply.Count++ {
			if r.Entries {
				if err := rows.Scan(&row[0], &row[1], &row[2]); err != nil {
					return reply, err
				}
			}
		}
		return reply, rows.Err()
	})
}

func (a *analyst) close() error {
	if a.plain == nil {
		return nil
	}
	return a.plain.Close()
}
