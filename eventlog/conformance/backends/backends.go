// Package backends has the reference backends as the conformance suite takes
// them: one value for the tests and the command line.
package backends

import (
	"context"
	"os"
	"path/filepath"

	"github.com/sessiontree/sessiontree/eventlog"
	"github.com/sessiontree/sessiontree/eventlog/conformance"
	"github.com/sessiontree/sessiontree/eventlog/jsonl"
	"github.com/sessiontree/sessiontree/eventlog/memory"
)

// All are the reference backends.
func All() []conformance.Backend { return []conformance.Backend{Memory(), JSONL()} }

// Memory is eventlog/memory.
func Memory() conformance.Backend {
	return conformance.Backend{
		Name: "memory",
		New: func(_ string, source eventlog.Source) (eventlog.Repo, error) {
			return memory.NewRepo(source), nil
		},
		Load: func(ctx context.Context, repo eventlog.Repo, _, name string, file []byte) (*eventlog.Session, error) {
			c, err := jsonl.Parse(name, string(file), jsonl.Options{Strict: true})
			if err != nil {
				return nil, err
			}
			return repo.(*memory.Repo).Add(ctx, c.Metadata, c.Entries)
		},
		Header: ReadHeader,
	}
}

// JSONL is eventlog/jsonl. It does not wait for the disk: the suite does not
// pull the plug.
func JSONL() conformance.Backend {
	options := func(source eventlog.Source) jsonl.Options {
		return jsonl.Options{Source: source, Strict: true, NoSync: true}
	}
	return conformance.Backend{
		Name:  "jsonl",
		Files: true,
		New: func(dir string, source eventlog.Source) (eventlog.Repo, error) {
			return jsonl.NewRepo(dir, options(source)), nil
		},
		Load: func(ctx context.Context, repo eventlog.Repo, dir, name string, file []byte) (*eventlog.Session, error) {
			path, err := write(dir, name, file)
			if err != nil {
				return nil, err
			}
			if file == nil { // Repo.Open would say so in its own words
				_, err := jsonl.Open(ctx, path, options(eventlog.Source{}))
				return nil, err
			}
			return repo.Open(ctx, eventlog.Metadata{Path: path})
		},
		Header: ReadHeader,
	}
}

// ReadHeader is [conformance.Backend]'s Header for any backend that reads session
// files with eventlog/jsonl.
func ReadHeader(_ context.Context, dir, name string, file []byte) (eventlog.Metadata, error) {
	path, err := write(dir, name, file)
	if err != nil {
		return eventlog.Metadata{}, err
	}
	return jsonl.ReadHeader(path, jsonl.Options{Strict: true})
}

// write puts a file into a folder, unless it is one that is not there.
func write(dir, name string, file []byte) (path string, err error) {
	path = filepath.Join(dir, name)
	if file != nil {
		err = os.WriteFile(path, file, 0o600)
	}
	return path, err
}
