package main

import (
	"bufio"
	"io"
	"os"
	"path/filepath"

	"github.com/sessiontree/sessiontree/eventlog"
	"github.com/sessiontree/sessiontree/eventlog/osfile"
)

// newFile makes a file that only its owner can read: written beside its place and
// moved there when it is whole. It says whether it was written: a file that holds
// the same is left alone, and one that holds something else is an error.
func newFile(path string, fill func(io.Writer) error) (written bool, err error) {
	dir := filepath.Dir(path)
	if err := osfile.MakeDir(dir); err != nil {
		return false, err
	}
	temp, err := os.CreateTemp(dir, ".export-*.tmp") // 0600
	if err != nil {
		return false, err
	}
	defer os.Remove(temp.Name())
	w := bufio.NewWriterSize(temp, 1<<16)
	if err = fill(w); err == nil {
		err = w.Flush()
	}
	if err == nil {
		err = temp.Sync()
	}
	if closeErr := temp.Close(); err == nil {
		err = closeErr
	}
	if err != nil {
		return false, err
	}
	if _, err := os.Lstat(path); err == nil {
		same, err := sameContents(path, temp.Name())
		if err == nil && !same {
			err = eventlog.Errorf(eventlog.AlreadyExists, "%s is there already, with other contents", path)
		}
		return false, err
	}
	if err := os.Link(temp.Name(), path); err != nil {
		// A file system without hard links, or somebody was faster.
		if _, statErr := os.Lstat(path); statErr == nil {
			return false, err
		}
		if err := os.Rename(temp.Name(), path); err != nil {
			return false, err
		}
	}
	return true, osfile.SyncDir(dir)
}
