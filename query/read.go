package query

import (
	"context"
	"github.com/sessiontree/sessiontree/migrations"
	"slices"
	"strconv"

	"github.com/sessiontree/sessiontree/eventlog"
)

// A branch is a list of spans. It is read in one query that is given them as a
// JSON list, root first, so that no row is ever sorted.

// Where the spans of a branch have fewer entries than this on the average, each
// entry is named; else each span.
const shortSpan = 8

// A span in the list is its first key above this many bits, and how many come
// behind it.
const spanBits = 20

// The four ways to read. By the seqs of the log where they are known to follow
// each other, which saves a look-up an entry; else by the n of a session.
const (
	seqsSQL  = `SELECT ` + migrations.Payload + ` FROM json_each(?1) r CROSS JOIN events e WHERE e.seq = r.value`
	spansSQL = `SELECT ` + migrations.Payload + ` FROM json_each(?1) r CROSS JOIN events e
WHERE e.seq BETWEEN r.value >> 20 AND (r.value >> 20) + (r.value & 0xfffff)`
	entriesSQL = `SELECT ` + migrations.Payload + ` FROM json_each(?1) r CROSS JOIN events e WHERE e.session = ?2 AND e.n = r.value`
	sparseSQL  = `SELECT ` + migrations.Payload + ` FROM json_each(?1) r CROSS JOIN events e
WHERE e.session = ?2 AND e.n BETWEEN r.value >> 20 AND (r.value >> 20) + (r.value & 0xfffff)`
)

// plan is how spans are read.
type plan struct {
	short bool // each entry is named, not each span
	dense bool // by seq
}

func planOf(spans []span) plan {
	p := plan{dense: true}
	var total int64
	for _, s := range spans {
		total += s.high - s.low + 1
		p.dense = p.dense && s.high <= s.dense
	}
	p.short = total < int64(shortSpan*len(spans))
	return p
}

func (p plan) sql() string {
	switch {
	case p.dense && p.short:
		return seqsSQL
	case p.dense:
		return spansSQL
	case p.short:
		return entriesSQL
	default:
		return sparseSQL
	}
}

// add puts a span into a list.
func (p plan) add(list []byte, s span) []byte {
	low, high := s.low, s.high
	if p.dense {
		low, high = s.key+s.low-s.first, s.key+s.high-s.first
	}
	for low <= high {
		value, step := low, int64(1)
		if !p.short {
			step = min(high-low+1, 1<<spanBits)
			value = low<<spanBits | (step - 1)
		}
		list = append(strconv.AppendInt(list, value, 10), ',')
		low += step
	}
	return list
}

// Branch reads the entries from depth stop down to p, root first. It fails with
// [eventlog.ErrStorage] when the views lack rows: a branch is never cut short.
func Branch(ctx context.Context, c Conn, d eventlog.Dialect, kept Ways, p Place, stop int64) ([]eventlog.Entry, error) {
	spans, err := kept.path(ctx, c, p, stop)
	if err != nil {
		return nil, err
	}
	slices.Reverse(spans)
	total := p.Depth - stop + 1
	entries, err := readSpans(ctx, c, d, spans, total)
	if err == nil && int64(len(entries)) != total {
		err = eventlog.Errorf(eventlog.StorageFailed, "the branch views lack rows: a branch of %d entries has %d; rebuild them", total, len(entries))
	}
	return entries, err
}

// listSpans is how many spans one query gets.
const listSpans = 1 << 14

// readSpans reads spans that have so many entries in all, each few of them in the
// way that suits them.
func readSpans(ctx context.Context, c Conn, d eventlog.Dialect, spans []span, total int64) (entries []eventlog.Entry, err error) {
	for part := range slices.Chunk(spans, listSpans) {
		more, err := planOf(part).read(ctx, c, d, part)
		if err != nil {
			return nil, err
		}
		if len(part) == len(spans) {
			return more, nil
		}
		entries = append(slices.Grow(entries, max(int(total)-len(entries), 0)), more...)
	}
	return entries, nil
}

// read reads spans. By seq it does not matter whose they are; by n it takes a
// query for each session in turn.
func (p plan) read(ctx context.Context, c Conn, d eventlog.Dialect, spans []span) (entries []eventlog.Entry, err error) {
	for len(spans) > 0 {
		n := len(spans)
		if !p.dense {
			n = 1
			for n < len(spans) && spans[n].session == spans[0].session {
				n++
			}
		}
		list := []byte{'['}
		for _, s := range spans[:n] {
			list = p.add(list, s)
		}
		list[len(list)-1] = ']'
		args := []any{string(list)}
		if !p.dense {
			args = append(args, spans[0].session)
		}
		rows, err := c.Rows(ctx, p.sql(), args...)
		if err != nil {
			return nil, err
		}
		more, err := Entries(rows, d)
		if err != nil {
			return nil, err
		}
		if spans = spans[n:]; len(entries) == 0 {
			entries = more
		} else {
			entries = append(entries, more...)
		}
	}
	return entries, nil
}
