package jsonl_test

import (
	"fmt"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/sessiontree/sessiontree/eventlog"
	"github.com/sessiontree/sessiontree/eventlog/js"
	"github.com/sessiontree/sessiontree/eventlog/jsonl"
)

// oddNames are ids and working folders that file names cannot hold as they are.
var oddNames = []string{
	"/a/b-c", "/a-b/c", "/a/b/c", "/a-b-c", "a/b-c", "a-b/c", "/a//b", "/a/b/", "/a/b", "/rf", "-rf", "--", "---", "/", "//", "-", ".", "..", "../..",
	"../../../etc/passwd", "/../../../etc", "/a/../../b", "..\\..\\x", "a/../../../b",
	`C:\x`, `C:/x`, "C-/x", `C:\a\b`, `C:\a-b`, `\\server\share\x`, "//server/share/x", `\\?\C:\x`, "c:\\x",
	"CON", "con", "/CON", "nul", "NUL.txt", "COM1", "LPT9.jsonl", "aux", "a:b", "a::b", "a:b:stream", "/a:b",
	"日本", "日木", "/日本/語", "/日本語", "/プロジェクト", "/프로젝트", "/проект", "/проєкт", "é", "e\u0301", "/é", "/e\u0301",
	"😀", "/😀/x", "\u202Etxt.exe", "\u200B", "\uFEFF",
	"a b", " a", "a ", "a.", "a..", ".hidden", "/.hidden", "a\tb", "a\nb", "a\rb", "\x00", "a\x00b", "a", "a\x7Fb", "\x1b[31m",
	"a%b", "a%25b", "a%2Fb", "a%2fb", "%2F", "%", "%%", "%_a", "%~", "%_", "a_b", "a_b.jsonl", "_", "__", "x_y_z",
	"a*b", "a?b", `a"b`, "a<b", "a>b", "a|b", "$HOME", "`id`", "$(id)", "~", "~root", "a;b", "a&b", "a'b", "{a}", "[a]", "!", "#", "@", "^", "=", "+", ",",
	strings.Repeat("x", 300), strings.Repeat("x", 301), strings.Repeat("日", 200), strings.Repeat("日", 201), "/" + strings.Repeat("a/b", 150), "/" + strings.Repeat("a-b", 150),
	strings.Repeat("x", 299) + "y", strings.Repeat("x", 180), strings.Repeat("x", 181), "/" + strings.Repeat("%", 100), strings.Repeat("😀", 60), strings.Repeat("-", 90),
	"\xED\xA0\x80", "\xED\xB0\x80", "a\xED\xA0\xBDb", // lone surrogates, in WTF-8
	"ABC", "abc", "Abc", "/Users/x", "/users/x",
}

// TestReport_M1_M2_M4_NamesAreOneToOne makes a session in each odd working
// folder, and of each odd id, in one repository.
func TestReport_M1_M2_M4_NamesAreOneToOne(t *testing.T) {
	outer := t.TempDir()
	root := filepath.Join(outer, "a", "b", "sessions")
	repo := jsonl.NewRepo(root, quick)
	paths := map[string]string{}
	dirs := map[string]string{}
	names := slices.Clone(oddNames)
	r := newRand(t)
	for range 30 {
		names = append(names, randomName(r))
	}
	slices.Sort(names)
	names = slices.Compact(names)
	for i, name := range names {
		for _, o := range []eventlog.CreateOptions{{ID: fmt.Sprintf("id%d", i), CWD: name}, {ID: name, CWD: "/project"}} {
			s, err := repo.Create(t.Context(), o)
			require.NoError(t, err, "%+q", o)
			m, err := s.Metadata(t.Context())
			require.NoError(t, err)
			require.Equal(t, []string{o.ID, o.CWD}, []string{m.ID, m.CWD}, "kept exactly")
			rel, err := filepath.Rel(root, m.Path)
			require.NoError(t, err)
			require.True(t, filepath.IsLocal(rel), "%q leads out", rel)
			dir, file := filepath.Split(rel)
			dir = filepath.Clean(dir)
			require.Equal(t, filepath.Base(dir), dir, "%q: a folder below the root, and a file in there", rel)
			for _, part := range []string{dir, file} {
				portable(t, part)
			}
			require.Empty(t, paths[m.Path], "%+q and %+q share a file", paths[m.Path], o)
			paths[m.Path] = fmt.Sprintf("%+q", o)
			if o.CWD == name {
				require.Empty(t, dirs[dir], "%+q and %+q share a folder", dirs[dir], name)
				dirs[dir] = fmt.Sprintf("%+q", name)
				_, err = repo.Create(t.Context(), o)
				require.ErrorIs(t, err, eventlog.ErrAlreadyExists, "%+q", o)
			}
			require.NoError(t, s.Close())
		}
	}

	// Each is found again: by its working folder, by its id, and without any.
	all, err := repo.List(t.Context(), "")
	require.NoError(t, err)
	require.Len(t, all, 2*len(names))
	for i, name := range names {
		if name != "/project" {
			listed, err := repo.List(t.Context(), name)
			require.NoError(t, err)
			require.Len(t, listed, 1, "%+q", name)
			require.NoError(t, listed[0].Err)
			require.Equal(t, []string{fmt.Sprintf("id%d", i), name}, []string{listed[0].ID, listed[0].CWD})
		}
		s, err := repo.Open(t.Context(), eventlog.Metadata{ID: name, CWD: "/project"})
		require.NoError(t, err, "%+q", name)
		m, err := s.Metadata(t.Context())
		require.NoError(t, err)
		require.Equal(t, name, m.ID)
	}

	// And nothing is anywhere else.
	var files []string
	require.NoError(t, filepath.WalkDir(outer, func(path string, d fs.DirEntry, err error) error {
		if err == nil && !d.IsDir() {
			files = append(files, path)
			require.NotEmpty(t, paths[path], "a file that no session has: %q", path)
		}
		return err
	}))
	require.Len(t, files, len(paths))

	// Deleting one deletes that one.
	for i, name := range names {
		require.NoError(t, repo.Delete(t.Context(), eventlog.Metadata{ID: fmt.Sprintf("id%d", i), CWD: name}))
	}
	left, err := repo.List(t.Context(), "")
	require.NoError(t, err)
	require.Len(t, left, len(names))
	for _, l := range left {
		require.Equal(t, "/project", l.CWD)
	}
}

// portable asks that all of Linux, macOS and Windows take a name.
func portable(t testing.TB, name string) {
	t.Helper()
	require.NotEmpty(t, name)
	require.LessOrEqual(t, len(name), 230, "room for .damaged and .tmp: %q", name)
	require.False(t, strings.ContainsAny(name, "/\\:*?\"<>|\x00\x7F"), "%q", name)
	for _, c := range []byte(name) {
		require.GreaterOrEqual(t, c, byte(0x20), "%q", name)
	}
	require.True(t, js.ToWellFormed(name) == name && js.DecodeUTF8(name) == name, "%q is UTF-8", name)
	require.NotContains(t, []string{".", ".."}, name)
	require.False(t, strings.HasSuffix(name, ".") || strings.HasSuffix(name, " "), "%q", name)
	base, _, _ := strings.Cut(strings.ToUpper(name), ".")
	require.NotContains(t, []string{"CON", "PRN", "AUX", "NUL", "COM1", "LPT1", "LPT9"}, base)
}

// randomName is made of what is likely to be mixed up.
func randomName(r *rand.Rand) string {
	parts := []string{"/", "/", "-", "--", "_", ".", "..", "\\", ":", "%", "%2F", "%2D", "%_", "%~", "a", "b", "A", "日", "é", " ", "\x00", "\n", "CON"}
	var b strings.Builder
	for range 1 + r.IntN(8) {
		b.WriteString(parts[r.IntN(len(parts))])
	}
	return b.String()
}

// TestReport_M1_PisFoldersAreFound lists what Pi wrote, of one working folder
// where two share a folder.
func TestReport_M1_PisFoldersAreFound(t *testing.T) {
	root := t.TempDir()
	repo := jsonl.NewRepo(root, quick)
	piWrote := func(cwd, id string) string {
		dir := filepath.Join(root, jsonl.PiDir(cwd))
		require.NoError(t, os.MkdirAll(dir, 0o755))
		path := filepath.Join(dir, jsonl.PiFileName("2026-01-01T00:00:00.000Z", id))
		m := eventlog.Metadata{ID: id, CreatedAt: "2026-01-01T00:00:00.000Z", CWD: cwd}
		require.NoError(t, os.WriteFile(path, []byte(m.HeaderText()+"\n"+user("m1", "", cwd)+"\n"), 0o644))
		return path
	}
	cwds := []string{"/a/b-c", "/a-b/c", "/a/b/c", `C:\x`, "C:/x", "/日本", "relative/x"}
	for _, cwd := range cwds {
		piWrote(cwd, "pi "+strings.NewReplacer("/", "!", "\\", "!!", ":", "!!!").Replace(cwd))
		s, err := repo.Create(t.Context(), eventlog.CreateOptions{ID: "ours " + cwd, CWD: cwd})
		require.NoError(t, err)
		closed(t, s.Storage())
	}
	for _, cwd := range cwds {
		listed, err := repo.List(t.Context(), cwd)
		require.NoError(t, err)
		var got []string
		for _, l := range listed {
			require.NoError(t, l.Err)
			require.Equal(t, cwd, l.CWD)
			got = append(got, l.ID[:2])
		}
		require.ElementsMatch(t, []string{"ou", "pi"}, got, "%q", cwd)
	}
	// A folder of Pi's that leads elsewhere is never gone into.
	if runtime.GOOS != "windows" {
		outside := filepath.Join(root, "..", "----")
		_, err := repo.List(t.Context(), "/../x")
		require.NoError(t, err)
		_, err = os.Stat(outside)
		require.ErrorIs(t, err, fs.ErrNotExist)
	}
}

// TestReport_M4_WhatAFileCannotHoldIsRefused: text that is not UTF-8 cannot be
// kept by JSON.
func TestReport_M4_WhatAFileCannotHold(t *testing.T) {
	repo := jsonl.NewRepo(t.TempDir(), quick)
	for i, cwd := range []string{"/x\xFF", "/x\xFE", "/x\xC3", "/x\uFFFD"} {
		s, err := repo.Create(t.Context(), eventlog.CreateOptions{ID: fmt.Sprint("s", i), CWD: cwd})
		require.NoError(t, err)
		m, err := s.Metadata(t.Context())
		require.NoError(t, err)
		closed(t, s.Storage())
		again, err := jsonl.ReadHeader(m.Path, quick)
		require.NoError(t, err)
		require.Equal(t, m, again, "what is answered now is what is answered later")
		listed, err := repo.List(t.Context(), cwd)
		require.NoError(t, err)
		require.Len(t, listed, 1, "%q is found", cwd)
		require.Equal(t, fmt.Sprint("s", i), listed[0].ID)
	}
	for _, id := range []string{"\xFF", "a\xC3", "\xED\xA0\xBD\xED\xB8\x80"} {
		_, err := repo.Create(t.Context(), eventlog.CreateOptions{ID: id, CWD: "/p"})
		require.ErrorIs(t, err, eventlog.ErrInvalidArgument, "%q would come back as another id", id)
	}
}

// TestReport_B8_B10_EverySessionIsReachableByTheDefaultCall
func TestReport_B8_B10_EverySessionIsReachableByTheDefaultCall(t *testing.T) {
	root := t.TempDir()
	at := time.UnixMilli(1767225600000)
	repo := jsonl.NewRepo(root, jsonl.Options{NoSync: true, Source: eventlog.Source{Now: func() time.Time { at = at.Add(time.Second); return at }}})
	var want []string
	for i := range 250 {
		id := fmt.Sprintf("s%03d", i)
		s, err := repo.Create(t.Context(), eventlog.CreateOptions{ID: id, CWD: fmt.Sprintf("/project/%d", i%5)})
		require.NoError(t, err)
		require.NoError(t, s.Close())
		want = append([]string{id}, want...)
	}
	got := func(cwd string) []string {
		listed, err := repo.List(t.Context(), cwd)
		require.NoError(t, err)
		var ids []string
		for _, l := range listed {
			require.NoError(t, l.Err)
			ids = append(ids, l.ID)
		}
		return ids
	}
	require.Equal(t, want, got(""), "all, newest first")
	inOne := got("/project/0")
	require.Len(t, inOne, 50)
	require.Equal(t, []string{"s245", "s240"}, inOne[:2])
	require.Equal(t, "s000", inOne[49], "the oldest too")
	s, err := repo.Open(t.Context(), eventlog.Metadata{ID: "s000"})
	require.NoError(t, err)
	closed(t, s.Storage())

	// B3: a list reads headers only, however large the sessions are.
	large := filepath.Join(root, "--project-0--", "2026-02-01T00-00-00-000Z_large.jsonl")
	require.NoError(t, os.MkdirAll(filepath.Dir(large), 0o700))
	f, err := os.Create(large)
	require.NoError(t, err)
	_, err = f.WriteString(lines(strings.Replace(header, "s1", "large", 1)))
	require.NoError(t, err)
	require.NoError(t, f.Truncate(2<<30), "a sparse file of 2 GiB")
	require.NoError(t, f.Close())
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	require.Len(t, got(""), 251)
	runtime.ReadMemStats(&after)
	require.Less(t, after.TotalAlloc-before.TotalAlloc, uint64(16<<20))
}

// TestReport_B3_AListIsNotHeldUpByAFileWithoutLines: what has no newline for
// gigabytes is no header.
func TestReport_B3_AListIsNotHeldUpByAFileWithoutLines(t *testing.T) {
	root := t.TempDir()
	path := filepath.Join(root, "p", "zeros.jsonl")
	require.NoError(t, os.MkdirAll(filepath.Dir(path), 0o700))
	f, err := os.Create(path)
	require.NoError(t, err)
	require.NoError(t, f.Truncate(8<<30))
	require.NoError(t, f.Close())
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	listed, err := jsonl.NewRepo(root, quick).List(t.Context(), "")
	require.NoError(t, err)
	require.Len(t, listed, 1)
	require.ErrorIs(t, listed[0].Err, eventlog.ErrInvalidSession)
	runtime.ReadMemStats(&after)
	require.Less(t, after.TotalAlloc-before.TotalAlloc, uint64(128<<20))
}
