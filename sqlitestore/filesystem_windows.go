package sqlitestore

import (
	"errors"
	"io/fs"
	"path/filepath"
	"strings"

	"golang.org/x/sys/windows"
)

// tryLock takes the exclusive lock of an open file; it goes when the file is
// closed, also by the end of the process.
func tryLock(fd uintptr) (bool, error) {
	var at windows.Overlapped
	err := windows.LockFileEx(windows.Handle(fd), windows.LOCKFILE_EXCLUSIVE_LOCK|windows.LOCKFILE_FAIL_IMMEDIATELY, 0, 1, 0, &at)
	if errors.Is(err, windows.ERROR_LOCK_VIOLATION) || errors.Is(err, windows.ERROR_IO_PENDING) {
		return false, nil
	}
	return err == nil, err
}

// isDeleted is never so on Windows, which does not delete open files.
func isDeleted(fs.FileInfo) bool { return false }

func detectFileSystem(path string) (name string, network bool, err error) {
	volume := filepath.VolumeName(path)
	if strings.HasPrefix(volume, `\\`) && !strings.HasPrefix(volume, `\\?\`) && !strings.HasPrefix(volume, `\\.\`) {
		return "share " + volume, true, nil
	}
	root, err := windows.UTF16PtrFromString(volume + `\`)
	if err != nil {
		return "", false, err
	}
	if windows.GetDriveType(root) == windows.DRIVE_REMOTE {
		return "network drive " + volume, true, nil
	}
	return "drive " + volume, false, nil
}
