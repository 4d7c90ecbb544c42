package sqlitestore

import (
	"runtime"
	"time"
)

// crowd is who may want to append again at once: of many that append without a
// pause, those that were committed together come back within microseconds. A group
// that does not wait for them has half of the writers in it, and the next the other
// half: twice the syncs.
type crowd struct {
	size  int       // how many are expected to wait for the gate
	until time.Time // and for how long
}

// longestGather bounds how long a group waits for more: a commit may have written
// much.
const longestGather = 100 * time.Microsecond

// note says who was committed just now, in what time, and how many wait already.
func (c *crowd) note(group []*request, waiting int, took time.Duration) {
	c.size = waiting
	for _, r := range group {
		if r.appends {
			c.size++
		}
	}
	c.size = min(c.size, groupLimit)
	c.until = time.Now().Add(min(took/8, longestGather))
}

// gather waits for the crowd, an eighth of the time of a commit at the most. A
// caller that is alone does not wait.
func (w *writer) gather() {
	for {
		w.mu.Lock()
		there := len(w.queue) >= w.crowd.size || !time.Now().Before(w.crowd.until)
		w.mu.Unlock()
		if there {
			return
		}
		runtime.Gosched()
	}
}
