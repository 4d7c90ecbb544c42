package main

import (
	"fmt"

	"github.com/spf13/cobra"

	"github.com/sessiontree/sessiontree/eventlog/js"
)

const compactLong = `compact gives the space that deleted sessions left back to the file system. It
writes the database anew, which takes about twice its size in free space for a
while; writers wait. No entry changes.

--json:
{
  "database": the file
  "before":   its size with its write-ahead log, in bytes
  "after":    the same afterwards
}`

func (c *cli) compactCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "compact",
		Short: "Give unused space of the database back",
		Long:  compactLong,
		Args:  cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error {
			return c.withDatabase(writes, func(d *database) error {
				done, err := d.Compact(c.ctx)
				if err != nil {
					return err
				}
				if c.json {
					c.out.answerJSON(js.Fields(
						field("database", js.Text(d.path)),
						field("before", number(int(done.Before))),
						field("after", number(int(done.After)))))
				} else {
					c.out.line(fmt.Sprintf("%s: %s before, %s after", safe(d.path), count(int(done.Before), "byte"), count(int(done.After), "byte")))
				}
				return nil
			})
		},
	}
}
