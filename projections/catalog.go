package projections

import (
	"context"
	"math"
	"unicode/utf8"

	"github.com/sessiontree/sessiontree/eventlog"
	"github.com/sessiontree/sessiontree/eventlog/js"
)

// Catalog is the view that a list of sessions shows: name, first message, counts
// and last activity of each. It is asynchronous: its index over the last activity
// would make every append dearer.
type Catalog struct{}

// Name implements [Projection].
func (Catalog) Name() string { return "catalog" }

// Version implements [Projection].
func (Catalog) Version() int { return 1 }

// Tables implements [Projection].
func (Catalog) Tables() []string { return []string{"catalog"} }

// Reset implements [Projection].
func (c Catalog) Reset(ctx context.Context, tx *Tx) error { return deleteRows(ctx, tx, c) }

// Card is a session's row of the catalog.
type Card struct {
	Session int64
	Seq     int64  // of the last event of the session that it holds
	CWD     string // the session's working folder
	Active  int64  // time of the latest entry, in ms since 1970; of the session, if there is none
	Name    string
	// FirstMessage is how the first message of the user begins, "" for none.
	FirstMessage string
	Entries      int
	Messages     int
}

// maxFirstMessage is how many bytes of the first message a list needs.
const maxFirstMessage = 400

// NewCard is the card of a session without entries.
func NewCard(session, seq int64, cwd, createdAt string) *Card {
	c := &Card{Session: session, Seq: seq, CWD: cwd}
	c.at(createdAt)
	return c
}

// at notes the time of an activity. A time that cannot be read is none.
func (c *Card) at(timestamp string) {
	if ms := js.ParseDate(timestamp); !math.IsNaN(ms) {
		c.Active = max(c.Active, int64(ms))
	}
}

// Add adds the session's next entry.
func (c *Card) Add(seq int64, e eventlog.Entry) {
	c.Seq = seq
	c.Entries++
	c.at(e.Timestamp())
	switch e.Type() {
	case eventlog.TypeMessage:
		c.Messages++
		if c.FirstMessage == "" && e.IsUserMessage() {
			c.FirstMessage = beginning(e.Message().PlainText(), maxFirstMessage)
		}
	case eventlog.TypeSessionInfo:
		// One that holds no text is no name: the list shows the session all the same.
		c.Name, _ = eventlog.Harness.Name(e)
	}
}

// beginning cuts a text to so many bytes, not inside a character.
func beginning(s string, size int) string {
	if len(s) <= size {
		return s
	}
	for size > 0 && !utf8.RuneStart(s[size]) {
		size--
	}
	return s[:size]
}

// Apply implements [Projection].
func (p Catalog) Apply(ctx context.Context, tx *Tx, events []Event) error {
	cards := map[int64]*Card{} // nil: the session is not there
	for _, e := range events {
		c, known := cards[e.Session]
		var err error
		switch {
		case e.Type == SessionDeleted && e.N == 0:
			cards[e.Session] = nil
			_, err = tx.Exec(ctx, "DELETE FROM catalog WHERE session = ?", e.Session)
		case e.N < 0: // a move of the leaf
		case e.N == 0:
			cards[e.Session], err = createdCard(ctx, tx, e)
		case !known:
			if c, err = readCard(ctx, tx, e.Session); err == nil {
				cards[e.Session] = c
			}
			fallthrough
		default:
			// What the row holds is not added again, should the checkpoint be put back.
			if c != nil && e.Seq > c.Seq {
				c.Add(e.Seq, e.Entry)
			}
		}
		if err != nil {
			return err
		}
	}
	for _, c := range cards {
		if c == nil {
			continue
		}
		_, err := tx.Exec(ctx, `INSERT INTO catalog (session, seq, cwd, active, name, first_message, entries, messages)
			VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8)
			ON CONFLICT (session) DO UPDATE SET seq = ?2, active = ?4, name = ?5, first_message = ?6, entries = ?7, messages = ?8`,
			c.Session, c.Seq, c.CWD, c.Active, c.Name, c.FirstMessage, c.Entries, c.Messages)
		if err != nil {
			return err
		}
	}
	return nil
}

// createdCard is the card of a new session; nil if it was deleted since.
func createdCard(ctx context.Context, tx *Tx, e Event) (*Card, error) {
	var cwd, createdAt string
	ok, err := tx.Row(ctx, "SELECT cwd, created_at FROM sessions WHERE key = ?", []any{e.Session}, &cwd, &createdAt)
	if err != nil || !ok {
		return nil, err
	}
	return NewCard(e.Session, e.Seq, cwd, createdAt), nil
}

func readCard(ctx context.Context, tx *Tx, session int64) (*Card, error) {
	c := &Card{Session: session}
	ok, err := tx.Row(ctx, "SELECT seq, cwd, active, name, first_message, entries, messages FROM catalog WHERE session = ?", []any{session},
		&c.Seq, &c.CWD, &c.Active, &c.Name, &c.FirstMessage, &c.Entries, &c.Messages)
	if err != nil || !ok {
		return nil, err
	}
	return c, nil
}
