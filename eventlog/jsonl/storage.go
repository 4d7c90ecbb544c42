package jsonl

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"io/fs"
	"math"
	"os"
	"path/filepath"
	"slices"
	"sync"

	"github.com/sessiontree/sessiontree/eventlog"
	"github.com/sessiontree/sessiontree/eventlog/js"
	"github.com/sessiontree/sessiontree/eventlog/memory"
	"github.com/sessiontree/sessiontree/eventlog/osfile"
)

// Storage is one session file. It is an [eventlog.Storage]: memory's, with each
// append written to the file first.
type Storage struct {
	*memory.Storage
	path     string
	o        Options
	migrated *Migration // nil unless the file is of an older version

	damageMu sync.Mutex
	damage   []Damage

	// What follows belongs to the append that is under way.
	was   fs.FileInfo // the file as it was read, or made, or looked at last
	wrote bool        // whether this handle wrote to it since then
	// hasLeaf says that the leaf is kept beside the file.
	hasLeaf bool
	file    File // open and locked once the session was appended to
	tail    tail
	buf     []byte // what the last append wrote; the next one's memory
	// failed is what a write that failed may have left behind tail, because it
	// could not be taken back; nil if nothing. It is taken back before the next
	// append.
	failed []byte
}

// Open reads a session file. It fails with [eventlog.ErrNotFound],
// [eventlog.ErrInvalidSession] (no file of a session of version 3) and
// [eventlog.ErrStorage], strictly also with [eventlog.ErrInvalidEntry]. The file
// is not changed, whatever it is.
func Open(ctx context.Context, path string, o Options) (*Storage, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	f, info, err := openToRead(path)
	if err != nil {
		return nil, fileError("Failed to read session "+path, err)
	}
	defer f.Close()
	whole := func(o Options) (Contents, error) { return read(path, io.NewSectionReader(f, 0, math.MaxInt64), o) }
	o = o.detected(firstLine(f), func() (Contents, error) { return whole(o.asAgent()) })
	c, err := whole(o)
	if err != nil {
		return nil, err
	}
	return newStorage(path, info, c, o), nil
}

func newStorage(path string, was fs.FileInfo, c Contents, o Options) *Storage {
	s := &Storage{path: path, o: o, was: was, damage: c.Damage, tail: c.tail, migrated: c.Migrated}
	m := memory.Options{Source: o.Source, Lock: s.lock, Write: s.write, Done: s.close}
	if n := len(c.Entries); !c.Metadata.Dialect.LogsMoves() && n > 0 {
		m.Leaf = keptLeaf(path, n, eventlog.At(c.Entries[n-1].ID()))
		s.hasLeaf = m.Leaf != nil
	}
	s.Storage = memory.New(c.Metadata, c.Entries, m)
	return s
}

// Damage is what the file held, when it was last read, that is no entry.
func (s *Storage) Damage() []Damage {
	s.damageMu.Lock()
	defer s.damageMu.Unlock()
	return append([]Damage(nil), s.damage...)
}

func (s *Storage) fail(what string, err error) error {
	return fileError("Failed to append to session "+s.path+": "+what, err)
}

// lockFile makes sure that this handle alone writes to the file, and that memory
// holds all that the file holds.
func (s *Storage) lockFile(context.Context) error {
	if s.file == nil {
		if err := s.openLocked(); err != nil {
			return err
		}
	}
	// By its path, not by the handle: the file that is open may be there no more.
	info, err := os.Stat(s.path)
	switch {
	case os.IsNotExist(err):
		s.close()
		return s.deleted()
	case err != nil:
		return s.fail("cannot look at it", err)
	case !os.SameFile(info, s.was):
		return s.changed("was replaced by another")
	}
	if info.Size() != s.tail.size { // a name may lag behind what the handle knows
		if info, err = s.file.Stat(); err != nil {
			return s.fail("cannot look at it", err)
		}
	}
	size := info.Size()
	if touched := !s.wrote && !info.ModTime().Equal(s.was.ModTime()); touched && size == s.tail.size && !s.tail.torn() {
		if err := s.compare(size); err != nil {
			return err
		}
	}
	s.was, s.wrote = info, false
	if s.failed != nil {
		if size, err = s.takeBackFailed(size); err != nil {
			return err
		}
	}
	switch {
	case size < s.tail.start:
		return s.changed(fmt.Sprintf("has shrunk from %d to %d bytes", s.tail.size, size))
	case size != s.tail.size || s.tail.torn():
		// A torn line may have been cut by another handle, and as much written in
		// its place.
		return s.catchUp(size)
	}
	return nil
}

// openLocked opens the file to write, if it is the one that was read and nobody
// else writes to it.
func (s *Storage) openLocked() error {
	f, err := s.o.openFile(s.path, os.O_RDWR|os.O_APPEND, 0)
	if err != nil {
		if os.IsNotExist(err) {
			return s.deleted()
		}
		return s.fail("cannot open it for writing", err)
	}
	ok, err := osfile.TryLock(f.Fd())
	if err == nil && !ok {
		err = eventlog.Errorf(eventlog.Busy, "Session file %s is being written by another process or handle", s.path)
	} else if err != nil {
		err = s.fail("cannot lock it", err)
	}
	if err == nil {
		if info, statErr := f.Stat(); statErr != nil {
			err = s.fail("cannot look at it", statErr)
		} else if !os.SameFile(info, s.was) {
			err = s.changed("was replaced by another")
		}
	}
	if err != nil {
		f.Close()
		return err
	}
	s.file = f
	return nil
}

// plain are the options by which what others wrote is read.
func (s *Storage) plain() Options { return Options{MaxLine: s.o.MaxLine, Dialect: s.Dialect()} }

// compare looks whether a file that somebody wrote to, but did not append to,
// still holds what was read.
func (s *Storage) compare(size int64) error {
	c, err := read(s.path, io.NewSectionReader(s.file, 0, size), s.plain())
	if err != nil {
		return s.changed("was rewritten")
	}
	n := 0
	for e, err := range s.Entries(context.Background(), 0, eventlog.All) {
		if err != nil {
			return err
		}
		if n == len(c.Entries) || c.Entries[n].Line() != e.Line() {
			return s.changed("was rewritten")
		}
		n++
	}
	if n < len(c.Entries) {
		return s.changed("was rewritten")
	}
	return nil
}

// changed is the error for a file that others did more to than append. It is
// left to them.
func (s *Storage) changed(how string) error {
	s.close()
	return eventlog.Errorf(eventlog.StorageFailed, "Session file %s %s since it was read: open it again", s.path, how)
}

func (s *Storage) deleted() error {
	return eventlog.Errorf(eventlog.StorageFailed, "Session file %s was deleted while the session was open", s.path)
}

// catchUp reads what others appended since the file was read.
func (s *Storage) catchUp(size int64) error {
	from := s.tail.start
	var before [1]byte // there is a header, so from is not 0
	if _, err := s.file.ReadAt(before[:], from-1); err != nil {
		return s.fail("cannot read what others appended", err)
	}
	open := before[0] != '\n'
	if open && !s.tail.open {
		return s.changed("was rewritten")
	}
	in := lineReader{r: io.NewSectionReader(s.file, from, size-from), max: s.o.maxLine(), offset: from, line: s.tail.line}
	var p parsed
	for {
		ch, err := in.next()
		if err == io.EOF {
			break
		}
		if err != nil {
			return s.fail("cannot read what others appended", err)
		}
		p.parse(ch, s.plain()) // a session that is open stays open
	}
	s.tail = in.tail
	if s.tail.size == from {
		s.tail.open = open
	}
	if p.torn > 0 {
		s.tail.start = p.torn
	}
	s.cutOff(&p)
	s.Load(p.entries)
	s.damageMu.Lock()
	s.damage = slices.DeleteFunc(s.damage, func(d Damage) bool { return d.Offset >= from })
	s.damage = append(s.damage, p.damage...)
	s.damageMu.Unlock()
	return nil
}

// writeLines appends the entries' lines to the file in one write.
func (s *Storage) writeLines(ctx context.Context, entries []eventlog.Entry) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	size := 1
	for _, e := range entries {
		if n := len(e.JSON()); n > s.o.maxLine() {
			return eventlog.Errorf(eventlog.InvalidArgument, "Entry %s has %d bytes, more than the limit of %d for a line", e.ID(), n, s.o.maxLine())
		}
		size += len(e.JSON()) + 1
	}
	if err := s.cutTornTail(); err != nil {
		return err
	}
	buf := appendLines(slices.Grow(s.buf[:0], size), s.tail.open, entries)
	if cap(buf) <= maxKeptBuffer {
		s.buf = buf
	}
	s.wrote = true
	err := writeAll(s.file, buf)
	if err == nil && !s.o.NoSync {
		err = s.file.Sync()
	}
	if err != nil {
		if left := s.takeBack(buf); left != nil {
			err = fmt.Errorf("%w, and what was written cannot be taken back yet: %w", err, left)
		}
		return s.fail("cannot write", err)
	}
	lines := len(entries)
	if s.tail.open {
		lines++
	}
	end := s.tail.size + int64(len(buf))
	s.tail = tail{size: end, start: end, line: s.tail.line + lines}
	return nil
}

// maxKeptBuffer is how large a buffer may be that is kept for the next append.
const maxKeptBuffer = 64 << 10

// appendLines appends the entries' lines, behind a line that may have no end yet.
func appendLines(dst []byte, open bool, entries []eventlog.Entry) []byte {
	if open {
		dst = append(dst, '\n')
	}
	for _, e := range entries {
		dst = appendLine(dst, e)
	}
	return dst
}

func appendLine(dst []byte, e eventlog.Entry) []byte {
	return append(append(dst, e.Line()...), '\n')
}

// takeBack cuts what a failed write left, so that the file is as before. Where
// even that fails, the next append tries again first.
func (s *Storage) takeBack(failed []byte) error {
	err := s.file.Truncate(s.tail.size)
	if err == nil && !s.o.NoSync {
		err = s.file.Sync()
	}
	if s.failed = nil; err != nil {
		s.failed = bytes.Clone(failed)
	}
	return err
}

// takeBackFailed cuts what a write left that could not be taken back then, if
// that is what stands there, and gives the file's size.
func (s *Storage) takeBackFailed(size int64) (int64, error) {
	if left := size - s.tail.size; left >= 0 && left <= int64(len(s.failed)) {
		stands := make([]byte, left)
		if _, err := s.file.ReadAt(stands, s.tail.size); err != nil && left > 0 {
			return 0, s.fail("cannot read what a failed write left", err)
		}
		if bytes.HasPrefix(s.failed, stands) {
			if err := s.takeBack(s.failed); err != nil {
				return 0, s.fail("cannot take back a failed write", err)
			}
			return s.tail.size, nil
		}
	}
	s.failed = nil // others wrote here, who saw it
	return size, nil
}

// cutTornTail sets a last line aside that has no newline and no entry in it.
func (s *Storage) cutTornTail() error {
	if !s.tail.torn() {
		return nil
	}
	torn := make([]byte, 1+s.tail.size-s.tail.start) // and the byte before it
	if _, err := s.file.ReadAt(torn, s.tail.start-1); err != nil {
		return s.fail("cannot read the torn last line", err)
	}
	if err := s.setAside(torn[1:]); err != nil {
		return err
	}
	if err := s.file.Truncate(s.tail.start); err != nil {
		return s.fail("cannot cut the torn last line", err)
	}
	s.tail.size, s.tail.open = s.tail.start, torn[0] != '\n'
	return nil
}

// setAside keeps bytes that are about to leave the file in a file beside it.
func (s *Storage) setAside(torn []byte) error {
	line, err := json.Marshal(struct {
		Time   string `json:"time"`
		Offset int64  `json:"offset"`
		Line   int    `json:"line"`
		Reason string `json:"reason"`
		Bytes  []byte `json:"bytes"`
	}{s.o.Source.Time(), s.tail.start, s.tail.line, "a torn last line, cut before an append", torn})
	if err != nil {
		return s.fail("cannot set the torn last line aside", err)
	}
	f, err := s.o.openFile(s.path+damagedSuffix, os.O_RDWR|os.O_CREATE|os.O_APPEND, 0o600)
	if err != nil {
		return s.fail("cannot set the torn last line aside", err)
	}
	err = f.Chmod(0o600)
	if err == nil {
		err = writeLine(f, line)
	}
	if err == nil && !s.o.NoSync {
		err = f.Sync()
	}
	if closeErr := f.Close(); err == nil {
		err = closeErr
	}
	if err == nil && !s.o.NoSync { // the file may be new
		err = osfile.SyncDir(filepath.Dir(s.path))
	}
	if err != nil {
		return s.fail("cannot set the torn last line aside", err)
	}
	return nil
}

// writeLine appends a line to a file whose last line may be torn.
func writeLine(f File, line []byte) error {
	info, err := f.Stat()
	if err != nil {
		return err
	}
	if size := info.Size(); size > 0 {
		var last [1]byte
		if _, err := f.ReadAt(last[:], size-1); err != nil {
			return err
		}
		if last[0] != '\n' {
			line = append([]byte{'\n'}, line...)
		}
	}
	return writeAll(f, append(line, '\n'))
}

func writeAll(w io.Writer, b []byte) error {
	n, err := w.Write(b)
	if err == nil && n < len(b) {
		err = io.ErrShortWrite
	}
	return err
}

// damagedSuffix is what the name of a session's file gets for the bytes that
// were set aside.
const damagedSuffix = ".damaged"

func (s *Storage) close() error {
	if s.file == nil {
		return nil
	}
	f := s.file
	var left error
	if s.failed != nil {
		// Nobody will try again: what a failed append wrote must not be there when the
		// file is opened next.
		var info fs.FileInfo
		if info, left = f.Stat(); left == nil {
			_, left = s.takeBackFailed(info.Size())
		}
	}
	s.file = nil
	osfile.Unlock(f.Fd())
	if err := f.Close(); err != nil {
		return &eventlog.Error{Code: eventlog.StorageFailed, Message: "Failed to close session " + s.path, Err: err}
	}
	return left
}

// Create makes a session file with a header and the entries given. It fails with
// [eventlog.ErrAlreadyExists] when there is such a file, with
// [eventlog.ErrInvalidArgument] for an id that is empty or no UTF-8, and with
// [eventlog.ErrStorage]. The file appears whole or not at all.
func Create(ctx context.Context, path string, m eventlog.Metadata, entries []eventlog.Entry, o Options) (*Storage, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	id, dialect, basis := m.ID, m.Dialect, m.DialectBasis
	header := m.HeaderText()
	if dialect != o.Dialect { // opening it would not find it
		header = js.WithMember(js.Trusted(header), "dialect", js.Text(dialect.String())).JSON()
	}
	m, err := parseHeader(path, header, false)
	if err != nil || m.ID != id {
		return nil, eventlog.Errorf(eventlog.InvalidArgument, "a session cannot have the id %q", id)
	}
	m.Dialect, m.DialectBasis = dialect, basis
	size := len(m.Header) + 1
	for _, e := range entries {
		size += len(e.JSON()) + 1
	}
	info, err := createWhole(path, o, func(w io.Writer) error {
		buf := make([]byte, 0, min(size, chunkSize)+4096)
		buf = append(append(buf, m.Header...), '\n')
		for _, e := range entries {
			if buf = appendLine(buf, e); len(buf) >= chunkSize {
				if err := writeAll(w, buf); err != nil {
					return err
				}
				buf = buf[:0]
			}
		}
		return writeAll(w, buf)
	})
	if err != nil {
		if os.IsExist(err) {
			return nil, eventlog.Errorf(eventlog.AlreadyExists, "Session file %s exists already", path)
		}
		return nil, fileError("Failed to create session "+path, err)
	}
	end := int64(size)
	return newStorage(path, info, Contents{Metadata: m, Entries: entries, tail: tail{size: end, start: end, line: len(entries) + 2}}, o), nil
}

// tempSuffix ends the names of files that are not whole yet; they begin with a
// dot, and no list looks at them.
const tempSuffix = ".session.tmp"

// createWhole makes a file that did not exist: written beside its place, made
// durable, then linked there, which fails if the name is taken meanwhile.
func createWhole(path string, o Options, fill func(io.Writer) error) (info fs.FileInfo, err error) {
	temp := filepath.Join(filepath.Dir(path), fmt.Sprintf(".%s-%d%s", o.Source.SessionID(), os.Getpid(), tempSuffix))
	f, err := o.openFile(temp, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return nil, err
	}
	defer os.Remove(temp)
	err = f.Chmod(0o600)
	if err == nil {
		err = fill(f)
	}
	if err == nil && !o.NoSync {
		err = f.Sync()
	}
	if err == nil {
		info, err = f.Stat()
	}
	if closeErr := f.Close(); err == nil {
		err = closeErr
	}
	if err != nil {
		return nil, err
	}
	if err := os.Link(temp, path); err != nil {
		if os.IsExist(err) {
			return nil, err
		}
		// A file system without hard links.
		if _, statErr := os.Lstat(path); statErr == nil {
			return nil, fs.ErrExist
		}
		if err := os.Rename(temp, path); err != nil {
			return nil, err
		}
	}
	if o.NoSync {
		return info, nil
	}
	return info, osfile.SyncDir(filepath.Dir(path))
}
