package main

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"

	"github.com/sessiontree/sessiontree/eventlog"
	"github.com/sessiontree/sessiontree/eventlog/js"
)

// appendLines appends what each line of stdin has, and tells each entry when it is
// durable: whoever reads the ids knows what a stop, whatever its cause, has not
// taken. It ends at the first line that cannot be taken.
func (c *cli) appendLines(s *source) error {
	in := lineReader{r: bufio.NewReaderSize(c.stdin, 1<<16), max: maxInput}
	unread := false // whether those who read the ids have left
	for {
		line, err := in.next()
		if err == io.EOF {
			return nil
		}
		if err == nil {
			err = c.appendLine(s, line)
		}
		if err != nil {
			return in.fail(err)
		}
		if unread {
			continue
		}
		if err := c.out.Flush(); isClosedPipe(err) {
			unread = true // nobody wants the ids any more: the messages are taken all the same
		} else if err != nil {
			return in.fail(fmt.Errorf("its message was appended, but not told: %w", err))
		}
	}
}

func (c *cli) appendLine(s *source, line []byte) error {
	d, err := lineDraft(string(line))
	if err != nil {
		return err
	}
	entries, err := s.Append(c.ctx, d)
	if err != nil {
		return err
	}
	c.written(s, entries[0].ID(), entries...)
	return nil
}

// lineDraft is what a line says: a message, or an object with one.
func lineDraft(line string) (eventlog.Draft, error) {
	m, err := eventlog.ParseMessage(line)
	if err != nil || m.Get("role").Exists() || !m.Get("message").Exists() {
		return eventlog.MessageDraft(m), err
	}
	d := eventlog.Draft{}
	for _, f := range m.Members() {
		text, isText := f.Value.Str()
		switch {
		case f.Key == "message":
			inner, err := eventlog.ParseMessage(f.Value.JSON())
			if err != nil {
				return d, err
			}
			of := eventlog.MessageDraft(inner)
			of.ID, of.Parent = d.ID, d.Parent
			d = of
		case f.Key == "id" && isText && text != "":
			d = d.WithID(text)
		case f.Key == "at" && isText && text != "":
			d = d.Under(eventlog.At(text))
		case f.Key == "at" && f.Value.Kind() == js.Null:
			d = d.Under(eventlog.None())
		case f.Key == "id" || f.Key == "at":
			return d, eventlog.Errorf(eventlog.InvalidArgument, "%s is the id of an entry, not %s", f.Key, cut(f.Value.JSON(), maxKind))
		default:
			return d, eventlog.Errorf(eventlog.InvalidArgument, "there is %q beside the message: id and at may be", f.Key)
		}
	}
	return d, nil
}

// lineReader reads the lines of stdin that are not blank.
type lineReader struct {
	r    *bufio.Reader
	max  int
	line int // of the last one that was read, from 1
}

// fail names the line in an error, and keeps its code.
func (in *lineReader) fail(err error) error {
	at := fmt.Sprintf("line %d of stdin", in.line)
	if code := eventlog.CodeOf(err); code != "" {
		return &eventlog.Error{Code: code, Message: at, Err: err}
	}
	return fmt.Errorf("%s: %w", at, err)
}

// next fails with [io.EOF] behind the last line.
func (in *lineReader) next() ([]byte, error) {
	for {
		in.line++
		line, err := in.whole()
		if line = bytes.TrimSpace(line); len(line) > 0 && (err == nil || err == io.EOF) {
			return line, nil
		}
		if err != nil {
			return nil, err
		}
	}
}

func (in *lineReader) whole() (line []byte, err error) {
	for {
		part, err := in.r.ReadSlice('\n')
		if line = append(line, part...); len(line) > in.max {
			return nil, eventlog.Errorf(eventlog.InvalidArgument, "it has more than %d bytes", in.max)
		}
		if !errors.Is(err, bufio.ErrBufferFull) {
			if err != nil && err != io.EOF {
				err = fmt.Errorf("cannot read it: %w", err)
			}
			return line, err
		}
	}
}
