//go:build unix

package osfile

import (
	"errors"
	"io/fs"
	"syscall"

	"golang.org/x/sys/unix"
)

// TryLock takes the exclusive lock of an open file. It belongs to the open file,
// so two handles of one process exclude each other too, and it goes when the
// file is closed, also by the end of the process.
func TryLock(fd uintptr) (bool, error) {
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

// Unlock gives the lock back. Closing alone would not, for as long as a process
// that was forked meanwhile, and has not come to its exec, shares the open file.
func Unlock(fd uintptr) { unix.Flock(int(fd), unix.LOCK_UN) }

// IsDeleted says whether an open file has no name any more.
func IsDeleted(info fs.FileInfo) bool {
	stat, ok := info.Sys().(*syscall.Stat_t)
	return ok && stat.Nlink == 0
}
