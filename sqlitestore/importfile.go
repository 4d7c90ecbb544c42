package sqlitestore

import (
	"context"
	"crypto/sha256"
	"errors"
	"hash"
	"io"
	"os"

	"github.com/sessiontree/sessiontree/eventlog"
	"github.com/sessiontree/sessiontree/eventlog/js"
	"github.com/sessiontree/sessiontree/eventlog/sessionfile"
	"github.com/sessiontree/sessiontree/projections"
)

// fileImport is the import of one file, tried once.
type fileImport struct {
	*importer
	path    string
	known   *source // what is known of the file, nil if nothing
	forkOf  int64   // the session that a new one is made beside; 0 for none
	session int64   // where it went, or was refused

	info os.FileInfo
	open func() (*fileRun, error) // reads the file, again each time
}

// fileRun is one reading of the file.
type fileRun struct {
	header  sessionfile.Header // of a resumed one only format and newline
	resumed *resumption        // nil for the whole file
	next    func() (sessionfile.Item, error)
	end     func() *sessionfile.End
	close   func() error
	// dialect is what the entries tell that were read so far.
	dialect func() (eventlog.Dialect, string)
}

func (f *fileImport) run(ctx context.Context) (result FileResult, err error) {
	result = FileResult{Path: f.path}
	if f.info, err = os.Stat(f.path); err != nil {
		return result, cannotRead(f.path, err)
	}
	if result.Size = f.info.Size(); !f.info.Mode().IsRegular() {
		return result, cannotRead(f.path, errors.New("it is no regular file"))
	}
	if f.known != nil && f.known.isAsRead(f.info) && f.forkOf == 0 && !f.o.Verify {
		result.Outcome, result.Session, result.Damage = Unchanged, f.known.id, f.known.damage
		return result, nil
	}
	if err := f.awaitParent(ctx); err != nil {
		return result, err
	}
	weight := min(result.Size+1, importMemory)
	if result.Size >= streamed {
		f.stream.Lock()
		defer f.stream.Unlock()
		weight = 1
	}
	if err := f.memory.Acquire(ctx, weight); err != nil {
		return result, err
	}
	defer f.memory.Release(weight)
	if err := f.prepare(ctx); err != nil {
		return result, err
	}
	if result, err = f.write(ctx, result); err != nil || !f.o.Verify {
		return result, err
	}
	if result.Problems, err = f.prove(ctx, result.Session); result.Problems != nil {
		result.Outcome = Different
	}
	return result, err
}

// prepare decides where the file is read from, and reads a small one.
func (f *fileImport) prepare(ctx context.Context) error {
	f.open = func() (*fileRun, error) { return f.from(nil) }
	if f.known != nil && f.forkOf == 0 && f.canResume() {
		at, err := f.resumption(ctx)
		if err != nil {
			return err
		}
		if at != nil {
			f.open = func() (*fileRun, error) { return f.from(at) }
		}
	}
	if f.info.Size() >= streamed {
		return nil
	}
	run, err := f.open()
	if err != nil {
		return err
	}
	defer run.close()
	held, err := run.hold()
	if err != nil {
		return err
	}
	f.open = func() (*fileRun, error) { return held.again(), nil }
	return nil
}

// canResume says whether the file's format lets it be read on from the middle.
// Verifying reads all of it.
func (f *fileImport) canResume() bool {
	return !f.o.Verify && (f.known.format == sessionfile.V3 || f.known.format == sessionfile.V2) && f.info.Size() >= f.known.readTo
}

// resumption is where the file is read on: what was read of it before, if the file
// still begins so, else nil. A title in front may have changed.
type resumption struct {
	parts int // of the gap behind the last entry
	gap   string
	title string
}

func (f *fileImport) resumption(ctx context.Context) (*resumption, error) {
	file, err := os.Open(f.path)
	if err != nil {
		return nil, cannotRead(f.path, err)
	}
	defer file.Close()
	title := make([]byte, f.known.title)
	if _, err := file.ReadAt(title, 0); err != nil && len(title) > 0 {
		return nil, cannotRead(f.path, err)
	}
	if len(title) > 0 && !sessionfile.IsTitleLine(string(title)) {
		return nil, nil
	}
	h, err := f.hashed(file)
	if err != nil || string(h.Sum(nil)) != string(f.known.hash) {
		return nil, err
	}
	at := &resumption{title: string(title)}
	err = f.store.read(ctx, func(tx *projections.Tx) (err error) {
		at.parts, at.gap, err = f.known.lastGap(ctx, tx)
		return err
	})
	return at, err
}

// hashed takes what was read of the file before into a hash.
func (f *fileImport) hashed(file io.ReaderAt) (hash.Hash, error) {
	if h := f.prefixes.recall(f.path, f.known, f.info, file); h != nil {
		return h, nil
	}
	h := sha256.New()
	if _, err := io.Copy(h, io.NewSectionReader(file, f.known.title, f.known.readTo-f.known.title)); err != nil {
		return nil, cannotRead(f.path, err)
	}
	return h, nil
}

// from opens the file and reads it from where it was read up to before, or with
// nil all of it.
func (f *fileImport) from(at *resumption) (*fileRun, error) {
	file, err := os.Open(f.path)
	if err != nil {
		return nil, cannotRead(f.path, err)
	}
	reader, err := f.reader(file, at)
	if err != nil {
		file.Close()
		return nil, f.ofFile(err)
	}
	next := func() (sessionfile.Item, error) {
		item, err := reader.Next()
		return item, f.ofFile(err)
	}
	return &fileRun{header: reader.Header(), resumed: at, next: next, end: reader.End, close: file.Close, dialect: func() (eventlog.Dialect, string) { return reader.Dialect(f.o.Dialect) }}, nil
}

// ofFile marks an error of reading as the file's own.
func (f *fileImport) ofFile(err error) error {
	var e *eventlog.Error
	if errors.As(err, &e) && e.Code == eventlog.StorageFailed {
		return cannotRead(f.path, e.Err)
	}
	return err
}

func (f *fileImport) reader(file *os.File, at *resumption) (*sessionfile.Reader, error) {
	// A file that grows while it is read: the rest is for the next time.
	size := f.info.Size()
	o := sessionfile.Options{MaxLine: f.o.MaxLine, Size: size}
	if at == nil {
		return sessionfile.NewReader(f.path, io.NewSectionReader(file, 0, size), o)
	}
	h, err := f.hashed(file)
	if err != nil {
		return nil, err
	}
	position := sessionfile.Position{Format: f.known.format, Newline: f.known.newline, Offset: f.known.readTo, Line: f.known.line, Hash: h, Gap: at.gap, GapBegun: at.parts > 1}
	if at.parts == 0 {
		position.Gap = f.known.newline
	}
	return sessionfile.Resume(f.path, io.NewSectionReader(file, f.known.readTo, size-f.known.readTo), position, o), nil
}

// held is a small file, read.
type held struct {
	header  sessionfile.Header
	resumed *resumption
	items   []sessionfile.Item
	end     *sessionfile.End
	dialect func() (eventlog.Dialect, string)
}

func (r *fileRun) hold() (*held, error) {
	h := &held{header: r.header, resumed: r.resumed, dialect: r.dialect}
	for {
		item, err := r.next()
		if err == io.EOF {
			h.end = r.end()
			return h, nil
		}
		if err != nil {
			return nil, err
		}
		h.items = append(h.items, item)
	}
}

func (h *held) again() *fileRun {
	at := 0
	return &fileRun{
		header:  h.header,
		resumed: h.resumed,
		next: func() (sessionfile.Item, error) {
			if at == len(h.items) {
				return sessionfile.Item{}, io.EOF
			}
			at++
			return h.items[at-1], nil
		},
		end:     func() *sessionfile.End { return h.end },
		close:   func() error { return nil },
		dialect: h.dialect,
	}
}

// write takes the file into the database, in one transaction.
func (f *fileImport) write(ctx context.Context, result FileResult) (FileResult, error) {
	run, err := f.open()
	if err != nil {
		return result, err
	}
	header := run.header
	run.close()
	if run.resumed != nil {
		err = f.extend(ctx, f.known.session, &result)
		return result, err
	}
	if f.forkOf == 0 {
		session, here, err := f.find(ctx, header.ID)
		if err != nil {
			return result, err
		}
		if here {
			err = f.extend(ctx, session, &result)
			return result, err
		}
	}
	err = f.create(ctx, header, &result)
	return result, err
}

// find is the session that the file's entries belong to: the one that it was
// imported as, which may have got a new id, or the one with its id.
func (f *fileImport) find(ctx context.Context, id string) (session int64, here bool, err error) {
	err = f.store.read(ctx, func(tx *projections.Tx) (err error) {
		if f.known != nil {
			var header string
			ok, err := tx.Row(ctx, "SELECT header FROM sessions WHERE key = ?", []any{f.known.session}, &header)
			if err != nil {
				return err
			}
			if ok && js.Trusted(header).Get("id").Is(id) {
				session, here = f.known.session, true
				return nil
			}
		}
		if here, err = tx.Row(ctx, "SELECT key FROM sessions WHERE id = ?", []any{id}, &session); err != nil || here || f.o.Restore {
			return err
		}
		return f.checkTombstone(ctx, tx, id)
	})
	return session, here, err
}

// create makes the file's session.
func (f *fileImport) create(ctx context.Context, header sessionfile.Header, result *FileResult) error {
	m := header.Metadata
	var err error
	if m.Dialect, m.DialectBasis, err = f.dialect(); err != nil {
		return err
	}
	result.Dialect, result.Basis = m.Dialect, m.DialectBasis
	from, event, err := f.parent(ctx, &m)
	if err != nil {
		return err
	}
	if f.forkOf != 0 {
		m.ID = f.store.o.Source.SessionID()
	}
	_, err = f.store.create(ctx, m, event, from, func(ctx context.Context, tx *projections.Tx, key int64) error {
		if err := f.checkTombstone(ctx, tx, m.ID); err != nil {
			return err
		}
		in := &intake{fileImport: f, tx: tx, result: result, created: true}
		return in.take(ctx, key)
	})
	if err == nil {
		result.Session = m.ID
	}
	return err
}

// dialect is by which rules the file's session is answered. Of a large file that
// takes a reading of its own.
func (f *fileImport) dialect() (eventlog.Dialect, string, error) {
	run, err := f.open()
	if err != nil {
		return 0, "", err
	}
	defer run.close()
	for f.info.Size() >= streamed {
		if _, err := run.next(); err == io.EOF {
			break
		} else if err != nil {
			return 0, "", err
		}
	}
	d, basis := run.dialect()
	return d, basis, nil
}

// checkTombstone refuses a session that was deleted here, or forgets that it was.
func (f *fileImport) checkTombstone(ctx context.Context, tx *projections.Tx, id string) error {
	if f.o.Restore {
		_, err := tx.Exec(ctx, "DELETE FROM tombstones WHERE id = ?", id)
		return err
	}
	var at string
	deleted, err := tx.Row(ctx, "SELECT deleted_at FROM tombstones WHERE id = ?", []any{id}, &at)
	if err == nil && deleted {
		err = eventlog.Errorf(eventlog.InvalidState, "Session %s was deleted here at %s: restore it first", id, at)
	}
	return err
}

// extend takes what the file has more than a session that is here.
func (f *fileImport) extend(ctx context.Context, session int64, result *FileResult) error {
	f.session = session
	return f.store.update(ctx, func(ctx context.Context, tx *projections.Tx) error {
		in := &intake{fileImport: f, tx: tx, result: result}
		if err := in.take(ctx, session); err != nil {
			return err
		}
		_, err := tx.Row(ctx, "SELECT id FROM sessions WHERE key = ?", []any{session}, &result.Session)
		return err
	})
}
