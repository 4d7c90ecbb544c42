package main

import (
	"errors"
	"fmt"
	"io/fs"
	"iter"
	"os"

	"github.com/spf13/cobra"

	"github.com/sessiontree/sessiontree/eventlog"
	"github.com/sessiontree/sessiontree/eventlog/js"
	"github.com/sessiontree/sessiontree/eventlog/memory"
	"github.com/sessiontree/sessiontree/eventlog/sessionfile"
)

const diffLong = `diff compares two sessions, each a session file of any format or one of the
database (its id, or the beginning of it; a file of that name goes first): do
they have the same entries, in the same order and byte for byte, and the same
leaf? It shows the first entry that differs. What of a file is no entry (its
header, line ends, damaged bytes) is not compared.

The exit code is 1 if they differ.

--json:
{
  "same":  whether entries and leaf are the same
  "shared": how many entries both begin with
  "sides": [{"file" (or null), "session", "entries", "leaf" (id or null), "next"
            (the entry behind the shared ones, or null)}], of A and of B
}`

func (c *cli) diffCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "diff A B",
		Short: "Compare two sessions, files or of the database",
		Long:  diffLong,
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) != 2 || args[0] == "" || args[1] == "" {
				return errors.New("which two? Each is a session file, or the id of a session in the database")
			}
			return nil
		},
		RunE: func(_ *cobra.Command, args []string) error { return c.diff(args[0], args[1]) },
	}
}

// side is one of two sessions that are compared.
type side struct {
	*eventlog.Session
	path    string
	id      string
	entries int
	leaf    eventlog.Ref
	next    *eventlog.Entry // behind the shared ones
}

func (c *cli) diff(a, b string) error {
	sides := [2]*side{}
	var d *database
	for i, name := range []string{a, b} {
		s, err := c.fileSide(name)
		if errors.Is(err, fs.ErrNotExist) {
			if d == nil {
				if d, err = c.openDatabase(reads); err != nil {
					return fmt.Errorf("%s is no file, and there is no database to look for a session: %w", name, err)
				}
				defer d.close(c.ctx)
			}
			s, err = c.databaseSide(d, name)
		}
		if err != nil {
			return err
		}
		defer s.Close()
		sides[i] = s
	}
	shared, err := c.compare(sides[0], sides[1])
	if err != nil {
		return err
	}
	same := sides[0].next == nil && sides[1].next == nil && sides[0].leaf == sides[1].leaf
	if c.json {
		c.out.answerJSON(diffJSON(same, shared, sides))
	} else {
		c.diffText(shared, sides)
	}
	if !same {
		return errFailed
	}
	return nil
}

// fileSide reads a session file of any format.
func (c *cli) fileSide(path string) (*side, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return nil, err
	}
	if !info.Mode().IsRegular() {
		return nil, eventlog.Errorf(eventlog.InvalidArgument, "%s is no regular file", path)
	}
	m, entries, err := sessionfile.ReadAll(path, f, sessionfile.Options{Size: info.Size()})
	if err != nil {
		return nil, err
	}
	return &side{Session: eventlog.NewSession(memory.New(m, entries, memory.Options{})), path: path, id: m.ID}, nil
}

func (c *cli) databaseSide(d *database, id string) (*side, error) {
	s, err := d.session(c.ctx, id)
	if err != nil {
		return nil, fileError(d.path, err)
	}
	return &side{Session: s.Session, id: s.meta.ID}, nil
}

// compare walks both logs side by side, and says how many entries they share.
func (c *cli) compare(a, b *side) (shared int, err error) {
	nextA, stopA := iter.Pull2(a.Entries(c.ctx, 0, eventlog.All))
	defer stopA()
	nextB, stopB := iter.Pull2(b.Entries(c.ctx, 0, eventlog.All))
	defer stopB()
	for {
		x, errX, okX := nextA()
		y, errY, okY := nextB()
		if err := errors.Join(errX, errY); err != nil {
			return 0, err
		}
		if !okX || !okY || x.JSON() != y.JSON() {
			if okX {
				a.next = &x
			}
			if okY {
				b.next = &y
			}
			break
		}
		shared++
	}
	for _, s := range []*side{a, b} {
		head, err := s.Head(c.ctx)
		if err != nil && eventlog.CodeOf(err) != eventlog.InvalidSession {
			return 0, err
		}
		s.entries, s.leaf = head.N, head.Leaf
	}
	return shared, nil
}

func diffJSON(same bool, shared int, sides [2]*side) js.Value {
	var values []js.Value
	for _, s := range sides {
		next := js.NullValue()
		if s.next != nil {
			next = s.next.Value()
		}
		values = append(values, js.Fields(
			field("file", optional(s.path)),
			field("session", js.Text(s.id)),
			field("entries", number(s.entries)),
			field("leaf", s.leaf.Value()),
			field("next", next)))
	}
	return js.Fields(field("same", js.Boolean(same)), field("shared", number(shared)), field("sides", js.List(values...)))
}

func (c *cli) diffText(shared int, sides [2]*side) {
	a, b := sides[0], sides[1]
	if a.next == nil && b.next == nil {
		c.out.line("the same " + count(shared, "entry"))
	} else {
		c.out.line("the same up to entry " + grouped(float64(shared)) + ", then:")
		for _, s := range sides {
			c.out.line("  "+s.name()+": ", nextText(s))
		}
	}
	if a.leaf == b.leaf {
		c.out.line("the same leaf: " + shownRef(a.leaf))
		return
	}
	c.out.line("another leaf:")
	for _, s := range sides {
		c.out.line("  " + s.name() + ": " + shownRef(s.leaf))
	}
}

func (s *side) name() string {
	if s.path != "" {
		return safe(s.path)
	}
	return "session " + shownID(s.id)
}

func nextText(s *side) string {
	if s.next == nil {
		return "nothing more"
	}
	return fmt.Sprintf("%s %s  %s (of %s)", shownID(s.next.ID()), oneLine(kindOf(*s.next)), cut(excerpt(*s.next), 60), count(s.entries, "entry"))
}
