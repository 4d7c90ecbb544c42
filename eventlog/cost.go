package eventlog

import (
	"context"
	"iter"
	"slices"

	"github.com/sessiontree/sessiontree/eventlog/js"
)

// ModelCost is what one model cost in a session.
type ModelCost struct {
	Key    string // provider/model, or "Tools/summaries" for what names no model
	Cost   float64
	Tokens float64 // of all kinds
}

// otherCost is the key of what names no model: tool results, summaries.
const otherCost = "Tools/summaries"

// CostByModel adds the usage of entries up by model, most costly first, as the
// coding agent shows it; what cost nothing and has no tokens is left out. It fails
// with [ErrInvalidEntry] where usage has not the form that it should have.
func CostByModel(entries iter.Seq2[Entry, error]) ([]ModelCost, error) {
	var keys []string
	totals := map[string]*Stats{}
	for e, err := range entries {
		if err != nil {
			return nil, err
		}
		key, usage, err := billed(e)
		if err != nil {
			return nil, err
		}
		if !usage.Truthy() {
			continue
		}
		if totals[key] == nil {
			keys, totals[key] = append(keys, key), &Stats{}
		}
		if err := totals[key].addUsage(e, usage); err != nil {
			return nil, err
		}
	}
	costs := make([]ModelCost, 0, len(keys))
	for _, key := range keys {
		t := totals[key]
		if c := (ModelCost{key, t.Cost, t.TotalTokens}); c.Cost > 0 || c.Tokens > 0 {
			costs = append(costs, c)
		}
	}
	slices.SortStableFunc(costs, func(a, b ModelCost) int {
		switch d := b.Cost - a.Cost; {
		case d < 0:
			return -1
		case d > 0:
			return 1
		}
		return 0
	})
	return costs, nil
}

// billed is the usage that an entry has, and the model that it is put down to.
func billed(e Entry) (key string, usage js.Value, err error) {
	model := func(provider, model js.Value) string {
		return js.Concat(js.ToString(provider), "/", js.ToString(model))
	}
	switch e.kind {
	case kindMessage:
		m := e.Message()
		if m.Nullish() {
			return "", usage, e.faulty("message", "is missing")
		}
		switch e.role {
		case roleAssistant:
			name := m.Get("responseModel")
			if name.Nullish() {
				name = m.Get("model")
			}
			return model(m.Get("provider"), name), m.Get("usage"), nil
		case roleToolResult:
			return otherCost, m.Get("usage"), nil
		}
	case kindUsage:
		return model(e.Get("provider"), e.Get("model")), e.Get("usage"), nil
	case kindCompaction, kindBranchSummary:
		return otherCost, e.Get("usage"), nil
	}
	return "", usage, nil
}

// CostByModel is [CostByModel] of the session's whole log.
func (s *Session) CostByModel(ctx context.Context) ([]ModelCost, error) {
	return CostByModel(s.storage.Entries(ctx, 0, All))
}

// Info is how a list shows the session.
func (s *Session) Info(ctx context.Context) (Info, error) {
	m, err := s.storage.Metadata(ctx)
	if err != nil {
		return Info{}, err
	}
	return InfoOf(m, s.storage.Entries(ctx, 0, All))
}

// Children are the entries directly below an entry (none: those without a parent),
// in log order; of an id that stands twice the last entry, where it stood first.
func (s *Session) Children(ctx context.Context, of Ref) ([]Entry, error) {
	place := map[string]int{}
	var last []Entry
	for e, err := range s.storage.Entries(ctx, 0, All) {
		if err != nil {
			return nil, err
		}
		if at, ok := place[e.id]; ok {
			last[at] = e
			continue
		}
		place[e.id] = len(last)
		last = append(last, e)
	}
	return slices.DeleteFunc(last, func(e Entry) bool { return e.parent != of }), nil
}
