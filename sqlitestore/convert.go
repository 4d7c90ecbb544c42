package sqlitestore

import (
	"context"

	"github.com/sessiontree/sessiontree/eventlog"
)

// Convert makes a session of the other dialect with the entries of one that is here,
// and says which answers change. asked is how many entries were asked about (see
// [eventlog.Changes]). The source stays as it is. o may have the new session's id.
func (s *Store) Convert(ctx context.Context, source eventlog.Metadata, to eventlog.Dialect, o eventlog.CreateOptions) (made *eventlog.Session, changes []eventlog.Change, asked int, err error) {
	from, err := s.Open(ctx, source)
	if err != nil {
		return nil, nil, 0, err
	}
	defer from.Close()
	m, err := from.Metadata(ctx)
	if err != nil {
		return nil, nil, 0, err
	}
	if m.Dialect == to {
		return nil, nil, 0, eventlog.Errorf(eventlog.InvalidArgument, "Session %s has the dialect %s already", m.ID, to)
	}
	entries, leaf, lost, err := from.Converted(ctx, to)
	if err != nil {
		return nil, nil, 0, err
	}
	o.CWD, o.Metadata, o.ParentSession = m.CWD, m.Metadata, eventlog.At(m.ID)
	o.Dialect, o.DialectBasis = to, "converted from "+m.Dialect.String()
	n, err := o.NewMetadata(s.o.Source)
	if err != nil {
		return nil, nil, 0, err
	}
	if made, err = s.Add(ctx, n, entries); err != nil {
		return nil, nil, 0, err
	}
	fail := func(err error) (*eventlog.Session, []eventlog.Change, int, error) {
		made.Close()
		return nil, nil, 0, err
	}
	// A leaf that is not there stays what the entries lead to.
	if head, err := made.Head(ctx); err != nil && eventlog.CodeOf(err) != eventlog.InvalidSession {
		return fail(err)
	} else if head.Leaf != leaf {
		if _, err := made.MoveTo(ctx, leaf, nil); err != nil && eventlog.CodeOf(err) != eventlog.NotFound {
			return fail(err)
		}
	}
	if changes, asked, err = eventlog.Changes(ctx, from, made); err != nil {
		return fail(err)
	}
	return made, append(lost, changes...), asked, nil
}
