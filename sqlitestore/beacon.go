package sqlitestore

import "sync"

// beacon tells all who wait that something was appended. The zero value is ready.
type beacon struct {
	mu sync.Mutex
	ch chan struct{}
}

// next is closed by the next shine.
func (b *beacon) next() <-chan struct{} {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.ch == nil {
		b.ch = make(chan struct{})
	}
	return b.ch
}

func (b *beacon) shine() {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.ch != nil {
		close(b.ch)
		b.ch = nil
	}
}
