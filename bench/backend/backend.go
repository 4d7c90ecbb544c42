// Package backend puts stores of sessions behind one small interface, so that
// they can be measured side by side: the backends of this module, the limits
// (the same bytes written and read bare, without a session tree), and stores
// that are driven in a process of their own, in any language, over lines of
// JSON.
//
// # The protocol
//
// A store in a process of its own reads a [Request] a line from its standard
// input and answers with a [Reply] a line on its standard output. The first
// request is open, with the folder; the end of the input ends it. Time is taken
// by the store itself, around the call that is measured and nothing else, so
// that the way there and back does not count.
package backend

import (
	"context"
	"errors"
)

// Op is what a store is asked to do.
type Op string

const (
	Open   Op = "open"   // the folder Dir; the first request, of a process only
	Empty  Op = "empty"  // nothing: what measuring costs
	Create Op = "create" // the session Session, in the folder CWD
	Leave  Op = "leave"  // the session Session, which is opened again when it is needed
	Build  Op = "build"  // append Lines, entries as they are, in one transaction
	Append Op = "append" // append Lines, messages, one durable append each, by Writers goroutines at a time
	Batch  Op = "batch"  // append Lines, messages, in one transaction
	Branch Op = "branch" // read the branch of Entry, of the leaf for ""
	// BranchPages reads the same page by page, without keeping it.
	BranchPages Op = "branch-pages"
	// Context builds the context of Entry, of the leaf for "".
	Context Op = "context"
	// Turn appends Lines, messages, and builds the context: a turn of an agent.
	// Each holds the time of the append and of the context.
	Turn           Op = "turn"
	AppendAt       Op = "append-at"       // append Lines[0], a message, below Entry
	Move           Op = "move"            // move the leaf to Entry
	IsAncestor     Op = "is-ancestor"     // whether Entry stands above Other; Count is 1 or 0
	CommonAncestor Op = "common-ancestor" // of Entry and Other, past compactions
	Fork           Op = "fork"            // the session to NewSession: whole, or the branch of Entry
	List           Op = "list"            // all sessions; the first Limit unless it is 0
	Stream         Op = "stream"          // read the log in order, without keeping it
	Descendants    Op = "descendants"     // read all entries below Entry
	Import         Op = "import"          // take the session file File, a session that is not there
	Export         Op = "export"          // write the session as a file, to nowhere
	Rebuild        Op = "rebuild"         // make the view View anew from the log
	// Usage reports the spend by By, Tools that of tools, Search finds Text in all
	// sessions; with Plain as one statement in plain SQL.
	Usage  Op = "usage"
	Tools  Op = "tools"
	Search Op = "search"
	Lag    Op = "lag"  // Count is how many events the asynchronous view that is farthest behind lacks
	Size   Op = "size" // bytes on disk, with those of each table
	Peak   Op = "peak" // the most memory that the process has held
)

// Request asks a store for one operation.
type Request struct {
	Op         Op       `json:"op"`
	Dir        string   `json:"dir,omitempty"`
	Normal     bool     `json:"normal,omitempty"` // see [Options]
	Session    string   `json:"session,omitempty"`
	NewSession string   `json:"newSession,omitempty"`
	Entry      string   `json:"entry,omitempty"`
	Other      string   `json:"other,omitempty"`
	View       string   `json:"view,omitempty"`
	File       string   `json:"file,omitempty"`
	By         string   `json:"by,omitempty"`
	Text       string   `json:"text,omitempty"`
	Rank       bool     `json:"rank,omitempty"` // the best hits first, not the newest
	Plain      bool     `json:"plain,omitempty"`
	Entries    bool     `json:"entries,omitempty"` // a plain search reads what it finds
	Lines      []string `json:"lines,omitempty"`
	Writers    int      `json:"writers,omitempty"` // 0 is 1
	Limit      int      `json:"limit,omitempty"`
}

// Reply is what a store answers.
type Reply struct {
	Nanos int64   `json:"nanos"`           // how long the operation took
	Each  []int64 `json:"each,omitempty"`  // nanoseconds of each part, of Append by several writers and of Turn
	Count int     `json:"count,omitempty"` // entries, messages or sessions that were answered or written
	Bytes int64   `json:"bytes,omitempty"` // of the texts that were answered; of Size and Peak
	// Leaf is the id of the entry on which an append or a move left the leaf.
	Leaf string `json:"leaf,omitempty"`
	// Tables are the bytes of each table and index, of Size.
	Tables map[string]int64 `json:"tables,omitempty"`
	// Error is why it failed, of a process. "unsupported" is [errors.ErrUnsupported],
	// "unsupported: " and a reason a [NotRun].
	Error string `json:"error,omitempty"`
}

// Store is an open store. It may be used from many goroutines if it is in this
// process.
type Store interface {
	// Do carries out a request. It fails with [errors.ErrUnsupported] for what the
	// store does not have.
	Do(ctx context.Context, r Request) (Reply, error)

	// Close ends the store; it may be called twice.
	Close(ctx context.Context) error
}

// Options are how a store is opened.
type Options struct {
	// Normal lets an acknowledged write be lost with the power; else it is synced.
	Normal bool
}

// Backend is a kind of store.
type Backend struct {
	Name  string
	About string

	// Limit names the backend whose times are what is possible for this one, "" for
	// none.
	Limit string

	// Memory says that nothing is left when the store is closed.
	Memory bool

	// Process says that the store is in a process of its own, so that measuring it
	// beside another disturbs neither's memory.
	Process bool

	// Ours says that this module's targets are for this backend.
	Ours bool

	// Missing is why it cannot be opened here, "" if it can: then it is left out of a
	// run, which says so.
	Missing string

	// Views are what Rebuild makes anew.
	Views []string

	// Open opens the store in the folder dir, or makes it.
	Open func(ctx context.Context, dir string, o Options) (Store, error)
}

// NotRun is why a store does not do what it could be asked: what is beyond its
// size, say. It is an [errors.ErrUnsupported] that a report tells of.
type NotRun struct{ Reason string }

func (n *NotRun) Error() string { return "not run: " + n.Reason }

func (n *NotRun) Unwrap() error { return errors.ErrUnsupported }

// unsupported says whether err is of something that a store does not have.
func unsupported(err error) bool { return errors.Is(err, errors.ErrUnsupported) }

// FindLimit is the limit with a name; it is not ok where there is none.
func FindLimit(name string) (Backend, bool) {
	for _, b := range []Backend{BareSQL(), BareFile()} {
		if b.Name == name {
			return b, true
		}
	}
	return Backend{}, false
}

// Find is the backend or limit of this module with a name.
func Find(name string) (Backend, bool) {
	for _, b := range []Backend{SQLite(), SQLiteCodingAgent(), JSONL(), Memory()} {
		if b.Name == name {
			return b, true
		}
	}
	return FindLimit(name)
}
