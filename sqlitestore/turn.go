package sqlitestore

import (
	"slices"
	"time"
)

// turn is since when this process writes without a pause. SQLite keeps no queue for
// its lock: another process that waits looks now and then whether it is free, and
// while views are made or many files come in, one transaction behind the other, it
// is free for some microseconds at a time.
type turn struct{ began, ended time.Time }

const (
	longTurn = 250 * time.Millisecond
	// pause is long enough for a process that waits in [writer.begin] to look.
	pause = 3 * time.Millisecond
)

// letIn lets other processes write too, before a transaction that may be one of
// many. Appends alone do not pause.
func (w *writer) letIn(group []*request) {
	now := time.Now()
	switch {
	case now.Sub(w.turn.ended) >= pause:
		w.turn.began = now
	case now.Sub(w.turn.began) < longTurn, !slices.ContainsFunc(group, func(r *request) bool { return !r.appends }):
	default:
		time.Sleep(pause)
		w.turn.began = time.Now()
	}
}
