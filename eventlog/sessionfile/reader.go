package sessionfile

import (
	"crypto/sha256"
	"encoding"
	"errors"
	"hash"
	"io"
	"strings"
	"unsafe"

	"github.com/sessiontree/sessiontree/eventlog"
	"github.com/sessiontree/sessiontree/eventlog/js"
	"github.com/sessiontree/sessiontree/eventlog/jsonl"
)

// Damage is a range of bytes that holds no entry.
type Damage = jsonl.Damage

// Part is a run of bytes of a gap. Damage says why it cannot be read, or is nil;
// of damage in several parts the last has it, with the length of all.
type Part struct {
	Bytes  string
	Damage *Damage
}

// Item is an entry, with what leads back to the file.
type Item struct {
	Entry eventlog.Entry
	Edits Edits
	// Gap is what stands between this entry and the item before; nil is a newline,
	// as [Header.Newline] has it.
	Gap []Part
	// Partial says that this is no entry, but the beginning of a gap that is too
	// long to be held; the next item goes on with it.
	Partial bool
}

// End is how the file ends, and where to go on when it has grown.
type End struct {
	Gap []Part // behind the last item; nil is a newline, as in [Item.Gap]
	// Offset and Line are where the next read begins. All before was read for good;
	// Hash is the SHA-256 of it, without the title line.
	Offset int64
	Line   int
	Hash   []byte
	State  []byte // of the hash, as its MarshalBinary gives it
	// Tail is what stands behind Offset: a last line without its newline that gave
	// no entry, yet. Torn says why, or is nil where it is nothing but blanks.
	Tail string
	Torn *Damage
	Size int64 // of what was read
}

// Options configure a reader. The zero value is right for files of any size.
type Options struct {
	// MaxLine is the longest line that is read, in bytes; a longer one is damage. 0
	// is 256 MiB.
	MaxLine int
	// Size is how long the file is, if that is known: small files are read at once.
	Size int64
	// Dialect is by whose rules a line of the file is an entry, and read as one: the
	// coding agent takes any record for one, without an id too.
	Dialect eventlog.Dialect
}

func (o Options) maxLine() int {
	if o.MaxLine > 0 {
		return o.MaxLine
	}
	return defaultMaxLine
}

const (
	defaultMaxLine = 256 << 20
	maxHeader      = 16 << 20 // how far into a file its header may stand
	maxGap         = 1 << 20  // how much of a gap is held
)

// Reader reads one session file.
type Reader struct {
	path   string
	in     lines
	hash   hash.Hash
	header Header
	as     eventlog.Dialect
	rules  rules

	detector eventlog.Detector
	queue    []Item // read and not handed out
	gap      gap
	end      *End
}

// rules is how the lines of a format are read.
type rules interface {
	// record reads the text of a line, less the white space around it. It gives no
	// items, and why, for what is no record of the format.
	record(text string, add func(start, end int, e eventlog.Entry, back Edits)) error
	// part is record for JSON that was found inside a line.
	part(text string, add func(start, end int, e eventlog.Entry, back Edits)) error
	// committed says whether a last line without its newline may count.
	committed() bool
}

// NewReader reads a file up to its header. It fails with
// [eventlog.ErrInvalidSession] where there is none, or one that is of no session;
// path is for messages. Lines that are no JSON may stand before the header, a
// byte order mark too.
func NewReader(path string, r io.Reader, o Options) (*Reader, error) {
	f := &Reader{path: path, hash: sha256.New(), as: o.Dialect}
	f.in = lines{r: r, max: o.maxLine(), number: 1, next: int(min(o.Size+1, chunkSize))}
	if err := f.readHeader(min(o.maxLine(), maxHeader)); err != nil {
		return nil, err
	}
	return f, nil
}

// Position is where a file of version 2 or 3 was read up to.
type Position struct {
	Format  Format
	Newline string
	Offset  int64
	Line    int
	Entries int       // how many were read
	Hash    hash.Hash // of what stands before Offset, as in [End.Hash]
	// Gap is what that read left behind its last item, if that was one part without
	// damage. GapBegun says that it was more: then the next item's gap goes on with it,
	// as behind a partial one.
	Gap      string
	GapBegun bool
}

// Resume reads on at a position, where r stands.
func Resume(path string, r io.Reader, at Position, o Options) *Reader {
	f := &Reader{path: path, hash: at.Hash, header: Header{Format: at.Format, Newline: at.Newline}, as: o.Dialect, rules: rulesOf(at.Format, o.Dialect)}
	f.detector.Skip(at.Entries)
	f.in = lines{r: r, max: o.maxLine(), number: at.Line, offset: at.Offset, next: int(min(max(o.Size-at.Offset, 0)+1, chunkSize))}
	f.gap = gap{newline: at.Newline, first: at.Gap, begun: at.GapBegun}
	return f
}

// Header is what the file says of the session.
func (f *Reader) Header() Header { return f.header }

func (f *Reader) fail(err error) error {
	return &eventlog.Error{Code: eventlog.StorageFailed, Message: "Failed to read " + f.path, Err: err}
}

// readHeader reads up to the header: the first record that there is, but for a
// title.
func (f *Reader) readHeader(limit int) error {
	for f.in.offset < int64(limit) {
		l, err := f.in.read()
		if err == io.EOF {
			break
		}
		if err != nil {
			return f.fail(err)
		}
		switch {
		case l.part:
			return refuse(f.path, "first line is not a valid session header")
		case js.IsBlank(l.text):
			f.pass(l)
			continue
		case strings.HasPrefix(l.text, "SQLite format 3"):
			return refuse(f.path, "it is an SQLite database")
		}
		v, err := js.Parse(l.text)
		if err == nil && isTitle(v) && l.offset == 0 && l.ended {
			f.header.Title = int64(len(l.text)) + 1
			f.gap.text(l.text + "\n") // and not hashed: it changes in place
			continue
		}
		found, err := f.headerIn(l, v, err)
		if found || err != nil {
			return err
		}
	}
	return refuse(f.path, "missing session header")
}

// headerIn looks for the header in a line. A line that is no JSON may hold it
// behind bytes that are none, or before entries that are glued to it.
func (f *Reader) headerIn(l line, v js.Value, parseErr error) (bool, error) {
	if parseErr == nil {
		h, err := parseHeader(f.path, v)
		if h == nil && err == nil {
			err = refuse(f.path, "first line is not a valid session header")
		}
		if err != nil {
			return false, err
		}
		start := strings.Index(l.text, v.JSON())
		f.takeHeader(h, l, start, start+len(v.JSON()))
		return true, nil
	}
	for at, budget := strings.IndexByte(l.text, '{'), 16*len(l.text)+1<<16; at >= 0 && budget > 0; {
		end, err := js.Skip(l.text, at)
		budget -= end - at
		if err == nil {
			h, err := parseHeader(f.path, js.Trusted(l.text[at:end]))
			if h == nil && err == nil {
				err = refuse(f.path, "first line is not a valid session header")
			}
			if err != nil {
				return false, err
			}
			f.takeHeader(h, l, at, end)
			return true, nil
		}
		next := strings.IndexByte(l.text[at+1:], '{')
		if next < 0 {
			break
		}
		at += 1 + next
	}
	f.damaged(l, 0, len(l.text), "bytes before the header")
	f.hashed(l.text)
	f.pass(line{ended: l.ended})
	return false, nil
}

const byteOrderMark = "\uFEFF"

func (f *Reader) takeHeader(h *Header, l line, start, end int) {
	if before := l.text[:start]; !js.IsBlank(before) && before != byteOrderMark {
		f.damaged(l, 0, start, "bytes before the header")
	} else {
		f.gap.text(before)
	}
	h.Title, h.Gap = f.header.Title, f.gap.take()
	h.Newline = "\n"
	if l.text[end:] == "\r" {
		h.Newline = "\r\n"
	}
	f.header = *h
	f.gap.newline = h.Newline
	f.rules = rulesOf(h.Format, f.as)
	f.hashed(l.text[:end])
	f.rest(l, end)
}

// rest reads what stands in a line behind an item.
func (f *Reader) rest(l line, from int) {
	l.text, l.offset = l.text[from:], l.offset+int64(from)
	if !js.IsBlank(l.text) {
		f.salvage(l, errors.New("records on one line"))
		return
	}
	f.blank(l)
}

// hashed takes bytes into the hash of what was read for good.
func (f *Reader) hashed(s string) { f.hash.Write(unsafe.Slice(unsafe.StringData(s), len(s))) }

// blank passes over white space. Without a newline it is no end of anything yet.
func (f *Reader) blank(l line) {
	if !l.ended && l.text != "" {
		f.finish(l, nil)
		return
	}
	f.pass(l)
}

// pass takes a line into the gap as it is.
func (f *Reader) pass(l line) {
	f.hashed(l.text)
	switch {
	case !l.ended:
		f.gap.text(l.text)
	case l.text == "\r":
		f.gap.text("\r\n")
	default:
		f.gap.text(l.text)
		f.gap.text("\n")
	}
	if l.ended {
		f.hashed("\n")
	}
}

// damaged takes a range of a line into the gap as damage.
func (f *Reader) damaged(l line, start, end int, why string) {
	f.gap.damage(l.text[start:end], &Damage{Line: l.number, Offset: l.offset + int64(start), Length: int64(end - start), Reason: why})
}

// Next gives the next item, io.EOF at the end; [Reader.End] is known then.
func (f *Reader) Next() (Item, error) {
	for len(f.queue) == 0 {
		if f.end != nil {
			return Item{}, io.EOF
		}
		l, err := f.in.read()
		switch {
		case err == io.EOF:
			f.finish(line{offset: f.in.offset, number: f.in.number}, nil)
		case err != nil:
			return Item{}, f.fail(err)
		default:
			f.line(l)
		}
		if len(f.queue) == 0 && f.gap.size > maxGap {
			return Item{Gap: f.gap.begin(), Partial: true}, nil
		}
	}
	item := f.queue[0]
	f.queue[0] = Item{} // the queue's memory may live on
	if f.queue = f.queue[1:]; len(f.queue) == 0 {
		f.queue = nil
	}
	return item, nil
}

// End is how the file ends, nil before Next gave io.EOF.
func (f *Reader) End() *End { return f.end }

// finish ends the file with a last line that has no newline and gave no entry.
func (f *Reader) finish(tail line, torn *Damage) {
	f.gap.endLong("")
	f.end = &End{Gap: f.gap.take(), Offset: tail.offset, Line: tail.number, Hash: f.hash.Sum(nil), Tail: tail.text, Torn: torn, Size: tail.offset + int64(len(tail.text))}
	f.end.State, _ = f.hash.(encoding.BinaryMarshaler).MarshalBinary() // SHA-256 can, and nothing is lost where it cannot
}

// line reads one line.
func (f *Reader) line(l line) {
	switch {
	case l.part:
		f.tooLong(l)
		return
	case l.text == "" || l.text[0] != '{' && js.IsBlank(l.text):
		f.blank(l)
		return
	case !l.ended && !f.rules.committed():
		f.finish(l, &Damage{Line: l.number, Offset: l.offset, Length: int64(len(l.text)), Reason: "a torn last line"})
		return
	}
	text, start := l.text, 0
	if text[0] != '{' || text[len(text)-1] != '}' {
		v, err := js.Parse(text)
		if err != nil {
			f.salvage(l, notJSON(err))
			return
		}
		start = strings.Index(text, v.JSON())
		text = v.JSON()
	}
	done := 0
	err := f.rules.record(text, func(from, to int, e eventlog.Entry, back Edits) {
		f.gap.text(l.text[done : start+from])
		f.emit(e, back)
		done = start + to
	})
	if f.as == eventlog.CodingAgent && f.header.Format != V4 && err != nil && !errors.As(err, new(*js.SyntaxError)) {
		f.setAside(l, err)
		return
	}
	if err != nil {
		f.salvage(l, err)
		return
	}
	if done == 0 {
		// A record that gives no entry, and is no damage.
		f.pass(l)
		return
	}
	f.hashed(l.text[:done])
	f.after(l, done)
}

func notJSON(err error) error {
	return &eventlog.Error{Code: eventlog.InvalidEntry, Message: "is not valid JSON", Err: err}
}

// setAside takes a line for damage that is JSON and gives no entry by the coding
// agent's rules: nothing hides in it.
func (f *Reader) setAside(l line, why error) {
	if !l.ended {
		f.finish(l, &Damage{Line: l.number, Offset: l.offset, Length: int64(len(l.text)), Reason: why.Error()})
		return
	}
	f.damaged(l, 0, len(l.text), why.Error())
	f.gap.text("\n")
	f.hashed(l.text)
	f.hashed("\n")
}

// after takes what stands behind the last item of a line that is a record.
func (f *Reader) after(l line, from int) {
	l.text, l.offset = l.text[from:], l.offset+int64(from)
	if !l.ended && l.text != "" {
		f.finish(l, nil)
		return
	}
	f.pass(l)
}

// emit hands an entry out.
func (f *Reader) emit(e eventlog.Entry, back Edits) {
	if f.header.Format == V4 && f.as != eventlog.Harness {
		e = f.as.TrustedEntry(e.JSON())
	}
	f.detector.Observe(e)
	f.queue = append(f.queue, Item{Entry: e, Edits: back, Gap: f.gap.take()})
}

// tooLong takes a part of a line that is longer than the limit.
func (f *Reader) tooLong(l line) {
	f.hashed(l.text)
	f.gap.long(l, f.in.max)
	if l.ended {
		f.hashed("\n")
		f.gap.endLong(l.text)
		f.gap.text("\n")
	}
}

// salvage takes the records out of a line that is none: see [jsonl.Salvage].
func (f *Reader) salvage(l line, why error) {
	reason := why.Error()
	if strings.Trim(l.text, "\x00") == "" {
		reason = "NUL bytes"
	}
	done := 0
	gap := func(to int) {
		if part := l.text[done:to]; strings.Trim(part, " \t\r\n") != "" && part != byteOrderMark {
			f.damaged(l, done, to, reason)
		} else {
			f.gap.text(part)
		}
		done = to
	}
	jsonl.Salvage(l.text, func(start, end int) {
		began := false
		begin := func() {
			if !began {
				gap(start)
			}
			began = true
		}
		err := f.rules.part(l.text[start:end], func(from, to int, e eventlog.Entry, back Edits) {
			begin()
			f.gap.text(l.text[done : start+from])
			f.emit(e, back)
			done = start + to
		})
		if err == nil {
			begin()
			f.gap.text(l.text[done:end])
			done = end
		}
	})
	f.hashed(l.text[:done])
	if rest := l.text[done:]; l.ended {
		if f.hashed(rest); strings.HasSuffix(rest, "\r") && strings.Trim(rest, "\r") == "" {
			f.gap.text(rest + "\n")
		} else {
			gap(len(l.text))
			f.gap.text("\n")
		}
		f.hashed("\n")
		return
	}
	tail := l
	tail.text, tail.offset = l.text[done:], l.offset+int64(done)
	if strings.Trim(tail.text, " \t\r\n") == "" {
		f.finish(tail, nil)
		return
	}
	f.finish(tail, &Damage{Line: l.number, Offset: tail.offset, Length: int64(len(tail.text)), Reason: reason})
}
