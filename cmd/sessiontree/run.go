package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"runtime"
	"runtime/debug"
	"slices"
	"strings"
	"syscall"

	"github.com/schollz/progressbar/v3"
	"github.com/spf13/cobra"
	"golang.org/x/term"

	"github.com/sessiontree/sessiontree/eventlog"
	"github.com/sessiontree/sessiontree/eventlog/js"
)

// The exit codes. Scripts rely on them.
const (
	exitOK     = 0
	exitFailed = 1 // the answer is a failure
	exitUsage  = 2 // the question was wrong
)

const rootLong = `sessiontree shows and keeps the sessions of AI agents as what they are: trees.

An agent's session is a log of entries, each below the one that it was appended
to. A movable leaf says where the conversation goes on, and the model sees only
the branch that leads to the leaf. What was tried and left stays in the tree.

FILE is a session file, and nothing here changes one. The database is one file
of many sessions: --db names it, else $SESSIONTREE_DB does, else it is
sessiontree/sessions.db in the folder where this system keeps a user's data.
create, append, move, label, name, fork, convert, delete, import, follow,
rebuild, repair, purge and compact change the database; create, import and
follow make it if it is missing. All else reads, and leaves it as it is. ID is a
session's id, or as much of its beginning as no other session's has.

Text from a session is shown with its control characters made visible; --json
keeps every value, with such characters escaped.

Exit codes:
  0  the command has answered
  1  the answer is a failure: no such file, session or entry, a session that
     cannot be read, a conformance case that failed, a problem that verify found
  2  wrong usage

Errors go to stderr, with --json as {"error":{"code","message"}}. The codes are
those of package eventlog (not_found, invalid_session, invalid_entry, …), usage,
failed for a conformance run, a verify that found problems and a delete that was
called off, and internal for all else.

Damaged lines below the header end a command only with --strict. Otherwise tree,
branch and context report them on stderr, and stats lists them on stdout; with
--json they are the field "damage" of the answer. Suspicious entries end no
command that looks for them: tree warns of them on stderr, stats lists them on
stdout, and with --json both have them in the field "warnings". branch and
context do not look for them, and fail if what they show cannot be read.`

// cli is one run of the program.
type cli struct {
	ctx    context.Context
	stdin  io.Reader
	out    *output
	stderr io.Writer

	json  bool
	color string
	width int
	db    string                   // --db
	bar   *progressbar.ProgressBar // of a bench, on a terminal
}

// run is the whole program but for the process around it.
func run(ctx context.Context, args []string, stdin io.Reader, stdout, stderr io.Writer) int {
	c := &cli{ctx: ctx, stdin: stdin, stderr: stderr, out: newOutput(stdout)}
	// Until the flags are read; and where reading them is what fails.
	c.json = wantsJSON(args)
	err := c.execute(args)
	// What was answered before an error is part of the answer.
	if flushErr := c.out.Flush(); flushErr != nil && (err == nil || isClosedPipe(flushErr)) {
		err = flushErr
	}
	return c.finish(err)
}

func wantsJSON(args []string) bool {
	if i := slices.Index(args, "--"); i >= 0 {
		args = args[:i]
	}
	return slices.Contains(args, "--json") || slices.Contains(args, "--json=true")
}

// usageError is a question that the program does not understand.
type usageError struct {
	err     error
	command *cobra.Command
}

func (e *usageError) Error() string { return e.err.Error() }
func (e *usageError) Unwrap() error { return e.err }

func usagef(command *cobra.Command, format string, args ...any) error {
	return &usageError{fmt.Errorf(format, args...), command}
}

// errFailed ends a command whose output has said already what failed.
var errFailed = errors.New("failed")

func (c *cli) execute(args []string) error {
	understood := false
	root := &cobra.Command{
		Use:           "sessiontree",
		Short:         "Session trees of AI agents: keep, show, check, explain",
		Long:          rootLong,
		Version:       version(),
		Args:          knownCommand,
		SilenceErrors: true,
		SilenceUsage:  true,
		// How many letters a mistyped command may differ in to be suggested.
		SuggestionsMinimumDistance: 2,
		RunE:                       func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
		PersistentPreRunE: func(cmd *cobra.Command, _ []string) error {
			if err := c.configure(cmd); err != nil {
				return err
			}
			understood = true
			return nil
		},
	}
	root.SetVersionTemplate("sessiontree {{.Version}}\n")
	if c.json {
		root.SetVersionTemplate(js.Fields(field("version", js.Text(root.Version))).JSON() + "\n")
	}
	root.SetOut(c.out)
	root.SetErr(c.stderr)
	if args == nil {
		args = []string{} // cobra takes nil for the process' own arguments
	}
	root.SetArgs(args)
	flags := root.PersistentFlags()
	flags.BoolVar(&c.json, "json", false, "answer in JSON (each command's help has the shape)")
	flags.StringVar(&c.color, "color", "auto", "colours: auto (on a terminal, unless NO_COLOR is set), always, never")
	flags.IntVar(&c.width, "width", 0, "cut or wrap lines at so many cells (default the terminal's width, else 100)")
	flags.StringVar(&c.db, "db", "", "the database (default $SESSIONTREE_DB, else one in your data folder)")
	root.SetHelpCommand(helpCommand())
	root.AddCommand(
		c.demoCommand(),
		c.treeCommand(),
		c.branchCommand(),
		c.contextCommand(),
		c.statsCommand(),
		c.listCommand(),
		c.createCommand(),
		c.appendCommand(),
		c.moveCommand(),
		c.labelCommand(),
		c.nameCommand(),
		c.forkCommand(),
		c.convertCommand(),
		c.deleteCommand(),
		c.importCommand(),
		c.exportCommand(),
		c.damageCommand(),
		c.diffCommand(),
		c.followCommand(),
		c.searchCommand(),
		c.queryCommand(),
		c.usageCommand(),
		c.toolsCommand(),
		c.branchesCommand(),
		c.compactionsCommand(),
		c.verifyCommand(),
		c.checkDatabaseCommand(),
		c.rebuildCommand(),
		c.repairCommand(),
		c.purgeCommand(),
		c.healthCommand(),
		c.backupCommand(),
		c.compactCommand(),
		c.benchCommand(),
		c.conformanceCommand(),
	)
	root.InitDefaultCompletionCmd()
	for _, group := range root.Commands() {
		// Cobra answers all that stands behind a mere group with its help.
		if group.HasSubCommands() && !group.Runnable() {
			group.Args = knownCommand
			group.RunE = func(cmd *cobra.Command, _ []string) error { return cmd.Help() }
		}
	}
	command, err := root.ExecuteContextC(c.ctx)
	if err != nil && !understood {
		return &usageError{err, command}
	}
	return err
}

// helpCommand is the command help. Cobra's own takes what it does not know for a
// success.
func helpCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "help [COMMAND]",
		Short: "Help about any command",
		Long:  "help shows the help of a command, as --help behind the command does.",
		Args: func(cmd *cobra.Command, args []string) error {
			_, err := commandAt(cmd.Root(), args)
			return err
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			about, err := commandAt(cmd.Root(), args)
			if err != nil {
				return err
			}
			about.InitDefaultHelpFlag() // the flags are part of the help
			about.InitDefaultVersionFlag()
			return about.Help()
		},
	}
}

// commandAt is the command that names lead to from root.
func commandAt(root *cobra.Command, names []string) (*cobra.Command, error) {
	at := root
	for i, name := range names {
		below := at.Commands()
		next := slices.IndexFunc(below, func(c *cobra.Command) bool { return c.Name() == name || c.HasAlias(name) })
		if next < 0 {
			return nil, knownCommand(at, names[i:])
		}
		at = below[next]
	}
	return at, nil
}

// knownCommand is asked about what stands where a command should.
func knownCommand(group *cobra.Command, args []string) error {
	if len(args) == 0 {
		return nil
	}
	message := fmt.Sprintf("unknown command %q", args[0])
	if near := group.SuggestionsFor(args[0]); len(near) > 0 {
		message += ", did you mean " + strings.Join(near, " or ") + "?"
	}
	return errors.New(message)
}

// configure takes the flags that every command has.
func (c *cli) configure(cmd *cobra.Command) error {
	switch c.color {
	case "auto":
	case "always":
		c.out.color = true
	case "never":
		c.out.color = false
	default:
		return usagef(cmd, "--color is auto, always or never, not %q", c.color)
	}
	if cmd.Flags().Changed("db") && c.db == "" {
		return usagef(cmd, "--db is a file, and not empty")
	}
	if c.width < 0 {
		return usagef(cmd, "--width is a number of cells, not %d", c.width)
	}
	if c.width > 0 {
		c.out.width, c.out.wraps = max(c.width, minWidth), true
	}
	return nil
}

// finish reports err and gives the exit code.
func (c *cli) finish(err error) int {
	var usage *usageError
	switch {
	case err == nil, isClosedPipe(err):
		// Whoever reads (head, a pager that was left) has seen enough.
		return exitOK
	case errors.Is(err, errFailed):
		if c.json {
			c.reportJSON("failed", err)
		}
		return exitFailed
	case errors.As(err, &usage):
		if c.json {
			c.reportJSON("usage", err)
			return exitUsage
		}
		c.complain(err.Error())
		if usage.command != nil {
			fmt.Fprintf(c.stderr, "Usage: %s\nTry '%s --help'.\n", usageLine(usage.command), usage.command.CommandPath())
		}
		return exitUsage
	}
	if c.json {
		c.reportJSON(codeOf(err), err)
	} else {
		c.complain(err.Error())
	}
	return exitFailed
}

func usageLine(command *cobra.Command) string {
	if command.HasAvailableSubCommands() {
		return command.CommandPath() + " COMMAND [flags]"
	}
	return command.UseLine()
}

// complain writes a line to stderr, behind what stdout holds so far.
func (c *cli) complain(message string) {
	c.out.Flush()
	fmt.Fprintf(c.stderr, "sessiontree: %s\n", safe(message))
}

func (c *cli) reportJSON(code string, err error) {
	c.out.Flush()
	v := js.Fields(field("error", js.Fields(
		field("code", js.Text(code)),
		field("message", js.Text(err.Error())))))
	c.stderr.Write(append(appendSafeJSON(nil, v.JSON()), '\n'))
}

func codeOf(err error) string {
	if code := eventlog.CodeOf(err); code != "" {
		return string(code)
	}
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return string(eventlog.NotFound)
	case errors.Is(err, fs.ErrExist):
		return string(eventlog.AlreadyExists)
	}
	return "internal"
}

// isClosedPipe says whether writing failed since nobody reads any more. Windows
// has two numbers for it that are not EPIPE.
func isClosedPipe(err error) bool {
	if errors.Is(err, syscall.EPIPE) || errors.Is(err, io.ErrClosedPipe) {
		return true
	}
	const brokenPipe, noData = syscall.Errno(109), syscall.Errno(232)
	return runtime.GOOS == "windows" && (errors.Is(err, brokenPipe) || errors.Is(err, noData))
}

// fileError names the file in an error that does not.
func fileError(path string, err error) error {
	if err == nil || strings.Contains(err.Error(), path) {
		return err
	}
	return fmt.Errorf("%s: %w", path, err)
}

// version is what the build knows of itself.
func version() string {
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return "(unknown)"
	}
	v := info.Main.Version
	if v == "" {
		v = "(devel)"
	}
	details := []string{}
	for _, s := range info.Settings {
		switch {
		case s.Key == "vcs.revision" && len(s.Value) >= 12:
			details = append(details, s.Value[:12])
		case s.Key == "vcs.modified" && s.Value == "true":
			details = append(details, "modified")
		}
	}
	details = append(details, info.GoVersion, runtime.GOOS+"/"+runtime.GOARCH)
	return v + " (" + strings.Join(details, ", ") + ")"
}

// terminalOf is the terminal that w is, and its width.
func terminalOf(w io.Writer) (width int, ok bool) {
	f, isFile := w.(*os.File)
	if !isFile || !term.IsTerminal(int(f.Fd())) {
		return 0, false
	}
	if width, _, err := term.GetSize(int(f.Fd())); err == nil && width > 0 {
		return width, true
	}
	return defaultWidth, true
}
