package eventlog_test

import (
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/sessiontree/sessiontree/eventlog"
	"github.com/sessiontree/sessiontree/eventlog/js"
	"github.com/sessiontree/sessiontree/eventlog/jsonl"
	"github.com/sessiontree/sessiontree/eventlog/memory"
)

// long says whether the long form of the tests was asked for.
var long = os.Getenv("SESSIONTREE_LONG") != ""

// newRand is a source of random numbers whose seed is printed when the test
// fails; SESSIONTREE_SEED brings it back.
func newRand(t testing.TB) *rand.Rand {
	seed := uint64(time.Now().UnixNano())
	if v, err := strconv.ParseUint(os.Getenv("SESSIONTREE_SEED"), 10, 64); err == nil {
		seed = v
	}
	t.Cleanup(func() {
		if t.Failed() {
			t.Logf("run again with SESSIONTREE_SEED=%d", seed)
		}
	})
	return rand.New(rand.NewPCG(seed, seed))
}

var meta = eventlog.Metadata{ID: "s1", CreatedAt: "2026-01-01T00:00:00.000Z", CWD: "/project"}

// steady gives ids e1, e2, … and times a second apart.
func steady() eventlog.Source {
	n, at := 0, time.UnixMilli(1767225600000)
	return eventlog.Source{
		NewID: func() string { n++; return fmt.Sprint("e", n) },
		Now:   func() time.Time { at = at.Add(time.Second); return at },
	}
}

// eachBackend runs a test against a new session of each backend. again closes
// the session and opens it anew; in memory it gives a copy of what was written.
func eachBackend(t *testing.T, entries []eventlog.Entry, test func(t *testing.T, s *eventlog.Session, again func() *eventlog.Session)) {
	t.Run("memory", func(t *testing.T) {
		source := steady()
		s := eventlog.NewSession(memory.New(meta, entries, memory.Options{Source: source}))
		test(t, s, func() *eventlog.Session {
			all := entriesOf(t, s)
			require.NoError(t, s.Close())
			s = eventlog.NewSession(memory.New(meta, all, memory.Options{Source: source}))
			return s
		})
	})
	t.Run("jsonl", func(t *testing.T) {
		o := jsonl.Options{NoSync: true, Source: steady()}
		path := filepath.Join(t.TempDir(), "session.jsonl")
		storage, err := jsonl.Create(t.Context(), path, meta, entries, o)
		require.NoError(t, err)
		t.Cleanup(func() { storage.Close() })
		test(t, eventlog.NewSession(storage), func() *eventlog.Session {
			require.NoError(t, storage.Close())
			storage, err = jsonl.Open(t.Context(), path, o)
			require.NoError(t, err)
			require.Empty(t, storage.Damage())
			return eventlog.NewSession(storage)
		})
	})
}

// inMemory is a session of the entries.
func inMemory(entries ...eventlog.Entry) *eventlog.Session {
	return eventlog.NewSession(memory.New(meta, entries, memory.Options{Source: steady()}))
}

func parse(t testing.TB, texts ...string) []eventlog.Entry {
	t.Helper()
	entries := make([]eventlog.Entry, len(texts))
	for i, text := range texts {
		var err error
		entries[i], err = eventlog.ParseEntry(text)
		require.NoError(t, err, "%s", text)
	}
	return entries
}

// entry is the text of an entry: fields are further members, "" for none.
func entry(typ, id, parent, fields string) string {
	p := "null"
	if parent != "" {
		p = js.Text(parent).JSON()
	}
	if fields != "" {
		fields = "," + fields
	}
	return fmt.Sprintf(`{"type":%q,"id":%s,"parentId":%s,"timestamp":"2026-01-01T00:00:01.000Z"%s}`, typ, js.Text(id).JSON(), p, fields)
}

func user(id, parent, text string) string {
	return entry("message", id, parent, fmt.Sprintf(`"message":{"role":"user","content":[{"type":"text","text":%s}],"timestamp":1}`, js.Text(text).JSON()))
}

func assistant(id, parent, text string) string {
	return entry("message", id, parent, fmt.Sprintf(`"message":{"role":"assistant","content":[{"type":"text","text":%s}],"provider":"acme","model":"m-1","timestamp":2}`, js.Text(text).JSON()))
}

// chain is n user messages m1, m2, … each below the one before.
func chain(t testing.TB, n int) []eventlog.Entry {
	t.Helper()
	texts := make([]string, n)
	parent := ""
	for i := range texts {
		id := fmt.Sprint("m", i+1)
		texts[i] = user(id, parent, "text "+strconv.Itoa(i+1))
		parent = id
	}
	return parse(t, texts...)
}

func entriesOf(t testing.TB, s *eventlog.Session) []eventlog.Entry {
	t.Helper()
	var entries []eventlog.Entry
	for e, err := range s.Entries(t.Context(), 0, eventlog.All) {
		require.NoError(t, err)
		entries = append(entries, e)
	}
	return entries
}

func idsOf(entries []eventlog.Entry) []string {
	ids := []string{}
	for _, e := range entries {
		ids = append(ids, e.ID())
	}
	return ids
}

func textsOf(entries []eventlog.Entry) []string {
	texts := []string{}
	for _, e := range entries {
		texts = append(texts, e.JSON())
	}
	return texts
}

// branchOf is the ids of a branch, root first, with blanks between.
func branchOf(t testing.TB, s *eventlog.Session, from eventlog.Ref) string {
	t.Helper()
	b, err := s.Branch(t.Context(), from)
	require.NoError(t, err)
	return strings.Join(idsOf(b), " ")
}

// contextOf is what the model sees: a line "role: text" a message.
func contextOf(t testing.TB, s *eventlog.Session, from eventlog.Ref, o ...eventlog.ContextOptions) []string {
	t.Helper()
	c, err := s.BuildContext(t.Context(), from, o...)
	require.NoError(t, err)
	return shown(c.Messages)
}

func shown(messages []eventlog.Message) []string {
	lines := []string{}
	for _, m := range messages {
		text := m.PlainText()
		if summary, ok := m.Get("summary").Str(); ok {
			text = summary
		}
		lines = append(lines, m.Role()+": "+text)
	}
	return lines
}

func message(text string) eventlog.Draft {
	return eventlog.MessageDraft(eventlog.UserMessage(text, time.UnixMilli(1767225600000)))
}

// add appends one draft.
func add(t testing.TB, s *eventlog.Session, d eventlog.Draft) eventlog.Entry {
	t.Helper()
	entries, err := s.Append(t.Context(), d)
	require.NoError(t, err)
	require.Len(t, entries, 1)
	return entries[0]
}

func moveTo(t testing.TB, s *eventlog.Session, target eventlog.Ref) {
	t.Helper()
	_, err := s.MoveTo(t.Context(), target, nil)
	require.NoError(t, err)
}
