package sqlitestore

import (
	"context"

	"github.com/sessiontree/sessiontree/eventlog"
	"github.com/sessiontree/sessiontree/eventlog/sessionfile"
	"github.com/sessiontree/sessiontree/projections"
)

// SetAside is a range of bytes of an imported file that holds no entry.
type SetAside struct {
	sessionfile.Damage
	Session string
	Path    string // of the file
	// Begin is how the bytes begin: up to [SetAsideBegin] of them.
	Begin []byte

	source  int64
	n, part *int64 // where the last of the bytes are; nil: they are the tail
}

// SetAsideBegin is how many bytes of a damaged range are shown.
const SetAsideBegin = 80

// Damage lists what could not be read of the files that sessions were imported
// from, by file and place: of one session, or of all if the id is "".
func (s *Store) Damage(ctx context.Context, session string) ([]SetAside, error) {
	var out []SetAside
	err := s.read(ctx, func(tx *projections.Tx) error {
		rows, err := tx.Rows(ctx, `SELECT d.source, d.n, d.part, d.line, d.offset, d.length, d.reason, s.id, f.path
			FROM damage d JOIN sources f ON f.key = d.source JOIN sessions s ON s.key = f.session
			WHERE ?1 = '' OR s.id = ?1 ORDER BY f.path, f.key, d.offset`, session)
		if err != nil {
			return err
		}
		defer rows.Close()
		for rows.Next() {
			var d SetAside
			if err := rows.Scan(&d.source, &d.n, &d.part, &d.Line, &d.Offset, &d.Length, &d.Reason, &d.Session, &d.Path); err != nil {
				return err
			}
			out = append(out, d)
		}
		if err := rows.Err(); err != nil {
			return err
		}
		for i := range out {
			if out[i].Begin, err = out[i].bytes(ctx, tx, SetAsideBegin); err != nil {
				return err
			}
		}
		return nil
	})
	return out, err
}

// SetAsideBytes gives all bytes of a damaged range. It fails with
// [eventlog.ErrNotFound] when the session was deleted, or its file read anew.
func (s *Store) SetAsideBytes(ctx context.Context, d SetAside) (b []byte, err error) {
	err = s.read(ctx, func(tx *projections.Tx) (err error) {
		if b, err = d.bytes(ctx, tx, d.Length); err == nil && int64(len(b)) != d.Length {
			err = eventlog.Errorf(eventlog.NotFound, "the bytes set aside from %s are not there any more", d.Path)
		}
		return err
	})
	return b, err
}

// bytes reads the first of the range, up to a limit.
func (d SetAside) bytes(ctx context.Context, tx *projections.Tx, limit int64) ([]byte, error) {
	limit = min(limit, d.Length)
	if d.n == nil {
		var b []byte
		_, err := tx.Row(ctx, "SELECT substr(tail, 1, ?) FROM sources WHERE key = ?", []any{limit, d.source}, &b)
		return b, err
	}
	first, err := d.firstPart(ctx, tx)
	if err != nil {
		return nil, err
	}
	var all []byte
	for part := first; part <= *d.part && int64(len(all)) < limit; part++ {
		var b []byte
		if _, err := tx.Row(ctx, "SELECT substr(bytes, 1, ?) FROM layout WHERE source = ? AND n = ? AND part = ?", []any{limit - int64(len(all)), d.source, *d.n, part}, &b); err != nil {
			return nil, err
		}
		all = append(all, b...)
	}
	return all, nil
}

// firstPart is where the range begins: as many parts up to the last as have its
// length.
func (d SetAside) firstPart(ctx context.Context, tx *projections.Tx) (int64, error) {
	part, left := *d.part, d.Length
	for ; part > 0; part-- {
		var size int64
		if _, err := tx.Row(ctx, "SELECT length(bytes) FROM layout WHERE source = ? AND n = ? AND part = ?", []any{d.source, *d.n, part}, &size); err != nil {
			return 0, err
		}
		if left -= size; left <= 0 {
			break
		}
	}
	return part, nil
}
