package sqlitestore_test

import (
	"database/sql"
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/sessiontree/sessiontree/eventlog"
	"github.com/sessiontree/sessiontree/eventlog/js"
	"github.com/sessiontree/sessiontree/eventlog/memory"
	"github.com/sessiontree/sessiontree/sqlitestore"
	"github.com/sessiontree/sessiontree/sqlitestore/sqlitestoretest"
)

// TestSessionsThatTakeTurns lets several sessions grow in one log, in steps of
// different lengths, with forks and a deletion in between, and compares all
// answers of each with the reference, and the closure in SQL with the parents.
func TestSessionsThatTakeTurns(t *testing.T) {
	seeds := []uint64{1, uint64(time.Now().UnixNano())}
	if testing.Short() {
		seeds = seeds[:1]
	}
	for _, seed := range seeds {
		t.Run(fmt.Sprintf("seed=%d", seed), func(t *testing.T) { takeTurns(t, seed) })
	}
}

func takeTurns(t *testing.T, seed uint64) {
	r := rand.New(rand.NewPCG(seed, seed))
	n := 0
	source := eventlog.Source{
		Now:   func() time.Time { return time.Unix(1767225600, 0) },
		NewID: func() string { n++; return fmt.Sprintf("e%d", n) },
	}
	path := filepath.Join(t.TempDir(), "sessions.db")
	store := sqlitestoretest.OpenAt(t, path, sqlitestore.Options{Source: source, Synchronous: sqlitestore.Normal})
	repos := [2]eventlog.Repo{memory.NewRepo(source), store}
	var sessions [][2]*eventlog.Session
	both := func(f func(i int) error) {
		before := n
		var errs [2]error
		for i := range repos {
			n = before // the same ids for both
			errs[i] = f(i)
		}
		require.Equal(t, errs[0], errs[1])
	}
	create := func(from int) {
		var made [2]*eventlog.Session
		both(func(i int) (err error) {
			o := eventlog.CreateOptions{ID: fmt.Sprint("s", len(sessions)), CWD: "/project"}
			if from < 0 {
				made[i], err = repos[i].Create(ctx, o)
				return err
			}
			m, err := sessions[from][i].Metadata(ctx)
			require.NoError(t, err)
			made[i], err = repos[i].Fork(ctx, m, eventlog.ForkOptions{CreateOptions: o})
			return err
		})
		sessions = append(sessions, made)
	}
	for range 4 {
		create(-1)
	}
	ids := make([][]string, 8)
	for step := range 240 {
		at := r.IntN(len(sessions))
		var drafts []eventlog.Draft
		for range 1 + r.IntN(4)*r.IntN(4) {
			drafts = append(drafts, eventlog.MessageDraft(benchMessage(step)))
		}
		if len(ids[at]) > 0 {
			pick := func() string { return ids[at][r.IntN(len(ids[at]))] }
			switch r.IntN(6) {
			case 0, 1:
				drafts[0] = drafts[0].Under(eventlog.At(pick()))
			case 2:
				drafts = append(drafts, eventlog.CompactionDraft(eventlog.Compaction{Summary: "s", FirstKeptEntryID: js.Text(pick())}))
			case 3:
				drafts = append(drafts, eventlog.LabelDraft(pick(), js.Text("here")))
			}
		}
		var written [2][]eventlog.Entry
		both(func(i int) (err error) {
			written[i], err = sessions[at][i].Append(ctx, drafts...)
			return err
		})
		for _, e := range written[0] {
			ids[at] = append(ids[at], e.ID())
		}
		switch step {
		case 100, 150:
			create(at)
			ids[len(sessions)-1] = slices.Clone(ids[at])
		case 180:
			m, err := sessions[0][1].Metadata(ctx)
			require.NoError(t, err)
			require.NoError(t, store.Delete(ctx, m))
			sessions, ids = sessions[1:], ids[1:]
		case 200:
			require.NoError(t, store.Rebuild(ctx))
		}
	}
	for i, s := range sessions {
		if len(ids[i]) > 0 {
			sameAnswers(t, s[0], s[1], ids[i])
		}
	}
	closure(t, path)
}

// closure compares v_ancestors with the parents.
func closure(t *testing.T, path string) {
	db, err := sql.Open("sqlite", path)
	require.NoError(t, err)
	defer db.Close()
	query := func(text string, args ...any) (found [][2]int64) {
		rows, err := db.Query(text, args...)
		require.NoError(t, err)
		defer rows.Close()
		for rows.Next() {
			var pair [2]int64
			require.NoError(t, rows.Scan(&pair[0], &pair[1]))
			found = append(found, pair)
		}
		require.NoError(t, rows.Err())
		return found
	}
	parent := map[int64]int64{}
	for _, pair := range query("SELECT e.seq, coalesce(p.seq, 0) FROM events e LEFT JOIN events p ON p.session = e.session AND p.id = e.parent WHERE e.n > 0") {
		parent[pair[0]] = pair[1]
	}
	require.NotEmpty(t, parent)
	for seq := range parent {
		var want [][2]int64
		for up := parent[seq]; up != 0; up = parent[up] {
			want = append(want, [2]int64{up, int64(len(want) + 1)})
		}
		require.Equal(t, want, query("SELECT ancestor, distance FROM v_ancestors WHERE entry = ? ORDER BY distance", seq))
	}
}
