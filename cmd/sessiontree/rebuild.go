package main

import (
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/sessiontree/sessiontree/eventlog/js"
	"github.com/sessiontree/sessiontree/sqlitestore"
)

const rebuildLong = `rebuild makes anew, from the log of entries, what the database keeps to answer
fast: all of it, or the views that are named ("health" lists them). It loses
nothing, and mends what "verify" finds. Other programs may go on meanwhile.

--json:
{
  "database": the file, when it is rebuilt
}`

func (c *cli) rebuildCommand() *cobra.Command {
	return &cobra.Command{
		Use:       "rebuild [VIEW…]",
		Short:     "Make the database's views anew from its log",
		Long:      rebuildLong,
		ValidArgs: sqlitestore.ViewNames(),
		Args: func(cmd *cobra.Command, views []string) error {
			for _, v := range views {
				if !slices.Contains(cmd.ValidArgs, v) {
					return fmt.Errorf("there is no view %q: the views are %s", v, strings.Join(cmd.ValidArgs, ", "))
				}
			}
			return nil
		},
		RunE: func(_ *cobra.Command, views []string) error {
			return c.withDatabase(writes, func(d *database) error {
				if err := d.Rebuild(c.ctx, views...); err != nil {
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
