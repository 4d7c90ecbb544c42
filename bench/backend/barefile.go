package backend

import (
	"bufio"
	"context"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"sync"
)

// BareFile is the limit of a store in files: the same lines written bare, with
// the fsync, and read back.
func BareFile() Backend {
	return Backend{Name: "bare-file", About: "the same lines through a bare file", Open: func(_ context.Context, dir string, o Options) (Store, error) {
		return &bareFile{dir: dir, normal: o.Normal, files: map[string]*os.File{}}, nil
	}}
}

type bareFile struct {
	dir    string
	normal bool

	mu    sync.Mutex
	files map[string]*os.File
}

func (b *bareFile) Do(_ context.Context, r Request) (Reply, error) {
	switch r.Op {
	case Empty:
		return timed(func() (Reply, error) { return Reply{}, nil })
	case Create:
		return timed(func() (Reply, error) {
			f, err := b.file(r.Session)
			if err != nil {
				return Reply{}, err
			}
			return Reply{Count: 1}, b.write(f, header+"\n")
		})
	case Size:
		return folderSize(b.dir)
	case Peak:
		return peak()
	case Fork:
		return b.fork(r)
	}
	f, err := b.file(r.Session)
	if err != nil {
		return Reply{}, err
	}
	switch r.Op {
	case Build, Batch:
		lines := r.Lines
		if r.Op == Batch {
			lines = enveloped(lines)
		}
		text := strings.Join(lines, "\n") + "\n"
		return timed(func() (Reply, error) { return Reply{Count: len(r.Lines)}, b.write(f, text) })
	case Append, AppendAt:
		lines := enveloped(r.Lines)
		return each(len(lines), r.Writers, func(i int) error { return b.write(f, lines[i]+"\n") })
	case Move:
		return timed(func() (Reply, error) { return Reply{Count: 1}, b.write(f, leafLine+"\n") })
	case Branch, BranchPages, Context:
		return b.read(r.Session)
	}
	return Reply{}, errors.ErrUnsupported
}

func (b *bareFile) path(session string) string { return filepath.Join(b.dir, session+".lines") }

func (b *bareFile) file(session string) (*os.File, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if f := b.files[session]; f != nil {
		return f, nil
	}
	f, err := os.OpenFile(b.path(session), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err == nil {
		b.files[session] = f
	}
	return f, err
}

func (b *bareFile) write(f *os.File, text string) error {
	if _, err := f.WriteString(text); err != nil || b.normal {
		return err
	}
	return f.Sync()
}

func (b *bareFile) read(session string) (Reply, error) {
	return timed(func() (r Reply, err error) {
		f, err := os.Open(b.path(session))
		if err != nil {
			return r, err
		}
		defer f.Close()
		lines := bufio.NewScanner(f)
		lines.Buffer(make([]byte, 1<<16), 1<<28)
		var texts []string
		for lines.Scan() {
			texts = append(texts, lines.Text())
			r.Bytes += int64(len(lines.Bytes()))
		}
		r.Count = len(texts) - 1 // the header
		return r, lines.Err()
	})
}

func (b *bareFile) fork(r Request) (Reply, error) {
	return timed(func() (Reply, error) {
		from, err := os.Open(b.path(r.Session))
		if err != nil {
			return Reply{}, err
		}
		defer from.Close()
		to, err := b.file(r.NewSession)
		if err != nil {
			return Reply{}, err
		}
		if _, err := io.Copy(to, from); err != nil || b.normal {
			return Reply{}, err
		}
		return Reply{}, to.Sync()
	})
}

func (b *bareFile) Close(context.Context) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	var errs []error
	for id, f := range b.files {
		errs = append(errs, f.Close())
		delete(b.files, id)
	}
	return errors.Join(errs...)
}
