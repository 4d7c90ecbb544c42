package jsonl

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/sessiontree/sessiontree/eventlog"
	"github.com/sessiontree/sessiontree/eventlog/memory"
)

// Storage is one session file. It is an [eventlog.Storage]: memory's, with each
// append written to the file first.
type Storage struct {
	*memory.Storage
	path   string
	o      Options
	damage []Damage

	// What follows belongs to the append that is under way.
	file File // open and locked once the session was appended to
	tail tail
	// unsure is set when a failed write could not be taken back: what the file
	// holds behind tail is read again before the next append.
	unsure bool
}

// Open reads a session file. It fails with [eventlog.ErrNotFound],
// [eventlog.ErrInvalidSession] (no file of a session of version 3) and
// [eventlog.ErrStorage], strictly also with [eventlog.ErrInvalidEntry]. The file
// is not changed, whatever it is.
func Open(ctx context.Context, path string, o Options) (*Storage, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	f, err := os.Open(path)
	if err != nil {
		return nil, fileError("Failed to read session "+path, err)
	}
	defer f.Close()
	c, err := read(path, f, o)
	if err != nil {
		return nil, err
	}
	return newStorage(path, c, o), nil
}

func newStorage(path string, c Contents, o Options) *Storage {
	s := &Storage{path: path, o: o, damage: c.Damage, tail: c.tail}
	s.Storage = memory.New(c.Metadata, c.Entries, memory.Options{
		Source: o.Source, Lock: s.lock, Write: s.write, Done: s.close,
	})
	return s
}

// Damage is what the file held, when it was opened, that is no entry.
func (s *Storage) Damage() []Damage { return append([]Damage(nil), s.damage...) }

func (s *Storage) fail(what string, err error) error {
	return fileError("Failed to append to session "+s.path+": "+what, err)
}

// lock makes sure that this handle alone writes to the file, and that memory
// holds all that the file holds.
func (s *Storage) lock(context.Context) error {
	if s.file == nil {
		f, err := s.o.openFile(s.path, os.O_RDWR|os.O_APPEND, 0)
		if err != nil {
			if os.IsNotExist(err) {
				return s.deleted()
			}
			return s.fail("cannot open it for writing", err)
		}
		ok, err := tryLock(f.Fd())
		if err == nil && !ok {
			err = eventlog.Errorf(eventlog.Busy, "Session file %s is being written by another process or handle", s.path)
		} else if err != nil {
			err = s.fail("cannot lock it", err)
		}
		if err != nil {
			f.Close()
			return err
		}
		s.file = f
	}
	info, err := s.file.Stat()
	if err != nil {
		return s.fail("cannot look at it", err)
	}
	if isDeleted(info) {
		return s.deleted()
	}
	switch size := info.Size(); {
	case size < s.tail.size:
		return eventlog.Errorf(eventlog.StorageFailed, "Session file %s has shrunk from %d to %d bytes since it was read: open it again", s.path, s.tail.size, size)
	case size > s.tail.size || s.unsure:
		return s.catchUp(size)
	}
	return nil
}

func (s *Storage) deleted() error {
	return eventlog.Errorf(eventlog.StorageFailed, "Session file %s was deleted while the session was open", s.path)
}

// catchUp reads what others appended since the file was read.
func (s *Storage) catchUp(size int64) error {
	from := s.tail.start
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
		p.parse(ch, Options{MaxLine: s.o.MaxLine}) // a session that is open stays open
	}
	s.Load(p.entries)
	s.damage = append(s.damage, p.damage...)
	s.tail, s.unsure = in.tail, false
	if !p.torn {
		s.tail.start = s.tail.size
	}
	return nil
}

// write appends the entries' lines to the file in one write.
func (s *Storage) write(ctx context.Context, entries []eventlog.Entry) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	size := 1
	for _, e := range entries {
		size += len(e.JSON()) + 1
	}
	if err := s.cutTornTail(); err != nil {
		return err
	}
	buf := make([]byte, 0, size)
	if s.tail.open {
		buf = append(buf, '\n')
	}
	for _, e := range entries {
		buf = appendLine(buf, e)
	}
	n, err := s.file.Write(buf)
	if err == nil && n < len(buf) {
		err = io.ErrShortWrite
	}
	if err == nil && !s.o.NoSync {
		err = s.file.Sync()
	}
	if err != nil {
		return s.takeBack(err)
	}
	lines := len(entries)
	if s.tail.open {
		lines++
	}
	end := s.tail.size + int64(len(buf))
	s.tail = tail{size: end, start: end, line: s.tail.line + lines}
	return nil
}

// appendLine writes an entry as a line. Its text may hold newlines between
// values, as any JSON may; in a file of lines it must not.
func appendLine(dst []byte, e eventlog.Entry) []byte {
	return append(appendOneLine(dst, e.JSON()), '\n')
}

// takeBack cuts what a failed write left, so that the file is as before. Where
// even that fails, the next append looks at the file first.
func (s *Storage) takeBack(cause error) error {
	if err := s.file.Truncate(s.tail.size); err != nil {
		s.unsure = true
	} else if !s.o.NoSync {
		if err := s.file.Sync(); err != nil {
			s.unsure = true
		}
	}
	return s.fail("cannot write", cause)
}

// cutTornTail sets a last line aside that has no newline and no entry in it.
func (s *Storage) cutTornTail() error {
	if !s.tail.torn() {
		return nil
	}
	torn := make([]byte, s.tail.size-s.tail.start)
	if _, err := s.file.ReadAt(torn, s.tail.start); err != nil {
		return s.fail("cannot read the torn last line", err)
	}
	if err := s.setAside(torn); err != nil {
		return err
	}
	if err := s.file.Truncate(s.tail.start); err != nil {
		return s.fail("cannot cut the torn last line", err)
	}
	s.tail.size, s.tail.open = s.tail.start, false
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
	f, err := s.o.openFile(s.path+damagedSuffix, os.O_WRONLY|os.O_CREATE|os.O_APPEND, 0o600)
	if err != nil {
		return s.fail("cannot set the torn last line aside", err)
	}
	err = f.Chmod(0o600)
	if err == nil {
		_, err = f.Write(append(line, '\n'))
	}
	if err == nil {
		err = f.Sync()
	}
	if closeErr := f.Close(); err == nil {
		err = closeErr
	}
	if err != nil {
		return s.fail("cannot set the torn last line aside", err)
	}
	return nil
}

// damagedSuffix is what the name of a session's file gets for the bytes that
// were set aside.
const damagedSuffix = ".damaged"

func (s *Storage) close() error {
	if s.file == nil {
		return nil
	}
	f := s.file
	s.file = nil
	if err := f.Close(); err != nil {
		return &eventlog.Error{Code: eventlog.StorageFailed, Message: "Failed to close session " + s.path, Err: err}
	}
	return nil
}

// Create makes a session file with a header and the entries given. It fails with
// [eventlog.ErrAlreadyExists] when there is such a file, and with
// [eventlog.ErrStorage]. The file appears whole or not at all.
func Create(ctx context.Context, path string, m eventlog.Metadata, entries []eventlog.Entry, o Options) (*Storage, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	m.Path = path
	m.Header = m.HeaderText()
	size := len(m.Header) + 1
	for _, e := range entries {
		size += len(e.JSON()) + 1
	}
	if err := createWhole(path, o, func(w io.Writer) error {
		buf := make([]byte, 0, min(size, chunkSize)+4096)
		buf = append(append(buf, m.Header...), '\n')
		for _, e := range entries {
			if buf = appendLine(buf, e); len(buf) >= chunkSize {
				if _, err := w.Write(buf); err != nil {
					return err
				}
				buf = buf[:0]
			}
		}
		_, err := w.Write(buf)
		return err
	}); err != nil {
		if os.IsExist(err) {
			return nil, eventlog.Errorf(eventlog.AlreadyExists, "Session file %s exists already", path)
		}
		return nil, fileError("Failed to create session "+path, err)
	}
	end := int64(size)
	return newStorage(path, Contents{Metadata: m, Entries: entries, tail: tail{size: end, start: end, line: len(entries) + 2}}, o), nil
}

// createWhole makes a file that did not exist: written beside its place, made
// durable, then linked there, which fails if the name is taken meanwhile.
func createWhole(path string, o Options, fill func(io.Writer) error) (err error) {
	temp := filepath.Join(filepath.Dir(path), fmt.Sprintf(".%s-%d.tmp", o.Source.SessionID(), os.Getpid()))
	f, err := o.openFile(temp, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	defer os.Remove(temp)
	err = f.Chmod(0o600)
	if err == nil {
		err = fill(f)
	}
	if err == nil && !o.NoSync {
		err = f.Sync()
	}
	if closeErr := f.Close(); err == nil {
		err = closeErr
	}
	if err != nil {
		return err
	}
	if err := os.Link(temp, path); err != nil {
		if os.IsExist(err) {
			return err
		}
		// A file system without hard links.
		if _, statErr := os.Lstat(path); statErr == nil {
			return fs.ErrExist
		}
		if err := os.Rename(temp, path); err != nil {
			return err
		}
	}
	if o.NoSync {
		return nil
	}
	return syncDir(filepath.Dir(path))
}
