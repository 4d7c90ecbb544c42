package eventlog

import (
	"context"
	"iter"
	"sync"

	"github.com/sessiontree/sessiontree/eventlog/js"
)

// Session is a session tree over any [Storage]: what a host works with. It may
// be used from many goroutines.
type Session struct {
	storage Storage
	dialect Dialect

	// Defaults apply to every context of this session, before the options of the
	// call. Set them before the session is shared.
	Defaults ContextOptions

	mu    sync.Mutex
	phase Phase
	held  []Draft
}

// NewSession makes a session over s, in the dialect of s.
func NewSession(s Storage) *Session {
	return &Session{storage: s, dialect: s.Dialect(), phase: Idle}
}

// Storage is what the session stands on.
func (s *Session) Storage() Storage { return s.storage }

// Dialect is the rules by which the session's log is answered.
func (s *Session) Dialect() Dialect { return s.dialect }

// Metadata is what the session's header says.
func (s *Session) Metadata(ctx context.Context) (Metadata, error) { return s.storage.Metadata(ctx) }

// Head is the current leaf and the number of entries: what [Session.AppendIf]
// compares. It fails with [ErrInvalidSession] when the leaf cannot be read.
func (s *Session) Head(ctx context.Context) (Head, error) { return s.storage.Head(ctx) }

// Entry is one entry. It fails with [ErrNotFound].
func (s *Session) Entry(ctx context.Context, id string) (Entry, error) {
	return s.storage.Entry(ctx, id)
}

// Entries gives up to limit entries ([All] for no limit) behind the first after,
// in log order.
func (s *Session) Entries(ctx context.Context, after, limit int) iter.Seq2[Entry, error] {
	return s.storage.Entries(ctx, after, limit)
}

// FindEntries gives all entries of a type in log order.
func (s *Session) FindEntries(ctx context.Context, t Type) ([]Entry, error) {
	return s.storage.Find(ctx, t)
}

// Append writes the drafts below the leaf, each below the one before, all or
// nothing, and returns the entries. It fails as [Storage.Append] does.
func (s *Session) Append(ctx context.Context, drafts ...Draft) ([]Entry, error) {
	return s.storage.Append(ctx, Batch{Drafts: drafts})
}

// AppendIf is Append if the session still stands at head, the compare-and-swap
// of hosts that share a session. Else it fails with [ErrConflict]; the
// [*ConflictError] in the chain has the actual head.
func (s *Session) AppendIf(ctx context.Context, head Head, drafts ...Draft) ([]Entry, error) {
	return s.storage.Append(ctx, Batch{Drafts: drafts, If: &head})
}

// AppendAt is Append below parent instead of the leaf: a new branch in one
// append, without a leaf entry.
func (s *Session) AppendAt(ctx context.Context, parent Ref, drafts ...Draft) ([]Entry, error) {
	if len(drafts) > 0 {
		drafts = append([]Draft{drafts[0].Under(parent)}, drafts[1:]...)
	}
	return s.storage.Append(ctx, Batch{Drafts: drafts})
}

func (s *Session) appendOne(ctx context.Context, d Draft) (Entry, error) {
	entries, err := s.Append(ctx, d)
	if err != nil {
		return Entry{}, err
	}
	return entries[0], nil
}

// AppendMessage appends a message entry.
func (s *Session) AppendMessage(ctx context.Context, m Message) (Entry, error) {
	return s.appendOne(ctx, MessageDraft(m))
}

// AppendThinkingLevelChange appends a thinking_level_change entry.
func (s *Session) AppendThinkingLevelChange(ctx context.Context, level string) (Entry, error) {
	return s.appendOne(ctx, ThinkingLevelDraft(level))
}

// AppendModelChange appends a model_change entry.
func (s *Session) AppendModelChange(ctx context.Context, provider, modelID string) (Entry, error) {
	return s.appendOne(ctx, ModelDraft(provider, modelID))
}

// AppendActiveToolsChange appends an active_tools_change entry.
func (s *Session) AppendActiveToolsChange(ctx context.Context, names ...string) (Entry, error) {
	return s.appendOne(ctx, ActiveToolsDraft(names...))
}

// AppendCompaction appends a compaction entry. In the coding agent's dialect it
// carries what the system messages of the current context come to, names itself
// where nothing is kept, and cannot retain messages by value.
func (s *Session) AppendCompaction(ctx context.Context, c Compaction) (Entry, error) {
	if s.dialect.LogsMoves() {
		return s.appendOne(ctx, CompactionDraft(c))
	}
	if c.RetainedTail.Exists() {
		return Entry{}, Errorf(InvalidArgument, "a compaction of the dialect %s retains no messages by value", s.dialect)
	}
	return s.appendAtLeaf(ctx, func(leaf Ref) (Draft, error) {
		var system Message
		if !leaf.IsNone() {
			seen, err := s.BuildContext(ctx, leaf)
			if err != nil {
				return Draft{}, err
			}
			if system, err = System(seen.Messages); err != nil {
				return Draft{}, err
			}
		}
		return checkpointDraft(c, system), nil
	})
}

// AppendUsage appends a usage entry: what a call of a model cost that gave no
// message.
func (s *Session) AppendUsage(ctx context.Context, u UsageEntry) (Entry, error) {
	return s.appendOne(ctx, UsageDraft(u))
}

// AppendCustom appends a custom entry.
func (s *Session) AppendCustom(ctx context.Context, customType string, data js.Value) (Entry, error) {
	return s.appendOne(ctx, CustomDraft(customType, data))
}

// AppendCustomMessage appends a custom_message entry.
func (s *Session) AppendCustomMessage(ctx context.Context, customType string, content js.Value, display bool, details js.Value) (Entry, error) {
	return s.appendOne(ctx, CustomMessageDraft(customType, content, display, details))
}

// SetLabel labels an entry; "" clears its label. It fails with [ErrNotFound].
func (s *Session) SetLabel(ctx context.Context, target, label string) (Entry, error) {
	return s.appendOne(ctx, LabelDraft(target, js.Text(label)))
}

// SetName names the session; "" clears the name.
func (s *Session) SetName(ctx context.Context, name string) (Entry, error) {
	return s.appendOne(ctx, NameDraft(name))
}

// MoveTo moves the leaf to target; none leaves no leaf, and the next entry is a
// new root. It appends a leaf entry, and with a summary a branch_summary entry
// below the target; both or neither. It fails with [ErrNotFound].
//
// In the coding agent's dialect the leaf is kept beside the entries: without a
// summary what is returned is no entry (see [Entry.IsMove]), with one it is the
// summary alone.
func (s *Session) MoveTo(ctx context.Context, target Ref, summary *Summary) ([]Entry, error) {
	return s.storage.Append(ctx, Batch{Drafts: s.dialect.rules().moveDrafts(target, summary)})
}

// from is the leaf when from is none.
func (s *Session) from(ctx context.Context, from Ref) (Ref, error) {
	if !from.IsNone() {
		return from, nil
	}
	head, err := s.storage.Head(ctx)
	return head.Leaf, err
}

// Branch is the path down to from, or to the leaf for none: from the root, or
// (in the harness's dialect) from where the last compaction cuts it. It fails with
// [ErrNotFound] and [ErrInvalidSession]. An entry without an id has none.
func (s *Session) Branch(ctx context.Context, from Ref) ([]Entry, error) {
	if b, ok := s.storage.(LeafBrancher); ok && from.IsNone() && s.dialect.LogsMoves() {
		return b.LeafBranch(ctx)
	}
	from, err := s.from(ctx, from)
	if err != nil || idle(from.id) && !s.dialect.LogsMoves() {
		return nil, err
	}
	return s.storage.Branch(ctx, from)
}

// BranchSeq gives what [Session.Branch] gives, oldest first, without holding all of
// it where the backend reads page by page. It ends at the first error; an answer
// is never cut short without one.
func (s *Session) BranchSeq(ctx context.Context, from Ref) iter.Seq2[Entry, error] {
	return func(yield func(Entry, error) bool) {
		from, err := s.from(ctx, from)
		if err != nil {
			yield(Entry{}, err)
			return
		}
		if b, ok := s.storage.(BranchStreamer); ok {
			b.BranchSeq(ctx, from)(yield)
			return
		}
		branch, err := s.storage.Branch(ctx, from)
		for _, e := range branch {
			if !yield(e, nil) {
				return
			}
		}
		if err != nil {
			yield(Entry{}, err)
		}
	}
}

// ContextEntries are the entries of the branch of from that make its context,
// in the order in which they count. It fails as Branch does.
func (s *Session) ContextEntries(ctx context.Context, from Ref, o ...ContextOptions) ([]Entry, error) {
	w, err := s.window(ctx, from)
	if err != nil {
		return nil, err
	}
	return s.Defaults.merged(o).transformed(w.Entries)
}

// BuildContext is what the model gets to see at from, or at the leaf for none.
// It fails as Branch does, and with [ErrInvalidEntry] where an entry on the
// branch lacks what the context needs.
func (s *Session) BuildContext(ctx context.Context, from Ref, o ...ContextOptions) (Context, error) {
	w, err := s.window(ctx, from)
	if err != nil {
		return Context{}, err
	}
	options := s.Defaults.merged(o)
	entries, err := options.transformed(w.Entries)
	if err != nil {
		return Context{}, err
	}
	settings, err := w.Settings()
	if err != nil {
		return Context{}, err
	}
	return s.dialect.contextOf(settings, entries, options)
}

// Window is what a context is made of: its entries, and the settings of the
// branch that they are from.
type Window struct {
	Entries  []Entry
	Settings func() (Settings, error)
}

// Windower is a [Storage] that knows a context's window without reading the whole
// branch.
type Windower interface {
	// Window is that of from, or of the leaf for none, at one moment. It fails as Branch
	// does, and as Head for none.
	Window(ctx context.Context, from Ref) (Window, error)
}

func (s *Session) window(ctx context.Context, from Ref) (Window, error) {
	if w, ok := s.storage.(Windower); ok {
		return w.Window(ctx, from)
	}
	from, err := s.from(ctx, from)
	if err != nil {
		return Window{}, err
	}
	branch, err := s.storage.Branch(ctx, from)
	if err != nil {
		return Window{}, err
	}
	return s.dialect.Window(branch), nil
}

// Window is the window of a branch.
func (d Dialect) Window(branch []Entry) Window {
	return Window{d.ContextEntries(branch), func() (Settings, error) { return d.Settings(branch) }}
}

// Label is an entry's label, "" for none.
func (s *Session) Label(ctx context.Context, id string) (string, error) {
	return s.storage.Label(ctx, id)
}

// Labels are all labels by entry id.
func (s *Session) Labels(ctx context.Context) (map[string]string, error) {
	return s.storage.Labels(ctx)
}

// Name is the session's name, "" for none.
func (s *Session) Name(ctx context.Context) (string, error) { return s.storage.Name(ctx) }

// Stats are the session's totals.
func (s *Session) Stats(ctx context.Context) (Stats, error) { return s.storage.Stats(ctx) }

// ForkEntries are the entries that a fork of the session copies: the whole log
// without an entry, else a branch. It fails with [ErrInvalidForkTarget] for an
// entry that is not there, or that is no user message where position is Before;
// and as Branch does.
//
// In the coding agent's dialect the copy of a branch is a branched session: label
// entries are left out and made anew at the end, with ids from src.
func (s *Session) ForkEntries(ctx context.Context, entryID string, position Position, src Source) ([]Entry, error) {
	if position != "" && position != Before && position != AtIt {
		return nil, Errorf(InvalidArgument, "a fork is cut %q or %q an entry, not %q", Before, AtIt, position)
	}
	if entryID == "" {
		var all []Entry
		for e, err := range s.storage.Entries(ctx, 0, All) {
			if err != nil {
				return nil, err
			}
			all = append(all, e)
		}
		return all, nil
	}
	target, err := s.storage.Entry(ctx, entryID)
	if CodeOf(err) == NotFound {
		return nil, EntryNotFound(InvalidForkTarget, entryID)
	}
	if err != nil {
		return nil, err
	}
	if position == AtIt {
		return s.forkBranch(ctx, At(target.id), src)
	}
	if target.kind == kindMessage && target.Message().Nullish() {
		return nil, target.faulty("message", "is missing")
	}
	if !target.IsUserMessage() {
		return nil, Errorf(InvalidForkTarget, "Entry %s is not a user message", entryID)
	}
	return s.forkBranch(ctx, target.parent, src)
}

func (s *Session) forkBranch(ctx context.Context, at Ref, src Source) ([]Entry, error) {
	branch, err := s.storage.Branch(ctx, at)
	if err != nil {
		return nil, err
	}
	labels, err := s.LabelList(ctx)
	if err != nil {
		return nil, err
	}
	return s.dialect.rules().branchCopy(branch, labels, src)
}

// Close closes the session's storage. It fails with [ErrInvalidState] if drafts
// are still held back; the storage is closed all the same.
func (s *Session) Close() error {
	held := len(s.TakeHeld())
	if err := s.storage.Close(); err != nil || held == 0 {
		return err
	}
	return Errorf(InvalidState, "%d drafts were held back and never written", held)
}
