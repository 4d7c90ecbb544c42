package sqlitestore_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/sessiontree/sessiontree/eventlog"
	"github.com/sessiontree/sessiontree/eventlog/js"
	"github.com/sessiontree/sessiontree/query"
	"github.com/sessiontree/sessiontree/sqlitestore"
)

// withPlans runs f on a store whose only session tried plan A, which failed, went back
// to the question and tried plan B.
func withPlans(f func(ctx context.Context, store *sqlitestore.Store) error) {
	ctx := context.Background()
	dir, err := os.MkdirTemp("", "sessions-")
	if err != nil {
		fmt.Println(err)
		return
	}
	defer os.RemoveAll(dir)
	now := time.Date(2026, 3, 2, 23, 0, 0, 0, time.UTC)
	store, err := sqlitestore.Open(ctx, filepath.Join(dir, "sessions.db"), sqlitestore.Options{
		Source: eventlog.Source{Now: func() time.Time { now = now.Add(10 * time.Second); return now }},
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer store.Close(ctx)
	if err = playPlans(ctx, store, now); err == nil {
		err = f(ctx, store)
	}
	if err != nil {
		fmt.Println(err)
	}
}

func playPlans(ctx context.Context, store *sqlitestore.Store, at time.Time) error {
	s, err := store.Create(ctx, eventlog.CreateOptions{ID: "plans", CWD: "/project"})
	if err != nil {
		return err
	}
	response := func(text string, tokens, cost float64, blocks ...js.Value) eventlog.Draft {
		m := eventlog.AssistantMessage(text, "acme", "coder-1", eventlog.Usage{Input: tokens, Cost: cost}, at)
		if len(blocks) > 0 {
			m.Value = js.WithMember(m.Value, "content", js.List(blocks...))
		}
		return eventlog.MessageDraft(m)
	}
	call := func(id, name string) js.Value {
		return js.Fields(js.Member{Key: "type", Value: js.Text("toolCall")}, js.Member{Key: "id", Value: js.Text(id)}, js.Member{Key: "name", Value: js.Text(name)})
	}
	result := func(id, text string, failed bool) eventlog.Draft {
		return eventlog.MessageDraft(eventlog.Message{Value: js.Fields(
			js.Member{Key: "role", Value: js.Text("toolResult")}, js.Member{Key: "toolCallId", Value: js.Text(id)},
			js.Member{Key: "content", Value: js.Text(text)}, js.Member{Key: "isError", Value: js.Boolean(failed)})})
	}
	_, err = s.Append(ctx, eventlog.MessageDraft(eventlog.UserMessage("Make the parser faster.", at)).WithID("question"),
		response("", 100, 0.01, call("c1", "bash")), result("c1", "FAIL: the parser panics", true), response("Plan A was slower.", 300, 0.03))
	if err != nil {
		return err
	}
	if _, err := s.MoveTo(ctx, eventlog.At("question"), nil); err != nil {
		return err
	}
	_, err = s.Append(ctx, response("", 200, 0.02, call("c2", "bash"), call("c3", "edit")), result("c2", "ok", false), response("The parser is fast.", 50, 0.005))
	return err
}

// What was spent, by day of a time zone: what was given up is told apart.
func ExampleStore_Usage() {
	withPlans(func(ctx context.Context, store *sqlitestore.Store) error {
		berlin, err := time.LoadLocation("Europe/Berlin")
		if err != nil {
			return err
		}
		report, err := store.Usage(ctx, query.UsageOptions{By: query.ByDay, Zone: berlin})
		if err != nil {
			return err
		}
		for _, day := range report.Rows {
			fmt.Printf("%s: %.3f for %d tokens, of it %.3f on plans that were given up\n",
				day.Key, day.Total().Money(), day.Total().Tokens(), day.Abandoned.Money())
		}
		return nil
	})
	// Output:
	// 2026-03-03: 0.065 for 650 tokens, of it 0.040 on plans that were given up
}

// How tools were used.
func ExampleStore_Tools() {
	withPlans(func(ctx context.Context, store *sqlitestore.Store) error {
		tools, err := store.Tools(ctx, query.WorkOptions{})
		if err != nil {
			return err
		}
		for _, t := range tools {
			fmt.Printf("%s: %d calls, %d failed, %d tried again, %d without a result\n", t.Name, t.Calls, t.Failed, t.Retries, t.NoResult)
		}
		return nil
	})
	// Output:
	// bash: 2 calls, 1 failed, 1 tried again, 0 without a result
	// edit: 1 calls, 0 failed, 0 tried again, 1 without a result
}

// What was said and done, the newest first.
func ExampleStore_Search() {
	withPlans(func(ctx context.Context, store *sqlitestore.Store) error {
		hits, err := store.Search(ctx, query.SearchOptions{Text: "parser"})
		if err != nil {
			return err
		}
		for _, h := range hits {
			branch := "abandoned"
			if h.Live {
				branch = "live"
			}
			fmt.Printf("%s %s %s: %s\n", h.Session, h.Kind, branch, h.Snippet)
		}
		return nil
	})
	// Output:
	// plans message live: The parser is fast.
	// plans result abandoned: FAIL: the parser panics
	// plans message live: Make the parser faster.
}

// Any question, in SQL. query.Views has the views.
func ExampleStore_SQL() {
	withPlans(func(ctx context.Context, store *sqlitestore.Store) error {
		return store.SQL(ctx, "SELECT class, count(*) AS responses, sum(tokens) AS tokens FROM v_usage GROUP BY class",
			func(names []string) error {
				fmt.Println(names)
				return nil
			},
			func(row []any) error {
				fmt.Println(row...)
				return nil
			})
	})
	// Output:
	// [class responses tokens]
	// abandoned 2 400
	// live 2 250
}
