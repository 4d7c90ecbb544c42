package jsonl

import (
	"errors"
	"fmt"
	"io"
	"runtime"
	"strings"
	"sync"
	"unsafe"

	"github.com/sessiontree/sessiontree/eventlog"
	"github.com/sessiontree/sessiontree/eventlog/js"
	"github.com/sessiontree/sessiontree/eventlog/older"
)

// Damage is a range of bytes of a session file that holds no entry: of one line, or
// of an append of several that a loss of power cut off, the end of the file. The bytes
// stay where they are, save those of a torn last line, or a torn last append: the
// next append moves them to a file beside the session.
type Damage struct {
	Line   int   // in the file, from 1, blank lines counted
	Offset int64 // of the first byte
	Length int64
	Reason string
}

func (d Damage) String() string {
	return fmt.Sprintf("line %d, bytes %d to %d: %s", d.Line, d.Offset, d.Offset+d.Length, d.Reason)
}

// Contents is what a session file holds.
type Contents struct {
	Metadata eventlog.Metadata
	Entries  []eventlog.Entry
	Damage   []Damage

	HeaderLine int        // the header's line, from 1
	Lines      []int      // the line of each entry, if Options.Lines asks for them
	Migrated   *Migration // of a file of version 1 or 2; nil for others

	tail tail
}

// tail is how the file ends, which the next append has to know.
type tail struct {
	size int64 // of what was read
	line int   // number of the line that the file ends in
	open bool  // whether that line has bytes, but no newline
	// start is size, unless the open line is torn: then it is where the line
	// starts, behind a header that it is glued to. Torn is a line that gave no
	// entry, and all from the gap on of an append that was cut off.
	start int64
}

func (t tail) torn() bool { return t.start < t.size }

// tear makes all from a gap on torn. The gap may stand within a line, behind an entry
// or a header.
func (t *tail) tear(from gap) { t.start, t.line, t.open = from.Offset, from.Line, true }

// Parse reads a session file's text as [Open] does; path is for messages. It
// fails with [eventlog.ErrInvalidSession] when there is no header to be read,
// and in strict mode as Pi does, with [eventlog.ErrInvalidEntry] too.
func Parse(path, text string, o Options) (Contents, error) {
	line, _, _ := strings.Cut(text, "\n")
	o = o.detected(line, func() (Contents, error) { return read(path, strings.NewReader(text), o.asAgent()) })
	return read(path, strings.NewReader(text), o)
}

// chunkSize is how much is read at a time: enough to make the hand-over to the
// parsers cheap, little enough to keep two cores busy on a small file.
const chunkSize = 1 << 20

// firstChunk is how much is read first; most files are small.
const firstChunk = 32 << 10

// chunk is a run of whole lines, or the end of the file.
type chunk struct {
	text    string
	offset  int64 // of the chunk in the file
	line    int   // number of its first line
	tooLong int64 // if not 0, the chunk stands for a line of that many bytes
}

// parsed is what a chunk holds.
type parsed struct {
	entries []eventlog.Entry
	damage  []Damage
	gaps    []gap // the damage that has NULs
	at      []int // the lines of the entries, if they are asked for
	records
	lines int   // lines that are not blank
	torn  int64 // where the last line starts if it has no newline and gave nothing, else 0
	// In strict mode, the first line that is no entry: how many lines that are
	// not blank the chunk has up to it, and why.
	badLine int
	bad     error
}

// read parses a stream of lines: one goroutine reads and cuts at newlines, as
// many as there are processors parse, and the results are put together in order.
func read(path string, r io.Reader, o Options) (Contents, error) {
	var c Contents
	in := lineReader{r: r, max: o.maxLine(), line: 1}
	header := false
	var results []*parsed
	var parsers sync.WaitGroup
	free := make(chan struct{}, runtime.GOMAXPROCS(0))
	for {
		ch, err := in.next()
		if err == io.EOF {
			break
		}
		if err != nil {
			parsers.Wait()
			return Contents{}, fileError("Failed to read session "+path, err)
		}
		if !header {
			take := c.takeHeader
			if o.Dialect == eventlog.CodingAgent {
				take = c.takeAgentHeader
			}
			if header, err = take(path, &ch, o); err != nil {
				return Contents{}, err
			}
			// Pi does not open a file of version 1 with others.
			o.objects = !o.Strict && o.Dialect == eventlog.CodingAgent && older.Version(js.Trusted(c.Metadata.Header)) < 2
			if ch.text == "" && ch.tooLong == 0 {
				continue
			}
		}
		p := &parsed{}
		results = append(results, p)
		free <- struct{}{}
		parsers.Add(1)
		go func() {
			defer parsers.Done()
			p.parse(ch, o)
			<-free
		}()
	}
	parsers.Wait()
	if !header && o.Dialect == eventlog.CodingAgent {
		return Contents{}, notASession(path, "it holds no record")
	}
	if !header {
		return Contents{}, eventlog.Errorf(eventlog.InvalidSession, "%s", invalid(path, "missing session header"))
	}
	c.tail = in.tail
	n := 0
	for _, p := range results {
		n += len(p.entries)
	}
	c.Entries = make([]eventlog.Entry, 0, n)
	var all records
	var gaps []gap
	lines := 1 // the header
	for _, p := range results {
		if p.bad != nil {
			return Contents{}, badLine(path, lines+p.badLine, p.bad)
		}
		lines += p.lines
		for _, at := range p.others {
			all.others = append(all.others, len(c.Entries)+at)
		}
		for _, at := range p.inside {
			all.inside = append(all.inside, len(c.Entries)+at)
		}
		for _, g := range p.gaps {
			gaps = append(gaps, gap{g.Damage, len(c.Entries) + g.entries})
		}
		c.Lines = append(c.Lines, p.at...)
		c.Entries = append(c.Entries, p.entries...)
		c.Damage = append(c.Damage, p.damage...)
	}
	if n := len(results); n > 0 && results[n-1].torn > 0 {
		c.tail.start = results[n-1].torn
	}
	c.cutOff(gaps)
	if o.Dialect == eventlog.CodingAgent {
		if err := c.migrate(all, o); err != nil {
			return Contents{}, err
		}
	}
	c.Metadata.Dialect, c.Metadata.DialectBasis = o.Dialect, o.basis
	if o.Strict && o.Dialect == eventlog.Harness {
		for _, e := range c.Entries {
			// Pi throws a TypeError here, after all lines were read.
			if _, _, _, err := eventlog.Harness.Label(e); err != nil {
				return Contents{}, &eventlog.Error{Code: eventlog.InvalidEntry, Message: invalid(path, err.Error()), Err: err}
			}
		}
	}
	return c, nil
}

// badLine is Pi's error for a line that is no entry. Pi counts lines that are
// not blank.
func badLine(path string, line int, err error) error {
	var why string
	e, ok := err.(*eventlog.Error)
	if ok {
		why, err = e.Message, e.Err
	}
	return &eventlog.Error{Code: eventlog.InvalidEntry, Message: invalid(path, fmt.Sprintf("line %d %s", line, why)), Err: err}
}

// takeHeader takes the header off the front of the file's first chunks. It says
// whether it was there: a chunk may hold nothing but blank lines.
func (c *Contents) takeHeader(path string, ch *chunk, o Options) (bool, error) {
	if ch.tooLong > 0 {
		return false, eventlog.Errorf(eventlog.InvalidSession, "%s", invalid(path, notAHeader))
	}
	for ch.text != "" {
		line, rest, _ := strings.Cut(ch.text, "\n")
		size := len(ch.text) - len(rest)
		if js.IsBlank(line) {
			ch.text, ch.offset, ch.line = rest, ch.offset+int64(size), ch.line+1
			continue
		}
		var err error
		if o.Strict {
			c.Metadata, err = parseHeader(path, line, true)
		} else {
			var glued string
			c.Metadata, glued, c.Damage, err = lenientHeader(path, line, ch.offset, ch.line)
			if !js.IsBlank(glued) {
				// Read what is glued to the header as the line that it is part of.
				ch.offset += int64(len(line) - len(glued))
				ch.text = ch.text[len(line)-len(glued):]
				return true, err
			}
		}
		ch.text, ch.offset, ch.line = rest, ch.offset+int64(size), ch.line+1
		return true, err
	}
	return false, nil
}

// parse reads a chunk's lines.
func (p *parsed) parse(ch chunk, o Options) {
	if ch.tooLong > 0 {
		p.tooLong(ch.line, ch.offset, ch.tooLong, o)
		return
	}
	text, offset, number := ch.text, ch.offset, ch.line
	if p.entries == nil {
		p.entries = make([]eventlog.Entry, 0, len(text)/400+1)
	}
	p.torn = 0
	for text != "" {
		line, rest, ended := strings.Cut(text, "\n")
		if len(line) > o.maxLine() {
			p.tooLong(number, offset, int64(len(line)), o)
		} else if line != "" && (line[0] == '{' || !js.IsBlank(line)) {
			p.lines++
			before := len(p.entries)
			e, err := o.Dialect.ParseEntry(line)
			switch {
			case err == nil && o.objects && e.Value().Kind() != js.Object:
				p.setAside(line, offset, number, eventlog.Errorf(eventlog.InvalidEntry, "is not a valid session entry"))
			case err == nil:
				p.entries = append(p.entries, e)
			case o.Dialect == eventlog.CodingAgent && (o.Strict || !notJSON(err)):
				p.setAside(line, offset, number, err)
				if !ended {
					p.torn = offset
				}
			case o.Strict:
				if p.bad == nil {
					p.badLine, p.bad = p.lines, err
				}
			default:
				p.salvage(line, offset, number, err)
				if !ended && len(p.entries) == before {
					p.torn = offset
				}
			}
			for o.Lines && len(p.at) < len(p.entries) {
				p.at = append(p.at, number)
			}
		}
		text, offset, number = rest, offset+int64(len(text)-len(rest)), number+1
	}
}

// setAside takes a line for damage that gives no entry by the coding agent's rules.
func (p *parsed) setAside(line string, offset int64, number int, why error) {
	if v, err := js.Parse(line); err == nil && v.Truthy() {
		p.others = append(p.others, len(p.entries))
	}
	p.damage = append(p.damage, Damage{number, offset, int64(len(line)), why.Error()})
}

// notJSON says whether a line was refused because it is no JSON, so that entries may
// be hidden in it.
func notJSON(err error) bool { return errors.As(err, new(*js.SyntaxError)) }

// tooLong sets a line aside that is longer than the limit.
func (p *parsed) tooLong(line int, offset, length int64, o Options) {
	p.lines++
	reason := fmt.Sprintf("the line has %d bytes, more than the limit of %d", length, o.maxLine())
	p.damage = append(p.damage, Damage{line, offset, length, reason})
	if o.Strict && p.bad == nil {
		p.badLine, p.bad = p.lines, eventlog.Errorf(eventlog.InvalidEntry, "is too long: %s", reason)
	}
}

// lineReader cuts a stream into chunks of whole lines. Chunks are not copied and
// not reused: the entries in them are the memory that an open session has.
type lineReader struct {
	r      io.Reader
	max    int
	size   int    // of the next chunk
	rest   []byte // read, but not handed out: the start of a line
	offset int64  // of rest in the file
	line   int    // number of the next line
	tail   tail
	done   bool
}

func (l *lineReader) next() (chunk, error) {
	size := max(l.size, firstChunk)
	l.size = min(2*size, chunkSize)
	for !l.done {
		buf := make([]byte, max(size, 2*len(l.rest)))
		n := copy(buf, l.rest)
		m, err := io.ReadFull(l.r, buf[n:])
		buf = buf[:n+m]
		if err == io.EOF || err == io.ErrUnexpectedEOF {
			l.done = true
			if cap(buf) > 2*len(buf) {
				buf = append([]byte(nil), buf...) // what is left of a small file
			}
		} else if err != nil {
			return chunk{}, err
		}
		end := strings.LastIndexByte(unsafeString(buf), '\n') + 1 // rest has newlines behind a line too long
		if end > 0 {
			l.rest = buf[end:]
			return l.cut(buf[:end]), nil
		}
		l.rest = buf
		if len(buf) > l.max {
			return l.skipLong()
		}
	}
	if len(l.rest) > 0 {
		// The last line has no newline; it is handed out alone.
		ch := chunk{text: unsafeString(l.rest), offset: l.offset, line: l.line}
		l.offset += int64(len(l.rest))
		l.rest = nil
		l.tail = tail{size: l.offset, start: l.offset, line: l.line, open: true}
		return ch, nil
	}
	if !l.tail.open {
		l.tail = tail{size: l.offset, start: l.offset, line: l.line}
	}
	return chunk{}, io.EOF
}

// cut hands out whole lines.
func (l *lineReader) cut(b []byte) chunk {
	ch := chunk{text: unsafeString(b), offset: l.offset, line: l.line}
	l.offset += int64(len(b))
	l.line += strings.Count(ch.text, "\n")
	return ch
}

// skipLong passes over a line that is longer than the limit, without keeping it.
func (l *lineReader) skipLong() (chunk, error) {
	ch := chunk{offset: l.offset, line: l.line, tooLong: int64(len(l.rest))}
	buf := make([]byte, chunkSize)
	for !l.done {
		n, err := l.r.Read(buf)
		if at := strings.IndexByte(unsafeString(buf[:n]), '\n'); at >= 0 {
			ch.tooLong += int64(at)
			l.offset += ch.tooLong + 1
			l.line++
			l.rest = append([]byte(nil), buf[at+1:n]...)
			return ch, nil
		}
		ch.tooLong += int64(n)
		if err == io.EOF {
			l.done = true
		} else if err != nil {
			return ch, err
		}
	}
	l.rest = nil
	l.offset += ch.tooLong
	l.tail = tail{size: l.offset, start: l.offset, line: l.line, open: true}
	return ch, nil
}

// unsafeString is b as a string. The caller does not write to b any more.
func unsafeString(b []byte) string { return unsafe.String(unsafe.SliceData(b), len(b)) }
