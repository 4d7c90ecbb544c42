package sqlitestore

import (
	"context"
	"database/sql"

	"github.com/sessiontree/sessiontree/eventlog"
	"github.com/sessiontree/sessiontree/projections"
)

// reading is a session in one snapshot of the database.
type reading struct {
	*projections.Tx
	state
}

// state is how a session stands in a snapshot.
type state struct {
	version
	head        eventlog.Head
	leafIsThere bool // known from the views
	current     bool // the branch views have all events of the session
	irregular   bool // an id stands twice, or a parent behind its child; if current

	// Of the branch views as a whole: their version, and the seq up to which they
	// were applied.
	views    int
	position int64
}

// version names what a session's answers were made from: equal versions, equal
// answers, whoever wrote. Keys of sessions and seqs are never used again.
type version struct {
	last  int64 // the seq of the session's last event
	build int64 // the build of the branch views: a rebuild may mend answers
}

// walks says whether branches are answered by the reference walk.
func (s state) walks() bool { return !s.current || s.irregular }

// observeSQL finds the last event of a session beside what the views say of it.
const observeSQL = `
SELECT max((SELECT seq FROM events WHERE session = s.key ORDER BY n DESC LIMIT 1), coalesce((SELECT seq FROM events WHERE session = s.key AND n < 0 ORDER BY n LIMIT 1), 0)),
	coalesce(c.version, 0), coalesce(c.position, 0), coalesce(c.build, 0),
	coalesce(h.last_seq, 0), h.leaf, h.segment IS NOT NULL, coalesce(h.n, 0), coalesce(h.irregular, 0), s.dialect
FROM sessions s LEFT JOIN heads h ON h.session = s.key LEFT JOIN checkpoints c ON c.projection = ?2
WHERE s.key = ?1`

// observe says how the session stands. It fails with [eventlog.ErrNotFound] when it
// was deleted.
func (s *Storage) observe(ctx context.Context, tx *projections.Tx) (st state, err error) {
	var applied int64
	var leaf sql.NullString
	var dialect string
	ok, err := tx.Row(ctx, observeSQL, []any{s.key, s.store.branch.Name()},
		&st.last, &st.views, &st.position, &st.build, &applied, &leaf, &st.leafIsThere, &st.head.N, &st.irregular, &dialect)
	if err != nil {
		return st, err
	}
	if !ok {
		s.store.cache.drop(s.key)
		return st, s.deleted()
	}
	if dialect != s.Dialect().String() {
		return st, s.corrected()
	}
	if st.position < 0 { // in lockstep
		st.position = st.last
	}
	if leaf.Valid {
		st.head.Leaf = eventlog.At(leaf.String)
	}
	valid := st.views == s.store.branch.Version() && st.position != projections.Invalid
	if st.current = valid && applied == st.last; !st.current {
		st.leafIsThere, st.irregular = false, false
		st.head, err = s.log(ctx, tx).Tip() // of a session that is there
	}
	return st, err
}

// readerPatience is how many events a reader applies to the branch views before it
// answers: about a fifth of a second. Behind more, it answers from the log.
const readerPatience = 20_000

// mayBringUp says whether a reader that found the views behind should bring them
// up itself.
func (s *Store) mayBringUp(st state) bool {
	return s.writer != nil && s.lockstep.mayApply() && st.views <= s.branch.Version() && st.position < st.last && st.last-st.position <= readerPatience
}

// bringUpForReader applies what the branch views lack. That it could not be done
// is no failure of the read: the log has the answer.
func (s *Store) bringUpForReader(ctx context.Context) error {
	err := s.catchUp(ctx)
	if ctx.Err() != nil {
		return ctx.Err()
	}
	if err != nil && !s.noteBranch(ctx, err) {
		s.o.Logger.WarnContext(ctx, "the branch views could not be brought up: the log answers", "path", s.db.path, "error", err)
	}
	return nil
}
