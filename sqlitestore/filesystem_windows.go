package sqlitestore

import (
	"path/filepath"
	"strings"

	"golang.org/x/sys/windows"
)

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
