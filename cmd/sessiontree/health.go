package main

import (
	"fmt"

	"github.com/spf13/cobra"

	"github.com/sessiontree/sessiontree/eventlog/js"
)

const healthLong = `health says how far each view of the database has followed its log of events,
and what keeps it. "branch" answers branches, contexts, labels and totals, and
is never behind where a program writes; the others follow by themselves. The
exit code is 1 if a view has failed.

--json:
{
  "database": the file
  "lastEvent": the last event in the log, 0 for none
  "walBytes": size of the write-ahead log, which grows while a reader holds an
             old state
  "views": [{"name", "version", "position" (the last event that it holds),
             "lag" (events that it lacks), "error" (text or null)}]
}`

func (c *cli) healthCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "health",
		Short: "Show how far the database's views are",
		Long:  healthLong,
		Args:  cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error {
			return c.withDatabase(reads, func(d *database) error {
				h, err := d.Health(c.ctx)
				if err != nil {
					return err
				}
				failed := false
				values := make([]js.Value, len(h.Views))
				lines := []string{fmt.Sprintf("%s: the last event is %s, the write-ahead log has %s", safe(d.path), grouped(float64(h.LastEvent)), count(int(h.WALBytes), "byte"))}
				for i, v := range h.Views {
					message := js.NullValue()
					state := "current"
					switch {
					case v.Err != nil:
						failed = true
						message = js.Text(v.Err.Error())
						state = c.out.paint(red, "failed: "+safe(v.Err.Error()))
					case v.Lag > 0:
						state = count(int(v.Lag), "event") + " behind"
					}
					values[i] = js.Fields(
						field("name", js.Text(v.Name)),
						field("version", number(v.Version)),
						field("position", number(int(v.Position))),
						field("lag", number(int(v.Lag))),
						field("error", message))
					lines = append(lines, fmt.Sprintf("%-8s version %d  %s", v.Name, v.Version, state))
				}
				if c.json {
					c.out.answerJSON(js.Fields(
						field("database", js.Text(d.path)),
						field("lastEvent", number(int(h.LastEvent))),
						field("walBytes", number(int(h.WALBytes))),
						field("views", js.List(values...))))
				} else {
					for _, line := range lines {
						c.out.line(line)
					}
				}
				if failed {
					return errFailed
				}
				return nil
			})
		},
	}
}
