package projections

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/jmoiron/sqlx"
	"github.com/pressly/goose/v3"
	"github.com/stretchr/testify/require"

	"github.com/sessiontree/sessiontree/migrations"
)

// grove is a database with one session, each of whose entries costs something.
type grove struct {
	*testing.T
	tx      *Tx
	parents []int64 // by n
	seq     int64
}

func newGrove(t *testing.T) *grove {
	db, err := sqlx.Open("sqlite", ":memory:")
	require.NoError(t, err)
	db.SetMaxOpenConns(1)
	provider, err := goose.NewProvider(goose.DialectSQLite3, db.DB, migrations.FS)
	require.NoError(t, err)
	_, err = provider.Up(t.Context())
	require.NoError(t, err)
	conn, err := db.Connx(t.Context())
	require.NoError(t, err)
	g := &grove{T: t, tx: NewTx(conn), parents: []int64{0}}
	t.Cleanup(func() {
		require.NoError(t, g.tx.CloseConn())
		require.NoError(t, db.Close())
	})
	g.exec("INSERT INTO sessions (key, id, created_at, cwd, header) VALUES (1, 's', '', '', '{}')")
	g.exec("INSERT INTO events (seq, session, n, type, timestamp, payload) VALUES (1, 1, 0, 'session_created', '', '{}')")
	g.seq = 1
	return g
}

func (g *grove) exec(query string, args ...any) {
	g.Helper()
	_, err := g.tx.Exec(g.Context(), query, args...)
	require.NoError(g, err)
}

// grow appends an entry below another, 0 for a root.
func (g *grove) grow(parent int64) {
	n := int64(len(g.parents))
	g.parents = append(g.parents, parent)
	g.seq++
	up, upJSON := any(nil), "null"
	if parent > 0 {
		up, upJSON = fmt.Sprint("e", parent), fmt.Sprintf(`"e%d"`, parent)
	}
	payload := fmt.Sprintf(`{"type":"message","id":"e%d","parentId":%s,"timestamp":"2026-01-01T0%d:00:00.000Z","message":{"role":"assistant","content":[],"provider":"p","model":"m","usage":{"input":%d,"output":0,"cacheRead":0,"cacheWrite":0,"cost":{"total":1}}}}`,
		n, upJSON, n%10, n)
	g.exec("INSERT INTO events (seq, session, n, id, parent, type, timestamp, payload) VALUES (?, 1, ?, ?, ?, 'message', '', ?)", g.seq, n, fmt.Sprint("e", n), up, payload)
	g.catchUp(Branch{})
}

func (g *grove) catchUp(p Projection) {
	g.Helper()
	for more := true; more; {
		var err error
		more, err = CatchUp(g.Context(), g.tx, p, 100)
		require.NoError(g, err)
	}
}

// live are the entries that are live by the standing that is kept.
func (g *grove) live() (all map[int64]bool, s standing) {
	b, err := newUsageBatch(g.Context(), g.tx)
	require.NoError(g, err)
	s, err = b.standing(g.Context(), 1)
	require.NoError(g, err)
	all = map[int64]bool{}
	for n := s.leaf.n; n > 0; n = g.parents[n] {
		all[n] = true
	}
	for n := s.n + 1; n < int64(len(g.parents)); n++ {
		all[n] = true
	}
	return all, s
}

// requireSums holds each kept sum against the entries that are live, of those that the
// view has.
func (g *grove) requireSums(live map[int64]bool) {
	g.Helper()
	want := map[int]int64{}
	ns, err := Column[int64](g.Context(), g.tx, "SELECT n FROM usage")
	require.NoError(g, err)
	for _, n := range ns {
		counted := CountedAbandoned
		if live[n] {
			counted = CountedLive
		}
		want[counted] += n
	}
	for _, table := range []string{"usage_rollup", "usage_times", "usage_sessions", "usage_counted"} {
		for counted, input := range map[int]int64{CountedLive: want[CountedLive], CountedAbandoned: want[CountedAbandoned]} {
			var sum int64
			_, err := g.tx.Row(g.Context(), "SELECT coalesce(sum(input), 0) FROM "+table+" WHERE counted = ?", []any{counted}, &sum)
			require.NoError(g, err)
			require.Equal(g, input, sum, "%s, counted as %d", table, counted)
		}
	}
}

// The sums of a session follow its leaf in steps, none of which changes the side of more
// entries than it may, and hold at each for the leaf that they have come to.
func TestSumsFollowALeafInSteps(t *testing.T) {
	for seed := range uint64(5) {
		t.Run(fmt.Sprint("seed=", seed), func(t *testing.T) {
			r := rand.New(rand.NewPCG(seed, 1))
			g := newGrove(t)
			anywhere := func() int64 { return int64(r.IntN(len(g.parents))) } // 0: one more root
			for range 16 {
				// A part of the tree that the view does not have yet: a chain, a comb, twigs.
				back := 1 + r.IntN(3)
				for range r.IntN(40) {
					switch len(g.parents) % 20 {
					case 0:
						g.grow(anywhere())
					default:
						g.grow(max(int64(len(g.parents)-back), 0))
					}
				}
				g.grow(anywhere())
				before, _ := g.live()
				most := int64(1 + r.IntN(20))
				for steps := 0; ; steps++ {
					require.Less(t, steps, 2*len(g.parents), "it comes to an end")
					b, err := newUsageBatch(t.Context(), g.tx)
					require.NoError(t, err)
					left, err := b.approach(t.Context(), 1, g.seq, most)
					require.NoError(t, err)
					require.NoError(t, b.end(t.Context()))
					after, _ := g.live()
					g.requireSums(after)
					require.LessOrEqual(t, changes(before, after), most)
					if before = after; left > 0 {
						break
					}
				}
				g.catchUp(Usage{})
				after, kept := g.live()
				g.requireSums(after)
				require.LessOrEqual(t, changes(before, after), most)
				g.requireWay(after)

				// What is kept does not depend on how the view came there.
				require.NoError(t, Usage{}.Around(t.Context(), g.tx, 1, func() error { return nil }))
				_, anew := g.live()
				require.Equal(t, kept, anew)
				g.requireSums(after)
			}
		})
	}
}

// requireWay holds what is live against the way up from the last entry.
func (g *grove) requireWay(live map[int64]bool) {
	g.Helper()
	want := map[int64]bool{}
	for n := int64(len(g.parents) - 1); n > 0; n = g.parents[n] {
		want[n] = true
	}
	require.Equal(g, want, live)
}

func changes(a, b map[int64]bool) (n int64) {
	for k := range a {
		if !b[k] {
			n++
		}
	}
	for k := range b {
		if !a[k] {
			n++
		}
	}
	return n
}

// A view that lags applies moves of a session whose responses are also in one that has
// been deleted since: no segment tells that one's way any more.
func TestCopiesInASessionThatIsGone(t *testing.T) {
	g := newGrove(t)
	for parent := range int64(2 * askedOften) {
		g.grow(parent)
	}
	g.grow(2)
	g.exec("INSERT INTO sessions (key, id, created_at, cwd, source, header) VALUES (2, 'fork', '', '', 1, '{}')")
	g.exec("INSERT INTO events (seq, session, n, type, timestamp, payload) VALUES (?, 2, 0, 'session_forked', '', '{}')", g.seq+1)
	g.exec("INSERT INTO events (seq, session, n, id, parent, type, timestamp, payload) SELECT seq + ?, 2, n, id, parent, type, timestamp, payload FROM events WHERE session = 1 AND n > 0", g.seq)
	g.catchUp(Branch{})
	g.catchUp(Usage{})

	// The fork's leaf moves to the end of the chain; then its source goes.
	last, err := LastEvent(t.Context(), g.tx)
	require.NoError(t, err)
	n, end := len(g.parents), fmt.Sprint("e", 2*askedOften)
	g.exec("INSERT INTO events (seq, session, n, id, parent, type, timestamp, payload) VALUES (?, 2, ?, 'x', ?, 'custom', '', ?)",
		last+1, n, end, fmt.Sprintf(`{"type":"custom","id":"x","parentId":%q,"timestamp":"2026-01-01T00:00:00.000Z"}`, end))
	g.catchUp(Branch{})
	g.exec("INSERT INTO guards (session, reason, at) VALUES (1, '', '')")
	g.exec("DELETE FROM events WHERE session = 1")
	g.exec("DELETE FROM sessions WHERE key = 1")
	g.exec("INSERT INTO events (seq, session, n, type, timestamp, payload) VALUES (?, 1, 0, 'session_deleted', '', '{}')", last+2)
	g.catchUp(Branch{})
	for more := true; more; {
		more, err = CatchUp(t.Context(), g.tx, Usage{}, 1)
		require.NoError(t, err)
	}
	live := map[int64]bool{}
	for n := range int64(2*askedOften + 1) {
		live[n] = true
	}
	g.requireSums(live)
}
