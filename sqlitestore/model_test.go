package sqlitestore_test

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/sessiontree/sessiontree/eventlog"
	"github.com/sessiontree/sessiontree/eventlog/js"
	"github.com/sessiontree/sessiontree/eventlog/memory"
	"github.com/sessiontree/sessiontree/sqlitestore"
)

// TestTheStoreEqualsTheModel drives a database, through two handles that are closed
// and opened again as it goes, and the store in memory through the same random
// operations, and compares every answer.
func TestTheStoreEqualsTheModel(t *testing.T) {
	checks, steps := "5", "30"
	if long {
		checks, steps = "1000", "60"
	}
	require.NoError(t, flag.Set("rapid.checks", checks))
	require.NoError(t, flag.Set("rapid.steps", steps))
	rapid.Check(t, func(t *rapid.T) {
		m := newModel(t)
		defer m.end(t)
		t.Repeat(map[string]func(*rapid.T){
			"":         m.check,
			"append":   m.append,
			"appendAt": m.appendAt,
			"appendIf": m.appendIf,
			"batch":    m.batch,
			"again":    m.again,
			"raw":      m.raw,
			"move":     m.move,
			"compact":  m.compact,
			"label":    m.label,
			"name":     m.name,
			"create":   m.create,
			"fork":     m.fork,
			"delete":   m.delete,
			"reopen":   m.reopen,
			"rebuild":  m.rebuild,
		})
	})
}

// model is the state of a run: what both have.
type model struct {
	dir, path string
	source    eventlog.Source
	ids       int // that were given
	memory    *memory.Repo
	stores    [2]*sqlitestore.Store
	sessions  []string
	names     int
	entries   map[string][]string // of each session, by id
}

func newModel(t *rapid.T) *model {
	m := &model{entries: map[string][]string{}}
	m.source = eventlog.Source{
		Now:   func() time.Time { return time.UnixMilli(1767225600000) },
		NewID: func() string { m.ids++; return fmt.Sprintf("e%d", m.ids) },
	}
	var err error
	m.dir, err = os.MkdirTemp("", "sessiontree-model-*")
	require.NoError(t, err)
	m.path, m.memory = filepath.Join(m.dir, "sessions.db"), memory.NewRepo(m.source)
	for i := range m.stores {
		m.open(t, i)
	}
	m.create(t)
	return m
}

func (m *model) open(t *rapid.T, i int) {
	s, err := sqlitestore.Open(ctx, m.path, sqlitestore.Options{Source: m.source, Synchronous: sqlitestore.Normal})
	require.NoError(t, err)
	m.stores[i] = s
}

func (m *model) end(t *rapid.T) {
	defer os.RemoveAll(m.dir)
	for _, session := range m.sessions {
		m.compare(t, session, 0)
	}
	problems, err := m.stores[0].Verify(ctx)
	require.NoError(t, err)
	require.Empty(t, problems)
	for _, s := range m.stores {
		require.NoError(t, s.Close(ctx))
	}
}

func (m *model) session(t *rapid.T) string { return rapid.SampledFrom(m.sessions).Draw(t, "session") }

// entry is some entry of the session, or none that it has.
func (m *model) entry(t *rapid.T, session string) string {
	return rapid.SampledFrom(append([]string{"nowhere"}, m.entries[session]...)).Draw(t, "entry")
}

func (m *model) handle(t *rapid.T) *sqlitestore.Store {
	return m.stores[rapid.IntRange(0, 1).Draw(t, "handle")]
}

// both does something to a session in the model and in the database, with the same
// ids, and compares what comes back.
func (m *model) both(t *rapid.T, session string, f func(s *eventlog.Session) ([]eventlog.Entry, error)) {
	before := m.ids
	var answers [2]string
	for i, repo := range []eventlog.Repo{m.memory, m.handle(t)} {
		m.ids = before
		s, err := repo.Open(ctx, eventlog.Metadata{ID: session})
		require.NoError(t, err)
		entries, err := f(s)
		answers[i] = fmt.Sprint(texts(entries), eventlog.CodeOf(err), err)
		if i == 0 && err == nil {
			for _, e := range entries {
				m.entries[session] = append(m.entries[session], e.ID())
			}
		}
	}
	require.Equal(t, answers[0], answers[1])
}

func (m *model) draft(t *rapid.T) eventlog.Draft {
	switch rapid.IntRange(0, 4).Draw(t, "kind") {
	case 0:
		return eventlog.MessageDraft(eventlog.AssistantMessage("answer", "acme", "m", eventlog.Usage{Input: 10, Output: 5, CacheRead: 3}, m.source.Now()))
	case 1:
		return eventlog.CustomDraft("state", js.Num(7))
	case 2:
		return eventlog.ModelDraft("acme", "n")
	}
	return eventlog.MessageDraft(eventlog.UserMessage(rapid.StringN(0, 12, -1).Draw(t, "text"), m.source.Now()))
}

func (m *model) append(t *rapid.T) {
	d := m.draft(t)
	m.both(t, m.session(t), func(s *eventlog.Session) ([]eventlog.Entry, error) { return s.Append(ctx, d) })
}

func (m *model) appendAt(t *rapid.T) {
	d, session := m.draft(t), m.session(t)
	at := eventlog.At(m.entry(t, session))
	if rapid.Bool().Draw(t, "root") {
		at = eventlog.None()
	}
	m.both(t, session, func(s *eventlog.Session) ([]eventlog.Entry, error) { return s.AppendAt(ctx, at, d) })
}

func (m *model) appendIf(t *rapid.T) {
	d, stale := m.draft(t), rapid.Bool().Draw(t, "stale")
	m.both(t, m.session(t), func(s *eventlog.Session) ([]eventlog.Entry, error) {
		head, _ := s.Head(ctx)
		if stale {
			head.N++
		}
		return s.AppendIf(ctx, head, d)
	})
}

func (m *model) batch(t *rapid.T) {
	session := m.session(t)
	a, b := m.draft(t), m.draft(t).Under(eventlog.At(m.entry(t, session)))
	m.both(t, session, func(s *eventlog.Session) ([]eventlog.Entry, error) {
		return s.Append(ctx, a, b, eventlog.NameDraft("batch"))
	})
}

// again gives an id that is there, with other content or its own.
func (m *model) again(t *rapid.T) {
	d, session := m.draft(t), m.session(t)
	d = d.WithID(m.entry(t, session))
	before := len(m.entries[session])
	m.both(t, session, func(s *eventlog.Session) ([]eventlog.Entry, error) { return s.Append(ctx, d) })
	m.entries[session] = slices.Compact(m.entries[session][:before:before])
	if d.ID == "nowhere" && !slices.Contains(m.entries[session], d.ID) {
		m.entries[session] = append(m.entries[session], d.ID)
	}
}

// raw appends what no host would: ids twice, parents that are missing, later, or
// the entry itself.
func (m *model) raw(t *rapid.T) {
	session := m.session(t)
	id, parent := m.entry(t, session), m.entry(t, session)
	if rapid.Bool().Draw(t, "new id") {
		m.names++
		id = fmt.Sprint("raw-", m.names)
	}
	line := fmt.Sprintf(`{"type":"message","id":%q,"parentId":%q,"timestamp":"2026-01-01T00:00:00.000Z","message":{"role":"user","content":"raw"}}`, id, parent)
	if rapid.IntRange(0, 3).Draw(t, "leaf") == 0 {
		line = fmt.Sprintf(`{"type":"leaf","id":%q,"parentId":null,"timestamp":"2026-01-01T00:00:00.000Z","targetId":%q}`, id, parent)
	}
	e, err := eventlog.ParseEntry(line)
	require.NoError(t, err)
	m.both(t, session, func(s *eventlog.Session) ([]eventlog.Entry, error) { return nil, s.Storage().AppendRaw(ctx, e) })
	m.entries[session] = append(m.entries[session], id)
}

func (m *model) move(t *rapid.T) {
	session := m.session(t)
	to := eventlog.At(m.entry(t, session))
	var summary *eventlog.Summary
	switch rapid.IntRange(0, 3).Draw(t, "how") {
	case 0:
		to = eventlog.None()
	case 1:
		summary = &eventlog.Summary{Text: "went back"}
	}
	m.both(t, session, func(s *eventlog.Session) ([]eventlog.Entry, error) { return s.MoveTo(ctx, to, summary) })
}

func (m *model) compact(t *rapid.T) {
	session := m.session(t)
	c := eventlog.Compaction{Summary: "so far"}
	switch rapid.IntRange(0, 2).Draw(t, "kept") {
	case 0:
		c.FirstKeptEntryID = js.Text(m.entry(t, session))
	case 1:
		c.RetainedTail = js.List()
	}
	m.both(t, session, func(s *eventlog.Session) ([]eventlog.Entry, error) {
		e, err := s.AppendCompaction(ctx, c)
		return one(e, err), err
	})
}

func one(e eventlog.Entry, err error) []eventlog.Entry {
	if err != nil {
		return nil
	}
	return []eventlog.Entry{e}
}

func (m *model) label(t *rapid.T) {
	session := m.session(t)
	target, label := m.entry(t, session), rapid.SampledFrom([]string{"", "a", " b "}).Draw(t, "label")
	m.both(t, session, func(s *eventlog.Session) ([]eventlog.Entry, error) {
		e, err := s.SetLabel(ctx, target, label)
		return one(e, err), err
	})
}

func (m *model) name(t *rapid.T) {
	name := rapid.SampledFrom([]string{"", "a\nb", "c"}).Draw(t, "name")
	m.both(t, m.session(t), func(s *eventlog.Session) ([]eventlog.Entry, error) {
		e, err := s.SetName(ctx, name)
		return one(e, err), err
	})
}

func (m *model) create(t *rapid.T) {
	m.names++
	id := fmt.Sprint("s", m.names)
	for _, repo := range []eventlog.Repo{m.memory, m.handle(t)} {
		_, err := repo.Create(ctx, eventlog.CreateOptions{ID: id, CWD: "/p"})
		require.NoError(t, err)
	}
	m.sessions = append(m.sessions, id)
}

func (m *model) fork(t *rapid.T) {
	session := m.session(t)
	m.names++
	o := eventlog.ForkOptions{CreateOptions: eventlog.CreateOptions{ID: fmt.Sprint("f", m.names)}}
	if rapid.Bool().Draw(t, "branch") {
		o.EntryID = m.entry(t, session)
		o.Position = rapid.SampledFrom([]eventlog.Position{eventlog.Before, eventlog.AtIt}).Draw(t, "position")
	}
	var errs [2]string
	for i, repo := range []eventlog.Repo{m.memory, m.handle(t)} {
		_, err := repo.Fork(ctx, eventlog.Metadata{ID: session}, o)
		errs[i] = fmt.Sprint(err)
	}
	require.Equal(t, errs[0], errs[1])
	if errs[0] == "<nil>" {
		m.sessions = append(m.sessions, o.ID)
		m.entries[o.ID] = slices.Clone(m.entries[session]) // some of them may not be there
	}
}

func (m *model) delete(t *rapid.T) {
	if len(m.sessions) < 2 {
		t.Skip("the last one")
	}
	session := m.session(t)
	for _, repo := range []eventlog.Repo{m.memory, m.handle(t)} {
		require.NoError(t, repo.Delete(ctx, eventlog.Metadata{ID: session}))
	}
	m.sessions = slices.DeleteFunc(m.sessions, func(s string) bool { return s == session })
	for _, s := range m.stores {
		_, err := s.Open(ctx, eventlog.Metadata{ID: session})
		require.ErrorIs(t, err, eventlog.ErrNotFound)
	}
}

func (m *model) reopen(t *rapid.T) {
	i := rapid.IntRange(0, 1).Draw(t, "handle")
	require.NoError(t, m.stores[i].Close(ctx))
	m.open(t, i)
}

func (m *model) rebuild(t *rapid.T) {
	views := rapid.SampledFrom(append([]string{""}, sqlitestore.ViewNames()...)).Draw(t, "view")
	var names []string
	if views != "" {
		names = []string{views}
	}
	require.NoError(t, m.handle(t).Rebuild(ctx, names...))
}

func (m *model) check(t *rapid.T) { m.compare(t, m.session(t), rapid.IntRange(0, 1).Draw(t, "reader")) }

// compare asks the model and the database all that can be asked of a session.
func (m *model) compare(t *rapid.T, session string, handle int) {
	var answers [2][]string
	for i, repo := range []eventlog.Repo{m.memory, m.stores[handle]} {
		s, err := repo.Open(ctx, eventlog.Metadata{ID: session})
		require.NoError(t, err)
		say := func(what string, v any, err error) {
			if err != nil {
				v = nil // beside an error anything may stand
			}
			answers[i] = append(answers[i], fmt.Sprint(what, ": ", v, eventlog.CodeOf(err), err))
		}
		head, err := s.Head(ctx)
		say("head", head, err)
		branch, err := s.Branch(ctx, eventlog.None())
		say("branch", ids(branch), err)
		seen, err := s.BuildContext(ctx, eventlog.None())
		say("context", fmt.Sprint(seen.Messages, seen.ThinkingLevel, seen.ActiveTools), err)
		labels, err := s.Labels(ctx)
		say("labels", labels, err)
		name, err := s.Name(ctx)
		say("name", name, err)
		stats, err := s.Stats(ctx)
		say("stats", stats, err)
		var all []string
		for e, err := range s.Entries(ctx, 0, eventlog.All) {
			require.NoError(t, err)
			all = append(all, e.JSON())
		}
		say("log", all, nil)
		for _, id := range m.entries[session] {
			branch, err := s.Branch(ctx, eventlog.At(id))
			say("branch of "+id, ids(branch), err)
		}
	}
	require.Equal(t, answers[0], answers[1])
}
