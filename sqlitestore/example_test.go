package sqlitestore_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/sessiontree/sessiontree/eventlog"
	"github.com/sessiontree/sessiontree/sqlitestore"
)

// Ask, try plan A, go back to the question with a summary, try plan B.
func Example() {
	ctx := context.Background()
	dir, err := os.MkdirTemp("", "sessions-")
	if err != nil {
		fmt.Println(err)
		return
	}
	defer os.RemoveAll(dir)
	if err := planAPlanB(ctx, filepath.Join(dir, "sessions.db")); err != nil {
		fmt.Println(err)
	}
	// Output:
	// user: Make the parser faster.
	// branchSummary: Plan A was slower.
	// user: Try plan B.
	// 5 entries, none lost
}

func planAPlanB(ctx context.Context, path string) error {
	store, err := sqlitestore.Open(ctx, path, sqlitestore.Options{})
	if err != nil {
		return err
	}
	defer store.Close(ctx)
	s, err := store.Create(ctx, eventlog.CreateOptions{CWD: "/project"})
	if err != nil {
		return err
	}
	question, err := s.AppendMessage(ctx, eventlog.UserMessage("Make the parser faster.", time.Now()))
	if err != nil {
		return err
	}
	if _, err := s.AppendMessage(ctx, eventlog.UserMessage("Try plan A.", time.Now())); err != nil {
		return err
	}
	// Back to the question, with a summary of what is left behind, in one step.
	if _, err := s.MoveTo(ctx, eventlog.At(question.ID()), &eventlog.Summary{Text: "Plan A was slower."}); err != nil {
		return err
	}
	if _, err := s.AppendMessage(ctx, eventlog.UserMessage("Try plan B.", time.Now())); err != nil {
		return err
	}
	seen, err := s.BuildContext(ctx, eventlog.None()) // what the model gets to see
	if err != nil {
		return err
	}
	for _, m := range seen.Messages {
		text := m.PlainText()
		if summary, ok := m.Get("summary").Str(); ok {
			text = summary
		}
		fmt.Printf("%s: %s\n", m.Role(), text)
	}
	head, err := s.Head(ctx)
	if err != nil {
		return err
	}
	fmt.Printf("%d entries, none lost\n", head.N)
	return nil
}
