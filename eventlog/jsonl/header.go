package jsonl

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"strings"

	"github.com/sessiontree/sessiontree/eventlog"
	"github.com/sessiontree/sessiontree/eventlog/js"
)

const notAHeader = "first line is not a valid session header"

// parseHeader reads a header line. A lenient one may lack its time and its
// working folder: entries are worth more than either.
func parseHeader(path, line string, strict bool) (eventlog.Metadata, error) {
	fail := func(why string, cause error) (eventlog.Metadata, error) {
		return eventlog.Metadata{}, &eventlog.Error{Code: eventlog.InvalidSession, Message: invalid(path, why), Err: cause}
	}
	if strings.HasPrefix(line, "SQLite format 3") {
		return fail(notAHeader, errors.New("it is an SQLite database"))
	}
	h, err := js.Parse(line)
	if err != nil {
		return fail(notAHeader, err)
	}
	if !h.Get("type").Is("session") {
		return fail(notAHeader, nil)
	}
	if version, ok := h.Get("version").Float(); !ok || version != 3 {
		return fail("unsupported session version", fmt.Errorf("it is version %s, and this reads version 3", shownVersion(h.Get("version"))))
	}
	m := eventlog.Metadata{Path: path, Header: h.JSON()}
	if m.ID, _ = h.Get("id").Str(); m.ID == "" {
		return fail("session header is missing id", nil)
	}
	if m.CreatedAt, _ = h.Get("timestamp").Str(); m.CreatedAt == "" && strict {
		return fail("session header is missing timestamp", nil)
	}
	if m.CWD, _ = h.Get("cwd").Str(); m.CWD == "" && strict {
		return fail("session header is missing cwd", nil)
	}
	if parent := h.Get("parentSession"); parent.Exists() {
		id, ok := parent.Str()
		switch {
		case ok:
			m.ParentSession = eventlog.At(id)
		case strict:
			return fail("session header parentSession must be a string", nil)
		}
	}
	if extra := h.Get("metadata"); extra.Kind() == js.Object {
		m.Metadata = extra
	} else if extra.Exists() && strict {
		return fail("session header metadata must be an object", nil)
	}
	return m, nil
}

// shownVersion is a header's version for a message.
func shownVersion(v js.Value) string {
	switch text := v.JSON(); {
	case text == "":
		return "1 (it names none)"
	case len(text) > 20:
		return "unknown"
	default:
		return text
	}
}

func invalid(path, why string) string {
	return "Invalid JSONL session file " + path + ": " + why
}

// ReadHeader reads a session file's header and nothing else, as a list does. It
// fails with [eventlog.ErrNotFound], [eventlog.ErrInvalidSession] or
// [eventlog.ErrStorage]. A strict read takes only the file's first line, and
// ends it where Node's line reader does: also at a carriage return and at the
// Unicode line separators.
func ReadHeader(path string, o Options) (eventlog.Metadata, error) {
	f, _, err := openToRead(path)
	if err != nil {
		return eventlog.Metadata{}, fileError("Failed to read session header "+path, err)
	}
	defer f.Close()
	r := bufio.NewReader(f)
	left := min(o.maxLine(), maxHeader)
	for {
		line, err := readLine(r, left)
		if left -= len(line); err == errLongLine {
			return eventlog.Metadata{}, &eventlog.Error{Code: eventlog.InvalidSession, Message: invalid(path, notAHeader), Err: err}
		}
		if err != nil && err != io.EOF {
			return eventlog.Metadata{}, fileError("Failed to read session header "+path, err)
		}
		if o.Dialect == eventlog.CodingAgent {
			var c Contents
			found, _, headerErr := c.agentHeader(path, line, 0, 1, o)
			if found || headerErr != nil {
				return c.Metadata, headerErr
			}
			if err == io.EOF {
				return eventlog.Metadata{}, notASession(path, "it holds no record")
			}
			continue
		}
		if o.Strict {
			if end := strings.IndexAny(line, "\r\u2028\u2029"); end >= 0 {
				line = line[:end]
			}
		}
		if js.IsBlank(line) {
			if err == io.EOF || o.Strict {
				return eventlog.Metadata{}, eventlog.Errorf(eventlog.InvalidSession, "%s", invalid(path, "missing session header"))
			}
			continue
		}
		if o.Strict {
			return parseHeader(path, line, true)
		}
		m, _, _, err := lenientHeader(path, line, 0, 1)
		return m, err
	}
}

// maxHeader is how much of a file is read to find its header, so that a list is
// not held up by a file that has no lines.
const maxHeader = 16 << 20

var errLongLine = errors.New("the line is longer than the limit")

// readLine reads up to and with the next newline, and hands out the line
// without it.
func readLine(r *bufio.Reader, limit int) (string, error) {
	var line []byte
	for {
		part, err := r.ReadSlice('\n')
		if len(line)+len(part) > limit {
			return "", errLongLine
		}
		line = append(line, part...)
		if err == bufio.ErrBufferFull {
			continue
		}
		return strings.TrimSuffix(string(line), "\n"), err
	}
}

// lenientHeader reads the header out of the file's first line, also from behind
// a byte order mark or with entries glued to it. What stands behind it is
// returned for the caller to read on; what stands before it is damage.
func lenientHeader(path, line string, offset int64, number int) (m eventlog.Metadata, rest string, damage []Damage, err error) {
	return headerIn(line, offset, number, func(text string) (eventlog.Metadata, error) { return parseHeader(path, text, false) })
}

// headerIn is lenientHeader for headers that parse reads.
func headerIn(line string, offset int64, number int, parse func(text string) (eventlog.Metadata, error)) (m eventlog.Metadata, rest string, damage []Damage, err error) {
	m, err = parse(line)
	if err == nil {
		return m, "", nil, nil
	}
	budget := scanBudget(line)
	for at := strings.IndexByte(line, '{'); at >= 0 && budget > 0; {
		end, skipErr := js.Skip(line, at)
		budget -= end - at
		if skipErr == nil {
			found, headerErr := parse(line[at:end])
			if headerErr != nil {
				break
			}
			if junk := line[:at]; !js.IsBlank(junk) {
				damage = append(damage, Damage{Line: number, Offset: offset, Length: int64(len(junk)), Reason: "bytes before the header"})
			}
			return found, line[end:], damage, nil
		}
		next := strings.IndexByte(line[at+1:], '{')
		if next < 0 {
			break
		}
		at += 1 + next
	}
	return m, "", nil, err
}

// openToRead opens a file to read all of it. What is no file of the disk, a pipe
// or a device, may have no end, or never begin.
func openToRead(path string) (*os.File, fs.FileInfo, error) {
	if info, err := os.Stat(path); err == nil && !info.Mode().IsRegular() {
		return nil, nil, errNoFile
	}
	f, err := os.Open(path)
	if err != nil {
		return nil, nil, err
	}
	info, err := f.Stat()
	if err != nil {
		f.Close()
		return nil, nil, err
	}
	return f, info, nil
}

var errNoFile = errors.New("it is no regular file")

// fileError maps an error of the file system.
func fileError(what string, err error) error {
	code := eventlog.StorageFailed
	if errors.Is(err, os.ErrNotExist) {
		code = eventlog.NotFound
	}
	return &eventlog.Error{Code: code, Message: what, Err: err}
}
