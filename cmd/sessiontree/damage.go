package main

import (
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/sessiontree/sessiontree/eventlog/js"
	"github.com/sessiontree/sessiontree/sqlitestore"
)

const damageLong = `damage lists the byte ranges of imported files that hold no entry: file, line,
place, length, why, and how the bytes begin. They were set aside, and "export"
gives them back in their place. With SESSION it lists those of one session.

--json:
{
  "database": the file
  "damage": [{"session", "file", "line", "offset", "length", "reason", "begins" (up
             to 80 bytes; what is no UTF-8 as U+FFFD)}]
}`

func (c *cli) damageCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "damage [SESSION]",
		Short: "List what could not be read of imported files",
		Long:  damageLong,
		Args: func(_ *cobra.Command, args []string) error {
			switch {
			case len(args) > 1:
				return errors.New("one session, or none for all")
			case len(args) == 1 && args[0] == "":
				return errors.New("SESSION is the id of a session, or its beginning, and not empty")
			}
			return nil
		},
		RunE: func(_ *cobra.Command, args []string) error {
			return c.withDatabase(reads, func(d *database) error {
				session := ""
				if len(args) == 1 {
					s, err := d.session(c.ctx, args[0])
					if err != nil {
						return err
					}
					s.Close()
					session = s.meta.ID
				}
				damage, err := d.Damage(c.ctx, session)
				if err != nil {
					return err
				}
				c.damageAnswer(d, damage)
				return nil
			})
		},
	}
}

func (c *cli) damageAnswer(d *database, damage []sqlitestore.SetAside) {
	if c.json {
		values := make([]js.Value, len(damage))
		for i, a := range damage {
			values[i] = js.Fields(
				field("session", js.Text(a.Session)),
				field("file", js.Text(a.Path)),
				field("line", number(a.Line)),
				field("offset", js.Num(float64(a.Offset))),
				field("length", js.Num(float64(a.Length))),
				field("reason", js.Text(a.Reason)),
				field("begins", js.Text(js.DecodeUTF8(string(a.Begin)))))
		}
		c.out.answerJSON(js.Fields(field("database", js.Text(d.path)), field("damage", js.List(values...))))
		return
	}
	for _, a := range damage {
		c.out.line(safe(fmt.Sprintf("%s:%d: %s", a.Path, a.Line, damageText(a.Damage))))
		c.out.line("  ", cut(safe(string(a.Begin)), c.out.width-2))
	}
	c.out.line(count(len(damage), "damaged place"))
}
