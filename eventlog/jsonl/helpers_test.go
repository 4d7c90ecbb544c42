package jsonl_test

import (
	"context"
	"crypto/sha256"
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
)

// long says whether the long form of the tests was asked for.
var long = os.Getenv("SESSIONTREE_LONG") != ""

// seed is the seed of a test with random parts. It is printed when the test
// fails; SESSIONTREE_SEED brings it back.
func seed(t testing.TB) uint64 {
	s := uint64(time.Now().UnixNano())
	if v, err := strconv.ParseUint(os.Getenv("SESSIONTREE_SEED"), 10, 64); err == nil {
		s = v
	}
	t.Cleanup(func() {
		if t.Failed() {
			t.Logf("run again with SESSIONTREE_SEED=%d", s)
		}
	})
	return s
}

func newRand(t testing.TB) *rand.Rand {
	s := seed(t)
	return rand.New(rand.NewPCG(s, s))
}

// quick are the options of tests that ask nothing of the disk.
var quick = jsonl.Options{NoSync: true}

var piStrict = jsonl.Options{NoSync: true, Strict: true}

const header = `{"type":"session","version":3,"id":"s1","timestamp":"2026-01-01T00:00:00.000Z","cwd":"/project"}`

// parentJSON is a parentId: null for "".
func parentJSON(parent string) string {
	if parent == "" {
		return "null"
	}
	return js.Text(parent).JSON()
}

// user is the line of a user message.
func user(id, parent, text string) string {
	return fmt.Sprintf(`{"type":"message","id":%s,"parentId":%s,"timestamp":"2026-01-01T00:00:01.000Z","message":{"role":"user","content":[{"type":"text","text":%s}],"timestamp":1767225600000}}`,
		js.Text(id).JSON(), parentJSON(parent), js.Text(text).JSON())
}

// chain is the lines of n user messages m1, m2, …, each below the one before.
func chain(n int) []string {
	lines := make([]string, n)
	for i := range lines {
		parent := ""
		if i > 0 {
			parent = fmt.Sprintf("m%d", i)
		}
		lines[i] = user(fmt.Sprintf("m%d", i+1), parent, fmt.Sprintf("text %d", i+1))
	}
	return lines
}

// mixed is lines of several types, with all that makes a line hard to cut:
// brackets and quotes in texts, escapes, wide characters, raw line separators.
func mixed() []string {
	return []string{
		user("m1", "", "one"),
		`{"type":"message","id":"m2","parentId":"m1","timestamp":"2026-01-01T00:00:02.000Z","message":{"role":"assistant","content":[{"type":"thinking","thinking":"{\"a\": [1, 2"},{"type":"toolCall","id":"c1","name":"read","arguments":{"path":"a{b}.go","n":[1,2,{"x":null}]}}],"provider":"acme","model":"coder-1","usage":{"input":1,"output":2,"cacheRead":3,"cacheWrite":4,"cost":{"total":0.5}},"timestamp":1767225602000}}`,
		`{"type":"message","id":"m3","parentId":"m2","timestamp":"2026-01-01T00:00:03.000Z","message":{"role":"toolResult","toolCallId":"c1","toolName":"read","content":[{"type":"text","text":"{\"type\":\"message\",\"id\":\"no\",\"parentId\":null,\"timestamp\":\"x\"}"}],"isError":false,"timestamp":1767225603000}}`,
		`{"type":"compaction","id":"c4","parentId":"m3","timestamp":"2026-01-01T00:00:04.000Z","summary":"s: [a, {b","firstKeptEntryId":"m2","tokensBefore":120}`,
		`{"type":"custom","id":"x5","parentId":"c4","timestamp":"2026-01-01T00:00:05.000Z","customType":"state","data":{"deep":[[[{"k":"\\\"}"}]]],"n":-1.5e-7,"ok":true,"none":null}}`,
		user("m6", "x5", "日本語 😀 \u2028 \u2029 \\ \" {"),
	}
}

// mixedIDs are the ids of mixed.
var mixedIDs = []string{"m1", "m2", "m3", "c4", "x5", "m6"}

func lines(l ...string) string { return strings.Join(l, "\n") + "\n" }

// put writes a session file of its own folder.
func put(t testing.TB, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "session.jsonl")
	rewrite(t, path, text)
	return path
}

func rewrite(t testing.TB, path, text string) {
	t.Helper()
	require.NoError(t, os.WriteFile(path, []byte(text), 0o600))
}

func read(t testing.TB, path string) string {
	t.Helper()
	b, err := os.ReadFile(path)
	require.NoError(t, err)
	return string(b)
}

func hash(t testing.TB, path string) string {
	t.Helper()
	return fmt.Sprintf("%x", sha256.Sum256([]byte(read(t, path))))
}

func open(t testing.TB, path string, o jsonl.Options) *jsonl.Storage {
	t.Helper()
	s, err := jsonl.Open(t.Context(), path, o)
	require.NoError(t, err)
	t.Cleanup(func() { s.Close() })
	return s
}

func entriesOf(t testing.TB, s eventlog.Storage) []eventlog.Entry {
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

// ids are the ids of all entries of the session, in log order.
func ids(t testing.TB, s eventlog.Storage) []string {
	t.Helper()
	return idsOf(entriesOf(t, s))
}

// branch is the ids of the session's current branch.
func branch(t testing.TB, s eventlog.Storage) []string {
	t.Helper()
	b, err := eventlog.NewSession(s).Branch(t.Context(), eventlog.None())
	require.NoError(t, err)
	return idsOf(b)
}

func message(text string) eventlog.Draft {
	return eventlog.MessageDraft(eventlog.UserMessage(text, time.UnixMilli(1767225600000)))
}

// say appends a user message with the id.
func say(t testing.TB, s eventlog.Storage, id string) eventlog.Entry {
	t.Helper()
	entries, err := s.Append(t.Context(), eventlog.Batch{Drafts: []eventlog.Draft{message("said " + id).WithID(id)}})
	require.NoError(t, err)
	require.Len(t, entries, 1)
	require.Equal(t, id, entries[0].ID())
	return entries[0]
}

func closed(t testing.TB, s eventlog.Storage) {
	t.Helper()
	require.NoError(t, s.Close())
}

// appendsAndKeeps opens a file as a host does, asks that it holds the entries
// with the texts wanted, appends one more (as a new root, should the leaf be
// unreadable), opens the file again and asks for all of them, byte for byte.
func appendsAndKeeps(t testing.TB, path string, want []string) {
	t.Helper()
	s := open(t, path, quick)
	require.Equal(t, want, textsOf(entriesOf(t, s)))
	d := message("behind it").WithID("new")
	if _, err := s.Head(t.Context()); err != nil {
		d = d.Under(eventlog.None())
	}
	added, err := s.Append(t.Context(), eventlog.Batch{Drafts: []eventlog.Draft{d}})
	require.NoError(t, err)
	want = append(append([]string{}, want...), added[0].JSON())
	require.Equal(t, want, textsOf(entriesOf(t, s)))
	closed(t, s)

	again := open(t, path, quick)
	require.Equal(t, want, textsOf(entriesOf(t, again)), "after opening the file again")
	head, err := again.Head(t.Context())
	require.NoError(t, err)
	require.Equal(t, eventlog.Head{Leaf: eventlog.At("new"), N: len(want)}, head)
	closed(t, again)
}

// setAside is the bytes that an append moved to the file beside the session.
func setAside(t testing.TB, path string) string {
	t.Helper()
	b, err := os.ReadFile(path + ".damaged")
	if os.IsNotExist(err) {
		return ""
	}
	require.NoError(t, err)
	var all strings.Builder
	for line := range strings.Lines(string(b)) {
		v, err := js.Parse(line)
		if err != nil {
			continue // itself torn, by a write that failed
		}
		base64, ok := v.Get("bytes").Str()
		require.True(t, ok)
		all.WriteString(fromBase64(t, base64))
	}
	return all.String()
}

// ctx is for code outside a test's own time, such as child processes.
func ctx() context.Context { return context.Background() }
