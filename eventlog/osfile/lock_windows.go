package osfile

import (
	"errors"
	"io/fs"

	"golang.org/x/sys/windows"
)

// lockOffset is far behind any file's end: Windows locks forbid reading, and
// readers take no lock.
const lockOffset = 1 << 30 // in units of 4 GiB

// TryLock takes the exclusive lock of an open file; it goes when the file is
// closed, also by the end of the process.
func TryLock(fd uintptr) (bool, error) {
	at := windows.Overlapped{OffsetHigh: lockOffset}
	err := windows.LockFileEx(windows.Handle(fd), windows.LOCKFILE_EXCLUSIVE_LOCK|windows.LOCKFILE_FAIL_IMMEDIATELY, 0, 1, 0, &at)
	if errors.Is(err, windows.ERROR_LOCK_VIOLATION) || errors.Is(err, windows.ERROR_IO_PENDING) {
		return false, nil
	}
	return err == nil, err
}

// Unlock gives the lock back.
func Unlock(fd uintptr) {
	at := windows.Overlapped{OffsetHigh: lockOffset}
	windows.UnlockFileEx(windows.Handle(fd), 0, 1, 0, &at)
}

// IsDeleted is never so on Windows, which does not delete open files.
func IsDeleted(fs.FileInfo) bool { return false }
