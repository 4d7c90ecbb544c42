package jsonl_test

import (
	"context"
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/sessiontree/sessiontree/eventlog"
	"github.com/sessiontree/sessiontree/eventlog/js"
	"github.com/sessiontree/sessiontree/eventlog/jsonl"
)

// BenchmarkAppend puts an append of a user message with 256 bytes of text beside
// its limits, a few appends at a time in turn:
//
//   - bare: the write of the same bytes (and the fsync);
//   - limit: the least that any writer must do in Go, from the text to the file:
//     a random id, the time, the line in one buffer, the write;
//   - looked: the limit and one look at the path, without which nobody knows that
//     the file there is still the one that is open.
//
// Ours begins with the text as well. It reports the median time of each, and for
// each ratio the median over the turns with its quartiles.
//
// What did not work: os.Root (no cheaper than os.Stat), a bare fstat (it misses a
// file that was moved away and another put there). statx without the times saves
// a fifth of the look on Linux, and with it goes the notice of a rewrite in place.
func BenchmarkAppend(b *testing.B) {
	for _, sync := range []bool{true, false} {
		b.Run(fmt.Sprintf("sync=%v", sync), func(b *testing.B) { benchAppend(b, sync) })
	}
}

// turn is how many appends are timed at once: to ask the clock takes 60 ns.
const turn = 16

// lane is one of the ways of appending, with its times in ns an append.
type lane struct {
	name   string
	append func(text string) error
	times  []float64
}

func benchAppend(b *testing.B, sync bool) {
	ctx := context.Background()
	const before = 1000
	path := benchFile(b, before)
	s, err := jsonl.Open(ctx, path, jsonl.Options{NoSync: !sync})
	if err != nil {
		b.Fatal(err)
	}
	defer s.Close()
	session := eventlog.NewSession(s)
	last, err := session.AppendMessage(ctx, eventlog.UserMessage(benchText(0), time.Now()))
	if err != nil {
		b.Fatal(err)
	}
	line := []byte(last.JSON() + "\n")

	bare := newBareFile(b, path, sync)
	limit, limitLine := newBareFile(b, path, sync), lineMaker{parent: last.ID()}
	looked, lookedLine := newBareFile(b, path, sync), lineMaker{parent: last.ID()}
	lanes := []*lane{
		{name: "bare", append: func(string) error { return bare.write(line) }},
		{name: "limit", append: func(text string) error { return limit.write(limitLine.next(text)) }},
		{name: "looked", append: func(text string) error {
			if err := looked.look(); err != nil {
				return err
			}
			return looked.write(lookedLine.next(text))
		}},
		{name: "ours", append: func(text string) error {
			_, err := session.AppendMessage(ctx, eventlog.UserMessage(text, time.Now()))
			return err
		}},
	}
	var texts [turn]string
	for i := 0; b.Loop(); i++ {
		for k := range texts {
			texts[k] = benchText(i*turn + k)
		}
		for k := range lanes { // each comes first as often
			lanes[(i+k)%len(lanes)].run(b, texts[:])
		}
	}
	for _, l := range lanes {
		b.ReportMetric(quartiles(l.times)[1], l.name+"-ns")
	}
	for _, pair := range [][2]*lane{{lanes[1], lanes[0]}, {lanes[2], lanes[0]}, {lanes[3], lanes[0]}, {lanes[3], lanes[1]}, {lanes[3], lanes[2]}} {
		reportRatio(b, pair[0], pair[1])
	}
	// The limits write what a reader takes.
	for _, f := range []*bareFile{limit, looked} {
		if c, err := jsonl.Open(ctx, f.path, jsonl.Options{Strict: true}); err != nil {
			b.Fatal(err)
		} else if head, err := c.Head(ctx); err != nil || head.N != before+1+turn*len(lanes[0].times) {
			b.Fatal(head, err)
		}
	}
}

// benchText is 256 bytes that need no escape.
func benchText(i int) string { return fmt.Sprintf("%08d ", i) + strings.Repeat("a word ", 35) + "ab" }

func (l *lane) run(b *testing.B, texts []string) {
	start := time.Now()
	for _, text := range texts {
		if err := l.append(text); err != nil {
			b.Fatal(err)
		}
	}
	l.times = append(l.times, float64(time.Since(start).Nanoseconds())/float64(len(texts)))
}

func reportRatio(b *testing.B, of, to *lane) {
	ratios := make([]float64, len(of.times))
	for i := range ratios {
		ratios[i] = of.times[i] / to.times[i]
	}
	for i, q := range quartiles(ratios) {
		b.ReportMetric(q, of.name+"/"+to.name+[...]string{"-q1", "", "-q3"}[i])
	}
}

func quartiles(values []float64) (q [3]float64) {
	sorted := slices.Sorted(slices.Values(values))
	for i := range q {
		q[i] = sorted[(i+1)*len(sorted)/4]
	}
	return q
}

// bareFile is a copy of a session's file that is only written to.
type bareFile struct {
	*os.File
	path string
	is   os.FileInfo
	sync bool
}

func newBareFile(b testing.TB, session string, sync bool) *bareFile {
	text, err := os.ReadFile(session)
	if err != nil {
		b.Fatal(err)
	}
	f := &bareFile{path: filepath.Join(b.TempDir(), "session.jsonl"), sync: sync}
	if f.File, err = os.OpenFile(f.path, os.O_CREATE|os.O_RDWR|os.O_APPEND, 0o600); err == nil {
		b.Cleanup(func() { f.Close() })
		_, err = f.Write(text)
	}
	if err == nil {
		f.is, err = f.Stat()
	}
	if err != nil {
		b.Fatal(err)
	}
	return f
}

func (f *bareFile) write(line []byte) error {
	_, err := f.Write(line)
	if err == nil && f.sync {
		err = f.Sync()
	}
	return err
}

func (f *bareFile) look() error {
	is, err := os.Stat(f.path)
	if err == nil && !os.SameFile(is, f.is) {
		err = os.ErrNotExist
	}
	return err
}

// lineMaker writes the lines of a chain of user messages as cheaply as may be.
type lineMaker struct {
	buf    []byte
	parent string
}

func (l *lineMaker) next(text string) []byte {
	now := time.Now()
	var id [8]byte
	for i, r := 0, rand.Uint32(); i < len(id); i, r = i+1, r>>4 {
		id[i] = "0123456789abcdef"[r&15]
	}
	b := append(l.buf[:0], `{"type":"message","id":"`...)
	b = append(b, id[:]...)
	b = append(b, `","parentId":"`...)
	b = append(b, l.parent...)
	b = append(b, `","timestamp":"`...)
	b = js.AppendISO(b, now)
	b = append(b, `","message":{"role":"user","content":[{"type":"text","text":`...)
	b = appendText(b, text)
	b = append(b, `}],"timestamp":`...)
	b = strconv.AppendInt(b, now.UnixMilli(), 10)
	b = append(b, "}}\n"...)
	l.buf, l.parent = b, string(id[:])
	return b
}

// appendText quotes a text: as it is if no byte of it needs more, which eight
// bytes tell at a time.
func appendText(b []byte, text string) []byte {
	start := len(b) + 1
	b = append(append(b, '"'), text...)
	rest := b[start:]
	const ones = 0x0101010101010101
	var found uint64
	for ; len(rest) >= 8; rest = rest[8:] {
		w := binary.LittleEndian.Uint64(rest)
		quote, slash := w^'"'*ones, w^'\\'*ones
		found |= (w | (quote - ones) | (slash - ones) | (w - ' '*ones)) & (0x80 * ones)
	}
	for _, c := range rest {
		if c < ' ' || c == '"' || c == '\\' || c >= 0x80 {
			found = 1
		}
	}
	if found != 0 {
		return js.AppendQuote(b[:start-1], text)
	}
	return append(b, '"')
}
