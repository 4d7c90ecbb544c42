package sqlitestore

import (
	"context"

	"github.com/sessiontree/sessiontree/eventlog"
	"github.com/sessiontree/sessiontree/eventlog/js"
	"github.com/sessiontree/sessiontree/eventlog/sessionfile"
	"github.com/sessiontree/sessiontree/projections"
)

// answering is by which rules a session is answered, and what decided that.
type answering struct {
	dialect eventlog.Dialect
	basis   string
}

// target is the session that a file's entries belong to.
type target struct {
	session   int64 // 0: one that is to be made
	answering       // of a new one as long as the file has told nothing
}

// settled says whether what the file tells changes nothing.
func (t target) settled() bool { return !eventlog.ByMarks(t.basis) }

// aim finds the session that the file's entries belong to.
func (f *fileImport) aim(ctx context.Context) error {
	return f.store.read(ctx, func(tx *projections.Tx) (err error) {
		f.target = target{}
		if f.at != nil {
			f.target.session = f.known.session
		} else if f.forkOf == 0 {
			if f.target.session, err = f.find(ctx, tx, f.header.ID); err != nil {
				return err
			}
		}
		if f.target.session == 0 {
			f.target.answering = f.unread()
			return nil
		}
		f.target.answering, err = answeringOf(ctx, tx, f.target.session)
		return err
	})
}

// unread is how a new session is answered before its entries have told anything.
func (f *fileImport) unread() answering {
	switch {
	case f.o.Dialect != nil:
		return answering{*f.o.Dialect, "asked for"}
	case f.header.Format == sessionfile.V4:
		return answering{eventlog.Harness, "a file of version 4"}
	}
	return answering{eventlog.CodingAgent, eventlog.NoMark}
}

// find is the session that the file's entries belong to, 0 if it is not here: the
// one that it was imported as, which may have got a new id, or the one with its id.
func (f *fileImport) find(ctx context.Context, tx *projections.Tx, id string) (session int64, err error) {
	if f.known != nil {
		var header string
		ok, err := tx.Row(ctx, "SELECT header FROM sessions WHERE key = ?", []any{f.known.session}, &header)
		if err != nil {
			return 0, err
		}
		if ok && js.Trusted(header).Get("id").Is(id) {
			return f.known.session, nil
		}
	}
	here, err := tx.Row(ctx, "SELECT key FROM sessions WHERE id = ?", []any{id}, &session)
	if err != nil || here || f.o.Restore {
		return session, err
	}
	return 0, f.checkTombstone(ctx, tx, id)
}

// answeringOf is how a session is answered. It fails with errMoved if it is not
// there any more.
func answeringOf(ctx context.Context, tx *projections.Tx, session int64) (a answering, err error) {
	var dialect string
	ok, err := tx.Row(ctx, "SELECT dialect, dialect_basis FROM sessions WHERE key = ?", []any{session}, &dialect, &a.basis)
	if err != nil {
		return a, err
	}
	if !ok {
		return a, errMoved
	}
	a.dialect, err = eventlog.ParseDialect(dialect)
	return a, err
}

// mayCorrect lets a session that is here keep its dialect where the other one would
// not take all of its entries for entries.
func (f *fileImport) mayCorrect(ctx context.Context) error {
	if f.target.session == 0 || f.as.dialect == f.target.dialect {
		return nil
	}
	for after, more := 0, true; more; {
		var entries []eventlog.Entry
		err := f.store.read(ctx, func(tx *projections.Tx) (err error) {
			log := &logView{ctx, tx, f.target.session, f.target.dialect}
			entries, err = log.after(after, page)
			return err
		})
		if err != nil {
			return err
		}
		for _, e := range entries {
			if _, err := f.as.dialect.ParseEntry(e.JSON()); err != nil {
				f.as = f.target.answering
				return nil
			}
		}
		after, more = after+len(entries), len(entries) == page
	}
	return nil
}

// correct gives the session the dialect that the file's marks say, and makes its
// views again, in the transaction that takes the file.
func (in *intake) correct(ctx context.Context) error {
	if in.created {
		return nil
	}
	has, err := answeringOf(ctx, in.tx, in.source.session)
	if err != nil {
		return err
	}
	if has != in.target.answering {
		return errMoved // it was corrected meanwhile
	}
	if has == in.as {
		return nil
	}
	if _, err := in.tx.Exec(ctx, "UPDATE sessions SET dialect = ?, dialect_basis = ? WHERE key = ?", in.as.dialect.String(), in.as.basis, in.source.session); err != nil || has.dialect == in.as.dialect {
		return err
	}
	in.result.Corrected = true
	if in.store.lockstep.off {
		if err := projections.Invalidate(ctx, in.tx, projections.Usage{}); err != nil {
			return err
		}
		return projections.Invalidate(ctx, in.tx, in.store.branch)
	}
	return in.store.rebuildSession(ctx, in.tx, in.source.session)
}
