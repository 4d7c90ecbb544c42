package main

import (
	"fmt"

	"github.com/spf13/cobra"

	"github.com/sessiontree/sessiontree/eventlog/js"
	"github.com/sessiontree/sessiontree/sqlitestore"
)

const checkDatabaseLong = `check looks for damage in the database: SQLite's own check of the file; every
event of the log against what is stored beside it and, by a chain of hashes,
against the one before; and the views, as "verify" does. On a damaged database
it goes as far as it can, and says how far. Nothing is changed. The exit code is
1 if something is wrong; "repair" mends what is derived from the log.
` + checkedShape

const checkedShape = `
--json:
{
  "database":   the file
  "sessions", "events": how many there are, and were read
  "redacted":   how many of these had a text purged
  "problems":   [{"view" (or "file", "log"), "what"}]
  "unfinished": how far the check came and what stopped it, or null
}`

func (c *cli) checkDatabaseCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "check",
		Short: "Look for damage in the database",
		Long:  checkDatabaseLong,
		Args:  cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error {
			return c.withDatabase(reads, func(d *database) error {
				found, err := d.Check(c.ctx)
				if err != nil {
					return err
				}
				if c.json {
					c.out.answerJSON(js.Fields(
						field("database", js.Text(d.path)),
						field("sessions", number(found.Sessions)),
						field("events", number(int(found.Events))),
						field("redacted", number(found.Redacted)),
						field("problems", problemList(found.Problems)),
						field("unfinished", optional(found.Unfinished))))
				} else {
					c.out.problems(found.Problems)
					if found.Unfinished != "" {
						c.out.line(c.out.paint(red, "not finished: "+safe(found.Unfinished)))
					}
					line := fmt.Sprintf("%s in %s, %s", count(int(found.Events), "event"), count(found.Sessions, "session"), count(len(found.Problems), "problem"))
					if found.Redacted > 0 {
						line += fmt.Sprintf(", %s redacted", grouped(float64(found.Redacted)))
					}
					c.out.line(line)
				}
				if len(found.Problems) > 0 || found.Unfinished != "" {
					return errFailed
				}
				return nil
			})
		},
	}
}

func problemList(problems []sqlitestore.Problem) js.Value {
	values := make([]js.Value, len(problems))
	for i, p := range problems {
		values[i] = js.Fields(field("view", js.Text(p.View)), field("what", js.Text(p.What)))
	}
	return js.List(values...)
}

func (o *output) problems(problems []sqlitestore.Problem) {
	for _, p := range problems {
		o.line(o.paint(red, safe(fmt.Sprintf("%s: %s", p.View, p.What))))
	}
}

const repairLong = `repair makes anew what the database derives from its log: the indices and all
views. It never changes the log: what "check" finds there, a backup mends. It
looks again when it is done; the exit code is 1 if something is still wrong.
` + checkedShape

func (c *cli) repairCommand() *cobra.Command {
	check := c.checkDatabaseCommand()
	return &cobra.Command{
		Use:   "repair",
		Short: "Make anew what the database derives from its log",
		Long:  repairLong,
		Args:  cobra.NoArgs,
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := c.withDatabase(writes, func(d *database) error { return d.Repair(c.ctx) }); err != nil {
				return err
			}
			return check.RunE(cmd, args)
		},
	}
}
