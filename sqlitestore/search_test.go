package sqlitestore_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/sessiontree/sessiontree/eventlog"
	"github.com/sessiontree/sessiontree/eventlog/js"
	"github.com/sessiontree/sessiontree/query"
	"github.com/sessiontree/sessiontree/sqlitestore"
	"github.com/sessiontree/sessiontree/sqlitestore/sqlitestoretest"
)

// found are the entries that a search finds, in its order.
func found(t *testing.T, s *sqlitestore.Store, o query.SearchOptions) (ids []string) {
	t.Helper()
	hits, err := s.Search(t.Context(), o)
	require.NoError(t, err, "%q", o.Text)
	for _, h := range hits {
		ids = append(ids, h.Session+"/"+h.Entry)
	}
	return ids
}

func searchStore(t *testing.T) *sqlitestore.Store {
	t.Helper()
	s := sqlitestoretest.Open(t, sqlitestore.Options{Source: ticking(), Synchronous: sqlitestore.Normal})
	say := func(text string) string { return said("user", `,"content":`+js.Text(text).JSON()) }
	_, err := s.Add(t.Context(), eventlog.Metadata{ID: "s", CreatedAt: js.ISO(noon)}, madeChain(t,
		say("The parser: don't use the wrong-book. TODO: parseURLPath"), // e0
		say("重跑gen-itgc后，检查数据库"),                                        // e1
		said("assistant", `,"content":[{"type":"thinking","thinking":"Ein Gedanke"},{"type":"text","text":"use the db, Café"},{"type":"toolCall","id":"c","name":"bash","arguments":{"command":"grep -rn \"needle\nhay\" .","deep":[{"x":"buried"}]}}]`), // e2
		result("c", false, `[{"type":"text","text":"haystack: 3 matches"}]`),       // e3
		`"type":"compaction","summary":"summed up","tokensBefore":1`,               // e4
		`"type":"session_info","name":"The naming"`,                                // e5
		`"type":"label","targetId":"e0","label":"done"`,                            // e6
		say("half an emoji \xed\xa0\xbd? C:\\x  100% a_b NEAR( \"quoted\" * ガラス"))) // e7
	require.NoError(t, err)
	return s
}

// Whatever is typed is safe, and finds what it says.
func TestReport_L3_L4_WhatIsTypedIsFound(t *testing.T) {
	s := searchStore(t)
	for text, want := range map[string][]string{
		"parser":             {"s/e0"},
		"don't":              {"s/e0"},
		"wrong-book":         {"s/e0"},
		"WRONG BOOK":         {"s/e0"},
		"book-wrong":         nil,
		"book wrong":         {"s/e0"}, // two words, in any order
		"TODO:":              {"s/e0"},
		"parseUrlPath":       {"s/e0"},
		"parseurlpath":       {"s/e0"},
		"urlpath":            nil,
		"url":                {"s/e0"},
		"itgc":               {"s/e1"},
		"gen-itgc":           {"s/e1"},
		"重跑gen-itgc后":        {"s/e1"},
		"跑gen":               {"s/e1"},
		"数据":                 {"s/e1"},
		"据":                  {"s/e1"},
		"检查数据库":              {"s/e1"},
		"据数":                 nil,
		"db":                 {"s/e2"},
		"cafe":               {"s/e2"},
		"gedanke":            {"s/e2"},
		"needle hay":         {"s/e2"},
		"buried":             {"s/e2"},
		"3 matches":          {"s/e3"},
		"summed":             {"s/e4"},
		"naming":             {"s/e5"},
		"done":               {"s/e6"},
		"ガラス":                {"s/e7"},
		"ｶﾞﾗｽ":               {"s/e7"},
		"the":                {"s/e5", "s/e2", "s/e0"}, // the newest first
		"a":                  {"s/e7"},
		`C:\x`:               {"s/e7"},
		`"quoted"`:           {"s/e7"},
		"quoted*":            {"s/e7"},
		"NEAR(":              {"s/e7"},
		"NOT":                nil,
		"AND OR":             nil,
		"emoji \xed\xa0\xbd": {"s/e7"},
		`"`:                  nil,
		"*":                  nil,
		"":                   nil,
		"  \x00 ":            nil,
		"message: done":      nil,
		"' OR 1=1 --":        nil,
	} {
		require.Equal(t, want, found(t, s, query.SearchOptions{Text: text}), "%q", text)
		require.ElementsMatch(t, want, found(t, s, query.SearchOptions{Text: text, Rank: true}), "%q ranked", text)
	}
	long := strings.Repeat("the parser x-y-z 数据库", 5000)
	require.Empty(t, found(t, s, query.SearchOptions{Text: long}))
	require.Equal(t, []string{"s/e0"}, found(t, s, query.SearchOptions{Text: strings.Repeat("the parser ", 500)}))
}

func TestReport_L1_LoneSurrogatesAreSearchedAround(t *testing.T) {
	s := searchStore(t)
	hits, err := s.Search(t.Context(), query.SearchOptions{Text: "emoji"})
	require.NoError(t, err)
	require.Len(t, hits, 1)
	require.Contains(t, hits[0].Snippet, "half an emoji ")
}

func TestSearchFiltersAndShows(t *testing.T) {
	s := searchStore(t)
	ctx := t.Context()
	for text, want := range map[string][]eventlog.TextKind{
		"the": {eventlog.TextName, eventlog.TextMessage}, "hay": {eventlog.TextCall}, "haystack": {eventlog.TextResult},
		"done": {eventlog.TextLabel}, "summed": {eventlog.TextSummary},
	} {
		for _, k := range eventlog.TextKinds() {
			hits, err := s.Search(ctx, query.SearchOptions{Text: text, Kinds: []eventlog.TextKind{k}})
			require.NoError(t, err)
			require.Equal(t, slices.Contains(want, k), len(hits) > 0, "%s in %s", text, k)
			if len(hits) == 0 {
				continue
			}
			require.Equal(t, k, hits[0].Kind)
			m := hits[0].Marks[0]
			require.Equal(t, text, strings.ToLower(hits[0].Snippet[m[0]:m[1]]))
		}
	}
	_, err := s.Search(ctx, query.SearchOptions{Text: "x", Kinds: []eventlog.TextKind{"session"}})
	require.ErrorIs(t, err, eventlog.ErrInvalidArgument)
	_, err = s.Search(ctx, query.SearchOptions{Text: "x", Session: "nobody"})
	require.ErrorIs(t, err, eventlog.ErrNotFound)

	// A fork has the entries too; what it left is abandoned there.
	fork, err := s.Fork(ctx, eventlog.Metadata{ID: "s"}, eventlog.ForkOptions{CreateOptions: eventlog.CreateOptions{ID: "f"}})
	require.NoError(t, err)
	_, err = fork.MoveTo(ctx, eventlog.At("e0"), nil)
	require.NoError(t, err)
	live := func(session string) (all []bool) {
		hits, err := s.Search(ctx, query.SearchOptions{Text: "the", Session: session})
		require.NoError(t, err)
		for _, h := range hits {
			require.Equal(t, session, h.Session)
			all = append(all, h.Live)
		}
		return all
	}
	require.Equal(t, []bool{true, true, true}, live("s"))
	require.Equal(t, []bool{false, false, true}, live("f"))

	// Pages.
	var paged []string
	o := query.SearchOptions{Text: "the", Limit: 1}
	for {
		hits, err := s.Search(ctx, o)
		require.NoError(t, err)
		if len(hits) == 0 {
			break
		}
		paged, o.Before = append(paged, hits[0].Session+"/"+hits[0].Entry), hits[0].Cursor
	}
	require.Equal(t, []string{"s/e5", "s/e2", "s/e0"}, paged)

	// What is deleted is found no more.
	require.NoError(t, s.Delete(ctx, eventlog.Metadata{ID: "s"}))
	require.Equal(t, []string{"f/e5", "f/e2", "f/e0"}, found(t, s, query.SearchOptions{Text: "the"}))
}

func TestSearchQueries(t *testing.T) {
	s := searchStore(t)
	for text, want := range map[string][]string{
		`"use the"`:             {"s/e2", "s/e0"},
		`pars*`:                 {"s/e0"},
		`parser NOT book`:       nil,
		`needle OR summed`:      {"s/e4", "s/e2"},
		`label: done`:           {"s/e6"},
		`{label summary}: done`: {"s/e6"},
		`-label: done`:          nil,
		`NEAR(use book, 3)`:     {"s/e0"},
		`NEAR(use book, 1)`:     nil,
		`数据库 AND itgc`:          {"s/e1"},
		`Café`:                  {"s/e2"},
		``:                      nil,
	} {
		require.Equal(t, want, found(t, s, query.SearchOptions{Text: text, Syntax: true}), "%q", text)
	}
	for _, text := range []string{`"`, `AND`, `(`, `a NOT`, `session: x`, `nowhere: x`, `*`, "a\x00b OR"} {
		_, err := s.Search(t.Context(), query.SearchOptions{Text: text, Syntax: true})
		if err != nil {
			require.ErrorIs(t, err, eventlog.ErrInvalidArgument, "%q", text)
		}
	}
}

// What forks share is found once, where it was said; each fork's own is found too.
func TestSearchFindsWhatForksShareOnce(t *testing.T) {
	s := searchStore(t)
	ctx := t.Context()
	want := []string{"s/e5", "s/e2", "s/e0"}
	source := "s"
	for i := range 5 { // forks of forks, of the whole and of a branch
		id := fmt.Sprint("f", i)
		o := eventlog.ForkOptions{CreateOptions: eventlog.CreateOptions{ID: id}}
		if i%2 == 1 {
			o.EntryID, o.Position = "e2", eventlog.AtIt
		}
		fork, err := s.Fork(ctx, eventlog.Metadata{ID: source}, o)
		require.NoError(t, err)
		_, err = fork.Append(ctx, user("the fork's own").WithID("own"+id), user("nothing"), user("the last").WithID("last"+id))
		require.NoError(t, err)
		want, source = append([]string{id + "/last" + id, id + "/own" + id}, want...), id
	}
	// A session of the same ids that is no fork.
	_, err := s.Add(ctx, eventlog.Metadata{ID: "z", CreatedAt: js.ISO(noon)}, madeChain(t, saidBy("the stranger")))
	require.NoError(t, err)
	want = append([]string{"z/e0"}, want...)
	require.Equal(t, want, found(t, s, query.SearchOptions{Text: "the", Limit: 100}))
	require.ElementsMatch(t, want, found(t, s, query.SearchOptions{Text: "the", Limit: 100, Rank: true}))
	for limit := 1; limit < 6; limit++ {
		for _, rank := range []bool{false, true} {
			var paged []string
			o := query.SearchOptions{Text: "the", Limit: limit, Rank: rank}
			for {
				hits, err := s.Search(ctx, o)
				require.NoError(t, err)
				for _, h := range hits {
					paged = append(paged, h.Session+"/"+h.Entry)
				}
				if len(hits) < limit {
					break
				}
				if o.Before = hits[limit-1].Cursor; rank {
					o.Before, o.Skip = 0, int(hits[limit-1].Cursor)
				}
			}
			if !rank {
				require.Equal(t, want, paged, "pages of %d", limit)
			}
			require.ElementsMatch(t, want, paged, "pages of %d, rank %v", limit, rank)
		}
	}
	require.Equal(t, []string{"f0/lastf0", "f0/ownf0", "f0/e5", "f0/e2", "f0/e0"}, found(t, s, query.SearchOptions{Text: "the", Session: "f0"}))
	// What its session took along is found in the fork that has it.
	require.NoError(t, s.Delete(ctx, eventlog.Metadata{ID: "s"}))
	require.Equal(t, append(slices.Clone(want[:len(want)-3]), "f0/e5", "f0/e2", "f0/e0"), found(t, s, query.SearchOptions{Text: "the", Limit: 100}))
}

func saidBy(text string) string { return said("user", `,"content":`+js.Text(text).JSON()) }

// treeOf draws a session in which every third entry goes back, and gives what stands
// on the way from its last entry to the root. A twist makes it irregular.
func treeOf(t *testing.T, r *rand.Rand, size int, twist bool) (all []eventlog.Entry, live map[string]bool) {
	t.Helper()
	parents := map[string]string{}
	for i := range size {
		id, parent := fmt.Sprint("e", i), fmt.Sprint("e", i-1)
		switch {
		case i > 0 && r.IntN(3) == 0:
			parent = fmt.Sprint("e", r.IntN(i))
		case twist && i == size/2:
			parent = fmt.Sprint("e", size-1) // comes later
		}
		text := strconv.Quote(parent)
		if i == 0 {
			text = "null"
		}
		body := saidBy("needle")
		if i%20 == 19 {
			body = `"type":"compaction","summary":"needle","tokensBefore":1`
		}
		e, err := eventlog.ParseEntry(fmt.Sprintf(`{"id":%q,"parentId":%s,"timestamp":"2026-01-01T00:00:00.000Z",%s}`, id, text, body))
		require.NoError(t, err)
		all, parents[id] = append(all, e), parent
	}
	live = map[string]bool{}
	for id := all[size-1].ID(); parents[id] != "" && !live[id]; id = parents[id] {
		live[id] = true
	}
	return all, live
}

func TestHitsAreLiveOnTheWayFromTheLeaf(t *testing.T) {
	s := sqlitestoretest.Open(t, sqlitestore.Options{Synchronous: sqlitestore.Normal})
	seed := uint64(time.Now().UnixNano())
	t.Log("seed", seed)
	r := rand.New(rand.NewPCG(seed, 3))
	want := map[string]bool{}
	for i := range 12 {
		session := fmt.Sprint("s", i)
		entries, live := treeOf(t, r, []int{1, 40, 300}[i%3], i == 7)
		_, err := s.Add(t.Context(), eventlog.Metadata{ID: session, CreatedAt: js.ISO(noon)}, entries)
		require.NoError(t, err)
		for _, e := range entries {
			want[session+"/"+e.ID()] = live[e.ID()]
		}
	}
	for _, rank := range []bool{false, true} {
		got := map[string]bool{}
		hits, err := s.Search(t.Context(), query.SearchOptions{Text: "needle", Limit: 10_000, Rank: rank})
		require.NoError(t, err)
		for _, h := range hits {
			got[h.Session+"/"+h.Entry] = h.Live
		}
		require.Equal(t, want, got)
	}
	// Without a leaf nothing is live.
	session, err := s.Open(t.Context(), eventlog.Metadata{ID: "s2"})
	require.NoError(t, err)
	_, err = session.MoveTo(t.Context(), eventlog.None(), nil)
	require.NoError(t, err)
	hits, err := s.Search(t.Context(), query.SearchOptions{Text: "needle", Session: "s2"})
	require.NoError(t, err)
	require.Len(t, hits, 20)
	for _, h := range hits {
		require.False(t, h.Live, h.Entry)
	}
}
