//go:build unix

// Package filelock locks open files between processes, with the locks of the
// operating system: they go with the process that holds them.
package filelock

import (
	"errors"
	"io/fs"
	"syscall"

	"golang.org/x/sys/unix"
)

// Try takes the exclusive lock of an open file. It belongs to the open file,
// so two handles of one process exclude each other too, and it goes when the
// file is closed, also by the end of the process.
func Try(fd uintptr) (bool, error) {
	for {
		err := unix.Flock(int(fd), unix.LOCK_EX|unix.LOCK_NB)
		switch {
		case err == nil:
			return true, nil
		case errors.Is(err, unix.EWOULDBLOCK):
			return false, nil
		case !errors.Is(err, unix.EINTR):
			return false, err
		}
	}
}

// Release gives the lock back. Closing alone would not, for as long as a process
// that was forked meanwhile, and has not come to its exec, shares the open file.
func Release(fd uintptr) { unix.Flock(int(fd), unix.LOCK_UN) }

// IsDeleted says whether an open file has no name any more.
func IsDeleted(info fs.FileInfo) bool {
	stat, ok := info.Sys().(*syscall.Stat_t)
	return ok && stat.Nlink == 0
}
