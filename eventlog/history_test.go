package eventlog_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/sessiontree/sessiontree/eventlog"
	"github.com/sessiontree/sessiontree/eventlog/js"
	"github.com/sessiontree/sessiontree/eventlog/jsonl"
	"github.com/sessiontree/sessiontree/eventlog/memory"
)

// TestRandomHistories does random things to a session of each backend and to the
// naive reference, and compares all answers: all the time on a short history, now
// and then on a long one. The file is opened again every few steps.
func TestRandomHistories(t *testing.T) {
	t.Parallel()
	r := newRand(t)
	type plan struct{ histories, steps, compare int }
	plans := []plan{{12, 40, 10}, {2, 200, 65}}
	if long {
		plans = []plan{{1000, 40, 5}, {20, 600, 80}}
	}
	for _, p := range plans {
		for range p.histories {
			h := newHistory(t, rand.New(rand.NewPCG(r.Uint64(), r.Uint64())))
			for i := range p.steps {
				h.step()
				if h.r.IntN(15) == 0 {
					h.reopen()
				}
				if i%p.compare == p.compare-1 || i == p.steps-1 {
					h.compare()
				}
			}
			h.reopen()
			h.compare()
			require.NoError(t, h.sessions[1].Close())
		}
	}
}

// history is a session in memory, the same as a file, and the reference.
type history struct {
	testing.TB
	r        *rand.Rand
	n        *naive
	sessions [2]*eventlog.Session
	path     string
	o        jsonl.Options
	raw      int
}

func newHistory(t testing.TB, r *rand.Rand) *history {
	h := &history{TB: t, r: r, n: &naive{}, path: filepath.Join(t.TempDir(), "session.jsonl"), o: jsonl.Options{NoSync: true, Source: steady()}}
	h.sessions[0] = eventlog.NewSession(memory.New(meta, nil, memory.Options{Source: steady()}))
	s, err := jsonl.Create(t.Context(), h.path, meta, nil, h.o)
	require.NoError(t, err)
	h.sessions[1] = eventlog.NewSession(s)
	return h
}

func (h *history) reopen() {
	require.NoError(h, h.sessions[1].Close())
	s, err := jsonl.Open(h.Context(), h.path, h.o)
	require.NoError(h, err)
	require.Empty(h, s.Damage())
	h.sessions[1] = eventlog.NewSession(s)
}

// compare asks all sessions and the reference the same of a few entries.
func (h *history) compare() {
	ids := []string{"nobody"}
	for range 6 {
		if len(h.n.log) > 0 {
			ids = append(ids, h.anyID())
		}
	}
	for _, s := range h.sessions {
		compareWalks(h, s, h.n, ids)
		require.Equal(h, recordIDs(h.n.log), idsOf(entriesOf(h, s)))
	}
	require.Equal(h, textsOf(entriesOf(h, h.sessions[0])), textsOf(entriesOf(h, h.sessions[1])))
}

// anyID is the id of an entry, rather of a late one.
func (h *history) anyID() string {
	n := len(h.n.log)
	if h.r.IntN(3) == 0 {
		return h.n.log[h.r.IntN(n)].ID
	}
	return h.n.log[n-1-h.r.IntN(min(n, 12))].ID
}

// ref is an entry that is there, nobody, or none.
func (h *history) ref() eventlog.Ref {
	switch {
	case h.r.IntN(12) == 0:
		return eventlog.At("nobody")
	case len(h.n.log) == 0 || h.r.IntN(12) == 0:
		return eventlog.None()
	}
	return eventlog.At(h.anyID())
}

// known says whether a reference is none or to an entry that is there.
func (h *history) known(ref eventlog.Ref) bool {
	_, ok := h.n.find(ref.ID())
	return ok || ref.IsNone()
}

// draft makes a draft that can be written, and what its type is.
func (h *history) draft() eventlog.Draft {
	text := fmt.Sprintf("text %d", h.r.IntN(100))
	at := time.UnixMilli(1767225600000)
	spent := eventlog.Usage{Input: float64(h.r.IntN(100)), Output: 0.1, CacheRead: float64(h.r.IntN(9)), CacheWrite: 2, Cost: h.r.Float64()}
	switch h.r.IntN(12) {
	case 0:
		return eventlog.ThinkingLevelDraft(text)
	case 1:
		return eventlog.ModelDraft("acme", text)
	case 2:
		return eventlog.ActiveToolsDraft(strings.Fields(text)...)
	case 3, 4:
		c := eventlog.Compaction{Summary: text, TokensBefore: 7}
		switch ref := h.ref(); h.r.IntN(4) {
		case 0:
			c.RetainedTail = js.List(eventlog.UserMessage("kept", at).Value)
		case 1:
			c.RetainedTail = js.List()
			c.FirstKeptEntryID = ref.Value()
		default:
			c.FirstKeptEntryID = ref.Value()
			c.Usage = eventlog.AssistantMessage("", "", "", spent, at).Get("usage")
		}
		return eventlog.CompactionDraft(c)
	case 5:
		return eventlog.CustomDraft("state", js.Text(text))
	case 6:
		return eventlog.CustomMessageDraft("note", js.Text(text), true, js.Value{})
	case 7:
		return eventlog.NameDraft(" " + text + "\r\nx ")
	case 8, 9:
		return eventlog.MessageDraft(eventlog.AssistantMessage(text, "acme", "m-"+text, spent, at))
	}
	return eventlog.MessageDraft(eventlog.UserMessage(text, at))
}

// step does one thing to all sessions, and works out with the reference alone
// what has to come of it.
func (h *history) step() {
	switch h.r.IntN(16) {
	default:
		h.append(eventlog.Batch{Drafts: []eventlog.Draft{h.draft()}}, h.canAppend(nil), h.n.leaf())
	case 1: // a batch, which is a chain
		h.append(eventlog.Batch{Drafts: []eventlog.Draft{h.draft(), h.draft(), h.draft()}}, h.canAppend(nil), h.n.leaf())
	case 2: // a branch without a leaf entry
		ref := h.ref()
		d := h.draft().Under(ref)
		if h.known(ref) {
			h.append(eventlog.Batch{Drafts: []eventlog.Draft{d}}, nil, idOf(ref))
		} else {
			h.append(eventlog.Batch{Drafts: []eventlog.Draft{d}}, eventlog.ErrNotFound, nil)
		}
	case 3, 4: // a move
		ref := h.ref()
		var want error
		if !h.known(ref) {
			want = eventlog.ErrNotFound
		}
		leaf := h.n.leaf()
		var summary *eventlog.Summary
		if h.r.IntN(2) == 0 {
			summary = &eventlog.Summary{Text: fmt.Sprint("left ", ref)}
		}
		h.do(want, func(s *eventlog.Session) ([]eventlog.Entry, error) { return s.MoveTo(h.Context(), ref, summary) }, func(records []record) {
			require.Equal(h, "leaf", records[0].Type)
			require.Equal(h, leaf, records[0].ParentID)
			require.Equal(h, idOf(ref), records[0].TargetID)
			if summary == nil {
				require.Len(h, records, 1)
				return
			}
			require.Len(h, records, 2)
			require.Equal(h, "branch_summary", records[1].Type)
			require.Equal(h, idOf(ref), records[1].ParentID)
			from := "root"
			if !ref.IsNone() {
				from = ref.ID()
			}
			require.Equal(h, []string{from, summary.Text}, []string{records[1].FromID, records[1].Summary})
		})
	case 5: // a label
		ref := h.ref()
		label := []string{"", " ", "label", " spaced "}[h.r.IntN(4)]
		want := h.canAppend(nil)
		if _, ok := h.n.find(ref.ID()); !ok {
			want = eventlog.ErrNotFound
		}
		leaf := h.n.leaf()
		h.do(want, func(s *eventlog.Session) ([]eventlog.Entry, error) {
			e, err := s.SetLabel(h.Context(), ref.ID(), label)
			return []eventlog.Entry{e}, err
		}, func(records []record) {
			require.Equal(h, []any{"label", leaf, idOf(ref), &label}, []any{records[0].Type, records[0].ParentID, records[0].TargetID, records[0].Label})
		})
	case 6: // compare and swap
		head, _ := h.n.head()
		if h.r.IntN(2) == 0 {
			stale := head
			if h.r.IntN(2) == 0 {
				stale.N--
			} else {
				stale.Leaf = eventlog.At("nobody else")
			}
			h.append(eventlog.Batch{Drafts: []eventlog.Draft{h.draft()}, If: &stale}, eventlog.ErrConflict, nil)
		} else {
			h.append(eventlog.Batch{Drafts: []eventlog.Draft{h.draft()}, If: &head}, h.canAppend(nil), h.n.leaf())
		}
	case 7: // a retry, and another entry of the same id
		if h.canAppend(nil) != nil {
			return
		}
		d := h.draft().WithID(fmt.Sprint("retried-", len(h.n.log)))
		h.append(eventlog.Batch{Drafts: []eventlog.Draft{d}}, nil, h.n.leaf())
		if h.r.IntN(2) == 0 {
			h.append(eventlog.Batch{Drafts: []eventlog.Draft{h.draft()}}, nil, h.n.leaf())
		}
		for _, s := range h.sessions {
			entries, err := s.Append(h.Context(), d)
			require.NoError(h, err)
			require.Equal(h, d.ID, entries[0].ID())
			_, err = s.Append(h.Context(), message("other").WithID(d.ID))
			require.ErrorIs(h, err, eventlog.ErrAlreadyExists)
		}
	case 8: // what only a file can bring
		if h.r.IntN(4) > 0 {
			return
		}
		h.raw++
		id := fmt.Sprint("raw-", h.raw)
		if h.r.IntN(3) == 0 && len(h.n.log) > 0 {
			id = h.anyID()
		}
		parent := []string{"", h.ref().ID(), "lost", id, fmt.Sprint("raw-", h.raw+1)}[h.r.IntN(5)]
		text := user(id, parent, "raw")
		switch h.r.IntN(4) {
		case 0:
			text = entry("leaf", id, parent, `"targetId":`+h.ref().Value().JSON())
		case 1:
			text = entry("newer", id, parent, `"field":1`)
		}
		for _, s := range h.sessions {
			require.NoError(h, s.Storage().AppendRaw(h.Context(), parse(h, text)...))
		}
		h.n.append(text)
	case 9: // a navigation
		h.navigate()
	}
}

// canAppend is the error of an append at a leaf that cannot be read.
func (h *history) canAppend(otherwise error) error {
	if _, err := h.n.head(); err != nil {
		return err
	}
	return otherwise
}

func idOf(ref eventlog.Ref) *string {
	if ref.IsNone() {
		return nil
	}
	id := ref.ID()
	return &id
}

// append appends a batch whose first entry belongs below parent.
func (h *history) append(b eventlog.Batch, want error, parent *string) {
	h.do(want, func(s *eventlog.Session) ([]eventlog.Entry, error) { return s.Storage().Append(h.Context(), b) }, func(records []record) {
		require.Len(h, records, len(b.Drafts))
		for i, r := range records {
			require.Equal(h, string(b.Drafts[i].Type), r.Type)
			require.Equal(h, parent, r.ParentID)
			parent = &r.ID
		}
	})
}

// do does one thing to all sessions. All must fail alike, or write the same.
func (h *history) do(want error, do func(s *eventlog.Session) ([]eventlog.Entry, error), check func([]record)) {
	var first []string
	for i, s := range h.sessions {
		entries, err := do(s)
		require.True(h, sameError(want, err), "want %v, got %v", want, err)
		if want != nil {
			require.NotEmpty(h, eventlog.CodeOf(err))
			continue
		}
		texts := textsOf(entries)
		if i == 0 {
			for _, e := range entries {
				_, taken := h.n.find(e.ID())
				require.False(h, taken, "%s is taken", e.ID())
			}
			first = texts
			written := &naive{}
			written.append(texts...)
			check(written.log)
		}
		require.Equal(h, first, texts)
	}
	h.n.append(first...)
}

func (h *history) navigate() {
	target := h.ref().ID()
	wants := h.r.IntN(2) == 0
	leaf := h.n.leaf()
	r, ok := h.n.find(target)
	_, headErr := h.n.head()
	left, _, collectErr := h.n.collect(leaf, &target)
	var want error
	switch {
	case headErr != nil:
		want = eventlog.ErrSession
	case leaf != nil && *leaf == target:
		left, wants = nil, false
	case !ok:
		want = eventlog.ErrInvalidArgument
	case collectErr != nil:
		want = eventlog.ErrSession
	}
	stays := want == nil && leaf != nil && *leaf == target
	to := &target
	var editor *string
	if want == nil && !stays && (r.Type == "custom_message" || r.Type == "message" && r.Message.Role == "user") {
		to = r.ParentID
		content := r.Content
		if r.Type == "message" {
			content = r.Message.Content
		}
		text := plain(content)
		editor = &text
		if to != nil {
			if _, ok := h.n.find(*to); !ok {
				want = eventlog.ErrSession // the parent is lost
			}
		}
	}
	asked := 0
	h.do(want, func(s *eventlog.Session) ([]eventlog.Entry, error) {
		before := len(entriesOf(h, s))
		n, err := s.Navigate(h.Context(), target, eventlog.NavigateOptions{Summarize: wants, Summarizer: func(_ context.Context, r eventlog.SummaryRequest) (eventlog.Summary, error) {
			asked++
			require.Equal(h, left, idsOf(r.Entries))
			return eventlog.Summary{Text: "summary"}, nil
		}})
		written := entriesOf(h, s)[before:]
		if err == nil {
			require.Equal(h, editor, n.EditorText)
			require.False(h, n.Cancelled)
		} else {
			require.Empty(h, written)
		}
		return written, err
	}, func(records []record) {
		if stays {
			require.Empty(h, records)
			return
		}
		require.Equal(h, "leaf", records[0].Type)
		require.Equal(h, to, records[0].TargetID)
		require.Equal(h, leaf, records[0].ParentID)
		if wants && len(left) > 0 {
			require.Len(h, records, 2)
			require.Equal(h, []any{"branch_summary", to}, []any{records[1].Type, records[1].ParentID})
		} else {
			require.Len(h, records, 1)
		}
	})
	if want == nil && wants && len(left) > 0 {
		require.Equal(h, len(h.sessions), asked)
	}
}
