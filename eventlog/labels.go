package eventlog

import (
	"context"

	"github.com/sessiontree/sessiontree/eventlog/js"
)

// Label is a label that stands.
type Label struct {
	Target string   // the id of the entry that it is on
	Text   string   // as [Session.Label] gives it
	Value  js.Value // as the entry holds it: a text, unless a file has something else
	Entry  Entry    // the label entry that set it last; its time is the label's
}

// foldLabels are the labels that label entries, in log order, come to: in the
// order in which they were first set since they were last cleared.
func (d Dialect) foldLabels(entries []Entry) []Label {
	var order []string
	stand := map[string]Label{}
	for _, e := range entries {
		target, value, ok, err := d.rules().label(e)
		if err != nil || !ok {
			continue
		}
		text := d.rules().labelText(value)
		if text == "" {
			delete(stand, target)
			continue
		}
		if _, stands := stand[target]; !stands {
			order = append(order, target)
		}
		stand[target] = Label{target, text, value, e}
	}
	labels := make([]Label, 0, len(stand))
	// Of a label that was cleared and set again the last place counts.
	for i := len(order) - 1; i >= 0; i-- {
		if l, ok := stand[order[i]]; ok {
			labels = append(labels, l)
			delete(stand, order[i])
		}
	}
	for i, j := 0, len(labels)-1; i < j; i, j = i+1, j-1 {
		labels[i], labels[j] = labels[j], labels[i]
	}
	return labels
}

// LabelList are the labels that stand, with their times, in the order in which
// each was first set since it was last cleared.
func (s *Session) LabelList(ctx context.Context) ([]Label, error) {
	entries, err := s.storage.Find(ctx, TypeLabel)
	if err != nil {
		return nil, err
	}
	return s.dialect.foldLabels(entries), nil
}
