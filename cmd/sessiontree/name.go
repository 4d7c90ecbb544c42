package main

import (
	"fmt"

	"github.com/spf13/cobra"
)

const nameLong = `name names a session in the database, or clears its name if there is no NAME,
and prints the id of the entry that says so. "list" shows names.

--json:
{` + writtenShape + `
}`

func (c *cli) nameCommand() *cobra.Command {
	check := func(args []string) error {
		if len(args) > 1 {
			return fmt.Errorf("one name, not %d", len(args))
		}
		return nil
	}
	return c.writeCommand("name --session ID [NAME]", "Name a session", nameLong, check, func(_ *database, s *source, args []string) error {
		name := ""
		if len(args) > 0 {
			name = args[0]
		}
		e, err := s.SetName(c.ctx, name)
		if err != nil {
			return err
		}
		c.written(s, e.ID(), e)
		return nil
	})
}
