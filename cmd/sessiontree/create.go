package main

import (
	"errors"

	"github.com/spf13/cobra"

	"github.com/sessiontree/sessiontree/eventlog"
)

const createLong = `create makes a session in the database and prints its id. The database is made
if it is missing, and its folder.

--json:
{` + madeShape + `
}`

func (c *cli) createCommand() *cobra.Command {
	var id, cwd string
	var dialect dialectFlag
	cmd := &cobra.Command{
		Use:   "create",
		Short: "Make a session in the database",
		Long:  createLong,
		Args: func(cmd *cobra.Command, args []string) error {
			if cmd.Flags().Changed("id") && id == "" {
				return errors.New("--id is empty")
			}
			return cobra.NoArgs(cmd, args)
		},
		RunE: func(*cobra.Command, []string) error {
			dir, err := folder(cwd)
			if err != nil {
				return err
			}
			return c.withDatabase(creates, func(d *database) error {
				s, err := d.Create(c.ctx, eventlog.CreateOptions{ID: id, CWD: dir, Dialect: dialect.or(eventlog.Harness)})
				if err != nil {
					return err
				}
				return c.made(d, s)
			})
		},
	}
	cmd.Flags().StringVar(&cwd, "cwd", "", "the session's working folder (default the current one)")
	cmd.Flags().StringVar(&id, "id", "", "the new session's id (default a new uuid)")
	cmd.Flags().Var(&dialect, "dialect", "by whose rules it is answered: harness or coding-agent (default harness)")
	return cmd
}
