package jsonl_test

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/sessiontree/sessiontree/eventlog"
	"github.com/sessiontree/sessiontree/eventlog/js"
	"github.com/sessiontree/sessiontree/eventlog/jsonl"
)

func freshFile(t *testing.T, o jsonl.Options) (string, *eventlog.Session) {
	path := filepath.Join(t.TempDir(), "session.jsonl")
	s, err := jsonl.Create(t.Context(), path, eventlog.Metadata{ID: "s1", CreatedAt: "2026-01-01T00:00:00.000Z", CWD: "/project"}, nil, o)
	require.NoError(t, err)
	session := eventlog.NewSession(s)
	t.Cleanup(func() { session.Close() })
	_, err = session.AppendMessage(t.Context(), benchMessage(0))
	require.NoError(t, err)
	return path, session
}

// An editor that makes a backup renames the file and writes a new one: the open
// session must not go on in the backup.
func TestAppendsDoNotFollowAFileThatIsNoLongerTheSession(t *testing.T) {
	for name, change := range map[string]func(path string) error{
		"renamed": func(path string) error { return os.Rename(path, path+".bak") },
		"renamed and written anew": func(path string) error {
			text, err := os.ReadFile(path)
			return errors.Join(err, os.Rename(path, path+".bak"), os.WriteFile(path, text, 0o600))
		},
		"deleted, with another name left": func(path string) error {
			return errors.Join(os.Link(path, path+".link"), os.Remove(path))
		},
	} {
		t.Run(name, func(t *testing.T) {
			path, session := freshFile(t, jsonl.Options{})
			require.NoError(t, change(path))
			_, err := session.AppendMessage(t.Context(), benchMessage(1))
			require.ErrorIs(t, err, eventlog.ErrStorage)
		})
	}
}

func TestAFileThatWasRewrittenInPlaceIsNoticed(t *testing.T) {
	for name, want := range map[string]error{"only touched": nil, "the same length, other bytes": eventlog.ErrStorage} {
		t.Run(name, func(t *testing.T) {
			path, session := freshFile(t, jsonl.Options{})
			require.NoError(t, session.Close())
			s, err := jsonl.Open(t.Context(), path, jsonl.Options{})
			require.NoError(t, err)
			defer s.Close()
			text, err := os.ReadFile(path)
			require.NoError(t, err)
			if want != nil {
				text = []byte(strings.Replace(string(text), "a word", "A WORD", 1))
				require.NoError(t, os.WriteFile(path, text, 0o600))
			}
			later := time.Now().Add(time.Second)
			require.NoError(t, os.Chtimes(path, later, later))
			_, err = s.Append(t.Context(), eventlog.Batch{Drafts: []eventlog.Draft{eventlog.MessageDraft(benchMessage(1))}})
			require.ErrorIs(t, err, want)
			now, err := os.ReadFile(path)
			require.NoError(t, err)
			require.Equal(t, string(text), string(now)[:len(text)])
			require.Equal(t, want == nil, len(now) > len(text))
		})
	}
}

// flaky fails its first Sync and its first Truncate.
type flaky struct {
	jsonl.File
	syncs, truncates *int
}

func (f flaky) Sync() error {
	if *f.syncs++; *f.syncs == 1 {
		return errors.New("no sync")
	}
	return f.File.Sync()
}

func (f flaky) Truncate(size int64) error {
	if *f.truncates++; *f.truncates == 1 {
		return errors.New("no truncate")
	}
	return f.File.Truncate(size)
}

func TestReport_O2_CloseTakesAFailedAppendBack(t *testing.T) {
	path, session := freshFile(t, jsonl.Options{})
	require.NoError(t, session.Close())
	var syncs, truncates int
	s, err := jsonl.Open(t.Context(), path, jsonl.Options{OpenFile: func(name string, flag int, perm fs.FileMode) (jsonl.File, error) {
		f, err := os.OpenFile(name, flag, perm)
		return flaky{f, &syncs, &truncates}, err
	}})
	require.NoError(t, err)
	_, err = s.Append(t.Context(), eventlog.Batch{Drafts: []eventlog.Draft{eventlog.MessageDraft(benchMessage(1))}})
	require.ErrorIs(t, err, eventlog.ErrStorage)
	require.NoError(t, s.Close())
	s, err = jsonl.Open(t.Context(), path, jsonl.Options{Strict: true})
	require.NoError(t, err)
	defer s.Close()
	head, err := s.Head(t.Context())
	require.NoError(t, err)
	require.Equal(t, 1, head.N)
}

// A record that is torn deep inside, with a whole one glued behind it.
func TestReport_A1_ARecordBehindOneThatIsTornDeepInside(t *testing.T) {
	whole := `{"type":"message","id":"m1","parentId":null,"timestamp":"t","message":{"role":"user","content":"here"}}`
	for _, depth := range []int{1, 16, 17, 200} {
		torn := strings.Repeat(`{"a":`, depth) + `"` + strings.Repeat("x", 200_000)
		c, err := jsonl.Parse("f", `{"type":"session","version":3,"id":"s","timestamp":"t","cwd":"/"}`+"\n"+torn+whole+"\n", jsonl.Options{})
		require.NoError(t, err)
		require.Len(t, c.Entries, 1, "depth %d", depth)
		require.Equal(t, "m1", c.Entries[0].ID())
	}
}

// A first line with many starts of an object and a long text costs one look, not
// one for each start.
func TestReport_A10_AHostileFirstLineIsRefusedAtOnce(t *testing.T) {
	line := strings.Repeat(`{"":`, 16_000) + `"` + strings.Repeat("x", 4<<20)
	start := time.Now()
	_, err := jsonl.Parse("f", line, jsonl.Options{})
	require.ErrorIs(t, err, eventlog.ErrInvalidSession)
	t.Log(time.Since(start))
}

func TestARepositoryDeletesItsOwnSessionsOnly(t *testing.T) {
	dir := t.TempDir()
	precious := filepath.Join(dir, "precious.jsonl")
	require.NoError(t, os.WriteFile(precious, []byte("mine"), 0o600))
	repo := jsonl.NewRepo(filepath.Join(dir, "sessions"), jsonl.Options{})
	require.ErrorIs(t, repo.Delete(t.Context(), eventlog.Metadata{Path: precious}), eventlog.ErrInvalidArgument)
	require.FileExists(t, precious)

	// A13: a session whose header is broken can be deleted by its id.
	s, err := repo.Create(t.Context(), eventlog.CreateOptions{ID: "broken", CWD: "/p"})
	require.NoError(t, err)
	m, err := s.Metadata(t.Context())
	require.NoError(t, err)
	require.NoError(t, s.Close())
	require.NoError(t, os.WriteFile(m.Path, []byte("{\"type\":\"sess"), 0o600))
	require.NoError(t, repo.Delete(t.Context(), eventlog.Metadata{ID: "broken"}))
	require.NoFileExists(t, m.Path)
}

func TestAnIdIsTakenOnceByCreationsAtTheSameTime(t *testing.T) {
	repo := jsonl.NewRepo(t.TempDir(), jsonl.Options{NoSync: true})
	results := make(chan error, 8)
	for range cap(results) {
		go func() {
			_, err := repo.Create(t.Context(), eventlog.CreateOptions{ID: "one", CWD: "/p"})
			results <- err
		}()
	}
	made := 0
	for range cap(results) {
		if err := <-results; err == nil {
			made++
		} else {
			require.ErrorIs(t, err, eventlog.ErrAlreadyExists)
		}
	}
	require.Equal(t, 1, made)
}

// What would spoil an answer of the session for ever is refused.
func TestDraftsThatSpoilTheSessionAreRefused(t *testing.T) {
	_, session := freshFile(t, jsonl.Options{NoSync: true})
	head, err := session.Head(t.Context())
	require.NoError(t, err)
	text := func(s string) js.Value { return js.Text(s) }
	for name, d := range map[string]eventlog.Draft{
		"no message":            eventlog.MessageDraft(eventlog.Message{}),
		"a null message":        eventlog.MessageDraft(eventlog.Message{Value: js.NullValue()}),
		"a text for a message":  eventlog.MessageDraft(eventlog.Message{Value: text("hi")}),
		"a number for a label":  eventlog.LabelDraft(head.Leaf.ID(), js.Num(5)),
		"tools that are absent": {Type: eventlog.TypeActiveToolsChange},
		"no type":               {},
		"two timestamps":        {Type: "x", Fields: []js.Member{{Key: "timestamp", Value: text("t")}}},
	} {
		_, err := session.Append(t.Context(), d)
		require.ErrorIs(t, err, eventlog.ErrInvalidArgument, name)
	}
	label := eventlog.Draft{Type: eventlog.TypeLabel, Fields: []js.Member{{Key: "targetId", Value: text("nope")}}}
	_, err = session.Append(t.Context(), label)
	require.ErrorIs(t, err, eventlog.ErrNotFound)
	after, err := session.Head(t.Context())
	require.NoError(t, err)
	require.Equal(t, head, after)
}

func TestAForkTakesWhatIsNotGivenFromItsSource(t *testing.T) {
	repo := jsonl.NewRepo(t.TempDir(), jsonl.Options{NoSync: true, Strict: true})
	s, err := repo.Create(t.Context(), eventlog.CreateOptions{CWD: "/project", Metadata: js.Fields(js.Member{Key: "a", Value: js.Num(1)})})
	require.NoError(t, err)
	m, err := s.Metadata(t.Context())
	require.NoError(t, err)
	fork, err := repo.Fork(t.Context(), m, eventlog.ForkOptions{})
	require.NoError(t, err)
	f, err := fork.Metadata(t.Context())
	require.NoError(t, err)
	require.Equal(t, "/project", f.CWD)
	require.Equal(t, eventlog.At(m.Path), f.ParentSession)
	require.Equal(t, m.Metadata, f.Metadata)
	_, err = repo.Open(t.Context(), f)
	require.NoError(t, err)
}

func TestHeldDraftsAreWrittenInOrderOrHandedBack(t *testing.T) {
	_, session := freshFile(t, jsonl.Options{NoSync: true})
	end, err := session.Begin(eventlog.Turn)
	require.NoError(t, err)
	first := eventlog.MessageDraft(benchMessage(1)).WithID("first")
	written, err := session.AppendWhenIdle(t.Context(), first)
	require.NoError(t, err)
	require.False(t, written)
	end()
	written, err = session.AppendWhenIdle(t.Context(), eventlog.MessageDraft(benchMessage(2)).WithID("second"))
	require.NoError(t, err)
	require.True(t, written)
	second, err := session.Entry(t.Context(), "second")
	require.NoError(t, err)
	require.Equal(t, eventlog.At("first"), second.Parent())

	end, err = session.Begin(eventlog.Turn)
	require.NoError(t, err)
	bad := eventlog.LabelDraft("nope", js.Text("x"))
	_, err = session.AppendWhenIdle(t.Context(), bad)
	require.NoError(t, err)
	end()
	_, err = session.Flush(t.Context())
	require.ErrorIs(t, err, eventlog.ErrNotFound)
	require.Equal(t, []eventlog.Draft{bad}, session.TakeHeld())
	require.NoError(t, session.Close())
}

func TestABatchIsRetriedAsItWouldBeWritten(t *testing.T) {
	_, session := freshFile(t, jsonl.Options{NoSync: true})
	a, b := eventlog.MessageDraft(benchMessage(1)).WithID("a"), eventlog.MessageDraft(benchMessage(2)).WithID("b")
	_, err := session.Append(t.Context(), a)
	require.NoError(t, err)
	_, err = session.AppendAt(t.Context(), eventlog.None(), b)
	require.NoError(t, err)
	_, err = session.Append(t.Context(), a, b)
	require.ErrorIs(t, err, eventlog.ErrAlreadyExists)
	_, err = session.Append(t.Context(), a, a)
	require.ErrorIs(t, err, eventlog.ErrAlreadyExists)
	_, err = session.Append(t.Context(), a, eventlog.MessageDraft(benchMessage(3)).WithID("new"))
	require.ErrorIs(t, err, eventlog.ErrAlreadyExists)
	require.ErrorContains(t, err, "Entry a exists already, and new, which is to follow it, does not")
}
