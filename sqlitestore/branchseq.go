package sqlitestore

import (
	"context"
	"iter"

	"github.com/sessiontree/sessiontree/eventlog"
	"github.com/sessiontree/sessiontree/query"
)

// BranchSeq implements [eventlog.BranchStreamer]: each page is read in a snapshot of
// its own, and no connection is held between two. The way up from an entry never
// changes, so the pages together are the branch; should another program break that
// (see [Storage.AppendRaw]) or delete the session, the sequence ends with an error,
// never short.
func (s *Storage) BranchSeq(ctx context.Context, from eventlog.Ref) iter.Seq2[eventlog.Entry, error] {
	return func(yield func(eventlog.Entry, error) bool) {
		p := branchPages{s: s, from: from}
		for !p.done {
			entries, err := p.next(ctx)
			if err != nil {
				yield(eventlog.Entry{}, err)
				return
			}
			for _, e := range entries {
				if !yield(e, nil) {
					return
				}
			}
		}
	}
}

// branchPages reads a branch page by page, oldest first.
type branchPages struct {
	s    *Storage
	from eventlog.Ref
	read int    // entries so far
	last string // the id of the last of them
	done bool
}

func (p *branchPages) next(ctx context.Context) (entries []eventlog.Entry, err error) {
	err = p.s.read(ctx, func(tx reading) error {
		switch {
		case p.from.IsNone():
			p.done = true
			return nil
		case tx.walks():
			entries, err = p.walk(ctx, tx)
		default:
			entries, err = p.window(ctx, tx)
		}
		return err
	})
	if err != nil || len(entries) == 0 {
		return nil, err
	}
	if first := entries[0]; p.read > 0 && first.Parent() != eventlog.At(p.last) {
		return nil, eventlog.Errorf(eventlog.InvalidState, "the branch of %s changed while it was read", p.from)
	}
	p.read += len(entries)
	p.last = entries[len(entries)-1].ID()
	return entries, nil
}

// window reads the next page by its depths.
func (p *branchPages) window(ctx context.Context, tx reading) ([]eventlog.Entry, error) {
	end, err := query.Locate(ctx, tx, p.s.key, p.from.ID())
	if err != nil {
		return nil, err
	}
	stop, err := query.Stop(ctx, tx, end)
	if err != nil {
		return nil, err
	}
	low := stop + int64(p.read)
	high := min(low+page-1, end.Depth)
	at, ok, err := query.AncestorAt(ctx, tx, end, high)
	if err != nil {
		return nil, err
	}
	if !ok || low > high {
		return nil, eventlog.Errorf(eventlog.InvalidState, "the branch of %s changed while it was read", p.from)
	}
	p.done = high == end.Depth
	return query.Branch(ctx, tx, p.s.Dialect(), p.s.store.segments.Of(tx.build), at, low)
}

// walk reads all that is left by the reference walk.
func (p *branchPages) walk(ctx context.Context, tx reading) ([]eventlog.Entry, error) {
	branch, err := p.s.walk(ctx, tx, p.from.ID())
	if err != nil {
		return nil, err
	}
	if p.done = true; p.read > len(branch) {
		return nil, eventlog.Errorf(eventlog.InvalidState, "the branch of %s changed while it was read", p.from)
	}
	return branch[p.read:], nil
}
