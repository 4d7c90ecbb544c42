package main

import (
	"github.com/spf13/cobra"

	"github.com/sessiontree/sessiontree/eventlog/js"
)

const rebuildLong = `rebuild makes anew, from the log of entries, what the database keeps to answer
fast. It loses nothing, and mends what "verify" finds.

--json:
{
  "database": the file, when it is rebuilt
}`

func (c *cli) rebuildCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "rebuild",
		Short: "Make the database's views anew from its log",
		Long:  rebuildLong,
		Args:  cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error {
			return c.withDatabase(writes, func(d *database) error {
				if err := d.Rebuild(c.ctx); err != nil {
					return err
				}
				if c.json {
					c.out.answerJSON(js.Fields(field("database", js.Text(d.path))))
				} else {
					c.out.line("Rebuilt ", safe(d.path))
				}
				return nil
			})
		},
	}
}
