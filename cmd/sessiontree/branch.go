package main

import (
	"github.com/spf13/cobra"

	"github.com/sessiontree/sessiontree/eventlog"
	"github.com/sessiontree/sessiontree/eventlog/js"
)

const branchLong = `branch shows the branch that leads to the leaf, or to another entry: oldest
first, from the root, or from where the last compaction cuts it. Damaged lines
are reported on stderr.

--json gives the entries as they stand in the session:
{` + sessionShape + `
  "from":    id of the last entry, null for an empty branch
  "entries": [entry, …]
}`

func (c *cli) branchCommand() *cobra.Command {
	var id string
	var cmd *cobra.Command
	cmd = c.fileCommand("branch FILE|--session ID", "Show the branch that leads to the leaf", branchLong, func(s *source) error {
		branch, err := s.Branch(c.ctx, from(cmd, "from", id))
		if err != nil {
			return err
		}
		if c.json {
			c.out.answerJSON(js.Fields(
				field("session", s.json()),
				field("damage", damageJSON(s.damage)),
				field("from", lastOf(branch).Value()),
				field("entries", entryList(branch))))
			return nil
		}
		if err := c.branchText(s, branch); err != nil {
			return err
		}
		if s.path != "" {
			c.out.line()
		}
		c.dialectNote(s)
		c.reportDamage(s)
		return nil
	})
	cmd.Flags().StringVar(&id, "from", "", "the entry whose branch to show (default the leaf)")
	return cmd
}

func (c *cli) branchText(s *source, branch []eventlog.Entry) error {
	labels, err := s.Labels(c.ctx)
	if err != nil {
		return err
	}
	if len(branch) == 0 {
		c.out.line("There is no leaf: the branch is empty.")
	}
	for _, e := range branch {
		var tags []tag
		if label := labels[e.ID()]; label != "" {
			tags = append(tags, labelTag(label))
		}
		look := plain
		if e.Type().Control() {
			look = dim
		}
		c.out.entryLine("", "", look, e, tags)
	}
	return nil
}

func lastOf(branch []eventlog.Entry) eventlog.Ref {
	if len(branch) == 0 {
		return eventlog.None()
	}
	return eventlog.At(branch[len(branch)-1].ID())
}
