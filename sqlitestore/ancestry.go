package sqlitestore

import (
	"context"
	"slices"

	"github.com/sessiontree/sessiontree/eventlog"
	"github.com/sessiontree/sessiontree/query"
)

// IsAncestor says whether entry a stands above entry b, or is b, past all
// compactions. It takes O(log) look-ups in a tree of any shape. It fails with
// [eventlog.ErrNotFound].
func (s *Storage) IsAncestor(ctx context.Context, a, b string) (above bool, err error) {
	err = s.pair(ctx, a, b, func(tx reading, pa, pb query.Place) error {
		above, err = query.IsAncestor(ctx, tx, pa, pb)
		return err
	}, func(upA, upB []eventlog.Entry) error {
		for _, e := range upB {
			above = above || e.ID() == a
		}
		return nil
	})
	return above, err
}

// CommonAncestor is the deepest entry above both a and b, themselves included,
// past all compactions; none if they have no root in common. It takes O(log)
// look-ups in a tree of any shape. It fails with [eventlog.ErrNotFound].
func (s *Storage) CommonAncestor(ctx context.Context, a, b string) (common eventlog.Ref, err error) {
	err = s.pair(ctx, a, b, func(tx reading, pa, pb query.Place) error {
		p, ok, err := query.CommonAncestor(ctx, tx, pa, pb)
		if err != nil || !ok {
			return err
		}
		e, err := query.Entry(ctx, tx, s.Dialect(), p)
		common = eventlog.At(e.ID())
		return err
	}, func(upA, upB []eventlog.Entry) error {
		on := map[string]bool{}
		for _, e := range upA {
			on[e.ID()] = true
		}
		for i := len(upB) - 1; i >= 0; i-- {
			if id := upB[i].ID(); on[id] {
				common = eventlog.At(id)
				return nil
			}
		}
		return nil
	})
	return common, err
}

// Skeleton gives the joints of the session's tree from the branch views, at the
// cost of its segments; ok is false when they cannot be asked. Ask
// [eventlog.Session.Skeleton], which then makes them from the log.
func (s *Storage) Skeleton(ctx context.Context) (joints eventlog.Skeleton, ok bool, err error) {
	err = s.read(ctx, func(tx reading) (err error) {
		if ok = !tx.walks() && s.Dialect() == eventlog.Harness; ok {
			joints, err = query.Skeleton(ctx, tx, s.key)
		}
		return err
	})
	return joints, ok, err
}

// pair answers a question about two entries: by their places, or in an irregular
// session by their ways up to the root.
func (s *Storage) pair(ctx context.Context, a, b string, indexed func(tx reading, a, b query.Place) error, walked func(a, b []eventlog.Entry) error) error {
	return s.read(ctx, func(tx reading) error {
		if tx.walks() {
			upA, err := s.wayUp(ctx, tx, a)
			if err != nil {
				return err
			}
			upB, err := s.wayUp(ctx, tx, b)
			if err != nil {
				return err
			}
			return walked(upA, upB)
		}
		pa, err := query.Locate(ctx, tx, s.key, a)
		if err != nil {
			return err
		}
		pb, err := query.Locate(ctx, tx, s.key, b)
		if err != nil {
			return err
		}
		return indexed(tx, pa, pb)
	})
}

// wayUp is an entry with all above it, root first, as far as parents are there;
// a cycle ends it.
func (s *Storage) wayUp(ctx context.Context, tx reading, id string) ([]eventlog.Entry, error) {
	log := s.log(ctx, tx.Tx)
	var up []eventlog.Entry
	for seen := map[string]bool{}; id != "" && !seen[id]; {
		seen[id] = true
		e, ok, err := log.Lookup(id)
		if err != nil {
			return nil, err
		}
		if !ok && len(up) == 0 {
			return nil, eventlog.EntryNotFound(eventlog.NotFound, id)
		}
		if !ok {
			break
		}
		up = append(up, e)
		id = e.Parent().ID()
	}
	slices.Reverse(up)
	return up, nil
}
