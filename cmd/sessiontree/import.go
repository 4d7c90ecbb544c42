package main

import (
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/schollz/progressbar/v3"
	"github.com/spf13/cobra"

	"github.com/sessiontree/sessiontree/eventlog"
	"github.com/sessiontree/sessiontree/eventlog/js"
	"github.com/sessiontree/sessiontree/eventlog/sessionfile"
	"github.com/sessiontree/sessiontree/sqlitestore"
)

const importLong = `import takes session files into the database: each PATH is a file or a folder,
also the one where Pi keeps all its sessions. The files are only read. Every
format of Pi is known (versions 1 to 4), and oh-my-pi's.

Each file is taken in a transaction of its own. What is here already is not taken
again: a second import changes nothing, one that was stopped goes on, and of a
file that has grown the new entries are taken.

  imported   the session is new here
  extended   the file has entries that were not here
  unchanged  all of the file is here
  damaged    imported or extended, and some bytes could not be read: they are set
             aside, "damage" lists them
  refused    nothing was taken, and why: no session, a session that has another
             history here (--fork takes it as a new one), or one that was deleted
             here (--restore takes it again)

--verify reads every file, also those that look unchanged, and compares what is
here with what it holds: the bytes that "export" would write, and the leaf, the
branch, the context, totals, name and labels, as the reference answers them from
the file. A file that fails is "different".

Unchanged files are shown with --all only; on a terminal, where a bar shows how
far it is, so are imported and extended ones. The exit code is 1 if a file was
refused or is different.

Two programs of Pi write files of version 3, and answer them by different rules:
leaf and active_tools_change entries and retained tails are the harness's; usage
and context_edit entries, system messages, and compactions that carry one or
name themselves are the coding agent's, which also has the files without a mark.
--dialect says it instead. A session that was here without a choice of anybody's
gets the other dialect when such a mark comes later, as if all had come at once.

--json:
{
  "database": the file
  "files": [{"file" (in their order), "outcome", "session" (id, or null),
            "entries" (new here),
            "damage" (number of byte ranges), "dialect" (of a session that is
            new here, or whose dialect was corrected: {"name", "basis"}, what
            decided it; or null), "corrected" (true for the latter), "against"
            (what of the file speaks for the other dialect than the session
            has, or null), "size",
            "problems" (what is different), "error" ({"code", "message"}, or
            null), "diverged" (of a session with another history: {"shared",
            "file", "here"}, the number of entries that both begin with and
            the entries that follow in each; or null)}]
  "summary": {"files", "imported", "extended", "unchanged", "damaged", "refused",
             "different", "entries", "bytes", "seconds"}
}`

func (c *cli) importCommand() *cobra.Command {
	var o sqlitestore.ImportOptions
	var all bool
	var dialect dialectFlag
	cmd := &cobra.Command{
		Use:   "import PATH…",
		Short: "Take session files into the database",
		Long:  importLong,
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) == 0 {
				return errors.New("which files or folders?")
			}
			return nil
		},
		RunE: func(_ *cobra.Command, args []string) error {
			o.Dialect = dialect.told
			i := &importRun{cli: c, o: o, all: all, started: time.Now()}
			return i.run(args)
		},
	}
	flags := cmd.Flags()
	flags.BoolVar(&o.Fork, "fork", false, "take a session that has another history here as a new one")
	flags.BoolVar(&o.Restore, "restore", false, "take sessions that were deleted here")
	flags.Var(&dialect, "dialect", "the dialect of sessions that are new here, harness or coding-agent\n(default by their marks)")
	flags.BoolVar(&o.Verify, "verify", false, "read every file, and compare what is here with what it holds")
	flags.BoolVarP(&all, "all", "a", false, "show every file")
	return cmd
}

// importRun is one run of import.
type importRun struct {
	*cli
	o       sqlitestore.ImportOptions
	all     bool
	started time.Time

	progress *progress
	files    []sqlitestore.FileResult // with --json
	counts   map[sqlitestore.Outcome]int
	entries  int
	bytes    int64
	lost     int // places below a folder that could not be looked at
}

func (i *importRun) run(paths []string) error {
	found, err := sessionfile.Discover(paths, func(path string, err error) {
		i.lost++
		i.complain(fileError(path, err).Error())
	})
	if err != nil {
		return err
	}
	var names []string
	size := int64(0)
	for _, f := range found {
		names, size = append(names, f.Path), size+f.Size
	}
	i.counts = map[sqlitestore.Outcome]int{}
	i.progress = newProgress(i.stderr, len(found), size)
	return i.withDatabase(creates, func(d *database) error {
		err := d.Import(i.ctx, names, i.o, i.each)
		i.progress.end()
		if err != nil {
			return err
		}
		i.summary(d)
		if i.counts[sqlitestore.Refused]+i.counts[sqlitestore.Different]+i.lost > 0 {
			return errFailed
		}
		return nil
	})
}

// each takes the result for one file.
func (i *importRun) each(r sqlitestore.FileResult) {
	i.counts[r.Outcome]++
	i.entries += r.Entries
	i.bytes += r.Size
	switch {
	case i.json:
		i.files = append(i.files, r)
	case i.all || isNews(r) || r.Outcome != sqlitestore.Unchanged && !(i.progress.shown() && isUsual(r.Outcome)):
		i.progress.hide()
		for _, line := range i.lines(r) {
			i.out.line(line)
		}
		i.out.Flush()
	}
	i.progress.add(r.Size)
}

// isNews says whether a file tells something of its session's dialect.
func isNews(r sqlitestore.FileResult) bool { return r.Corrected || r.Against != "" }

// isUsual says whether a bar that moves on is all that is to be said.
func isUsual(o sqlitestore.Outcome) bool {
	return o == sqlitestore.Imported || o == sqlitestore.Extended
}

var outcomeStyles = map[sqlitestore.Outcome]style{
	sqlitestore.Imported: green, sqlitestore.Extended: green, sqlitestore.Damaged: yellow, sqlitestore.Refused: red, sqlitestore.Different: red, sqlitestore.Unchanged: dim,
}

// lines are what is said of one file.
func (i *importRun) lines(r sqlitestore.FileResult) []string {
	head := i.out.paint(outcomeStyles[r.Outcome], padded(string(r.Outcome), len("unchanged"))) + "  " + safe(r.Path)
	if r.Outcome == sqlitestore.Refused {
		return append([]string{head, "  " + safe(r.Err.Error())}, tails(r.Err)...)
	}
	head += "  " + shownID(r.Session) + "  " + count(r.Entries, "new entry")
	if r.Damage > 0 {
		head += ", " + count(r.Damage, "damaged place")
	}
	lines := []string{head}
	if r.Corrected {
		lines = append(lines, "  "+safe("its dialect is "+r.Dialect.String()+" now: "+r.Basis))
	}
	if r.Against != "" {
		lines = append(lines, "  "+safe("this speaks for the other dialect: "+r.Against))
	}
	for _, p := range r.Problems {
		lines = append(lines, "  "+safe(p))
	}
	return lines
}

// tails show where the history of a file and the one here part.
func tails(err error) []string {
	var d *sqlitestore.DivergedError
	if !errors.As(err, &d) {
		return nil
	}
	var lines []string
	for _, side := range []struct {
		name    string
		entries []eventlog.Entry
	}{{"in the file", d.File}, {"here", d.Here}} {
		if len(side.entries) == 0 {
			lines = append(lines, "    "+side.name+": nothing more")
		}
		for _, e := range side.entries {
			lines = append(lines, fmt.Sprintf("    %s: %s %s  %s", side.name, shownID(e.ID()), oneLine(kindOf(e)), cut(excerpt(e), 60)))
		}
	}
	return lines
}

func fileResultJSON(r sqlitestore.FileResult) js.Value {
	failure, diverged := js.NullValue(), js.NullValue()
	if r.Err != nil {
		failure = js.Fields(field("code", js.Text(codeOf(r.Err))), field("message", js.Text(r.Err.Error())))
	}
	var d *sqlitestore.DivergedError
	if errors.As(r.Err, &d) {
		diverged = js.Fields(field("shared", number(d.Shared)), field("file", entryList(d.File)), field("here", entryList(d.Here)))
	}
	dialect := js.NullValue()
	if r.Basis != "" {
		dialect = js.Fields(field("name", js.Text(r.Dialect.String())), field("basis", js.Text(r.Basis)))
	}
	return js.Fields(
		field("dialect", dialect),
		field("corrected", js.Boolean(r.Corrected)),
		field("against", optional(r.Against)),
		field("file", js.Text(r.Path)),
		field("outcome", js.Text(string(r.Outcome))),
		field("session", optional(r.Session)),
		field("entries", number(r.Entries)),
		field("damage", number(r.Damage)),
		field("size", js.Num(float64(r.Size))),
		field("problems", js.Texts(r.Problems...)),
		field("error", failure),
		field("diverged", diverged))
}

var outcomes = []sqlitestore.Outcome{sqlitestore.Imported, sqlitestore.Extended, sqlitestore.Unchanged, sqlitestore.Damaged, sqlitestore.Refused, sqlitestore.Different}

func (i *importRun) summary(d *database) {
	total, seconds := 0, time.Since(i.started).Seconds()
	for _, n := range i.counts {
		total += n
	}
	if i.json {
		members := []js.Member{field("files", number(total))}
		for _, o := range outcomes {
			members = append(members, field(string(o), number(i.counts[o])))
		}
		members = append(members, field("entries", number(i.entries)), field("bytes", js.Num(float64(i.bytes))), field("seconds", js.Num(seconds)))
		slices.SortFunc(i.files, func(a, b sqlitestore.FileResult) int { return strings.Compare(a.Path, b.Path) })
		files := make([]js.Value, len(i.files))
		for j, r := range i.files {
			files[j] = fileResultJSON(r)
		}
		i.out.answerJSON(js.Fields(field("database", js.Text(d.path)), field("files", js.List(files...)), field("summary", js.Fields(members...))))
		return
	}
	var parts []string
	for _, o := range outcomes {
		if n := i.counts[o]; n > 0 {
			parts = append(parts, grouped(float64(n))+" "+string(o))
		}
	}
	line := count(total, "file")
	if parts != nil {
		line += ": " + strings.Join(parts, ", ")
	}
	i.out.line(line + "; " + count(i.entries, "new entry"))
}

// progress is a bar on a terminal, and nothing elsewhere.
type progress struct {
	bar   *progressbar.ProgressBar
	done  int
	total int
}

func newProgress(w io.Writer, files int, size int64) *progress {
	p := &progress{total: files}
	if width, ok := terminalOf(w); ok && files > 1 {
		p.bar = progressbar.NewOptions64(max(size, 1),
			progressbar.OptionSetWriter(w),
			progressbar.OptionShowBytes(true),
			progressbar.OptionSetWidth(max(width/4, 10)),
			progressbar.OptionThrottle(100*time.Millisecond),
			progressbar.OptionSetPredictTime(true),
			progressbar.OptionClearOnFinish(),
			progressbar.OptionSetDescription(p.files()))
	}
	return p
}

func (p *progress) files() string { return fmt.Sprintf("%d/%d files", p.done, p.total) }

func (p *progress) add(bytes int64) {
	if p.done++; p.bar != nil {
		p.bar.Describe(p.files())
		p.bar.Add64(bytes)
	}
}

func (p *progress) shown() bool { return p.bar != nil }

// hide clears the bar's line for other output.
func (p *progress) hide() {
	if p.bar != nil {
		p.bar.Clear()
	}
}

func (p *progress) end() {
	if p.bar != nil {
		p.bar.Finish()
	}
}
