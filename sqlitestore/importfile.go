package sqlitestore

import (
	"context"
	"crypto/sha256"
	"errors"
	"hash"
	"io"
	"os"

	"github.com/sessiontree/sessiontree/eventlog"
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

	info   os.FileInfo
	at     *resumption // where the file is read on, nil for all of it
	header sessionfile.Header
	target target
	as     answering                // the session's, once the file is taken
	open   func() (*fileRun, error) // reads the file, again each time
	begun  *fileRun                 // of a large file, a reading that has begun
}

// fileRun is one reading of the file.
type fileRun struct {
	header  sessionfile.Header // of a resumed one only format and newline
	resumed *resumption        // nil for the whole file
	next    func() (sessionfile.Item, error)
	end     func() *sessionfile.End
	close   func() error
	marks   *eventlog.Detector // what the entries tell that were read so far
	used    bool               // it is being taken, or was
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
	if err := f.look(ctx); err != nil {
		return result, err
	}
	weight := min(f.size()+1, importMemory)
	if f.isLarge() {
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

// look finds out where the file is read from, and which session its entries belong
// to.
func (f *fileImport) look(ctx context.Context) (err error) {
	if f.known != nil && f.forkOf == 0 && f.canResume() {
		if f.at, err = f.resumption(ctx); err != nil {
			return err
		}
	}
	if f.at == nil {
		run, err := f.from(nil, eventlog.Harness)
		if err != nil {
			return err
		}
		f.header = run.header
		run.close()
	}
	return f.aim(ctx)
}

// size is how much of the file is to be read.
func (f *fileImport) size() int64 {
	if f.at != nil {
		return f.info.Size() - f.known.readTo
	}
	return f.info.Size()
}

// isLarge says whether the file is read while it is written, and not held.
func (f *fileImport) isLarge() bool { return f.size() >= streamed }

// prepare decides by which rules the file is read, and reads a small one.
func (f *fileImport) prepare(ctx context.Context) error {
	f.as = f.target.answering
	f.open = func() (*fileRun, error) { return f.from(f.at, f.as.dialect) }
	if f.target.settled() && f.isLarge() {
		return nil
	}
	held, err := f.read(!f.target.settled() && f.as.dialect != eventlog.Harness)
	if err != nil {
		return err
	}
	if !f.target.settled() {
		f.as.dialect, f.as.basis = held.marks.Correct(f.as.dialect, f.as.basis)
		if err := f.mayCorrect(ctx); err != nil {
			return err
		}
	}
	if f.isLarge() {
		return nil
	}
	if held.end == nil {
		if held, err = f.read(false); err != nil {
			return err
		}
	}
	f.open = func() (*fileRun, error) { return held.again(), nil }
	return nil
}

// read reads the file, if it is unsure by which rules up to a mark that says it. What
// a large one holds is not kept.
func (f *fileImport) read(unsure bool) (*held, error) {
	run, err := f.open()
	if err != nil {
		return nil, err
	}
	defer run.close()
	h := &held{header: run.header, resumed: run.resumed, marks: run.marks}
	for !unsure || !run.marks.Sure() {
		item, err := run.next()
		if err == io.EOF {
			h.end = run.end()
			break
		}
		if err != nil {
			return nil, err
		}
		if !f.isLarge() {
			h.items = append(h.items, item)
		}
	}
	return h, nil
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

// from opens the file and reads it, by the rules of a dialect, from where it was
// read up to before, or with nil all of it.
func (f *fileImport) from(at *resumption, as eventlog.Dialect) (*fileRun, error) {
	file, err := os.Open(f.path)
	if err != nil {
		return nil, cannotRead(f.path, err)
	}
	reader, err := f.reader(file, at, as)
	if err != nil {
		file.Close()
		return nil, f.ofFile(err)
	}
	next := func() (sessionfile.Item, error) {
		item, err := reader.Next()
		return item, f.ofFile(err)
	}
	return &fileRun{header: reader.Header(), resumed: at, next: next, end: reader.End, close: file.Close, marks: reader.Marks()}, nil
}

// ofFile marks an error of reading as the file's own.
func (f *fileImport) ofFile(err error) error {
	var e *eventlog.Error
	if errors.As(err, &e) && e.Code == eventlog.StorageFailed {
		return cannotRead(f.path, e.Err)
	}
	return err
}

func (f *fileImport) reader(file *os.File, at *resumption, as eventlog.Dialect) (*sessionfile.Reader, error) {
	// A file that grows while it is read: the rest is for the next time.
	size := f.info.Size()
	o := sessionfile.Options{MaxLine: f.o.MaxLine, Size: size, Dialect: as}
	if at == nil {
		return sessionfile.NewReader(f.path, io.NewSectionReader(file, 0, size), o)
	}
	h, err := f.hashed(file)
	if err != nil {
		return nil, err
	}
	position := sessionfile.Position{Format: f.known.format, Newline: f.known.newline, Offset: f.known.readTo, Line: f.known.line, Entries: f.known.n, Hash: h, Gap: at.gap, GapBegun: at.parts > 1}
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
	marks   *eventlog.Detector
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
		end:   func() *sessionfile.End { return h.end },
		close: func() error { return nil },
		marks: h.marks,
	}
}

// reopen is open for the transaction, which may be run twice: of a large file it is
// the reading that has begun, or a new one.
func (f *fileImport) reopen() (*fileRun, error) {
	if f.begun == nil {
		return f.open()
	}
	if f.begun.used {
		f.begun.close()
		run, err := f.open()
		if err != nil {
			return nil, err
		}
		f.begun = run.ahead()
	}
	f.begun.used = true
	return f.begun, nil
}

// write takes the file into the database, in one transaction.
func (f *fileImport) write(ctx context.Context, result FileResult) (FileResult, error) {
	write := func() error {
		if f.target.session != 0 {
			return f.extend(ctx, &result)
		}
		return f.create(ctx, &result)
	}
	if !f.isLarge() {
		err := write()
		return result, err
	}
	run, err := f.open()
	if err != nil {
		return result, err
	}
	f.begun = run.ahead()
	defer func() { f.begun.close() }()
	if f.size() >= bulkBytes {
		err = f.store.inBulk(ctx, write)
	} else {
		err = write()
	}
	return result, err
}

// create makes the file's session.
func (f *fileImport) create(ctx context.Context, result *FileResult) error {
	m := f.header.Metadata
	m.Dialect, m.DialectBasis = f.as.dialect, f.as.basis
	from, event, err := f.parent(ctx, &m)
	if err != nil {
		return err
	}
	if f.forkOf != 0 || m.ID == "" {
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

// extend takes what the file has more than its session that is here.
func (f *fileImport) extend(ctx context.Context, result *FileResult) error {
	f.session = f.target.session
	return f.store.update(ctx, func(ctx context.Context, tx *projections.Tx) error {
		in := &intake{fileImport: f, tx: tx, result: result}
		if err := in.take(ctx, f.session); err != nil {
			return err
		}
		_, err := tx.Row(ctx, "SELECT id FROM sessions WHERE key = ?", []any{f.session}, &result.Session)
		return err
	})
}
