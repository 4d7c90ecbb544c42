package main

import (
	"github.com/spf13/cobra"

	"github.com/sessiontree/sessiontree/eventlog/js"
)

const verifyLong = `verify compares what the database keeps to answer fast (branches, leaves,
labels, totals) with the log of entries itself, and prints each difference. The
exit code is 1 if there is one; "rebuild" mends it. Nothing is changed.

--json:
{
  "database": the file
  "problems": [{"view", "what"}]
}`

func (c *cli) verifyCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "verify",
		Short: "Compare the database with its own log",
		Long:  verifyLong,
		Args:  cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error {
			return c.withDatabase(reads, func(d *database) error {
				problems, err := d.Verify(c.ctx)
				if err != nil {
					return err
				}
				if c.json {
					c.out.answerJSON(js.Fields(field("database", js.Text(d.path)), field("problems", problemList(problems))))
				} else {
					c.out.problems(problems)
					c.out.line(count(len(problems), "problem"))
				}
				if len(problems) > 0 {
					return errFailed
				}
				return nil
			})
		},
	}
}
