package sqlitestore

import (
	"context"
	"errors"
	"github.com/sessiontree/sessiontree/migrations"
	"io"

	"github.com/sessiontree/sessiontree/eventlog"
	"github.com/sessiontree/sessiontree/eventlog/sessionfile"
	"github.com/sessiontree/sessiontree/projections"
)

// intake takes one file into one session, in one transaction. Entries that the
// session has already are compared, byte for byte; those behind them are appended.
type intake struct {
	*fileImport
	tx     *projections.Tx
	result *FileResult

	created bool // the session is made in this transaction
	source  *source
	head    int // entries that the session has
	before  int // and had
	part    int // of the gap that comes
	entries []eventlog.Entry
	bytes   int
}

// A write of so many entries, or bytes, is enough to make its fixed costs small.
const (
	intakeEntries = 1000
	intakeBytes   = 4 << 20
)

func (in *intake) take(ctx context.Context, session int64) error {
	known, err := sourceOf(ctx, in.tx, in.path)
	if err != nil {
		return err
	}
	if !known.same(in.known) {
		return errMoved
	}
	run, err := in.reopen()
	if err != nil {
		return err
	}
	defer run.close()
	if err := in.begin(ctx, session, run); err != nil {
		return err
	}
	if err := in.correct(ctx); err != nil {
		return err
	}
	for {
		item, err := run.next()
		if err == io.EOF {
			break
		}
		if err == nil {
			err = in.item(ctx, item)
		}
		if errors.Is(err, errDiverged) {
			return in.diverged(ctx, item.Entry, run)
		}
		if err != nil {
			return err
		}
	}
	if err := in.flush(ctx); err != nil {
		return err
	}
	if in.result.Against = run.marks.Against(in.as.dialect); in.created || in.result.Corrected {
		in.result.Dialect, in.result.Basis = in.as.dialect, in.as.basis
	}
	return in.finish(ctx, run.end())
}

// begin makes the file's row, or takes up the one that is there.
func (in *intake) begin(ctx context.Context, session int64, run *fileRun) error {
	tip, err := in.store.view(ctx, in.tx, session, in.target.dialect).Tip()
	if errors.Is(err, errDeleted) {
		return errMoved
	}
	if err != nil {
		return err
	}
	in.head = tip.N
	in.before = in.head
	if run.resumed != nil {
		return in.resume(ctx, run.resumed)
	}
	in.source = &source{session: session, path: in.path, format: run.header.Format, newline: run.header.Newline, title: run.header.Title}
	if in.known != nil && in.known.session == session {
		in.source.key = in.known.key
		err = in.forget(ctx)
	} else {
		err = in.source.insert(ctx, in.tx, in.store.o.Source.Time())
	}
	if err != nil {
		return err
	}
	return in.header(ctx, run.header)
}

// resume goes on behind what was read of the file. What is known of its tail is
// known anew.
func (in *intake) resume(ctx context.Context, at *resumption) error {
	in.source = &source{}
	*in.source = *in.known
	if _, err := in.tx.Exec(ctx, "DELETE FROM damage WHERE source = ? AND n IS NULL", in.source.key); err != nil {
		return err
	}
	if at.parts == 1 { // comes again, with what follows
		if _, err := in.tx.Exec(ctx, "DELETE FROM layout WHERE source = ? AND n = ? AND part >= 0", in.source.key, in.source.n+1); err != nil {
			return err
		}
	} else if _, err := in.tx.Row(ctx, "SELECT coalesce(max(part), -1) + 1 FROM layout WHERE source = ? AND n = ?", []any{in.source.key, in.source.n + 1}, &in.part); err != nil {
		return err
	}
	if at.title == "" {
		return nil
	}
	// A title stands at the beginning of what is before the header.
	_, err := in.tx.Exec(ctx, "UPDATE layout SET bytes = CAST(?1 || substr(bytes, ?2) AS BLOB) WHERE source = ?3 AND n = 0 AND part = 0", []byte(at.title), len(at.title)+1, in.source.key)
	return err
}

// forget drops the layout of a file that is read from its beginning again.
func (in *intake) forget(ctx context.Context) error {
	for _, query := range []string{"DELETE FROM layout WHERE source = ?", "DELETE FROM damage WHERE source = ?"} {
		if _, err := in.tx.Exec(ctx, query, in.source.key); err != nil {
			return err
		}
	}
	return nil
}

// header keeps what leads from the header that the session has to the file's.
func (in *intake) header(ctx context.Context, h sessionfile.Header) error {
	var kept string
	if _, err := in.tx.Row(ctx, "SELECT header FROM sessions WHERE key = ?", []any{in.source.session}, &kept); err != nil {
		return err
	}
	back := h.Edits
	if kept != h.Metadata.Header {
		back = sessionfile.Edits{{Delete: len(kept), Insert: h.Edits.Apply(h.Metadata.Header)}}
	}
	if err := in.gap(ctx, 0, h.Gap); err != nil {
		return err
	}
	in.part = 0
	return in.edits(ctx, 0, back)
}

const insertLayout = "INSERT INTO layout (source, n, part, bytes) VALUES (?, ?, ?, ?)"

func (in *intake) edits(ctx context.Context, n int, edits sessionfile.Edits) error {
	if len(edits) == 0 {
		return nil
	}
	_, err := in.tx.Exec(ctx, insertLayout, in.source.key, n, -1, edits.Encode())
	return err
}

// gap keeps the parts of a gap before entry n.
func (in *intake) gap(ctx context.Context, n int, parts []sessionfile.Part) error {
	for _, p := range parts {
		if err := in.addPart(ctx, n, p.Bytes); err != nil {
			return err
		}
		if p.Damage != nil {
			if err := in.damage(ctx, p.Damage, n, in.part-1); err != nil {
				return err
			}
		}
	}
	if parts != nil && in.part == 0 {
		return in.addPart(ctx, n, "") // nothing at all
	}
	return nil
}

func (in *intake) addPart(ctx context.Context, n int, bytes string) error {
	_, err := in.tx.Exec(ctx, insertLayout, in.source.key, n, in.part, []byte(bytes))
	in.part++
	return err
}

func (in *intake) damage(ctx context.Context, d *sessionfile.Damage, n, part any) error {
	_, err := in.tx.Exec(ctx, "INSERT INTO damage (source, n, part, line, offset, length, reason) VALUES (?, ?, ?, ?, ?, ?, ?)",
		in.source.key, n, part, d.Line, d.Offset, d.Length, d.Reason)
	return err
}

var errDiverged = errors.New("the histories differ")

func (in *intake) item(ctx context.Context, item sessionfile.Item) error {
	n := in.source.n + 1
	if err := in.gap(ctx, n, item.Gap); err != nil || item.Partial {
		return err
	}
	if n <= in.before {
		var here string
		if _, err := in.tx.Row(ctx, "SELECT "+migrations.Payload+" FROM events WHERE session = ? AND n = ?", []any{in.source.session, n}, &here); err != nil {
			return err
		}
		if here != item.Entry.JSON() {
			return errDiverged
		}
	} else {
		in.entries = append(in.entries, item.Entry)
		in.bytes += len(item.Entry.JSON())
	}
	in.source.n, in.part = n, 0
	if err := in.edits(ctx, n, item.Edits); err != nil {
		return err
	}
	if len(in.entries) >= intakeEntries || in.bytes >= intakeBytes {
		return in.flush(ctx)
	}
	return nil
}

// flush appends the entries that wait.
func (in *intake) flush(ctx context.Context) error {
	if len(in.entries) == 0 {
		return nil
	}
	if err := in.fence(ctx); err != nil {
		return err
	}
	err := in.store.insertInto(ctx, in.tx, in.source.session, in.entries)
	in.head += len(in.entries)
	clear(in.entries)
	in.entries, in.bytes = in.entries[:0], 0
	return err
}

// fence refuses to write to a session that another has leased.
func (in *intake) fence(ctx context.Context) error {
	if in.created {
		return nil
	}
	var id string
	if _, err := in.tx.Row(ctx, "SELECT id FROM sessions WHERE key = ?", []any{in.source.session}, &id); err != nil {
		return err
	}
	return in.store.fence(ctx, in.tx, in.source.session, id, nil)
}

// finish keeps how the file ends.
func (in *intake) finish(ctx context.Context, end *sessionfile.End) error {
	if err := in.gap(ctx, in.source.n+1, end.Gap); err != nil {
		return err
	}
	if end.Torn != nil {
		if err := in.damage(ctx, end.Torn, nil, nil); err != nil {
			return err
		}
	}
	f := in.source
	f.size, f.modified = in.info.Size(), in.info.ModTime().UnixNano()
	f.readTo, f.line, f.hash, f.tail = end.Offset, end.Line, end.Hash, []byte(end.Tail)
	if err := f.update(ctx, in.tx, in.store.o.Source.Time()); err != nil {
		return err
	}
	in.prefixes.keep(f, in.info, end.State)
	return in.report(ctx)
}

// report says what became of the file.
func (in *intake) report(ctx context.Context) error {
	if _, err := in.tx.Row(ctx, "SELECT count(*) FROM damage WHERE source = ?", []any{in.source.key}, &in.result.Damage); err != nil {
		return err
	}
	in.result.Entries = in.head - in.before
	switch {
	case !in.created && in.result.Entries == 0:
		in.result.Outcome = Unchanged
	case in.result.Damage > 0:
		in.result.Outcome = Damaged
	case !in.created:
		in.result.Outcome = Extended
	default:
		in.result.Outcome = Imported
	}
	return nil
}

// shownTail is how many entries of each tail are shown where two histories part.
const shownTail = 3

// diverged is the error for a file whose session is here with another history.
func (in *intake) diverged(ctx context.Context, first eventlog.Entry, run *fileRun) error {
	d := &DivergedError{Shared: in.source.n, File: []eventlog.Entry{first}}
	for len(d.File) < shownTail {
		item, err := run.next()
		if err != nil {
			break // what could be read is shown
		}
		if !item.Partial {
			d.File = append(d.File, item.Entry)
		}
	}
	here := &logView{ctx, in.tx, in.source.session, in.as.dialect}
	var err error
	if d.Here, err = here.after(d.Shared, shownTail); err != nil {
		return err
	}
	var id string
	if _, err := in.tx.Row(ctx, "SELECT id FROM sessions WHERE key = ?", []any{in.source.session}, &id); err != nil {
		return err
	}
	return &eventlog.Error{Code: eventlog.Conflict, Message: "Session " + id + " has another history here than in " + in.path, Err: d}
}
