package bench

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/sessiontree/sessiontree/bench/backend"
	"github.com/sessiontree/sessiontree/bench/shape"
	"github.com/sessiontree/sessiontree/eventlog"
)

// A corpus is many sessions of the realistic shape in one store, begun over two
// years, a word that stands nowhere else in every hundredth of them.
const (
	corpus         = "corpus" // in place of a shape, in rows
	corpusSession  = 200      // entries in a session
	corpusDays     = 730
	rareWordEvery  = 100
	rareWord       = "xylophone"
	commonWord     = "parser"
	commonWords    = "error line"
	absentWord     = "zeppelin"
	analysesRounds = 11
)

// analytics fills a store with a corpus, and asks it what people ask of all their
// sessions. The limit is the same question as plain SQL: over the rows of the view,
// without its sums, and of the full-text index, without the entries; for a page of
// rare hits, of which most of the time is reading, with them too.
func (b *bed) analytics(ctx context.Context) error {
	all := &bed{plan: b.plan, dir: filepath.Join(b.dir, corpus), rng: b.rng}
	all.shape, all.size = shape.Shape{Name: corpus}, b.config.Corpus
	defer func() {
		all.close(context.WithoutCancel(ctx))
		os.RemoveAll(all.dir)
	}()
	for _, c := range b.stores {
		if c.limit {
			continue
		}
		if _, err := c.do(ctx, backend.Request{Op: backend.Tools}); unsupported(err) {
			continue
		}
		if err := all.add(ctx, c.Backend, false); err != nil {
			return err
		}
	}
	if len(all.stores) == 0 {
		return nil
	}
	for _, step := range []func(context.Context) error{all.fill, all.questions, all.catchUp} {
		err := all.settle(ctx, corpus)
		if err == nil {
			err = step(ctx)
		}
		if err != nil {
			return err
		}
	}
	b.rows, b.notRun = append(b.rows, all.rows...), append(b.notRun, all.notRun...)
	return nil
}

// fill appends the corpus. Not measured: batches and imports are, elsewhere.
func (b *bed) fill(ctx context.Context) error {
	realistic, err := shape.Find("realistic")
	if err != nil {
		return err
	}
	sessions := max(b.size/corpusSession, 1)
	for i := range sessions {
		begin := time.Date(2024, 1, 1, 8, 0, 0, 0, time.UTC).Add(corpusDays * 24 * time.Hour * time.Duration(i) / time.Duration(sessions))
		var lines []string
		for e := range realistic.From(begin).Entries(corpusSession, b.config.Seed+uint64(i)) {
			lines = append(lines, e.JSON())
		}
		name := fmt.Sprintf("%s-%d", corpus, i)
		requests := []backend.Request{
			{Op: backend.Create, Session: name},
			{Op: backend.Build, Session: name, Lines: lines},
		}
		if i%rareWordEvery == 0 {
			requests = append(requests, backend.Request{Op: backend.Append, Session: name, Lines: []string{eventlog.UserMessage(rareWord, begin).JSON()}})
		}
		for _, r := range append(requests, backend.Request{Op: backend.Leave, Session: name}) {
			for _, c := range b.stores {
				if _, err := c.do(ctx, r); err != nil {
					return err
				}
			}
		}
	}
	// Until the views have it all nothing is a question of reading.
	return b.ask(ctx, backend.Request{Op: backend.Tools}, backend.Request{Op: backend.Search, Text: rareWord})
}

func (b *bed) ask(ctx context.Context, requests ...backend.Request) error {
	for _, r := range requests {
		for _, c := range b.stores {
			if _, err := c.do(ctx, r); err != nil {
				return err
			}
		}
	}
	return nil
}

func (b *bed) questions(ctx context.Context) error {
	usage := func(by string) backend.Request { return backend.Request{Op: backend.Usage, By: by} }
	search := func(text string, rank bool) backend.Request {
		return backend.Request{Op: backend.Search, Text: text, Rank: rank}
	}
	for _, q := range []struct {
		name  string
		about backend.Request
		// The limit reads the entries too.
		entries bool
	}{
		{"usage-by-day", usage("day"), false},
		{"usage-by-month", usage("month"), false},
		{"usage-by-model", usage("model"), false},
		{"usage-by-session", usage("session"), false},
		{"tools", backend.Request{Op: backend.Tools}, false},
		{"search-common", search(commonWord, false), false},
		{"search-rare", search(rareWord, false), false},
		{"search-absent", search(absentWord, false), false},
		{"search-ranked-common", search(commonWords, true), false},
		{"search-ranked-rare", search(rareWord, true), false},
		{"search-ranked-rare-page", search(rareWord, true), true},
	} {
		for _, c := range b.stores {
			r := Row{Operation: q.name, Backend: c.Name, Shape: corpus, Size: b.size, Unit: Nanos, Against: "plain SQL"}
			plain := q.about
			plain.Plain, plain.Entries = true, q.entries
			if q.entries {
				r.Against = "plain SQL with entries"
			}
			if err := b.ask(ctx, q.about, plain); err != nil { // warm
				return err
			}
			for range b.config.samples(analysesRounds) {
				ours, err := c.do(ctx, q.about)
				if err != nil {
					return err
				}
				bare, err := c.do(ctx, plain)
				if err != nil {
					return err
				}
				r.Samples, r.Limit = append(r.Samples, float64(ours.Nanos)), append(r.Limit, float64(bare.Nanos))
			}
			b.row(r)
		}
	}
	return nil
}

// catchUp makes each view from nothing, and those that are no search together.
func (b *bed) catchUp(ctx context.Context) error {
	for _, c := range b.stores {
		sum := Row{Operation: "catch-up", Backend: c.Name, Shape: corpus, Size: b.size, Unit: NanosPerEntry, Entries: float64(b.size), Samples: []float64{0}}
		for _, view := range c.Views {
			reply, err := c.do(ctx, backend.Request{Op: backend.Rebuild, View: view})
			if err != nil {
				return err
			}
			each := float64(reply.Nanos) / float64(b.size)
			b.row(Row{Operation: "catch-up-" + view, Backend: c.Name, Shape: corpus, Size: b.size, Unit: NanosPerEntry, Entries: float64(b.size), Samples: []float64{each}})
			if view != searchView {
				sum.Samples[0] += each
			}
		}
		b.row(sum)
	}
	return nil
}

// searchView has a target of its own.
const searchView = "search"
