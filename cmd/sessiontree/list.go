package main

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/sessiontree/sessiontree/eventlog/js"
	"github.com/sessiontree/sessiontree/sqlitestore"
)

const listLong = `list shows the sessions in the database, the latest activity first: id, time
of the latest entry (UTC), number of entries, dialect (from 100 cells on),
working folder, and the name or, in quotes, how the first message begins. A
fork is marked with ↳. --cwd shows those of one folder; --limit ends the list
early, and --after goes on behind a place that "next" of an earlier answer
gave.

--json:
{
  "database": the file
  "sessions": [{the fields of "session" in "tree --json", and
             "firstMessage" (its beginning, or null), "entries", "messages"
             (numbers), "lastActivity", "forkedFrom" (the id of the session in
             this database, or null), "forkEntry" (where it was cut, or null)}]
  "next":    what --after takes to go on, or null at the end
}`

func (c *cli) listCommand() *cobra.Command {
	var cwd, after string
	var limit int
	var o sqlitestore.ListOptions
	cmd := &cobra.Command{
		Use:   "list",
		Short: "List the sessions in the database",
		Long:  listLong,
		Args: func(cmd *cobra.Command, args []string) error {
			if limit < 0 {
				return errors.New("--limit is a number of sessions, 0 for all")
			}
			if err := o.After.UnmarshalText([]byte(after)); err != nil {
				return fmt.Errorf("--after: %w", err)
			}
			return cobra.NoArgs(cmd, args)
		},
		RunE: func(cmd *cobra.Command, _ []string) error {
			if cmd.Flags().Changed("cwd") {
				var err error
				if o.CWD, err = folder(cwd); err != nil {
					return err
				}
			}
			return c.withDatabase(reads, func(d *database) error {
				listed, next, err := c.listed(d, o, limit)
				if err != nil {
					return err
				}
				if c.json {
					c.out.answerJSON(listJSON(d, listed, next))
				} else {
					c.out.sessions(listed)
				}
				return nil
			})
		},
	}
	cmd.Flags().StringVar(&cwd, "cwd", "", "only the sessions of this working folder")
	cmd.Flags().IntVar(&limit, "limit", 0, "at most so many sessions; 0 for all")
	cmd.Flags().StringVar(&after, "after", "", "go on behind this place")
	return cmd
}

// listed is up to limit sessions of the list, and where it goes on, "" at its end.
func (c *cli) listed(d *database, o sqlitestore.ListOptions, limit int) (all []sqlitestore.SessionInfo, next string, err error) {
	for info, err := range d.Sessions(c.ctx, o) {
		if err != nil {
			return nil, "", err
		}
		if limit > 0 && len(all) == limit {
			word, err := all[limit-1].Cursor.MarshalText()
			return all, string(word), err
		}
		all = append(all, info)
	}
	return all, "", nil
}

func listJSON(d *database, all []sqlitestore.SessionInfo, next string) js.Value {
	values := make([]js.Value, len(all))
	for i, l := range all {
		s := source{meta: l.Metadata, name: l.Name, database: d.path}
		values[i] = js.Fields(append(s.fields(),
			field("firstMessage", optional(l.FirstMessage)),
			field("entries", number(l.Entries)),
			field("messages", number(l.Messages)),
			field("lastActivity", js.Text(js.ISO(l.LastActivity))),
			field("forkedFrom", optional(l.ForkedFrom)),
			field("forkEntry", optional(l.ForkEntry)))...)
	}
	return js.Fields(
		field("database", js.Text(d.path)),
		field("sessions", js.List(values...)),
		field("next", optional(next)))
}

// title is what a list calls a session.
func title(s sqlitestore.SessionInfo) string {
	mark := ""
	if !s.ParentSession.IsNone() {
		mark = "↳ "
	}
	switch {
	case s.Name != "":
		return mark + oneLine(s.Name)
	case s.FirstMessage != "":
		return mark + "“" + oneLine(s.FirstMessage) + "”"
	}
	return mark
}

// sessions writes a list as a table.
func (o *output) sessions(all []sqlitestore.SessionInfo) {
	if len(all) == 0 {
		o.line("No sessions.")
		return
	}
	const gap = "  "
	layout := "2006-01-02 15:04"
	if o.width < defaultWidth {
		layout = time.DateOnly
	}
	rows := [][]string{{"id", "active", "entries", "dialect", "folder", "name"}}
	for _, l := range all {
		rows = append(rows, []string{shownID(l.ID), l.LastActivity.Format(layout), grouped(float64(l.Entries)), l.Dialect.String(), oneLine(l.CWD), title(l)})
	}
	folders, names := 4, 5
	if o.width < defaultWidth {
		for i := range rows {
			rows[i] = slices.Delete(rows[i], 3, 4)
		}
		folders, names = 3, 4
	}
	widths := make([]int, len(rows[0]))
	for _, row := range rows {
		for i, text := range row {
			widths[i] = max(widths[i], cells.StringWidth(text))
		}
	}
	// The folder and the name share what is left; the end of a folder says most.
	left := o.width - len(gap)*names
	for _, w := range widths[:folders] {
		left -= w
	}
	widths[folders] = min(widths[folders], max(left-min(widths[names], left/2), minFolder))
	for i, row := range rows {
		row[2] = strings.Repeat(" ", widths[2]-cells.StringWidth(row[2])) + row[2]
		row[folders] = cutLeft(row[folders], widths[folders])
		row[names] = cut(row[names], max(left-widths[folders], minFolder))
		for j := range row[:names] {
			row[j] = padded(row[j], widths[j])
		}
		line := strings.TrimRight(strings.Join(row, gap), " ")
		if i == 0 {
			line = o.paint(dim, line)
		}
		o.line(line)
	}
}

// minFolder is the least that a folder or a name gets.
const minFolder = 8

// cutLeft shortens a safe text to so many cells, from its beginning.
func cutLeft(s string, width int) string {
	w := cells.StringWidth(s)
	if w <= width {
		return s
	}
	return cells.TruncateLeft(s, w-width+1, "…")
}
