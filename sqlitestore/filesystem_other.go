//go:build unix && !linux && !darwin && !freebsd

package sqlitestore

// detectFileSystem knows no file systems here: all pass as local.
func detectFileSystem(string) (name string, network bool, err error) { return "unknown", false, nil }
