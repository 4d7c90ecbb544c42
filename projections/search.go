package projections

import (
	"context"
	"strconv"
	"strings"

	"github.com/sessiontree/sessiontree/eventlog"
	"github.com/sessiontree/sessiontree/eventlog/terms"
)

// Search is the full-text index: of each entry the terms of its texts, by kind,
// and none of the texts, which are in the log. The terms come from
// [terms.Cut], a blank between two of them, and behind them [terms.Wholes]; a term
// for the session makes a search in one as fast as in all. A document is numbered
// as its entry is in the log, so that the newest come first without a sort.
type Search struct{}

// Name implements [Projection].
func (Search) Name() string { return "search" }

// Version implements [Projection].
func (Search) Version() int { return 1 }

// Tables implements [Projection].
func (Search) Tables() []string { return []string{"search", "search_terms"} }

// Reset implements [Projection].
func (Search) Reset(ctx context.Context, tx *Tx) error {
	_, err := tx.Exec(ctx, "INSERT INTO search (search) VALUES ('delete-all')")
	return err
}

// SessionTerm is the term for a session. It begins with a sign that no text's term
// has.
func SessionTerm(session int64) string { return "§" + strconv.FormatInt(session, 10) }

// Apply implements [Projection].
func (Search) Apply(ctx context.Context, tx *Tx, events []Event) error {
	// What is there already is not added again, should the checkpoint be put back.
	var last int64
	if _, err := tx.Row(ctx, "SELECT id FROM search_docsize ORDER BY id DESC LIMIT 1", nil, &last); err != nil {
		return err
	}
	for _, e := range events {
		var err error
		switch {
		case e.N == 0 && e.Type == SessionDeleted:
			_, err = tx.Exec(ctx, "DELETE FROM search WHERE rowid IN (SELECT rowid FROM search WHERE search MATCH ?)", `"`+SessionTerm(e.Session)+`"`)
		case e.N > 0 && e.Seq > last:
			err = index(ctx, tx, e)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// index adds an entry, if it has texts.
func index(ctx context.Context, tx *Tx, e Event) error {
	texts := e.Entry.Texts()
	if len(texts) == 0 {
		return nil
	}
	columns := map[eventlog.TextKind]any{}
	for _, t := range texts {
		columns[t.Kind] = document(t.Text)
	}
	args := []any{e.Seq}
	for _, k := range eventlog.TextKinds() {
		args = append(args, columns[k])
	}
	_, err := tx.Exec(ctx, "INSERT INTO search (rowid, message, summary, name, label, call, result, session) VALUES (?, ?, ?, ?, ?, ?, ?, ?)",
		append(args, SessionTerm(e.Session))...)
	return err
}

// document is what the index gets of a text.
func document(text string) string {
	var b strings.Builder
	b.Grow(len(text) + len(text)/8)
	cut := terms.Cut(text)
	for _, t := range cut {
		b.WriteString(t.Text)
		b.WriteByte(' ')
	}
	for _, w := range terms.Wholes(text, cut) {
		b.WriteString(w)
		b.WriteByte(' ')
	}
	return b.String()
}
