package sqlitestore_test

import (
	"fmt"
	"iter"
	"math/rand/v2"
	"os"
	"slices"
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/sessiontree/sessiontree/eventlog"
	"github.com/sessiontree/sessiontree/eventlog/js"
	"github.com/sessiontree/sessiontree/eventlog/memory"
	"github.com/sessiontree/sessiontree/sqlitestore"
	"github.com/sessiontree/sessiontree/sqlitestore/sqlitestoretest"
)

// TestRandomHistoriesAnswerAsTheReference applies the same random history to the
// reference backend and to the store, and compares every answer, with forks,
// rebuilds and ancestry. A seed that fails can be run alone with
// SESSIONTREE_SEED.
func TestRandomHistoriesAnswerAsTheReference(t *testing.T) {
	seeds := []uint64{1, 2, 3, 4, 5, 6, uint64(time.Now().UnixNano())}
	if testing.Short() {
		seeds = seeds[3:5]
	}
	if s, err := strconv.ParseUint(os.Getenv("SESSIONTREE_SEED"), 10, 64); err == nil {
		seeds = []uint64{s}
	}
	for _, seed := range seeds {
		t.Run(fmt.Sprintf("seed=%d", seed), func(t *testing.T) { history(t, seed) })
	}
}

func history(t *testing.T, seed uint64) {
	r := rand.New(rand.NewPCG(seed, seed))
	clock := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	n := 0
	source := eventlog.Source{
		Now:   func() time.Time { return clock.Add(time.Duration(n) * time.Second) },
		NewID: func() string { n++; return fmt.Sprintf("e%d", n) },
	}
	store := sqlitestoretest.Open(t, sqlitestore.Options{Source: source, Synchronous: sqlitestore.Normal})
	repos := []eventlog.Repo{memory.NewRepo(source), store}
	sessions := make([]*eventlog.Session, 2)
	for i, repo := range repos {
		s, err := repo.Create(ctx, eventlog.CreateOptions{ID: "s", CWD: "/project"})
		require.NoError(t, err)
		sessions[i] = s
	}
	ids := []string{"no-such-entry"}
	pick := func() string { return ids[r.IntN(len(ids))] }
	for step := range 150 {
		var drafts []eventlog.Draft
		var raw string
		move := eventlog.None()
		op := r.IntN(20)
		switch {
		case op < 8:
			drafts = append(drafts, eventlog.MessageDraft(benchMessage(step)))
		case op < 9:
			drafts = append(drafts, eventlog.LabelDraft(pick(), js.Text([]string{"", " x ", "y"}[r.IntN(3)])))
		case op < 10:
			drafts = append(drafts, eventlog.NameDraft(fmt.Sprint("name ", step)))
		case op < 12:
			c := eventlog.Compaction{Summary: "s", FirstKeptEntryID: []js.Value{{}, js.NullValue(), js.Text(pick()), js.Text(pick()), js.Text(pick())}[r.IntN(5)]}
			if r.IntN(4) == 0 {
				c.RetainedTail = js.List()
			}
			drafts = append(drafts, eventlog.CompactionDraft(c))
		case op < 15:
			drafts = append(drafts, eventlog.MessageDraft(benchMessage(step)).Under(eventlog.At(pick())), eventlog.ThinkingLevelDraft("high"))
		case op < 19:
			if r.IntN(10) > 0 {
				move = eventlog.At(pick())
			}
		case seed%2 == 0:
			// Holes, and in one of two histories what no append of ours can write: an id
			// twice, a parent behind its child, a parent that is itself.
			id, parent := fmt.Sprintf("raw%d", step), fmt.Sprintf("hole%d", r.IntN(3))
			if seed%4 == 0 {
				id, parent = []string{pick(), id, fmt.Sprintf("hole%d", r.IntN(3))}[r.IntN(3)], []string{pick(), id, parent}[r.IntN(3)]
			}
			raw = fmt.Sprintf(`{"type":"message","id":%q,"parentId":%q,"timestamp":"t","message":{"role":"user","content":"raw"}}`, id, parent)
		}
		before := n
		var results [2][]eventlog.Entry
		var errs [2]error
		for i, s := range sessions {
			n = before // the same ids and times for both
			switch {
			case raw != "":
				e, err := eventlog.ParseEntry(raw)
				require.NoError(t, err)
				errs[i], results[i] = s.Storage().AppendRaw(ctx, e), []eventlog.Entry{e}
			case drafts != nil:
				results[i], errs[i] = s.Append(ctx, drafts...)
			default:
				var summary *eventlog.Summary
				if step%3 == 0 {
					summary = &eventlog.Summary{Text: "left"}
				}
				results[i], errs[i] = s.MoveTo(ctx, move, summary)
			}
		}
		require.Equal(t, errs[0], errs[1], "step %d", step)
		require.Equal(t, results[0], results[1], "step %d", step)
		for _, e := range results[0] {
			ids = append(ids, e.ID())
		}
		if step%50 == 49 {
			require.NoError(t, store.Rebuild(ctx))
		}
	}
	sameAnswers(t, sessions[0], sessions[1], ids)
	for _, o := range []eventlog.ForkOptions{{}, {EntryID: pick(), Position: eventlog.AtIt}, {EntryID: pick()}} {
		var forks [2]*eventlog.Session
		var errs [2]error
		o.ID = "fork-" + o.EntryID + string(o.Position)
		for i, repo := range repos {
			m, err := sessions[i].Metadata(ctx)
			require.NoError(t, err)
			forks[i], errs[i] = repo.Fork(ctx, m, o)
		}
		require.Equal(t, errs[0], errs[1])
		if errs[0] == nil {
			sameAnswers(t, forks[0], forks[1], ids)
		}
	}
}

// answer is a value or the error that stands in its place.
type answer struct {
	value any
	code  eventlog.Code
	text  string
}

func answered[T any](value T, err error) answer {
	if err != nil {
		return answer{nil, eventlog.CodeOf(err), err.Error()}
	}
	return answer{value: value}
}

func sameAnswers(t *testing.T, reference, store *eventlog.Session, ids []string) {
	t.Helper()
	ask := func(what string, question func(s *eventlog.Session) answer) {
		t.Helper()
		require.Equal(t, question(reference), question(store), what)
	}
	ask("head", func(s *eventlog.Session) answer { return answered(s.Head(ctx)) })
	ask("labels", func(s *eventlog.Session) answer { return answered(s.Labels(ctx)) })
	ask("name", func(s *eventlog.Session) answer { return answered(s.Name(ctx)) })
	ask("stats", func(s *eventlog.Session) answer { return answered(s.Stats(ctx)) })
	ask("tree", func(s *eventlog.Session) answer { return answered(s.Tree(ctx)) })
	ask("skeleton", func(s *eventlog.Session) answer { return answered(s.Skeleton(ctx)) })
	for _, id := range ids {
		ask("branch of "+id, func(s *eventlog.Session) answer { return answered(s.Branch(ctx, eventlog.At(id))) })
		ask("context of "+id, func(s *eventlog.Session) answer { return answered(s.BuildContext(ctx, eventlog.At(id))) })
	}
	sameBelow(t, reference, store.Storage().(*sqlitestore.Storage), ids)
	up := map[string][]string{}
	for _, id := range ids {
		up[id] = wayUp(t, reference, id)
	}
	places := store.Storage().(*sqlitestore.Storage)
	for i := range 5 * len(ids) {
		a, b := ids[i*31%len(ids)], ids[i*17%len(ids)]
		if len(up[a]) == 0 || len(up[b]) == 0 {
			continue
		}
		want := eventlog.None()
		for _, id := range up[b] {
			if slices.Contains(up[a], id) {
				want = eventlog.At(id)
				break
			}
		}
		got, err := places.CommonAncestor(ctx, a, b)
		require.NoError(t, err)
		require.Equal(t, want, got, "common ancestor of %s and %s", a, b)
		above, err := places.IsAncestor(ctx, a, b)
		require.NoError(t, err)
		require.Equal(t, slices.Contains(up[b], a), above, "%s above %s", a, b)
	}
}

// wayUp is an entry's id and those above it, deepest first, by the parents alone.
func wayUp(t *testing.T, s *eventlog.Session, id string) (up []string) {
	for !slices.Contains(up, id) {
		e, err := s.Entry(ctx, id)
		if eventlog.CodeOf(err) == eventlog.NotFound {
			break
		}
		require.NoError(t, err)
		up = append(up, id)
		if id = e.Parent().ID(); id == "" {
			break
		}
	}
	return up
}

// sameBelow compares the children and descendants of entries with the log.
func sameBelow(t *testing.T, reference *eventlog.Session, store *sqlitestore.Storage, ids []string) {
	children := map[string][]string{}
	there := map[string]bool{}
	for e, err := range reference.Entries(ctx, 0, eventlog.All) {
		require.NoError(t, err)
		there[e.ID()] = true
		if parent := e.Parent().ID(); parent != "" {
			children[parent] = append(children[parent], e.ID())
		}
	}
	collect := func(entries iter.Seq2[eventlog.Entry, error]) (got []string, err error) {
		for e, err := range entries {
			if err != nil {
				return nil, err
			}
			got = append(got, e.ID())
		}
		return got, nil
	}
	for _, id := range ids {
		got, err := collect(store.Children(ctx, id))
		below, errBelow := collect(store.Descendants(ctx, id))
		if !there[id] {
			require.Equal(t, eventlog.NotFound, eventlog.CodeOf(err))
			require.Equal(t, eventlog.NotFound, eventlog.CodeOf(errBelow))
			continue
		}
		require.NoError(t, err)
		require.NoError(t, errBelow)
		require.Equal(t, children[id], got, "children of %s", id)
		var want []string
		seen := map[string]bool{id: true}
		for next := []string{id}; len(next) > 0; next = next[1:] {
			for _, child := range children[next[0]] {
				if !seen[child] {
					seen[child] = true
					want, next = append(want, child), append(next, child)
				}
			}
		}
		require.ElementsMatch(t, want, below, "descendants of %s", id)
	}
}
