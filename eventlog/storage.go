package eventlog

import (
	"cmp"
	"context"
	"iter"
	"math"
	"slices"

	"github.com/sessiontree/sessiontree/eventlog/js"
)

// Metadata is what a session's header says.
type Metadata struct {
	ID        string
	CreatedAt string // an ISO date if we or Pi wrote it
	CWD       string // the working folder, exactly as given
	// ParentSession is the session that this one was forked from: the path of its
	// file in the JSONL backend (as in Pi), its id elsewhere. None if there is none.
	ParentSession Ref
	// Metadata is an object of the host's own, absent if none was given.
	Metadata js.Value
	// Path is the session's file, "" where the backend has no files.
	Path string
	// Header is the header line as it came, without its newline.
	Header string
	// Dialect is the rules by which the session is answered, and DialectBasis what
	// decided that, as [Detector.Result] says it; "" where it was chosen with the session, or
	// by whoever opens the file.
	Dialect      Dialect
	DialectBasis string
}

// HeaderText is the header line that Pi writes for m, without a newline.
func (m Metadata) HeaderText() string {
	parent := js.Value{}
	if !m.ParentSession.IsNone() {
		parent = m.ParentSession.Value()
	}
	return js.Fields(
		js.Member{Key: "type", Value: js.Text("session")},
		js.Member{Key: "version", Value: js.Num(3)},
		js.Member{Key: "id", Value: js.Text(m.ID)},
		js.Member{Key: "timestamp", Value: js.Text(m.CreatedAt)},
		js.Member{Key: "cwd", Value: js.Text(m.CWD)},
		js.Member{Key: "parentSession", Value: parent},
		js.Member{Key: "metadata", Value: js.Canonical(m.Metadata)},
	).JSON()
}

// Head is where a session stands: what AppendIf compares.
type Head struct {
	Leaf Ref // where the next entry attaches
	N    int // how many entries the log has; it closes the hole of a leaf that moved away and back
}

// All is the limit of a window without a limit.
const All = math.MaxInt

// CheckWindow refuses a window that starts before the log or holds less than
// nothing. Pi takes such numbers as JavaScript's slice does.
func CheckWindow(after, limit int) error {
	if after < 0 || limit < 0 {
		return Errorf(InvalidArgument, "a window starts at 0 or later and holds 0 entries or more, not %d from %d", limit, after)
	}
	return nil
}

// Stats are totals over a session's whole log, abandoned branches included.
// Sums of doubles are made one by one in log order, as Pi makes them.
type Stats struct {
	Messages       int     // entries of type message
	CachedTokens   float64 // read from the provider's cache
	UncachedTokens float64 // input and cache writes
	TotalTokens    float64 // input, output, cache reads and writes
	Cost           float64

	// What follows is counted in the coding agent's dialect only, where it is what
	// the program itself shows. NaN where usage is incomplete, as there.
	UserMessages, AssistantMessages      int
	ToolCalls, ToolResults               int
	Input, Output, CacheRead, CacheWrite float64
}

// Storage holds one session's log. Implementations: eventlog/memory,
// eventlog/jsonl, sqlitestore. All methods may be called from many goroutines;
// appends are serialized, and each sees the leaf that the one before left. After
// Close every method answers [ErrClosed]. A cancelled context gives the
// context's error and changes nothing.
type Storage interface {
	// Dialect is the rules by which the log is answered; it never changes.
	Dialect() Dialect

	// Metadata is what the session's header says.
	Metadata(ctx context.Context) (Metadata, error)

	// Head is the current leaf and the number of entries. It fails with
	// ErrInvalidSession when the leaf names an entry that is not there; the head is
	// given all the same.
	Head(ctx context.Context) (Head, error)

	// Entry is the entry with the id: the last one, should an imported file hold
	// several. It fails with ErrNotFound.
	Entry(ctx context.Context, id string) (Entry, error)

	// Entries gives up to limit entries ([All] for no limit) behind the first
	// after, in log order, leaf entries too. A negative argument is
	// ErrInvalidArgument. The sequence ends at the first error.
	Entries(ctx context.Context, after, limit int) iter.Seq2[Entry, error]

	// Find gives all entries of a type in log order.
	Find(ctx context.Context, t Type) ([]Entry, error)

	// Branch is the path from the root, or from where the last compaction cuts
	// it, down to from; empty for none. It fails with ErrNotFound when there is
	// no such entry, and with ErrInvalidSession when a parent is missing or the
	// walk would never end.
	Branch(ctx context.Context, from Ref) ([]Entry, error)

	// Label is the label of an entry, "" for none.
	Label(ctx context.Context, id string) (string, error)

	// Labels are the labels of all entries that have one, by id.
	Labels(ctx context.Context) (map[string]string, error)

	// Name is the session's name, "" for none. It fails with ErrInvalidEntry when
	// the last session_info holds no text.
	Name(ctx context.Context) (string, error)

	// Stats are the session's totals. It fails with ErrInvalidEntry when a
	// message entry has no message.
	Stats(ctx context.Context) (Stats, error)

	// Append writes the batch, all of it or nothing, as [Batch] says, and returns
	// its entries. It fails with ErrNotFound (a parent or a target that is not
	// there), ErrAlreadyExists, ErrConflict, ErrInvalidArgument (a draft that no
	// reader could answer from, or too long for the backend), ErrInvalidSession (the
	// leaf cannot be read), ErrBusy (another process writes) or ErrStorage; then
	// nothing was written.
	Append(ctx context.Context, b Batch) ([]Entry, error)

	// AppendRaw writes entries exactly as given, all or nothing. It checks only
	// what a reader needs (see [ParseEntry]): ids may repeat and parents may be
	// missing. Import and the conformance vectors use it.
	AppendRaw(ctx context.Context, entries ...Entry) error

	// Close releases what the storage holds. It may be called twice.
	Close() error
}

// LeafBrancher is a [Storage] that reads the branch of the current leaf in one
// step: what most contexts are made from.
type LeafBrancher interface {
	// LeafBranch is Branch of Head's leaf, at one moment. It fails as the two do.
	LeafBranch(ctx context.Context) ([]Entry, error)
}

// BranchStreamer is a [Storage] that reads a branch page by page.
type BranchStreamer interface {
	// BranchSeq gives what Branch gives, and ends at the first error.
	BranchSeq(ctx context.Context, from Ref) iter.Seq2[Entry, error]
}

// CreateOptions describe a new session.
type CreateOptions struct {
	ID            string // "" makes a uuid v7
	CWD           string
	ParentSession Ref
	Metadata      js.Value // an object, or absent
	Dialect       Dialect
	DialectBasis  string // what decided the dialect; "" for a choice
}

// From fills in what a fork takes from its source.
func (o ForkOptions) From(source Metadata, parent Ref) CreateOptions {
	c := o.CreateOptions
	if c.CWD == "" {
		c.CWD = source.CWD
	}
	if c.ParentSession.IsNone() {
		c.ParentSession = parent
	}
	if !c.Metadata.Exists() && source.Dialect.rules().inherits() {
		c.Metadata = source.Metadata
	}
	c.Dialect, c.DialectBasis = source.Dialect, source.DialectBasis
	return c
}

// NewMetadata makes the metadata of a new session, with its header as Pi writes it.
// It fails with [ErrInvalidArgument] for metadata that is no object and for an id
// that a header could not hold as it is. Every backend creates sessions with it.
func (o CreateOptions) NewMetadata(s Source) (Metadata, error) {
	if o.ID == "" {
		o.ID = s.SessionID()
	}
	if o.Metadata.Exists() && o.Metadata.Kind() != js.Object {
		return Metadata{}, Errorf(InvalidArgument, "the metadata of a session is an object, not %s", o.Metadata.Kind())
	}
	if kept, _ := js.Text(o.ID).Str(); kept != o.ID {
		return Metadata{}, Errorf(InvalidArgument, "the id of a session is text in UTF-8, not %q", o.ID)
	}
	if err := o.Dialect.rules().checkSessionID(o.ID); err != nil {
		return Metadata{}, err
	}
	m := Metadata{Dialect: o.Dialect, DialectBasis: o.DialectBasis, ID: o.ID, CreatedAt: s.Time(), CWD: o.CWD, ParentSession: o.ParentSession, Metadata: o.Metadata}
	m.Header = m.HeaderText()
	// The folder is what a reader of the header will find: bytes that are no UTF-8
	// do not survive in JSON.
	m.CWD, _ = js.Text(o.CWD).Str()
	return m, nil
}

// Position is where a fork is cut.
type Position string

const (
	Before Position = "before" // the branch up to a user message's parent: the default
	AtIt   Position = "at"     // the branch up to the entry itself
)

// ForkOptions describe a fork. What CreateOptions leave empty is the source's:
// its working folder, its metadata, and the source itself as parent session.
type ForkOptions struct {
	CreateOptions
	// EntryID is where to cut; "" copies the whole log, leaf entries too.
	EntryID  string
	Position Position // "" is Before
}

// Listed is one session of a list. Err says why a damaged one cannot be read;
// then only Metadata.Path is sure.
type Listed struct {
	Metadata
	Err error
}

// SortNewestFirst puts a list into the order in which [Repo.List] gives it.
// Sessions of the same time, or without a readable one, keep their order; the
// latter and damaged ones come last.
func SortNewestFirst(listed []Listed) {
	key := func(l Listed) float64 {
		if l.Err != nil {
			return math.Inf(-1)
		}
		if t := js.ParseDate(l.CreatedAt); !math.IsNaN(t) {
			return t
		}
		return -math.MaxFloat64
	}
	slices.SortStableFunc(listed, func(a, b Listed) int { return cmp.Compare(key(b), key(a)) })
}

// Repo is a collection of sessions.
type Repo interface {
	// Create makes a session. It fails with ErrAlreadyExists when the id is taken
	// (where a backend looks for that, it says), and with ErrInvalidArgument for
	// metadata that is no object or an id that a header cannot hold.
	Create(ctx context.Context, o CreateOptions) (*Session, error)

	// Open opens the session that m describes: by Path where the backend has
	// files, else by ID. It fails with ErrNotFound, ErrInvalidSession or
	// ErrInvalidEntry.
	Open(ctx context.Context, m Metadata) (*Session, error)

	// List gives the sessions, newest first by their time of creation; of one
	// working folder if cwd is not "". Damaged ones come last and say why.
	List(ctx context.Context, cwd string) ([]Listed, error)

	// Delete removes a session as a whole; one that is not there is no error. A
	// session that is open meanwhile is told at its next append, with ErrNotFound,
	// ErrClosed or ErrStorage; reads too where the backend does not hold it in
	// memory. An answer is never cut short without an error.
	Delete(ctx context.Context, m Metadata) error

	// Fork makes a new session of a copy of source's log or of one branch of it.
	// Ids and bytes are kept. It fails with ErrInvalidForkTarget, and as Open and
	// Create do.
	Fork(ctx context.Context, source Metadata, o ForkOptions) (*Session, error)
}
