package query

import (
	"context"
	"database/sql"
)

// SessionRow is a session as a list shows it.
type SessionRow struct {
	Key                int64
	ID, CreatedAt, CWD string
	Parent             sql.NullString // what its header says
	Header             string
	Dialect, Basis     string         // by whose rules it is answered, and what decided that
	Source, ForkEntry  sql.NullString // id of the session that it was forked from here, and where
	Active             int64          // time of the latest entry, ms since 1970
	Name, FirstMessage string
	Entries, Messages  int
	Current            bool // the last five are of the session's last entry
}

const (
	sessionColumns = `SELECT s.key, s.id, s.created_at, s.cwd, s.parent_session, s.header, s.dialect, s.dialect_basis, f.id, s.fork_entry, `
	cardColumns    = `c.active, c.name, c.first_message, c.entries, c.messages, 1
FROM catalog c CROSS JOIN sessions s ON s.key = c.session LEFT JOIN sessions f ON f.key = s.source
`
)

// The pages of the list go by an index backwards, from a key on.
const (
	sessionsSQL = sessionColumns + cardColumns + `WHERE (c.active, c.session) < (?1, ?2)
ORDER BY c.active DESC, c.session DESC LIMIT ?3`

	sessionsOfSQL = sessionColumns + cardColumns + `WHERE c.cwd = ?4 AND (c.active, c.session) < (?1, ?2)
ORDER BY c.active DESC, c.session DESC LIMIT ?3`
)

// Sessions reads a page of the list of sessions, the latest activity first, of one
// working folder if cwd is not "": those that come behind the one with the key
// session, whose latest activity was at active.
func Sessions(ctx context.Context, c Conn, cwd string, active, session int64, limit int) ([]SessionRow, error) {
	text, args := sessionsSQL, []any{active, session, limit}
	if cwd != "" {
		text, args = sessionsOfSQL, append(args, cwd)
	}
	return readSessions(ctx, c, text, args...)
}

// AllSessions reads all sessions, in the order of their keys, from a catalog that
// is behind: Current says which rows it can be trusted for.
func AllSessions(ctx context.Context, c Conn) ([]SessionRow, error) {
	return readSessions(ctx, c, allSessionsSQL)
}

const allSessionsSQL = sessionColumns + `coalesce(c.active, 0), coalesce(c.name, ''), coalesce(c.first_message, ''), coalesce(c.entries, 0), coalesce(c.messages, 0),
	coalesce(c.seq, 0) = (SELECT e.seq FROM events e WHERE e.session = s.key ORDER BY e.n DESC LIMIT 1)
FROM sessions s LEFT JOIN catalog c ON c.session = s.key LEFT JOIN sessions f ON f.key = s.source ORDER BY s.key`

func readSessions(ctx context.Context, c Conn, text string, args ...any) (all []SessionRow, err error) {
	rows, err := c.Rows(ctx, text, args...)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	for rows.Next() {
		var r SessionRow
		if err := rows.Scan(&r.Key, &r.ID, &r.CreatedAt, &r.CWD, &r.Parent, &r.Header, &r.Dialect, &r.Basis, &r.Source, &r.ForkEntry,
			&r.Active, &r.Name, &r.FirstMessage, &r.Entries, &r.Messages, &r.Current); err != nil {
			return nil, err
		}
		all = append(all, r)
	}
	return all, rows.Err()
}
