package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"runtime"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/sessiontree/sessiontree/eventlog"
	"github.com/sessiontree/sessiontree/eventlog/js"
	"github.com/sessiontree/sessiontree/sqlitestore"
)

// databaseVariable names the database where --db does not.
const databaseVariable = "SESSIONTREE_DB"

// databasePath is the database that --db, the environment or, last, the system's
// habits name.
func (c *cli) databasePath() (string, error) {
	if c.db != "" {
		return c.db, nil
	}
	if path := os.Getenv(databaseVariable); path != "" {
		return path, nil
	}
	dir, err := dataFolder(runtime.GOOS, os.Getenv, os.UserHomeDir)
	if err != nil {
		return "", fmt.Errorf("there is no folder for the database, name one with --db: %w", err)
	}
	return filepath.Join(dir, "sessiontree", "sessions.db"), nil
}

// dataFolder is where a system keeps the data of its user's programs.
func dataFolder(system string, getenv func(string) string, home func() (string, error)) (string, error) {
	switch system {
	case "windows":
		if dir := getenv("LocalAppData"); dir != "" {
			return dir, nil
		}
		return "", errors.New("%LocalAppData% is not set")
	case "darwin", "ios":
		dir, err := home()
		return filepath.Join(dir, "Library", "Application Support"), err
	}
	// A relative one is to be taken for none, says the specification.
	if dir := getenv("XDG_DATA_HOME"); filepath.IsAbs(dir) {
		return dir, nil
	}
	dir, err := home()
	return filepath.Join(dir, ".local", "share"), err
}

// access is what a command does with the database.
type access int

const (
	reads   access = iota // the database stays as it is, or as missing as it is
	writes                // it has to be there
	creates               // it is made if it is missing
)

// database is the open database that a command was asked about.
type database struct {
	*sqlitestore.Store
	path string
}

func (c *cli) openDatabase(how access) (*database, error) {
	path, err := c.databasePath()
	if err != nil {
		return nil, err
	}
	if _, err := os.Stat(path); errors.Is(err, fs.ErrNotExist) && how != creates {
		return nil, eventlog.Errorf(eventlog.NotFound, "%s: no such database", path)
	}
	store, err := sqlitestore.Open(c.ctx, path, sqlitestore.Options{ReadOnly: how == reads})
	if err != nil {
		return nil, fileError(path, err)
	}
	return &database{store, path}, nil
}

// close closes the database, whatever became of the command.
func (d *database) close(ctx context.Context) error {
	return d.Close(context.WithoutCancel(ctx))
}

// withDatabase runs f on the open database.
func (c *cli) withDatabase(how access, f func(d *database) error) error {
	d, err := c.openDatabase(how)
	if err != nil {
		return err
	}
	err = f(d)
	if closeErr := d.close(c.ctx); err == nil {
		err = closeErr
	}
	return fileError(d.path, err)
}

// session opens the session with the id, or the only one whose id begins so.
func (d *database) session(ctx context.Context, id string) (*source, error) {
	s, err := d.Open(ctx, eventlog.Metadata{ID: id})
	if eventlog.CodeOf(err) == eventlog.NotFound {
		var whole string
		if whole, err = d.complete(ctx, id); err != nil {
			return nil, err
		}
		s, err = d.Open(ctx, eventlog.Metadata{ID: whole})
	}
	if err != nil {
		return nil, err
	}
	return newSource(ctx, &source{Session: s, database: d.path})
}

// complete gives the id that begins with prefix.
func (d *database) complete(ctx context.Context, prefix string) (string, error) {
	listed, err := d.List(ctx, "")
	if err != nil {
		return "", err
	}
	var found []string
	for _, l := range listed {
		if strings.HasPrefix(l.ID, prefix) {
			found = append(found, l.ID)
		}
	}
	switch len(found) {
	case 0:
		return "", eventlog.Errorf(eventlog.NotFound, "no session has the id %s, or one that begins so", shownID(prefix))
	case 1:
		return found[0], nil
	}
	slices.Sort(found)
	var names []string
	for i, id := range found {
		if i == maxReports {
			names = append(names, fmt.Sprintf("%d more", len(found)-i))
			break
		}
		names = append(names, shownID(id))
	}
	last := len(names) - 1
	return "", eventlog.Errorf(eventlog.InvalidArgument, "the id %s is of more than one session: %s and %s",
		shownID(prefix), strings.Join(names[:last], ", "), names[last])
}

// sessionFlag is the flag for a session of the database.
func sessionFlag(cmd *cobra.Command, id *string) {
	cmd.Flags().StringVar(id, "session", "", "the session in the database; the beginning of its id will do")
}

// checkSession says what is wrong with the flag, if it is needed.
func checkSession(cmd *cobra.Command, id string) error {
	switch {
	case !cmd.Flags().Changed("session"):
		return errors.New("which session? --session ID says so")
	case id == "":
		return errors.New("--session is the id of a session, or its beginning, and not empty")
	}
	return nil
}

// writeCommand is a command that changes one session of the database. check says
// what is wrong with its arguments.
func (c *cli) writeCommand(use, short, long string, check func(args []string) error, run func(d *database, s *source, args []string) error) *cobra.Command {
	var id string
	cmd := &cobra.Command{
		Use:   use,
		Short: short,
		Long:  long,
		Args: func(cmd *cobra.Command, args []string) error {
			if err := checkSession(cmd, id); err != nil {
				return err
			}
			return check(args)
		},
		RunE: func(_ *cobra.Command, args []string) error {
			return c.withDatabase(writes, func(d *database) error {
				s, err := d.session(c.ctx, id)
				if err != nil {
					return err
				}
				defer s.Close()
				return run(d, s, args)
			})
		},
	}
	sessionFlag(cmd, &id)
	return cmd
}

// writtenShape documents [cli.written].
const writtenShape = `
  "session": id
  "entries": [entry, …], what was written, as it stands in the session`

// written answers what was written into a session, for people with text.
func (c *cli) written(s *source, text string, entries ...eventlog.Entry) {
	if !c.json {
		c.out.line(safe(text))
		return
	}
	c.out.answerJSON(js.Fields(
		field("session", js.Text(s.meta.ID)),
		field("entries", entryList(entries))))
}

// made answers a new session.
func (c *cli) made(d *database, made *eventlog.Session) error {
	defer made.Close()
	s, err := newSource(c.ctx, &source{Session: made, database: d.path})
	if err != nil {
		return err
	}
	if c.json {
		c.out.answerJSON(js.Fields(field("session", s.json())))
	} else {
		c.out.line(safe(s.meta.ID))
	}
	return nil
}

// madeShape documents [cli.made].
const madeShape = `
  "session": as in "tree --json"`

// rootName stands for no entry, where a flag or an argument names one.
const rootName = "root"

func entryOrRoot(name string) eventlog.Ref {
	if name == rootName {
		return eventlog.None()
	}
	return eventlog.At(name)
}

// folder is a working folder as sessions hold it: an absolute one as it is given,
// of whatever system.
func folder(dir string) (string, error) {
	if path.IsAbs(dir) || filepath.IsAbs(dir) {
		return dir, nil
	}
	return filepath.Abs(dir)
}
