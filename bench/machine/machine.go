// Package machine looks at what measurements ran on, so that nobody compares
// figures of two machines unawares.
package machine

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"runtime/debug"
	"strings"
	"time"

	"github.com/shirou/gopsutil/v4/cpu"
	"github.com/shirou/gopsutil/v4/disk"
	"github.com/shirou/gopsutil/v4/mem"

	"github.com/sessiontree/sessiontree/bench/stats"
)

// Fingerprint describes a machine as far as it matters to a store. What the
// system does not tell is empty.
type Fingerprint struct {
	OS         string         `json:"os"`
	Arch       string         `json:"arch"`
	CPU        string         `json:"cpu"`
	Cores      int            `json:"cores"` // that the process may use
	Memory     uint64         `json:"memory"`
	FileSystem string         `json:"fileSystem"` // of the folder that was measured in
	Fsync      stats.Estimate `json:"fsync"`      // nanoseconds to write 4 KB and sync
	Go         string         `json:"go"`
	SQLite     string         `json:"sqlite"`   // version of the driver
	Revision   string         `json:"revision"` // of this program
}

// Look describes this machine for a store in dir.
func Look(ctx context.Context, dir string) (Fingerprint, error) {
	f := Fingerprint{OS: runtime.GOOS, Arch: runtime.GOARCH, Cores: runtime.GOMAXPROCS(0), Go: runtime.Version()}
	if infos, err := cpu.InfoWithContext(ctx); err == nil && len(infos) > 0 {
		f.CPU = strings.TrimSpace(infos[0].ModelName)
	}
	if m, err := mem.VirtualMemoryWithContext(ctx); err == nil {
		f.Memory = m.Total
	}
	f.FileSystem = fileSystem(ctx, dir)
	f.build()
	var err error
	f.Fsync, err = fsync(dir)
	return f, err
}

// fileSystem is the type of the mount that dir lies on: of those above it, the
// nearest.
func fileSystem(ctx context.Context, dir string) string {
	mounts, err := disk.PartitionsWithContext(ctx, true)
	if err != nil {
		return ""
	}
	if dir, err = filepath.Abs(dir); err != nil {
		return ""
	}
	if real, err := filepath.EvalSymlinks(dir); err == nil {
		dir = real
	}
	best, name := -1, ""
	for _, m := range mounts {
		rel, err := filepath.Rel(m.Mountpoint, dir)
		if err == nil && rel != ".." && !strings.HasPrefix(rel, ".."+string(filepath.Separator)) && len(m.Mountpoint) >= best {
			best, name = len(m.Mountpoint), m.Fstype
		}
	}
	return name
}

// build tells what the program was made of.
func (f *Fingerprint) build() {
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return
	}
	for _, d := range info.Deps {
		if d.Path == "modernc.org/sqlite" {
			f.SQLite = d.Path + " " + d.Version
		}
	}
	modified := ""
	for _, s := range info.Settings {
		switch {
		case s.Key == "vcs.revision":
			f.Revision = s.Value[:min(len(s.Value), 12)]
		case s.Key == "vcs.modified" && s.Value == "true":
			modified = "+"
		}
	}
	f.Revision += modified
}

// syncs is how often the disk is asked.
const syncs = 50

// fsync measures what a durable append costs at the least.
func fsync(dir string) (_ stats.Estimate, err error) {
	file, err := os.CreateTemp(dir, "fsync-")
	if err != nil {
		return stats.Estimate{}, fmt.Errorf("cannot measure fsync: %w", err)
	}
	defer func() { err = errors.Join(err, file.Close(), os.Remove(file.Name())) }()
	page := make([]byte, 4096)
	var times []float64
	for i := range syncs {
		start := time.Now()
		// Over the same page, as a log does that is used again.
		if _, err := file.WriteAt(page, 0); err != nil {
			return stats.Estimate{}, err
		}
		if err := file.Sync(); err != nil {
			return stats.Estimate{}, err
		}
		if i > 0 { // the first one makes the file longer
			times = append(times, float64(time.Since(start).Nanoseconds()))
		}
	}
	return stats.Median(times), nil
}
