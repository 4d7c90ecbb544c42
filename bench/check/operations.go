package check

import (
	"context"
	"fmt"
	"runtime"
	"time"

	"github.com/sessiontree/sessiontree/bench/backend"
	"github.com/sessiontree/sessiontree/bench/shape"
)

// Metric is what is counted.
type Metric string

const (
	Pages       Metric = "pages"       // that SQLite asked for
	Frames      Metric = "frames"      // pages written
	Rows        Metric = "rows"        // of the log and of the branch set, written
	Allocations Metric = "allocations" // of the whole process
	LogBytes    Metric = "logBytes"    // on the disk: the log's beyond the entries' own text
	BranchBytes Metric = "branchBytes" // on the disk: the branch set's
)

// window is how many entries the context of an operation has that must not
// depend on what else there is.
const window = 50

// operation is what is counted. perEntry ones are held to their cost for each
// entry that they read or write.
type operation struct {
	name     string
	perEntry bool
	rounds   int
	request  func(t *tree) backend.Request
}

// How often an operation is counted: more often where it depends on the entries
// that are drawn.
const (
	few  = 3
	some = 7
	many = 41
)

var operations = []operation{
	{"context-of-50", false, few, func(t *tree) backend.Request {
		return backend.Request{Op: backend.Context, Session: session, Entry: t.path[min(window, len(t.path))-1]}
	}},
	{"is-ancestor", false, many, func(t *tree) backend.Request {
		return backend.Request{Op: backend.IsAncestor, Session: session, Entry: t.anywhere(), Other: t.anywhere()}
	}},
	{"common-ancestor", false, many, func(t *tree) backend.Request {
		return backend.Request{Op: backend.CommonAncestor, Session: session, Entry: t.anywhere(), Other: t.anywhere()}
	}},
	{"branch", true, few, func(t *tree) backend.Request {
		// Not the leaf's: that one may be kept in memory.
		return backend.Request{Op: backend.Branch, Session: session, Entry: t.path[max(0, len(t.path)-2)]}
	}},
	{"branch-pages", true, few, func(t *tree) backend.Request {
		return backend.Request{Op: backend.BranchPages, Session: session, Entry: t.path[max(0, len(t.path)-2)]}
	}},
	{"stream", true, few, func(t *tree) backend.Request {
		return backend.Request{Op: backend.Stream, Session: session}
	}},
	{"fork", true, few, func(t *tree) backend.Request {
		return backend.Request{Op: backend.Fork, Session: session, NewSession: t.name()}
	}},
	{"append", false, some, func(t *tree) backend.Request {
		return backend.Request{Op: backend.Append, Session: session, Lines: []string{t.message()}}
	}},
	{"append-at", false, some, func(t *tree) backend.Request {
		return backend.Request{Op: backend.AppendAt, Session: session, Entry: t.anywhere(), Lines: []string{t.message()}}
	}},
	{"move", false, some, func(t *tree) backend.Request {
		return backend.Request{Op: backend.Move, Session: session, Entry: t.anywhere()}
	}},
	{"create", false, some, func(t *tree) backend.Request {
		return backend.Request{Op: backend.Create, Session: t.name()}
	}},
}

func (t *tree) anywhere() string { return t.messages[t.rng.IntN(len(t.messages))] }

func (t *tree) name() string {
	t.fresh++
	return fmt.Sprintf("fresh-%d", t.fresh)
}

func (t *tree) message() string {
	t.fresh++
	return shape.Plain(t.rng, t.fresh, time.Date(2026, 6, 1, 0, 0, t.fresh, 0, time.UTC)).JSON()
}

// once carries an operation out and counts.
func (t *tree) once(ctx context.Context, o operation) (values, error) {
	request := o.request(t)
	before, err := t.counter.Now()
	if err != nil {
		return nil, err
	}
	allocations := mallocs()
	reply, err := t.do(ctx, request)
	if err != nil {
		return nil, err
	}
	allocations = mallocs() - allocations
	after, err := t.counter.Now()
	if err != nil {
		return nil, err
	}
	d := after.Since(before)
	var rows int64
	for table, n := range d.Rows {
		if backend.PartOf(table) != backend.OtherView {
			rows += n
		}
	}
	v := values{Pages: float64(d.Pages), Frames: float64(d.Frames), Rows: float64(rows), Allocations: float64(allocations)}
	if o.perEntry {
		for metric := range v {
			v[metric] /= float64(max(reply.Count, 1))
		}
	}
	return v, nil
}

func mallocs() uint64 {
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.Mallocs
}
