package sqlitestore_test

import (
	"fmt"
	"path/filepath"
	"testing"
	"time"

	"github.com/sessiontree/sessiontree/eventlog"
	"github.com/sessiontree/sessiontree/eventlog/js"
	"github.com/sessiontree/sessiontree/sqlitestore"
)

// compacted makes a session of n messages with a compaction that keeps
// the last kept of them.
func compacted(b testing.TB, session *eventlog.Session, n, kept int) {
	for from := 0; from < n; from += 10_000 {
		var drafts []eventlog.Draft
		for i := from; i < min(n, from+10_000); i++ {
			draft := eventlog.MessageDraft(benchMessage(i))
			if i == n-kept {
				draft = draft.WithID("kept")
			}
			drafts = append(drafts, draft)
			if i == n-kept {
				drafts = append(drafts, eventlog.CompactionDraft(eventlog.Compaction{Summary: "what was before", FirstKeptEntryID: js.Text("kept")}))
			}
		}
		if _, err := session.Append(ctx, drafts...); err != nil {
			b.Fatal(err)
		}
	}
}

// BenchmarkContext builds the context of the active branch: read each time, and
// from the cache, with nothing changed and after an append. "ns/message" is what
// the targets speak of.
func BenchmarkContext(b *testing.B) {
	for _, size := range []struct{ entries, kept int }{{1_000, 1_000}, {10_000, 10_000}, {100_000, 10_000}} {
		path := filepath.Join(b.TempDir(), "sessions.db")
		writer, err := sqlitestore.Open(ctx, path, sqlitestore.Options{Synchronous: sqlitestore.Normal, CacheBytes: -1})
		if err != nil {
			b.Fatal(err)
		}
		tree, err := writer.Create(ctx, eventlog.CreateOptions{ID: "s", CWD: "/project"})
		if err != nil {
			b.Fatal(err)
		}
		compacted(b, tree, size.entries, size.kept)
		context := func(b *testing.B, s *eventlog.Session) int {
			c, err := s.BuildContext(ctx, eventlog.None())
			if err != nil || len(c.Messages) < size.kept {
				b.Fatal(len(c.Messages), err)
			}
			return len(c.Messages)
		}
		name := fmt.Sprintf("messages=%d/of=%d/", size.kept, size.entries)
		b.Run(name+"read", func(b *testing.B) {
			for b.Loop() {
				context(b, tree)
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/float64(size.kept), "ns/message")
		})
		b.Run(name+"open", func(b *testing.B) {
			for b.Loop() {
				s, err := sqlitestore.Open(ctx, path, sqlitestore.Options{})
				if err != nil {
					b.Fatal(err)
				}
				tree, err := s.Open(ctx, eventlog.Metadata{ID: "s"})
				if err != nil {
					b.Fatal(err)
				}
				context(b, tree)
				s.Close(ctx)
			}
		})
		s, err := sqlitestore.Open(ctx, path, sqlitestore.Options{Synchronous: sqlitestore.Normal})
		if err != nil {
			b.Fatal(err)
		}
		cached, err := s.Open(ctx, eventlog.Metadata{ID: "s"})
		if err != nil {
			b.Fatal(err)
		}
		b.Run(name+"again", func(b *testing.B) {
			context(b, cached)
			for b.Loop() {
				context(b, cached)
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/float64(size.kept), "ns/message")
		})
		b.Run(name+"after-append", func(b *testing.B) {
			n := context(b, cached)
			var spent time.Duration
			for i := 0; b.Loop(); i++ {
				// By another store, as another process would.
				if _, err := tree.AppendMessage(ctx, benchMessage(i)); err != nil {
					b.Fatal(err)
				}
				start := time.Now()
				n = context(b, cached)
				spent += time.Since(start)
			}
			b.ReportMetric(float64(spent.Nanoseconds())/float64(b.N)/float64(n), "ns/message")
		})
		s.Close(ctx)
		writer.Close(ctx)
	}
}
