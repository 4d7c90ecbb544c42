package sqlitestore_test

import (
	"context"
	"fmt"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/sessiontree/sessiontree/eventlog"
	"github.com/sessiontree/sessiontree/eventlog/sessionfile"
	"github.com/sessiontree/sessiontree/projections"
	"github.com/sessiontree/sessiontree/sqlitestore"
	"github.com/sessiontree/sessiontree/sqlitestore/sqlitestoretest"
)

const at = `"timestamp":"2026-01-01T00:00:02.000Z"`

func leafLine(id, parent, target string) string {
	return fmt.Sprintf(`{"type":"leaf","id":%q,"parentId":%q,%s,"targetId":%q}`, id, parent, at, target) + "\n"
}

func usageLine(id, parent string) string {
	return fmt.Sprintf(`{"type":"usage","id":%q,"parentId":%q,%s,"kind":"k"}`, id, parent, at) + "\n"
}

// dialectOf is by which rules a session is answered, and why.
func dialectOf(t testing.TB, s *sqlitestore.Store, id string) string {
	t.Helper()
	session, err := s.Open(ctx, eventlog.Metadata{ID: id})
	require.NoError(t, err)
	m, err := session.Metadata(ctx)
	require.NoError(t, err)
	return m.Dialect.String() + ": " + m.DialectBasis
}

func leafOf(t testing.TB, s *sqlitestore.Store, id string) string {
	t.Helper()
	session, err := s.Open(ctx, eventlog.Metadata{ID: id})
	require.NoError(t, err)
	head, err := session.Head(ctx)
	require.NoError(t, err)
	return head.Leaf.String()
}

// However a file is cut while it grows, its session has the dialect that the whole
// of it tells, and is answered by its rules.
func TestMarksThatComeLate(t *testing.T) {
	plain := line("a", "", "1") + line("b", "a", "2")
	for name, f := range map[string]struct{ text, dialect, leaf string }{
		"none":                     {plain, "coding-agent: " + eventlog.NoMark, "b"},
		"a leaf":                   {plain + leafLine("l", "b", "a") + line("c", "a", "3") + leafLine("m", "c", "b"), "harness: an entry of type leaf (entry 3)", "b"},
		"a usage":                  {plain + usageLine("u", "b") + line("c", "u", "3"), "coding-agent: an entry of type usage (entry 3)", "c"},
		"a usage and then a leaf":  {plain + usageLine("u", "b") + leafLine("l", "u", "a"), "harness: an entry of type leaf (entry 4)", "a"},
		"a leaf and then a usage":  {plain + leafLine("l", "b", "a") + usageLine("u", "a"), "harness: an entry of type leaf (entry 3)", "u"},
		"a leaf behind a tab line": {plain + "\t\n" + leafLine("l", "b", "a"), "harness: an entry of type leaf (entry 3)", "a"},
	} {
		t.Run(name, func(t *testing.T) {
			s := sqlitestoretest.Open(t, sqlitestore.Options{Synchronous: sqlitestore.Normal})
			path := filepath.Join(t.TempDir(), "x.jsonl")
			text := header("x", "") + f.text
			for cut := len(header("x", "")); cut <= len(text); cut++ {
				if cut%5 != 0 && cut != len(text) && text[cut-1] != '\n' {
					continue
				}
				write(t, path, text[:cut])
				r := importAll(t, s, sqlitestore.ImportOptions{}, path)[0]
				require.NoError(t, r.Err)
				if r.Corrected {
					require.Equal(t, r.Dialect.String()+": "+r.Basis, dialectOf(t, s, "x"))
				}
			}
			require.Equal(t, f.dialect, dialectOf(t, s, "x"))
			require.Equal(t, f.leaf, leafOf(t, s, "x"))
			require.Equal(t, text, exported(t, s, "x"))
			r := importAll(t, s, sqlitestore.ImportOptions{Verify: true}, path)[0]
			require.Empty(t, r.Problems)
			require.Equal(t, sqlitestore.Unchanged, r.Outcome)

			whole := sqlitestoretest.Open(t, sqlitestore.Options{Synchronous: sqlitestore.Normal})
			importAll(t, whole, sqlitestore.ImportOptions{}, path)
			require.Equal(t, f.dialect, dialectOf(t, whole, "x"), "taken as a whole")
			require.Equal(t, f.leaf, leafOf(t, whole, "x"))
		})
	}
}

// A follower corrects a session as the mark comes in, in the same step, and says
// so. A handle that was opened before must be opened again.
func TestAFollowerCorrectsADialect(t *testing.T) {
	s := sqlitestoretest.Open(t, sqlitestore.Options{Synchronous: sqlitestore.Normal})
	dir := t.TempDir()
	path := filepath.Join(dir, "x.jsonl")
	text := header("x", "") + line("a", "", "1") + line("b", "a", "2")
	write(t, path, text)
	following, stop := context.WithCancel(ctx)
	defer stop()
	var before *eventlog.Session
	step := 0
	err := s.Follow(following, []string{dir}, sqlitestore.ImportOptions{}, sessionfile.WatchOptions{NoEvents: true, Poll: 20 * time.Millisecond}, func(r sqlitestore.FileResult) {
		require.NoError(t, r.Err)
		switch step++; step {
		case 1:
			require.Equal(t, eventlog.CodingAgent, r.Dialect)
			var err error
			before, err = s.Open(ctx, eventlog.Metadata{ID: "x"})
			require.NoError(t, err)
			write(t, path, text+leafLine("l", "b", "a"))
		case 2:
			require.True(t, r.Corrected)
			require.Equal(t, "harness: an entry of type leaf (entry 3)", r.Dialect.String()+": "+r.Basis)
			require.Equal(t, "a", leafOf(t, s, "x"))
			stop()
		}
	})
	require.ErrorIs(t, err, context.Canceled)
	_, err = before.Head(ctx)
	require.ErrorIs(t, err, eventlog.ErrInvalidState)
	_, err = before.Entry(ctx, "a")
	require.ErrorIs(t, err, eventlog.ErrInvalidState)
	_, err = before.Append(ctx, eventlog.CustomDraft("note", eventlog.None().Value()))
	require.ErrorIs(t, err, eventlog.ErrInvalidState)
	now, err := s.Open(ctx, eventlog.Metadata{ID: "x"})
	require.NoError(t, err)
	e, err := now.Append(ctx, eventlog.CustomDraft("note", eventlog.None().Value()))
	require.NoError(t, err)
	assert.Equal(t, eventlog.At("a"), e[0].Parent())
}

// A dialect that was asked for stays, whatever the marks say, and the result tells
// of them; so does one of a session that was created here.
func TestAChosenDialectStays(t *testing.T) {
	s := sqlitestoretest.Open(t, sqlitestore.Options{Synchronous: sqlitestore.Normal})
	path := filepath.Join(t.TempDir(), "x.jsonl")
	text := header("x", "") + line("a", "", "1")
	write(t, path, text)
	agent := eventlog.CodingAgent
	r := importAll(t, s, sqlitestore.ImportOptions{Dialect: &agent}, path)[0]
	require.Equal(t, "", r.Against)
	write(t, path, text+leafLine("l", "a", "a"))
	r = taken(t, s, path, sqlitestore.Extended, 1)
	require.Equal(t, "an entry of type leaf (entry 2)", r.Against)
	require.False(t, r.Corrected)
	require.Equal(t, "coding-agent: asked for", dialectOf(t, s, "x"))
	require.Equal(t, "l", leafOf(t, s, "x"))

	session, err := s.Create(ctx, eventlog.CreateOptions{ID: "y", CWD: "/p"})
	require.NoError(t, err)
	_, err = session.Append(ctx, eventlog.CustomDraft("note", eventlog.None().Value()).WithID("a"))
	require.NoError(t, err)
	write(t, path+"2.jsonl", exported(t, s, "y")+usageLine("u", "a"))
	r = taken(t, s, path+"2.jsonl", sqlitestore.Extended, 1)
	require.Equal(t, "an entry of type usage (entry 2)", r.Against)
	require.Equal(t, "harness: ", dialectOf(t, s, "y"))
}

// Entries that only the coding agent takes for entries stay: with them the session
// cannot become one of the harness.
func TestASessionThatCannotBeCorrected(t *testing.T) {
	s := sqlitestoretest.Open(t, sqlitestore.Options{Synchronous: sqlitestore.Normal})
	path := filepath.Join(t.TempDir(), "x.jsonl")
	text := header("x", "") + line("a", "", "1") + `{"type":"custom","id":5,"parentId":"a"}` + "\n"
	write(t, path, text)
	taken(t, s, path, sqlitestore.Imported, 2)
	text += leafLine("l", "a", "a") + "7\n"
	write(t, path, text)
	r := taken(t, s, path, sqlitestore.Extended, 2)
	require.False(t, r.Corrected)
	require.Equal(t, "an entry of type leaf (entry 3)", r.Against)
	require.Equal(t, text, exported(t, s, "x"))
	require.True(t, strings.HasPrefix(dialectOf(t, s, "x"), "coding-agent"))
}

// A session whose id is the empty text, which Pi takes, gets one.
func TestASessionWithAnEmptyID(t *testing.T) {
	s := sqlitestoretest.Open(t, sqlitestore.Options{Synchronous: sqlitestore.Normal})
	path := filepath.Join(t.TempDir(), "x.jsonl")
	text := header("", "") + line("a", "", "1")
	write(t, path, text)
	r := taken(t, s, path, sqlitestore.Imported, 1)
	require.NotEmpty(t, r.Session)
	require.Equal(t, text, exported(t, s, r.Session))
	text += line("b", "a", "2")
	write(t, path, text)
	require.Equal(t, r.Session, taken(t, s, path, sqlitestore.Extended, 1).Session)
	write(t, path, "\n"+text)
	require.Equal(t, r.Session, taken(t, s, path, sqlitestore.Unchanged, 0).Session)
}

// Entries without a text as id have one that only their dialect knows. Verify copies
// the log slice by slice, and here two that share it stand in different ones.
func TestVerifyReadsIDsByTheDialect(t *testing.T) {
	s := sqlitestoretest.Open(t, sqlitestore.Options{Synchronous: sqlitestore.Normal})
	dir := t.TempDir()
	before := strings.Builder{}
	before.WriteString(header("before", ""))
	for i := range projections.BranchSlice - 5 {
		before.WriteString(line(fmt.Sprintf("e%d", i), "", "1"))
	}
	nameless := `{"type":"message","parentId":%q,` + at + `,"message":{"role":"user","content":"nameless"}}` + "\n"
	for i, text := range []string{
		before.String(),
		header("x", "") + line("a", "", "1") + fmt.Sprintf(nameless, "a") + line("b", "a", "2") + line("c", "b", "3") + fmt.Sprintf(nameless, "c"),
	} {
		path := filepath.Join(dir, fmt.Sprintf("%d.jsonl", i))
		write(t, path, text)
		require.NoError(t, importAll(t, s, sqlitestore.ImportOptions{}, path)[0].Err)
	}
	problems, err := s.Verify(ctx)
	require.NoError(t, err)
	require.Empty(t, problems)
}
