package parquetexport

import (
	"encoding/binary"
	"fmt"
	"hash/fnv"
	"math"
	"time"
)

// noMonth is what Hive calls the partition of null.
const noMonth = "__HIVE_DEFAULT_PARTITION__"

// monthOf is the month of a time in ms since 1970, UTC. Years that have not four
// digits are none.
func monthOf(ms int64) string {
	if ms <= 0 || ms >= endOfTime {
		return noMonth
	}
	return time.UnixMilli(ms).UTC().Format("2006-01")
}

var endOfTime = time.Date(10000, 1, 1, 0, 0, 0, 0, time.UTC).UnixMilli()

// monthSQL is the condition that at is in a month.
func monthSQL(month string) string {
	from, err := time.Parse("2006-01", month)
	if err != nil {
		return fmt.Sprintf("(at <= 0 OR at >= %d)", endOfTime)
	}
	return fmt.Sprintf("at >= %d AND at < %d", max(from.UnixMilli(), 1), from.AddDate(0, 1, 0).UnixMilli())
}

// digest is the fingerprint of rows, in whatever order they come.
type digest struct {
	rows int64
	sum  uint64
}

// format rises when files would be others for the same rows.
const format = 1

func (p digest) String() string { return fmt.Sprintf("%d/%d/%016x", format, p.rows, p.sum) }

// add adds a row.
func (p *digest) add(values ...any) {
	h := fnv.New128a()
	var b [8]byte
	number := func(kind byte, n uint64) {
		binary.LittleEndian.PutUint64(b[:], n)
		h.Write([]byte{kind})
		h.Write(b[:])
	}
	for _, v := range values {
		switch v := v.(type) {
		case int64:
			number('i', uint64(v))
		case float64:
			number('f', math.Float64bits(v))
		case string:
			number('s', uint64(len(v)))
			h.Write([]byte(v))
		case []byte:
			number('b', uint64(len(v)))
			h.Write(v)
		default:
			h.Write([]byte{'n'})
		}
	}
	p.rows++
	p.sum += binary.LittleEndian.Uint64(h.Sum(nil)[8:])
}

// part is a month of a table.
type part struct {
	digest
	spans []span // of entries: where they are in the log
}

// span is a run of entries, by seq.
type span struct{ first, last int64 }

// parts are the months of a table.
type parts map[string]*part

func (p parts) of(month string) *part {
	if p[month] == nil {
		p[month] = &part{}
	}
	return p[month]
}

// place adds an entry's place.
func (p *part) place(seq int64) {
	if n := len(p.spans); n > 0 && p.spans[n-1].last == seq-1 {
		p.spans[n-1].last = seq
		return
	}
	p.spans = append(p.spans, span{seq, seq})
}
