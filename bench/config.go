package bench

import (
	"fmt"
	"path"
	"slices"
	"strings"

	"github.com/sessiontree/sessiontree/bench/backend"
	"github.com/sessiontree/sessiontree/bench/shape"
	"github.com/sessiontree/sessiontree/eventlog"
)

// Config says what is measured. Its zero value measures this module's store on
// small trees.
type Config struct {
	// Seed draws the trees and chooses the entries. 0 is a seed like any other.
	Seed uint64

	// Shapes are names of shapes; none is chain, comb and realistic.
	Shapes []string

	// Sizes are numbers of entries; none is 1,000, 2,000, 5,000 and
	// 10,000.
	Sizes []int

	// Backends are measured each by itself beside its limit; those in processes of
	// their own beside the first. None is SQLite.
	Backends []backend.Backend

	// Operations are patterns for the names of operations, as of [path.Match]; none
	// is all.
	Operations []string

	// Effort is how many samples are taken, in parts of the usual number: more give
	// narrower intervals. 0 is 1.
	Effort float64

	// Sessions is how many sessions a list lists. 0 is 10,000.
	Sessions int

	// Corpus is how many entries the sessions have together that spend and search are
	// asked of. 0 is 20,000.
	Corpus int

	// Dir is the folder in which stores are made, in folders that are removed in
	// the end. "" is the system's for temporary files, which may be memory: then
	// nothing that waits for the disk can be believed.
	Dir string

	// Serve gives the command that serves a backend of this module in a process of
	// its own (see [backend.Serve]). Without it, what needs a fresh process is left
	// out.
	Serve func(name string) []string

	// Progress is told before each step, if it is there.
	Progress func(Progress)

	// Keep is given the result so far each time a tree has been measured, if it is
	// there: a run that is broken off has not been for nothing. An error ends the
	// run.
	Keep func(*Result) error
}

// Progress is how far a run has come.
type Progress struct {
	Done, Total int    // steps
	Step        string // the one that begins
}

const (
	defaultSessions = 10_000
	defaultCorpus   = 20_000
)

// complete checks the configuration and fills in the defaults. It fails with
// [eventlog.ErrInvalidArgument], and names every problem.
func (c Config) complete() (Config, error) {
	if len(c.Shapes) == 0 {
		c.Shapes = []string{"chain", "comb", "realistic"}
	}
	if len(c.Sizes) == 0 {
		c.Sizes = []int{1_000, 2_000, 5_000, 10_000}
	}
	if len(c.Backends) == 0 {
		c.Backends = []backend.Backend{backend.SQLite()}
	}
	if c.Effort == 0 {
		c.Effort = 1
	}
	if c.Sessions == 0 {
		c.Sessions = defaultSessions
	}
	if c.Corpus == 0 {
		c.Corpus = defaultCorpus
	}
	var problems []string
	for _, name := range c.Shapes {
		if _, err := shape.Find(name); err != nil {
			problems = append(problems, err.Error())
		}
	}
	for _, n := range c.Sizes {
		if n < minSize {
			problems = append(problems, fmt.Sprintf("a tree has %d entries or more, not %d", minSize, n))
		}
	}
	if !(c.Effort > 0 && c.Effort <= 1000) {
		problems = append(problems, fmt.Sprintf("the effort is a part of the usual number of samples, up to 1,000 of it, not %v", c.Effort))
	}
	if c.Sessions < 1 {
		problems = append(problems, fmt.Sprintf("a list has a session or more, not %d", c.Sessions))
	}
	if c.Corpus < minSize {
		problems = append(problems, fmt.Sprintf("a corpus has %d entries or more, not %d", minSize, c.Corpus))
	}
	for _, pattern := range c.Operations {
		matches := func(o operation) bool { ok, _ := path.Match(pattern, o.name); return ok }
		if !slices.ContainsFunc(operations, matches) {
			problems = append(problems, fmt.Sprintf("no operation is called %q, only %s", pattern, strings.Join(OperationNames(), ", ")))
		}
	}
	if problems != nil {
		return c, eventlog.Errorf(eventlog.InvalidArgument, "%s", strings.Join(problems, "; "))
	}
	slices.Sort(c.Sizes)
	return c, nil
}

// samples is how many samples are taken where so many are usual.
func (c Config) samples(usual int) int {
	const fewest = 3
	return max(fewest, int(float64(usual)*c.Effort))
}

// minSize is the size of the smallest tree in which every operation has
// something to do.
const minSize = 100

// wants says whether an operation was asked for.
func (c Config) wants(o operation) bool {
	if len(c.Operations) == 0 {
		return true
	}
	return slices.ContainsFunc(c.Operations, func(pattern string) bool {
		ok, _ := path.Match(pattern, o.name)
		return ok
	})
}
