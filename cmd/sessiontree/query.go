package main

import (
	"context"
	"encoding/csv"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/sessiontree/sessiontree/eventlog"
	"github.com/sessiontree/sessiontree/eventlog/js"
	"github.com/sessiontree/sessiontree/query"
)

const queryLong = `query asks the database in SQL (SQLite's): one statement that reads, or - for
stdin. Nothing can be changed, in no file: what a statement would do beside
reading is refused, with its name. --timeout ends one that takes too long.

The views are made for it, and their columns stay:

  v_sessions    v_entries     v_messages    v_labels       v_live
  v_branches    v_usage       v_usage_daily v_tool_calls   v_turns
  v_compactions v_freshness   v_ancestors

--views shows the page about them: each view, every column with its meaning and
unit, and queries that work. They are for the sqlite3 shell, Datasette and
notebooks too. What a statement reads of them holds all of the log.

  sessiontree query "SELECT class, sum(cost) FROM v_usage GROUP BY class"

The answer is a table, which shows --limit rows (0 for all), and of a value what
fits in a cell. --csv and --json write all rows as they come, and whole values:
in CSV a null is empty, and a blob is hexadecimal.

--json:
{
  "database": the file
  "columns":  [name]
  "rows":     [[value]], in the order of the columns: a text, a number, null (also
              for what is no number in JSON), or {"blob": hexadecimal}
  "more":     whether --limit left rows out
}`

// tableRows is how many rows a table shows.
const tableRows = 200

func (c *cli) queryCommand() *cobra.Command {
	var q queryRun
	var views bool
	cmd := &cobra.Command{
		Use:   "query SQL|-",
		Short: "Ask the database in SQL; it is only read",
		Long:  queryLong,
		Args: func(cmd *cobra.Command, args []string) error {
			switch {
			case views && len(args) > 0:
				return errors.New("--views is not about a statement")
			case views:
				return nil
			case len(args) == 0:
				return errors.New("which statement? - takes it from stdin")
			case len(args) > 1:
				return fmt.Errorf("one statement, in quotes, not %d arguments", len(args))
			case c.json && q.csv:
				return errors.New("--json or --csv, not both")
			case q.limit < 0:
				return errors.New("--limit is a number of rows, 0 for all")
			case q.timeout < 0:
				return errors.New("--timeout is a time, as 30s, or 0 for none")
			}
			if !cmd.Flags().Changed("limit") && (c.json || q.csv) {
				q.limit = 0
			}
			return nil
		},
		RunE: func(_ *cobra.Command, args []string) error {
			if views {
				return c.viewsPage()
			}
			text, err := c.statement(args[0])
			if err != nil {
				return err
			}
			q.cli, q.text = c, text
			return c.withDatabase(reads, q.run)
		},
	}
	flags := cmd.Flags()
	flags.BoolVar(&q.csv, "csv", false, "answer in CSV")
	flags.IntVar(&q.limit, "limit", tableRows, "how many rows at most, 0 for all (--csv and --json: all)")
	flags.DurationVar(&q.timeout, "timeout", 30*time.Second, "end the statement after so long; 0 for never")
	flags.BoolVar(&views, "views", false, "show the page about the views")
	return cmd
}

// maxStatement bounds what is read of stdin.
const maxStatement = 1 << 20

// statement is the statement that an argument is, or that stdin has.
func (c *cli) statement(arg string) (string, error) {
	if arg != "-" {
		return arg, nil
	}
	text, err := io.ReadAll(io.LimitReader(c.stdin, maxStatement+1))
	if err == nil && len(text) > maxStatement {
		err = eventlog.Errorf(eventlog.InvalidArgument, "the statement has more than %d bytes", maxStatement)
	}
	return string(text), err
}

func (c *cli) viewsPage() error {
	if c.json {
		c.out.answerJSON(js.Fields(field("views", js.Text(query.Views))))
		return nil
	}
	c.out.WriteString(query.Views)
	return nil
}

// rowWriter is a form of the answer.
type rowWriter interface {
	columns(names []string) error
	row(values []any) error
	end(more bool) error
}

// queryRun is one run of query.
type queryRun struct {
	*cli
	text    string
	csv     bool
	limit   int
	timeout time.Duration
}

// errEnough ends an answer that has as many rows as were asked for.
var errEnough = errors.New("enough rows")

func (q *queryRun) run(d *database) error {
	ctx := q.ctx
	if q.timeout > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, q.timeout)
		defer cancel()
	}
	w := q.writer(d)
	rows := 0
	err := d.SQL(ctx, q.text, w.columns, func(values []any) error {
		if rows++; q.limit > 0 && rows > q.limit {
			return errEnough
		}
		return w.row(values)
	})
	more := errors.Is(err, errEnough)
	switch {
	case err == nil || more:
		return w.end(more)
	case errors.Is(err, context.DeadlineExceeded) && q.ctx.Err() == nil:
		return eventlog.Errorf(eventlog.Busy, "the statement was ended after %s (--timeout)", q.timeout)
	}
	return err
}

func (q *queryRun) writer(d *database) rowWriter {
	switch {
	case q.json:
		return &jsonRows{out: q.out, database: d.path}
	case q.csv:
		return &csvRows{out: q.out, w: csv.NewWriter(q.out)}
	}
	return &tableOfRows{out: q.out}
}

// jsonRows writes the answer in JSON, row by row.
type jsonRows struct {
	out      *output
	database string
	rows     int
}

func (j *jsonRows) columns(names []string) error {
	head := js.Fields(field("database", js.Text(j.database)), field("columns", js.Texts(names...))).JSON()
	j.out.Write(appendSafeJSON(nil, strings.TrimSuffix(head, "}")))
	_, err := j.out.WriteString(`,"rows":[`)
	return err
}

func (j *jsonRows) row(values []any) error {
	if j.rows++; j.rows > 1 {
		j.out.WriteByte(',')
	}
	list := make([]js.Value, len(values))
	for i, v := range values {
		list[i] = sqlJSON(v)
	}
	_, err := j.out.Write(appendSafeJSON(nil, js.List(list...).JSON()))
	return err
}

func (j *jsonRows) end(more bool) error {
	_, err := fmt.Fprintf(j.out, "],\"more\":%t}\n", more)
	return err
}

func sqlJSON(v any) js.Value {
	switch v := v.(type) {
	case int64:
		return js.Trusted(strconv.FormatInt(v, 10)) // js.Num has 53 bits
	case float64:
		if math.IsNaN(v) || math.IsInf(v, 0) {
			return js.NullValue()
		}
		return js.Num(v)
	case string:
		return js.Text(v)
	case []byte:
		return js.Fields(field("blob", js.Text(hex.EncodeToString(v))))
	}
	return js.NullValue()
}

// csvRows writes the answer in CSV, row by row. For a terminal it is made safe; a
// file gets the values as they are.
type csvRows struct {
	out *output
	w   *csv.Writer
}

func (c *csvRows) columns(names []string) error { return c.record(slices.Clone(names)) }

func (c *csvRows) row(values []any) error {
	record := make([]string, len(values))
	for i, v := range values {
		record[i] = sqlText(v)
	}
	return c.record(record)
}

func (c *csvRows) record(record []string) error {
	if c.out.wraps {
		for i := range record {
			record[i] = safe(record[i])
		}
	}
	return c.w.Write(record)
}

func (c *csvRows) end(bool) error {
	c.w.Flush()
	return c.w.Error()
}

// sqlText is a value as text; a null has none.
func sqlText(v any) string {
	switch v := v.(type) {
	case int64:
		return strconv.FormatInt(v, 10)
	case float64:
		return strconv.FormatFloat(v, 'g', -1, 64)
	case string:
		return v
	case []byte:
		return hex.EncodeToString(v)
	}
	return ""
}

// tableOfRows shows the answer as a table.
type tableOfRows struct {
	out  *output
	grid *grid
	text []bool // columns that hold more than numbers and nulls
}

// cellWidth is what a table shows of a value.
const cellWidth = 60

func (t *tableOfRows) columns(names []string) error {
	header := make([]string, len(names))
	for i, n := range names {
		header[i] = cut(oneLine(n), cellWidth)
	}
	t.grid, t.text = newGrid(header...), make([]bool, len(names))
	return nil
}

func (t *tableOfRows) row(values []any) error {
	row := make([]string, len(values))
	for i, v := range values {
		switch v.(type) {
		case string, []byte:
			t.text[i] = true
		}
		if row[i] = cut(oneLine(sqlText(v)), cellWidth); v == nil {
			row[i] = "null"
		}
	}
	t.grid.add(row...)
	return nil
}

func (t *tableOfRows) end(more bool) error {
	if len(t.grid.right) == 0 {
		return nil // a PRAGMA that has nothing to tell
	}
	for i, text := range t.text {
		t.grid.right[i] = !text && len(t.grid.rows) > 1
	}
	t.grid.write(t.out)
	switch rows := len(t.grid.rows) - 1; {
	case rows == 0:
		t.out.line("No rows.")
	case more:
		t.out.line(t.out.paint(dim, "the first "+count(rows, "row")+"; --limit shows more"))
	}
	return nil
}
