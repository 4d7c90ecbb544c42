package sqlitestore

import (
	"fmt"
	"log/slog"
	"runtime"
	"strings"
	"time"

	"github.com/sessiontree/sessiontree/eventlog"
)

// Synchronous is what an acknowledged write survives.
type Synchronous int

const (
	// Full syncs the log at each commit: what was acknowledged survives the loss
	// of power.
	Full Synchronous = iota

	// Normal syncs at checkpoints only, which makes an append ten times as fast. A
	// loss of power may then take the last appends, back to some moment of the
	// past; what is left is whole and consistent. The end of the process alone,
	// even kill -9, takes nothing.
	Normal
)

func (s Synchronous) String() string {
	switch s {
	case Full:
		return "full"
	case Normal:
		return "normal"
	}
	return fmt.Sprintf("Synchronous(%d)", int(s))
}

// Options configure a store. The zero value is right for a host.
type Options struct {
	// Source gives times and ids.
	Source eventlog.Source

	// Synchronous is how durable an acknowledged write is.
	Synchronous Synchronous

	// ReadOnly opens a database without changing it, or creating or upgrading one.
	// It works in a folder that cannot be written, and on a network file system.
	ReadOnly bool

	// ReadConns is how many reads run at a time. 0 is the number of processors, at
	// least 4.
	ReadConns int

	// CacheBytes is how much memory the branches of the sessions' leaves may take
	// that are kept, so that a context that was read before costs next to nothing.
	// No branch takes more than half. 0 is 64 MiB; a negative number keeps none.
	CacheBytes int64

	// BusyTimeout is how long a call waits for another process, before it fails with
	// ErrBusy, if its context has no deadline. 0 is 10 seconds.
	BusyTimeout time.Duration

	// MaxWALBytes is how large the write-ahead log may be for an append to begin. It
	// grows without end while a reader, perhaps of another program, keeps an old
	// snapshot. Beyond it the log is copied into the database and cut; as long as a
	// reader keeps it from that, writes wait until their deadline and then fail with
	// ErrBusy. One write may go beyond it by its own size. 0 is no limit. Logger gets
	// a warning when the log has 256 MiB or half of the limit, and each time it has
	// doubled.
	MaxWALBytes int64

	// AllowNetworkFS opens a database for writing on a network file system, which
	// is refused otherwise. It is safe, but slower, and one process has the
	// database for itself: there is no WAL, and a second process that opens it for
	// writing gets ErrBusy.
	AllowNetworkFS bool

	// Logger gets what an operator wants to know: upgrades, fallbacks, failures.
	// nil is silent. A panic of its handler is as if it had said nothing.
	Logger *slog.Logger
}

const (
	defaultBusyTimeout = 10 * time.Second
	minReadConns       = 4
	defaultCacheBytes  = 64 << 20
)

// complete checks the options and fills in the defaults.
func (o Options) complete() (Options, error) {
	var problems []string
	if o.Synchronous != Full && o.Synchronous != Normal {
		problems = append(problems, fmt.Sprintf("Synchronous is %d, and neither Full nor Normal", int(o.Synchronous)))
	}
	if o.ReadConns < 0 {
		problems = append(problems, fmt.Sprintf("ReadConns is %d, less than 0", o.ReadConns))
	}
	if o.MaxWALBytes < 0 {
		problems = append(problems, fmt.Sprintf("MaxWALBytes is %d, less than 0", o.MaxWALBytes))
	}
	if o.BusyTimeout < 0 {
		problems = append(problems, fmt.Sprintf("BusyTimeout is %v, less than 0", o.BusyTimeout))
	}
	if problems != nil {
		return o, eventlog.Errorf(eventlog.InvalidArgument, "invalid options: %s", strings.Join(problems, "; "))
	}
	if o.ReadConns == 0 {
		o.ReadConns = max(minReadConns, runtime.GOMAXPROCS(0))
	}
	if o.CacheBytes == 0 {
		o.CacheBytes = defaultCacheBytes
	}
	o.CacheBytes = max(o.CacheBytes, 0)
	if o.BusyTimeout == 0 {
		o.BusyTimeout = defaultBusyTimeout
	}
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	o.Logger = slog.New(harmless{o.Logger.Handler()})
	return o, nil
}
