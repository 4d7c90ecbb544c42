package sqlitestore_test

import (
	"context"
	"database/sql"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	_ "modernc.org/sqlite"

	"github.com/sessiontree/sessiontree/eventlog"
	"github.com/sessiontree/sessiontree/sqlitestore"
)

// The benchmarks put each operation beside its limit: the same bytes through
// bare SQL in the same driver, turn by turn, so that a noisy machine disturbs
// both. They report the ratio of the medians as "×limit".

var ctx = context.Background()

// benchMessage is an entry of about 480 bytes of JSON, its text 256 of them.
func benchMessage(i int) eventlog.Message {
	at := time.UnixMilli(1767225600000 + int64(i)*1000)
	text := fmt.Sprintf("%08d ", i) + strings.Repeat("a word ", 35)
	if i%2 == 0 {
		return eventlog.UserMessage(text, at)
	}
	return eventlog.AssistantMessage(text, "acme", "coder-1", eventlog.Usage{Input: 100, Output: 20, CacheRead: 5, CacheWrite: 3, Cost: 0.01}, at)
}

func benchStore(b *testing.B) *sqlitestore.Store {
	s, err := sqlitestore.Open(ctx, filepath.Join(b.TempDir(), "sessions.db"), sqlitestore.Options{})
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { s.Close(ctx) })
	return s
}

// benchChain is a session that is a chain of n entries.
func benchChain(b *testing.B, s *sqlitestore.Store, n int) *eventlog.Session {
	session, err := s.Create(ctx, eventlog.CreateOptions{CWD: "/project"})
	if err != nil {
		b.Fatal(err)
	}
	for from := 0; from < n; from += 10_000 {
		drafts := make([]eventlog.Draft, 0, 10_000)
		for i := from; i < min(n, from+10_000); i++ {
			drafts = append(drafts, eventlog.MessageDraft(benchMessage(i)))
		}
		if _, err := session.Append(ctx, drafts...); err != nil {
			b.Fatal(err)
		}
	}
	return session
}

// bare is a database of one table, with the same pragmas.
func bare(b *testing.B) *sql.DB {
	db, err := sql.Open("sqlite", "file:"+filepath.Join(b.TempDir(), "bare.db")+"?_pragma=journal_mode(wal)&_pragma=synchronous(full)")
	if err != nil {
		b.Fatal(err)
	}
	db.SetMaxOpenConns(1)
	b.Cleanup(func() { db.Close() })
	if _, err := db.Exec("CREATE TABLE bare (seq INTEGER PRIMARY KEY, payload TEXT NOT NULL) STRICT"); err != nil {
		b.Fatal(err)
	}
	return db
}

// pairs collects the times of an operation and of its limit.
type pairs struct{ ours, limit []time.Duration }

func (p *pairs) run(b *testing.B, ours, limit func() error) {
	for _, step := range []struct {
		f  func() error
		to *[]time.Duration
	}{{ours, &p.ours}, {limit, &p.limit}} {
		start := time.Now()
		if err := step.f(); err != nil {
			b.Fatal(err)
		}
		*step.to = append(*step.to, time.Since(start))
	}
}

func (p *pairs) report(b *testing.B, each int) {
	median := func(d []time.Duration) float64 {
		slices.Sort(d)
		return float64(d[len(d)/2]) / float64(each)
	}
	ours, limit := median(p.ours), median(p.limit)
	b.ReportMetric(ours, "ours-ns")
	b.ReportMetric(limit, "limit-ns")
	b.ReportMetric(ours/limit, "×limit")
}

func BenchmarkAppend(b *testing.B) {
	for _, size := range []int{1_000, 100_000} {
		b.Run(fmt.Sprintf("at=%d", size), func(b *testing.B) {
			session := benchChain(b, benchStore(b), size)
			insert, err := bare(b).Prepare("INSERT INTO bare (payload) VALUES (?)")
			if err != nil {
				b.Fatal(err)
			}
			var p pairs
			for i := 0; b.Loop(); i++ {
				m := benchMessage(i)
				var text string
				p.run(b, func() error {
					e, err := session.AppendMessage(ctx, m)
					text = e.JSON()
					return err
				}, func() error {
					_, err := insert.Exec(text)
					return err
				})
			}
			p.report(b, 1)
		})
	}
}

// BenchmarkBranchAt opens a branch at a random depth of a chain, in one append.
func BenchmarkBranchAt(b *testing.B) {
	for _, size := range []int{1_000, 100_000} {
		b.Run(fmt.Sprintf("chain=%d", size), func(b *testing.B) {
			session := benchChain(b, benchStore(b), size)
			var ids []string
			for e, err := range session.Entries(ctx, 0, eventlog.All) {
				if err != nil {
					b.Fatal(err)
				}
				ids = append(ids, e.ID())
			}
			insert, err := bare(b).Prepare("INSERT INTO bare (payload) VALUES (?)")
			if err != nil {
				b.Fatal(err)
			}
			var p pairs
			for i := 0; b.Loop(); i++ {
				m := benchMessage(i)
				at := eventlog.At(ids[i*7919%len(ids)])
				var text string
				p.run(b, func() error {
					e, err := session.AppendAt(ctx, at, eventlog.MessageDraft(m))
					if err == nil {
						text = e[0].JSON()
					}
					return err
				}, func() error {
					_, err := insert.Exec(text)
					return err
				})
			}
			p.report(b, 1)
		})
	}
}

func BenchmarkMove(b *testing.B) {
	session := benchChain(b, benchStore(b), 10_000)
	var ids []string
	for e, err := range session.Entries(ctx, 0, eventlog.All) {
		if err != nil {
			b.Fatal(err)
		}
		ids = append(ids, e.ID())
	}
	insert, err := bare(b).Prepare("INSERT INTO bare (payload) VALUES (?)")
	if err != nil {
		b.Fatal(err)
	}
	var p pairs
	for i := 0; b.Loop(); i++ {
		p.run(b, func() error {
			_, err := session.MoveTo(ctx, eventlog.At(ids[i*7919%len(ids)]), nil)
			return err
		}, func() error {
			_, err := insert.Exec(`{"type":"leaf","id":"00000000","parentId":"00000000","timestamp":"2026-01-01T00:00:00.000Z","targetId":"00000000"}`)
			return err
		})
	}
	p.report(b, 1)
}

// benchComb is a comb: at each level a dead child, then on from its sibling.
func benchComb(b *testing.B, s *sqlitestore.Store, levels int) *eventlog.Session {
	session, err := s.Create(ctx, eventlog.CreateOptions{CWD: "/project"})
	if err != nil {
		b.Fatal(err)
	}
	parent := eventlog.None()
	for from := 0; from < levels; from += 1000 {
		var drafts []eventlog.Draft
		for i := from; i < min(levels, from+1000); i++ {
			id := fmt.Sprintf("level-%d", i)
			drafts = append(drafts,
				eventlog.MessageDraft(benchMessage(i)).WithID(id+"-dead").Under(parent),
				eventlog.MessageDraft(benchMessage(i)).WithID(id).Under(parent))
			parent = eventlog.At(id)
		}
		if _, err := session.Append(ctx, drafts...); err != nil {
			b.Fatal(err)
		}
	}
	return session
}

// BenchmarkBranch reads whole branches, beside a range scan of as many rows.
func BenchmarkBranch(b *testing.B) {
	for _, shape := range []struct {
		name string
		make func(*testing.B, *sqlitestore.Store) *eventlog.Session
		n    int
	}{
		{"chain=100000", func(b *testing.B, s *sqlitestore.Store) *eventlog.Session { return benchChain(b, s, 100_000) }, 100_000},
		{"chain=1000", func(b *testing.B, s *sqlitestore.Store) *eventlog.Session { return benchChain(b, s, 1_000) }, 1_000},
		{"comb=10000", func(b *testing.B, s *sqlitestore.Store) *eventlog.Session { return benchComb(b, s, 10_000) }, 10_000},
	} {
		b.Run(shape.name, func(b *testing.B) {
			session := shape.make(b, benchStore(b))
			db := bare(b)
			tx, err := db.Begin()
			if err != nil {
				b.Fatal(err)
			}
			branch, err := session.Branch(ctx, eventlog.None())
			if err != nil || len(branch) != shape.n {
				b.Fatal(len(branch), err)
			}
			for _, e := range branch {
				if _, err := tx.Exec("INSERT INTO bare (payload) VALUES (?)", e.JSON()); err != nil {
					b.Fatal(err)
				}
			}
			if err := tx.Commit(); err != nil {
				b.Fatal(err)
			}
			var p pairs
			for b.Loop() {
				p.run(b, func() error {
					_, err := session.Branch(ctx, eventlog.None())
					return err
				}, func() error {
					rows, err := db.Query("SELECT payload FROM bare WHERE seq BETWEEN 1 AND ?", shape.n)
					if err != nil {
						return err
					}
					defer rows.Close()
					texts := make([]string, 0, shape.n)
					var raw sql.RawBytes
					for rows.Next() {
						if err := rows.Scan(&raw); err != nil {
							return err
						}
						texts = append(texts, string(raw))
					}
					if len(texts) != shape.n {
						b.Fatal(len(texts))
					}
					return rows.Err()
				})
			}
			p.report(b, shape.n)
		})
	}
}

// BenchmarkBuild appends in batches of 10,000, beside as many bare inserts in
// one transaction.
func BenchmarkBuild(b *testing.B) {
	const n = 10_000
	session := benchChain(b, benchStore(b), 1)
	db := bare(b)
	drafts := make([]eventlog.Draft, n)
	var p pairs
	for i := 0; b.Loop(); i++ {
		for k := range drafts {
			drafts[k] = eventlog.MessageDraft(benchMessage(i*n + k))
		}
		var entries []eventlog.Entry
		p.run(b, func() (err error) {
			entries, err = session.Append(ctx, drafts...)
			return err
		}, func() error {
			tx, err := db.Begin()
			if err != nil {
				return err
			}
			defer tx.Rollback()
			insert, err := tx.Prepare("INSERT INTO bare (payload) VALUES (?)")
			if err != nil {
				return err
			}
			for _, e := range entries {
				if _, err := insert.Exec(e.JSON()); err != nil {
					return err
				}
			}
			return tx.Commit()
		})
	}
	p.report(b, n)
}

// BenchmarkList lists 10,000 sessions: all of them, and the first page.
func BenchmarkList(b *testing.B) {
	s := benchStore(b)
	const sessions = 10_000
	for i := range sessions {
		session, err := s.Create(b.Context(), eventlog.CreateOptions{CWD: fmt.Sprint("/project/", i%50)})
		if err != nil {
			b.Fatal(err)
		}
		_, err = session.Append(b.Context(), user("Please look at the failing test, and say what you find."))
		if err != nil {
			b.Fatal(err)
		}
	}
	list := func(b *testing.B, n int) {
		b.ReportAllocs()
		for b.Loop() {
			left := n
			for _, err := range s.Sessions(b.Context(), sqlitestore.ListOptions{}) {
				if err != nil {
					b.Fatal(err)
				}
				if left--; left == 0 {
					break
				}
			}
			if left != 0 {
				b.Fatal(left)
			}
		}
	}
	b.Run("all", func(b *testing.B) { list(b, sessions) })
	b.Run("first=50", func(b *testing.B) { list(b, 50) })
}
