package sqlitestore

import (
	"context"
	"io"
	"os"
	"path"
	"strings"

	"github.com/sessiontree/sessiontree/eventlog"
	"github.com/sessiontree/sessiontree/eventlog/sessionfile"
	"github.com/sessiontree/sessiontree/projections"
)

// parent makes of what a file says of its parent, the path of a file as a rule, a
// link to the session here, if it is here. It gives the event with which the new
// session begins.
func (f *fileImport) parent(ctx context.Context, m *eventlog.Metadata) (*forkPoint, string, error) {
	var point *forkPoint
	err := f.store.read(ctx, func(tx *projections.Tx) error {
		key, ok := f.forkOf, f.forkOf != 0
		if !ok && !m.ParentSession.IsNone() {
			var err error
			if key, ok, err = parentKey(ctx, tx, m.ParentSession.ID(), m.ID); err != nil {
				return err
			}
		}
		if !ok {
			return nil
		}
		var id string
		if found, err := tx.Row(ctx, "SELECT id FROM sessions WHERE key = ?", []any{key}, &id); err != nil || !found {
			return err
		}
		m.ParentSession = eventlog.At(id)
		entry, err := f.forkEntry(ctx, tx, key)
		point = &forkPoint{source: key, entry: entry}
		return err
	})
	if point == nil {
		return nil, projections.SessionCreated, err
	}
	return point, projections.SessionForked, err
}

// parentKey is the session that a header names as its parent: by the path of the
// file that it was imported from, by its id, or by the id in the name of the file,
// which may have been moved since.
func parentKey(ctx context.Context, tx *projections.Tx, named, own string) (key int64, ok bool, err error) {
	if named == own {
		return 0, false, nil
	}
	ok, err = tx.Row(ctx, "SELECT session FROM sources WHERE path = ? ORDER BY key DESC LIMIT 1", []any{named}, &key)
	if err != nil || ok {
		return key, ok, err
	}
	if ok, err = tx.Row(ctx, "SELECT key FROM sessions WHERE id = ?", []any{named}, &key); err != nil || ok {
		return key, ok, err
	}
	id := idInName(baseName(named))
	if id == "" || id == own {
		return 0, false, nil
	}
	ok, err = tx.Row(ctx, "SELECT key FROM sessions WHERE id = ?", []any{id}, &key)
	return key, ok, err
}

// forkEntry is the last of the entries that the file begins with and the parent
// has too; "" where those are all or none.
func (f *fileImport) forkEntry(ctx context.Context, tx *projections.Tx, parent int64) (string, error) {
	run, err := f.open()
	if err != nil {
		return "", err
	}
	defer run.close()
	last, shared := "", 0
	for {
		item, err := run.next()
		if err == io.EOF {
			break
		}
		if err != nil {
			return "", err
		}
		if item.Partial {
			continue
		}
		var one int
		has, err := tx.Row(ctx, "SELECT 1 FROM events WHERE session = ? AND id = ? LIMIT 1", []any{parent, item.Entry.ID()}, &one)
		if err != nil {
			return "", err
		}
		if !has {
			break
		}
		last, shared = item.Entry.ID(), shared+1
	}
	n, err := lastN(ctx, tx, parent)
	if err != nil || n == shared {
		return "", err
	}
	return last, nil
}

// awaitParent waits until the file of the parent is done, if the same import has
// it and it stands before this one: so the link is there from the beginning.
func (f *fileImport) awaitParent(ctx context.Context) error {
	if f.known != nil || f.done == nil {
		return nil
	}
	file, err := os.Open(f.path)
	if err != nil {
		return cannotRead(f.path, err)
	}
	defer file.Close()
	reader, err := sessionfile.NewReader(f.path, file, sessionfile.Options{MaxLine: f.o.MaxLine})
	if err != nil {
		return f.ofFile(err)
	}
	named := reader.Header().ParentSession.ID()
	if named == "" {
		return nil
	}
	other, ok := f.done[named]
	if !ok {
		other, ok = f.done[baseName(named)]
	}
	if !ok || other.order >= f.done[f.path].order {
		return nil
	}
	select {
	case <-other.done:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// linkParents makes links of the paths by which sessions name parents that came
// after them. Which session's copy of a response counts is settled when a session
// comes in, by whether it was forked from one that is here: that stays.
func (s *Store) linkParents(ctx context.Context) error {
	type orphan struct {
		key       int64
		id, named string
		parent    int64
	}
	var found []orphan
	err := s.read(ctx, func(tx *projections.Tx) error {
		rows, err := tx.Rows(ctx, `SELECT key, id, parent_session FROM sessions
			WHERE source IS NULL AND parent_session IS NOT NULL AND parent_session NOT IN (SELECT id FROM sessions) ORDER BY key`)
		if err != nil {
			return err
		}
		defer rows.Close()
		var orphans []orphan
		for rows.Next() {
			var o orphan
			if err := rows.Scan(&o.key, &o.id, &o.named); err != nil {
				return err
			}
			orphans = append(orphans, o)
		}
		if err := rows.Err(); err != nil {
			return err
		}
		for _, o := range orphans {
			var ok bool
			if o.parent, ok, err = parentKey(ctx, tx, o.named, o.id); err != nil {
				return err
			}
			if ok && o.parent != o.key {
				found = append(found, o)
			}
		}
		return nil
	})
	if err != nil || len(found) == 0 {
		return err
	}
	return s.update(ctx, func(ctx context.Context, tx *projections.Tx) error {
		for _, o := range found {
			_, err := tx.Exec(ctx, "UPDATE sessions SET parent_session = (SELECT id FROM sessions WHERE key = ?1) WHERE key = ?2 AND EXISTS (SELECT 1 FROM sessions WHERE key = ?1)", o.parent, o.key)
			if err != nil {
				return err
			}
		}
		return nil
	})
}

// idInName is the session's id in the name that Pi gives to its file, "" for none.
func idInName(name string) string {
	name, isFile := strings.CutSuffix(name, ".jsonl")
	if _, id, ok := strings.Cut(name, "_"); isFile && ok {
		return id
	}
	return ""
}

// baseName is the last part of a path of whatever system.
func baseName(named string) string { return path.Base(strings.ReplaceAll(named, `\`, "/")) }
