package main

import (
	"errors"
	"fmt"
	"os"
	"os/signal"
	"sync"
	"syscall"

	"github.com/spf13/cobra"

	"github.com/sessiontree/sessiontree/eventlog"
	"github.com/sessiontree/sessiontree/eventlog/sessionfile"
	"github.com/sessiontree/sessiontree/sqlitestore"
)

const followLong = `follow imports session files as "import" does, and goes on: what is appended to
them, and files that come, are taken within a moment, until it is interrupted.
Where the system tells nothing of changes the folders are looked through every
two seconds. Several followers of one database do no harm.

--json: one line for each file that something came of, as in "files" of
"import --json".`

func (c *cli) followCommand() *cobra.Command {
	var o sqlitestore.ImportOptions
	var w sessionfile.WatchOptions
	cmd := &cobra.Command{
		Use:   "follow PATH…",
		Short: "Import session files as they grow, until interrupted",
		Long:  followLong,
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) == 0 {
				return errors.New("which files or folders?")
			}
			return nil
		},
		RunE: func(_ *cobra.Command, args []string) error {
			f := &follower{importRun: &importRun{cli: c, progress: &progress{}, counts: map[sqlitestore.Outcome]int{}}, told: map[string]string{}}
			w.Failed = func(path string, err error) { c.complain(fmt.Sprintf("%s: %v", path, err)) }
			ctx, stop := signal.NotifyContext(c.ctx, os.Interrupt, syscall.SIGTERM)
			defer stop()
			err := c.withDatabase(creates, func(d *database) error { return d.Follow(ctx, args, o, w, f.each) })
			if ctx.Err() != nil && errors.Is(err, ctx.Err()) {
				return nil // interrupted, as it should be
			}
			return err
		},
	}
	flags := cmd.Flags()
	flags.BoolVar(&o.Fork, "fork", false, "take a session that has another history here as a new one")
	flags.BoolVar(&o.Restore, "restore", false, "take sessions that were deleted here")
	flags.BoolVar(&w.NoEvents, "poll", false, "do not wait for the system's events, only look")
	return cmd
}

// follower tells what comes in, and of what does not once.
type follower struct {
	*importRun
	mu   sync.Mutex
	told map[string]string // by file, why it was refused
}

func (f *follower) each(r sqlitestore.FileResult) {
	f.mu.Lock()
	defer f.mu.Unlock()
	why := ""
	switch {
	case r.Outcome == sqlitestore.Refused:
		why = r.Err.Error()
		if r.Size == 0 || f.told[r.Path] == why || eventlog.CodeOf(r.Err) == eventlog.NotFound {
			return // not begun, told already, or gone
		}
	case r.Entries == 0 && r.Outcome != sqlitestore.Imported && !r.Corrected:
		return
	}
	f.told[r.Path] = why
	if f.json {
		f.out.answerJSON(fileResultJSON(r))
	} else {
		for _, line := range f.lines(r) {
			f.out.line(line)
		}
	}
	f.out.Flush()
}
