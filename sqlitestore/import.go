package sqlitestore

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"

	"golang.org/x/sync/semaphore"

	"github.com/sessiontree/sessiontree/eventlog"
	"github.com/sessiontree/sessiontree/projections"
)

// Outcome is what became of a file that was to be imported.
type Outcome string

const (
	Imported  Outcome = "imported"  // a session that was not here
	Extended  Outcome = "extended"  // a session that was here, with entries that were not
	Unchanged Outcome = "unchanged" // all that it holds was here
	Damaged   Outcome = "damaged"   // imported or extended, with bytes set aside that cannot be read
	Refused   Outcome = "refused"   // nothing was taken; Err says why
	Different Outcome = "different" // verified, and what is here is not what the file holds
)

// FileResult is what became of one file.
type FileResult struct {
	Path    string // absolute
	Outcome Outcome
	Session string           // the session that holds it, "" if none does
	Entries int              // how many were new here
	Dialect eventlog.Dialect // of a session that is new here, or whose dialect was corrected
	Basis   string           // what decided it, "" for others
	// Corrected says that the session was here, with a dialect that nobody chose, and
	// that what came shows it to be of the other one: its views were made again.
	Corrected bool
	// Against is what of the entries that were read speaks for the other dialect than
	// the session has, "" for nothing: one was asked for, or the marks contradict.
	Against string
	Damage  int   // byte ranges of the file that hold no entry
	Size    int64 // of the file in bytes
	Err     error // of a refused one
	// Problems are what of a different one is not as in the file.
	Problems []string
}

// ImportOptions say how files are imported. The zero value takes what is new and
// refuses what does not fit.
type ImportOptions struct {
	// Fork takes a file whose session has another history here as a session of its
	// own, with a new id.
	Fork bool
	// Restore takes sessions that were deleted here.
	Restore bool
	// Verify reads files that look unchanged too, and compares what is here of each
	// with the file: the bytes, the leaf, the branch, the context, totals, name and
	// labels, as the reference walk over the file's entries has them.
	Verify bool
	// Dialect is by which rules new sessions are answered; nil goes by what their
	// entries tell.
	Dialect *eventlog.Dialect
	// MaxLine is the longest line that is read, in bytes. 0 is 256 MiB.
	MaxLine int
}

// DivergedError is the cause of the [eventlog.Conflict] that refuses a file: its
// session is here with another history.
type DivergedError struct {
	Shared int              // how many entries both begin with
	File   []eventlog.Entry // what the file goes on with: the first few
	Here   []eventlog.Entry // what the session goes on with
}

func (e *DivergedError) Error() string {
	return fmt.Sprintf("both begin with the same %d entries; then the file has %s, and the session here %s", e.Shared, tailText(e.File), tailText(e.Here))
}

func tailText(entries []eventlog.Entry) string {
	if len(entries) == 0 {
		return "nothing"
	}
	names := make([]string, len(entries))
	for i, e := range entries {
		names[i] = fmt.Sprintf("%s %s", e.Type(), e.ID())
	}
	return strings.Join(names, ", ")
}

const (
	// importers is how many files are under way: a commit takes all that wait.
	importers = 32
	// importMemory is how many bytes of files are held at a time.
	importMemory = 32 << 20
	// streamed is the size from which on a file is not held, but read while it is
	// written, one at a time.
	streamed = 4 << 20
	// lookups is how many files are looked up at a time.
	lookups = 256
)

// Import imports session files, each in its own transaction, and calls each with
// the result for each file, in the order in which they are done, from one
// goroutine at a time. Files are taken in the order of their names, which with
// Pi's is the order of time: parents come before their forks. A file that cannot
// be taken is a result, not an error; an error ends the import.
//
// Other writers wait while a file is taken. What can be done before and beside its
// transaction is: reading, checking, finding the dialect, and copying the log into
// the database afterwards. What is left was, on two cores with a disk that syncs, 6 to
// 8 seconds for a file of 600 MB (12 before), 3 for one of 100 MB with 170,000 entries.
// An append of this process waits that long; one of another process fails with
// [eventlog.ErrBusy] if its [Options.BusyTimeout] is less.
func (s *Store) Import(ctx context.Context, paths []string, o ImportOptions, each func(FileResult)) error {
	if s.writer == nil {
		return s.readOnly()
	}
	paths, err := absolute(paths)
	if err != nil {
		return err
	}
	defer s.views.Rest()()
	im := &importer{store: s, o: o, each: each, memory: semaphore.NewWeighted(importMemory)}
	if err := im.run(ctx, paths); err != nil {
		return err
	}
	return s.linkParents(ctx)
}

// absolute gives the paths in full, each once, in the order of the names.
func absolute(paths []string) ([]string, error) {
	out := make([]string, len(paths))
	for i, path := range paths {
		var err error
		if out[i], err = filepath.Abs(path); err != nil {
			return nil, eventlog.Errorf(eventlog.StorageFailed, "cannot tell where %s is: %v", path, err)
		}
	}
	slices.SortFunc(out, func(a, b string) int {
		if c := strings.Compare(filepath.Base(a), filepath.Base(b)); c != 0 {
			return c
		}
		return strings.Compare(a, b)
	})
	return slices.Compact(out), nil
}

// importer is one run of Import.
type importer struct {
	store  *Store
	o      ImportOptions
	memory *semaphore.Weighted
	stream sync.Mutex // one file at a time is read while it is written

	prefixes *prefixes // of a follower, else nil
	// done are the files of the run, by path, by name, and by the id in the name.
	done map[string]*progress

	reports sync.Mutex
	each    func(FileResult)
}

type job struct {
	path  string
	known *source
}

// progress is how far a file is.
type progress struct {
	order int
	done  chan struct{} // closed when it is
}

func (im *importer) run(ctx context.Context, paths []string) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	im.done = make(map[string]*progress, 3*len(paths))
	for i, path := range paths {
		name, p := filepath.Base(path), &progress{i, make(chan struct{})}
		im.done[path], im.done[name] = p, p
		if id := idInName(name); id != "" {
			im.done[id] = p
		}
	}
	jobs := make(chan job)
	failed := make(chan error, 1) // the first; a deadline that passes says less
	var working sync.WaitGroup
	for range min(importers, len(paths)) {
		working.Go(func() {
			for j := range jobs {
				if err := im.one(ctx, j); err != nil {
					select {
					case failed <- err:
					default:
					}
					cancel(err)
				}
				close(im.done[j.path].done)
			}
		})
	}
	err := im.feed(ctx, paths, jobs)
	close(jobs)
	working.Wait()
	select {
	case err = <-failed:
	default:
		if err == nil {
			err = context.Cause(ctx)
		}
	}
	return err
}

// feed hands the files out, with what is known of each.
func (im *importer) feed(ctx context.Context, paths []string, jobs chan<- job) error {
	for some := range slices.Chunk(paths, lookups) {
		known := make([]*source, len(some))
		err := im.store.read(ctx, func(tx *projections.Tx) (err error) {
			for i, path := range some {
				if known[i], err = sourceOf(ctx, tx, path); err != nil {
					return err
				}
			}
			return nil
		})
		if err != nil {
			return err
		}
		for i, path := range some {
			select {
			case jobs <- job{path, known[i]}:
			case <-ctx.Done():
				return context.Cause(ctx)
			}
		}
	}
	return nil
}

// one imports one file and reports it. Its error is one that ends the import.
func (im *importer) one(ctx context.Context, j job) error {
	if ctx.Err() != nil {
		return nil
	}
	result, err := im.importFile(ctx, j)
	var e *eventlog.Error
	switch {
	case err == nil:
	case errors.As(err, &e) && isOfFile(e):
		result.Outcome, result.Err = Refused, err
	default:
		return err
	}
	im.reports.Lock()
	defer im.reports.Unlock()
	im.each(result)
	return nil
}

// fileFault marks the error of a file, which is no error of the database.
type fileFault struct{ error }

func (f fileFault) Unwrap() error { return f.error }

// isOfFile says whether an error is one file's own matter.
func isOfFile(e *eventlog.Error) bool {
	switch e.Code {
	case eventlog.StorageFailed:
		var fault fileFault
		return errors.As(e, &fault)
	case eventlog.Closed:
		return false
	case eventlog.Busy:
		var leased *LeaseError // another's for an hour perhaps: the other files can go on
		return errors.As(e, &leased)
	}
	return true
}

// attempts is how often a file is tried that another importer takes at the same
// time.
const attempts = 10

var errMoved = errors.New("another import took the file meanwhile")

// importFile imports one file, again where another process has it in hand.
func (im *importer) importFile(ctx context.Context, j job) (FileResult, error) {
	var result FileResult
	var err error
	for range attempts {
		f := &fileImport{importer: im, path: j.path, known: j.known, forkOf: 0}
		result, err = f.run(ctx)
		var diverged *DivergedError
		if im.o.Fork && errors.As(err, &diverged) {
			fork := &fileImport{importer: im, path: j.path, known: j.known, forkOf: f.session}
			result, err = fork.run(ctx)
		}
		if !errors.Is(err, errMoved) && !errors.Is(err, eventlog.ErrAlreadyExists) {
			break
		}
		readErr := im.store.read(ctx, func(tx *projections.Tx) (err error) {
			j.known, err = sourceOf(ctx, tx, j.path)
			return err
		})
		if readErr != nil {
			return result, readErr
		}
	}
	return result, err
}

func cannotRead(path string, err error) error {
	code := eventlog.StorageFailed
	if errors.Is(err, os.ErrNotExist) {
		code = eventlog.NotFound
	}
	return &eventlog.Error{Code: code, Message: "cannot read " + path, Err: fileFault{err}}
}
