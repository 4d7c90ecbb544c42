package sqlitestore

import (
	"context"
	"fmt"
	"github.com/sessiontree/sessiontree/migrations"
	"slices"
	"strings"

	"github.com/sessiontree/sessiontree/eventlog"
	"github.com/sessiontree/sessiontree/projections"
)

// Purged is what a purge did.
type Purged struct {
	Sessions []string // ids of the sessions in which something was purged
	Entries  int      // entries that were redacted
	Others   int      // headers, and stored bytes of imported files
	// Incomplete says where the text may still be in this database's files, and why;
	// empty when it is nowhere.
	Incomplete []string
	// Elsewhere are files from which sessions with the text were imported: this
	// program never writes to them. Backups and exports are not known to it at all.
	Elsewhere []string
}

// minSecret keeps a slip of the hand from redacting half of all conversations.
const minSecret = 6

// PurgeText takes a text, a key that got into an answer perhaps, out of every entry
// of every session, forks too, of headers, of bytes kept from imported files, and of
// all views, and puts "[redacted]" there. Then the file is written anew, so that it
// is in no free page, and the write-ahead log is emptied. The entries keep their
// ids and their places; the log has a note of each ([Store.Check] knows it), and the
// table audit of the purge. With dryRun it only counts.
//
// It fails with [eventlog.ErrInvalidArgument] for a text of less than 6 bytes, and
// for one that stands in an id, where other entries need it: delete such sessions.
func (s *Store) PurgeText(ctx context.Context, secret string, dryRun bool) (p Purged, err error) {
	if s.writer == nil {
		return p, s.readOnly()
	}
	if len(secret) < minSecret {
		return p, eventlog.Errorf(eventlog.InvalidArgument, "a text to purge has %d bytes or more", minSecret)
	}
	if err := s.secureDelete(ctx, true); err != nil {
		return p, err
	}
	defer s.secureDelete(context.WithoutCancel(ctx), false)
	var sessions []int64
	err = s.update(ctx, func(ctx context.Context, tx *projections.Tx) error {
		p = Purged{}
		w := &purge{tx: tx, store: s, secret: secret, dryRun: dryRun, found: map[int64]bool{}, now: s.o.Source.Time()}
		err := w.run(ctx)
		p.Entries, p.Others = w.entries, w.others
		for key := range w.found {
			sessions = append(sessions, key)
		}
		slices.Sort(sessions)
		if err == nil {
			err = w.describe(ctx, sessions, &p)
		}
		return err
	})
	if err != nil || dryRun || p.Entries+p.Others == 0 {
		return p, err
	}
	return p, s.scrub(ctx, &p)
}

// othersSQL are the sessions that have an entry of session ?1 and were not forked from
// it here: forks of forks, and what was imported. Each entry is looked up by its id.
const othersSQL = `SELECT s.id FROM sessions s WHERE s.key <> ?1 AND s.source IS NOT ?1 AND EXISTS (
	SELECT 1 FROM events e CROSS JOIN events own ON own.session = ?1 AND own.id = e.id
	WHERE e.session = s.key AND e.n > 0 AND e.payload IS own.payload AND e.blob IS own.blob
) ORDER BY s.key`

// PurgeSession deletes a session, as [Store.Delete] does, and leaves nothing of its
// text in the database's files. Forks of it and other sessions that have entries of it
// keep their copies, and are named.
func (s *Store) PurgeSession(ctx context.Context, id string) (p Purged, err error) {
	if s.writer == nil {
		return p, s.readOnly()
	}
	st, err := s.session(ctx, id)
	if err != nil {
		return p, err
	}
	if err := s.secureDelete(ctx, true); err != nil {
		return p, err
	}
	defer s.secureDelete(context.WithoutCancel(ctx), false)
	head, err := st.Head(ctx)
	if err != nil && eventlog.CodeOf(err) != eventlog.InvalidSession {
		return p, err
	}
	p.Entries = head.N
	err = s.read(ctx, func(tx *projections.Tx) error {
		w := &purge{tx: tx, store: s}
		if err := w.describe(ctx, []int64{st.key}, &p); err != nil {
			return err
		}
		forks, err := projections.Column[string](ctx, w.tx, "SELECT id FROM sessions WHERE source = ? ORDER BY key", st.key)
		if err != nil {
			return err
		}
		for _, fork := range forks {
			p.Incomplete = append(p.Incomplete, fmt.Sprintf("session %s is a fork, and has copies of its entries", fork))
		}
		others, err := projections.Column[string](ctx, w.tx, othersSQL, st.key)
		for _, other := range others {
			p.Incomplete = append(p.Incomplete, fmt.Sprintf("session %s has copies of its entries", other))
		}
		return err
	})
	if err != nil {
		return p, err
	}
	if err := s.Delete(ctx, st.meta); err != nil {
		return p, err
	}
	return p, s.scrub(ctx, &p)
}

// secureDelete makes SQLite overwrite what it deletes.
func (s *Store) secureDelete(ctx context.Context, on bool) error {
	return s.writer.exclusively(ctx, func(ctx context.Context, tx *projections.Tx) error {
		var now int
		_, err := tx.Row(ctx, fmt.Sprintf("PRAGMA secure_delete = %t", on), nil, &now)
		return err
	})
}

// scrub makes the views and the file anew. What it cannot do is said, not failed:
// the log is purged already.
func (s *Store) scrub(ctx context.Context, p *Purged) error {
	if err := s.views.Rebuild(ctx); err != nil {
		p.Incomplete = append(p.Incomplete, fmt.Sprintf("views that could not be made anew: %v", err))
	}
	if _, err := s.Compact(ctx); err != nil {
		p.Incomplete = append(p.Incomplete, fmt.Sprintf("unused pages and the write-ahead log: %v", err))
	}
	return ctx.Err()
}

// purge is one purge of a text, in its transaction.
type purge struct {
	tx      *projections.Tx
	store   *Store
	secret  string
	dryRun  bool
	now     string
	found   map[int64]bool // keys of the sessions
	entries int
	others  int
}

func (w *purge) run(ctx context.Context) error {
	if err := w.refuseIDs(ctx); err != nil {
		return err
	}
	for after, more := int64(0), true; more; {
		var page []loggedText
		var err error
		if page, after, more, err = w.page(ctx, after); err != nil {
			return err
		}
		for _, e := range page {
			if err := w.redact(ctx, e); err != nil {
				return err
			}
		}
	}
	if err := w.headers(ctx); err != nil {
		return err
	}
	if err := w.files(ctx); err != nil {
		return err
	}
	if w.dryRun {
		return nil
	}
	for key := range w.found {
		if _, err := w.tx.Exec(ctx, "DELETE FROM guards WHERE session = ?", key); err != nil {
			return err
		}
		if err := w.store.rebuildSession(ctx, w.tx, key); err != nil {
			return err
		}
	}
	return nil
}

// refuseIDs looks for the text in what other rows refer to.
func (w *purge) refuseIDs(ctx context.Context) error {
	in, err := projections.Column[string](ctx, w.tx, `SELECT id FROM sessions WHERE instr(id, ?1) > 0
		UNION SELECT s.id FROM events e JOIN sessions s ON s.key = e.session WHERE instr(e.id, ?1) > 0 OR instr(e.timestamp, ?1) > 0 OR instr(e.type, ?1) > 0 OR instr(e.parent, ?1) > 0`, w.secret)
	if err != nil || len(in) == 0 {
		return err
	}
	return eventlog.Errorf(eventlog.InvalidArgument, "the text is part of an id, a type or a time, which other entries need, in session %s: purge the session as a whole", strings.Join(in, ", "))
}

// loggedText is an event whose payload has the text.
type loggedText struct {
	seq, session int64
	n            int
	payload      string // without it
}

// page reads some of the log. Every string is looked into: the text may be escaped
// in more ways than one.
func (w *purge) page(ctx context.Context, after int64) (found []loggedText, last int64, more bool, err error) {
	rows, err := w.tx.Rows(ctx, "SELECT seq, session, n, "+migrations.Payload+" FROM events WHERE seq > ? ORDER BY seq LIMIT ?", after, page)
	if err != nil {
		return nil, after, false, err
	}
	defer rows.Close()
	for size := 0; size < pageBytes && rows.Next(); more = true {
		var e loggedText
		if err := rows.Scan(&e.seq, &e.session, &e.n, &e.payload); err != nil {
			return nil, after, false, err
		}
		size += len(e.payload)
		after = e.seq
		var has bool
		if e.payload, has = redactJSON(e.payload, w.secret); has {
			found = append(found, e)
		}
	}
	return found, after, more, rows.Err()
}

func (w *purge) redact(ctx context.Context, e loggedText) error {
	if e.n > 0 {
		w.entries++
	} else {
		w.others++
	}
	if err := w.open(ctx, e.session); err != nil || w.dryRun {
		return err
	}
	blob, payload, err := projections.Stored(ctx, w.tx, e.payload)
	if err != nil {
		return err
	}
	if _, err := w.tx.Exec(ctx, "UPDATE events SET blob = ?, payload = ? WHERE seq = ?", blob, payload, e.seq); err != nil {
		return err
	}
	_, err = w.tx.Exec(ctx, "INSERT INTO redactions (seq, session, at) VALUES (?, ?, ?) ON CONFLICT DO NOTHING", e.seq, e.session, w.now)
	return err
}

// open opens the guard of a session.
func (w *purge) open(ctx context.Context, session int64) error {
	if w.found[session] {
		return nil
	}
	w.found[session] = true
	if w.dryRun {
		return nil
	}
	_, err := w.tx.Exec(ctx, "INSERT INTO guards (session, reason, at) VALUES (?, 'text purged', ?)", session, w.now)
	return err
}

// headers purges what is kept of the sessions' first lines.
func (w *purge) headers(ctx context.Context) error {
	rows, err := w.tx.Rows(ctx, "SELECT key, header, cwd, coalesce(parent_session, '') FROM sessions")
	if err != nil {
		return err
	}
	defer rows.Close()
	type row struct {
		key                 int64
		header, cwd, parent string
	}
	var found []row
	for rows.Next() {
		var r row
		if err := rows.Scan(&r.key, &r.header, &r.cwd, &r.parent); err != nil {
			return err
		}
		header, has := redactJSON(r.header, w.secret)
		if has || strings.Contains(r.cwd+"\n"+r.parent, w.secret) {
			found = append(found, row{r.key, header, strings.ReplaceAll(r.cwd, w.secret, redacted), strings.ReplaceAll(r.parent, w.secret, redacted)})
		}
	}
	if err := rows.Err(); err != nil {
		return err
	}
	for _, r := range found {
		w.others++
		if err := w.open(ctx, r.key); err != nil {
			return err
		}
		if w.dryRun {
			continue
		}
		if _, err := w.tx.Exec(ctx, "UPDATE sessions SET header = ?2, cwd = ?3, parent_session = iif(parent_session IS NULL, NULL, ?4) WHERE key = ?1", r.key, r.header, r.cwd, r.parent); err != nil {
			return err
		}
	}
	return nil
}

// fileTexts are the columns with bytes of imported files.
var fileTexts = []struct{ session, query, update string }{
	{"layout", "SELECT l.rowid, s.session, l.bytes FROM layout l JOIN sources s ON s.key = l.source", "UPDATE layout SET bytes = ?2 WHERE rowid = ?1"},
	{"tail", "SELECT key, session, tail FROM sources", "UPDATE sources SET tail = ?2 WHERE key = ?1"},
}

// files purges bytes that were kept so that an imported file can be given back.
// The edits that make an entry's line of its payload no longer fit a redacted one.
func (w *purge) files(ctx context.Context) error {
	if !w.dryRun {
		if _, err := w.tx.Exec(ctx, `DELETE FROM layout WHERE part = -1 AND EXISTS (
			SELECT 1 FROM sources s JOIN events e ON e.session = s.session JOIN redactions r ON r.seq = e.seq
			WHERE s.key = layout.source AND e.n = layout.n)`); err != nil {
			return err
		}
	}
	for _, table := range fileTexts {
		if err := w.bytes(ctx, table.query, table.update); err != nil {
			return err
		}
	}
	return nil
}

func (w *purge) bytes(ctx context.Context, query, update string) error {
	rows, err := w.tx.Rows(ctx, query)
	if err != nil {
		return err
	}
	defer rows.Close()
	type row struct {
		key, session int64
		bytes        []byte
	}
	var found []row
	for rows.Next() {
		var r row
		if err := rows.Scan(&r.key, &r.session, &r.bytes); err != nil {
			return err
		}
		var has bool
		if r.bytes, has = redactBytes(r.bytes, w.secret); has {
			found = append(found, r)
		}
	}
	if err := rows.Err(); err != nil {
		return err
	}
	for _, r := range found {
		w.others++
		if err := w.open(ctx, r.session); err != nil {
			return err
		}
		if w.dryRun {
			continue
		}
		if _, err := w.tx.Exec(ctx, update, r.key, r.bytes); err != nil {
			return err
		}
	}
	return nil
}

// describe names the sessions, and the files that they came from.
func (w *purge) describe(ctx context.Context, keys []int64, p *Purged) error {
	for _, key := range keys {
		ids, err := projections.Column[string](ctx, w.tx, "SELECT id FROM sessions WHERE key = ?", key)
		if err != nil {
			return err
		}
		paths, err := projections.Column[string](ctx, w.tx, "SELECT path FROM sources WHERE session = ? ORDER BY key", key)
		if err != nil {
			return err
		}
		p.Sessions = append(p.Sessions, ids...)
		p.Elsewhere = append(p.Elsewhere, paths...)
	}
	return nil
}
