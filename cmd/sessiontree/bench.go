package main

import (
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/signal"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/schollz/progressbar/v3"
	"github.com/spf13/cobra"

	"github.com/sessiontree/sessiontree/bench"
	"github.com/sessiontree/sessiontree/bench/backend"
	"github.com/sessiontree/sessiontree/bench/report"
	treeshape "github.com/sessiontree/sessiontree/bench/shape"
)

const benchLong = `bench measures stores of session trees, on trees that it draws itself: how long
each operation takes, beside what is possible (the same bytes through bare SQL or
a bare file, turn by turn), and how the cost grows with the size of the tree. It
takes some ten minutes; --sizes, --shapes, --backends, --ops and --effort ask for
more or less. It touches no session: stores are made in temporary folders. Other
stores are measured beside ours with --backends sqlite,pi-sqlite,pi-jsonl: see
"bench peers".

"times the limit" is the median of many pairs, with the interval in which it lies
with 95%; "quiet" is what the fastest tenth of both says, on a busy machine the
better guess; "cpu" is the ratio of processor time, which others do not change
but which leaves out all waiting for the disk. A "?" marks a figure that another
run may put elsewhere by more than a tenth. A target is what this project asks of
its own backends; a missed one is no error. A time may have a ratio beside it,
which does as well: on a slower machine its limit takes longer too. Times depend on
the machine: compare two runs of one machine.

--json:
{
  "machine":  {"os", "arch", "cpu", "cores", "memory" (bytes), "fileSystem",
              "fsync" (an estimate, of 4 KB, in ns), "go", "sqlite", "revision"}
  "seed":     number
  "started":  ISO date
  "duration": nanoseconds
  "rows":     [{"operation", "backend", "shape", "size",
              "unit": "ns", "ns/entry", "B" or "B/entry"
              "entries": how many an operation is about, missing where no matter
              "samples": [number], "value": estimate of them, "p99"
              "against": what "limit" has samples of; missing with what follows
              "limit": [number], "ratio": estimate, pair by pair
              "quiet": ratio of the tenth percentiles
              "cpu": processor time for each unit, the mean, "cpuRatio": to the
              limit's; both missing where it is not known
              "unsure": true, or missing
              "target": {"ratio", "value" or both, "p99" or "total": true for a value
                        that is the 99th percentile, or for all entries together}
              "met": true, or missing}]
  "growth":   [{"operation", "backend", "shape", "sizes", "by": "size" or
              "entries", "exponent", "expected"}]
  "notRun":   [{"backend", "operation", "shape", "size", "reason"}], missing if all
              was; without an operation it is everything
}
An estimate is {"median", "low", "high"}.`

// benchFlags are the flags of bench.
type benchFlags struct {
	shapes, sizes, backends, operations []string
	seed                                uint64
	corpus                              string
	effort                              float64
	dir, html, out                      string
}

func (c *cli) benchCommand() *cobra.Command {
	var f benchFlags
	cmd := &cobra.Command{
		Use:   "bench",
		Short: "Measure stores of session trees",
		Long:  benchLong,
		Args:  cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			config, err := f.config()
			if err != nil {
				return usagef(cmd, "%v", err)
			}
			return c.bench(config, f)
		},
	}
	flags := cmd.Flags()
	flags.StringSliceVar(&f.shapes, "shapes", nil, "shapes of trees (default chain,comb,realistic): "+strings.Join(treeshape.Names(), ", "))
	flags.StringSliceVar(&f.sizes, "sizes", nil, "entries in a tree (default 1k,2k,5k,10k), such as 1k,10k,100k,1M; growth is fitted over four or more")
	flags.StringSliceVar(&f.backends, "backends", nil, "backends (default sqlite): sqlite, sqlite-coding-agent (its sessions in that dialect), jsonl, memory; bare-sql and bare-file are the limits; of others, see \"bench peers\": "+strings.Join(peerNames(), ", "))
	flags.StringSliceVar(&f.operations, "ops", nil, "operations, or patterns such as append*: "+strings.Join(bench.OperationNames(), ", "))
	flags.Uint64Var(&f.seed, "seed", 1, "draws the trees and chooses the entries")
	flags.Float64Var(&f.effort, "effort", 1, "how many samples to take, in parts of the usual number")
	flags.StringVar(&f.corpus, "corpus", "20k", "entries of the sessions together that spend and search are asked of")
	flags.StringVar(&f.dir, "dir", "", "a folder on the disk that is to be measured (default the system's for temporary files)")
	flags.StringVar(&f.html, "html", "", "write a page with plots to this file")
	flags.StringVar(&f.out, "out", "", "write the result, as of --json, to this file, as far as it has come")
	cmd.AddCommand(c.benchGenCommand(), c.benchCompareCommand(), c.benchCheckCommand(), c.benchPeersCommand(), c.benchServeCommand())
	return cmd
}

func (f benchFlags) config() (bench.Config, error) {
	config := bench.Config{Seed: f.seed, Shapes: f.shapes, Operations: f.operations, Effort: f.effort, Dir: f.dir, Serve: serveCommand}
	for _, text := range f.sizes {
		n, err := parseSize(text)
		if err != nil {
			return config, err
		}
		config.Sizes = append(config.Sizes, n)
	}
	var err error
	if config.Corpus, err = parseSize(f.corpus); err != nil {
		return config, err
	}
	for _, name := range f.backends {
		b, ok := findBackend(name)
		if !ok {
			return config, fmt.Errorf("there is no backend %q", name)
		}
		config.Backends = append(config.Backends, b)
	}
	return config, nil
}

// parseSize reads a number such as 500, 10k or 1M.
func parseSize(text string) (int, error) {
	digits, factor := text, 1
	switch {
	case strings.HasSuffix(text, "k"):
		digits, factor = strings.TrimSuffix(text, "k"), 1_000
	case strings.HasSuffix(text, "M"):
		digits, factor = strings.TrimSuffix(text, "M"), 1_000_000
	}
	n, err := strconv.Atoi(digits)
	if err != nil || n < 1 || n > 100_000_000/factor {
		return 0, fmt.Errorf("a size is a number of entries such as 500, 10k or 1M, not %q", text)
	}
	return n * factor, nil
}

// serveCommand has this program serve a backend in a process of its own.
func serveCommand(name string) []string {
	program, err := os.Executable()
	if err != nil {
		program = os.Args[0]
	}
	return []string{program, "bench", "serve", name}
}

func (c *cli) bench(config bench.Config, f benchFlags) error {
	config.Progress = c.progress()
	if f.out != "" {
		config.Keep = func(r *bench.Result) error {
			return writeFile(f.out, func(w io.Writer) error { return encode(w, r) })
		}
	}
	// Broken off, it still removes its stores, which may be large.
	ctx, stop := signal.NotifyContext(c.ctx, os.Interrupt, syscall.SIGTERM)
	defer stop()
	result, err := bench.Run(ctx, config)
	c.progressDone()
	if err != nil {
		return err
	}
	if f.html != "" {
		if err := writeFile(f.html, func(w io.Writer) error { return report.HTML(w, result) }); err != nil {
			return err
		}
	}
	if c.json {
		return encode(c.out, result)
	}
	return report.Table(c.out, result)
}

func encode(w io.Writer, result *bench.Result) error { return json.NewEncoder(w).Encode(result) }

// writeFile makes a file, or overwrites it.
func writeFile(path string, write func(io.Writer) error) error {
	file, err := os.Create(path)
	if err != nil {
		return err
	}
	if err := write(file); err != nil {
		file.Close()
		return fileError(path, err)
	}
	return file.Close()
}

// progressEvery is how often a run tells of itself where there is no terminal.
const progressEvery = 10 * time.Second

// progress shows how far a run has come: as a bar on a terminal, else as a line
// now and then of a run that takes long.
func (c *cli) progress() func(bench.Progress) {
	width, ok := terminalOf(c.stderr)
	if !ok {
		last := time.Now()
		return func(p bench.Progress) {
			if time.Since(last) >= progressEvery {
				last = time.Now()
				c.complain(fmt.Sprintf("bench: step %d of %d: %s", p.Done+1, p.Total, p.Step))
			}
		}
	}
	var bar *progressbar.ProgressBar
	return func(p bench.Progress) {
		if bar == nil {
			bar = progressbar.NewOptions(p.Total, progressbar.OptionSetWriter(c.stderr), progressbar.OptionSetWidth(min(30, width/3)),
				progressbar.OptionShowCount(), progressbar.OptionClearOnFinish(), progressbar.OptionSetPredictTime(false))
			c.bar = bar
		}
		bar.Describe(p.Step)
		_ = bar.Set(p.Done) // a terminal that cannot be written to shows nothing
	}
}

func (c *cli) progressDone() {
	if c.bar != nil {
		_ = c.bar.Finish()
	}
}

// benchServeCommand is the other end of a backend in a process of its own.
func (c *cli) benchServeCommand() *cobra.Command {
	return &cobra.Command{
		Use:    "serve BACKEND",
		Short:  "Serve a backend over lines of JSON, for bench",
		Hidden: true,
		Args:   cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			b, ok := backend.Find(args[0])
			if !ok {
				return usagef(cmd, "there is no backend %q", args[0])
			}
			return backend.Serve(c.ctx, b, c.stdin, flushing{c.out})
		},
	}
}

// flushing writes at once: somebody waits for each reply.
type flushing struct{ out *output }

func (f flushing) Write(b []byte) (int, error) {
	n, err := f.out.Write(b)
	if err == nil {
		err = f.out.Flush()
	}
	return n, err
}
