package projections

import (
	"cmp"
	"context"
	"maps"
	"slices"

	"github.com/sessiontree/sessiontree/eventlog"
	"github.com/sessiontree/sessiontree/eventlog/js"
)

// ToolDayMillis is the width of the days, of UTC, by which calls of tools are summed.
const ToolDayMillis = 24 * 60 * 60 * 1000

// toolCall is a row of tool_calls.
type toolCall struct {
	seq, idx, session, at, tool int64
	id                          string
	input                       int64
	retry                       bool
	resultSeq, resultAt         int64 // 0: no result yet
	failed                      bool
	resultBytes                 int64
}

// toolsBatch holds the calls of a batch until its end: most get their result within
// it, and are written once.
type toolsBatch struct {
	keys  map[string]int64 // of tools, by name
	there int64            // the calls up to this seq are in the table: see begin
	calls []*toolCall
	byID  map[callID]*toolCall // the latest with the id
	last  map[toolIn]*toolCall // the latest of the tool
	sums  map[toolKey]toolSum  // what changes
}

type callID struct {
	session int64
	id      string
}

type toolIn struct{ session, tool int64 }

// toolKey is the key of a sum.
type toolKey struct{ session, day, tool int64 }

func (k toolKey) compare(l toolKey) int {
	return cmp.Or(cmp.Compare(k.session, l.session), cmp.Compare(k.day, l.day), cmp.Compare(k.tool, l.tool))
}

// toolSum is a sum.
type toolSum struct{ calls, failed, retries, noResult, input, result, millis int64 }

func (s toolSum) plus(t toolSum, sign int64) toolSum {
	return toolSum{
		s.calls + sign*t.calls, s.failed + sign*t.failed, s.retries + sign*t.retries, s.noResult + sign*t.noResult,
		s.input + sign*t.input, s.result + sign*t.result, s.millis + sign*t.millis,
	}
}

// key is the key of the sum that a call is in.
func (c *toolCall) key() toolKey { return toolKey{c.session, c.at / ToolDayMillis, c.tool} }

// sum is what a call adds to its sum.
func (c *toolCall) sum() toolSum {
	s := toolSum{calls: 1, failed: one(c.failed), retries: one(c.retry), noResult: one(c.resultSeq == 0), input: c.input, result: c.resultBytes}
	if c.at > 0 && c.resultAt > c.at {
		s.millis = c.resultAt - c.at
	}
	return s
}

func one(is bool) int64 {
	if is {
		return 1
	}
	return 0
}

// begin notes which calls are in the table already, should the checkpoint have been
// put back: they are not added again.
func (b *toolsBatch) begin(ctx context.Context, tx *Tx) error {
	*b = toolsBatch{keys: map[string]int64{}, byID: map[callID]*toolCall{}, last: map[toolIn]*toolCall{}, sums: map[toolKey]toolSum{}}
	_, err := tx.Row(ctx, "SELECT seq FROM tool_calls ORDER BY seq DESC LIMIT 1", nil, &b.there)
	return err
}

// call adds a call.
func (b *usageBatch) call(ctx context.Context, e Event, idx int64, block js.Value) error {
	if e.Seq <= b.tools.there {
		return nil
	}
	name, _ := block.Get("name").Str()
	id, _ := block.Get("id").Str()
	tool, err := b.tool(ctx, name)
	if err != nil {
		return err
	}
	c := &toolCall{seq: e.Seq, idx: idx, session: e.Session, at: entryTime(e.Entry), tool: tool, id: id, input: int64(len(block.Get("arguments").JSON()))}
	of := toolIn{e.Session, tool}
	if before := b.tools.last[of]; before != nil {
		c.retry = before.failed
	} else if _, err := b.tx.Row(ctx, "SELECT failed FROM tool_calls WHERE session = ? AND tool = ? ORDER BY seq DESC, idx DESC LIMIT 1", []any{e.Session, tool}, &c.retry); err != nil {
		return err
	}
	b.tools.calls = append(b.tools.calls, c)
	b.tools.last[of], b.tools.byID[callID{e.Session, id}] = c, c
	return nil
}

// tool is the key of a tool.
func (b *usageBatch) tool(ctx context.Context, name string) (key int64, err error) {
	if key, ok := b.tools.keys[name]; ok {
		return key, nil
	}
	ok, err := b.tx.Row(ctx, "SELECT key FROM tools WHERE name = ?", []any{name}, &key)
	if err != nil {
		return 0, err
	}
	if !ok {
		r, err := b.tx.Exec(ctx, "INSERT INTO tools (name) VALUES (?)", name)
		if err != nil {
			return 0, err
		}
		if key, err = r.LastInsertId(); err != nil {
			return 0, err
		}
	}
	b.tools.keys[name] = key
	return key, nil
}

// resultSQL adds a result to the latest call with its id, if it has none.
const resultSQL = `UPDATE tool_calls SET result_seq = ?1, result_at = ?2, failed = ?3, result_bytes = ?4
WHERE (seq, idx) = (SELECT seq, idx FROM tool_calls WHERE session = ?5 AND call_id = ?6 AND seq < ?1 ORDER BY seq DESC, idx DESC LIMIT 1) AND result_seq IS NULL
RETURNING ` + callColumns

// toolResult adds a result to its call: the latest with the id, if it has none.
func (b *usageBatch) toolResult(ctx context.Context, e Event, m eventlog.Message) error {
	id, _ := m.Get("toolCallId").Str()
	at, failed, size := entryTime(e.Entry), m.Get("isError").Truthy(), int64(len(m.Get("content").JSON()))
	if c := b.tools.byID[callID{e.Session, id}]; c != nil {
		if c.resultSeq == 0 {
			c.resultSeq, c.resultAt, c.failed, c.resultBytes = e.Seq, at, failed, size
		}
		return nil
	}
	calls, err := b.changedCalls(ctx, resultSQL, e.Seq, at, one(failed), size, e.Session, id)
	if err != nil {
		return err
	}
	for _, c := range calls {
		if c.counted {
			open := c.toolCall
			open.resultSeq, open.resultAt, open.failed, open.resultBytes = 0, 0, false, 0
			b.sumCall(&open, -1)
			b.sumCall(&c.toolCall, 1)
		}
	}
	return nil
}

// storedCall is a call that is in the table.
type storedCall struct {
	toolCall
	counted bool
}

const callColumns = `session, at, tool, input_bytes, retry, coalesce(result_seq, 0), coalesce(result_at, 0), failed, result_bytes, counted`

// changedCalls runs a statement that gives the calls that it changed.
func (b *usageBatch) changedCalls(ctx context.Context, query string, args ...any) (all []storedCall, err error) {
	rows, err := b.tx.Rows(ctx, query, args...)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	for rows.Next() {
		var c storedCall
		if err := rows.Scan(&c.session, &c.at, &c.tool, &c.input, &c.retry, &c.resultSeq, &c.resultAt, &c.failed, &c.resultBytes, &c.counted); err != nil {
			return nil, err
		}
		all = append(all, c)
	}
	return all, rows.Err()
}

// sumCall adds a call to its sum, or with sign -1 takes it away.
func (b *usageBatch) sumCall(c *toolCall, sign int64) {
	b.tools.sums[c.key()] = b.tools.sums[c.key()].plus(c.sum(), sign)
}

// recountCalls follows a response that begins or ceases to count. Of one whose calls
// are not written yet, that is seen when they are.
func (b *usageBatch) recountCalls(ctx context.Context, seq int64, counts bool) error {
	calls, err := b.changedCalls(ctx, "UPDATE tool_calls SET counted = ?2 WHERE seq = ?1 AND counted <> ?2 RETURNING "+callColumns, seq, one(counts))
	if err != nil {
		return err
	}
	for _, c := range calls {
		b.sumCall(&c.toolCall, 2*one(counts)-1)
	}
	return nil
}

// deleteCalls takes a session's calls out.
func (b *usageBatch) deleteCalls(ctx context.Context, session int64) error {
	b.tools.calls = slices.DeleteFunc(b.tools.calls, func(c *toolCall) bool { return c.session == session })
	maps.DeleteFunc(b.tools.sums, func(k toolKey, _ toolSum) bool { return k.session == session })
	for _, query := range []string{
		"DELETE FROM tool_calls WHERE session = ?",
		"DELETE FROM tool_sums WHERE session = ?",
	} {
		if _, err := b.tx.Exec(ctx, query, session); err != nil {
			return err
		}
	}
	return nil
}

// writeCalls writes the calls of the batch, which count if their response does now.
func (b *usageBatch) writeCalls(ctx context.Context) error {
	if len(b.tools.calls) == 0 {
		return nil
	}
	counted, err := b.countedFrom(ctx, b.tools.calls[0].seq, b.tools.calls[len(b.tools.calls)-1].seq)
	if err != nil {
		return err
	}
	for _, c := range b.tools.calls {
		counts, billed := counted[c.seq]
		if !billed {
			continue
		}
		if counts {
			b.sumCall(c, 1)
		}
		var resultSeq, resultAt any
		if c.resultSeq > 0 {
			resultSeq, resultAt = c.resultSeq, c.resultAt
		}
		_, err := b.tx.Exec(ctx, `INSERT INTO tool_calls (seq, idx, session, at, tool, call_id, input_bytes, retry, result_seq, result_at, failed, result_bytes, counted)
			VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)`,
			c.seq, c.idx, c.session, c.at, c.tool, c.id, c.input, one(c.retry), resultSeq, resultAt, one(c.failed), c.resultBytes, one(counts))
		if err != nil {
			return err
		}
	}
	b.tools.calls = nil
	return nil
}

// countedFrom says of the responses with bills from one seq to another which count.
func (b *usageBatch) countedFrom(ctx context.Context, first, last int64) (map[int64]bool, error) {
	rows, err := b.tx.Rows(ctx, "SELECT seq, counted > 0 FROM usage WHERE seq BETWEEN ? AND ?", first, last)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	counted := map[int64]bool{}
	for rows.Next() {
		var seq int64
		var counts bool
		if err := rows.Scan(&seq, &counts); err != nil {
			return nil, err
		}
		counted[seq] = counts
	}
	return counted, rows.Err()
}

const addCallsSQL = `INSERT INTO tool_sums (session, day, tool, calls, failed, retries, no_result, input_bytes, result_bytes, millis)
VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)
ON CONFLICT (session, day, tool) DO UPDATE SET calls = calls + excluded.calls, failed = failed + excluded.failed,
	retries = retries + excluded.retries, no_result = no_result + excluded.no_result,
	input_bytes = input_bytes + excluded.input_bytes, result_bytes = result_bytes + excluded.result_bytes, millis = millis + excluded.millis`

// writeToolSums adds what changed to the sums.
func (b *usageBatch) writeToolSums(ctx context.Context) error {
	for _, k := range slices.SortedFunc(maps.Keys(b.tools.sums), toolKey.compare) {
		s := b.tools.sums[k]
		if s == (toolSum{}) {
			continue
		}
		if _, err := b.tx.Exec(ctx, addCallsSQL, k.session, k.day, k.tool, s.calls, s.failed, s.retries, s.noResult, s.input, s.result, s.millis); err != nil {
			return err
		}
		if s.calls >= 0 {
			continue
		}
		if _, err := b.tx.Exec(ctx, "DELETE FROM tool_sums WHERE session = ? AND day = ? AND tool = ? AND calls = 0", k.session, k.day, k.tool); err != nil {
			return err
		}
	}
	return nil
}
