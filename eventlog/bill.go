package eventlog

import (
	"crypto/sha256"
	"encoding/binary"
	"math"

	"github.com/sessiontree/sessiontree/eventlog/js"
)

// BillKind says what a billed response was made for.
type BillKind uint8

// The kinds of bills. Their numbers are kept in databases.
const (
	BillAssistant     BillKind = iota + 1 // a message of role assistant
	BillCompaction                        // the summary of a compaction
	BillBranchSummary                     // the summary of a branch that was left
	BillUsage                             // an entry of type usage: a call that wrote nothing else
	BillToolResult                        // what a tool spent on models of its own
)

var billKinds = [...]string{"", "assistant", "compaction", "branch_summary", "usage", "tool_result"}

func (k BillKind) String() string {
	if int(k) < len(billKinds) {
		return billKinds[k]
	}
	return ""
}

// NanoPerUnit is how many of [Bill.Cost] make one of the currency.
const NanoPerUnit = 1_000_000_000

// Bill is what one response of a model cost. Its numbers are integers, so that
// sums do not depend on the order in which they are made, and what is subtracted
// leaves nothing behind.
type Bill struct {
	Kind            BillKind
	Provider, Model string // "" where the entry does not say
	Input, Output   int64  // tokens
	CacheRead       int64
	CacheWrite      int64
	// Cost is in billionths of the currency that the host counts in (Pi: US dollars):
	// each is right to half a billionth, a million of them to a twentieth of a cent.
	Cost int64
	// Identity is the same for all copies of a bill, in whatever session they stand,
	// and in practice for nothing else: 64 bits of a hash of the entry's id, the time
	// inside the message, and all of the above. It does not depend on what a copy may
	// change (the parent, the time of the entry), or a purge (texts).
	Identity int64
}

// Numbers beyond these are no tokens and no money, but would overflow a sum.
const (
	maxTokens = 1e12
	maxCost   = 1e6 * NanoPerUnit
)

// Bill is what an entry has to pay for; ok is false for one that has nothing. An
// assistant message always has a bill, the other kinds if they hold a usage. A
// number that is missing, or none, is 0.
func (e Entry) Bill() (b Bill, ok bool) {
	from, usage, time := e.Value(), js.Value{}, js.Value{}
	switch {
	case e.kind == kindMessage && e.role == roleAssistant:
		b.Kind, from = BillAssistant, e.Message().Value
	case e.kind == kindMessage && e.role == roleToolResult:
		b.Kind, from = BillToolResult, e.Message().Value
	case e.kind == kindCompaction:
		b.Kind = BillCompaction
	case e.kind == kindBranchSummary:
		b.Kind = BillBranchSummary
	case e.kind == kindUsage:
		b.Kind = BillUsage
	default:
		return b, false
	}
	js.WalkChecked(from.JSON(), 0, func(key string, at int) int {
		end := js.SkipChecked(from.JSON(), at)
		switch v := js.Trusted(from.JSON()[at:end]); key {
		case "usage":
			usage = v
		case "provider":
			b.Provider, _ = v.Str()
		case "model":
			b.Model, _ = v.Str()
		case "timestamp":
			time = v
		}
		return end
	})
	if usage.Kind() != js.Object && b.Kind != BillAssistant {
		return Bill{}, false
	}
	b.read(usage)
	if b.Kind == BillCompaction || b.Kind == BillBranchSummary || b.Kind == BillUsage {
		time = js.Value{} // the entry's own
	}
	b.identify(e.id, time)
	return b, true
}

// read reads the numbers of a usage.
func (b *Bill) read(usage js.Value) {
	if usage.Kind() != js.Object {
		return
	}
	text := usage.JSON()
	js.WalkChecked(text, 0, func(key string, at int) int {
		end := js.SkipChecked(text, at)
		switch v := js.Trusted(text[at:end]); key {
		case "input":
			b.Input = bounded(v, 1, maxTokens)
		case "output":
			b.Output = bounded(v, 1, maxTokens)
		case "cacheRead":
			b.CacheRead = bounded(v, 1, maxTokens)
		case "cacheWrite":
			b.CacheWrite = bounded(v, 1, maxTokens)
		case "cost":
			b.Cost = bounded(v.Get("total"), NanoPerUnit, maxCost)
		}
		return end
	})
}

// bounded is a number times scale, rounded; 0 where it is none, and at most limit.
func bounded(v js.Value, scale, limit float64) int64 {
	f, _ := v.Float()
	if math.IsNaN(f) {
		return 0
	}
	return int64(math.Round(min(max(f*scale, -limit), limit)))
}

func (b *Bill) identify(id string, time js.Value) {
	text := make([]byte, 0, 256)
	for _, s := range []string{id, b.Provider, b.Model} {
		text = binary.AppendUvarint(text, uint64(len(s)))
		text = append(text, s...)
	}
	ms, _ := time.Float()
	text = binary.BigEndian.AppendUint64(append(text, byte(b.Kind)), math.Float64bits(ms))
	for _, n := range []int64{b.Input, b.Output, b.CacheRead, b.CacheWrite, b.Cost} {
		text = binary.AppendVarint(text, n)
	}
	sum := sha256.Sum256(text)
	b.Identity = int64(binary.BigEndian.Uint64(sum[:]))
}
