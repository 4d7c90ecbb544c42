package eventlog

import (
	"context"
	"fmt"

	"github.com/sessiontree/sessiontree/eventlog/js"
)

// Converted are the entries of a session in another dialect: the same ones, byte for
// byte, but that what moves the leaf is written as the other dialect has it. lost
// says which entries are none there. The leaf of the converted session is to be set
// with [Session.MoveTo] where it is not the last entry.
func (s *Session) Converted(ctx context.Context, to Dialect) (entries []Entry, leaf Ref, lost []Change, err error) {
	head, err := s.storage.Head(ctx)
	if err != nil && CodeOf(err) != InvalidSession {
		return nil, leaf, nil, err
	}
	parents := map[string]bool{}
	var log []Entry
	for e, err := range s.storage.Entries(ctx, 0, All) {
		if err != nil {
			return nil, leaf, nil, err
		}
		parents[e.parent.id] = true
		log = append(log, e)
	}
	for _, e := range log {
		moves := e.Type() == TypeLeaf && s.dialect.LogsMoves() && !to.LogsMoves()
		if moves && !parents[e.id] {
			continue // the leaf is kept beside the entries there
		}
		same, err := to.ParseEntry(e.text)
		if err != nil {
			lost = append(lost, Change{e.id, "the entry", e.text, "left out: it " + err.Error()})
			continue
		}
		entries = append(entries, same)
	}
	return entries, head.Leaf, lost, nil
}

// Change is an answer that two sessions give differently.
type Change struct {
	Entry  string // the id of the entry that it is about, "" for the session
	What   string
	Before string
	After  string
}

// askedInFull is up to how many entries each is asked about.
const askedInFull = 1000

// Changes compares what two sessions of the same entries answer: of the session
// itself, and of its entries (in a long log of tips, compactions and what follows
// them) the branch and the context. asked is how many entries that was.
func Changes(ctx context.Context, before, after *Session) (changes []Change, asked int, err error) {
	for _, q := range questions {
		a, err := answered(q.ask(ctx, before))
		if err != nil {
			return nil, 0, err
		}
		b, err := answered(q.ask(ctx, after))
		if err != nil {
			return nil, 0, err
		}
		if a != b {
			changes = append(changes, Change{"", q.what, a, b})
		}
	}
	log, err := interesting(ctx, after)
	if err != nil {
		return nil, 0, err
	}
	for _, e := range log {
		if _, err := before.storage.Entry(ctx, e.id); CodeOf(err) == NotFound {
			continue // a move, which only one of them has as an entry
		}
		asked++
		var a, b [3]string
		for i, s := range []*Session{before, after} {
			to := []*[3]string{&a, &b}[i]
			if to[0], to[1], to[2], err = s.describe(ctx, At(e.id)); err != nil {
				return nil, 0, err
			}
		}
		for i, what := range []string{"the branch", "the context", "the settings"} {
			if a[i] != b[i] {
				changes = append(changes, Change{e.id, what, a[i], b[i]})
			}
		}
	}
	return changes, asked, nil
}

// answered is an answer, or the error that is one.
func answered(answer string, err error) (string, error) {
	if code := CodeOf(err); code == InvalidEntry || code == InvalidSession || code == NotFound {
		return "error: " + err.Error(), nil
	}
	return answer, err
}

var questions = []struct {
	what string
	ask  func(ctx context.Context, s *Session) (string, error)
}{
	{"the leaf", func(ctx context.Context, s *Session) (string, error) {
		h, err := s.Head(ctx)
		return h.Leaf.String(), err
	}},
	{"the number of entries", func(ctx context.Context, s *Session) (string, error) {
		h, err := s.Head(ctx)
		return fmt.Sprint(h.N), err
	}},
	{"the name", func(ctx context.Context, s *Session) (string, error) { return s.Name(ctx) }},
	{"the labels", func(ctx context.Context, s *Session) (string, error) {
		labels, err := s.LabelList(ctx)
		text := ""
		for _, l := range labels {
			text += fmt.Sprintf("%s=%q ", l.Target, l.Text)
		}
		return text, err
	}},
	{"the totals", func(ctx context.Context, s *Session) (string, error) {
		t, err := s.Stats(ctx)
		return fmt.Sprintf("%d messages, %v tokens, cost %v", t.Messages, t.TotalTokens, t.Cost), err
	}},
}

// interesting are the entries that answers are compared of.
func interesting(ctx context.Context, s *Session) ([]Entry, error) {
	var log []Entry
	parents, compactions := map[string]bool{}, map[string]bool{}
	for e, err := range s.storage.Entries(ctx, 0, All) {
		if err != nil {
			return nil, err
		}
		log = append(log, e)
		parents[e.parent.id] = true
		compactions[e.id] = e.kind == kindCompaction
	}
	if len(log) <= askedInFull {
		return log, nil
	}
	var some []Entry
	for _, e := range log {
		if (!parents[e.id] || e.kind == kindCompaction || compactions[e.parent.id]) && len(some) < askedInFull {
			some = append(some, e)
		}
	}
	return some, nil
}

// describe is what a session answers from an entry, as text to compare and to show.
func (s *Session) describe(ctx context.Context, from Ref) (branch, seen, settings string, err error) {
	path, err := s.storage.Branch(ctx, from)
	ids := make([]js.Value, len(path))
	for i, e := range path {
		ids[i] = keyValue(e.id)
	}
	if branch, err = answered(fmt.Sprintf("%d entries %s", len(path), js.List(ids...).JSON()), err); err != nil {
		return "", "", "", err
	}
	c, err := s.BuildContext(ctx, from)
	messages := make([]js.Value, len(c.Messages))
	for i, m := range c.Messages {
		messages[i] = m.Value
	}
	if seen, err = answered(fmt.Sprintf("%d messages %s", len(messages), js.Canonical(js.List(messages...)).JSON()), err); err != nil {
		return "", "", "", err
	}
	model := "none"
	if c.Model != nil {
		model = c.Model.Provider.JSON() + "/" + c.Model.ID.JSON()
	}
	tools := js.List(c.ActiveTools...).JSON() // none and nothing set are one here: the dialects differ in that for all
	return branch, seen, fmt.Sprintf("thinking %s, model %s, tools %s", c.ThinkingLevel.JSON(), model, tools), nil
}
