package sessionfile

import "github.com/sessiontree/sessiontree/eventlog"

// Dialect is the dialect of the entries that were read so far, and what decided
// it: told, if that is not nil; the format, of version 4; what only one of the two
// programs writes; else it is the coding agent's, which writes most files.
func (f *Reader) Dialect(told *eventlog.Dialect) (eventlog.Dialect, string) {
	if told != nil {
		return *told, "asked for"
	}
	if f.header.Format == V4 {
		return eventlog.Harness, "a file of version 4"
	}
	return f.detector.Result(eventlog.CodingAgent)
}

// Marks are what the entries tell of their dialect that were read so far.
func (f *Reader) Marks() *eventlog.Detector { return &f.detector }
