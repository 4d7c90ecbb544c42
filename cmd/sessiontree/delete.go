package main

import (
	"bufio"
	"errors"
	"fmt"
	"os"
	"strings"

	"github.com/spf13/cobra"
	"golang.org/x/term"

	"github.com/sessiontree/sessiontree/eventlog"
	"github.com/sessiontree/sessiontree/eventlog/js"
)

const deleteLong = `delete deletes a session in the database, with all its entries, for good, and
prints its id. Forks of it stay. On a terminal it asks first; elsewhere, and
with --json, it needs --yes.

--json:
{
  "deleted": id
}`

func (c *cli) deleteCommand() *cobra.Command {
	var yes bool
	check := func(args []string) error {
		switch {
		case len(args) > 0:
			return fmt.Errorf("what is %q? --session says what to delete", args[0])
		case !yes && (c.json || !c.canAsk()):
			return errors.New("--yes is needed where nobody can be asked")
		}
		return nil
	}
	cmd := c.writeCommand("delete --session ID", "Delete a session", deleteLong, check, func(d *database, s *source, _ []string) error {
		if !yes {
			head, err := s.Head(c.ctx)
			if err != nil && eventlog.CodeOf(err) != eventlog.InvalidSession {
				return err
			}
			if !c.asked(fmt.Sprintf("Delete session %s (%s)? [y/N] ", titleOf(s), count(head.N, "entry"))) {
				c.complain("nothing was deleted")
				return errFailed
			}
		}
		if err := d.Delete(c.ctx, s.meta); err != nil {
			return err
		}
		if c.json {
			c.out.answerJSON(js.Fields(field("deleted", js.Text(s.meta.ID))))
		} else {
			c.out.line(safe(s.meta.ID))
		}
		return nil
	})
	cmd.Flags().BoolVarP(&yes, "yes", "y", false, "do not ask")
	return cmd
}

func titleOf(s *source) string {
	if s.name == "" {
		return shownID(s.meta.ID)
	}
	return shownID(s.meta.ID) + " " + cut(oneLine(s.name), maxTag)
}

// canAsk says whether there is somebody to ask.
func (c *cli) canAsk() bool {
	f, isFile := c.stdin.(*os.File)
	return isFile && term.IsTerminal(int(f.Fd()))
}

// asked asks, on stderr, and says whether the answer is yes.
func (c *cli) asked(question string) bool {
	c.out.Flush()
	fmt.Fprint(c.stderr, question)
	answer, _ := bufio.NewReader(c.stdin).ReadString('\n')
	switch strings.ToLower(strings.TrimSpace(answer)) {
	case "y", "yes":
		return true
	}
	return false
}
