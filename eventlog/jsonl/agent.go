package jsonl

import (
	"context"
	"errors"
	"io"
	"iter"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/sessiontree/sessiontree/eventlog"
	"github.com/sessiontree/sessiontree/eventlog/js"
	"github.com/sessiontree/sessiontree/eventlog/osfile"
)

// notASession is the coding agent's error for a file that it refuses.
func notASession(path, why string) error {
	return &eventlog.Error{Code: eventlog.InvalidSession, Message: "Session file is not a valid pi session: " + path, Err: errors.New(why)}
}

// takeAgentHeader takes the header off the front of the first chunks, as the coding
// agent looks for it: what is no JSON, or nothing, is passed over; the first record
// must be the header.
func (c *Contents) takeAgentHeader(path string, ch *chunk, o Options) (bool, error) {
	if ch.tooLong > 0 {
		return false, notASession(path, "its first line is longer than the limit")
	}
	for ch.text != "" {
		line, rest, _ := strings.Cut(ch.text, "\n")
		offset, number := ch.offset, ch.line
		found, glued, err := c.agentHeader(path, line, offset, number, o)
		if err != nil {
			return false, err
		}
		size := int64(len(ch.text) - len(rest))
		if !js.IsBlank(glued) {
			size = int64(len(line) - len(glued))
			rest = ch.text[size:] // read on as the line that it is part of
			ch.line--
		}
		ch.text, ch.offset, ch.line = rest, ch.offset+size, ch.line+1
		if found {
			c.HeaderLine = number
			return true, nil
		}
		if !js.IsBlank(line) {
			c.Damage = append(c.Damage, Damage{number, offset, int64(len(line)), "a line before the header that is no record"})
		}
	}
	return false, nil
}

// agentHeader says whether a line is the header. A line that is a record of
// another kind is an error. Glued is what stands behind a header in its line.
func (c *Contents) agentHeader(path, line string, offset int64, number int, o Options) (found bool, glued string, err error) {
	if v, err := js.Parse(line); err != nil && !o.Strict {
		// Behind a byte order mark, or with an entry glued to it.
		m, glued, damage, err := headerIn(line, offset, number, func(text string) (eventlog.Metadata, error) { return parseAgentHeader(path, text) })
		if err != nil {
			return false, "", nil
		}
		c.Metadata, c.Damage = m, append(c.Damage, damage...)
		return true, glued, nil
	} else if err != nil || !v.Truthy() {
		return false, "", nil
	}
	c.Metadata, err = parseAgentHeader(path, line)
	return err == nil, "", err
}

func parseAgentHeader(path, text string) (eventlog.Metadata, error) {
	h, err := js.Parse(text)
	id, ok := h.Get("id").Str()
	if err != nil || !h.Get("type").Is("session") || !ok {
		return eventlog.Metadata{}, notASession(path, "its first record is no session header")
	}
	m := eventlog.Metadata{Path: path, Header: h.JSON(), ID: id, Dialect: eventlog.CodingAgent}
	m.CreatedAt, _ = h.Get("timestamp").Str()
	m.CWD, _ = h.Get("cwd").Str()
	if parent, ok := h.Get("parentSession").Str(); ok {
		m.ParentSession = eventlog.At(parent)
	}
	if extra := h.Get("metadata"); extra.Kind() == js.Object {
		m.Metadata = extra
	}
	return m, nil
}

// ListFolder gives the information of the session files in a folder, the latest
// activity first, as the coding agent lists it: of one working folder if cwd is not
// "". A file without a header of a session is left out; one that cannot be read as a
// session for another reason is given with the reason, behind the others.
func ListFolder(dir, cwd string, o Options) ([]ListedInfo, error) {
	names, err := namesIn(dir)
	if err != nil {
		return nil, fileError("Failed to list sessions in "+dir, err)
	}
	slices.SortFunc(names, func(a, b string) int { return strings.Compare(b, a) })
	o.Dialect = eventlog.CodingAgent
	var list []ListedInfo
	for _, name := range names {
		if !strings.HasSuffix(name, ".jsonl") {
			continue
		}
		if l, ok := infoOf(dir, name, o); ok && (cwd == "" || l.CWD == cwd) {
			list = append(list, l)
		}
	}
	slices.SortStableFunc(list, func(a, b ListedInfo) int {
		switch {
		case a.Modified > b.Modified:
			return -1
		case a.Modified < b.Modified:
			return 1
		}
		return 0
	})
	return list, nil
}

// ListedInfo is a session of such a list; Err says why a damaged one cannot be read.
type ListedInfo struct {
	eventlog.Info
	Err error
}

// infoOf reads a file for a list; ok is false for what is no session file.
func infoOf(dir, name string, o Options) (l ListedInfo, ok bool) {
	path := filepath.Join(dir, name)
	f, stat, err := openToRead(path)
	if err != nil {
		return ListedInfo{}, false
	}
	defer f.Close()
	c, err := read(path, f, o)
	if err != nil {
		return ListedInfo{}, false
	}
	l.Info, l.Err = eventlog.InfoOf(c.Metadata, c.All())
	if math.IsNaN(l.Modified) {
		l.Modified = float64(stat.ModTime().UnixMilli())
	}
	return l, true
}

// All gives the entries.
func (c *Contents) All() iter.Seq2[eventlog.Entry, error] {
	return func(yield func(eventlog.Entry, error) bool) {
		for _, e := range c.Entries {
			if !yield(e, nil) {
				return
			}
		}
	}
}

// leafSuffix is what the name of a session's file gets for the leaf, where that is
// no entry of the file.
const leafSuffix = ".leaf"

// keptLeaf is where the leaf was moved to since the last entry, nil if it was not:
// what stands beside the file counts while the file ends as it did then.
func keptLeaf(path string, entries int, last eventlog.Ref) *eventlog.Ref {
	text, err := os.ReadFile(path + leafSuffix)
	if err != nil {
		return nil
	}
	v, err := js.Parse(string(text))
	if n, _ := v.Get("entries").Float(); err != nil || int(n) != entries || js.Diff(v.Get("last"), last.Value()) != nil {
		return nil
	}
	to := eventlog.MoveOf(v.Get("leaf")).LeafAfter()
	return &to
}

// keepLeaf writes the leaf beside the file: whole or not at all.
func (s *Storage) keepLeaf(leaf eventlog.Ref, entries int, last eventlog.Ref) error {
	text := js.Fields(
		js.Member{Key: "leaf", Value: leaf.Value()},
		js.Member{Key: "entries", Value: js.Num(float64(entries))},
		js.Member{Key: "last", Value: last.Value()}).JSON()
	temp := s.path + leafSuffix + ".tmp"
	f, err := s.o.openFile(temp, os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o600)
	if err != nil {
		return s.fail("cannot keep the leaf", err)
	}
	err = f.Chmod(0o600)
	if err == nil {
		err = writeAll(f, []byte(text+"\n"))
	}
	if err == nil && !s.o.NoSync {
		err = f.Sync()
	}
	if closeErr := f.Close(); err == nil {
		err = closeErr
	}
	if err == nil {
		err = os.Rename(temp, s.path+leafSuffix)
	}
	if err == nil && !s.o.NoSync {
		err = osfile.SyncDir(filepath.Dir(s.path))
	}
	if err != nil {
		os.Remove(temp)
		return s.fail("cannot keep the leaf", err)
	}
	return nil
}

// asAgent are options that read a file for its marks: the coding agent takes any
// entry.
func (o Options) asAgent() Options {
	o.Dialect, o.Detect = eventlog.CodingAgent, false
	return o
}

// detected are the options with the dialect that the file names in its header (we
// write it there where opening the file would not find it), or that its marks say.
func (o Options) detected(header string, read func() (Contents, error)) Options {
	detect := o.Detect
	o.Detect = false
	if strings.Contains(header, `"dialect"`) {
		if h, err := js.Parse(header); err == nil {
			name, _ := h.Get("dialect").Str()
			if d, err := eventlog.ParseDialect(name); err == nil && h.Get("type").Is("session") {
				o.Dialect, o.basis = d, ""
				return o
			}
		}
	}
	if !detect {
		return o
	}
	var t eventlog.Detector
	if c, err := read(); err == nil {
		for _, e := range c.Entries {
			t.Observe(e)
		}
	}
	o.Dialect, o.basis = t.Result(o.Dialect)
	return o
}

// firstLine is the beginning of a file, up to its first newline.
func firstLine(f io.ReaderAt) string {
	buf := make([]byte, 16<<10)
	n, _ := f.ReadAt(buf, 0)
	line, _, _ := strings.Cut(string(buf[:n]), "\n")
	return line
}

// write makes an append durable: the entries as lines, a leaf that moved beside the
// file. All of it, or nothing.
func (s *Storage) write(ctx context.Context, entries []eventlog.Entry) error {
	if s.Dialect().LogsMoves() {
		return s.writeLines(ctx, entries)
	}
	var lines []eventlog.Entry
	var moved *eventlog.Ref
	for _, e := range entries {
		moved = nil
		if e.IsMove() {
			to := e.LeafAfter()
			moved = &to
			continue
		}
		lines = append(lines, e)
	}
	n, last := s.End()
	before := s.tail
	if len(lines) > 0 {
		if err := s.writeLines(ctx, lines); err != nil {
			return err
		}
		n, last = n+len(lines), eventlog.At(lines[len(lines)-1].ID())
	}
	if moved == nil {
		if s.hasLeaf && os.Remove(s.path+leafSuffix) == nil {
			s.hasLeaf = false
		}
		return nil
	}
	err := s.keepLeaf(*moved, n, last)
	if err != nil && len(lines) > 0 {
		s.tail = before
		err = errors.Join(err, s.takeBack(appendLines(nil, before.open, lines)))
	}
	s.hasLeaf = s.hasLeaf || err == nil
	return err
}

// lock makes sure that this handle alone writes to the file, and that memory holds
// all that the file and its kept leaf hold.
func (s *Storage) lock(ctx context.Context) error {
	if s.migrated != nil {
		return eventlog.Errorf(eventlog.InvalidState, "Session file %s is of an older version: it is read as one of version 3, and never rewritten; import it, or fork it, to go on", s.path)
	}
	fresh := s.file == nil
	if err := s.lockFile(ctx); err != nil || !fresh || s.Dialect().LogsMoves() {
		return err
	}
	n, last := s.End()
	if leaf := keptLeaf(s.path, n, last); leaf != nil {
		s.hasLeaf = true
		s.MoveLeaf(*leaf)
	}
	return nil
}
