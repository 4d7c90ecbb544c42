package conformance

import (
	"fmt"
	"math"
	"sync"
	"time"

	"github.com/sessiontree/sessiontree/eventlog"
	"github.com/sessiontree/sessiontree/eventlog/js"
)

// stamp is the id and the time of an entry that Pi wrote.
type stamp struct{ id, time string }

func stampOf(v js.Value) stamp {
	return stamp{text(v.Get("id")), text(v.Get("timestamp"))}
}

// script is a source of ids and times that gives those of the vectors.
type script struct {
	mu     sync.Mutex
	now    time.Time
	queue  []stamp
	beyond int // how many ids were asked for beyond the queue
}

func (s *script) source() eventlog.Source {
	return eventlog.Source{Now: s.time, NewID: s.id}
}

// play sets what comes next. The time is that of the first entry until its
// successor is asked for.
func (s *script) play(stamps ...stamp) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.queue = stamps
	if len(stamps) > 0 {
		s.setTime(stamps[0].time)
	}
}

// at sets the time.
func (s *script) at(timestamp string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.queue = nil
	s.setTime(timestamp)
}

func (s *script) setTime(timestamp string) {
	if ms := js.ParseDate(timestamp); !math.IsNaN(ms) {
		s.now = time.UnixMilli(int64(ms))
	}
}

func (s *script) time() time.Time {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.now
}

func (s *script) id() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.queue) == 0 {
		s.beyond++
		return fmt.Sprintf("unscripted-%d", s.beyond)
	}
	next := s.queue[0]
	s.queue = s.queue[1:]
	s.setTime(next.time)
	return next.id
}

func text(v js.Value) string {
	s, _ := v.Str()
	return s
}
