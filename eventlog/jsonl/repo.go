package jsonl

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/sessiontree/sessiontree/eventlog"
	"github.com/sessiontree/sessiontree/eventlog/js"
	"github.com/sessiontree/sessiontree/eventlog/osfile"
)

// Repo is a folder of sessions: a folder below it for each working folder, a
// file in there for each session, as Pi has it.
type Repo struct {
	root string
	o    Options

	creating sync.Mutex // so that of two creations of one id one finds it taken
}

// NewRepo makes a repository of the folder root, which need not exist yet.
func NewRepo(root string, o Options) *Repo { return &Repo{root: root, o: o} }

// Create implements [eventlog.Repo]. An id is taken if there is a file for it in
// our folder for the working folder; files of Pi's, and other folders, are not
// searched.
func (r *Repo) Create(ctx context.Context, o eventlog.CreateOptions) (*eventlog.Session, error) {
	return r.create(ctx, o, nil)
}

func (r *Repo) create(ctx context.Context, o eventlog.CreateOptions, entries []eventlog.Entry) (*eventlog.Session, error) {
	m, err := o.NewMetadata(r.o.Source)
	if err != nil {
		return nil, err
	}
	dir, err := r.dir(dirName(o.CWD))
	if err != nil {
		return nil, err
	}
	if err := osfile.MakeDir(dir); err != nil {
		return nil, fileError("Failed to create session directory "+dir, err)
	}
	if len(m.Header) > maxHeader {
		return nil, eventlog.Errorf(eventlog.InvalidArgument, "the header of a session holds %d bytes at the most, not %d", maxHeader, len(m.Header))
	}
	r.creating.Lock()
	defer r.creating.Unlock()
	names, err := namesIn(dir)
	if err != nil {
		return nil, fileError("Failed to list sessions in "+dir, err)
	}
	sweep(dir, names)
	if idTaken(names, m.ID) {
		return nil, eventlog.Errorf(eventlog.AlreadyExists, "Session %s exists already in %s", m.ID, dir)
	}
	s, err := Create(ctx, filepath.Join(dir, fileName(m.CreatedAt, m.ID)), m, entries, r.o)
	if err != nil {
		return nil, err
	}
	return eventlog.NewSession(s), nil
}

func (r *Repo) dir(name string) (string, error) {
	root, err := filepath.Abs(r.root)
	if err != nil {
		return "", fileError("Failed to resolve sessions root "+r.root, err)
	}
	return filepath.Join(root, name), nil
}

func namesIn(dir string) ([]string, error) {
	d, err := os.Open(dir)
	if err != nil {
		return nil, err
	}
	defer d.Close()
	return d.Readdirnames(-1)
}

// sweep removes what processes that were killed while they made a session left
// behind: it holds transcripts, and nobody would look for them.
func sweep(dir string, names []string) {
	for _, name := range names {
		if !strings.HasPrefix(name, ".") || !strings.HasSuffix(name, tempSuffix) {
			continue
		}
		temp := filepath.Join(dir, name)
		if info, err := os.Lstat(temp); err == nil && info.Mode().IsRegular() && time.Since(info.ModTime()) > time.Hour {
			os.Remove(temp)
		}
	}
}

// idTaken says whether a folder's names hold a file of the session id, of any
// time.
func idTaken(names []string, id string) bool {
	suffix := "_" + encodeID(id) + ".jsonl"
	return slices.ContainsFunc(names, func(name string) bool {
		before, ok := strings.CutSuffix(name, suffix)
		return ok && !strings.Contains(before, "_")
	})
}

// find is the file that m describes: m.Path, or the session with m.ID. One whose
// header cannot be read is found by its name.
func (r *Repo) find(ctx context.Context, m eventlog.Metadata) (string, error) {
	if m.Path != "" {
		return m.Path, nil
	}
	listed, err := r.List(ctx, m.CWD)
	if err != nil {
		return "", err
	}
	suffix := "_" + encodeID(m.ID) + ".jsonl"
	for _, l := range listed {
		if (l.Err == nil && l.ID == m.ID) || (l.Err != nil && strings.HasSuffix(l.Path, suffix)) {
			return l.Path, nil
		}
	}
	return "", eventlog.Errorf(eventlog.NotFound, "Session not found: %s", m.ID)
}

// Open implements [eventlog.Repo]: the file at m.Path, or without a path the
// session with m.ID.
func (r *Repo) Open(ctx context.Context, m eventlog.Metadata) (*eventlog.Session, error) {
	path, err := r.find(ctx, m)
	if err != nil {
		return nil, err
	}
	if _, err := os.Stat(path); errors.Is(err, fs.ErrNotExist) {
		return nil, eventlog.Errorf(eventlog.NotFound, "Session not found: %s", path)
	}
	s, err := Open(ctx, path, r.o)
	if err != nil {
		return nil, err
	}
	return eventlog.NewSession(s), nil
}

// List implements [eventlog.Repo]. It reads headers only. For a working folder
// it looks into our folder and into Pi's, and gives the sessions whose header
// names exactly that folder.
func (r *Repo) List(ctx context.Context, cwd string) ([]eventlog.Listed, error) {
	root, err := r.dir("")
	if err != nil {
		return nil, err
	}
	var dirs []string
	if cwd != "" {
		dirs = []string{dirName(cwd)}
		if pi := PiDir(cwd); pi != dirs[0] && filepath.IsLocal(pi) {
			dirs = append(dirs, pi)
		}
	} else {
		found, err := os.ReadDir(root)
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return nil, fileError("Failed to list sessions root "+root, err)
		}
		for _, d := range found {
			if d.IsDir() {
				dirs = append(dirs, d.Name())
			}
		}
	}
	var listed []eventlog.Listed
	kept, _ := js.Text(cwd).Str() // as a header holds it
	for i, dir := range dirs {
		files, err := os.ReadDir(filepath.Join(root, dir))
		if err != nil && cwd != "" && i > 0 && !errors.Is(err, fs.ErrPermission) {
			continue // Pi's folder is not there, or has a name that no folder can have here
		}
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			// One folder that cannot be read hides no other.
			folder := filepath.Join(root, dir)
			listed = append(listed, eventlog.Listed{
				Metadata: eventlog.Metadata{Path: folder},
				Err:      fileError("Failed to list sessions in "+folder, err),
			})
		}
		for _, f := range files {
			if f.IsDir() || !strings.HasSuffix(f.Name(), ".jsonl") {
				continue
			}
			if err := ctx.Err(); err != nil {
				return nil, err
			}
			path := filepath.Join(root, dir, f.Name())
			m, err := ReadHeader(path, r.o)
			switch {
			case errors.Is(err, eventlog.ErrNotFound):
				continue // deleted meanwhile
			case err != nil:
				m = eventlog.Metadata{Path: path}
			case cwd != "" && m.CWD != kept:
				continue
			}
			listed = append(listed, eventlog.Listed{Metadata: m, Err: err})
		}
	}
	eventlog.SortNewestFirst(listed)
	return listed, nil
}

// Delete implements [eventlog.Repo]: the file goes, with the bytes that were set
// aside from it. A session that is open elsewhere finds out at its next append.
func (r *Repo) Delete(ctx context.Context, m eventlog.Metadata) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	path, err := r.find(ctx, m)
	if errors.Is(err, eventlog.ErrNotFound) {
		return nil
	}
	if err != nil {
		return err
	}
	if err := r.owns(path); err != nil {
		return err
	}
	for _, name := range []string{path, path + damagedSuffix, path + leafSuffix} {
		if err := os.Remove(name); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return fileError("Failed to delete session "+path, err)
		}
	}
	if r.o.NoSync {
		return nil
	}
	if err := osfile.SyncDir(filepath.Dir(path)); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fileError("Failed to delete session "+path, err)
	}
	return nil
}

// owns refuses paths that are no session of this repository: a deletion follows.
func (r *Repo) owns(path string) error {
	root, err := r.dir("")
	if err != nil {
		return err
	}
	abs, err := filepath.Abs(path)
	if err != nil {
		return fileError("Failed to resolve "+path, err)
	}
	if inside, err := filepath.Rel(root, abs); err != nil || !filepath.IsLocal(inside) || !strings.HasSuffix(abs, ".jsonl") {
		return eventlog.Errorf(eventlog.InvalidArgument, "%s is no session file below %s", path, root)
	}
	return nil
}

// Fork implements [eventlog.Repo].
func (r *Repo) Fork(ctx context.Context, source eventlog.Metadata, o eventlog.ForkOptions) (*eventlog.Session, error) {
	from, err := r.Open(ctx, source)
	if err != nil {
		return nil, err
	}
	defer from.Close()
	m, err := from.Metadata(ctx)
	if err != nil {
		return nil, err
	}
	entries, err := from.ForkEntries(ctx, o.EntryID, o.Position, r.o.Source)
	if err != nil {
		return nil, err
	}
	return r.create(ctx, o.From(m, eventlog.At(m.Path)), entries)
}
