package sqlitestore

import (
	"cmp"
	"context"
	"database/sql"
	"fmt"
	"github.com/sessiontree/sessiontree/migrations"
	"iter"
	"math"
	"slices"
	"time"

	"github.com/sessiontree/sessiontree/eventlog"
	"github.com/sessiontree/sessiontree/projections"
	"github.com/sessiontree/sessiontree/query"
)

// SessionInfo is a session as a list shows it.
type SessionInfo struct {
	eventlog.Metadata
	Name         string    // "" for none
	FirstMessage string    // how the first message of the user begins, "" for none
	Entries      int       // in the log, those of abandoned branches too
	Messages     int       // entries of type message
	LastActivity time.Time // of the latest entry, or of the session's creation if there is none
	// ForkedFrom is the id of the session of this store that this one is a fork of,
	// as long as that is there; ForkEntry is the entry at which it was cut, "" for a
	// fork of the whole.
	ForkedFrom, ForkEntry string
	// Cursor is this session's place in the list.
	Cursor Cursor
}

// Cursor is a place in the list of sessions. The zero Cursor is its beginning.
type Cursor struct{ active, session int64 }

// MarshalText makes a cursor a word that [Cursor.UnmarshalText] reads.
func (c Cursor) MarshalText() ([]byte, error) {
	if c == (Cursor{}) {
		return nil, nil
	}
	return fmt.Appendf(nil, "%d-%d", c.active, c.session), nil
}

// UnmarshalText fails with [eventlog.ErrInvalidArgument] for what is no cursor.
func (c *Cursor) UnmarshalText(text []byte) error {
	*c = Cursor{}
	if len(text) == 0 {
		return nil
	}
	var read Cursor
	if _, err := fmt.Sscanf(string(text), "%d-%d", &read.active, &read.session); err != nil || read.session <= 0 {
		return eventlog.Errorf(eventlog.InvalidArgument, "%q is no place in a list of sessions", text)
	}
	if again, _ := read.MarshalText(); string(again) != string(text) {
		return eventlog.Errorf(eventlog.InvalidArgument, "%q is no place in a list of sessions", text)
	}
	*c = read
	return nil
}

// ListOptions say which sessions a list has. The zero value is all of them.
type ListOptions struct {
	CWD   string // of one working folder, or "" for all
	After Cursor // those behind this place
}

// The first query of a list reads a page that a screen shows; the next ones read
// more each, for who goes on wants all.
const (
	firstListPage = 50
	lastListPage  = 1600
)

// Sessions lists sessions, the latest activity first. It reads as many as are
// asked for, page by page: one that has a new entry meanwhile goes to the front,
// where a list that has begun does not look again.
func (s *Store) Sessions(ctx context.Context, o ListOptions) iter.Seq2[SessionInfo, error] {
	return func(yield func(SessionInfo, error) bool) {
		read, err := s.lister(ctx)
		if err != nil {
			yield(SessionInfo{}, err)
			return
		}
		at := o.After
		if at == (Cursor{}) {
			at.active = math.MaxInt64
		}
		for limit := firstListPage; ; limit = min(2*limit, lastListPage) {
			var rows []query.SessionRow
			err := s.read(ctx, func(tx *projections.Tx) (err error) {
				rows, err = read(ctx, tx, o.CWD, at, limit)
				return err
			})
			if err != nil {
				yield(SessionInfo{}, err)
				return
			}
			for _, r := range rows {
				info := sessionInfo(r)
				at = info.Cursor
				if !yield(info, nil) {
					return
				}
			}
			if len(rows) < limit {
				return
			}
		}
	}
}

// listReader reads a page of the list.
type listReader func(ctx context.Context, tx *projections.Tx, cwd string, at Cursor, limit int) ([]query.SessionRow, error)

// lister is how the list is read: from the catalog, when that can be brought up to
// the end of the log; else with what it lacks made from the log itself.
func (s *Store) lister(ctx context.Context) (listReader, error) {
	err := s.views.CatchUp(ctx, projections.Catalog{}.Name())
	switch {
	case err == nil:
		return readCatalog, nil
	case ctx.Err() != nil || eventlog.CodeOf(err) == eventlog.Closed:
		return nil, err
	}
	return s.logLister(), nil
}

func readCatalog(ctx context.Context, tx *projections.Tx, cwd string, at Cursor, limit int) ([]query.SessionRow, error) {
	return query.Sessions(ctx, tx, cwd, at.active, at.session, limit)
}

// logLister makes the whole list at the first page.
func (s *Store) logLister() listReader {
	var rest []query.SessionRow
	made := false
	return func(ctx context.Context, tx *projections.Tx, cwd string, at Cursor, limit int) (page []query.SessionRow, err error) {
		if !made {
			if rest, err = s.listFromLog(ctx, tx, cwd, at); err != nil {
				return nil, err
			}
			made = true
		}
		n := min(len(rest), limit)
		page, rest = rest[:n], rest[n:]
		return page, nil
	}
}

func (s *Store) listFromLog(ctx context.Context, tx *projections.Tx, cwd string, at Cursor) (list []query.SessionRow, err error) {
	c, err := projections.ReadCheckpoint(ctx, tx, projections.Catalog{}.Name())
	if err != nil {
		return nil, err
	}
	all, err := query.AllSessions(ctx, tx)
	if err != nil {
		return nil, err
	}
	for _, r := range all {
		if cwd != "" && r.CWD != cwd {
			continue
		}
		if !r.Current || c.Version != (projections.Catalog{}).Version() {
			if err := s.fillIn(ctx, tx, &r); err != nil {
				return nil, err
			}
		}
		if r.Active < at.active || r.Active == at.active && r.Key < at.session {
			list = append(list, r)
		}
	}
	slices.SortFunc(list, func(a, b query.SessionRow) int {
		return cmp.Or(cmp.Compare(b.Active, a.Active), cmp.Compare(b.Key, a.Key))
	})
	return list, nil
}

// fillIn makes from the log what the catalog would say.
func (s *Store) fillIn(ctx context.Context, tx *projections.Tx, r *query.SessionRow) error {
	rows, err := tx.Rows(ctx, "SELECT seq, "+migrations.Payload+" FROM events WHERE session = ? AND n > 0 ORDER BY n", r.Key)
	if err != nil {
		return err
	}
	defer rows.Close()
	card := projections.NewCard(r.Key, 0, r.CWD, r.CreatedAt)
	for rows.Next() {
		var seq int64
		var payload sql.RawBytes
		if err := rows.Scan(&seq, &payload); err != nil {
			return err
		}
		card.Add(seq, eventlog.TrustedEntry(string(payload)))
	}
	r.Active, r.Name, r.FirstMessage, r.Entries, r.Messages = card.Active, card.Name, card.FirstMessage, card.Entries, card.Messages
	return rows.Err()
}

func sessionInfo(r query.SessionRow) SessionInfo {
	return SessionInfo{
		Metadata:     metadata(r.ID, r.CreatedAt, r.CWD, r.Parent, r.Header, r.Dialect, r.Basis),
		Name:         r.Name,
		FirstMessage: r.FirstMessage,
		Entries:      r.Entries,
		Messages:     r.Messages,
		LastActivity: time.UnixMilli(r.Active).UTC(),
		ForkedFrom:   r.Source.String,
		ForkEntry:    r.ForkEntry.String,
		Cursor:       Cursor{r.Active, r.Key},
	}
}
