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
		Agent: &conformance.AgentBackend{
			New: func(_ string, source eventlog.Source) (eventlog.Repo, error) {
				return memory.NewRepo(source), nil
			},
			Load: func(ctx context.Context, repo eventlog.Repo, _, name string, file []byte, source eventlog.Source) (*eventlog.Session, error) {
				c, err := ReadAgent(name, file, source)
				if err != nil {
					return nil, err
				}
				if err := repo.Delete(ctx, c.Metadata); err != nil {
					return nil, err
				}
				return repo.(*memory.Repo).Add(ctx, c.Metadata, c.Entries)
			},
			Inspect: InspectAgent,
		},
	}
}

// ReadAgent reads a file exactly as the coding agent does; nil is one that is not
// there.
func ReadAgent(name string, file []byte, source eventlog.Source) (jsonl.Contents, error) {
	if file == nil {
		return jsonl.Contents{}, eventlog.Errorf(eventlog.NotFound, "%s: no such file", name)
	}
	return jsonl.Parse(name, string(file), jsonl.Options{Source: source, Strict: true, Dialect: eventlog.CodingAgent, Lines: true})
}

// InspectAgent is [conformance.AgentBackend]'s Inspect for any backend.
func InspectAgent(name string, file []byte) (f conformance.AgentFile, err error) {
	c, err := ReadAgent(name, file, eventlog.Source{})
	if err != nil {
		return f, err
	}
	f.HeaderLine, f.EntryLines = c.HeaderLine, c.Lines
	for _, d := range c.Damage {
		f.SkippedLines = append(f.SkippedLines, d.Line)
	}
	if m := c.Migrated; m != nil {
		f.Migrated, f.From, f.IDsGiven, f.RenamedLines = true, m.From, m.IDsGiven, m.Renamed
	}
	return f, nil
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
		Agent:  agentFiles(options),
	}
}

func agentFiles(options func(eventlog.Source) jsonl.Options) *conformance.AgentBackend {
	agent := func(source eventlog.Source) jsonl.Options {
		o := options(source)
		o.Dialect = eventlog.CodingAgent
		return o
	}
	return &conformance.AgentBackend{
		New: func(dir string, source eventlog.Source) (eventlog.Repo, error) {
			return jsonl.NewRepo(dir, agent(source)), nil
		},
		Load: func(ctx context.Context, repo eventlog.Repo, dir, name string, file []byte, source eventlog.Source) (*eventlog.Session, error) {
			path := filepath.Join(dir, name)
			if err := repo.Delete(ctx, eventlog.Metadata{Path: path}); err != nil {
				return nil, err
			}
			if _, err := write(dir, name, file); err != nil {
				return nil, err
			}
			return repo.Open(ctx, eventlog.Metadata{Path: path})
		},
		Inspect: InspectAgent,
		ListFolder: func(_ context.Context, dir, cwd string) (infos []eventlog.Info, errs []error, err error) {
			list, err := jsonl.ListFolder(dir, cwd, jsonl.Options{Strict: true})
			for _, l := range list {
				infos, errs = append(infos, l.Info), append(errs, l.Err)
			}
			return infos, errs, err
		},
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
