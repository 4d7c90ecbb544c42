package sqlitestore

import (
	"context"
	"database/sql"
	"fmt"
	"os"
	"path/filepath"
	"reflect"

	"github.com/sessiontree/sessiontree/eventlog"
	"github.com/sessiontree/sessiontree/eventlog/js"
	"github.com/sessiontree/sessiontree/projections"
)

// Problem is one thing that Verify found.
type Problem struct {
	View string // the table, or "branch" for an answer that differs from the walk
	What string
}

// views are the rows of the branch set. No row depends on when it was made: what
// names a segment is a seq.
var views = []struct{ name, query string }{
	{"segments", `SELECT key, session, first, parent, start, hops, jump, jump_shared, compaction, stop, missing, settings, kept FROM segments ORDER BY key`},
	{"settings", `SELECT session, n, value FROM settings ORDER BY session, n`},
	{"heads", `SELECT session, leaf, leaf_n, segment, n, last_seq, name_seq, irregular, messages, cached, uncached, total, cost, fault, users, assistants, tool_calls, tool_results, input, output, cache_read, cache_write, settings FROM heads ORDER BY session`},
	{"labels", `SELECT session, target, label FROM labels ORDER BY session, target`},
}

// later are the rows of the asynchronous views.
var later = map[string][]string{
	"catalog": {`SELECT * FROM catalog ORDER BY session`},
	"search": {
		`SELECT id FROM search_docsize ORDER BY id`,
		`SELECT term, col, doc, cnt FROM search_terms`,
	},
	"usage": { // keys of models differ between two builds
		`SELECT u.seq, u.session, u.n, u.identity, u.at, u.kind, m.provider, m.model, u.input, u.output, u.cache_read, u.cache_write, u.cost, u.counted
			FROM usage u LEFT JOIN models m ON m.key = u.model ORDER BY u.seq`,
		`SELECT r.bucket, r.session, m.provider, m.model, r.kind, r.counted, r.responses, r.input, r.output, r.cache_read, r.cache_write, r.cost
			FROM usage_rollup r LEFT JOIN models m ON m.key = r.model ORDER BY 1, 2, 3, 4, 5, 6`,
		`SELECT * FROM usage_times ORDER BY 1, 2, 3`,
		`SELECT session, segment, leaf, n, walked FROM usage_leaves ORDER BY session`,
		`SELECT session, low, high FROM usage_walks ORDER BY session, low`,
		`SELECT r.session, m.provider, m.model, r.kind, r.counted, r.responses, r.input, r.output, r.cache_read, r.cache_write, r.cost
			FROM usage_sessions r LEFT JOIN models m ON m.key = r.model ORDER BY 1, 2, 3, 4, 5`,
		`SELECT c.seq, c.idx, c.session, c.at, t.name, c.call_id, c.input_bytes, c.retry, c.result_seq, c.result_at, c.failed, c.result_bytes, c.counted
			FROM tool_calls c LEFT JOIN tools t ON t.key = c.tool ORDER BY 1, 2`,
		`SELECT r.session, r.day, t.name, r.calls, r.failed, r.retries, r.no_result, r.input_bytes, r.result_bytes, r.millis
			FROM tool_sums r LEFT JOIN tools t ON t.key = r.tool ORDER BY 1, 2, 3`,
		`SELECT * FROM turns ORDER BY seq`,
		`SELECT * FROM compactions ORDER BY seq`,
	},
}

// Verify compares the views with ones made from the log alone, row for row in one
// snapshot, and then the branch of each session's leaf with the reference walk. An
// asynchronous view is compared if it is current, the branch set if it is of this
// program's version: a store that may write brings them up first. It works in a temporary folder, which a kill would leave
// behind with a copy of the log, and changes nothing.
func (s *Store) Verify(ctx context.Context) (problems []Problem, err error) {
	dir, err := os.MkdirTemp("", "sessiontree-verify-")
	if err != nil {
		return nil, s.db.mapError("cannot make a temporary folder", err)
	}
	defer os.RemoveAll(dir)
	fresh, err := Open(ctx, filepath.Join(dir, "rebuilt.db"), Options{Synchronous: Normal})
	if err != nil {
		return nil, err
	}
	defer fresh.Close(context.WithoutCancel(ctx))
	if s.writer != nil {
		if err := s.catchUp(ctx); err != nil && !s.noteBranch(ctx, err) {
			return nil, err
		}
		if err := s.views.CatchUpAll(ctx); err != nil {
			return nil, err
		}
	}
	err = s.read(ctx, func(tx *projections.Tx) error {
		if err := s.copyTo(ctx, tx, fresh); err != nil {
			return err
		}
		if err := fresh.views.CatchUpAll(ctx); err != nil {
			return err
		}
		return fresh.read(ctx, func(rebuilt *projections.Tx) error {
			current, err := s.views.Current(ctx, tx)
			if err != nil {
				return err
			}
			for _, name := range current {
				for _, rows := range later[name] {
					p, err := compare(ctx, name, rows, tx, rebuilt)
					if err != nil {
						return err
					}
					problems = append(problems, p...)
				}
			}
			branch, err := projections.ReadCheckpoint(ctx, tx, s.branch.Name())
			if err != nil {
				return err
			}
			if s.writer == nil && branch.Version < s.branch.Version() {
				return nil // whoever may write makes it anew
			}
			for _, v := range views {
				p, err := compare(ctx, v.name, v.query, tx, rebuilt)
				if err != nil {
					return err
				}
				problems = append(problems, p...)
			}
			return nil
		})
	})
	if err != nil {
		return nil, err
	}
	walked, err := s.compareWithWalk(ctx)
	return append(problems, walked...), err
}

// copyTo copies the log into an empty store, which applies it as it comes.
func (s *Store) copyTo(ctx context.Context, tx *projections.Tx, to *Store) error {
	if err := copySessions(ctx, tx, to); err != nil {
		return err
	}
	for after := int64(0); ; {
		events, _, err := projections.ReadEvents(ctx, tx, after, projections.BranchSlice)
		if err != nil || len(events) == 0 {
			return err
		}
		// The ids are kept as the session's dialect reads them.
		if err := projections.ReadAs(ctx, tx, events); err != nil {
			return err
		}
		err = to.writer.update(ctx, func(ctx context.Context, copied *projections.Tx) error {
			for _, e := range events {
				var err error
				if e.N < 0 {
					payload := js.Fields(js.Member{Key: "targetId", Value: e.Entry.Get("targetId")}).JSON()
					_, err = copied.Exec(ctx, "INSERT INTO events (seq, session, n, type, timestamp, payload) VALUES (?, ?, ?, ?, '', ?)", e.Seq, e.Session, e.N, e.Type, payload)
				} else if e.N == 0 {
					_, err = copied.Exec(ctx, "INSERT INTO events (seq, session, n, type, timestamp, payload) VALUES (?, ?, 0, ?, '', '')", e.Seq, e.Session, e.Type)
				} else {
					_, err = copied.Exec(ctx, "INSERT INTO events (seq, session, n, id, parent, type, timestamp, hash, payload) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)",
						e.Seq, e.Session, e.N, e.Entry.ID(), nullable(e.Entry.Parent()), string(e.Entry.Type()), e.Entry.Timestamp(), e.Hash, e.Entry.JSON())
				}
				if err != nil {
					return err
				}
			}
			if err := to.branch.Apply(ctx, copied, events); err != nil {
				return err
			}
			return projections.WriteCheckpoint(ctx, copied, to.branch, events[len(events)-1].Seq)
		})
		if err != nil {
			return err
		}
		after = events[len(events)-1].Seq
	}
}

// copySessions copies the rows of the sessions.
func copySessions(ctx context.Context, tx *projections.Tx, to *Store) error {
	rows, err := tx.Rows(ctx, "SELECT key, id, created_at, cwd, parent_session, source, fork_entry, dialect, dialect_basis, header FROM sessions")
	if err != nil {
		return err
	}
	defer rows.Close()
	return to.writer.update(ctx, func(ctx context.Context, copied *projections.Tx) error {
		for {
			values, err := nextRow(rows)
			if err != nil || values == nil {
				return err
			}
			if _, err := copied.Exec(ctx, "INSERT INTO sessions (key, id, created_at, cwd, parent_session, source, fork_entry, dialect, dialect_basis, header) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)", values...); err != nil {
				return err
			}
		}
	})
}

// worst is how many differences of one view are reported.
const worst = 5

// compare reads two results side by side.
func compare(ctx context.Context, view, query string, a, b *projections.Tx) (problems []Problem, err error) {
	kept, err := a.Rows(ctx, query)
	if err != nil {
		return nil, err
	}
	defer kept.Close()
	made, err := b.Rows(ctx, query)
	if err != nil {
		return nil, err
	}
	defer made.Close()
	for {
		x, err := nextRow(kept)
		if err != nil {
			return nil, err
		}
		y, err := nextRow(made)
		if err != nil {
			return nil, err
		}
		if x == nil && y == nil {
			return problems, nil
		}
		if !reflect.DeepEqual(x, y) {
			problems = append(problems, Problem{view, fmt.Sprintf("is %v, rebuilt %v", x, y)})
			if len(problems) == worst || x == nil || y == nil {
				return problems, nil
			}
		}
	}
}

// nextRow is the next row's values, nil at the end.
func nextRow(rows *sql.Rows) ([]any, error) {
	if !rows.Next() {
		return nil, rows.Err()
	}
	columns, err := rows.Columns()
	if err != nil {
		return nil, err
	}
	values := make([]any, len(columns))
	to := make([]any, len(columns))
	for i := range values {
		to[i] = &values[i]
	}
	return values, rows.Scan(to...)
}

// compareWithWalk compares each session's current branch with the walk.
func (s *Store) compareWithWalk(ctx context.Context) (problems []Problem, err error) {
	listed, err := s.List(ctx, "")
	if err != nil {
		return nil, err
	}
	for _, l := range listed {
		st, err := s.session(ctx, l.ID)
		if eventlog.CodeOf(err) == eventlog.NotFound {
			continue // deleted meanwhile
		}
		if err != nil {
			return nil, err
		}
		head, err := st.Head(ctx)
		if err != nil || head.Leaf.IsNone() {
			continue // a leaf that is not there is an answer of its own
		}
		var indexed, walked []eventlog.Entry
		var walkErr error
		context := ""
		err = st.read(ctx, func(tx reading) (err error) {
			walked, walkErr = st.walk(ctx, tx, head.Leaf.ID())
			if indexed, err = st.readBranch(ctx, tx, head.Leaf.ID()); err != nil || walkErr != nil {
				return err
			}
			context, err = st.compareWindow(ctx, tx, head.Leaf, walked)
			return err
		})
		if eventlog.CodeOf(err) == eventlog.NotFound {
			continue // deleted meanwhile: what was appended is never gone
		}
		if !reflect.DeepEqual(ids(indexed), ids(walked)) || eventlog.CodeOf(err) != eventlog.CodeOf(walkErr) {
			problems = append(problems, Problem{"branch", fmt.Sprintf("session %s: the branch of %s has %d entries (%v), the walk %d (%v)", l.ID, head.Leaf, len(indexed), err, len(walked), walkErr)})
		}
		if context != "" {
			problems = append(problems, Problem{"context", fmt.Sprintf("session %s: the context of %s: %s", l.ID, head.Leaf, context)})
		}
	}
	return problems, nil
}

// compareWindow compares what the leaf's context is made from with what the walk
// gives: "" if they are the same.
func (s *Storage) compareWindow(ctx context.Context, tx reading, leaf eventlog.Ref, walked []eventlog.Entry) (string, error) {
	if s.cachesBranch() || tx.walks() {
		return "", nil // it is made from the branch
	}
	part, err := s.readWindow(ctx, tx, leaf.ID())
	if err != nil {
		return "", err
	}
	kept, err := s.settings(ctx, tx, leaf)
	if err != nil {
		return "", err
	}
	want := s.Dialect().Window(walked)
	if is, was := ids(s.Dialect().ContextEntries(part)), ids(want.Entries); !reflect.DeepEqual(is, was) {
		return fmt.Sprintf("its %d entries are others than the walk's %d", len(is), len(was)), nil
	}
	is, isErr := eventlog.KeptSettings(kept)
	was, wasErr := want.Settings()
	if eventlog.CodeOf(isErr) != eventlog.CodeOf(wasErr) || isErr == nil && !sameSettings(is, was) {
		return fmt.Sprintf("its settings are %v (%v), the walk's %v (%v)", is, isErr, was, wasErr), nil
	}
	return "", nil
}

func sameSettings(a, b eventlog.Settings) bool {
	same := func(a, b js.Value) bool { return js.Diff(a, b) == nil }
	if !same(a.ThinkingLevel, b.ThinkingLevel) || (a.Model == nil) != (b.Model == nil) {
		return false
	}
	return a.Model == nil || same(a.Model.Provider, b.Model.Provider) && same(a.Model.ID, b.Model.ID)
}

func ids(entries []eventlog.Entry) []string {
	out := make([]string, len(entries))
	for i, e := range entries {
		out[i] = e.ID()
	}
	return out
}
