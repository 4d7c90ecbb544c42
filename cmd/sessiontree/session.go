package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"

	"github.com/spf13/cobra"

	"github.com/sessiontree/sessiontree/eventlog"
	"github.com/sessiontree/sessiontree/eventlog/js"
	"github.com/sessiontree/sessiontree/eventlog/jsonl"
)

// source is a session that a command was asked about: a file, or one of a
// database.
type source struct {
	*eventlog.Session
	path     string // the session's file, "" for one of a database
	database string // the database's file, "" for a session file
	damage   []jsonl.Damage
	meta     eventlog.Metadata
	name     string
}

// fileCommand is a command that reads one session: a file, or one of the
// database.
func (c *cli) fileCommand(use, short, long string, run func(*source) error) *cobra.Command {
	var strict bool
	var id string
	var dialect dialectFlag
	cmd := &cobra.Command{
		Use:   use,
		Short: short,
		Long:  long,
		Args: func(cmd *cobra.Command, args []string) error {
			switch {
			case cmd.Flags().Changed("session") && len(args) > 0:
				return errors.New("a session file or --session, not both")
			case cmd.Flags().Changed("session") && strict:
				return errors.New("--strict is about session files: a database holds no damaged lines")
			case cmd.Flags().Changed("session") && dialect.told != nil:
				return errors.New("--dialect is about session files: a session in the database has its own (see convert)")
			case cmd.Flags().Changed("session"):
				return checkSession(cmd, id)
			case len(args) == 0:
				return errors.New("which session file? --session ID is one of the database")
			case len(args) > 1:
				return fmt.Errorf("one session file, not %d", len(args))
			}
			return nil
		},
		RunE: func(_ *cobra.Command, args []string) error {
			if len(args) == 0 {
				return c.withDatabase(reads, func(d *database) error {
					s, err := d.session(c.ctx, id)
					if err != nil {
						return err
					}
					defer s.Close()
					return run(s)
				})
			}
			s, err := c.open(args[0], strict, dialect)
			if err != nil {
				return fileError(args[0], err)
			}
			defer s.Close()
			return fileError(args[0], run(s))
		},
	}
	sessionFlag(cmd, &id)
	cmd.Flags().Var(&dialect, "dialect", "read a file by the rules of harness or coding-agent (default by its marks)")
	cmd.Flags().BoolVar(&strict, "strict", false, "refuse a damaged file, as Pi does, instead of showing what can be read")
	return cmd
}

// open opens a session file, in the dialect that is asked for, or that its marks say:
// the coding agent's where there are none, as at import.
func (c *cli) open(path string, strict bool, dialect dialectFlag) (*source, error) {
	o := jsonl.Options{Strict: strict, Dialect: dialect.or(eventlog.CodingAgent), Detect: dialect.told == nil}
	storage, err := jsonl.Open(c.ctx, path, o)
	if err != nil {
		if errors.Is(err, fs.ErrNotExist) {
			return nil, eventlog.Errorf(eventlog.NotFound, "%s: no such file", path)
		}
		return nil, err
	}
	return newSource(c.ctx, &source{Session: eventlog.NewSession(storage), path: path, damage: storage.Damage()})
}

// newSource fills in what every command shows of a session. It closes the session
// if it fails.
func newSource(ctx context.Context, s *source) (*source, error) {
	var err error
	if s.meta, err = s.Metadata(ctx); err != nil {
		s.Close()
		return nil, err
	}
	// A name that is no text is a warning, not an error: see [check].
	if s.name, err = s.Name(ctx); err != nil && eventlog.CodeOf(err) != eventlog.InvalidEntry {
		s.Close()
		return nil, err
	}
	return s, nil
}

// where names the session in what is said about it.
func (s *source) where() string {
	if s.path != "" {
		return s.path
	}
	return s.database + ": session " + shownID(s.meta.ID)
}

func (s *source) json() js.Value { return js.Fields(s.fields()...) }

func (s *source) fields() []js.Member {
	return []js.Member{
		field("id", js.Text(s.meta.ID)),
		field("name", optional(s.name)),
		field("createdAt", js.Text(s.meta.CreatedAt)),
		field("cwd", js.Text(s.meta.CWD)),
		field("parentSession", s.meta.ParentSession.Value()),
		field("metadata", orNull(s.meta.Metadata)),
		field("dialect", js.Text(s.meta.Dialect.String())),
		field("dialectBasis", js.Text(basis(s.meta))),
		field("file", optional(s.path)),
		field("database", optional(s.database)),
	}
}

// sessionShape documents [source.json] and what stands beside it in each answer.
const sessionShape = `
  "session": {"id", "name" (or null), "createdAt", "cwd", "parentSession" (or
             null), "metadata" (or null), "dialect" (harness or coding-agent),
             "dialectBasis" (what decided it), "file" (or null), "database"
             (the file of a session in the database, or null)}
  "damage":  [{"line", "offset", "length", "reason"}], lines that could not be
             read: number in the file, byte range, why`

func damageJSON(damage []jsonl.Damage) js.Value {
	values := make([]js.Value, len(damage))
	for i, d := range damage {
		values[i] = js.Fields(
			field("line", number(d.Line)),
			field("offset", number(int(d.Offset))),
			field("length", number(int(d.Length))),
			field("reason", js.Text(d.Reason)))
	}
	return js.List(values...)
}

// maxReports bounds how many damaged lines, and how many warnings of a kind, are
// written out for people. JSON has them all, but for the many that one entry may
// give: see [findings].
const maxReports = 10

// reportDamage tells of damaged lines on stderr.
func (c *cli) reportDamage(s *source) {
	if c.json {
		return
	}
	for i, d := range s.damage {
		if i == maxReports {
			c.complain(fmt.Sprintf("%s: %d more damaged places", s.where(), len(s.damage)-i))
			return
		}
		c.complain(fmt.Sprintf("%s:%d: %s", s.where(), d.Line, damageText(d)))
	}
}

func damageText(d jsonl.Damage) string {
	return fmt.Sprintf("%d bytes from offset %d set aside: %s", d.Length, d.Offset, d.Reason)
}

// reportWarnings tells of suspicious entries on stderr.
func (c *cli) reportWarnings(s *source, warnings []warning) {
	if c.json {
		return
	}
	for _, line := range warningLines(warnings) {
		c.complain(s.where() + ": warning: " + line)
	}
}

// warningLines are the warnings for people, each kind cut off at maxReports.
func warningLines(warnings []warning) []string {
	var out []string
	shown, left := map[string]int{}, map[string]int{}
	for _, w := range warnings {
		if shown[w.code] < maxReports {
			shown[w.code]++
			out = append(out, w.message)
		} else {
			left[w.code] += w.stands
		}
	}
	for _, w := range warnings {
		if n := left[w.code]; n > 0 {
			out = append(out, fmt.Sprintf("%d more of the kind %s", n, w.code))
			left[w.code] = 0
		}
	}
	return out
}

func warningsJSON(warnings []warning) js.Value {
	values := make([]js.Value, len(warnings))
	for i, w := range warnings {
		values[i] = js.Fields(
			field("code", js.Text(w.code)),
			field("entry", w.entry.Value()),
			field("message", js.Text(w.message)))
	}
	return js.List(values...)
}

// from is a flag as an entry; none is the leaf.
func from(cmd *cobra.Command, flag, id string) eventlog.Ref {
	if cmd.Flags().Changed(flag) {
		return eventlog.At(id)
	}
	return eventlog.None()
}
