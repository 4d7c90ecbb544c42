package shape

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"time"

	"github.com/sessiontree/sessiontree/eventlog"
	"github.com/sessiontree/sessiontree/eventlog/js"
)

// builder hands entries over one by one until there are enough, or nobody wants
// more.
type builder struct {
	rng   *rand.Rand
	size  int
	start time.Time // of the first entry; each is a second later
	n     int       // entries given
	ended bool
	yield func(eventlog.Entry) bool
}

func newBuilder(size int, seed uint64, start time.Time, yield func(eventlog.Entry) bool) *builder {
	return &builder{rng: rand.New(rand.NewPCG(seed, 0x5e55107ee)), size: size, start: start, yield: yield}
}

// more says whether another entry is wanted.
func (b *builder) more() bool { return !b.ended && b.n < b.size }

// firstStart is when trees begin that are not told.
var firstStart = time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)

func (b *builder) now() time.Time { return b.start.Add(time.Duration(b.n) * time.Second) }

// id is the id of the entry that comes next: eight hexadecimal digits, as in Pi,
// that look random and never repeat, since an odd factor permutes 2^32.
func (b *builder) id() string { return ID(b.n) }

// ID is the id of the entry number n, from 0, of every drawn tree.
func ID(n int) string { return fmt.Sprintf("%08x", uint32(n+1)*2654435761) }

// add gives an entry of a type below parent ("" for a root), and its id. Once
// nothing more is wanted it gives nothing.
func (b *builder) add(typ eventlog.Type, parent string, fields ...js.Member) string {
	if !b.more() {
		return parent
	}
	id := b.id()
	up := js.NullValue()
	if parent != "" {
		up = js.Text(parent)
	}
	all := append([]js.Member{
		field("type", js.Text(string(typ))),
		field("id", js.Text(id)),
		field("parentId", up),
		field("timestamp", js.Text(js.ISO(b.now()))),
	}, fields...)
	b.ended = !b.yield(eventlog.TrustedEntry(js.Fields(all...).JSON()))
	b.n++
	return id
}

func field(key string, v js.Value) js.Member { return js.Member{Key: key, Value: v} }

func (b *builder) message(parent string, m eventlog.Message) string {
	return b.add(eventlog.TypeMessage, parent, field("message", m.Value))
}

// textSize is the length of the texts of the plain shapes.
const textSize = 256

// plain gives a user or an assistant message, by turns.
func (b *builder) plain(parent string) string {
	if !b.more() {
		return parent
	}
	return b.message(parent, Plain(b.rng, b.n, b.now()))
}

// Plain is a message of the plain shapes: of the user where n is even, else of
// the assistant.
func Plain(rng *rand.Rand, n int, at time.Time) eventlog.Message {
	text := words(rng, textSize)
	if n%2 == 0 {
		return eventlog.UserMessage(text, at)
	}
	return eventlog.AssistantMessage(text, provider, model, eventlog.Usage{Input: 100, Output: 20, CacheRead: 5, CacheWrite: 3, Cost: 0.01}, at)
}

const provider, model = "acme", "coder-1"

// words is a text of exactly n bytes.
func words(rng *rand.Rand, n int) string {
	var b strings.Builder
	b.Grow(n + 16)
	for b.Len() < n {
		b.WriteString(vocabulary[rng.IntN(len(vocabulary))])
		b.WriteByte(' ')
	}
	return b.String()[:n]
}

var vocabulary = strings.Fields(`the a of to in for with on from by it is was be are this that which
	function test file line error parser import export branch commit merge build cache index query table
	row column page byte string number list map tree node leaf root path parent child entry session
	faster slower wrong right missing broken fixed changed added removed renamed moved read write open close
	run again before after while until every first last next other same new old small large deep flat
	why how what when where should could would must can try check find show make use keep split join`)
