package peers

import (
	"bytes"
	"context"
	"embed"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"

	"github.com/sessiontree/sessiontree/eventlog"
)

//go:embed npm js
var files embed.FS

// nodeFolder holds Node.js, of all peers.
const nodeFolder = "node"

// oldestNode is the oldest version of Node.js that the peers run on.
const oldestNode = 24

// where is the folder of a peer; another version has another one.
func (p Peer) where(folder string) string { return filepath.Join(folder, p.Name+"-"+p.Version) }

// Installed says whether a peer is there.
func (p Peer) Installed(folder string) bool {
	_, err := os.Stat(filepath.Join(p.where(folder), "node_modules", filepath.FromSlash(p.Package), "package.json"))
	return err == nil
}

// command starts a peer, or missing says why there is none.
func (p Peer) command(folder string) (command []string, missing string) {
	const install = "sessiontree bench peers install fetches it with npm"
	if !p.Installed(folder) {
		return nil, "not installed: " + install
	}
	node, ok := Node(folder)
	if !ok {
		return nil, fmt.Sprintf("there is no Node.js %d or newer on the PATH", oldestNode)
	}
	return []string{node, "--no-warnings", filepath.Join(p.programs(folder), p.Name+".mjs")}, ""
}

// Node is the Node.js that peers run on: of npm, or else of the PATH.
func Node(folder string) (path string, ok bool) {
	name := fmt.Sprintf("node-%s-%s", npmName(runtime.GOOS), npmName(runtime.GOARCH))
	path = filepath.Join(folder, nodeFolder, "node_modules", name, "bin", "node")
	if runtime.GOOS == "windows" {
		path += ".exe"
	}
	if _, err := os.Stat(path); err == nil {
		return path, true
	}
	path, err := exec.LookPath("node")
	if err != nil {
		return "", false
	}
	version, err := exec.Command(path, "--version").Output()
	if err != nil || major(string(version)) < oldestNode {
		return "", false
	}
	return path, true
}

// npmName is what npm calls a system or a processor of Go.
func npmName(name string) string {
	switch name {
	case "windows":
		return "win"
	case "amd64":
		return "x64"
	}
	return name
}

// major is the first number of a version such as v24.1.0, 0 if it is none.
func major(version string) int {
	digits, _, _ := strings.Cut(strings.TrimPrefix(strings.TrimSpace(version), "v"), ".")
	n, _ := strconv.Atoi(digits)
	return n
}

// Install fetches with npm the peers that folder lacks, and Node.js, and tells
// log of it. What fails leaves nothing half there. It fails with
// [eventlog.ErrNotFound] where there is no npm.
func Install(ctx context.Context, folder string, log io.Writer) error {
	npm, err := exec.LookPath("npm")
	if err != nil {
		return eventlog.Errorf(eventlog.NotFound, "npm, which comes with Node.js, is not on the PATH")
	}
	if _, err := os.Stat(filepath.Join(folder, nodeFolder)); err != nil {
		if err := fetch(ctx, npm, nodeFolder, filepath.Join(folder, nodeFolder), log); err != nil {
			return err
		}
	}
	for _, p := range All() {
		if p.Installed(folder) {
			continue
		}
		if err := fetch(ctx, npm, p.Name, p.where(folder), log); err != nil {
			return err
		}
	}
	return nil
}

// fetch installs what a lock file names, beside its place, and then moves it
// there. No script of a package is run.
func fetch(ctx context.Context, npm, name, to string, log io.Writer) (err error) {
	if err := os.MkdirAll(filepath.Dir(to), 0o755); err != nil {
		return err
	}
	dir, err := os.MkdirTemp(filepath.Dir(to), "."+name+"-")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	for _, file := range []string{"package.json", "package-lock.json"} {
		b, err := files.ReadFile("npm/" + name + "/" + file)
		if err != nil {
			return err
		}
		if err := os.WriteFile(filepath.Join(dir, file), b, 0o644); err != nil {
			return err
		}
	}
	fmt.Fprintf(log, "npm fetches %s into %s\n", name, to)
	cmd := exec.CommandContext(ctx, npm, "ci", "--ignore-scripts", "--no-audit", "--no-fund")
	cmd.Dir, cmd.Stdout, cmd.Stderr = dir, log, log
	if err := cmd.Run(); err != nil {
		return fmt.Errorf("npm cannot fetch %s: %w", name, err)
	}
	if err := os.RemoveAll(to); err != nil {
		return err
	}
	return os.Rename(dir, to)
}

// programs is the folder of the programs that drive a peer: below its own, so
// that they find its packages.
func (p Peer) programs(folder string) string { return filepath.Join(p.where(folder), "programs") }

// write writes the programs that drive a peer, if they are not there as they are
// here.
func (p Peer) write(folder string) error {
	dir := p.programs(folder)
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	programs, err := fs.Glob(files, "js/*.mjs")
	if err != nil {
		return err
	}
	for _, name := range programs {
		b, err := files.ReadFile(name)
		if err != nil {
			return err
		}
		if err := replace(filepath.Join(dir, filepath.Base(name)), b); err != nil {
			return err
		}
	}
	return nil
}

// replace makes a file hold b. Who reads it meanwhile reads the old or the new.
func replace(path string, b []byte) error {
	if old, err := os.ReadFile(path); err == nil && bytes.Equal(old, b) {
		return nil
	}
	f, err := os.CreateTemp(filepath.Dir(path), ".program-")
	if err != nil {
		return err
	}
	_, err = f.Write(b)
	if err = errors.Join(err, f.Close()); err == nil {
		err = os.Rename(f.Name(), path)
	}
	if err != nil {
		os.Remove(f.Name())
	}
	return err
}
