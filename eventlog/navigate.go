package eventlog

import (
	"context"
	"errors"
	"sync"

	"github.com/sessiontree/sessiontree/eventlog/js"
)

// Phase is what a session is busy with. A host marks its own turns and
// compactions with [Session.Begin], so that nobody navigates meanwhile.
type Phase string

// The phases, with Pi's names.
const (
	Idle       Phase = "idle"
	Turn       Phase = "turn"
	Compacting Phase = "compaction"
	Navigating Phase = "branch_summary"
)

// Phase is what the session is busy with now.
func (s *Session) Phase() Phase {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.phase
}

// Begin enters a phase until end is called; calling end again does nothing. It
// fails with [ErrBusy] while the session is in another phase.
func (s *Session) Begin(p Phase) (end func(), err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.phase != Idle {
		return nil, Errorf(Busy, "the session is busy (%s)", s.phase)
	}
	s.phase = p
	return sync.OnceFunc(func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.phase = Idle
	}), nil
}

// AppendWhenIdle appends the drafts if the session is idle, behind what is held
// back; else it holds them back until [Session.Flush], as Pi's harness does with
// what arrives during a navigation. It says whether they were written. When an
// append fails, what was held back still is, and the drafts are the caller's.
func (s *Session) AppendWhenIdle(ctx context.Context, drafts ...Draft) (written bool, err error) {
	s.mu.Lock()
	if s.phase != Idle {
		s.held = append(s.held, drafts...)
		s.mu.Unlock()
		return false, nil
	}
	s.mu.Unlock()
	if _, err = s.Flush(ctx); err == nil {
		_, err = s.Append(ctx, drafts...)
	}
	return err == nil, err
}

// TakeHeld hands over what AppendWhenIdle held back, for a host that wants to
// drop or mend it; it is not held any more.
func (s *Session) TakeHeld() []Draft {
	s.mu.Lock()
	defer s.mu.Unlock()
	held := s.held
	s.held = nil
	return held
}

// Flush writes what AppendWhenIdle held back, in order, as one append; on an
// error all of it is still held.
func (s *Session) Flush(ctx context.Context) ([]Entry, error) {
	held := s.TakeHeld()
	if len(held) == 0 {
		return nil, nil
	}
	entries, err := s.Append(ctx, held...)
	if err != nil {
		s.mu.Lock()
		s.held = append(held, s.held...)
		s.mu.Unlock()
	}
	return entries, err
}

// ErrCancelled is what a [Summarizer] returns when the user called it off: the
// navigation then ends as cancelled, without an error, and nothing is written.
var ErrCancelled = errors.New("cancelled")

// SummaryRequest asks for a summary of what a navigation leaves behind.
type SummaryRequest struct {
	Entries             []Entry // oldest first; never empty
	Instructions        string  // the user's, "" for none
	ReplaceInstructions bool    // whether they stand in place of the usual ones
	Dialect             Dialect // of the session
}

// A Summarizer makes the summary of a branch. [ModelSummarizer] is the usual one.
type Summarizer func(ctx context.Context, r SummaryRequest) (Summary, error)

// Preparation is what a navigation is about to do, for its before-hook.
type Preparation struct {
	Target              string
	OldLeaf             Ref
	CommonAncestor      Ref
	EntriesToSummarize  []Entry
	WantsSummary        bool
	Instructions        string
	ReplaceInstructions bool
	Label               string
}

// BeforeResult is what a before-hook decides. The zero value lets the
// navigation go on as it was asked for.
type BeforeResult struct {
	Cancel bool
	// Summary, if not nil, is written instead of asking the summarizer (who is
	// asked all the same when its text is empty and a summary was wanted).
	Summary *Summary
	// Instructions and ReplaceInstructions, if not nil, take the place of the call's.
	Instructions        *string
	ReplaceInstructions *bool
}

// Navigated is what a navigation did, for its listener.
type Navigated struct {
	NewLeaf, OldLeaf Ref
	SummaryEntry     *Entry
	FromHook         bool // whether the before-hook brought a summary
}

// NavigateOptions are the options of one navigation.
type NavigateOptions struct {
	Summarize           bool // make a summary of what is left behind
	Instructions        string
	ReplaceInstructions bool
	Label               string // handed to the hook; not written, as in Pi
	Summarizer          Summarizer

	// Before is asked before anything is written. An error ends the navigation
	// with [ErrHook].
	Before func(ctx context.Context, p Preparation) (BeforeResult, error)
	// After is told once all is written. An error makes the call fail with
	// [ErrHook]; the move stays.
	After func(ctx context.Context, n Navigated) error
}

// Navigation is what came of a call of Navigate.
type Navigation struct {
	Cancelled bool
	// EditorText is the text of the message that the user went back to, for the
	// editor; nil if the target was none of the user's.
	EditorText   *string
	SummaryEntry *Entry
}

// Navigate goes to an entry as a tree view does: to a user message or a custom
// message by moving the leaf to its parent and handing back its text, to all
// else by moving the leaf there. Going to the current leaf does nothing. With a
// summary wanted, what is left behind is given to the summarizer, and only when
// that succeeds the leaf moves and the summary is written, in one step.
//
// It fails with [ErrBusy] unless the session is idle, [ErrInvalidArgument] for
// an entry that is not there, [ErrInvalidState] when a summary is wanted and
// there is no summarizer, [ErrHook], [ErrBranchSummary], and [ErrSession] when
// the session cannot be read or written. Nothing is written then, except after
// an After that fails.
func (s *Session) Navigate(ctx context.Context, target string, o NavigateOptions) (Navigation, error) {
	s.mu.Lock()
	if s.phase != Idle {
		s.mu.Unlock()
		return Navigation{}, Errorf(Busy, "navigateTree() requires idle harness")
	}
	s.phase = Navigating
	s.mu.Unlock()
	defer func() {
		s.mu.Lock()
		s.phase = Idle
		s.mu.Unlock()
	}()
	n, err := s.navigate(ctx, target, o)
	return n, navigationError(err)
}

// navigationError sorts an error under the codes of a navigation.
func navigationError(err error) error {
	var e *Error
	if err == nil || ctxError(err) {
		return err
	}
	if !errors.As(err, &e) {
		return &Error{SummaryFailed, "", err}
	}
	switch e.Code {
	case InvalidArgument, InvalidState, Hook, SummaryFailed:
		return err
	case InvalidEntry:
		// Where Pi trips over a value that is missing: an accident, not an answer of
		// the session.
		return &Error{SummaryFailed, e.Message, err}
	}
	return &Error{SessionFailed, e.Message, err}
}

// hookError is a hook's failure. Where the hook failed because the session did,
// that is what is said, as in Pi.
func hookError(err error) error {
	if e := (*Error)(nil); errors.As(err, &e) {
		return err
	}
	return &Error{Hook, err.Error(), err}
}

func ctxError(err error) bool {
	return errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded)
}

func (s *Session) navigate(ctx context.Context, target string, o NavigateOptions) (Navigation, error) {
	head, err := s.storage.Head(ctx)
	if err != nil {
		return Navigation{}, err
	}
	if head.Leaf == At(target) {
		return Navigation{}, nil
	}
	entry, err := s.storage.Entry(ctx, target)
	if CodeOf(err) == NotFound {
		return Navigation{}, EntryNotFound(InvalidArgument, target)
	}
	if err != nil {
		return Navigation{}, err
	}
	left, err := s.CollectBranch(ctx, head.Leaf, At(target))
	if err != nil {
		return Navigation{}, err
	}
	var hook BeforeResult
	if o.Before != nil {
		hook, err = o.Before(ctx, Preparation{
			Target: target, OldLeaf: head.Leaf, CommonAncestor: left.CommonAncestor,
			EntriesToSummarize: left.Entries, WantsSummary: o.Summarize,
			Instructions: o.Instructions, ReplaceInstructions: o.ReplaceInstructions, Label: o.Label,
		})
		if err != nil {
			return Navigation{}, hookError(err)
		}
	}
	if hook.Cancel {
		return Navigation{Cancelled: true}, nil
	}
	var summary Summary
	if hook.Summary != nil {
		summary = *hook.Summary
	}
	if summary.Text == "" && o.Summarize && len(left.Entries) > 0 {
		if o.Summarizer == nil {
			return Navigation{}, Errorf(InvalidState, "No model set for branch summary")
		}
		request := SummaryRequest{left.Entries, o.Instructions, o.ReplaceInstructions, s.dialect}
		if hook.Instructions != nil {
			request.Instructions = *hook.Instructions
		}
		if hook.ReplaceInstructions != nil {
			request.ReplaceInstructions = *hook.ReplaceInstructions
		}
		summary, err = o.Summarizer(ctx, request)
		if errors.Is(err, ErrCancelled) || (err != nil && errors.Is(ctx.Err(), context.Canceled)) {
			return Navigation{Cancelled: true}, nil
		}
		if err != nil {
			return Navigation{}, err
		}
	}

	var n Navigation
	newLeaf := At(target)
	var content *js.Value
	switch {
	case entry.IsUserMessage():
		c := entry.Message().Get("content")
		content = &c
	case entry.kind == kindMessage && entry.Message().Nullish():
		return Navigation{}, entry.faulty("message", "is missing")
	case entry.kind == kindCustomMessage:
		c := entry.Get("content")
		content = &c
	}
	if content != nil {
		newLeaf = entry.parent
		text, err := contentText(*content, "")
		if err != nil {
			return Navigation{}, err
		}
		n.EditorText = &text
	}
	var written *Summary
	if summary.Text != "" {
		summary.FromHook = js.Boolean(hook.Summary != nil)
		written = &summary
	}
	entries, err := s.MoveTo(ctx, newLeaf, written)
	if err != nil {
		return Navigation{}, err
	}
	if written != nil {
		n.SummaryEntry = &entries[len(entries)-1]
	}
	if o.After != nil {
		// The move is written: what follows does not depend on the caller's patience.
		ctx := context.WithoutCancel(ctx)
		now, err := s.storage.Head(ctx)
		if err != nil {
			return Navigation{}, err
		}
		err = o.After(ctx, Navigated{now.Leaf, head.Leaf, n.SummaryEntry, hook.Summary != nil})
		if err != nil {
			return Navigation{}, hookError(err)
		}
	}
	return n, nil
}
