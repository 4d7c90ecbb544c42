package main

import (
	"encoding/json"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/sessiontree/sessiontree/bench/backend"
	"github.com/sessiontree/sessiontree/bench/peers"
)

const peersLong = `peers lists other stores of sessions that bench measures beside this module's:
their names, versions, and whether they are installed. They are measured on the same
trees, turn by turn, in a process of their own that takes the time itself; "times
the limit" is how many times as long as our sqlite they took. What would take them
minutes, or fail, is not run, and the report says so.

  pi-sqlite   Pi's SQLite backend, with its defaults: one file a session, synced
  pi-jsonl    Pi's JSONL sessions: all in memory, and never synced, so that their
              writes compare with append-normal

bench measures those that --backends names; one that is not installed is a line of
the report, and no error: sessiontree bench --backends sqlite,pi-sqlite,pi-jsonl

--json:
{"folder": text, "node": path, or missing
 "peers":  [{"name", "package", "version", "installed": true or false}]}`

// peersFolder is where peers are installed; "" where the user has no cache.
func peersFolder() string {
	folder, err := peers.Folder()
	if err != nil {
		return ""
	}
	return folder
}

// findBackend is the backend of ours or the peer with a name.
func findBackend(name string) (backend.Backend, bool) {
	if b, ok := backend.Find(name); ok {
		return b, true
	}
	return peers.Find(peersFolder(), name)
}

type peerStatus struct {
	Name      string `json:"name"`
	Package   string `json:"package"`
	Version   string `json:"version"`
	Installed bool   `json:"installed"`
}

func (c *cli) benchPeersCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "peers",
		Short: "List other stores that can be measured beside ours, or install them",
		Long:  peersLong,
		Args:  cobra.NoArgs,
		RunE:  func(*cobra.Command, []string) error { return c.listPeers() },
	}
	cmd.AddCommand(c.benchPeersInstallCommand())
	return cmd
}

func (c *cli) listPeers() error {
	folder := peersFolder()
	node, _ := peers.Node(folder)
	var all []peerStatus
	for _, p := range peers.All() {
		all = append(all, peerStatus{p.Name, p.Package, p.Version, p.Installed(folder)})
	}
	if c.json {
		return json.NewEncoder(c.out).Encode(struct {
			Folder string       `json:"folder"`
			Node   string       `json:"node,omitempty"`
			Peers  []peerStatus `json:"peers"`
		}{folder, node, all})
	}
	fmt.Fprintf(c.out, "folder  %s\n", folder)
	if node != "" {
		fmt.Fprintf(c.out, "node    %s\n", node)
	}
	for _, p := range all {
		state := "not installed"
		if p.Installed {
			state = "installed"
		}
		fmt.Fprintf(c.out, "%s  %s %s, %s\n", p.Name, p.Package, p.Version, state)
	}
	return nil
}

func (c *cli) benchPeersInstallCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "install",
		Short: "Fetch the peers with npm",
		Long: `install fetches with npm the peers that are missing, and Node.js, into the folder
that "bench peers" names, some 430 MB: the versions of lock files that are part of
this program, with their checksums. No script of a package is run. What is there
already is left as it is; delete the folder to be rid of all. npm's own messages go
to stderr.`,
		Args: cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error {
			folder, err := peers.Folder()
			if err != nil {
				return err
			}
			if err := peers.Install(c.ctx, folder, c.stderr); err != nil {
				return err
			}
			return c.listPeers()
		},
	}
}

// peerNames are the names of all peers.
func peerNames() []string {
	var names []string
	for _, p := range peers.All() {
		names = append(names, p.Name)
	}
	return names
}
