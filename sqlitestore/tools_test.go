package sqlitestore_test

import (
	"cmp"
	"encoding/json"
	"fmt"
	"math"
	"math/rand/v2"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/sessiontree/sessiontree/eventlog"
	"github.com/sessiontree/sessiontree/eventlog/js"
	"github.com/sessiontree/sessiontree/query"
	"github.com/sessiontree/sessiontree/sqlitestore"
	"github.com/sessiontree/sessiontree/sqlitestore/sqlitestoretest"
)

// handCall is a call of a tool as it stands in one session.
type handCall struct {
	eventlog.Metadata
	forked bool // its session was forked here
	entry  string
	id     string // of the call
	at     time.Time
	query.ToolSpend
	answered bool
}

// callsByHand reads the calls of a session from its lines: another program than the
// view.
func callsByHand(t *testing.T, s *sqlitestore.Store, m eventlog.Metadata, forked bool) (all []*handCall) {
	session, err := s.Open(t.Context(), m)
	require.NoError(t, err)
	defer session.Close()
	for e, err := range session.Entries(t.Context(), 0, math.MaxInt) {
		require.NoError(t, err)
		var line struct {
			ID        string
			Timestamp time.Time
			Message   struct {
				Role       string
				Content    json.RawMessage
				ToolCallID string
				IsError    bool
			}
		}
		require.NoError(t, json.Unmarshal([]byte(e.JSON()), &line))
		switch line.Message.Role {
		case "assistant":
			var blocks []struct {
				ID, Name  string
				Arguments json.RawMessage
			}
			require.NoError(t, json.Unmarshal(line.Message.Content, &blocks))
			for _, b := range blocks {
				c := &handCall{Metadata: m, forked: forked, entry: line.ID, id: b.ID, at: line.Timestamp, ToolSpend: query.ToolSpend{Name: b.Name, Calls: 1, NoResult: 1, InputBytes: int64(len(b.Arguments))}}
				for _, before := range slices.Backward(all) {
					if before.Name == c.Name {
						c.Retries = before.Failed
						break
					}
				}
				all = append(all, c)
			}
		case "toolResult":
			for _, c := range slices.Backward(all) {
				if c.id != line.Message.ToolCallID {
					continue
				}
				if !c.answered {
					c.answered, c.NoResult, c.ResultBytes, c.Millis = true, 0, int64(len(line.Message.Content)), max(line.Timestamp.Sub(c.at).Milliseconds(), 0)
					if line.Message.IsError {
						c.Failed = 1
					}
				}
				break
			}
		}
	}
	return all
}

// toolsByHand counts each call once: in the session that was not forked, else in that
// which has it earliest, else in that of the lowest id.
func toolsByHand(all map[string][]*handCall, o query.WorkOptions) (sums []query.ToolSpend) {
	owners := map[string]*handCall{}
	for _, calls := range all {
		for _, c := range calls {
			if was := owners[c.entry]; was == nil || cmp.Or(cmp.Compare(number(c.forked), number(was.forked)), c.at.Compare(was.at), cmp.Compare(c.ID, was.ID)) < 0 {
				owners[c.entry] = c
			}
		}
	}
	byName := map[string]*query.ToolSpend{}
	for _, calls := range all {
		for _, c := range calls {
			switch {
			case owners[c.entry].ID != c.ID, o.Session != "" && o.Session != c.ID, o.CWD != "" && o.CWD != c.CWD,
				!o.Since.IsZero() && c.at.Before(o.Since), !o.Until.IsZero() && !c.at.Before(o.Until):
				continue
			}
			s := byName[c.Name]
			if s == nil {
				s = &query.ToolSpend{Name: c.Name}
				byName[c.Name] = s
			}
			*s = query.ToolSpend{Name: c.Name, Calls: s.Calls + 1, Failed: s.Failed + c.Failed, Retries: s.Retries + c.Retries, NoResult: s.NoResult + c.NoResult,
				InputBytes: s.InputBytes + c.InputBytes, ResultBytes: s.ResultBytes + c.ResultBytes, Millis: s.Millis + c.Millis}
		}
	}
	for _, s := range byName {
		sums = append(sums, *s)
	}
	slices.SortFunc(sums, func(a, b query.ToolSpend) int { return cmp.Compare(a.Name, b.Name) })
	return sums
}

func number(is bool) int {
	if is {
		return 1
	}
	return 0
}

// requireTools holds reports about tools, of all and of parts, against the count by
// hand.
func requireTools(t *testing.T, s *sqlitestore.Store, r *rand.Rand, forked map[string]bool) {
	t.Helper()
	listed, err := s.List(t.Context(), "")
	require.NoError(t, err)
	all := map[string][]*handCall{}
	for _, l := range listed {
		all[l.ID] = callsByHand(t, s, l.Metadata, forked[l.ID])
	}
	for i := range 12 {
		o := query.WorkOptions{}
		moment := func() time.Time {
			return noon.Add(time.Duration(r.IntN(200)-20) * []time.Duration{time.Hour, 12 * time.Hour, time.Second}[r.IntN(3)])
		}
		if i%2 == 1 {
			o.Since = moment()
		}
		if i%3 == 1 {
			o.Until = moment()
		}
		if i > 5 && r.IntN(2) == 0 {
			o.Session = listed[r.IntN(len(listed))].ID
		}
		if i > 5 && r.IntN(2) == 0 {
			o.CWD = []string{"/a", "/b"}[r.IntN(2)]
		}
		sums, err := s.Tools(t.Context(), o)
		require.NoError(t, err)
		require.True(t, slices.IsSortedFunc(sums, func(a, b query.ToolSpend) int { return cmp.Compare(b.Calls, a.Calls) }))
		slices.SortFunc(sums, func(a, b query.ToolSpend) int { return cmp.Compare(a.Name, b.Name) })
		require.Equal(t, toolsByHand(all, o), sums, "%+v", o)
	}
}

// playTools appends calls and results to sessions at random, forks, copies and deletes
// them, and puts the view's checkpoint back now and then.
func playTools(t *testing.T, seed uint64) {
	r := rand.New(rand.NewPCG(seed, 2))
	path := filepath.Join(t.TempDir(), "sessions.db")
	s := sqlitestoretest.OpenAt(t, path, sqlitestore.Options{Source: ticking(), Synchronous: sqlitestore.Normal})
	ctx := t.Context()
	var sessions []*eventlog.Session
	forked, at := map[string]bool{}, noon
	add := func(session *eventlog.Session, err error) {
		require.NoError(t, err)
		sessions = append(sessions, session)
	}
	add(s.Create(ctx, eventlog.CreateOptions{ID: "first", CWD: "/a"}))
	for step := range 150 {
		i := r.IntN(len(sessions))
		session := sessions[i]
		meta, err := session.Metadata(ctx)
		require.NoError(t, err)
		var entries []eventlog.Entry
		for e, err := range session.Entries(ctx, 0, math.MaxInt) {
			require.NoError(t, err)
			entries = append(entries, e)
		}
		switch op := r.IntN(20); {
		case op < 12 || len(entries) < 3:
			var raw []eventlog.Entry
			parent := eventlog.None()
			if len(entries) > 0 {
				parent = eventlog.At(entries[len(entries)-1].ID())
			}
			for n := range 1 + r.IntN(6) {
				at = at.Add(time.Duration(r.IntN(7200)-60) * time.Second)
				body := said("user", `,"content":"go on"`)
				call := func() string { return fmt.Sprint("c", r.IntN(6)) } // ids come again
				switch r.IntN(5) {
				case 0, 1:
					body = calls(call(), []string{"edit", "bash"}[r.IntN(2)], call(), "read")
				case 2, 3:
					body = result(call(), r.IntN(2) == 0, js.Text(fmt.Sprint("done ", r.IntN(1e6))).JSON())
				}
				e, err := eventlog.ParseEntry(fmt.Sprintf(`{"id":"e%d-%d","parentId":%s,"timestamp":%q,%s}`, step, n, parent.Value().JSON(), js.ISO(at), body))
				require.NoError(t, err)
				raw, parent = append(raw, e), eventlog.At(e.ID())
			}
			require.NoError(t, session.Storage().AppendRaw(ctx, raw...))
		case op < 14 && len(sessions) < 8:
			id := fmt.Sprintf("%c-fork%d", 'a'+rune(r.IntN(26)), step)
			fork, err := s.Fork(ctx, meta, eventlog.ForkOptions{CreateOptions: eventlog.CreateOptions{ID: id, CWD: "/b"}, EntryID: entries[r.IntN(len(entries))].ID(), Position: eventlog.AtIt})
			add(fork, err)
			forked[id] = true
		case op < 15 && len(sessions) < 8:
			add(s.Add(ctx, eventlog.Metadata{ID: fmt.Sprintf("%c-copy%d", 'a'+rune(r.IntN(26)), step), CreatedAt: js.ISO(noon), CWD: "/b"}, entries[:1+r.IntN(len(entries))]))
		case op < 17 && len(sessions) > 3:
			require.NoError(t, s.Delete(ctx, meta))
			sessions = append(sessions[:i], sessions[i+1:]...)
		case op < 18:
			requireTools(t, s, r, forked)
			execRaw(t, path, fmt.Sprintf("UPDATE checkpoints SET position = max(position - %d, 0) WHERE projection = 'usage'", r.IntN(40)))
		case op < 19:
			requireTools(t, s, r, forked)
		}
	}
	requireTools(t, s, r, forked)
	problems, err := s.Verify(ctx)
	require.NoError(t, err)
	require.Empty(t, problems)
}

func TestToolsAddUpToTheCountByHand(t *testing.T) {
	for _, seed := range []uint64{1, 2, 3, uint64(time.Now().UnixNano())} {
		t.Run(fmt.Sprint("seed=", seed), func(t *testing.T) { playTools(t, seed) })
	}
}
