package query

import "context"

// CopiedSpend says how many responses a session holds that count elsewhere.
type CopiedSpend struct {
	Session string // the id of the session with the copies
	Owner   string // the id of the session for which they count
	Spend
}

const copiesSQL = `
SELECT coalesce(s.id, ''), coalesce(w.id, ''), count(*), sum(c.input), sum(c.output), sum(c.cache_read), sum(c.cache_write), sum(c.cost)
FROM usage c JOIN usage o ON o.identity = c.identity AND o.counted > 0
LEFT JOIN sessions s ON s.key = c.session LEFT JOIN sessions w ON w.key = o.session
WHERE c.counted = 0 GROUP BY c.session, o.session ORDER BY 1, 2`

// UsageCopies says what [Usage] did not count, since it counts elsewhere.
func UsageCopies(ctx context.Context, c Conn) (all []CopiedSpend, err error) {
	rows, err := c.Rows(ctx, copiesSQL)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	for rows.Next() {
		var s CopiedSpend
		if err := rows.Scan(&s.Session, &s.Owner, &s.Responses, &s.Input, &s.Output, &s.CacheRead, &s.CacheWrite, &s.Cost); err != nil {
			return nil, err
		}
		all = append(all, s)
	}
	return all, rows.Err()
}
