package sqlitestore

import (
	"bufio"
	"context"
	"github.com/sessiontree/sessiontree/migrations"
	"io"

	"github.com/sessiontree/sessiontree/eventlog"
	"github.com/sessiontree/sessiontree/eventlog/js"
	"github.com/sessiontree/sessiontree/eventlog/sessionfile"
	"github.com/sessiontree/sessiontree/projections"
)

// Export writes a session as a file. A session that was imported comes back as its
// file was, byte for byte, with its damaged bytes; what was appended here since
// follows, a line each. Any other is written as [eventlog.Session.Export] does. It
// fails with [eventlog.ErrNotFound], and with what writing fails with.
func (s *Store) Export(ctx context.Context, id string, w io.Writer) error {
	st, err := s.session(ctx, id)
	if err != nil {
		return err
	}
	return (&export{st: st}).run(ctx, w)
}

func (x *export) run(ctx context.Context, w io.Writer) error {
	x.w = bufio.NewWriterSize(w, 1<<16)
	for more := true; more; {
		var page []byte
		err := x.st.read(ctx, func(tx reading) (err error) {
			x.tx = tx.Tx
			page, more, err = x.page(ctx)
			return err
		})
		if err != nil {
			return err
		}
		if _, err := x.w.Write(page); err != nil {
			return err
		}
	}
	return x.w.Flush()
}

// export writes one session, a page in each snapshot. What it has written does not
// change any more: a file that grows meanwhile only adds to it.
type export struct {
	st *Storage
	w  *bufio.Writer
	tx *projections.Tx

	origin *source // the file that it was imported from, nil for none
	begun  bool
	// fileOnly leaves out what was appended here.
	fileOnly bool
	n        int  // entries that are written
	own      bool // what the file holds is written; what was appended here follows
	last     byte // that was put
	buf      []byte
}

// exportPage is how many bytes of a session are read at a time, more or less.
const exportPage = 1 << 20

func (x *export) page(ctx context.Context) (page []byte, more bool, err error) {
	x.buf = nil
	if !x.begun {
		if x.origin == nil {
			x.origin, err = originOf(ctx, x.tx, x.st.key)
		}
		if err != nil {
			return nil, false, err
		}
		if err := x.header(ctx); err != nil {
			return nil, false, err
		}
		x.begun = true
	} else if x.origin != nil {
		if x.origin, err = oneSource(ctx, x.tx, "SELECT "+sourceColumns+" FROM sources WHERE key = ?", x.origin.key); err != nil {
			return nil, false, err
		}
		if x.origin == nil {
			return nil, false, x.st.deleted()
		}
	}
	more, err = x.entries(ctx)
	return x.buf, more, err
}

func (x *export) header(ctx context.Context) error {
	if x.origin == nil {
		x.own = true
		x.put(x.st.meta.Header)
		x.put("\n")
		return nil
	}
	return x.item(ctx, 0, x.st.meta.Header, "")
}

// item writes the header or an entry as the file has it, with the gap before it.
func (x *export) item(ctx context.Context, n int, text, usual string) error {
	if err := x.gap(ctx, n, usual); err != nil {
		return err
	}
	var encoded []byte
	edited, err := x.tx.Row(ctx, "SELECT bytes FROM layout WHERE source = ? AND n = ? AND part = -1", []any{x.origin.key, n}, &encoded)
	if err != nil {
		return err
	}
	if edited {
		edits, err := sessionfile.DecodeEdits(encoded, len(text))
		if err != nil {
			return &eventlog.Error{Code: eventlog.StorageFailed, Message: "the layout of " + x.origin.path + " is damaged", Err: err}
		}
		text = edits.Apply(text)
	}
	x.put(text)
	return nil
}

func (x *export) put(s string) {
	if s != "" {
		x.buf, x.last = append(x.buf, s...), s[len(s)-1]
	}
}

func (x *export) gap(ctx context.Context, n int, usual string) error {
	rows, err := x.tx.Rows(ctx, "SELECT bytes FROM layout WHERE source = ? AND n = ? AND part >= 0 ORDER BY part", x.origin.key, n)
	if err != nil {
		return err
	}
	defer rows.Close()
	kept := false
	for rows.Next() {
		kept = true
		var b []byte
		if err := rows.Scan(&b); err != nil {
			return err
		}
		if x.put(string(b)); len(x.buf) > exportPage {
			if _, err := x.w.Write(x.buf); err != nil {
				return err
			}
			x.buf = x.buf[:0]
		}
	}
	if !kept {
		x.put(usual)
	}
	return rows.Err()
}

// entries writes some entries, and says whether there may be more.
func (x *export) entries(ctx context.Context) (more bool, err error) {
	for len(x.buf) < exportPage {
		if !x.own && x.n == x.origin.n {
			if err := x.end(ctx); err != nil || x.fileOnly {
				return false, err
			}
		}
		var payload string
		ok, err := x.tx.Row(ctx, "SELECT "+migrations.Payload+" FROM events WHERE session = ? AND n = ?", []any{x.st.key, x.n + 1}, &payload)
		switch {
		case err != nil:
			return false, err
		case !ok && !x.own:
			return false, x.st.deleted()
		case !ok:
			return false, nil
		}
		x.n++
		if x.own {
			x.line(payload)
		} else if err := x.item(ctx, x.n, payload, x.origin.newline); err != nil {
			return false, err
		}
	}
	return true, nil
}

// end writes what the file has behind its last entry.
func (x *export) end(ctx context.Context) error {
	if err := x.gap(ctx, x.n+1, x.origin.newline); err != nil {
		return err
	}
	x.put(string(x.origin.tail))
	x.own = true
	return nil
}

// line writes an entry that was appended here.
func (x *export) line(payload string) {
	if x.last != '\n' {
		x.put("\n")
	}
	x.put(eventlog.TrustedEntry(payload).Line())
	x.put("\n")
}

// ExportV3 writes a session as a file of version 3, whatever format it came in:
// what could not be read, and all that is no entry, is left out.
func (s *Store) ExportV3(ctx context.Context, id string, w io.Writer) error {
	st, err := s.session(ctx, id)
	if err != nil {
		return err
	}
	if !js.Trusted(st.meta.Header).Get("id").Is(id) {
		st.meta.Header = st.meta.HeaderText() // taken with a new id
	}
	return eventlog.NewSession(st).Export(ctx, w)
}
