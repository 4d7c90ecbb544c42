// Package osfile does with files what the operating systems do in different ways:
// locks between processes, private folders, durable names.
package osfile

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"syscall"
)

// MakeDir makes a folder, and those above it, that only its owner can read,
// whatever the umask. Folders that are there already keep their mode.
func MakeDir(dir string) error {
	if _, err := os.Stat(dir); err == nil {
		return nil
	}
	if parent := filepath.Dir(dir); parent != dir {
		if err := MakeDir(parent); err != nil {
			return err
		}
	}
	if err := os.Mkdir(dir, 0o700); err != nil {
		if errors.Is(err, fs.ErrExist) {
			return nil
		}
		return err
	}
	if err := os.Chmod(dir, 0o700); err != nil {
		return err
	}
	return SyncDir(filepath.Dir(dir))
}

// SyncDir makes a change of the names in a folder durable, where the system can
// do that: Windows and some network file systems cannot.
func SyncDir(dir string) error {
	if runtime.GOOS == "windows" {
		return nil
	}
	d, err := os.Open(dir)
	if err != nil {
		return err
	}
	defer d.Close()
	if err := d.Sync(); err != nil && !errors.Is(err, errors.ErrUnsupported) && !errors.Is(err, syscall.EINVAL) {
		return err
	}
	return nil
}
