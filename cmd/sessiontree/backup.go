package main

import (
	"errors"

	"github.com/spf13/cobra"

	"github.com/sessiontree/sessiontree/eventlog/js"
)

const backupLong = `backup writes the whole database into a new file, as it is at one moment, while
other programs read and write it. The copy is checked before it gets its name,
and can be opened like any database (--db FILE); to restore it, put it in the
place of the other while no program has that open. A file that exists is never
replaced.

--json:
{
  "database":  the file
  "backup":    the new file
  "bytes":     its size
  "lastEvent": the last event in it, 0 for none
}`

func (c *cli) backupCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "backup FILE",
		Short: "Copy the database, while others use it",
		Long:  backupLong,
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) != 1 || args[0] == "" {
				return errors.New("one file to write the copy to")
			}
			return nil
		},
		RunE: func(_ *cobra.Command, args []string) error {
			return c.withDatabase(reads, func(d *database) error {
				info, err := d.Backup(c.ctx, args[0])
				if err != nil {
					return err
				}
				if c.json {
					c.out.answerJSON(js.Fields(
						field("database", js.Text(d.path)),
						field("backup", js.Text(args[0])),
						field("bytes", number(int(info.Bytes))),
						field("lastEvent", number(int(info.LastEvent)))))
				} else {
					c.out.line("Copied ", safe(d.path), " to ", safe(args[0]), ", ", count(int(info.Bytes), "byte"))
				}
				return nil
			})
		},
	}
}
