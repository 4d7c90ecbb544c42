package peers

import (
	"context"
	"os"
	"path/filepath"

	"github.com/sessiontree/sessiontree/bench/backend"
)

// Peer is another store of sessions.
type Peer struct {
	Name    string // of the backend, and of its folder
	About   string
	Package string // of npm, that is measured
	Version string
	Limits  Limits
}

// All are the peers.
func All() []Peer {
	return []Peer{
		{
			Name: "pi-sqlite", About: "Pi's SQLite backend, one file a session",
			Package: "@earendil-works/pi-session-backend-sqlite-node", Version: "0.87.1",
			Limits: Limits{
				Branch: 120_000, BranchReason: "its call stack overflows at some 125,000 entries on a branch",
				Copies:    map[backend.Op]int{backend.Build: 150_000, backend.AppendAt: 2_000_000, backend.Append: 100_000},
				OneWriter: "it takes one writing process a session",
			},
		},
		{
			Name: "pi-jsonl", About: "Pi's JSONL sessions, in memory, never synced",
			Package: "@earendil-works/pi-agent-core", Version: "0.83.0",
			Limits: Limits{
				Branch: 200_000, BranchReason: "reading a branch grows with the square of its length",
				OneWriter: "it takes one writing process a session",
			},
		},
	}
}

// Folder is where peers are installed: in the user's cache folder.
func Folder() (string, error) {
	cache, err := os.UserCacheDir()
	if err != nil {
		return "", err
	}
	return filepath.Join(cache, "sessiontree", "peers"), nil
}

// Find is the peer with a name, as it is installed in a folder.
func Find(folder, name string) (backend.Backend, bool) {
	for _, p := range All() {
		if p.Name == name {
			return p.Backend(folder), true
		}
	}
	return backend.Backend{}, false
}

// Backends are all peers, as they are installed in a folder.
func Backends(folder string) []backend.Backend {
	var all []backend.Backend
	for _, p := range All() {
		all = append(all, p.Backend(folder))
	}
	return all
}

// Backend is the peer as it is installed in a folder. Where it is not, the
// backend's Missing says what to do.
func (p Peer) Backend(folder string) backend.Backend {
	command, missing := p.command(folder)
	b := backend.Process(p.Name, p.About, backend.SQLite().Name, command...)
	b.Missing = missing
	start := b.Open
	b.Open = func(ctx context.Context, dir string, o backend.Options) (backend.Store, error) {
		if err := p.write(folder); err != nil {
			return nil, err
		}
		return start(ctx, dir, o)
	}
	return p.Limits.Guard(b)
}
