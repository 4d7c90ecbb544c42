package parquetexport

import (
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/sessiontree/sessiontree/eventlog"
	"github.com/sessiontree/sessiontree/eventlog/js"
	"github.com/sessiontree/sessiontree/migrations"
)

const (
	// logSQL has what tells entries apart: they never change, but for what a purge
	// takes out of them.
	logSQL = `SELECT e.seq, e.timestamp, coalesce(r.at, ''), e.type IN ('message', 'custom_message')
FROM events e LEFT JOIN redactions r ON r.seq = e.seq WHERE e.n > 0 ORDER BY e.seq`

	// entriesSQL is the entries in spans, which are a list of first << 20 | length - 1.
	entriesSQL = `SELECT e.seq, s.id, e.n, e.id, e.parent, e.type, e.timestamp, coalesce(r.at, ''), ` + migrations.Payload + `
FROM json_each('%') p CROSS JOIN events e CROSS JOIN sessions s LEFT JOIN redactions r ON r.seq = e.seq
WHERE e.seq BETWEEN p.value >> 20 AND (p.value >> 20) + (p.value & 0xfffff) AND s.key = e.session AND e.n > 0`

	usageSQL = `SELECT at, session, n, entry, cwd, kind, class, provider, model, input, output, cache_read, cache_write, tokens,
	CAST(round(cost * 1e9) AS INTEGER) FROM v_usage`
	callsSQL = `SELECT at, session, n, entry, call, tool, retry, failed, has_result, millis, input_bytes, result_bytes FROM v_tool_calls`
)

// query asks the database, row by row.
func (x *run) query(text string, row func(v values) error) error {
	return x.store.SQL(x.ctx, text, func([]string) error { return nil }, func(v []any) error { return row(values(v)) })
}

// values are those of a row; what is null is nothing.
type values []any

func (v values) text(i int) string  { s, _ := v[i].(string); return js.DecodeUTF8(s) }
func (v values) number(i int) int64 { n, _ := v[i].(int64); return n }
func (v values) boolean(i int) bool { return v.number(i) != 0 }
func (v values) optional(i int) *int64 {
	if n, ok := v[i].(int64); ok {
		return &n
	}
	return nil
}

// timeOf is an entry's time in ms since 1970, 0 where it cannot be read.
func timeOf(timestamp string) int64 {
	ms := js.ParseDate(timestamp)
	if math.IsNaN(ms) || ms < 0 {
		return 0
	}
	return int64(ms)
}

// scanLog finds the months of the entries, and of the messages among them.
func (x *run) scanLog() (entries, messages parts, err error) {
	entries, messages = parts{}, parts{}
	err = x.query(logSQL, func(v values) error {
		seq, timestamp, purged := v.number(0), v[1].(string), v[2].(string)
		month := monthOf(timeOf(timestamp))
		add := func(p *part) {
			p.add(seq, timestamp, purged)
			p.place(seq)
		}
		add(entries.of(month))
		if v.boolean(3) {
			add(messages.of(month))
		}
		return nil
	})
	return entries, messages, err
}

// scan finds the months of rows whose first column is their time.
func (x *run) scan(text string) (parts, error) {
	all := parts{}
	err := x.query(text, func(v values) error {
		all.of(monthOf(v.number(0))).add(v...)
		return nil
	})
	return all, err
}

const (
	spanBits = 20
	// listSpans is how many spans one statement gets.
	listSpans = 20_000
)

// entriesIn gives the entries of a month.
func (x *run) entriesIn(month string, p *part, each func(v values, at int64) error) (was digest, err error) {
	for spans := range slices.Chunk(p.spans, listSpans) {
		text := strings.Replace(entriesSQL, "%", listOf(spans), 1)
		err := x.query(text, func(v values) error {
			timestamp := v[6].(string)
			was.add(v.number(0), timestamp, v[7].(string))
			return each(v, timeOf(timestamp))
		})
		if err != nil {
			return was, err
		}
	}
	return was, nil
}

func listOf(spans []span) string {
	list := []byte{'['}
	for _, s := range spans {
		for first := s.first; first <= s.last; first += 1 << spanBits {
			if len(list) > 1 {
				list = append(list, ',')
			}
			list = strconv.AppendInt(list, first<<spanBits|(min(s.last-first+1, 1<<spanBits)-1), 10)
		}
	}
	return string(append(list, ']'))
}

func (x *run) entryRows(month string, p *part, write func(Entry) error) (digest, error) {
	return x.entriesIn(month, p, func(v values, at int64) error {
		return write(Entry{
			Seq: v.number(0), Session: v.text(1), N: v.number(2), Entry: v.text(3), Parent: v.text(4), Type: v.text(5),
			At: at, Timestamp: v.text(6), Payload: v.text(8),
		})
	})
}

func (x *run) messageRows(month string, p *part, write func(Message) error) (digest, error) {
	return x.entriesIn(month, p, func(v values, at int64) error {
		payload := v[8].(string)
		row := Message{Session: v.text(1), N: v.number(2), Entry: v.text(3), Parent: v.text(4), At: at, Bytes: int64(len(payload))}
		row.read(eventlog.TrustedEntry(payload))
		return write(row)
	})
}

// read reads what a message says out of its entry.
func (r *Message) read(e eventlog.Entry) {
	m := e.Message()
	if e.Type() == eventlog.TypeCustomMessage {
		r.Role = eventlog.RoleCustom
		m = eventlog.Message{Value: e.Value()} // which has its content in the same place
	} else {
		r.Role = js.DecodeUTF8(m.Role())
	}
	var texts []string
	for _, b := range m.Blocks() {
		if b.Type == "text" {
			texts = append(texts, b.Text)
		}
	}
	r.Text = js.DecodeUTF8(strings.Join(texts, "\n"))
	for key, to := range map[string]*string{"provider": &r.Provider, "model": &r.Model, "stopReason": &r.StopReason, "toolName": &r.Tool, "toolCallId": &r.Call} {
		text, _ := e.Message().Get(key).Str()
		*to = js.DecodeUTF8(text)
	}
}

func (x *run) usageRows(month string, _ *part, write func(Usage) error) (was digest, err error) {
	err = x.query(usageSQL+" WHERE "+monthSQL(month)+" ORDER BY at", func(v values) error {
		was.add(v...)
		return write(Usage{
			At: v.number(0), Session: v.text(1), N: v.number(2), Entry: v.text(3), CWD: v.text(4), Kind: v.text(5), Class: v.text(6), Provider: v.text(7), Model: v.text(8),
			Input: v.number(9), Output: v.number(10), CacheRead: v.number(11), CacheWrite: v.number(12), Tokens: v.number(13), Cost: v.number(14),
		})
	})
	return was, err
}

func (x *run) callRows(month string, _ *part, write func(ToolCall) error) (was digest, err error) {
	err = x.query(callsSQL+" WHERE "+monthSQL(month)+" ORDER BY at", func(v values) error {
		was.add(v...)
		return write(ToolCall{
			At: v.number(0), Session: v.text(1), N: v.number(2), Entry: v.text(3), Call: v.text(4), Tool: v.text(5),
			Retry: v.boolean(6), Failed: v.boolean(7), HasResult: v.boolean(8), Millis: v.optional(9), InputBytes: v.number(10), ResultBytes: v.number(11),
		})
	})
	return was, err
}
