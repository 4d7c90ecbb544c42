package sqlitestore

import (
	"context"

	"github.com/sessiontree/sessiontree/projections"
	"github.com/sessiontree/sessiontree/query"
)

// Search finds entries by their texts, as [query.Search] does, in all of the log.
func (s *Store) Search(ctx context.Context, o query.SearchOptions) (hits []query.Hit, err error) {
	err = s.analyse(ctx, func(tx *projections.Tx) error {
		hits, err = query.Search(ctx, tx, o)
		return err
	}, projections.Search{}.Name())
	if err != nil {
		return nil, err
	}
	return hits, nil
}
