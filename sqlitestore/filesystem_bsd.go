//go:build darwin || freebsd

package sqlitestore

import (
	"slices"

	"golang.org/x/sys/unix"
)

// networkNames are those whose files others can change though the kernel calls
// them local: what a virtual machine has from its host.
var networkNames = []string{"nfs", "smbfs", "afpfs", "webdav", "virtiofs", "AppleVirtIOFS", "9p", "p9fs", "prl_fs", "vmhgfs"}

func detectFileSystem(path string) (name string, network bool, err error) {
	var st unix.Statfs_t
	if err := unix.Statfs(path, &st); err != nil {
		return "", false, err
	}
	name = unix.ByteSliceToString(st.Fstypename[:])
	return name, st.Flags&unix.MNT_LOCAL == 0 || slices.Contains(networkNames, name), nil
}
