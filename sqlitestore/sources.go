package sqlitestore

import (
	"context"
	"os"

	"github.com/sessiontree/sessiontree/eventlog/sessionfile"
	"github.com/sessiontree/sessiontree/projections"
)

// source is a row of sources: a file that a session was imported from.
type source struct {
	key, session   int64
	path           string
	format         sessionfile.Format
	newline        string
	title          int64
	n              int
	size, modified int64
	readTo         int64
	line           int
	hash, tail     []byte

	id     string // of the session
	damage int    // byte ranges that hold no entry
}

const sourceColumns = "key, session, path, format, newline, title, n, size, modified, read_to, line, hash, tail, (SELECT id FROM sessions WHERE key = sources.session), (SELECT count(*) FROM damage WHERE source = sources.key)"

func scanSource(scan func(dest ...any) error) (*source, error) {
	f := &source{}
	err := scan(&f.key, &f.session, &f.path, &f.format, &f.newline, &f.title, &f.n, &f.size, &f.modified, &f.readTo, &f.line, &f.hash, &f.tail, &f.id, &f.damage)
	return f, err
}

// sourceOf is what is known of a file, nil if nothing is.
func sourceOf(ctx context.Context, tx *projections.Tx, path string) (*source, error) {
	return oneSource(ctx, tx, "SELECT "+sourceColumns+" FROM sources WHERE path = ? ORDER BY key DESC LIMIT 1", path)
}

// originOf is the file that holds most of a session, nil if it was not imported.
func originOf(ctx context.Context, tx *projections.Tx, session int64) (*source, error) {
	return oneSource(ctx, tx, "SELECT "+sourceColumns+" FROM sources WHERE session = ? ORDER BY n DESC, key LIMIT 1", session)
}

func oneSource(ctx context.Context, tx *projections.Tx, query string, args ...any) (*source, error) {
	rows, err := tx.Rows(ctx, query, args...)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	if !rows.Next() {
		return nil, rows.Err()
	}
	return scanSource(rows.Scan)
}

// isAsRead says whether a file looks as it did when it was read last.
func (f *source) isAsRead(info os.FileInfo) bool {
	return f.size == info.Size() && f.modified == info.ModTime().UnixNano()
}

// same says whether two rows are the same, read at different times.
func (f *source) same(other *source) bool {
	if f == nil || other == nil {
		return f == other
	}
	return f.key == other.key && f.n == other.n && f.readTo == other.readTo && string(f.hash) == string(other.hash)
}

// insert makes the row, and takes its key.
func (f *source) insert(ctx context.Context, tx *projections.Tx, at string) error {
	r, err := tx.Exec(ctx, `INSERT INTO sources (session, path, format, newline, title, n, size, modified, read_to, line, hash, tail, imported_at)
		VALUES (?, ?, ?, ?, ?, 0, 0, 0, 0, 1, x'', x'', ?)`, f.session, f.path, string(f.format), f.newline, f.title, at)
	if err != nil {
		return err
	}
	f.key, err = r.LastInsertId()
	return err
}

// update writes how far the file was read.
func (f *source) update(ctx context.Context, tx *projections.Tx, at string) error {
	_, err := tx.Exec(ctx, "UPDATE sources SET format = ?, newline = ?, title = ?, n = ?, size = ?, modified = ?, read_to = ?, line = ?, hash = ?, tail = ?, imported_at = ? WHERE key = ?",
		string(f.format), f.newline, f.title, f.n, f.size, f.modified, f.readTo, f.line, f.hash, orEmpty(f.tail), at, f.key)
	return err
}

// orEmpty is b, which the driver would take for null if it were nil.
func orEmpty(b []byte) []byte {
	if b == nil {
		return []byte{}
	}
	return b
}

// deleteSources forgets the files of a session that is deleted.
func deleteSources(ctx context.Context, tx *projections.Tx, session int64) error {
	for _, query := range []string{
		"DELETE FROM layout WHERE source IN (SELECT key FROM sources WHERE session = ?)",
		"DELETE FROM damage WHERE source IN (SELECT key FROM sources WHERE session = ?)",
		"DELETE FROM sources WHERE session = ?",
	} {
		if _, err := tx.Exec(ctx, query, session); err != nil {
			return err
		}
	}
	return nil
}

// lastGap is what stands behind the last entry of a file, so far: how many parts
// of it are kept, and if it is one without damage its bytes.
func (f *source) lastGap(ctx context.Context, tx *projections.Tx) (parts int, bytes string, err error) {
	rows, err := tx.Rows(ctx, "SELECT bytes FROM layout WHERE source = ? AND n = ? AND part >= 0 ORDER BY part LIMIT 2", f.key, f.n+1)
	if err != nil {
		return 0, "", err
	}
	defer rows.Close()
	for rows.Next() {
		var b []byte
		if err := rows.Scan(&b); err != nil {
			return 0, "", err
		}
		parts, bytes = parts+1, string(b)
	}
	if err := rows.Err(); err != nil || parts != 1 {
		return parts, "", err
	}
	var one int
	damaged, err := tx.Row(ctx, "SELECT 1 FROM damage WHERE source = ? AND n = ? LIMIT 1", []any{f.key, f.n + 1}, &one)
	if damaged {
		parts, bytes = 2, "" // no text to go on with
	}
	return parts, bytes, err
}
