package main

import (
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/sessiontree/sessiontree/eventlog"
)

const forkLong = `fork copies a session in the database into a new one, and prints the new id.
With --entry it copies one branch: up to what comes before that entry, which has
to be a user's message, or with --position at, up to any entry itself. The
source stays as it is.

--json:
{` + madeShape + `
}`

func (c *cli) forkCommand() *cobra.Command {
	var entry, position, id, cwd string
	var cmd *cobra.Command
	check := func(args []string) error {
		switch set := cmd.Flags().Changed; {
		case len(args) > 0:
			return fmt.Errorf("what is %q? --entry and --position say where to cut", args[0])
		case set("entry") && entry == "":
			return errors.New("--entry is empty")
		case set("id") && id == "":
			return errors.New("--id is empty")
		case set("position") && !set("entry"):
			return errors.New("--position is about an entry: --entry says which")
		case position != string(eventlog.Before) && position != string(eventlog.AtIt):
			return fmt.Errorf("--position is before or at, not %q", position)
		}
		return nil
	}
	cmd = c.writeCommand("fork --session ID", "Copy a session, or a branch of it, into a new one", forkLong, check, func(d *database, s *source, _ []string) error {
		o := eventlog.ForkOptions{EntryID: entry}
		o.ID = id
		if entry != "" {
			o.Position = eventlog.Position(position)
		}
		if cmd.Flags().Changed("cwd") {
			var err error
			if o.CWD, err = folder(cwd); err != nil {
				return err
			}
		}
		fork, err := d.Fork(c.ctx, s.meta, o)
		if err != nil {
			return err
		}
		return c.made(d, fork)
	})
	flags := cmd.Flags()
	flags.StringVar(&entry, "entry", "", "where to cut (default nowhere: the whole session is copied)")
	flags.StringVar(&position, "position", string(eventlog.Before), "cut before or at the entry")
	flags.StringVar(&cwd, "cwd", "", "the new session's working folder (default the source's)")
	flags.StringVar(&id, "id", "", "the new session's id (default a new uuid)")
	return cmd
}
