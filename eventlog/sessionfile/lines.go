package sessionfile

import (
	"io"
	"strings"
	"unsafe"
)

// line is one line of a file, or a part of one that is too long.
type line struct {
	text   string // without its newline
	offset int64
	number int  // from 1
	ended  bool // a newline stands behind it
	part   bool // of a line longer than the limit; more follows until one has ended
}

// lines cuts a stream at newlines. What it hands out is never written to again:
// texts may be kept without copying them.
type lines struct {
	r      io.Reader
	max    int
	next   int // how much to read at a time
	buf    string
	offset int64 // of buf in the file
	number int
	long   bool // inside a line longer than the limit
	eof    bool
}

const (
	firstRead = 32 << 10
	chunkSize = 1 << 20
)

// read gives the next line. It ends with io.EOF.
func (l *lines) read() (line, error) {
	var parts []string // of a line that spans reads
	size := 0
	for {
		if at := strings.IndexByte(l.buf, '\n'); at >= 0 {
			return l.cut(parts, at, true), nil
		}
		if size += len(l.buf); size > l.max || l.long && size > 0 {
			l.long = true
			return l.cut(parts, len(l.buf), false), nil
		}
		if l.eof {
			if size == 0 {
				return line{}, io.EOF
			}
			return l.cut(parts, len(l.buf), false), nil
		}
		if l.buf != "" {
			parts = append(parts, l.buf)
		}
		if err := l.fill(); err != nil {
			return line{}, err
		}
	}
}

// cut takes at bytes off buf, behind the parts, as a line or a part of one.
func (l *lines) cut(parts []string, at int, ended bool) line {
	text := l.buf[:at]
	if len(parts) > 0 {
		text = strings.Join(append(parts, text), "")
	}
	out := line{text: text, offset: l.offset, number: l.number, ended: ended, part: l.long}
	l.buf = l.buf[at:]
	l.offset += int64(len(text))
	if ended {
		l.buf = l.buf[1:]
		l.offset++
		l.number++
		l.long = false
	}
	return out
}

func (l *lines) fill() error {
	size := max(l.next, firstRead)
	l.next = min(2*size, chunkSize)
	b := make([]byte, size)
	n, err := io.ReadFull(l.r, b)
	switch err {
	case nil:
	case io.EOF, io.ErrUnexpectedEOF:
		l.eof = true
		if n < size/2 {
			b = append([]byte(nil), b[:n]...) // what is left of a file is little, and may be kept
		}
	default:
		return err
	}
	l.buf = unsafe.String(unsafe.SliceData(b), n)
	return nil
}
