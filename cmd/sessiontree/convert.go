package main

import (
	"errors"

	"github.com/spf13/cobra"

	"github.com/sessiontree/sessiontree/eventlog"
	"github.com/sessiontree/sessiontree/eventlog/js"
)

const convertLong = `convert makes a new session with the entries of one in the database, which is
answered by the rules of the other dialect, and prints its id. The source stays
as it is. What moves the leaf is written as the other dialect has it: by leaf
entries (harness), or kept by the store (coding-agent).

It tells every answer that changes: of the session, and of its entries the
branch, the context and the settings. In a session of more than 1,000 entries it
asks about tips, compactions and what follows them.

--json:
{` + madeShape + `,
  "asked":   about how many entries
  "changes": [{"entry" (id, or null for the session), "what", "before", "after"}]
}`

func (c *cli) convertCommand() *cobra.Command {
	var id string
	var to dialectFlag
	var cmd *cobra.Command
	check := func(args []string) error {
		switch {
		case to.told == nil:
			return errors.New("--to says the dialect: harness or coding-agent")
		case cmd.Flags().Changed("id") && id == "":
			return errors.New("--id is empty")
		}
		return cobra.NoArgs(cmd, args)
	}
	cmd = c.writeCommand("convert --session ID --to DIALECT", "Give a session the other dialect, as a new session", convertLong, check, func(d *database, s *source, _ []string) error {
		made, changes, asked, err := d.Convert(c.ctx, s.meta, *to.told, eventlog.CreateOptions{ID: id})
		if err != nil {
			return err
		}
		return c.converted(d, made, changes, asked)
	})
	cmd.Flags().Var(&to, "to", "the new session's dialect: harness or coding-agent")
	cmd.Flags().StringVar(&id, "id", "", "the new session's id (default a new uuid)")
	return cmd
}

func (c *cli) converted(d *database, made *eventlog.Session, changes []eventlog.Change, asked int) error {
	defer made.Close()
	s, err := newSource(c.ctx, &source{Session: made, database: d.path})
	if err != nil {
		return err
	}
	if c.json {
		list := make([]js.Value, len(changes))
		for i, change := range changes {
			list[i] = js.Fields(
				field("entry", optional(change.Entry)),
				field("what", js.Text(change.What)),
				field("before", js.Text(change.Before)),
				field("after", js.Text(change.After)))
		}
		c.out.answerJSON(js.Fields(field("session", s.json()), field("asked", number(asked)), field("changes", js.List(list...))))
		return nil
	}
	c.out.line(safe(s.meta.ID))
	c.out.line(count(len(changes), "answer") + " of " + count(asked, "entry") + " and of the session changed")
	for _, change := range changes {
		about := "the session"
		if change.Entry != "" {
			about = shownID(change.Entry)
		}
		c.out.line(about + ": " + change.What)
		c.out.line("  before  " + cut(oneLine(change.Before), c.out.width-10))
		c.out.line("  after   " + cut(oneLine(change.After), c.out.width-10))
	}
	return nil
}
