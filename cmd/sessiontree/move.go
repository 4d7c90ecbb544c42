package main

import (
	"errors"

	"github.com/spf13/cobra"

	"github.com/sessiontree/sessiontree/eventlog"
	"github.com/sessiontree/sessiontree/eventlog/js"
)

const moveLong = `move moves the leaf of a session in the database to an entry, and prints where
the leaf is then: the next entry goes below that. After a move to root, the next
entry is a new root. What is left behind stays in the tree. --summary writes
what the model is to know of it, below ENTRY; the leaf is then the summary.

--json:
{` + writtenShape + `
  "leaf":    id or null
}`

func (c *cli) moveCommand() *cobra.Command {
	var summary string
	var cmd *cobra.Command
	check := func(args []string) error {
		if len(args) != 1 {
			return errors.New("one entry to move to, or root")
		}
		return nil
	}
	cmd = c.writeCommand("move --session ID ENTRY|root", "Move a session's leaf to another entry", moveLong, check, func(_ *database, s *source, args []string) error {
		var left *eventlog.Summary
		if cmd.Flags().Changed("summary") {
			left = &eventlog.Summary{Text: summary}
		}
		entries, err := s.MoveTo(c.ctx, entryOrRoot(args[0]), left)
		if err != nil {
			return err
		}
		leaf := entries[len(entries)-1].LeafAfter()
		switch {
		case c.json:
			c.out.answerJSON(js.Fields(
				field("session", js.Text(s.meta.ID)),
				field("entries", entryList(entries)),
				field("leaf", leaf.Value())))
		case leaf.IsNone():
			c.out.line(rootName)
		default:
			c.out.line(safe(idText(leaf.ID())))
		}
		return nil
	})
	cmd.Flags().StringVar(&summary, "summary", "", "a summary of what is left behind")
	return cmd
}
