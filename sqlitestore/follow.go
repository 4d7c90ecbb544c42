package sqlitestore

import (
	"context"
	"crypto/sha256"
	"encoding"
	"errors"
	"hash"
	"io"
	"os"
	"sync"
	"time"

	"golang.org/x/sync/semaphore"

	"github.com/sessiontree/sessiontree/eventlog"
	"github.com/sessiontree/sessiontree/eventlog/sessionfile"
)

// Follow imports the session files at and below paths, and goes on as they grow and
// new ones come, until the context ends, whose error it returns. each gets the
// result for each file, each time. Where another process holds the database for too
// long the files are tried again. Several followers, in this process or others, do
// each other no harm: the second finds a file unchanged.
func (s *Store) Follow(ctx context.Context, paths []string, o ImportOptions, w sessionfile.WatchOptions, each func(FileResult)) error {
	if s.writer == nil {
		return s.readOnly()
	}
	im := &importer{store: s, o: o, each: each, memory: semaphore.NewWeighted(importMemory), prefixes: &prefixes{}}
	var again []string
	return sessionfile.Watch(ctx, paths, w, func(files []string) error {
		for {
			names, err := absolute(append(files, again...))
			if err != nil {
				return err
			}
			err = im.run(ctx, names)
			if err == nil {
				err = s.linkParents(ctx)
			}
			if again = nil; !errors.Is(err, eventlog.ErrBusy) {
				return err
			}
			again = names
			select {
			case <-ctx.Done():
				return ctx.Err()
			case <-time.After(time.Second):
			}
		}
	})
}

// prefixes remembers the files that grow, so that what was read of one need not be
// read again to know that it still begins so: its last bytes tell.
type prefixes struct {
	mu sync.Mutex
	by map[string]prefix
}

type prefix struct {
	file  os.FileInfo
	sum   string // of the hash below
	state []byte // the hash, as far as the file was read
	last  [sha256.Size]byte
}

// prefixWindow is how many of the last bytes are compared.
const prefixWindow = 64 << 10

// recall is the hash of what was read of a file, nil if it has to be read again.
func (p *prefixes) recall(path string, known *source, info os.FileInfo, file io.ReaderAt) hash.Hash {
	if p == nil {
		return nil
	}
	p.mu.Lock()
	at, ok := p.by[path]
	p.mu.Unlock()
	if !ok || at.sum != string(known.hash) || !os.SameFile(at.file, info) {
		return nil
	}
	if last, err := windowOf(file, known); err != nil || last != at.last {
		return nil
	}
	h := sha256.New()
	if err := h.(encoding.BinaryUnmarshaler).UnmarshalBinary(at.state); err != nil {
		return nil
	}
	return h
}

// keep remembers how far a file was read.
func (p *prefixes) keep(f *source, info os.FileInfo, state []byte) {
	if p == nil || state == nil {
		return
	}
	file, err := os.Open(f.path)
	if err != nil {
		return
	}
	defer file.Close()
	last, err := windowOf(file, f)
	if err != nil {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.by == nil {
		p.by = map[string]prefix{}
	}
	p.by[f.path] = prefix{info, string(f.hash), state, last}
}

func windowOf(file io.ReaderAt, f *source) (sum [sha256.Size]byte, err error) {
	from := max(f.readTo-prefixWindow, f.title)
	b := make([]byte, f.readTo-from)
	_, err = file.ReadAt(b, from)
	return sha256.Sum256(b), err
}
