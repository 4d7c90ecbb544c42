package projections

import (
	"context"
	"fmt"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/sessiontree/sessiontree/eventlog"
)

// Host is the store that a [Runner] works for.
type Host interface {
	// Read runs f in one snapshot.
	Read(ctx context.Context, f func(tx *Tx) error) error
	// Update runs f in a write transaction of its own turn. What f writes can be
	// made again, so the commit need not wait for the disk.
	Update(ctx context.Context, f func(ctx context.Context, tx *Tx) error) error
	// Appended gives a channel that is closed at the next append of this process.
	Appended() <-chan struct{}
}

const (
	// poll is how often a view looks for what other processes appended.
	poll = 250 * time.Millisecond
	// A view applies what came when nothing has come for a while: a transaction for
	// each append would cost as much as the append, and would keep the next one
	// waiting. Where appends never stop it waits no longer than patience. Readers do
	// not depend on either: see CatchUp.
	linger   = 20 * time.Millisecond
	patience = time.Second
	// yield is how many times as long as a slice took a view leaves the gate to
	// others, while they append.
	yield = 6
	// A view that failed tries again, later each time: a full disk may be emptied.
	firstRetry = time.Second
	lastRetry  = time.Minute
)

// Runner keeps asynchronous projections current, each in a goroutine of its own.
// One that fails, or panics, stops alone: it keeps its error for [Runner.Health]
// and tries again after a while.
type Runner struct {
	host  Host
	log   *slog.Logger
	views []*view
	stop  context.CancelFunc
	done  sync.WaitGroup
	rests atomic.Int32 // how many ask for rest: see Rest
}

// view is a projection that a Runner keeps.
type view struct {
	Projection
	mu     sync.Mutex
	failed error
	waits  int // transactions since the last that applied an event, all of them paced
}

// NewRunner makes a runner that does not run yet: it applies what its readers ask
// for.
func NewRunner(host Host, log *slog.Logger, all ...Projection) *Runner {
	r := &Runner{host: host, log: log}
	for _, p := range all {
		r.views = append(r.views, &view{Projection: p})
	}
	return r
}

// Start starts the goroutines.
func (r *Runner) Start() {
	ctx, cancel := context.WithCancel(context.Background())
	r.stop = cancel
	for _, v := range r.views {
		r.done.Go(func() { r.follow(ctx, v) })
	}
}

// Close ends the goroutines, and then brings each view that works up to the end
// of the log, as long as ctx allows.
func (r *Runner) Close(ctx context.Context) {
	if r.stop == nil {
		return
	}
	r.stop()
	r.done.Wait()
	for _, v := range r.views {
		if v.error() != nil {
			continue
		}
		for more := true; more && ctx.Err() == nil; {
			var err error
			if more, err = r.slice(ctx, v); err != nil {
				break
			}
		}
	}
}

// Rest keeps the goroutines from applying anything until the function that it gives
// is called: for who writes very much at once, which they would only slow down.
// Readers still get what they ask for.
func (r *Runner) Rest() (end func()) {
	r.rests.Add(1)
	return sync.OnceFunc(func() { r.rests.Add(-1) })
}

// follow applies events to a view as they come.
func (r *Runner) follow(ctx context.Context, v *view) {
	retry := firstRetry
	for ctx.Err() == nil {
		if r.rests.Load() > 0 {
			sleep(ctx, linger, nil)
			continue
		}
		appended, begin := r.host.Appended(), time.Now()
		more, err := r.slice(ctx, v)
		switch {
		case ctx.Err() != nil:
			return
		case err != nil:
			r.log.WarnContext(ctx, "a view could not be brought up to date", "view", v.Name(), "error", err, "retry", retry)
			sleep(ctx, retry, nil)
			retry = min(2*retry, lastRetry)
			continue
		case more:
			select {
			case <-appended:
				sleep(ctx, yield*time.Since(begin), nil)
			default:
			}
			continue
		}
		retry = firstRetry
		sleep(ctx, poll, appended)
		r.awaitQuiet(ctx)
	}
}

// awaitQuiet waits until this process has appended nothing for a while. It looks
// now and then: to be woken by each append would cost them something.
func (r *Runner) awaitQuiet(ctx context.Context) {
	for end := time.Now().Add(patience); ctx.Err() == nil && time.Now().Before(end); {
		appended := r.host.Appended()
		sleep(ctx, linger, nil)
		select {
		case <-appended:
		default:
			return
		}
	}
}

// sleep waits so long, or until the event.
func sleep(ctx context.Context, d time.Duration, event <-chan struct{}) {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-ctx.Done():
	case <-t.C:
	case <-event:
	}
}

// slice applies the next events to a view, if it lacks any, and says whether
// there may be more.
func (r *Runner) slice(ctx context.Context, v *view) (more bool, err error) {
	defer func() {
		if ctx.Err() == nil {
			v.fail(err)
		}
	}()
	behind := false
	err = r.host.Read(ctx, func(tx *Tx) (err error) {
		if behind, err = IsBehind(ctx, tx, v); err != nil || !behind {
			return err
		}
		if d, ok := v.Projection.(Depends); ok {
			return d.Ready(ctx, tx)
		}
		return nil
	})
	if err != nil || !behind {
		return false, err
	}
	err = r.host.Update(ctx, func(ctx context.Context, tx *Tx) (err error) {
		more, err = v.catchUp(ctx, tx)
		return err
	})
	return more, err
}

// mostWaits is how many transactions one after the other may do nothing but work ahead:
// where leaves move far as fast as that goes, it would never end.
const mostWaits = 256

// catchUp applies the next events, or works ahead of them.
func (v *view) catchUp(ctx context.Context, tx *Tx) (more bool, err error) {
	v.mu.Lock()
	paced := v.waits < mostWaits
	v.mu.Unlock()
	more, waits, err := catchUpSafely(ctx, tx, v.Projection, paced)
	v.mu.Lock()
	defer v.mu.Unlock()
	if v.waits++; !waits {
		v.waits = 0
	}
	return more, err
}

// catchUpSafely turns a panic of a projection into its error.
func catchUpSafely(ctx context.Context, tx *Tx, p Projection, paced bool) (more, waits bool, err error) {
	defer func() {
		if p := recover(); p != nil {
			err = eventlog.Errorf(eventlog.StorageFailed, "panic: %v", p)
		}
	}()
	return catchUp(ctx, tx, p, sliceEvents, paced)
}

func (v *view) fail(err error) {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.failed = err
}

func (v *view) error() error {
	v.mu.Lock()
	defer v.mu.Unlock()
	return v.failed
}

func (r *Runner) view(name string) (*view, error) {
	for _, v := range r.views {
		if v.Name() == name {
			return v, nil
		}
	}
	return nil, eventlog.Errorf(eventlog.InvalidArgument, "there is no view %q", name)
}

// CatchUp is the barrier of a reader: it returns when the view holds all that was
// in the log when it was called. It does the work itself rather than wait for a
// goroutine that may be busy, or in no process at all.
func (r *Runner) CatchUp(ctx context.Context, name string) error {
	v, err := r.view(name)
	if err != nil {
		return err
	}
	wanted := int64(-1) // the end of the log when this began
	for {
		there := false
		err := r.host.Read(ctx, func(tx *Tx) error {
			c, err := ReadCheckpoint(ctx, tx, name)
			if err != nil {
				return err
			}
			last, err := LastEvent(ctx, tx)
			if wanted < 0 {
				wanted = last
			}
			// A position beyond the log is none.
			there = c.Version == v.Version() && c.Position >= wanted && c.Position <= last
			return err
		})
		if err != nil || there {
			return err
		}
		if _, err := r.slice(ctx, v); err != nil {
			return fmt.Errorf("view %s: %w", name, err)
		}
	}
}

// CatchUpAll is [Runner.CatchUp] for all views.
func (r *Runner) CatchUpAll(ctx context.Context) error {
	for _, v := range r.views {
		if err := r.CatchUp(ctx, v.Name()); err != nil {
			return err
		}
	}
	return nil
}

// Current names the views that hold the whole log in a snapshot.
func (r *Runner) Current(ctx context.Context, tx *Tx) (names []string, err error) {
	for _, v := range r.views {
		behind, err := IsBehind(ctx, tx, v)
		if err != nil {
			return nil, err
		}
		if !behind {
			names = append(names, v.Name())
		}
	}
	return names, nil
}

// Hold says whether views hold all of the log in a snapshot.
func (r *Runner) Hold(ctx context.Context, tx *Tx, names ...string) (bool, error) {
	for _, name := range names {
		v, err := r.view(name)
		if err != nil {
			return false, err
		}
		if behind, err := IsBehind(ctx, tx, v); err != nil || behind {
			return false, err
		}
	}
	return true, nil
}

// Rebuild makes views again from the log, all of them if none is named: in slices,
// so that writers get their turns. Readers of a view wait until it is whole again.
func (r *Runner) Rebuild(ctx context.Context, names ...string) error {
	if len(names) == 0 {
		for _, v := range r.views {
			names = append(names, v.Name())
		}
	}
	for _, name := range names {
		if _, err := r.view(name); err != nil {
			return err
		}
	}
	for _, name := range names {
		v, _ := r.view(name)
		err := r.host.Update(ctx, func(ctx context.Context, tx *Tx) error {
			if err := v.Reset(ctx, tx); err != nil {
				return err
			}
			return WriteCheckpoint(ctx, tx, v, 0)
		})
		if err != nil {
			return err
		}
		if err := r.CatchUp(ctx, name); err != nil {
			return err
		}
	}
	return nil
}

// Health is how a view does.
type Health struct {
	Name     string
	Version  int   // of the rows that are there; 0: none yet
	Position int64 // seq of the last event that it holds
	Lag      int64 // events behind the end of the log, counted by seq
	Err      error // why it is not brought up to date, nil while it is
}

// HealthOf is how a projection does in one snapshot.
func HealthOf(ctx context.Context, tx *Tx, p Projection) (Health, error) {
	c, err := ReadCheckpoint(ctx, tx, p.Name())
	if err != nil {
		return Health{}, err
	}
	last, err := LastEvent(ctx, tx)
	if err != nil {
		return Health{}, err
	}
	h := Health{Name: p.Name(), Version: c.Version, Position: c.Position, Lag: max(last-c.Position, 0)}
	if c.Version > p.Version() {
		h.Err = NewerView(p, c)
	}
	return h, nil
}

// Health is how each view does, in the order in which the runner got them.
func (r *Runner) Health(ctx context.Context, tx *Tx) ([]Health, error) {
	var all []Health
	for _, v := range r.views {
		h, err := HealthOf(ctx, tx, v)
		if err != nil {
			return nil, err
		}
		if failed := v.error(); failed != nil {
			h.Err = failed
		}
		all = append(all, h)
	}
	return all, nil
}
