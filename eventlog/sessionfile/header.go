package sessionfile

import (
	"math"
	"strconv"
	"strings"
	"time"

	"github.com/sessiontree/sessiontree/eventlog"
	"github.com/sessiontree/sessiontree/eventlog/js"
	"github.com/sessiontree/sessiontree/eventlog/older"
)

// Format is how a session file is written.
type Format string

// The formats. A file of type session with a version beyond 3 is read as
// version 3, which Pi does too.
const (
	V1 Format = "v1"
	V2 Format = "v2"
	V3 Format = "v3"
	V4 Format = "v4" // of Pi's newer harness
)

// Header is what stands before a file's entries.
type Header struct {
	eventlog.Metadata // Header is the text that a file of version 3 would have
	Format            Format
	Edits             Edits  // from Metadata.Header to the text in the file
	Gap               []Part // before it
	// Newline is how the header's line ends, and the gap between entries where
	// nothing else is said: "\n" or "\r\n".
	Newline string
	// Title is the length of oh-my-pi's title line, with its end, where the file
	// begins with one: that line is rewritten in place as the title changes.
	Title int64
}

// IsTitleLine says whether a text is one line, with its end, that holds oh-my-pi's
// title.
func IsTitleLine(text string) bool {
	text, ended := strings.CutSuffix(text, "\n")
	v, err := js.Parse(text)
	return ended && err == nil && !strings.Contains(text, "\n") && isTitle(v)
}

// isTitle says whether a record is oh-my-pi's title.
func isTitle(v js.Value) bool { return v.Get("type").Is("title") }

// parseHeader reads a header out of a record, nil if it is none.
func parseHeader(path string, v js.Value) (*Header, error) {
	switch {
	case v.Get("type").Is("session"):
		return sessionHeader(path, v)
	case v.Get("kind").Is("header"):
		return storageHeader(path, v)
	}
	return nil, nil
}

func refuse(path, why string) error {
	return eventlog.Errorf(eventlog.InvalidSession, "Invalid session file %s: %s", path, why)
}

// sessionHeader reads the header of versions 1, 2 and 3. Time and folder may be
// missing, and the id be empty: entries are worth more than either.
func sessionHeader(path string, v js.Value) (*Header, error) {
	h := &Header{Format: V3}
	h.Path = path
	var ok bool
	if h.ID, ok = v.Get("id").Str(); !ok {
		return nil, refuse(path, "session header is missing id")
	}
	h.CreatedAt, _ = v.Get("timestamp").Str()
	h.CWD, _ = v.Get("cwd").Str()
	if parent, ok := v.Get("parentSession").Str(); ok {
		h.ParentSession = eventlog.At(parent)
	}
	if extra := v.Get("metadata"); extra.Kind() == js.Object {
		h.Metadata.Metadata = extra
	}
	raw := v.JSON()
	h.Metadata.Header = raw
	version := older.Version(v)
	if !(version < 3) {
		return h, nil
	}
	h.Format = V2
	if version < 2 {
		h.Format = V1
	}
	h.Metadata.Header, h.Edits = older.Header(raw)
	return h, nil
}

// storageHeader reads the header of version 4 (JsonlStorageHeader in Pi's agent
// core 0.87), and makes one of version 3 of it.
func storageHeader(path string, v js.Value) (*Header, error) {
	if version, ok := v.Get("v").Float(); !ok || version != 4 {
		return nil, refuse(path, "unsupported storage format "+eventlogPrefix(v.Get("v")))
	}
	if version, ok := v.Get("storageVersion").Float(); !ok || version != 1 {
		return nil, refuse(path, "unsupported storage version "+eventlogPrefix(v.Get("storageVersion")))
	}
	h := &Header{Format: V4}
	h.Path = path
	if h.ID, _ = v.Get("id").Str(); h.ID == "" {
		return nil, refuse(path, "session header is missing id")
	}
	h.CreatedAt, _ = isoTime(v.Get("createdAt"))
	h.CWD, _ = v.Get("cwd").Str()
	for _, key := range []string{"legacyParentSessionPath", "parentSessionId"} {
		if parent, ok := v.Get(key).Str(); ok {
			h.ParentSession = eventlog.At(parent)
		}
	}
	h.Metadata.Header = h.HeaderText()
	h.Edits = Edits{{Delete: len(h.Metadata.Header), Insert: v.JSON()}}
	return h, nil
}

func eventlogPrefix(v js.Value) string {
	if text := js.Prefix(v.JSON(), 20); text != "" {
		return strconv.Quote(text)
	}
	return "(none)"
}

// isoTime is a time in milliseconds as an ISO date.
func isoTime(v js.Value) (string, bool) {
	ms, ok := v.Float()
	if !ok || math.Abs(ms) > 8.64e15 || ms != math.Trunc(ms) { // what a Date can hold
		return "", false
	}
	return js.ISO(time.UnixMilli(int64(ms))), true
}
