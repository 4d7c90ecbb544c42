package sqlitestore_test

import (
	"bytes"
	"database/sql"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/sessiontree/sessiontree/eventlog"
	"github.com/sessiontree/sessiontree/eventlog/conformance"
	"github.com/sessiontree/sessiontree/eventlog/js"
	"github.com/sessiontree/sessiontree/sqlitestore"
	"github.com/sessiontree/sessiontree/sqlitestore/sqlitestoretest"
)

// line is an entry as Pi writes it.
func line(id, parent, text string) string {
	p := "null"
	if parent != "" {
		p = fmt.Sprintf("%q", parent)
	}
	return fmt.Sprintf(`{"type":"message","id":%q,"parentId":%s,"timestamp":"2026-01-01T00:00:01.000Z","message":{"role":"user","content":%q}}`, id, p, text) + "\n"
}

func header(id, more string) string {
	return fmt.Sprintf(`{"type":"session","version":3,"id":%q,"timestamp":"2026-01-01T00:00:00.000Z","cwd":"/p"%s}`, id, more) + "\n"
}

func write(t testing.TB, path, text string) {
	t.Helper()
	require.NoError(t, os.MkdirAll(filepath.Dir(path), 0o700))
	require.NoError(t, os.WriteFile(path, []byte(text), 0o600))
}

// importAll imports files and gives the results in the order of the paths.
func importAll(t testing.TB, s *sqlitestore.Store, o sqlitestore.ImportOptions, paths ...string) []sqlitestore.FileResult {
	t.Helper()
	results := make([]sqlitestore.FileResult, len(paths))
	require.NoError(t, s.Import(ctx, paths, o, func(r sqlitestore.FileResult) {
		results[slices.Index(paths, r.Path)] = r
	}))
	return results
}

// taken is an import of one file that has to be taken.
func taken(t testing.TB, s *sqlitestore.Store, path string, want sqlitestore.Outcome, entries int) sqlitestore.FileResult {
	t.Helper()
	r := importAll(t, s, sqlitestore.ImportOptions{}, path)[0]
	require.NoError(t, r.Err)
	require.Equal(t, want, r.Outcome)
	require.Equal(t, entries, r.Entries, "new entries")
	return r
}

func exported(t testing.TB, s *sqlitestore.Store, id string) string {
	t.Helper()
	var b bytes.Buffer
	require.NoError(t, s.Export(ctx, id, &b))
	return b.String()
}

// Every recorded file comes back byte for byte, and a second import changes
// nothing.
func TestRecordedFilesComeBackFromTheDatabase(t *testing.T) {
	s := sqlitestoretest.Open(t, sqlitestore.Options{Synchronous: sqlitestore.Normal})
	dir := t.TempDir()
	want := map[string]string{}
	var paths []string
	var vectors fs.FS
	add := func(name string, d fs.DirEntry, err error) error {
		if err != nil || !strings.HasSuffix(name, ".jsonl") || strings.HasPrefix(name, "large/") && testing.Short() {
			return err
		}
		b, err := fs.ReadFile(vectors, name)
		require.NoError(t, err)
		path := filepath.Join(dir, fmt.Sprintf("%03d.jsonl", len(paths)))
		// The recorded sessions share a few ids.
		id := fmt.Sprintf(`"id":"session-%03d"`, len(paths))
		text := string(b)
		if at := strings.Index(text, `"id":"`); at >= 0 && at < 100 {
			if end := strings.IndexByte(text[at+6:], '"'); end > 0 {
				text = text[:at] + id + text[at+7+end:]
			}
		}
		write(t, path, text)
		paths, want[path] = append(paths, path), text
		return nil
	}
	for _, vectors = range []fs.FS{conformance.Vectors(), conformance.AgentVectors()} {
		require.NoError(t, fs.WalkDir(vectors, ".", add))
	}
	refused := 0
	for _, r := range importAll(t, s, sqlitestore.ImportOptions{Verify: true, Fork: true}, paths...) {
		require.Empty(t, r.Problems, r.Path)
		if r.Outcome == sqlitestore.Refused {
			require.ErrorIs(t, r.Err, eventlog.ErrInvalidSession, r.Path)
			refused++
			continue
		}
		require.True(t, exported(t, s, r.Session) == want[r.Path], "%+v", r)
	}
	assert.Less(t, refused, 30)
	assert.Greater(t, len(paths), 300)
	before := lastSeq(t, s)
	for _, r := range importAll(t, s, sqlitestore.ImportOptions{}, paths...) {
		assert.Contains(t, []sqlitestore.Outcome{sqlitestore.Unchanged, sqlitestore.Refused}, r.Outcome)
		assert.Equal(t, 0, r.Entries)
	}
	assert.Equal(t, before, lastSeq(t, s), "events")
	for path, text := range want {
		b, err := os.ReadFile(path)
		require.NoError(t, err)
		assert.True(t, string(b) == text, "the file itself is as it was")
	}
}

// lastSeq counts what was written to the log.
func lastSeq(t testing.TB, s *sqlitestore.Store) (n int) {
	t.Helper()
	listed, err := s.List(ctx, "")
	require.NoError(t, err)
	for _, l := range listed {
		session, err := s.Open(ctx, l.Metadata)
		require.NoError(t, err)
		head, err := session.Head(ctx)
		if eventlog.CodeOf(err) != eventlog.InvalidSession {
			require.NoError(t, err)
		}
		n += head.N + 1
	}
	return n
}

func TestAFileThatGrows(t *testing.T) {
	for _, newline := range []string{"\n", "\r\n"} {
		s := sqlitestoretest.Open(t, sqlitestore.Options{Synchronous: sqlitestore.Normal})
		path := filepath.Join(t.TempDir(), "grows.jsonl")
		text := strings.ReplaceAll(header("grows", "")+line("a", "", "1")+"\n \n"+line("b", "a", "2")+line("c", "b", "3")+"not JSON\n"+"\x00\x00\n"+line("d", "c", "4"), "\n", newline)
		known := 0
		// However the file is cut while it grows, all comes in, once.
		for cut := strings.IndexByte(text, '\n'); ; cut = min(cut+7, len(text)) {
			write(t, path, text[:cut])
			r := importAll(t, s, sqlitestore.ImportOptions{}, path)[0]
			require.NoError(t, r.Err)
			known += r.Entries
			require.Equal(t, text[:cut], exported(t, s, "grows"), "cut at %d", cut)
			if cut == len(text) {
				break
			}
		}
		require.Equal(t, 4, known)
		r := taken(t, s, path, sqlitestore.Unchanged, 0)
		assert.Equal(t, 2, r.Damage)

		// What is appended here follows, and the file may not grow any more.
		session, err := s.Open(ctx, eventlog.Metadata{ID: "grows"})
		require.NoError(t, err)
		appended, err := session.Append(ctx, eventlog.CustomDraft("note", js.Text("here")).WithID("e"))
		require.NoError(t, err)
		require.Equal(t, text+appended[0].Line()+"\n", exported(t, s, "grows"))
		taken(t, s, path, sqlitestore.Unchanged, 0)
		write(t, path, text+line("f", "d", "5"))
		r = importAll(t, s, sqlitestore.ImportOptions{}, path)[0]
		require.Equal(t, sqlitestore.Refused, r.Outcome)
		require.ErrorIs(t, r.Err, eventlog.ErrConflict)
		var d *sqlitestore.DivergedError
		require.ErrorAs(t, r.Err, &d)
		assert.Equal(t, 4, d.Shared)
		assert.Equal(t, []string{"f"}, idsOf(d.File))
		assert.Equal(t, []string{"e"}, idsOf(d.Here))

		r = importAll(t, s, sqlitestore.ImportOptions{Fork: true}, path)[0]
		require.Equal(t, sqlitestore.Damaged, r.Outcome)
		require.NotEqual(t, "grows", r.Session)
		require.Equal(t, text+line("f", "d", "5"), exported(t, s, r.Session))
		taken(t, s, path, sqlitestore.Unchanged, 0)
		write(t, path, text+line("f", "d", "5")+line("g", "f", "6"))
		again := importAll(t, s, sqlitestore.ImportOptions{}, path)[0]
		require.Equal(t, r.Session, again.Session, "the file belongs to the fork now")
		require.Equal(t, 1, again.Entries)
	}
}

func idsOf(entries []eventlog.Entry) (ids []string) {
	for _, e := range entries {
		ids = append(ids, e.ID())
	}
	return ids
}

// What was exported and went on elsewhere comes in again.
func TestAnExportedSessionComesBack(t *testing.T) {
	s := sqlitestoretest.Open(t, sqlitestore.Options{Synchronous: sqlitestore.Normal})
	session, err := s.Create(ctx, eventlog.CreateOptions{ID: "ours", CWD: "/p"})
	require.NoError(t, err)
	_, err = session.Append(ctx, eventlog.CustomDraft("note", js.Num(1)).WithID("a"))
	require.NoError(t, err)
	path := filepath.Join(t.TempDir(), "ours.jsonl")
	text := exported(t, s, "ours")
	write(t, path, text)
	taken(t, s, path, sqlitestore.Unchanged, 0)
	write(t, path, text+line("b", "a", "there"))
	taken(t, s, path, sqlitestore.Extended, 1)
	require.Equal(t, text+line("b", "a", "there"), exported(t, s, "ours"))
}

// Rewriting the file without changing its entries changes what comes back.
func TestAFileThatIsRewritten(t *testing.T) {
	s := sqlitestoretest.Open(t, sqlitestore.Options{Synchronous: sqlitestore.Normal})
	path := filepath.Join(t.TempDir(), "x.jsonl")
	write(t, path, header("x", "")+line("a", "", "1")+line("b", "a", "2"))
	taken(t, s, path, sqlitestore.Imported, 2)
	other := "\n" + header("x", `,"more":1`) + "\r\n" + line("a", "", "1") + "\x00\n" + line("b", "a", "2")
	write(t, path, other)
	r := taken(t, s, path, sqlitestore.Unchanged, 0)
	assert.Equal(t, 1, r.Damage)
	require.Equal(t, other, exported(t, s, "x"))
}

// oh-my-pi's title is rewritten in its place.
func TestATitleThatChanges(t *testing.T) {
	s := sqlitestoretest.Open(t, sqlitestore.Options{Synchronous: sqlitestore.Normal})
	path := filepath.Join(t.TempDir(), "x.jsonl")
	title := func(name string) string { return fmt.Sprintf(`{"type":"title","v":1,"title":%q}`, name) + "\n" }
	rest := header("x", "") + line("a", "", "1")
	write(t, path, title("one")+rest)
	taken(t, s, path, sqlitestore.Imported, 1)
	rest += line("b", "a", "2")
	write(t, path, title("two")+rest)
	taken(t, s, path, sqlitestore.Extended, 1)
	require.Equal(t, title("two")+rest, exported(t, s, "x"))
	write(t, path, title("longer")+rest)
	taken(t, s, path, sqlitestore.Unchanged, 0)
	require.Equal(t, title("longer")+rest, exported(t, s, "x"))
}

func TestReport_M7_ADeletedSessionStaysDeletedForImports(t *testing.T) {
	s := sqlitestoretest.Open(t, sqlitestore.Options{Synchronous: sqlitestore.Normal})
	path := filepath.Join(t.TempDir(), "x.jsonl")
	text := header("x", "") + "junk\n" + line("a", "", "1")
	write(t, path, text)
	taken(t, s, path, sqlitestore.Damaged, 1)
	require.NoError(t, s.Delete(ctx, eventlog.Metadata{ID: "x"}))
	r := importAll(t, s, sqlitestore.ImportOptions{}, path)[0]
	require.Equal(t, sqlitestore.Refused, r.Outcome)
	require.ErrorIs(t, r.Err, eventlog.ErrInvalidState)
	r = importAll(t, s, sqlitestore.ImportOptions{Restore: true}, path)[0]
	require.Equal(t, sqlitestore.Damaged, r.Outcome)
	require.Equal(t, text, exported(t, s, "x"))
	taken(t, s, path, sqlitestore.Unchanged, 0)
}

func TestReport_M6_TheSameNameWithOtherContents(t *testing.T) {
	s := sqlitestoretest.Open(t, sqlitestore.Options{Synchronous: sqlitestore.Normal})
	path := filepath.Join(t.TempDir(), "x.jsonl")
	write(t, path, header("x", "")+line("a", "", "1"))
	taken(t, s, path, sqlitestore.Imported, 1)
	// Another session under the name: both are there.
	write(t, path, header("y", "")+line("b", "", "2"))
	taken(t, s, path, sqlitestore.Imported, 1)
	// The session's own id with another history: refused, and nothing is lost.
	other := filepath.Join(t.TempDir(), "x.jsonl")
	write(t, other, header("x", "")+line("c", "", "3"))
	r := importAll(t, s, sqlitestore.ImportOptions{}, other)[0]
	require.ErrorIs(t, r.Err, eventlog.ErrConflict)
	require.Equal(t, header("x", "")+line("a", "", "1"), exported(t, s, "x"))
	require.Equal(t, header("y", "")+line("b", "", "2"), exported(t, s, "y"))
}

func TestReport_H2_OneBadFileAmongMany(t *testing.T) {
	s := sqlitestoretest.Open(t, sqlitestore.Options{Synchronous: sqlitestore.Normal})
	dir := t.TempDir()
	var paths []string
	for i := range 100 {
		path := filepath.Join(dir, fmt.Sprintf("%03d.jsonl", i))
		text := header(fmt.Sprint("s", i), "") + line("a", "", "1")
		if i == 50 {
			text = "no session\n"
		}
		write(t, path, text)
		paths = append(paths, path)
	}
	paths = append(paths, filepath.Join(dir, "missing.jsonl"))
	for i, r := range importAll(t, s, sqlitestore.ImportOptions{}, paths...) {
		if i == 50 || i == 100 {
			require.Equal(t, sqlitestore.Refused, r.Outcome, r.Path)
			require.Error(t, r.Err)
			continue
		}
		require.Equal(t, sqlitestore.Imported, r.Outcome, "%v", r.Err)
	}
	listed, err := s.List(ctx, "")
	require.NoError(t, err)
	require.Len(t, listed, 99)
}

// forkEntry is where a session was cut from its parent, as the database has it.
func forkEntry(t testing.TB, s *sqlitestore.Store, id string) string {
	t.Helper()
	copied := filepath.Join(t.TempDir(), "copy.db")
	_, err := s.Backup(ctx, copied)
	require.NoError(t, err)
	raw, err := sql.Open("sqlite", copied)
	require.NoError(t, err)
	defer raw.Close()
	var entry sql.NullString
	require.NoError(t, raw.QueryRow("SELECT fork_entry FROM sessions WHERE id = ? AND source = (SELECT key FROM sessions WHERE id = 'parent')", id).Scan(&entry))
	return entry.String
}

// Parents are linked whichever comes first, also where the file moved.
func TestParentsOfFilesAreParentsOfSessions(t *testing.T) {
	dir := t.TempDir()
	parent := filepath.Join(dir, "2026-01-01T00-00-00-000Z_parent.jsonl")
	child := filepath.Join(dir, "2026-01-02T00-00-00-000Z_child.jsonl")
	write(t, parent, header("parent", "")+line("a", "", "1")+line("b", "a", "2"))
	for name, named := range map[string]string{"the path": parent, "a path of long ago": `C:\old\2026-01-01T00-00-00-000Z_parent.jsonl`, "an id": "parent"} {
		for _, order := range [][][]string{{{parent}, {child}}, {{child}, {parent}}, {{child, parent}}} {
			t.Run(name, func(t *testing.T) {
				write(t, child, header("child", fmt.Sprintf(`,"parentSession":%q`, named))+line("a", "", "1")+line("c", "a", "3"))
				s := sqlitestoretest.Open(t, sqlitestore.Options{Synchronous: sqlitestore.Normal})
				for _, paths := range order {
					importAll(t, s, sqlitestore.ImportOptions{}, paths...)
				}
				session, err := s.Open(ctx, eventlog.Metadata{ID: "child"})
				require.NoError(t, err)
				m, err := session.Metadata(ctx)
				require.NoError(t, err)
				require.Equal(t, eventlog.At("parent"), m.ParentSession)
				if order[0][0] != child || len(order) == 1 {
					require.Equal(t, "a", forkEntry(t, s, "child"))
				}
				b, err := os.ReadFile(child)
				require.NoError(t, err)
				require.Equal(t, string(b), exported(t, s, "child"))
			})
		}
	}
}

// Verifying proves what is here against the files, and notices what is not so.
func TestImportVerifies(t *testing.T) {
	dir := t.TempDir()
	db := filepath.Join(dir, "sessions.db")
	s := sqlitestoretest.OpenAt(t, db, sqlitestore.Options{})
	v4, err := os.ReadFile("../eventlog/sessionfile/testdata/v4.jsonl")
	require.NoError(t, err)
	var paths []string
	for name, text := range map[string]string{
		"a": header("a", "") + line("x", "", "1") + "junk\n" + line("y", "x", "2"),
		"b": `{"type":"session","id":"b"}` + "\r\n" + `{"type":"message","timestamp":"2025-01-01T00:00:01.000Z","message":{"role":"user","content":"1"}}`,
		"c": string(v4),
	} {
		path := filepath.Join(dir, name+".jsonl")
		write(t, path, text)
		paths = append(paths, path)
	}
	for _, want := range []sqlitestore.Outcome{sqlitestore.Imported, sqlitestore.Unchanged} {
		for _, r := range importAll(t, s, sqlitestore.ImportOptions{Verify: true}, paths...) {
			require.NoError(t, r.Err)
			require.Empty(t, r.Problems)
			if filepath.Base(r.Path) != "a.jsonl" || want == sqlitestore.Unchanged {
				require.Equal(t, want, r.Outcome)
			}
		}
	}
	// A view that lies is noticed.
	raw, err := sql.Open("sqlite", db+"?_pragma=busy_timeout(20000)")
	require.NoError(t, err)
	defer raw.Close()
	_, err = raw.Exec("UPDATE heads SET cost = cost + 1 WHERE session = (SELECT key FROM sessions WHERE id = 'newer')")
	require.NoError(t, err)
	different := 0
	for _, r := range importAll(t, s, sqlitestore.ImportOptions{Verify: true}, paths...) {
		if r.Session == "newer" {
			require.Equal(t, sqlitestore.Different, r.Outcome)
			require.Equal(t, []string{"the total differs from the file's"}, r.Problems)
			different++
		}
	}
	require.Equal(t, 1, different)
	require.NoError(t, s.Rebuild(ctx))
}

func TestDamageIsListedWithItsBytes(t *testing.T) {
	s := sqlitestoretest.Open(t, sqlitestore.Options{Synchronous: sqlitestore.Normal})
	path := filepath.Join(t.TempDir(), "x.jsonl")
	long := strings.Repeat("y", 3000)
	text := header("x", "") + "junk\n" + line("a", "", "1") + `{"type":"mess` + line("b", "a", "2") + long + "\n" + line("c", "b", "3") + `{"torn`
	write(t, path, text)
	r := importAll(t, s, sqlitestore.ImportOptions{MaxLine: 1000}, path)[0]
	require.NoError(t, r.Err)
	require.Equal(t, 3, r.Entries)
	damage, err := s.Damage(ctx, "x")
	require.NoError(t, err)
	var got []string
	for _, d := range damage {
		b, err := s.SetAsideBytes(ctx, d)
		require.NoError(t, err)
		require.Equal(t, text[d.Offset:d.Offset+d.Length], string(b))
		require.Equal(t, strings.Count(text[:d.Offset], "\n")+1, d.Line)
		require.Equal(t, path, d.Path)
		require.True(t, strings.HasPrefix(string(b), string(d.Begin)))
		got = append(got, string(b))
	}
	require.Equal(t, []string{"junk", `{"type":"mess`, long, `{"torn`}, got)
	all, err := s.Damage(ctx, "")
	require.NoError(t, err)
	require.Equal(t, damage, all)
}
