package query

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/jmoiron/sqlx"
	"github.com/pressly/goose/v3"
	"github.com/stretchr/testify/require"

	"github.com/sessiontree/sessiontree/eventlog"
	"github.com/sessiontree/sessiontree/migrations"
	"github.com/sessiontree/sessiontree/projections"
)

// forest is a log of several sessions, with the branch views applied to it.
type forest struct {
	t      *testing.T
	tx     *projections.Tx
	seq    int64
	ns     map[int64]int
	parent map[string]string // by "session/id"
	ids    map[int64][]string
	log    []projections.Event // not applied yet
}

func newForest(t *testing.T, sessions int) *forest {
	db, err := sqlx.Open("sqlite", ":memory:")
	require.NoError(t, err)
	t.Cleanup(func() { db.Close() })
	db.SetMaxOpenConns(1)
	provider, err := goose.NewProvider(goose.DialectSQLite3, db.DB, migrations.FS)
	require.NoError(t, err)
	_, err = provider.Up(t.Context())
	require.NoError(t, err)
	conn, err := db.Connx(t.Context())
	require.NoError(t, err)
	f := &forest{t: t, tx: projections.NewTx(conn), ns: map[int64]int{}, parent: map[string]string{}, ids: map[int64][]string{}}
	t.Cleanup(func() { f.tx.CloseConn() })
	for s := range int64(sessions) {
		f.write(projections.Event{Session: s + 1, Type: projections.SessionCreated}, "", "{}")
	}
	return f
}

func (f *forest) write(e projections.Event, id, payload string) {
	f.seq++
	e.Seq = f.seq
	var there any
	if e.N > 0 {
		e.Entry = eventlog.TrustedEntry(payload)
		there = id
	}
	_, err := f.tx.Exec(f.t.Context(), "INSERT INTO events (seq, session, n, id, type, timestamp, payload) VALUES (?, ?, ?, ?, 'message', '', ?)", e.Seq, e.Session, e.N, there, payload)
	require.NoError(f.t, err)
	f.log = append(f.log, e)
}

// append adds an entry below another, "" for a root.
func (f *forest) append(session int64, parent string) string {
	f.ns[session]++
	id, up := fmt.Sprintf("e%d", f.ns[session]), "null"
	if parent != "" {
		up = fmt.Sprintf("%q", parent)
	}
	f.write(projections.Event{Session: session, N: f.ns[session]}, id,
		fmt.Sprintf(`{"type":"message","id":%q,"parentId":%s,"timestamp":"t","message":{"role":"user","content":"x"}}`, id, up))
	f.parent[fmt.Sprint(session, "/", id)] = parent
	f.ids[session] = append(f.ids[session], id)
	return id
}

// apply applies what was appended, in batches of different sizes.
func (f *forest) apply() {
	for size := 1; len(f.log) > 0; size = size*2 + 1 {
		n := min(size, len(f.log))
		require.NoError(f.t, projections.Branch{}.Apply(f.t.Context(), f.tx, f.log[:n]))
		f.log = f.log[n:]
	}
}

// way is the path to an entry by the parents alone, root first.
func (f *forest) way(session int64, id string) (up []string) {
	for ; id != ""; id = f.parent[fmt.Sprint(session, "/", id)] {
		up = append(up, id)
	}
	slices.Reverse(up)
	return up
}

func ids(entries []eventlog.Entry) (ids []string) {
	for _, e := range entries {
		ids = append(ids, e.ID())
	}
	return ids
}

// TestEveryPlanReadsTheSameBranch grows the trees of several sessions at once, in
// shapes from a chain to one fork an entry, and reads each branch in each way,
// from segments that are kept, that were kept earlier, and that are not.
func TestEveryPlanReadsTheSameBranch(t *testing.T) {
	ctx := context.Background()
	for _, shape := range []struct {
		sessions int
		back     float64 // how often an entry goes elsewhere than below the last
		change   float64 // how often another session goes on
	}{
		{1, 0, 0}, {1, 0.02, 0}, {1, 0.9, 0}, {3, 0, 0.05}, {3, 0.1, 0.9}, {3, 0.6, 0.3}, {2, 0.9, 1},
	} {
		t.Run(fmt.Sprint(shape), func(t *testing.T) {
			r := rand.New(rand.NewPCG(7, uint64(shape.sessions)))
			f := newForest(t, shape.sessions)
			kept := NewSegments(1000).Of(1)
			session := int64(1)
			leaf := map[int64]string{}
			for step := range 240 {
				if r.Float64() < shape.change {
					session = 1 + r.Int64N(int64(shape.sessions))
				}
				if all := f.ids[session]; r.Float64() < shape.back && len(all) > 0 {
					leaf[session] = append(all, "")[r.IntN(len(all)+1)]
				}
				leaf[session] = f.append(session, leaf[session])
				if step%80 != 79 {
					continue
				}
				f.apply()
				for s, all := range f.ids {
					for _, id := range all {
						f.check(ctx, kept, s, id, r)
					}
				}
			}
		})
	}
}

func (f *forest) check(ctx context.Context, kept Ways, session int64, id string, r *rand.Rand) {
	t, want := f.t, f.way(session, id)
	p, err := Locate(ctx, f.tx, session, id)
	require.NoError(t, err)
	require.Equal(t, int64(len(want)-1), p.Depth, id)
	stop := r.Int64N(p.Depth + 1)
	want = want[stop:]
	got, err := Branch(ctx, f.tx, eventlog.Harness, kept, p, stop)
	require.NoError(t, err)
	require.Equal(t, want, ids(got), "session %d, %s from depth %d", session, id, stop)

	spans, err := NewSegments(r.IntN(20)).Of(1).path(ctx, f.tx, p, stop)
	require.NoError(t, err)
	slices.Reverse(spans)
	for _, way := range []plan{{}, {short: true}, {dense: true}, {short: true, dense: true}} {
		if way.dense && !planOf(spans).dense {
			continue
		}
		got, err := way.read(ctx, f.tx, eventlog.Harness, spans)
		require.NoError(t, err)
		require.Equal(t, want, ids(got), "session %d, %s from depth %d, %+v", session, id, stop, way)
	}

	f.checkBelow(ctx, session, id, 1+r.IntN(30))

	up := p.Depth - r.Int64N(p.Depth+1)
	a, ok, err := AncestorAt(ctx, f.tx, p, up)
	require.NoError(t, err)
	require.True(t, ok)
	above, err := Locate(ctx, f.tx, session, f.way(session, id)[up])
	require.NoError(t, err)
	require.Equal(t, above, a)
}

// checkBelow compares the children and descendants of an entry, in pages, with
// what the parents say.
func (f *forest) checkBelow(ctx context.Context, session int64, id string, page int) {
	t := f.t
	p, err := Locate(ctx, f.tx, session, id)
	require.NoError(t, err)
	var want, got []string
	below := map[string]bool{id: true}
	all := 0
	for _, e := range f.ids[session] {
		parent := f.parent[fmt.Sprint(session, "/", e)]
		if parent == id {
			want = append(want, e)
		}
		if below[parent] {
			below[e] = true
			all++
		}
	}
	for after := int64(0); ; {
		entries, next, err := Children(ctx, f.tx, eventlog.Harness, p, after, page)
		require.NoError(t, err)
		require.LessOrEqual(t, len(entries), page)
		got = append(got, ids(entries)...)
		if after = next; after == 0 {
			break
		}
	}
	require.Equal(t, want, got, "children of %s in %d", id, session)

	seen := map[string]bool{id: true}
	for from := (Cursor{}); ; {
		entries, next, err := Descendants(ctx, f.tx, eventlog.Harness, p, from, page)
		require.NoError(t, err)
		require.LessOrEqual(t, len(entries), page)
		for _, e := range ids(entries) {
			require.True(t, below[e], "%s is below %s", e, id)
			require.False(t, seen[e], "%s comes once", e)
			require.True(t, seen[f.parent[fmt.Sprint(session, "/", e)]], "%s comes behind its parent", e)
			seen[e] = true
		}
		if from = next; from == (Cursor{}) {
			break
		}
	}
	require.Len(t, seen, all+1)
}
