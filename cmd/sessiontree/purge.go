package main

import (
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"

	"github.com/sessiontree/sessiontree/eventlog/js"
	"github.com/sessiontree/sessiontree/sqlitestore"
)

const purgeLong = `purge takes a text, such as a key that got into an answer, out of every entry of
every session, forks too, however it is escaped there, and out of headers, views
and the bytes kept of imported files; "[redacted]" stands in its place. The file
is written anew, so that no unused page and no write-ahead log has it either.
The entries stay, "check" counts them, and the log notes the purge. - reads the
text from stdin, so that it is not in the shell's history.

With --session the whole session goes instead, as with "delete", and leaves
nothing behind; forks of it keep their copies, and are named.

Not reached: the files that sessions were imported from, which are listed,
exports and backups. Where something blocks the purge, the answer says
"incomplete" and why, and the exit code is 1. --dry-run only counts. On a
terminal it asks first; elsewhere, and with --json, it needs --yes.

--json:
{
  "sessions":   [id], those that had it
  "entries":    how many entries
  "others":     how many headers and pieces of files
  "incomplete": [text]
  "elsewhere":  [file], from which sessions with it were imported
}`

func (c *cli) purgeCommand() *cobra.Command {
	var yes, dry bool
	var session string
	cmd := &cobra.Command{
		Use:   "purge TEXT|-|--session ID",
		Short: "Take a text out of the whole database",
		Long:  purgeLong,
		Args: func(cmd *cobra.Command, args []string) error {
			whole := cmd.Flags().Changed("session")
			switch {
			case whole && len(args) > 0:
				return errors.New("a text or --session, not both")
			case !whole && len(args) != 1:
				return errors.New("one text to purge; - reads it from stdin")
			case whole && session == "":
				return checkSession(cmd, session)
			case whole && dry:
				return errors.New("--dry-run is about a text")
			case !yes && !dry && (c.json || !c.canAsk() || len(args) == 1 && args[0] == "-"):
				return errors.New("--yes is needed where nobody can be asked")
			}
			return nil
		},
		RunE: func(_ *cobra.Command, args []string) error {
			text := ""
			if len(args) == 1 {
				var err error
				if text, err = c.textOf(args[0]); err != nil {
					return err
				}
			}
			return c.withDatabase(writes, func(d *database) error {
				return c.purge(d, text, session, yes, dry)
			})
		},
	}
	cmd.Flags().StringVar(&session, "session", "", "purge this session as a whole; the beginning of its id will do")
	cmd.Flags().BoolVarP(&yes, "yes", "y", false, "do not ask")
	cmd.Flags().BoolVar(&dry, "dry-run", false, "only count")
	return cmd
}

func (c *cli) purge(d *database, text, session string, yes, dry bool) error {
	run := func(dry bool) (sqlitestore.Purged, error) { return d.PurgeText(c.ctx, text, dry) }
	if session != "" {
		s, err := d.session(c.ctx, session)
		if err != nil {
			return err
		}
		s.Close()
		run = func(bool) (sqlitestore.Purged, error) { return d.PurgeSession(c.ctx, s.meta.ID) }
		if !yes && !c.asked(fmt.Sprintf("Purge session %s? [y/N] ", titleOf(s))) {
			c.complain("nothing was purged")
			return errFailed
		}
	} else if !yes && !dry {
		found, err := run(true)
		if err != nil {
			return err
		}
		if !c.asked(fmt.Sprintf("Redact %s and %s in %s? [y/N] ", count(found.Entries, "entry"), count(found.Others, "other piece"), count(len(found.Sessions), "session"))) {
			c.complain("nothing was purged")
			return errFailed
		}
	}
	done, err := run(dry)
	if err != nil {
		return err
	}
	if c.json {
		c.out.answerJSON(js.Fields(
			field("sessions", js.Texts(done.Sessions...)),
			field("entries", number(done.Entries)),
			field("others", number(done.Others)),
			field("incomplete", js.Texts(done.Incomplete...)),
			field("elsewhere", js.Texts(done.Elsewhere...))))
	} else {
		what := "Purged"
		if dry {
			what = "Would purge"
		}
		c.out.line(fmt.Sprintf("%s %s and %s in %s", what, count(done.Entries, "entry"), count(done.Others, "other piece"), count(len(done.Sessions), "session")))
		for _, path := range done.Elsewhere {
			c.out.line("not reached: ", safe(path))
		}
		for _, why := range done.Incomplete {
			c.out.line(c.out.paint(red, "incomplete: "+safe(why)))
		}
	}
	if len(done.Incomplete) > 0 {
		return errFailed
	}
	return nil
}

// textOf is an argument, or what stdin has for -, without the end of its line.
func (c *cli) textOf(arg string) (string, error) {
	if arg != "-" {
		return arg, nil
	}
	input, err := io.ReadAll(io.LimitReader(c.stdin, maxInput))
	if err != nil {
		return "", fmt.Errorf("cannot read stdin: %w", err)
	}
	return strings.TrimSuffix(strings.TrimSuffix(string(input), "\n"), "\r"), nil
}
