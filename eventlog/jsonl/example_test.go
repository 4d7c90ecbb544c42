package jsonl_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/sessiontree/sessiontree/eventlog"
	"github.com/sessiontree/sessiontree/eventlog/jsonl"
)

// A file that a crash has torn is opened: what can be read is there, what cannot
// is named, and the next append makes the file whole.
func ExampleOpen() {
	ctx := context.Background()
	dir, err := os.MkdirTemp("", "sessions-")
	if err != nil {
		fmt.Println(err)
		return
	}
	defer os.RemoveAll(dir)
	path := filepath.Join(dir, "session.jsonl")
	torn := `{"type":"session","version":3,"id":"s1","timestamp":"2026-01-01T00:00:00.000Z","cwd":"/project"}
{"type":"message","id":"m1","parentId":null,"timestamp":"2026-01-01T00:00:01.000Z","message":{"role":"user","content":"Hello"}}
{"type":"message","id":"m2","parentId":"m1","timestamp":"2026-01-01T00:0`
	if err := os.WriteFile(path, []byte(torn), 0o600); err != nil {
		fmt.Println(err)
		return
	}

	storage, err := jsonl.Open(ctx, path, jsonl.Options{})
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, d := range storage.Damage() {
		fmt.Println(d)
	}
	s := eventlog.NewSession(storage)
	e, err := s.AppendMessage(ctx, eventlog.UserMessage("Are you there?", time.Now()))
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println("appended below", e.Parent())
	if err := s.Close(); err != nil {
		fmt.Println(err)
		return
	}

	// Pi refuses a file with a line that it cannot read; now it takes this one.
	storage, err = jsonl.Open(ctx, path, jsonl.Options{Strict: true})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer storage.Close()
	head, err := storage.Head(ctx)
	fmt.Println(head.N, "entries", err)
	// Output:
	// line 3, bytes 225 to 297: is not valid JSON: not JSON at byte 72: the text ends too early
	// appended below m1
	// 2 entries <nil>
}

// A folder of sessions, listed for one project.
func ExampleRepo() {
	ctx := context.Background()
	dir, err := os.MkdirTemp("", "sessions-")
	if err != nil {
		fmt.Println(err)
		return
	}
	defer os.RemoveAll(dir)
	repo := jsonl.NewRepo(dir, jsonl.Options{})
	for id, cwd := range map[string]string{"one": "/work/a-b", "other": "/work/a/b"} {
		s, err := repo.Create(ctx, eventlog.CreateOptions{ID: id, CWD: cwd})
		if err != nil {
			fmt.Println(err)
			return
		}
		if err := s.Close(); err != nil {
			fmt.Println(err)
			return
		}
	}
	listed, err := repo.List(ctx, "/work/a-b")
	for _, l := range listed {
		fmt.Println(l.ID, l.CWD, l.Err)
	}
	fmt.Println(err)
	// Output:
	// one /work/a-b <nil>
	// <nil>
}
