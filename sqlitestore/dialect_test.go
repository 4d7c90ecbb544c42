package sqlitestore_test

import (
	"bytes"
	"context"
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/sessiontree/sessiontree/eventlog"
	"github.com/sessiontree/sessiontree/eventlog/js"
	"github.com/sessiontree/sessiontree/eventlog/memory"
	"github.com/sessiontree/sessiontree/sqlitestore"
	"github.com/sessiontree/sessiontree/sqlitestore/sqlitestoretest"
)

// agentWalk does what a session of the coding agent does, the same on any session
// with the same seed: messages, settings, compactions that keep something, edits,
// labels, moves.
func agentWalk(t *testing.T, s *eventlog.Session, r *rand.Rand, steps int) (ids []string) {
	t.Helper()
	ctx := context.Background()
	at := time.UnixMilli(1767225600000)
	some := func() string { return ids[r.IntN(len(ids))] }
	for i := range steps {
		id := fmt.Sprintf("e%03d", i)
		var d eventlog.Draft
		switch n := r.IntN(20); {
		case i == 0 || n < 8:
			role := eventlog.UserMessage(fmt.Sprint("question ", i), at)
			if i%2 == 1 {
				role = eventlog.AssistantMessage(fmt.Sprint("answer ", i), "acme", fmt.Sprint("m-", r.IntN(3)), eventlog.Usage{Input: 1.5, Output: 2, CacheRead: 3, Cost: 0.1}, at)
			}
			d = eventlog.MessageDraft(role)
		case n < 10:
			d = eventlog.ThinkingLevelDraft([]string{"off", "low", "high"}[r.IntN(3)])
		case n < 11:
			d = eventlog.ModelDraft("other", fmt.Sprint("set-", r.IntN(2)))
		case n < 13:
			d = eventlog.CompactionDraft(eventlog.Compaction{Summary: fmt.Sprint("summary ", i), FirstKeptEntryID: js.Text(some()), TokensBefore: 10})
		case n < 14:
			d = eventlog.LabelDraft(some(), js.Text(fmt.Sprint(" l", i%3)))
		case n < 15:
			d = eventlog.ContextEditDraft(some(), js.NullValue())
		case n < 16:
			d = eventlog.UsageDraft(eventlog.UsageEntry{Kind: "k", Provider: "acme", Model: "m-0", Usage: js.Trusted(`{"input":1,"output":1,"cacheRead":1,"cacheWrite":1,"cost":{"total":0.5}}`)})
		default:
			to := eventlog.At(some())
			if n == 19 && r.IntN(4) == 0 {
				to = eventlog.None()
			}
			moved, err := s.MoveTo(ctx, to, nil)
			require.NoError(t, err)
			require.True(t, moved[0].IsMove())
			continue
		}
		_, err := s.Append(ctx, d.WithID(id).WithTime(at.Add(time.Duration(i)*time.Second)))
		require.NoError(t, err)
		ids = append(ids, id)
	}
	return ids
}

// agentAnswers are what a session answers, of itself and from each entry.
func agentAnswers(t *testing.T, s *eventlog.Session, ids []string) string {
	t.Helper()
	ctx := context.Background()
	var b bytes.Buffer
	head, err := s.Head(ctx)
	require.NoError(t, err)
	stats, err := s.Stats(ctx)
	require.NoError(t, err)
	labels, err := s.Labels(ctx)
	require.NoError(t, err)
	fmt.Fprintln(&b, head, stats, labels)
	for _, from := range append([]eventlog.Ref{eventlog.None()}, refs(ids)...) {
		branch, err := s.Branch(ctx, from)
		require.NoError(t, err)
		c, err := s.BuildContext(ctx, from)
		require.NoError(t, err)
		fmt.Fprint(&b, from, " ")
		for _, e := range branch {
			fmt.Fprint(&b, e.ID(), " ")
		}
		fmt.Fprint(&b, c.ThinkingLevel.JSON())
		if c.Model != nil {
			fmt.Fprint(&b, c.Model.Provider.JSON(), c.Model.ID.JSON())
		}
		for _, m := range c.Messages {
			fmt.Fprint(&b, m.JSON())
		}
		fmt.Fprintln(&b)
	}
	return b.String()
}

func refs(ids []string) (refs []eventlog.Ref) {
	for _, id := range ids {
		refs = append(refs, eventlog.At(id))
	}
	return refs
}

// A session of the coding agent answers in the database what it answers in memory,
// live, opened again, forked and rebuilt.
func TestTheCodingAgentsSessionsAreAnsweredAsInMemory(t *testing.T) {
	for seed := range uint64(8) {
		t.Run(fmt.Sprint("seed ", seed), func(t *testing.T) {
			ctx := t.Context()
			store := sqlitestoretest.Open(t, sqlitestore.Options{Synchronous: sqlitestore.Normal})
			o := eventlog.CreateOptions{ID: "agent", CWD: "/project", Dialect: eventlog.CodingAgent}
			s, err := store.Create(ctx, o)
			require.NoError(t, err)
			reference, err := memory.NewRepo(eventlog.Source{}).Create(ctx, o)
			require.NoError(t, err)
			ids := agentWalk(t, s, rand.New(rand.NewPCG(seed, 1)), 150)
			agentWalk(t, reference, rand.New(rand.NewPCG(seed, 1)), 150)
			want := agentAnswers(t, reference, ids)
			require.Equal(t, want, agentAnswers(t, s, ids), "live")

			again, err := store.Open(ctx, eventlog.Metadata{ID: "agent"})
			require.NoError(t, err)
			assert.Equal(t, eventlog.CodingAgent, again.Dialect())
			require.Equal(t, want, agentAnswers(t, again, ids), "opened again")
			require.NoError(t, store.Rebuild(ctx))
			require.Equal(t, want, agentAnswers(t, again, ids), "rebuilt")

			fork, err := store.Fork(ctx, eventlog.Metadata{ID: "agent"}, eventlog.ForkOptions{CreateOptions: eventlog.CreateOptions{ID: "fork"}})
			require.NoError(t, err)
			_, err = reference.MoveTo(ctx, eventlog.At(ids[len(ids)-1]), nil) // where a fork begins
			require.NoError(t, err)
			require.Equal(t, agentAnswers(t, reference, ids), agentAnswers(t, fork, ids), "forked")
		})
	}
}

// A move of the leaf is no entry: what is exported for Pi has none that it would
// misread, and the leaf is there when the session is opened again.
func TestAMoveIsNoEntryOfTheCodingAgents(t *testing.T) {
	ctx := t.Context()
	store := sqlitestoretest.Open(t, sqlitestore.Options{Synchronous: sqlitestore.Normal})
	s, err := store.Create(ctx, eventlog.CreateOptions{ID: "agent", Dialect: eventlog.CodingAgent})
	require.NoError(t, err)
	first, err := s.AppendMessage(ctx, eventlog.UserMessage("one", time.UnixMilli(1)))
	require.NoError(t, err)
	_, err = s.AppendMessage(ctx, eventlog.UserMessage("two", time.UnixMilli(2)))
	require.NoError(t, err)
	_, err = s.MoveTo(ctx, eventlog.At(first.ID()), nil)
	require.NoError(t, err)
	var file bytes.Buffer
	require.NoError(t, store.Export(ctx, "agent", &file))
	assert.Equal(t, 3, bytes.Count(file.Bytes(), []byte("\n")))
	assert.NotContains(t, file.String(), `"leaf"`)
	again, err := store.Open(ctx, eventlog.Metadata{ID: "agent"})
	require.NoError(t, err)
	head, err := again.Head(ctx)
	require.NoError(t, err)
	assert.Equal(t, eventlog.Head{Leaf: eventlog.At(first.ID()), N: 2}, head)
}

// Converting there and back gives the answers that there were, and tells what
// changes between.
func TestConvert(t *testing.T) {
	ctx := t.Context()
	store := sqlitestoretest.Open(t, sqlitestore.Options{Synchronous: sqlitestore.Normal})
	s, err := store.Create(ctx, eventlog.CreateOptions{ID: "harness"})
	require.NoError(t, err)
	question, err := s.AppendMessage(ctx, eventlog.UserMessage("one", time.UnixMilli(1)))
	require.NoError(t, err)
	_, err = s.AppendMessage(ctx, eventlog.UserMessage("two", time.UnixMilli(2)))
	require.NoError(t, err)
	_, err = s.AppendCompaction(ctx, eventlog.Compaction{Summary: "so far"})
	require.NoError(t, err)
	older, err := s.AppendMessage(ctx, eventlog.UserMessage("three", time.UnixMilli(3)))
	require.NoError(t, err)
	// Keeps from before an older compaction: the branch is cut there, and the entries
	// are not found, in the harness's dialect alone.
	newest, err := s.AppendCompaction(ctx, eventlog.Compaction{Summary: "again", FirstKeptEntryID: js.Text(older.ID())})
	require.NoError(t, err)
	_, err = s.SetLabel(ctx, question.ID(), "  start ")
	require.NoError(t, err)
	_, err = s.MoveTo(ctx, eventlog.At(newest.ID()), nil)
	require.NoError(t, err)

	agent, changes, asked, err := store.Convert(ctx, eventlog.Metadata{ID: "harness"}, eventlog.CodingAgent, eventlog.CreateOptions{ID: "agent"})
	require.NoError(t, err)
	assert.Equal(t, eventlog.CodingAgent, agent.Dialect())
	assert.Equal(t, 6, asked)
	told := map[string]eventlog.Change{}
	for _, c := range changes {
		told[c.Entry+" "+c.What] = c
	}
	assert.Equal(t, eventlog.Change{What: "the labels", Before: question.ID() + `="start" `, After: question.ID() + `="  start " `}, told[" the labels"])
	assert.NotContains(t, told, " the leaf")
	assert.Contains(t, told, newest.ID()+" the branch")
	assert.NotContains(t, told, question.ID()+" the context")

	_, changes, _, err = store.Convert(ctx, eventlog.Metadata{ID: "agent"}, eventlog.Harness, eventlog.CreateOptions{ID: "back"})
	require.NoError(t, err)
	assert.NotEmpty(t, changes)
	back, err := store.Open(ctx, eventlog.Metadata{ID: "back"})
	require.NoError(t, err)
	between, _, err := eventlog.Changes(ctx, s, back)
	require.NoError(t, err)
	assert.Empty(t, between)
	_, _, _, err = store.Convert(ctx, eventlog.Metadata{ID: "back"}, eventlog.Harness, eventlog.CreateOptions{})
	assert.ErrorIs(t, err, eventlog.ErrInvalidArgument)
}
