package sqlitestore

import (
	"sync"

	"github.com/sessiontree/sessiontree/eventlog/sessionfile"
)

// aheadBytes is how much of a large file is read ahead of what is written.
const aheadBytes = 16 << 20

// readAhead reads a file in a goroutine of its own, so that the transaction that
// takes it, for which all other writers wait, need not read, check and hash it too:
// that was a third of the time. It holds aheadBytes and an item at most.
type readAhead struct {
	*fileRun
	mu      sync.Mutex
	changed *sync.Cond
	items   []sessionfile.Item
	bytes   int
	err     error // behind the items; io.EOF at the end
	closed  bool
	done    chan struct{}
}

// ahead begins to read. It returns when it has read as much as it may.
func (r *fileRun) ahead() *fileRun {
	a := &readAhead{fileRun: r, done: make(chan struct{})}
	a.changed = sync.NewCond(&a.mu)
	go a.read()
	a.mu.Lock()
	for a.err == nil && a.bytes < aheadBytes {
		a.changed.Wait()
	}
	a.mu.Unlock()
	return &fileRun{header: r.header, resumed: r.resumed, next: a.next, end: r.end, close: a.close, marks: r.marks}
}

func (a *readAhead) read() {
	defer close(a.done)
	for {
		item, err := a.fileRun.next()
		a.mu.Lock()
		if err == nil {
			a.items = append(a.items, item)
			a.bytes += sizeOfItem(item)
		}
		a.err = err
		a.changed.Broadcast()
		for a.bytes >= aheadBytes && !a.closed {
			a.changed.Wait()
		}
		ended := a.closed || err != nil
		a.mu.Unlock()
		if ended {
			return
		}
	}
}

// next is the next item; what is known of the file's end may be asked for once it
// has given the error.
func (a *readAhead) next() (item sessionfile.Item, err error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	for len(a.items) == 0 && a.err == nil {
		a.changed.Wait()
	}
	if len(a.items) == 0 {
		return item, a.err
	}
	item, a.items[0] = a.items[0], item
	if a.items = a.items[1:]; len(a.items) == 0 {
		a.items = nil
	}
	a.bytes -= sizeOfItem(item)
	a.changed.Broadcast()
	return item, nil
}

func (a *readAhead) close() error {
	a.mu.Lock()
	a.closed = true
	a.changed.Broadcast()
	a.mu.Unlock()
	<-a.done
	return a.fileRun.close()
}

func sizeOfItem(item sessionfile.Item) int {
	size := entryOverhead + len(item.Entry.JSON())
	for _, p := range item.Gap {
		size += len(p.Bytes)
	}
	for _, e := range item.Edits {
		size += len(e.Insert)
	}
	return size
}
