package memory_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/sessiontree/sessiontree/eventlog"
	"github.com/sessiontree/sessiontree/eventlog/memory"
)

// BenchmarkAppend is what every backend pays for a user message of 256 bytes
// before it writes: from the text to an entry that is checked and indexed, in
// sessions of 10,000 entries.
func BenchmarkAppend(b *testing.B) {
	ctx := context.Background()
	const n = 10_000
	var texts [n]string
	for i := range texts {
		texts[i] = fmt.Sprintf("%08d ", i) + strings.Repeat("a word ", 35) + "ab"
	}
	b.ReportAllocs()
	for b.Loop() {
		s := eventlog.NewSession(memory.New(eventlog.Metadata{ID: "bench"}, nil, memory.Options{}))
		for _, text := range texts {
			if _, err := s.AppendMessage(ctx, eventlog.UserMessage(text, time.Now())); err != nil {
				b.Fatal(err)
			}
		}
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/n, "ns/append")
}
