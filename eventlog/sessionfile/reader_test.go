package sessionfile_test

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"io"
	"io/fs"
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/sessiontree/sessiontree/eventlog"
	"github.com/sessiontree/sessiontree/eventlog/conformance"
	"github.com/sessiontree/sessiontree/eventlog/jsonl"
	"github.com/sessiontree/sessiontree/eventlog/memory"
	"github.com/sessiontree/sessiontree/eventlog/sessionfile"
)

// contents is a whole file, read.
type contents struct {
	header  sessionfile.Header
	entries []eventlog.Entry
	damage  []sessionfile.Damage
	end     *sessionfile.End
	bytes   string // as the parts give it again
	parts   strings.Builder
	dialect eventlog.Dialect
}

func (c *contents) gap(parts []sessionfile.Part, usual string, whole bool) {
	if parts == nil && whole {
		c.parts.WriteString(usual)
	}
	for _, p := range parts {
		c.parts.WriteString(p.Bytes)
		if p.Damage != nil {
			c.damage = append(c.damage, *p.Damage)
		}
	}
}

func read(t testing.TB, text string, o sessionfile.Options) (c *contents, err error) {
	t.Helper()
	c = &contents{}
	r, err := sessionfile.NewReader("file", strings.NewReader(text), o)
	if err != nil {
		return c, err
	}
	c.header = r.Header()
	c.gap(c.header.Gap, "", true)
	c.parts.WriteString(c.header.Edits.Apply(c.header.Metadata.Header))
	for {
		item, err := r.Next()
		if err == io.EOF {
			break
		}
		require.NoError(t, err)
		c.gap(item.Gap, c.header.Newline, !item.Partial)
		if item.Partial {
			continue
		}
		edits, err := sessionfile.DecodeEdits(item.Edits.Encode(), len(item.Entry.JSON()))
		require.NoError(t, err)
		c.parts.WriteString(edits.Apply(item.Entry.JSON()))
		c.entries = append(c.entries, item.Entry)
	}
	c.end = r.End()
	c.dialect, _ = r.Dialect(nil)
	c.gap(c.end.Gap, c.header.Newline, true)
	c.bytes = c.parts.String()
	if int64(len(c.bytes)) != c.end.Offset {
		t.Errorf("read for good up to %d, and %d bytes came back", c.end.Offset, len(c.bytes))
	}
	sum := sha256.Sum256([]byte(c.bytes[c.header.Title:]))
	assert.Equal(t, sum[:], c.end.Hash, "hash")
	c.bytes += c.end.Tail
	if c.end.Torn != nil {
		c.damage = append(c.damage, *c.end.Torn)
	}
	return c, nil
}

// whole reads a file that has to come back byte for byte.
func whole(t testing.TB, text string) *contents {
	t.Helper()
	c, err := read(t, text, sessionfile.Options{})
	require.NoError(t, err)
	if c.bytes != text {
		t.Fatalf("came back as\n%q, not\n%q", c.bytes, text)
	}
	for _, d := range c.damage {
		require.True(t, d.Offset >= 0 && d.Length > 0 && d.Offset+d.Length <= int64(len(text)), "%v", d)
	}
	return c
}

const (
	header3 = `{"type":"session","version":3,"id":"s","timestamp":"2026-01-01T00:00:00.000Z","cwd":"/p"}`
	entryA  = `{"type":"message","id":"a","parentId":null,"timestamp":"2026-01-01T00:00:01.000Z","message":{"role":"user","content":"A"}}`
	entryB  = `{"type":"custom","id":"b","parentId":"a","timestamp":"2026-01-01T00:00:02.000Z","customType":"x"}`
	entryC  = `{"type":"message","id":"c","parentId":"b","timestamp":"2026-01-01T00:00:03.000Z","message":{"role":"user","content":"C"}}`
)

func texts(entries []eventlog.Entry) (out []string) {
	for _, e := range entries {
		out = append(out, e.JSON())
	}
	return out
}

// Every recorded session file of Pi's comes back byte for byte, and of those that
// the file backend takes, the entries are the same.
func TestRecordedFilesComeBack(t *testing.T) {
	for name, vectors := range map[string]fs.FS{"harness": conformance.Vectors(), "coding agent": conformance.AgentVectors()} {
		t.Run(name, func(t *testing.T) { comeBack(t, vectors) })
	}
}

func comeBack(t *testing.T, vectors fs.FS) {
	files, refused := 0, 0
	err := fs.WalkDir(vectors, ".", func(name string, d fs.DirEntry, err error) error {
		if err != nil || !strings.HasSuffix(name, ".jsonl") {
			return err
		}
		b, err := fs.ReadFile(vectors, name)
		require.NoError(t, err)
		text := string(b)
		c, err := read(t, text, sessionfile.Options{})
		backend, backendErr := jsonl.Parse("file", text, jsonl.Options{})
		if err != nil {
			assert.ErrorIs(t, err, eventlog.ErrInvalidSession, name)
			assert.Error(t, backendErr, name)
			refused++
			return nil
		}
		files++
		assert.True(t, c.bytes == text, name)
		if backendErr == nil && c.header.Format == sessionfile.V3 {
			assert.Equal(t, texts(backend.Entries), texts(c.entries), name)
			assert.Equal(t, backend.Metadata, c.header.Metadata, name)
		}
		return nil
	})
	require.NoError(t, err)
	assert.Greater(t, files, 80)
	assert.Less(t, refused, files/8)
}

// By the coding agent's rules a file gives the entries that its file backend gives:
// numbers, lists and entries without an id too.
func TestRecordedFilesAsTheCodingAgentReadsThem(t *testing.T) {
	files, odd := 0, 0
	for _, vectors := range []fs.FS{conformance.Vectors(), conformance.AgentVectors()} {
		require.NoError(t, fs.WalkDir(vectors, ".", func(name string, d fs.DirEntry, err error) error {
			if err != nil || !strings.HasSuffix(name, ".jsonl") {
				return err
			}
			b, err := fs.ReadFile(vectors, name)
			require.NoError(t, err)
			c, err := read(t, string(b), sessionfile.Options{Dialect: eventlog.CodingAgent})
			if err != nil {
				return nil // no session: see above
			}
			assert.True(t, c.bytes == string(b), name)
			backend, err := jsonl.Parse("file", string(b), jsonl.Options{Dialect: eventlog.CodingAgent})
			if err != nil {
				return nil
			}
			files++
			require.Equal(t, backend.Metadata.Header, c.header.Metadata.Header, name)
			require.Equal(t, texts(backend.Entries), texts(c.entries), name)
			for i, e := range backend.Entries {
				require.Equal(t, e, c.entries[i], name)
				if _, err := eventlog.ParseEntry(e.JSON()); err != nil {
					odd++
				}
			}
			return nil
		}))
	}
	assert.Greater(t, files, 150)
	assert.Greater(t, odd, 10)
}

// The coding agent's recorded answers for older versions: which entry each hangs
// below, what each compaction keeps from, and the file that Pi writes anew.
func TestOlderVersionsAsPiBringsThemUp(t *testing.T) {
	vectors := conformance.AgentVectors()
	cases, err := fs.Glob(vectors, "files/v[12]-*")
	require.NoError(t, err)
	require.Len(t, cases, 5)
	for _, dir := range cases {
		t.Run(dir, func(t *testing.T) {
			var want struct {
				EntryLines []int
				Migrated   struct {
					Nodes []struct {
						Line, ParentLine, FirstKeptLine *int
					}
				}
			}
			b, err := fs.ReadFile(vectors, dir+"/expect.json")
			require.NoError(t, err)
			require.NoError(t, json.Unmarshal(b, &want))
			input, err := fs.ReadFile(vectors, dir+"/input.jsonl")
			require.NoError(t, err)
			after, err := fs.ReadFile(vectors, dir+"/after-open.jsonl")
			require.NoError(t, err)
			c := whole(t, string(input))
			require.Len(t, c.entries, len(want.EntryLines))
			lines := map[string]*int{} // by id
			for i, e := range c.entries {
				lines[e.ID()] = &want.EntryLines[i]
			}
			for i, n := range want.Migrated.Nodes {
				e := c.entries[i]
				assert.Equal(t, n.Line, lines[e.ID()])
				assert.Equal(t, n.ParentLine, lines[e.Parent().ID()], "parent in line %d", *n.Line)
				// A later record has not got its new id yet: Pi keeps what it had.
				kept, _ := e.Get("firstKeptEntryId").Str()
				assert.Equal(t, n.FirstKeptLine, lines[kept], "first kept of line %d", *n.Line)
			}
			// But for the ids that are random, Pi writes the same, and a reference to an
			// old id that is not there any more.
			pi := whole(t, string(after))
			assert.Equal(t, pi.header.Metadata.Header, c.header.Metadata.Header)
			require.Len(t, pi.entries, len(c.entries))
			ours := strings.Join(texts(c.entries), "\n")
			theirs := strings.Join(texts(pi.entries), "\n")
			for i := range c.entries {
				ours = strings.ReplaceAll(ours, c.entries[i].ID(), fmt.Sprint("#", i))
				theirs = strings.ReplaceAll(theirs, pi.entries[i].ID(), fmt.Sprint("#", i))
			}
			assert.Equal(t, strings.Replace(theirs, `,"firstKeptEntryId":"u3"`, "", 1), ours)
		})
	}
}

func TestDamage(t *testing.T) {
	nuls := strings.Repeat("\x00", 500)
	type places = []sessionfile.Damage
	at := func(line, offset, length int, reason string) places {
		return places{{Line: line, Offset: int64(offset), Length: int64(length), Reason: reason}}
	}
	h := len(header3) + 1
	for _, test := range []struct {
		name, text string
		entries    []string
		damage     places // without the reason: see reason
	}{
		{"nothing odd", header3 + "\n" + entryA + "\n" + entryB + "\n", []string{entryA, entryB}, nil},
		{"no last newline", header3 + "\n" + entryA, []string{entryA}, nil},
		{"nothing but a header", header3, nil, nil},
		{"a byte order mark", "\uFEFF" + header3 + "\n" + entryA + "\n", []string{entryA}, nil},
		{"a byte order mark before an entry", header3 + "\n\uFEFF" + entryA + "\n", []string{entryA}, nil},
		{"carriage returns", header3 + "\r\n" + entryA + "\r\n" + entryB + "\r\n", []string{entryA, entryB}, nil},
		{"carriage returns here and there", header3 + "\n" + entryA + "\r\n" + entryB + "\n", []string{entryA, entryB}, nil},
		{"a carriage return at the end", header3 + "\n" + entryA + "\r", []string{entryA}, nil},
		{"blank lines and blanks", "\n \n" + header3 + " \n\n\t" + entryA + "  \n\n\n" + entryB + "\n\n", []string{entryA, entryB}, nil},
		{"NULs as a line", header3 + "\n" + nuls + "\n" + entryA + "\n", []string{entryA}, at(2, h, 500, "NUL bytes")},
		{"NULs before an entry", header3 + "\n" + nuls + entryA + "\n", []string{entryA}, at(2, h, 500, "not valid JSON")},
		{"NULs at the end", header3 + "\n" + entryA + "\n" + nuls, []string{entryA}, at(3, h+len(entryA)+1, 500, "NUL bytes")},
		{"a torn tail", header3 + "\n" + entryA + "\n" + entryB[:20], []string{entryA}, at(3, h+len(entryA)+1, 20, "not valid JSON")},
		{"glued records", header3 + "\n" + entryA + entryB + "\n" + entryC + "\n", []string{entryA, entryB, entryC}, nil},
		{"glued to the header", header3 + entryA + "\n" + entryB + "\n", []string{entryA, entryB}, nil},
		{"half a record before a whole one", header3 + "\n" + `{"type":"mess` + entryA + "\n", []string{entryA}, at(2, h, 13, "not valid JSON")},
		{"a raw control character", header3 + "\n" + strings.Replace(entryA, `"A"`, "\"\x01\"", 1) + "\n" + entryB + "\n", []string{entryB}, at(2, h, len(entryA), "not valid JSON")},
		{"bytes that are no UTF-8", header3 + "\n" + strings.Replace(entryA, `"A"`, "\"\xff\"", 1) + "\n", []string{strings.Replace(entryA, `"A"`, "\"\xff\"", 1)}, nil},
		{"a record without an id", header3 + "\n" + `{"type":"custom"}` + "\n" + entryA + "\n", []string{entryA}, at(2, h, 17, "missing entry id")},
		{"a second header", header3 + "\n" + entryA + "\n" + header3 + "\n" + entryB + "\n", []string{entryA, entryB}, at(3, h+len(entryA)+1, len(header3), "invalid parentId")},
		{"junk before the header", "not json\n" + header3 + "\n" + entryA + "\n", []string{entryA}, at(1, 0, 8, "before the header")},
	} {
		t.Run(test.name, func(t *testing.T) {
			c := whole(t, test.text)
			assert.Equal(t, test.entries, texts(c.entries))
			require.Len(t, c.damage, len(test.damage))
			for i, d := range c.damage {
				assert.Contains(t, d.Reason, test.damage[i].Reason)
				d.Reason = test.damage[i].Reason
				assert.Equal(t, test.damage[i], d)
			}
		})
	}
}

func TestRefused(t *testing.T) {
	png := "\x89PNG\r\n\x1a\n\x00\x00\x00\rIHDR"
	for _, text := range []string{
		"", "\n\n", "# A readme\n\nWith text.\n", png, "SQLite format 3\x00", entryA + "\n" + header3 + "\n", "[1]\n", header3[:40],
		`{"type":"session","version":3}` + "\n", `{"v":5,"kind":"header","id":"s"}` + "\n", `{"v":4,"kind":"header","id":"s","storageVersion":2}` + "\n",
	} {
		_, err := read(t, text, sessionfile.Options{})
		assert.ErrorIs(t, err, eventlog.ErrInvalidSession, text)
	}
}

// Cut anywhere in its last three lines, a file loses no entry that is whole.
func TestTornAtEveryByte(t *testing.T) {
	lines := []string{header3, entryA, entryB, entryC}
	text := strings.Join(lines, "\n") + "\n"
	whole3 := [][]string{{entryA}, {entryA, entryB}, {entryA, entryB, entryC}}
	for cut := len(header3); cut <= len(text); cut++ {
		want, end := []string(nil), len(header3)
		for i, entries := range whole3 {
			if end += 1 + len(lines[i+1]); cut >= end {
				want = entries
			}
		}
		c := whole(t, text[:cut])
		require.Equal(t, want, texts(c.entries), "cut at %d", cut)
	}
}

// Version 1 as Pi's coding agent brings it to today's (its recorded answers,
// v1-index-odd and v1-with-ids, are the source of what is wanted here).
func TestVersion1(t *testing.T) {
	text := strings.Join([]string{
		`{"type":"session","id":"old","timestamp":"2025-01-01T00:00:00.000Z","cwd":"/p","provider":"acme"}`,
		`{"type":"message","timestamp":"2025-01-01T00:00:01.000Z","message":{"role":"user","content":"1"}}`,
		`not json, and no record`,
		`5`,
		`{"type":"message","id":"mine","parentId":"x","timestamp":"2025-01-01T00:00:02.000Z","message":{"role":"hookMessage","content":"2"}}`,
		`{"type":"compaction","timestamp":"2025-01-01T00:00:03.000Z","summary":"s","firstKeptEntryIndex":3,"tokensBefore":1}`,
		`{"firstKeptEntryIndex" : 0 , "type":"compaction","timestamp":"2025-01-01T00:00:04.000Z"}`,
		`{"type":"compaction","timestamp":"2025-01-01T00:00:05.000Z","firstKeptEntryIndex":99}`,
	}, "\n") + "\n"
	c := whole(t, text)
	assert.Equal(t, sessionfile.V1, c.header.Format)
	assert.Equal(t, `{"type":"session","id":"old","timestamp":"2025-01-01T00:00:00.000Z","cwd":"/p","provider":"acme","version":3}`, c.header.Metadata.Header)
	ids := make([]any, 0, 2*len(c.entries))
	for i, e := range c.entries {
		require.Regexp(t, "^[0-9a-f]{16}$", e.ID())
		if i == 0 {
			assert.True(t, e.Parent().IsNone())
		} else {
			assert.Equal(t, eventlog.At(c.entries[i-1].ID()), e.Parent())
		}
		ids = append(ids, e.ID())
	}
	require.Len(t, ids, 5)
	assert.Equal(t, []string{
		fmt.Sprintf(`{"type":"message","timestamp":"2025-01-01T00:00:01.000Z","message":{"role":"user","content":"1"},"id":"%s","parentId":null}`, ids[0]),
		fmt.Sprintf(`{"type":"message","id":"%s","parentId":"%s","timestamp":"2025-01-01T00:00:02.000Z","message":{"role":"custom","content":"2"}}`, ids[1], ids[0]),
		fmt.Sprintf(`{"type":"compaction","timestamp":"2025-01-01T00:00:03.000Z","summary":"s","tokensBefore":1,"id":"%s","parentId":"%s","firstKeptEntryId":"%s"}`, ids[2], ids[1], ids[1]),
		fmt.Sprintf(`{ "type":"compaction","timestamp":"2025-01-01T00:00:04.000Z","id":"%s","parentId":"%s"}`, ids[3], ids[2]),
		fmt.Sprintf(`{"type":"compaction","timestamp":"2025-01-01T00:00:05.000Z","id":"%s","parentId":"%s"}`, ids[4], ids[3]),
	}, texts(c.entries))
	again := whole(t, text)
	assert.Equal(t, texts(c.entries), texts(again.entries), "ids follow from the text")
}

func TestVersion2(t *testing.T) {
	hook := `{"type":"message","id":"a","parentId":null,"timestamp":"2025-01-01T00:00:01.000Z","message":{"content":"x","role" : "hookMessage"}}`
	c := whole(t, strings.Replace(header3, `"version":3`, `"version":2`, 1)+"\n"+hook+"\n"+entryB+"\n")
	assert.Equal(t, sessionfile.V2, c.header.Format)
	assert.Equal(t, header3, c.header.Metadata.Header)
	assert.Equal(t, []string{strings.Replace(hook, "hookMessage", "custom", 1), entryB}, texts(c.entries))
}

// A file of version 4 that Pi's agent core 0.87.1 wrote.
func TestVersion4(t *testing.T) {
	b, err := os.ReadFile("testdata/v4.jsonl")
	require.NoError(t, err)
	c := whole(t, string(b))
	assert.Equal(t, sessionfile.V4, c.header.Format)
	assert.Equal(t, `{"type":"session","version":3,"id":"newer","timestamp":"2026-01-01T00:00:01.000Z","cwd":"/tmp"}`, c.header.Metadata.Header)
	assert.Equal(t, eventlog.Harness, c.dialect)
	assert.Empty(t, c.damage)
	var kinds []string
	for _, e := range c.entries {
		kinds = append(kinds, string(e.Type()))
	}
	assert.Equal(t, []string{
		"message", "message", "session_info", "leaf", "label", "leaf", "message", "custom", "branch_summary", "message",
		"compaction", "message", "message", "leaf", "label", "leaf", "leaf",
	}, kinds)
	s := eventlog.NewSession(memory.New(c.header.Metadata, c.entries, memory.Options{}))
	ctx := context.Background()
	name, err := s.Name(ctx)
	require.NoError(t, err)
	assert.Equal(t, "A name", name)
	labels, err := s.Labels(ctx)
	require.NoError(t, err)
	assert.Empty(t, labels, "it was taken off again")
	branch, err := s.Branch(ctx, eventlog.None())
	require.NoError(t, err)
	var says []string
	for _, e := range branch {
		says = append(says, e.Message().PlainText()+e.Get("summary").JSON())
	}
	assert.Equal(t, []string{"question one", "answer one", `"plan A was slow"`, "plan B"}, says)

	half := string(b)
	c = whole(t, half[:len(half)-1])
	assert.Len(t, c.entries, len(kinds)-1, "a transaction without its newline was not committed")
}

func TestDialect(t *testing.T) {
	for text, want := range map[string]eventlog.Dialect{
		entryA: eventlog.CodingAgent,
		`{"type":"usage","id":"u","parentId":"a","timestamp":"t"}`:                                          eventlog.CodingAgent,
		`{"type":"leaf","id":"l","parentId":"a","timestamp":"t","targetId":null}`:                           eventlog.Harness,
		`{"type":"compaction","id":"c","parentId":"a","timestamp":"t","retainedTail":[]}`:                   eventlog.Harness,
		`{"type":"active_tools_change","id":"t","parentId":"a","timestamp":"t","activeToolNames":["read"]}`: eventlog.Harness,
	} {
		assert.Equal(t, want, whole(t, header3+"\n"+text+"\n").dialect, text)
	}
}

// oh-my-pi puts a line before the header whose text changes in place.
func TestTitleLine(t *testing.T) {
	title := `{"type":"title","v":1,"title":"My session","updatedAt":"2026-01-01T00:00:00.000Z","pad":"   "}` + "\n"
	c := whole(t, title+header3+"\n"+entryA+"\n")
	assert.Equal(t, []string{entryA}, texts(c.entries))
	assert.Equal(t, int64(len(title)), c.header.Title)
	assert.Empty(t, c.damage)
}

func TestReport_B1_LinesOfAnyLength(t *testing.T) {
	long := func(n int) string { return strings.Replace(entryA, `"A"`, `"`+strings.Repeat("x", n)+`"`, 1) }
	for _, n := range []int{65 << 10, 11 << 20, 22 << 20} {
		c := whole(t, header3+"\n"+long(n)+"\n"+entryB+"\n")
		assert.Len(t, c.entries, 2)
	}
	// Beyond the limit a line costs itself.
	for _, end := range []string{"\n" + entryB + "\n", ""} {
		text := header3 + "\n" + entryA + "\n" + long(5<<20) + end
		c, err := read(t, text, sessionfile.Options{MaxLine: 1 << 20})
		require.NoError(t, err)
		assert.True(t, c.bytes == text)
		assert.Len(t, c.entries, 1+len(end)/50)
		require.Len(t, c.damage, 1)
		assert.Equal(t, int64(len(long(5<<20))), c.damage[0].Length)
		assert.Equal(t, int64(len(header3)+len(entryA)+2), c.damage[0].Offset)
	}
}

// A gap of any length does not have to be held.
func TestLongGaps(t *testing.T) {
	whole(t, header3+"\n"+strings.Repeat("\n", 3<<20)+entryA+"\n"+strings.Repeat("garbage\n", 1<<19)+entryB+"\n"+strings.Repeat(" ", 3<<20)+"\n")
}

func FuzzBytesComeBack(f *testing.F) {
	f.Add(header3 + "\r\n" + entryA + entryB[:30] + "\n" + entryC)
	f.Add(`{"type":"session","id":"o"}` + "\n" + `{"type":"compaction","timestamp":"t","firstKeptEntryIndex":0}`)
	b, err := os.ReadFile("testdata/v4.jsonl")
	if err != nil {
		f.Fatal(err)
	}
	f.Add(string(b))
	f.Fuzz(func(t *testing.T, text string) {
		for _, limit := range []int{0, 100} {
			c, err := read(t, text, sessionfile.Options{MaxLine: limit})
			if err == nil && c.bytes != text {
				t.Fatalf("%q came back as %q", text, c.bytes)
			}
		}
	})
}
