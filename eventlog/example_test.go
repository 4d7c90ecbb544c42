package eventlog_test

import (
	"context"
	"fmt"
	"time"

	"github.com/sessiontree/sessiontree/eventlog"
	"github.com/sessiontree/sessiontree/eventlog/memory"
)

// A session is made, grows, goes back to an earlier entry and grows another
// branch there. The model sees the branch that leads to the leaf.
func Example() {
	ctx := context.Background()
	repo := memory.NewRepo(eventlog.Source{})
	s, err := repo.Create(ctx, eventlog.CreateOptions{CWD: "/project"})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer s.Close()

	now := time.Now()
	question, err := s.AppendMessage(ctx, eventlog.UserMessage("Which parser do we take?", now))
	if err != nil {
		fmt.Println(err)
		return
	}
	answer := eventlog.AssistantMessage("The table-driven one.", "acme", "coder-1", eventlog.Usage{Input: 120, Output: 9, Cost: 0.002}, now)
	if _, err := s.AppendMessage(ctx, answer); err != nil {
		fmt.Println(err)
		return
	}

	// Back to the question, with word of what was tried.
	if _, err := s.MoveTo(ctx, eventlog.At(question.ID()), &eventlog.Summary{Text: "The table-driven parser was too large."}); err != nil {
		fmt.Println(err)
		return
	}
	if _, err := s.AppendMessage(ctx, eventlog.UserMessage("And by hand?", now)); err != nil {
		fmt.Println(err)
		return
	}

	branch, err := s.Branch(ctx, eventlog.None())
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, e := range branch {
		fmt.Println(e.Type())
	}
	c, err := s.BuildContext(ctx, eventlog.None())
	if err != nil {
		fmt.Println(err)
		return
	}
	messages, err := eventlog.Harness.ToLLM(c.Messages)
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, m := range messages {
		fmt.Printf("%s: %.30q\n", m.Role(), m.PlainText())
	}
	stats, err := s.Stats(ctx)
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(stats.Messages, "messages,", stats.TotalTokens, "tokens, of all branches")
	// Output:
	// message
	// branch_summary
	// message
	// user: "Which parser do we take?"
	// user: "The following is a summary of "
	// user: "And by hand?"
	// 3 messages, 129 tokens, of all branches
}

// Two hosts share a session. The one that acts on an old state is told, and sees
// where the session stands now.
func ExampleSession_AppendIf() {
	ctx := context.Background()
	s := eventlog.NewSession(memory.New(eventlog.Metadata{ID: "shared"}, nil, memory.Options{}))
	seen, err := s.Head(ctx)
	if err != nil {
		fmt.Println(err)
		return
	}
	if _, err := s.Append(ctx, eventlog.NameDraft("by the other host").WithID("theirs")); err != nil {
		fmt.Println(err)
		return
	}
	_, err = s.AppendIf(ctx, seen, eventlog.NameDraft("by this host"))
	fmt.Println(eventlog.CodeOf(err))
	fmt.Println(err)
	// Output:
	// conflict
	// the session has moved on: expected leaf null after 0 entries, found leaf theirs after 1
}

// The same append again, as after a lost answer, writes nothing.
func ExampleDraft_WithID() {
	ctx := context.Background()
	s := eventlog.NewSession(memory.New(eventlog.Metadata{ID: "retried"}, nil, memory.Options{}))
	d := eventlog.MessageDraft(eventlog.UserMessage("once", time.UnixMilli(0))).WithID("request-7")
	for range 2 {
		if _, err := s.Append(ctx, d); err != nil {
			fmt.Println(err)
			return
		}
	}
	head, err := s.Head(ctx)
	fmt.Println(head.N, err)
	// Output: 1 <nil>
}

// A navigation to one of the user's messages goes before it and hands its text
// back, for the editor.
func ExampleSession_Navigate() {
	ctx := context.Background()
	s := eventlog.NewSession(memory.New(eventlog.Metadata{ID: "s"}, nil, memory.Options{}))
	for _, text := range []string{"first try", "second try", "thanks"} {
		if _, err := s.Append(ctx, eventlog.MessageDraft(eventlog.UserMessage(text, time.UnixMilli(0))).WithID(text[:1])); err != nil {
			fmt.Println(err)
			return
		}
	}
	n, err := s.Navigate(ctx, "s", eventlog.NavigateOptions{})
	if err != nil {
		fmt.Println(err)
		return
	}
	head, err := s.Head(ctx)
	fmt.Println(*n.EditorText, "|", head.Leaf, err)
	// Output: second try | f <nil>
}
