package sqlitestore

import (
	"context"

	"github.com/sessiontree/sessiontree/projections"
	"github.com/sessiontree/sessiontree/query"
)

// Usage says what was spent, as [query.Usage] does, all of the log counted.
func (s *Store) Usage(ctx context.Context, o query.UsageOptions) (report query.UsageReport, err error) {
	err = s.analyse(ctx, func(tx *projections.Tx) error {
		report, err = query.Usage(ctx, tx, o)
		return err
	}, projections.Usage{}.Name())
	if err != nil {
		return query.UsageReport{}, err
	}
	return report, nil
}

// UsageCopies says what [Store.Usage] does not count, since it counts for another
// session.
func (s *Store) UsageCopies(ctx context.Context) (copies []query.CopiedSpend, err error) {
	err = s.analyse(ctx, func(tx *projections.Tx) error {
		copies, err = query.UsageCopies(ctx, tx)
		return err
	}, projections.Usage{}.Name())
	if err != nil {
		return nil, err
	}
	return copies, nil
}
