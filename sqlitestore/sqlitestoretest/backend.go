package sqlitestoretest

import (
	"context"
	"fmt"
	"path/filepath"

	"github.com/sessiontree/sessiontree/eventlog"
	"github.com/sessiontree/sessiontree/eventlog/conformance"
	"github.com/sessiontree/sessiontree/eventlog/conformance/backends"
	"github.com/sessiontree/sessiontree/eventlog/jsonl"
	"github.com/sessiontree/sessiontree/sqlitestore"
)

// Backend is the store as the conformance suite takes it, for the tests and the
// command line. It does not wait for the disk: the suite does not pull the plug.
// Each store is verified when the suite closes it.
func Backend() conformance.Backend {
	return conformance.Backend{
		Name: "sqlite",
		New: func(dir string, source eventlog.Source) (eventlog.Repo, error) {
			s, err := sqlitestore.Open(context.Background(), filepath.Join(dir, "sessions.db"), sqlitestore.Options{Source: source, Synchronous: sqlitestore.Normal})
			return verified{s}, err
		},
		Load: func(ctx context.Context, repo eventlog.Repo, _, name string, file []byte) (*eventlog.Session, error) {
			c, err := jsonl.Parse(name, string(file), jsonl.Options{Strict: true})
			if err != nil {
				return nil, err
			}
			return repo.(verified).Add(ctx, c.Metadata, c.Entries)
		},
		Header: backends.ReadHeader,
		Agent: &conformance.AgentBackend{
			New: func(dir string, source eventlog.Source) (eventlog.Repo, error) {
				s, err := sqlitestore.Open(context.Background(), filepath.Join(dir, "sessions.db"), sqlitestore.Options{Source: source, Synchronous: sqlitestore.Normal})
				return verified{s}, err
			},
			Load: func(ctx context.Context, repo eventlog.Repo, _, name string, file []byte, source eventlog.Source) (*eventlog.Session, error) {
				c, err := backends.ReadAgent(name, file, source)
				if err != nil {
					return nil, err
				}
				s := repo.(verified)
				if err := s.Delete(ctx, c.Metadata); err != nil {
					return nil, err
				}
				if err := s.Restore(ctx, c.Metadata.ID); err != nil {
					return nil, err
				}
				return s.Add(ctx, c.Metadata, c.Entries)
			},
			Inspect: backends.InspectAgent,
		},
	}
}

// verified is a store that is verified when it is closed.
type verified struct{ *sqlitestore.Store }

func (v verified) Close(ctx context.Context) error {
	problems, err := v.Verify(ctx)
	if err == nil && len(problems) > 0 {
		err = fmt.Errorf("verify: %v", problems)
	}
	if closeErr := v.Store.Close(ctx); err == nil {
		err = closeErr
	}
	return err
}
