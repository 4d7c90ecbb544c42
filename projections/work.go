package projections

import (
	"context"
	"crypto/sha256"
	"encoding/binary"

	"github.com/sessiontree/sessiontree/eventlog"
)

// What agents did, beside what it cost: calls of tools, turns, compactions.

// turn is a row of turns.
type turn struct {
	seq, session, at, first, last, millis int64
	responses, calls                      int64
	changed                               bool
}

// work adds an entry to the calls, turns and compactions.
func (b *usageBatch) work(ctx context.Context, e Event) error {
	if e.Entry.Type() == eventlog.TypeCompaction {
		return b.compaction(ctx, e)
	}
	m := e.Entry.Message()
	switch m.Role() {
	case eventlog.RoleUser:
		return b.begin(ctx, e)
	case eventlog.RoleAssistant:
		return b.response(ctx, e, m)
	case eventlog.RoleToolResult:
		return b.result(ctx, e, m)
	}
	return nil
}

// begin starts a turn.
func (b *usageBatch) begin(ctx context.Context, e Event) error {
	if err := b.writeTurn(ctx, b.turns[e.Session]); err != nil {
		return err
	}
	b.turns[e.Session] = &turn{seq: e.Seq, session: e.Session, at: entryTime(e.Entry), last: e.Seq, changed: true}
	return nil
}

// turn is the session's turn that an entry belongs to, nil for none.
func (b *usageBatch) turn(ctx context.Context, e Event) (*turn, error) {
	t, known := b.turns[e.Session]
	if !known {
		t = &turn{session: e.Session}
		ok, err := b.tx.Row(ctx, "SELECT seq, at, coalesce(first, 0), last, millis, responses, calls FROM turns WHERE session = ? AND seq < ? ORDER BY seq DESC LIMIT 1",
			[]any{e.Session, e.Seq}, &t.seq, &t.at, &t.first, &t.last, &t.millis, &t.responses, &t.calls)
		if err != nil {
			return nil, err
		}
		if !ok {
			t = nil
		}
		b.turns[e.Session] = t
	}
	if t != nil && e.Seq <= t.last {
		return nil, nil // it has the entry already
	}
	return t, nil
}

// grow adds an entry to a turn.
func (t *turn) grow(e Event) {
	t.last, t.changed = e.Seq, true
	if at := entryTime(e.Entry); t.at > 0 {
		t.millis = max(t.millis, at-t.at)
	}
}

// response adds an assistant message with its calls.
func (b *usageBatch) response(ctx context.Context, e Event, m eventlog.Message) error {
	calls := int64(0)
	for block := range m.Get("content").Elements() {
		if !block.Get("type").Is("toolCall") {
			continue
		}
		if err := b.call(ctx, e, calls, block); err != nil {
			return err
		}
		calls++
	}
	t, err := b.turn(ctx, e)
	if err != nil || t == nil {
		return err
	}
	t.grow(e)
	t.responses++
	t.calls += calls
	if t.first == 0 {
		t.first = e.Seq
	}
	return nil
}

// result adds a result to its call and to its turn.
func (b *usageBatch) result(ctx context.Context, e Event, m eventlog.Message) error {
	if err := b.toolResult(ctx, e, m); err != nil {
		return err
	}
	t, err := b.turn(ctx, e)
	if err == nil && t != nil {
		t.grow(e)
	}
	return err
}

// compaction adds a compaction.
func (b *usageBatch) compaction(ctx context.Context, e Event) error {
	before, _ := e.Entry.Get("tokensBefore").Float()
	if !(before >= 0 && before < 1e15) {
		before = 0
	}
	var retained any
	if tail := e.Entry.Get("retainedTail"); tail.Truthy() {
		n := 0
		for range tail.Elements() {
			n++
		}
		retained = n
	}
	sum := sha256.Sum256(binary.AppendUvarint([]byte(e.Entry.ID()+"\x00"), uint64(before)))
	_, err := b.tx.Exec(ctx, "INSERT OR IGNORE INTO compactions (seq, session, identity, at, tokens_before, retained) VALUES (?, ?, ?, ?, ?, ?)",
		e.Seq, e.Session, int64(binary.BigEndian.Uint64(sum[:])), entryTime(e.Entry), int64(before), retained)
	return err
}

// writeWork writes the calls and turns of the batch. What counts is asked for now: a
// recount before this finds none of them, one behind it all.
func (b *usageBatch) writeWork(ctx context.Context) error {
	for _, t := range b.turns {
		if err := b.writeTurn(ctx, t); err != nil {
			return err
		}
	}
	return b.writeCalls(ctx)
}

// turnSQL writes a turn, for the first time or as it has grown.
const turnSQL = `INSERT INTO turns (seq, session, at, first, last, millis, responses, calls, counted)
VALUES (?1, ?2, ?3, nullif(?4, 0), ?5, ?6, ?7, ?8, coalesce((SELECT counted > 0 FROM usage WHERE seq = ?4), 0))
ON CONFLICT (seq) DO UPDATE SET first = excluded.first, last = excluded.last, millis = excluded.millis,
	responses = excluded.responses, calls = excluded.calls, counted = excluded.counted`

func (b *usageBatch) writeTurn(ctx context.Context, t *turn) error {
	if t == nil || !t.changed {
		return nil
	}
	t.changed = false
	_, err := b.tx.Exec(ctx, turnSQL, t.seq, t.session, t.at, t.first, t.last, t.millis, t.responses, t.calls)
	return err
}

// recountWork follows a response that begins or ceases to count.
func (b *usageBatch) recountWork(ctx context.Context, seq int64, counts bool) error {
	if _, err := b.tx.Exec(ctx, "UPDATE turns SET counted = ?2 WHERE first = ?1", seq, counts); err != nil {
		return err
	}
	return b.recountCalls(ctx, seq, counts)
}

func (b *usageBatch) deleteWork(ctx context.Context, session int64) error {
	delete(b.turns, session)
	for _, query := range []string{
		"DELETE FROM turns WHERE session = ?",
		"DELETE FROM compactions WHERE session = ?",
	} {
		if _, err := b.tx.Exec(ctx, query, session); err != nil {
			return err
		}
	}
	return b.deleteCalls(ctx, session)
}
