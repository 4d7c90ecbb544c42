package main

import (
	"errors"
	"strconv"
	"time"

	"github.com/spf13/cobra"

	"github.com/sessiontree/sessiontree/eventlog/js"
	"github.com/sessiontree/sessiontree/query"
)

const toolsLong = `tools says how the agents' tools were used: calls, those that failed, retries
(calls of a tool whose last call before, in the session, had failed), calls
without a result, the bytes of arguments and results, and the time from call to
result. Then the turns that took longest (a message of the user with what the
session got until the next), and the latest calls without a result. Each counts
once, whatever forks and copies hold it too.

` + windowHelp + `

--json:
{
  "database": the file
  "tools":     [{"name", "calls", "failed", "retries", "withoutResult",
                 "inputBytes", "resultBytes", "seconds"}]
  "slowTurns": [{"session", "entry" (ids; the user's message), "at", "seconds",
                 "responses", "calls"}]
  "withoutResult": [{"session", "entry", "call" (ids), "tool", "at"}]
}`

// workFlags are the flags of a report about work.
type workFlags struct {
	window
	session, cwd string
	limit        int
}

func (f *workFlags) add(cmd *cobra.Command) {
	f.flags(cmd)
	sessionFlag(cmd, &f.session)
	cmd.Flags().StringVar(&f.cwd, "cwd", "", "only the sessions of this working folder")
	cmd.Flags().IntVar(&f.limit, "limit", 10, "how many to list")
}

// workCommand is a command that reports about work.
func (c *cli) workCommand(use, short, long string, run func(d *database, o query.WorkOptions, zone *time.Location) error) *cobra.Command {
	var f workFlags
	var o query.WorkOptions
	var zone *time.Location
	cmd := &cobra.Command{
		Use:   use,
		Short: short,
		Long:  long,
		Args: func(cmd *cobra.Command, args []string) (err error) {
			if f.limit < 1 {
				return errors.New("--limit is a number from 1 up")
			}
			if cmd.Flags().Changed("session") {
				if err := checkSession(cmd, f.session); err != nil {
					return err
				}
			}
			if zone, o.Since, o.Until, err = f.read(time.Now()); err != nil {
				return err
			}
			return cobra.NoArgs(cmd, args)
		},
		RunE: func(cmd *cobra.Command, _ []string) (err error) {
			o.Limit = f.limit
			if cmd.Flags().Changed("cwd") {
				if o.CWD, err = folder(f.cwd); err != nil {
					return err
				}
			}
			return c.withDatabase(reads, func(d *database) error {
				if err := c.onlySession(d, f.session, &o.Session); err != nil {
					return err
				}
				return run(d, o, zone)
			})
		},
	}
	f.add(cmd)
	return cmd
}

func (c *cli) toolsCommand() *cobra.Command {
	return c.workCommand("tools", "Say how tools were used, and which turns were slow", toolsLong, c.tools)
}

func (c *cli) tools(d *database, o query.WorkOptions, zone *time.Location) error {
	tools, err := d.Tools(c.ctx, o)
	if err != nil {
		return err
	}
	turns, err := d.SlowTurns(c.ctx, o)
	if err != nil {
		return err
	}
	open, err := d.OpenCalls(c.ctx, o)
	if err != nil {
		return err
	}
	if c.json {
		c.out.answerJSON(js.Fields(
			field("database", js.Text(d.path)),
			field("tools", list(tools, toolJSON)),
			field("slowTurns", list(turns, turnJSON)),
			field("withoutResult", list(open, openCallJSON))))
		return nil
	}
	if len(tools) == 0 && len(turns) == 0 {
		c.out.line("No tool was called.")
		return nil
	}
	g := newGrid("tool", "calls", "failed", "retries", "no result", "arguments", "results", "time").numbers(1, 2, 3, 4, 5, 6, 7)
	for _, t := range tools {
		n := func(v int64) string { return grouped(float64(v)) }
		g.add(oneLine(t.Name), n(t.Calls), n(t.Failed)+" "+percent(float64(t.Failed)/float64(t.Calls)), n(t.Retries), n(t.NoResult),
			byteText(t.InputBytes), byteText(t.ResultBytes), took(time.Duration(t.Millis)*time.Millisecond))
	}
	g.write(c.out)
	if len(turns) > 0 {
		c.out.line()
		g = newGrid("slowest turns", "", "at", "took", "responses", "calls").numbers(3, 4, 5)
		for _, t := range turns {
			g.add(shownID(t.Session), shownID(t.Entry), t.At.In(zone).Format("2006-01-02 15:04"), took(t.Took), grouped(float64(t.Responses)), grouped(float64(t.Calls)))
		}
		g.write(c.out)
	}
	if len(open) > 0 {
		c.out.line()
		g = newGrid("calls without a result", "", "at", "tool")
		for _, call := range open {
			g.add(shownID(call.Session), shownID(call.Entry), call.At.In(zone).Format("2006-01-02 15:04"), oneLine(call.Tool))
		}
		g.write(c.out)
	}
	return nil
}

// list is the JSON list of what of makes of each.
func list[T any](all []T, of func(T) js.Value) js.Value {
	values := make([]js.Value, len(all))
	for i, v := range all {
		values[i] = of(v)
	}
	return js.List(values...)
}

func integer(v int64) js.Value { return js.Num(float64(v)) }

func toolJSON(t query.ToolSpend) js.Value {
	return js.Fields(field("name", js.Text(t.Name)), field("calls", integer(t.Calls)), field("failed", integer(t.Failed)),
		field("retries", integer(t.Retries)), field("withoutResult", integer(t.NoResult)), field("inputBytes", integer(t.InputBytes)),
		field("resultBytes", integer(t.ResultBytes)), field("seconds", js.Num(float64(t.Millis)/1000)))
}

func turnJSON(t query.Turn) js.Value {
	return js.Fields(field("session", js.Text(t.Session)), field("entry", js.Text(t.Entry)), field("at", js.Text(js.ISO(t.At))),
		field("seconds", js.Num(t.Took.Seconds())), field("responses", integer(t.Responses)), field("calls", integer(t.Calls)))
}

func openCallJSON(call query.OpenCall) js.Value {
	return js.Fields(field("session", js.Text(call.Session)), field("entry", js.Text(call.Entry)), field("call", js.Text(call.Call)),
		field("tool", js.Text(call.Tool)), field("at", js.Text(js.ISO(call.At))))
}

// took is a duration as people read it.
func took(d time.Duration) string {
	switch {
	case d < time.Minute:
		return strconv.FormatFloat(d.Seconds(), 'f', 1, 64) + " s"
	case d < time.Hour:
		return d.Round(time.Second).String()
	}
	return d.Round(time.Minute).String()
}

// byteText is a number of bytes as people read it.
func byteText(n int64) string {
	f, unit := float64(n), " B"
	for _, larger := range []string{" KB", " MB", " GB", " TB"} {
		if f < 1000 {
			break
		}
		f, unit = f/1000, larger
	}
	if unit == " B" || f >= 100 {
		return strconv.FormatFloat(f, 'f', 0, 64) + unit
	}
	return strconv.FormatFloat(f, 'f', 1, 64) + unit
}
