package sqlitestore

import (
	"bufio"
	"fmt"
	"os"
	"slices"
	"strings"

	"golang.org/x/sys/unix"
)

// networkMagic are file systems whose files other machines, or a virtual
// machine's host, can change. FUSE has one number for all, and virtiofs uses it.
// ZFS, btrfs and overlays are local: they are not here.
var networkMagic = map[uint32]string{
	unix.NFS_SUPER_MAGIC:   "nfs",
	unix.SMB_SUPER_MAGIC:   "smb",
	unix.SMB2_SUPER_MAGIC:  "smb2",
	unix.CIFS_SUPER_MAGIC:  "cifs",
	unix.AFS_SUPER_MAGIC:   "afs",
	unix.AFS_FS_MAGIC:      "afs",
	unix.CODA_SUPER_MAGIC:  "coda",
	unix.NCP_SUPER_MAGIC:   "ncp",
	unix.V9FS_MAGIC:        "9p",
	unix.CEPH_SUPER_MAGIC:  "ceph",
	unix.OCFS2_SUPER_MAGIC: "ocfs2",
	0x01161970:             "gfs2",
	0x0bd00bd0:             "lustre",
	0x47504653:             "gpfs",
	0x19830326:             "beegfs",
	0xaad7aaea:             "panfs",
	0x786f4256:             "vboxsf",
	0xbacbacbc:             "vmhgfs",
	0x7c7c6673:             "prl_fs",
}

// networkFUSE are the names of those that FUSE has, without "fuse.".
var networkFUSE = []string{
	"virtiofs", "sshfs", "rclone", "s3fs", "s3fs-fuse", "gcsfuse", "goofys", "mount-s3", "mountpoint-s3",
	"glusterfs", "ceph", "ceph-fuse", "cephfs", "davfs", "davfs2", "curlftpfs", "smbnetfs", "gvfsd-fuse",
	"juicefs", "seaweedfs", "moosefs", "mfs", "lizardfs", "saunafs", "blobfuse", "blobfuse2", "vmhgfs-fuse",
	"google-drive-ocamlfuse", "onedriver", "grpcfuse", "osxfs", "hdfs", "afuse",
}

func detectFileSystem(path string) (name string, network bool, err error) {
	var st unix.Statfs_t
	if err := unix.Statfs(path, &st); err != nil {
		return "", false, err
	}
	magic := uint32(st.Type)
	if name, ok := networkMagic[magic]; ok {
		return name, true, nil
	}
	if magic == unix.FUSE_SUPER_MAGIC {
		name := mountType(path)
		return name, slices.Contains(networkFUSE, strings.TrimPrefix(name, "fuse.")), nil
	}
	return fmt.Sprintf("%#x", magic), false, nil
}

// mountType is the type that the mount of path has in the kernel's table.
func mountType(path string) string {
	var st unix.Stat_t
	if err := unix.Stat(path, &st); err != nil {
		return "fuse"
	}
	f, err := os.Open("/proc/self/mountinfo")
	if err != nil {
		return "fuse"
	}
	defer f.Close()
	device := fmt.Sprintf("%d:%d", unix.Major(uint64(st.Dev)), unix.Minor(uint64(st.Dev)))
	for lines := bufio.NewScanner(f); lines.Scan(); {
		// 36 35 98:0 /root /mount options - type source options
		mount, kind, ok := strings.Cut(lines.Text(), " - ")
		if fields := strings.Fields(mount); ok && len(fields) > 2 && fields[2] == device {
			name, _, _ := strings.Cut(kind, " ")
			return name
		}
	}
	return "fuse"
}
