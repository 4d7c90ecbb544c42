package sessionfile

import (
	"io/fs"
	"os"
	"path/filepath"
	"strings"
)

// Found is a file that may hold a session.
type Found struct {
	Path string
	Size int64
}

// Discover finds the session files that paths name: files as they are, and of
// folders all that end in .jsonl below them, but for hidden ones. A path that is
// not there is the error; what cannot be read below a folder is reported to failed
// and passed over.
func Discover(paths []string, failed func(path string, err error)) ([]Found, error) {
	var found []Found
	for _, path := range paths {
		info, err := os.Stat(path)
		if err != nil {
			return nil, err
		}
		if !info.IsDir() {
			found = append(found, Found{path, info.Size()})
			continue
		}
		err = filepath.WalkDir(path, func(at string, d fs.DirEntry, err error) error {
			switch {
			case err != nil:
				failed(at, err)
				return nil
			case at == path:
				return nil
			case strings.HasPrefix(d.Name(), "."):
				if d.IsDir() {
					return fs.SkipDir
				}
				return nil
			case d.IsDir() || !strings.HasSuffix(d.Name(), ".jsonl"):
				return nil
			}
			info, err := os.Stat(at) // through a link
			if err != nil {
				failed(at, err)
			} else if info.Mode().IsRegular() {
				found = append(found, Found{at, info.Size()})
			}
			return nil
		})
		if err != nil {
			return nil, err
		}
	}
	return found, nil
}
