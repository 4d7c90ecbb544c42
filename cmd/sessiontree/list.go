package main

import (
	"math"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/sessiontree/sessiontree/eventlog"
	"github.com/sessiontree/sessiontree/eventlog/js"
)

const listLong = `list shows the sessions in the database, newest first: id, time of creation
(UTC), number of entries, working folder and name. --cwd shows those of one
folder.

--json:
{
  "database": the file
  "sessions": [{the fields of "session" in "tree --json", and "entries", their
             number}]
}`

func (c *cli) listCommand() *cobra.Command {
	var cwd string
	cmd := &cobra.Command{
		Use:   "list",
		Short: "List the sessions in the database",
		Long:  listLong,
		Args:  cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			dir := ""
			if cmd.Flags().Changed("cwd") {
				var err error
				if dir, err = folder(cwd); err != nil {
					return err
				}
			}
			return c.withDatabase(reads, func(d *database) error {
				listed, err := c.listed(d, dir)
				if err != nil {
					return err
				}
				if c.json {
					c.out.answerJSON(listJSON(d, listed))
				} else {
					c.out.sessions(listed)
				}
				return nil
			})
		},
	}
	cmd.Flags().StringVar(&cwd, "cwd", "", "only the sessions of this working folder")
	return cmd
}

// listed is a session of a list.
type listed struct {
	*source
	entries int
}

func (c *cli) listed(d *database, cwd string) ([]listed, error) {
	found, err := d.List(c.ctx, cwd)
	if err != nil {
		return nil, err
	}
	var all []listed
	for _, l := range found {
		s, err := d.Open(c.ctx, l.Metadata)
		if err == nil {
			var row listed
			if row, err = c.listedOne(d, s); err == nil {
				all = append(all, row)
			}
			s.Close()
		}
		// What another process deletes meanwhile is no part of the list.
		if err != nil && eventlog.CodeOf(err) != eventlog.NotFound {
			return nil, err
		}
	}
	return all, nil
}

func (c *cli) listedOne(d *database, session *eventlog.Session) (row listed, err error) {
	if row.source, err = newSource(c.ctx, &source{Session: session, database: d.path}); err != nil {
		return row, err
	}
	// A leaf that is not there is no matter of a list.
	head, err := session.Head(c.ctx)
	if err != nil && eventlog.CodeOf(err) != eventlog.InvalidSession {
		return row, err
	}
	row.entries = head.N
	return row, nil
}

func listJSON(d *database, all []listed) js.Value {
	values := make([]js.Value, len(all))
	for i, l := range all {
		values[i] = js.Fields(append(l.fields(), field("entries", number(l.entries)))...)
	}
	return js.Fields(
		field("database", js.Text(d.path)),
		field("sessions", js.List(values...)))
}

// shownTime is a time of creation for people. One that is none is shown as it is.
func shownTime(at, layout string) string {
	ms := js.ParseDate(at)
	if math.IsNaN(ms) {
		return cut(oneLine(at), len(layout))
	}
	return time.UnixMilli(int64(ms)).UTC().Format(layout)
}

// sessions writes a list as a table.
func (o *output) sessions(all []listed) {
	if len(all) == 0 {
		o.line("No sessions.")
		return
	}
	const gap = "  "
	layout := "2006-01-02 15:04"
	if o.width < defaultWidth {
		layout = time.DateOnly
	}
	rows := [][]string{{"id", "created", "entries", "folder", "name"}}
	for _, l := range all {
		rows = append(rows, []string{shownID(l.meta.ID), shownTime(l.meta.CreatedAt, layout), grouped(float64(l.entries)), oneLine(l.meta.CWD), oneLine(l.name)})
	}
	widths := make([]int, len(rows[0]))
	for _, row := range rows {
		for i, text := range row {
			widths[i] = max(widths[i], cells.StringWidth(text))
		}
	}
	// The folder and the name share what is left; the end of a folder says most.
	const folders, names = 3, 4
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
