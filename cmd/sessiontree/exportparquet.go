package main

import (
	"errors"

	"github.com/spf13/cobra"

	"github.com/sessiontree/sessiontree/eventlog/js"
	"github.com/sessiontree/sessiontree/sqlitestore/parquetexport"
)

// checkParquet says what is wrong with an export as Parquet files.
func checkParquet(cmd *cobra.Command, dir string, args []string) error {
	if dir == "" {
		return errors.New("--parquet is a folder, and not empty")
	}
	for _, other := range []string{"all", "as", "to"} {
		if len(args) > 0 || cmd.Flags().Changed(other) {
			return errors.New("--parquet is about the whole database: no session, --all, --as or --to")
		}
	}
	return nil
}

// exportParquet brings Parquet files up, and tells of each that it touched.
func (c *cli) exportParquet(d *database, dir string) error {
	unchanged := 0
	files, err := parquetexport.Export(c.ctx, d.Store, dir, parquetexport.Options{Each: func(f parquetexport.File) {
		switch {
		case c.json:
		case f.State == parquetexport.Unchanged:
			unchanged++
		case f.State == parquetexport.Removed:
			c.out.line(safe(f.Path), " removed")
		default:
			c.out.line(safe(f.Path), " ", count(int(f.Rows), "row"))
		}
	}})
	if err != nil {
		return err
	}
	if c.json {
		c.out.answerJSON(js.Fields(field("database", js.Text(d.path)), field("files", list(files, func(f parquetexport.File) js.Value {
			return js.Fields(field("table", js.Text(f.Table)), field("month", optional(f.Month)), field("file", js.Text(f.Path)),
				field("rows", integer(f.Rows)), field("state", js.Text(string(f.State))))
		}))))
		return nil
	}
	c.out.line(count(len(files)-unchanged, "file"), " changed, ", count(unchanged, "file"), " unchanged")
	return nil
}
