package sessionfile

import (
	"context"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/fsnotify/fsnotify"
)

// WatchOptions configure [Watch]. The zero value is right for a user's folders.
type WatchOptions struct {
	// Poll is how often the folders are looked through for what no event told of. 0
	// is 30 seconds, and 2 where the system gives no events.
	Poll time.Duration
	// NoEvents leaves the system's events out: it only polls.
	NoEvents bool
	// Failed is told of what cannot be watched or read, once; nil is silent.
	Failed func(path string, err error)
}

const (
	pollBeside = 30 * time.Second       // events that were lost are found then
	pollAlone  = 2 * time.Second        // the file systems that have no events
	settle     = 50 * time.Millisecond  // a writer's next line may follow at once
	hurry      = 500 * time.Millisecond // but one that never stops is not waited for
)

// Watch calls changed with the session files at and below paths: first with all of
// them, then with those that are new or have changed, until the context ends, whose
// error it returns. It fails where a path is not there.
func Watch(ctx context.Context, paths []string, o WatchOptions, changed func(files []string) error) error {
	w := &watch{paths: paths, o: o, seen: map[string]stamp{}, named: map[string]bool{}}
	w.o.Failed = once(o.Failed)
	for _, path := range paths {
		if _, err := os.Stat(path); err != nil {
			return err
		}
		w.named[filepath.Clean(path)] = true
	}
	defer w.close()
	w.listen()
	return w.run(ctx, changed)
}

// once tells of a failure at a path again only when it is another: the folders are
// looked through every few seconds, and a link that leads nowhere stays.
func once(failed func(path string, err error)) func(path string, err error) {
	if failed == nil {
		return func(string, error) {}
	}
	told := map[string]string{}
	return func(path string, err error) {
		if told[path] != err.Error() {
			told[path] = err.Error()
			failed(path, err)
		}
	}
}

type stamp struct {
	size     int64
	modified time.Time
}

type watch struct {
	paths  []string
	o      WatchOptions
	seen   map[string]stamp
	named  map[string]bool // the paths that were given
	events *fsnotify.Watcher
	blind  bool // a folder gives no events
}

// listen asks for the system's events, if it has some.
func (w *watch) listen() {
	if w.o.NoEvents {
		return
	}
	events, err := fsnotify.NewWatcher()
	if err != nil {
		w.o.Failed("events of the file system", err)
		return
	}
	w.events = events
	for _, path := range w.paths {
		if info, err := os.Stat(path); err == nil && !info.IsDir() {
			path = filepath.Dir(path) // a file may be replaced
			w.add(path)
			continue
		}
		w.addBelow(path)
	}
}

func (w *watch) add(dir string) {
	if err := w.events.Add(dir); err != nil {
		w.blind = true
		w.o.Failed(dir, err)
	}
}

// addBelow watches a folder and those below it.
func (w *watch) addBelow(dir string) {
	filepath.WalkDir(dir, func(path string, d os.DirEntry, err error) error {
		if err == nil && d.IsDir() {
			if path != dir && strings.HasPrefix(d.Name(), ".") {
				return filepath.SkipDir
			}
			w.add(path)
		}
		return nil
	})
}

func (w *watch) close() {
	if w.events != nil {
		w.events.Close()
	}
}

func (w *watch) run(ctx context.Context, changed func(files []string) error) error {
	interval := w.o.Poll
	if interval == 0 {
		interval = pollBeside
		if w.events == nil || w.blind {
			interval = pollAlone
		}
	}
	poll := time.NewTicker(interval)
	defer poll.Stop()
	var events <-chan fsnotify.Event
	var failures <-chan error
	if w.events != nil {
		events, failures = w.events.Events, w.events.Errors
	}
	waiting := map[string]bool{}
	var quiet, late <-chan time.Time
	hand := func(files []string) error {
		if len(files) == 0 {
			return nil
		}
		slices.Sort(files)
		return changed(files)
	}
	if err := hand(w.look()); err != nil {
		return err
	}
	for {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case err := <-failures:
			w.o.Failed("events of the file system", err)
			if err := hand(w.look()); err != nil { // some may be lost
				return err
			}
		case e := <-events:
			for _, file := range w.filesOf(e) {
				waiting[file] = true
			}
			if len(waiting) > 0 {
				quiet = time.After(settle)
				if late == nil {
					late = time.After(hurry)
				}
			}
			continue
		case <-poll.C:
			if err := hand(w.look()); err != nil {
				return err
			}
			continue
		case <-quiet:
		case <-late:
		}
		quiet, late = nil, nil
		var files []string
		for file := range waiting {
			if w.isNew(file) {
				files = append(files, file)
			}
		}
		clear(waiting)
		if err := hand(files); err != nil {
			return err
		}
	}
}

// filesOf are the session files that an event is about.
func (w *watch) filesOf(e fsnotify.Event) []string {
	if !e.Has(fsnotify.Create) && !e.Has(fsnotify.Write) {
		return nil
	}
	name := filepath.Base(e.Name)
	switch info, err := os.Stat(e.Name); {
	case err != nil:
		return nil
	case info.IsDir():
		if strings.HasPrefix(name, ".") || !w.isBelow(e.Name) {
			return nil
		}
		w.addBelow(e.Name)
		found, _ := Discover([]string{e.Name}, w.o.Failed)
		var files []string
		for _, f := range found {
			files = append(files, f.Path)
		}
		return files
	case w.named[e.Name]:
		return []string{e.Name}
	case info.Mode().IsRegular() && strings.HasSuffix(name, ".jsonl") && !strings.HasPrefix(name, ".") && w.isBelow(e.Name):
		return []string{e.Name}
	}
	return nil
}

// isBelow says whether a path is below one of the folders; a file that was named
// has neighbours that were not.
func (w *watch) isBelow(path string) bool {
	for _, dir := range w.paths {
		if rel, err := filepath.Rel(dir, path); err == nil && filepath.IsLocal(rel) && rel != "." {
			return true
		}
	}
	return false
}

// look gives the files that are new or have changed since they were looked at.
func (w *watch) look() (files []string) {
	var there []string
	for _, path := range w.paths {
		if _, err := os.Stat(path); err == nil {
			there = append(there, path)
		}
	}
	found, err := Discover(there, w.o.Failed)
	if err != nil {
		w.o.Failed(strings.Join(there, ", "), err)
	}
	for _, f := range found {
		if w.isNew(f.Path) {
			files = append(files, f.Path)
		}
	}
	return files
}

func (w *watch) isNew(path string) bool {
	info, err := os.Stat(path)
	if err != nil {
		return false
	}
	now := stamp{info.Size(), info.ModTime()}
	was, ok := w.seen[path]
	w.seen[path] = now
	return !ok || was != now
}
