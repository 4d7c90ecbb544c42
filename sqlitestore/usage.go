package sqlitestore

import (
	"context"

	"github.com/sessiontree/sessiontree/projections"
	"github.com/sessiontree/sessiontree/query"
)

// Usage says what was spent, as [query.Usage] does, all of the log counted.
func (s *Store) Usage(ctx context.Context, o query.UsageOptions) (query.UsageReport, error) {
	return analysed(ctx, s, o, query.Usage)
}

// UsageCopies says what [Store.Usage] does not count, since it counts for another
// session.
func (s *Store) UsageCopies(ctx context.Context) ([]query.CopiedSpend, error) {
	return analysed(ctx, s, struct{}{}, func(ctx context.Context, c query.Conn, _ struct{}) ([]query.CopiedSpend, error) {
		return query.UsageCopies(ctx, c)
	})
}

// Tools says how tools were used, as [query.Tools] does.
func (s *Store) Tools(ctx context.Context, o query.WorkOptions) ([]query.ToolSpend, error) {
	return analysed(ctx, s, o, query.Tools)
}

// SlowTurns are the turns that took longest, as [query.SlowTurns] says.
func (s *Store) SlowTurns(ctx context.Context, o query.WorkOptions) ([]query.Turn, error) {
	return analysed(ctx, s, o, query.SlowTurns)
}

// OpenCalls are the calls of tools without a result, as [query.OpenCalls] says.
func (s *Store) OpenCalls(ctx context.Context, o query.WorkOptions) ([]query.OpenCall, error) {
	return analysed(ctx, s, o, query.OpenCalls)
}

// Compactions lists compactions, as [query.Compactions] does.
func (s *Store) Compactions(ctx context.Context, o query.WorkOptions) ([]query.Compaction, error) {
	return analysed(ctx, s, o, query.Compactions)
}

// AllBranches sums up the sessions that branched, as [query.AllBranches] does.
func (s *Store) AllBranches(ctx context.Context, o query.WorkOptions) ([]query.SessionBranches, error) {
	return analysed(ctx, s, o, query.AllBranches)
}

// Branches says how a session branched, as [query.Branches] does.
func (s *Store) Branches(ctx context.Context, session string) (query.BranchReport, error) {
	return analysed(ctx, s, session, query.Branches)
}

// analysed asks a question of the view of usage.
func analysed[O, A any](ctx context.Context, s *Store, o O, ask func(context.Context, query.Conn, O) (A, error)) (answer A, err error) {
	err = s.analyse(ctx, func(tx *projections.Tx) error {
		answer, err = ask(ctx, tx, o)
		return err
	}, projections.Usage{}.Name())
	if err != nil {
		var none A
		return none, err
	}
	return answer, nil
}
