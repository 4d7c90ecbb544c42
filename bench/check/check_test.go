package check_test

import (
	"context"
	"database/sql"
	"fmt"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/sessiontree/sessiontree/bench/backend"
	"github.com/sessiontree/sessiontree/bench/check"
	"github.com/sessiontree/sessiontree/eventlog"
)

var ctx = context.Background()

// The race detector, for which tests are short, changes allocations, and makes
// SQLite slow.
func skipWhenShort(t *testing.T) {
	t.Helper()
	if testing.Short() {
		t.Skip("counts of the program as it is used")
	}
}

func TestTheStoreCostsWhatItMay(t *testing.T) {
	skipWhenShort(t)
	r, err := check.Run(ctx, check.Config{Sizes: []int{500, 1_000, 3_000, 8_000}, Dir: t.TempDir()})
	require.NoError(t, err)
	assert.Empty(t, r.Problems())
	assert.Greater(t, len(r.Figures), 100)
}

func TestTheSameSeedCountsTheSame(t *testing.T) {
	run := func() (exact, about map[string][]float64) {
		r, err := check.Run(ctx, check.Config{Sizes: []int{100, 200, 400, 800}, Shapes: []string{"walk"}, Seed: 3, Dir: t.TempDir()})
		require.NoError(t, err)
		exact, about = map[string][]float64{}, map[string][]float64{}
		for _, f := range r.Figures {
			switch key := fmt.Sprint(f.Operation, f.Metric); f.Metric {
			case check.Allocations: // of the whole process, with what else it does
			case check.Pages: // some are asked for again when a view has written meanwhile
				about[key] = f.Values
			default:
				exact[key] = f.Values
			}
		}
		return exact, about
	}
	exact, about := run()
	again, aboutAgain := run()
	assert.Equal(t, exact, again)
	for key, values := range about {
		assert.InDeltaSlice(t, values, aboutAgain[key], 6, key)
	}
}

// planted is a store with a regression: with each request it also does what a bad
// change would do.
type planted struct {
	backend.Store
	db  *sql.DB
	bad func(ctx context.Context, p planted, r backend.Request) error
}

func (p planted) Do(ctx context.Context, r backend.Request) (backend.Reply, error) {
	reply, err := p.Store.Do(ctx, r)
	if err == nil {
		err = p.bad(ctx, p, r)
	}
	return reply, err
}

func (p planted) Close(ctx context.Context) error {
	p.db.Close()
	return p.Store.Close(ctx)
}

// plant gives the store with a regression in it.
func plant(bad func(ctx context.Context, p planted, r backend.Request) error) backend.Backend {
	b := backend.SQLite()
	open := b.Open
	b.Open = func(ctx context.Context, dir string, o backend.Options) (backend.Store, error) {
		s, err := open(ctx, dir, o)
		if err != nil {
			return nil, err
		}
		db, err := sql.Open("sqlite", "file:"+filepath.Join(dir, backend.DatabaseName)+"?_pragma=busy_timeout(10000)&_pragma=synchronous(normal)&_txlock=immediate")
		if err != nil {
			return nil, err
		}
		db.SetMaxOpenConns(1)
		_, err = db.ExecContext(ctx, "CREATE TABLE IF NOT EXISTS planted (entry INTEGER, ancestor INTEGER)")
		return planted{s, db, bad}, err
	}
	return b
}

// transact runs a statement in a transaction of its own.
func (p planted) transact(ctx context.Context, query string, args ...any) error {
	tx, err := p.db.BeginTx(ctx, nil)
	if err != nil {
		return err
	}
	defer tx.Rollback()
	if _, err := tx.ExecContext(ctx, query, args...); err != nil {
		return err
	}
	return tx.Commit()
}

// check counts on small chains: a regression shows on any tree.
func checked(t *testing.T, b backend.Backend) (problems []string) {
	r, err := check.Run(ctx, check.Config{Backend: b, Sizes: []int{100, 250, 600, 1500}, Shapes: []string{"chain"}, Dir: t.TempDir()})
	require.NoError(t, err)
	for _, f := range r.Problems() {
		problems = append(problems, fmt.Sprintf("%s %s", f.Operation, f.Metric))
	}
	return problems
}

func TestAPlantedRegressionIsFound(t *testing.T) {
	skipWhenShort(t)
	assert.Empty(t, checked(t, plant(func(context.Context, planted, backend.Request) error { return nil })), "nothing is planted")

	t.Run("a new branch copies the path", func(t *testing.T) {
		problems := checked(t, plant(func(ctx context.Context, p planted, r backend.Request) error {
			if r.Op != backend.AppendAt {
				return nil
			}
			return p.transact(ctx, "INSERT INTO planted SELECT ?, seq FROM events ORDER BY seq LIMIT (SELECT count(*) / 2 FROM events)", r.Entry)
		}))
		assert.Subset(t, problems, []string{"append-at rows", "append-at pages"})
		assert.NotContains(t, problems, "append rows")
	})

	t.Run("an ancestor is looked for in a full scan", func(t *testing.T) {
		problems := checked(t, plant(func(ctx context.Context, p planted, r backend.Request) error {
			if r.Op != backend.IsAncestor {
				return nil
			}
			return p.transact(ctx, "SELECT sum(length(payload)) FROM events WHERE session = 1 AND +id = ?", r.Entry)
		}))
		assert.Contains(t, problems, "is-ancestor pages")
	})

	t.Run("an append adds a row for each ancestor", func(t *testing.T) {
		problems := checked(t, plant(func(ctx context.Context, p planted, r backend.Request) error {
			if r.Op != backend.Append {
				return nil
			}
			return p.transact(ctx, "INSERT INTO planted SELECT (SELECT max(seq) FROM events), seq FROM events")
		}))
		assert.Subset(t, problems, []string{"append rows", "append pages"})
	})

	t.Run("the closure takes bytes with each entry of a build", func(t *testing.T) {
		problems := checked(t, plant(func(ctx context.Context, p planted, r backend.Request) error {
			if r.Op != backend.Build {
				return nil
			}
			return p.transact(ctx, "INSERT INTO planted SELECT a.seq, b.seq FROM events a JOIN events b ON b.seq BETWEEN a.seq - 9 AND a.seq")
		}))
		assert.Contains(t, problems, "disk branchBytes")
	})

	t.Run("a short context reads the whole log", func(t *testing.T) {
		problems := checked(t, plant(func(ctx context.Context, p planted, r backend.Request) error {
			if r.Op != backend.Context {
				return nil
			}
			_, err := p.Store.Do(ctx, backend.Request{Op: backend.Stream, Session: r.Session})
			return err
		}))
		assert.Subset(t, problems, []string{"context-of-50 pages", "context-of-50 allocations"})
	})
}

func TestAConfigurationThatMakesNoSenseIsRefused(t *testing.T) {
	for _, c := range []check.Config{
		{Sizes: []int{100, 200, 300}},
		{Sizes: []int{100, 200, 300, 10}},
		{Shapes: []string{"spiral"}},
	} {
		_, err := check.Run(ctx, c)
		assert.ErrorIs(t, err, eventlog.ErrInvalidArgument)
	}
}
