package sqlitestore

import (
	"bufio"
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/sessiontree/sessiontree/eventlog"
	"github.com/sessiontree/sessiontree/eventlog/js"
	"github.com/sessiontree/sessiontree/eventlog/memory"
)

// prove compares what is here of a file with the file: the bytes that it would be
// exported as, and what the session answers with what the file's entries answer in
// memory, by the reference walk. It gives what differs. Where entries were appended
// here since, the answers are others by right, and only the bytes are compared. It
// needs memory for the whole file.
func (f *fileImport) prove(ctx context.Context, id string) ([]string, error) {
	st, err := f.store.session(ctx, id)
	if err != nil {
		return nil, err
	}
	st.uncached = true
	var origin *source
	var head int
	err = st.read(ctx, func(tx reading) (err error) {
		if origin, err = sourceOf(ctx, tx.Tx, f.path); err != nil {
			return err
		}
		head = tx.head.N
		return nil
	})
	if err != nil {
		return nil, err
	}
	if origin == nil || origin.session != st.key {
		return []string{"it is not known as a file of this session"}, nil
	}
	var problems []string
	if err := f.proveBytes(ctx, st, origin); errors.Is(err, errDiffers) {
		problems = append(problems, err.Error())
	} else if err != nil {
		return nil, err
	}
	if head != origin.n {
		return problems, nil
	}
	more, err := f.proveAnswers(ctx, st)
	return append(problems, more...), err
}

var errDiffers = errors.New("the bytes differ")

// proveBytes compares the export with the file.
func (f *fileImport) proveBytes(ctx context.Context, st *Storage, origin *source) error {
	file, err := os.Open(f.path)
	if err != nil {
		return cannotRead(f.path, err)
	}
	defer file.Close()
	c := &comparer{file: bufio.NewReaderSize(io.NewSectionReader(file, 0, origin.size), 1<<16)}
	x := &export{st: st, origin: origin, fileOnly: true}
	if err := x.run(ctx, c); err != nil {
		return err
	}
	if _, err := c.file.ReadByte(); err != io.EOF {
		return fmt.Errorf("%w: at %d the export ends, and the file goes on", errDiffers, c.at)
	}
	return nil
}

// comparer is a writer that takes what a file holds, and fails where it is given
// something else.
type comparer struct {
	file *bufio.Reader
	at   int64
	buf  []byte
}

func (c *comparer) Write(b []byte) (int, error) {
	if len(c.buf) < len(b) {
		c.buf = make([]byte, len(b))
	}
	held := c.buf[:len(b)]
	n, err := io.ReadFull(c.file, held)
	if err != nil && err != io.EOF && err != io.ErrUnexpectedEOF {
		return 0, err
	}
	if !bytes.Equal(held[:n], b) {
		same := 0
		for same < n && held[same] == b[same] {
			same++
		}
		return 0, fmt.Errorf("%w: at %d", errDiffers, c.at+int64(same))
	}
	c.at += int64(n)
	return len(b), nil
}

// proveAnswers compares what the session answers with what the file's entries do.
func (f *fileImport) proveAnswers(ctx context.Context, st *Storage) ([]string, error) {
	run, err := f.from(nil, st.meta.Dialect)
	if err != nil {
		return nil, err
	}
	defer run.close()
	var entries []eventlog.Entry
	for {
		item, err := run.next()
		if err == io.EOF {
			break
		}
		if err != nil {
			return nil, err
		}
		if !item.Partial {
			entries = append(entries, item.Entry)
		}
	}
	reference := eventlog.NewSession(memory.New(st.meta, entries, memory.Options{}))
	return differences(ctx, eventlog.NewSession(st), reference)
}

// differences names the questions that two sessions answer differently.
func differences(ctx context.Context, here, reference *eventlog.Session) (problems []string, err error) {
	for _, q := range questions {
		a, errA := q.ask(ctx, here)
		b, errB := q.ask(ctx, reference)
		if ctx.Err() != nil {
			return nil, ctx.Err()
		}
		if eventlog.CodeOf(errA) != eventlog.CodeOf(errB) {
			problems = append(problems, fmt.Sprintf("the %s is answered with %v, the file's with %v", q.name, errA, errB))
		} else if errA == nil && a != b {
			problems = append(problems, "the "+q.name+" differs from the file's")
		}
	}
	return problems, nil
}

// questions are what a session is asked, each answer as a text to compare.
var questions = []struct {
	name string
	ask  func(ctx context.Context, s *eventlog.Session) (string, error)
}{
	{"leaf", func(ctx context.Context, s *eventlog.Session) (string, error) {
		head, err := s.Head(ctx)
		return fmt.Sprint(head), err
	}},
	{"branch", func(ctx context.Context, s *eventlog.Session) (string, error) {
		branch, err := s.Branch(ctx, eventlog.None())
		return digest(branch, eventlog.Entry.JSON), err
	}},
	{"context", func(ctx context.Context, s *eventlog.Session) (string, error) {
		c, err := s.BuildContext(ctx, eventlog.None())
		return digest(c.Messages, eventlog.Message.JSON) + settingsText(c.Settings), err
	}},
	{"total", func(ctx context.Context, s *eventlog.Session) (string, error) {
		stats, err := s.Stats(ctx)
		return fmt.Sprint(stats), err
	}},
	{"name", func(ctx context.Context, s *eventlog.Session) (string, error) { return s.Name(ctx) }},
	{"list of labels", func(ctx context.Context, s *eventlog.Session) (string, error) {
		labels, err := s.Labels(ctx)
		return fmt.Sprint(labels), err // maps are printed in the order of their keys
	}},
}

// digest is a list of texts as one.
func digest[T any](list []T, text func(T) string) string {
	h := sha256.New()
	for _, x := range list {
		fmt.Fprintf(h, "%d:%s", len(text(x)), text(x))
	}
	return fmt.Sprintf("%d %x ", len(list), h.Sum(nil))
}

func settingsText(s eventlog.Settings) string {
	model := "none"
	if s.Model != nil {
		model = s.Model.Provider.JSON() + " " + s.Model.ID.JSON()
	}
	return s.ThinkingLevel.JSON() + " " + model + " " + fmt.Sprint(s.ActiveTools == nil) + js.List(s.ActiveTools...).JSON()
}
