package parquetexport_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/parquet-go/parquet-go"

	"github.com/sessiontree/sessiontree/eventlog"
	"github.com/sessiontree/sessiontree/sqlitestore"
	"github.com/sessiontree/sessiontree/sqlitestore/parquetexport"
)

// The spend of a database as a Parquet file, read back. A second run has nothing to do.
func ExampleExport() {
	dir, err := os.MkdirTemp("", "lake-")
	if err != nil {
		fmt.Println(err)
		return
	}
	defer os.RemoveAll(dir)
	if err := exportTwice(context.Background(), dir); err != nil {
		fmt.Println(err)
	}
	// Output:
	// entries 2026-03: written, 2 rows
	// messages 2026-03: written, 2 rows
	// usage 2026-03: written, 1 rows
	// entries 2026-03: unchanged, 2 rows
	// messages 2026-03: unchanged, 2 rows
	// usage 2026-03: unchanged, 1 rows
	// coder-1 1200 tokens, 0.0150
}

func exportTwice(ctx context.Context, dir string) error {
	at := time.Date(2026, 3, 2, 9, 0, 0, 0, time.UTC)
	store, err := sqlitestore.Open(ctx, filepath.Join(dir, "sessions.db"), sqlitestore.Options{Source: eventlog.Source{Now: func() time.Time { return at }}})
	if err != nil {
		return err
	}
	defer store.Close(ctx)
	session, err := store.Create(ctx, eventlog.CreateOptions{CWD: "/project"})
	if err != nil {
		return err
	}
	_, err = session.Append(ctx,
		eventlog.MessageDraft(eventlog.UserMessage("Make it faster.", at)),
		eventlog.MessageDraft(eventlog.AssistantMessage("Done.", "acme", "coder-1", eventlog.Usage{Input: 1000, Output: 200, Cost: 0.015}, at)))
	if err != nil {
		return err
	}
	lake := filepath.Join(dir, "lake")
	for range 2 {
		files, err := parquetexport.Export(ctx, store, lake, parquetexport.Options{})
		if err != nil {
			return err
		}
		for _, f := range files {
			fmt.Printf("%s %s: %s, %d rows\n", f.Table, f.Month, f.State, f.Rows)
		}
	}
	rows, err := parquet.ReadFile[parquetexport.Usage](filepath.Join(lake, "usage", "month=2026-03", "data.parquet"))
	if err != nil {
		return err
	}
	for _, r := range rows {
		fmt.Printf("%s %d tokens, %.4f\n", r.Model, r.Tokens, float64(r.Cost)/eventlog.NanoPerUnit)
	}
	return nil
}
