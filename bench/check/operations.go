package check

import (
	"context"
	"fmt"
	"runtime"
	"strings"
	"time"

	"github.com/sessiontree/sessiontree/bench/backend"
	"github.com/sessiontree/sessiontree/bench/count"
	"github.com/sessiontree/sessiontree/bench/shape"
)

// Metric is what is counted.
type Metric string

const (
	Pages       Metric = "pages"       // that SQLite asked for
	Frames      Metric = "frames"      // pages written
	Rows        Metric = "rows"        // of the log and of the branch set, written
	UsageRows   Metric = "usageRows"   // of the view of usage, written until it has what was done
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

	movesLeaf bool // anywhere
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
	}, false},
	{"is-ancestor", false, many, func(t *tree) backend.Request {
		return backend.Request{Op: backend.IsAncestor, Session: session, Entry: t.anywhere(), Other: t.anywhere()}
	}, false},
	{"common-ancestor", false, many, func(t *tree) backend.Request {
		return backend.Request{Op: backend.CommonAncestor, Session: session, Entry: t.anywhere(), Other: t.anywhere()}
	}, false},
	{"branch", true, few, func(t *tree) backend.Request {
		// Not the leaf's: that one may be kept in memory.
		return backend.Request{Op: backend.Branch, Session: session, Entry: t.path[max(0, len(t.path)-2)]}
	}, false},
	{"branch-pages", true, few, func(t *tree) backend.Request {
		return backend.Request{Op: backend.BranchPages, Session: session, Entry: t.path[max(0, len(t.path)-2)]}
	}, false},
	{"stream", true, few, func(t *tree) backend.Request {
		return backend.Request{Op: backend.Stream, Session: session}
	}, false},
	{"append-at", false, some, func(t *tree) backend.Request {
		return backend.Request{Op: backend.AppendAt, Session: session, Entry: t.anywhere(), Lines: []string{t.message()}}
	}, true},
	{"move", false, some, func(t *tree) backend.Request {
		return backend.Request{Op: backend.Move, Session: session, Entry: t.anywhere()}
	}, true},
	// What has copies in forks is live in them wherever the leaf moves: no move behind this.
	{"fork", true, few, func(t *tree) backend.Request {
		return backend.Request{Op: backend.Fork, Session: session, NewSession: t.name()}
	}, false},
	{"append", false, some, func(t *tree) backend.Request {
		return backend.Request{Op: backend.Append, Session: session, Lines: []string{t.message()}}
	}, false},
	{"create", false, some, func(t *tree) backend.Request {
		return backend.Request{Op: backend.Create, Session: t.name()}
	}, false},
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
	spent, err := t.spent(ctx, o, before)
	if err != nil {
		return nil, err
	}
	var rows int64
	for table, n := range d.Rows {
		if backend.PartOf(table) != backend.OtherView {
			rows += n
		}
	}
	v := values{Pages: float64(d.Pages), Frames: float64(d.Frames), Rows: float64(rows), Allocations: float64(allocations)}
	if o.movesLeaf {
		v[UsageRows] = float64(spent)
	}
	if o.perEntry {
		for metric := range v {
			v[metric] /= float64(max(reply.Count, 1))
		}
	}
	return v, nil
}

// spent is how many rows of the view of usage were written because of an operation that
// moves the leaf anywhere.
func (t *tree) spent(ctx context.Context, o operation, before count.Counts) (rows int64, err error) {
	if !o.movesLeaf {
		return 0, nil
	}
	if err := t.settle(ctx); err != nil {
		return 0, err
	}
	now, err := t.counter.Now()
	if err != nil {
		return 0, err
	}
	for table, n := range now.Since(before).Rows {
		if strings.HasPrefix(table, "usage") {
			rows += n
		}
	}
	return rows, nil
}

func mallocs() uint64 {
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.Mallocs
}
