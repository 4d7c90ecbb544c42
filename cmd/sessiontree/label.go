package main

import (
	"errors"

	"github.com/spf13/cobra"
)

const labelLong = `label labels an entry of a session in the database, or clears its label if there
is no LABEL, and prints the id of the entry that says so.

--json:
{` + writtenShape + `
}`

func (c *cli) labelCommand() *cobra.Command {
	check := func(args []string) error {
		if len(args) < 1 || len(args) > 2 {
			return errors.New("one entry to label, and its label")
		}
		return nil
	}
	return c.writeCommand("label --session ID ENTRY [LABEL]", "Label an entry of a session", labelLong, check, func(_ *database, s *source, args []string) error {
		label := ""
		if len(args) > 1 {
			label = args[1]
		}
		e, err := s.SetLabel(c.ctx, args[0], label)
		if err != nil {
			return err
		}
		c.written(s, e.ID(), e)
		return nil
	})
}
