package jsonl_test

import (
	"encoding/base64"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/sessiontree/sessiontree/eventlog"
	"github.com/sessiontree/sessiontree/eventlog/jsonl"
)

func fromBase64(t testing.TB, s string) string {
	t.Helper()
	b, err := base64.StdEncoding.DecodeString(s)
	require.NoError(t, err)
	return string(b)
}

// damaged is what the damage report names of a file's text.
func damaged(t testing.TB, text string, damage []jsonl.Damage) []string {
	t.Helper()
	parts := []string{}
	for _, d := range damage {
		require.NotEmpty(t, d.Reason)
		require.Equal(t, 1+strings.Count(text[:d.Offset], "\n"), d.Line, "the line of %v", d)
		parts = append(parts, text[d.Offset:d.Offset+d.Length])
	}
	return parts
}

// TestReport_A1_HalfARecordBeforeAWholeOne glues each half of each kind of
// record to a whole record, in the middle of a file and at its end, with and
// without a last newline.
func TestReport_A1_HalfARecordBeforeAWholeOne(t *testing.T) {
	t.Parallel()
	all := mixed()
	path := put(t, "")
	for _, half := range all[:5] {
		for cut := 1; cut < len(half); cut++ {
			torn := half[:cut]
			for i, after := range []string{"\n", "", "\n" + all[5] + "\n"} {
				if i > 0 && cut%7 > 1 && !long {
					continue
				}
				text := lines(header, all[0], all[1]) + torn + all[2] + after
				want := []string{all[0], all[1], all[2]}
				if strings.Contains(after, all[5]) {
					want = append(want, all[5])
				}
				c, err := jsonl.Parse(path, text, quick)
				require.NoError(t, err, "cut at %d of %s", cut, half)
				require.Equal(t, want, textsOf(c.Entries), "cut at %d of %s", cut, half)
				require.Equal(t, []string{torn}, damaged(t, text, c.Damage), "cut at %d of %s", cut, half)
			}
			if cut%40 == 1 || long {
				// The file itself is not touched by opening, and takes more.
				text := lines(header, all[0]) + torn + all[2] + "\n"
				rewrite(t, path, text)
				appendsAndKeeps(t, path, []string{all[0], all[2]})
				require.True(t, strings.HasPrefix(read(t, path), text), "no byte that was there is touched")
				require.Empty(t, setAside(t, path))
			}
		}
	}
}

func TestReport_A1_RecordsGluedInOtherWays(t *testing.T) {
	a, b, c := user("a", "", "a"), user("b", "a", "b"), user("c", "b", "c")
	half := a[:60]
	for name, test := range map[string]struct {
		line    string
		want    []string
		damaged []string
	}{
		"two whole ones":                       {a + b, []string{a, b}, nil},
		"three with blanks between":            {a + "  " + b + "\t" + c, []string{a, b, c}, nil},
		"with a carriage return between":       {a + "\r" + b, []string{a, b}, nil},
		"with a comma between":                 {a + "," + b, []string{a, b}, []string{","}},
		"a whole one before half":              {a + half, []string{a}, []string{half}},
		"half between whole ones":              {a + half + b, []string{a, b}, []string{half}},
		"two halves before a whole one":        {half + half + b, []string{b}, []string{half + half}},
		"half, whole, whole":                   {half + a + b, []string{a, b}, []string{half}},
		"half that ends in a colon, two whole": {`{"type":` + a + b, []string{a, b}, []string{`{"type":`}},
		"half that ends in a comma, NULs":      {`{"type":"x",` + a + "\x00\x00", []string{a}, []string{`{"type":"x",`, "\x00\x00"}},
		"NULs between":                         {a + "\x00\x00\x00" + b, []string{a, b}, []string{"\x00\x00\x00"}},
		"words before":                         {"oops " + a, []string{a}, []string{"oops "}},
		"words behind":                         {a + " oops", []string{a}, []string{" oops"}},
		"a bracket before":                     {"{" + a, []string{a}, []string{"{"}},
		"a list of records":                    {"[" + a + "]", []string{}, []string{"[" + a + "]"}},
		"an entry in a broken entry's details": {`{"type":"custom","data":` + a + `,"id":}`, []string{}, []string{`{"type":"custom","data":` + a + `,"id":}`}},
		"a byte order mark before":             {"\uFEFF" + a, []string{a}, []string{"\uFEFF"}},
	} {
		t.Run(name, func(t *testing.T) {
			root := user("root", "", "root")
			text := lines(header, root, test.line, user("z", "root", "z"))
			want := append(append([]string{root}, test.want...), user("z", "root", "z"))
			path := put(t, text)
			s := open(t, path, quick)
			require.Equal(t, want, textsOf(entriesOf(t, s)))
			wantDamage := append([]string{}, test.damaged...)
			require.Equal(t, wantDamage, damaged(t, text, s.Damage()))
			require.Equal(t, text, read(t, path), "opening changes nothing")
			appendsAndKeeps(t, path, want)
		})
	}
}

// TestReport_A2_AppendToAFileWithoutItsLastNewline strips the last newline
// behind each kind of record.
func TestReport_A2_AppendToAFileWithoutItsLastNewline(t *testing.T) {
	all := mixed()
	for n := range len(all) + 1 {
		for _, end := range []string{"", " ", "\r", "\t \r"} {
			text := strings.TrimSuffix(lines(append([]string{header}, all[:n]...)...), "\n") + end
			path := put(t, text)
			appendsAndKeeps(t, path, all[:n])
			got := read(t, path)
			require.True(t, strings.HasPrefix(got, text+"\n{"), "the newline comes first, and what was there stays: %q", got)
			require.Empty(t, setAside(t, path))
			require.Len(t, entriesOf(t, open(t, path, piStrict)), n+1, "Pi reads it")
		}
	}
}

// TestReport_A3_TornAtEveryByte cuts the file at each byte of its last three
// lines.
func TestReport_A3_TornAtEveryByte(t *testing.T) {
	t.Parallel()
	all := mixed()
	whole := lines(append([]string{header}, all...)...)
	from := len(lines(append([]string{header}, all[:3]...)...))
	path := put(t, "")
	for at := from; at <= len(whole); at++ {
		text := whole[:at]
		kept := 0
		for end := len(header); kept < len(all) && end+1+len(all[kept]) <= at; kept++ {
			end += 1 + len(all[kept])
		}
		torn := strings.TrimPrefix(text, strings.TrimSuffix(lines(append([]string{header}, all[:kept]...)...), "\n"))
		torn = strings.TrimPrefix(torn, "\n")

		rewrite(t, path, text)
		os.Remove(path + ".damaged")
		s := open(t, path, quick)
		require.Equal(t, all[:kept], textsOf(entriesOf(t, s)), "cut at byte %d", at)
		if torn == "" {
			require.Empty(t, s.Damage())
		} else {
			require.Equal(t, []string{torn}, damaged(t, text, s.Damage()))
		}
		require.Equal(t, text, read(t, path), "opening changes nothing")
		closed(t, s)

		appendsAndKeeps(t, path, all[:kept])
		require.Equal(t, torn, setAside(t, path), "what was cut is beside the file")
		strict := open(t, path, piStrict)
		require.Equal(t, append(append([]string{}, mixedIDs[:kept]...), "new"), ids(t, strict), "Pi reads the file, cut at byte %d", at)
		closed(t, strict)
	}
}

// TestReport_A3_TornTwice tears the entry that was written behind a torn one.
func TestReport_A3_TornTwice(t *testing.T) {
	all := chain(3)
	path := put(t, lines(header, all[0])+all[1][:40])
	s := open(t, path, quick)
	say(t, s, "first")
	closed(t, s)
	text := read(t, path)
	rewrite(t, path, text[:len(text)-10])
	s = open(t, path, quick)
	require.Equal(t, []string{"m1"}, ids(t, s))
	say(t, s, "second")
	say(t, s, "third")
	closed(t, s)
	require.Equal(t, []string{"m1", "second", "third"}, ids(t, open(t, path, piStrict)))
	first := strings.Split(text, "\n")[2]
	require.Equal(t, all[1][:40]+first[:len(first)-9], setAside(t, path), "both torn lines are kept")
}

// TestReport_A3_ATornLineGluedToTheHeader has a crash in the first append to a
// file whose header had lost its newline.
func TestReport_A3_ATornLineGluedToTheHeader(t *testing.T) {
	t.Parallel()
	one := user("m1", "", "one")
	for cut := len(one); cut > 0; cut -= 1 + cut%2 {
		text := header + one[:cut]
		path := put(t, text)
		var want []string
		if cut == len(one) {
			want = append(want, one)
		}
		appendsAndKeeps(t, path, append([]string{}, want...))
		s := open(t, path, quick)
		m, err := s.Metadata(t.Context())
		require.NoError(t, err)
		require.Equal(t, header, m.Header)
		require.Contains(t, read(t, path)+setAside(t, path), one[:cut], "no byte is lost")
		closed(t, s)
		if cut < len(one) {
			require.Equal(t, []string{"new"}, ids(t, open(t, path, piStrict)), "Pi can read it now")
		}
	}
}

// TestReport_A4_NULsLikeAPowerCutLeavesThem puts runs of NULs into each place.
func TestReport_A4_NULsLikeAPowerCutLeavesThem(t *testing.T) {
	nuls := strings.Repeat("\x00", 500)
	all := mixed()
	place := func(before, after int, nuls string) string {
		return lines(append([]string{header}, all[:before]...)...) + nuls + strings.Join(all[after:], "\n") + "\n"
	}
	cut := all[3][:len(all[3])-20]
	for name, test := range map[string]struct {
		text string
		want []string
	}{
		"a line in the middle":               {place(3, 3, nuls+"\n"), all},
		"behind the header":                  {place(0, 0, nuls+"\n"), all},
		"glued before a record":              {place(3, 3, nuls), all},
		"glued behind a record":              {lines(header, all[0], all[1]+nuls, all[2]), all[:3]},
		"in the place of the end of a line":  {lines(header, all[0], all[1], all[2], cut) + nuls + "\n" + all[5] + "\n", []string{all[0], all[1], all[2], all[5]}},
		"in the place of a line and its end": {lines(header, all[0], all[1], all[2]) + nuls + all[5] + "\n", []string{all[0], all[1], all[2], all[5]}},
		"the end of the file":                {lines(append([]string{header}, all...)...) + nuls, all},
		"the end, behind a torn line":        {lines(append([]string{header}, all[:3]...)...) + cut + nuls, all[:3]},
		"the end, behind a lost newline":     {strings.TrimSuffix(lines(append([]string{header}, all...)...), "\n") + nuls, all},
		"the end, with a newline":            {lines(append([]string{header}, all...)...) + nuls + "\n", all},
		"several runs":                       {lines(header, nuls, all[0], nuls+all[1]+nuls, nuls, all[2]) + nuls, all[:3]},
		"before the header":                  {nuls + lines(append([]string{header}, all...)...), all},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			path := filepath.Join(dir, "--project--", "2026-01-01T00-00-00-000Z_s1.jsonl")
			require.NoError(t, os.MkdirAll(filepath.Dir(path), 0o700))
			rewrite(t, path, test.text)

			listed, err := jsonl.NewRepo(dir, quick).List(t.Context(), "/project")
			require.NoError(t, err)
			require.Len(t, listed, 1, "the list has it")
			require.NoError(t, listed[0].Err)
			require.Equal(t, "s1", listed[0].ID)

			s := open(t, path, quick)
			require.Equal(t, test.want, textsOf(entriesOf(t, s)))
			require.NotEmpty(t, s.Damage())
			var reported int64
			for _, d := range s.Damage() {
				reported += d.Length
			}
			require.GreaterOrEqual(t, reported, int64(500))
			head, err := s.Head(t.Context())
			require.NoError(t, err)
			last, err := eventlog.ParseEntry(test.want[len(test.want)-1])
			require.NoError(t, err)
			require.Equal(t, eventlog.Head{Leaf: eventlog.At(last.ID()), N: len(test.want)}, head, "the tail that the list, the context and the tree see")
			closed(t, s)
			appendsAndKeeps(t, path, test.want)
		})
	}
}

// TestReport_A8_OnlyLineFeedsEndLines has the other line ends raw in texts,
// where JSON allows them, and between values.
func TestReport_A8_OnlyLineFeedsEndLines(t *testing.T) {
	text := "a\u2028b\u2029c\u0085d\u000bx\u000cy\u001ez"
	path := filepath.Join(t.TempDir(), "s.jsonl")
	s, err := jsonl.Create(t.Context(), path, eventlog.Metadata{ID: "s", CreatedAt: "2026-01-01T00:00:00.000Z", CWD: "/p\u2028q"}, nil, quick)
	require.NoError(t, err)
	e, err := eventlog.NewSession(s).AppendMessage(t.Context(), eventlog.UserMessage(text, time.UnixMilli(1)))
	require.NoError(t, err)
	require.Contains(t, e.JSON(), "a\u2028b\u2029c", "written raw, as JSON.stringify does")
	closed(t, s)
	require.Equal(t, 2, strings.Count(read(t, path), "\n"))

	m, err := jsonl.ReadHeader(path, quick)
	require.NoError(t, err)
	require.Equal(t, "/p\u2028q", m.CWD)
	for _, o := range []jsonl.Options{quick, piStrict} {
		s := open(t, path, o)
		got := entriesOf(t, s)
		require.Equal(t, []string{e.JSON()}, textsOf(got))
		require.Equal(t, text, got[0].Message().PlainText())
		require.Empty(t, s.Damage())
		closed(t, s)
	}

	// CR between values is white space: such a file was saved with CRLF.
	crlf := strings.ReplaceAll(lines(append([]string{header}, mixed()...)...), "\n", "\r\n")
	s = open(t, put(t, crlf), piStrict)
	require.Equal(t, mixed(), textsOf(entriesOf(t, s)))
}

// TestReport_A10_OtherFilesAreRefusedUnchanged opens what is no session.
func TestReport_A10_OtherFilesAreRefusedUnchanged(t *testing.T) {
	v := func(version string) string {
		return strings.Replace(lines(header, user("m1", "", "one")), `"version":3`, version, 1)
	}
	for name, text := range map[string]string{
		"README.md":                    "# A project\n\nWords, `{\"code\": 1}`, more words.\n",
		"JSON":                         "{\n  \"name\": \"package\",\n  \"version\": \"3\"\n}\n",
		"JSON lines":                   lines(`{"a":1}`, `{"b":2}`),
		"version 1":                    v(`"version":1`),
		"version 2":                    v(`"version":2`),
		"version 4":                    v(`"version":4`),
		"version 3.5":                  v(`"version":3.5`),
		"version as a text":            v(`"version":"3"`),
		"no version":                   strings.Replace(v(`"version":3`), `"version":3,`, "", 1),
		"no id":                        strings.Replace(v(`"version":3`), `"id":"s1"`, `"id":""`, 1),
		"entries without their header": lines(chain(3)...),
		"PNG":                          "\x89PNG\r\n\x1a\n\x00\x00\x00\rIHDR\x00\x00\x01\x00\x00\x00\x01\x00\x08\x06\x00\x00\x00" + strings.Repeat("\xFF\x00{\n", 300),
		"SQLite":                       "SQLite format 3\x00\x10\x00\x01\x01" + strings.Repeat("\x00", 4000),
		"UTF-16":                       "\xFF\xFE" + strings.Join(strings.Split(header, ""), "\x00") + "\x00\n\x00",
		"gzip":                         "\x1f\x8b\x08\x00\x00\x00\x00\x00\x00\xff" + strings.Repeat("\xAA\x55", 200),
		"empty":                        "",
		"only newlines":                "\n\n\n",
		"only NULs":                    strings.Repeat("\x00", 5000),
		"a torn header":                header[:len(header)-10],
	} {
		for _, o := range []jsonl.Options{quick, piStrict} {
			t.Run(fmt.Sprintf("%s strict=%v", name, o.Strict), func(t *testing.T) {
				dir := t.TempDir()
				path := filepath.Join(dir, "--project--", "x.jsonl")
				require.NoError(t, os.MkdirAll(filepath.Dir(path), 0o700))
				rewrite(t, path, text)
				before := hash(t, path)
				_, err := jsonl.Open(t.Context(), path, o)
				require.ErrorIs(t, err, eventlog.ErrInvalidSession)
				require.Contains(t, err.Error(), path, "the error names the file")
				repo := jsonl.NewRepo(dir, o)
				_, err = repo.Open(t.Context(), eventlog.Metadata{Path: path})
				require.ErrorIs(t, err, eventlog.ErrInvalidSession)
				_, err = repo.Fork(t.Context(), eventlog.Metadata{Path: path}, eventlog.ForkOptions{})
				require.ErrorIs(t, err, eventlog.ErrInvalidSession)
				_, err = jsonl.Create(t.Context(), path, eventlog.Metadata{ID: "s", CWD: "/"}, nil, o)
				require.ErrorIs(t, err, eventlog.ErrAlreadyExists)
				listed, err := repo.List(t.Context(), "")
				require.NoError(t, err)
				require.Len(t, listed, 1, "it is listed, with the reason")
				require.ErrorIs(t, listed[0].Err, eventlog.ErrInvalidSession)
				require.Equal(t, path, listed[0].Path)
				require.Equal(t, before, hash(t, path), "the file is unchanged")
				names, err := os.ReadDir(filepath.Dir(path))
				require.NoError(t, err)
				require.Len(t, names, 1, "and nothing is beside it")
			})
		}
	}
}

// TestReport_A11_ADamagedHeaderNeverCostsTheTranscript changes each byte of the
// first line: the file opens with all its entries, or is refused; it is never
// written to, and never given a fresh header.
func TestReport_A11_ADamagedHeaderNeverCostsTheTranscript(t *testing.T) {
	t.Parallel()
	all := chain(3)
	path := put(t, "")
	opened := 0
	for at := range len(header) + 1 {
		for _, b := range []byte{0, '\n', '{', '"', 'x', 0xFF} {
			text := []byte(lines(append([]string{header}, all...)...))
			text[at] = b
			rewrite(t, path, string(text))
			s, err := jsonl.Open(t.Context(), path, quick)
			if err == nil {
				opened++
				require.Equal(t, all, textsOf(entriesOf(t, s)), "byte %d became %q", at, b)
				closed(t, s)
			} else {
				require.ErrorIs(t, err, eventlog.ErrInvalidSession)
			}
			require.Equal(t, string(text), read(t, path))
			if err == nil && (at%10 == 0 || long) {
				s := open(t, path, quick)
				say(t, s, "new")
				closed(t, s)
				require.True(t, strings.HasPrefix(read(t, path), string(text)))
			}
		}
	}
	require.Positive(t, opened, "damage to what a header can do without is no reason to refuse")
}

// TestReport_A13_EveryWayOutWorksOnADamagedFile
func TestReport_A13_EveryWayOutWorksOnADamagedFile(t *testing.T) {
	dir := t.TempDir()
	repo := jsonl.NewRepo(dir, quick)
	path := filepath.Join(dir, "--project--", "2026-01-01T00-00-00-000Z_s1.jsonl")
	require.NoError(t, os.MkdirAll(filepath.Dir(path), 0o700))
	all := chain(4)
	text := lines(header, all[0], "not JSON", all[1], all[2][:50]+all[2], strings.Repeat("\x00", 30), "", all[3]) + `{"type":"mess`
	rewrite(t, path, text)

	listed, err := repo.List(t.Context(), "/project")
	require.NoError(t, err)
	require.Len(t, listed, 1)
	require.NoError(t, listed[0].Err)

	s, err := repo.Open(t.Context(), eventlog.Metadata{ID: "s1", CWD: "/project"})
	require.NoError(t, err)
	c, err := s.BuildContext(t.Context(), eventlog.None())
	require.NoError(t, err)
	require.Len(t, c.Messages, 4)
	tree, err := s.Tree(t.Context())
	require.NoError(t, err)
	require.Len(t, tree.Nodes, 4)
	var exported strings.Builder
	require.NoError(t, s.Export(t.Context(), &exported))
	require.Equal(t, lines(append([]string{header}, all...)...), exported.String(), "an export is a clean file")

	_, err = s.MoveTo(t.Context(), eventlog.At("m2"), &eventlog.Summary{Text: "back"})
	require.NoError(t, err)
	_, err = s.SetLabel(t.Context(), "m1", "here")
	require.NoError(t, err)
	_, err = s.SetName(t.Context(), "mended")
	require.NoError(t, err)
	require.NoError(t, s.Close())

	fork, err := repo.Fork(t.Context(), listed[0].Metadata, eventlog.ForkOptions{CreateOptions: eventlog.CreateOptions{ID: "copy", CWD: "/project"}})
	require.NoError(t, err)
	m, err := fork.Metadata(t.Context())
	require.NoError(t, err)
	require.NoError(t, fork.Close())
	name, err := eventlog.NewSession(open(t, m.Path, piStrict)).Name(t.Context())
	require.NoError(t, err, "a fork is a clean file")
	require.Equal(t, "mended", name)

	require.NoError(t, repo.Delete(t.Context(), listed[0].Metadata))
	for _, gone := range []string{path, path + ".damaged"} {
		_, err = os.Stat(gone)
		require.ErrorIs(t, err, os.ErrNotExist)
	}
	rewrite(t, path, "not even a header\n")
	require.NoError(t, repo.Delete(t.Context(), eventlog.Metadata{Path: path}))
	_, err = os.Stat(path)
	require.ErrorIs(t, err, os.ErrNotExist)
}

// TestReport_A15_OneBadLineCostsThatLine puts each kind of bad line into the
// middle and at both ends.
func TestReport_A15_OneBadLineCostsThatLine(t *testing.T) {
	bad := map[string]string{
		"words":             "hello",
		"an error page":     "<html>504</html>",
		"a merge marker":    "<<<<<<< HEAD",
		"half":              user("x", "", "x")[:70],
		"NULs":              strings.Repeat("\x00", 40),
		"no UTF-8":          "\xFF\xFE\xC0\x80{\xED\xA0\x80",
		"a number":          "42",
		"null":              "null",
		"a list":            "[]",
		"an empty object":   "{}",
		"no type":           `{"id":"x","parentId":null,"timestamp":"2026-01-01T00:00:00.000Z"}`,
		"no id":             `{"type":"message","parentId":null,"timestamp":"2026-01-01T00:00:00.000Z"}`,
		"an empty id":       `{"type":"message","id":"","parentId":null,"timestamp":"2026-01-01T00:00:00.000Z"}`,
		"a numeric id":      `{"type":"message","id":7,"parentId":null,"timestamp":"2026-01-01T00:00:00.000Z"}`,
		"no parent":         `{"type":"message","id":"x","timestamp":"2026-01-01T00:00:00.000Z"}`,
		"a numeric parent":  `{"type":"message","id":"x","parentId":1,"timestamp":"2026-01-01T00:00:00.000Z"}`,
		"no time":           `{"type":"message","id":"x","parentId":null}`,
		"a leaf to nothing": `{"type":"leaf","id":"x","parentId":null,"timestamp":"2026-01-01T00:00:00.000Z"}`,
		"a second header":   header,
		"a raw control":     `{"type":"message","id":"x","parentId":null,"timestamp":"t` + "\x01" + `"}`,
		"a trailing comma":  `{"type":"message","id":"x","parentId":null,"timestamp":"t",}`,
		"single quotes":     `{'type':'message'}`,
	}
	all := chain(4)
	for name, line := range bad {
		t.Run(name, func(t *testing.T) {
			for at := range len(all) + 1 {
				with := append(append([]string{header}, all[:at]...), append([]string{line}, all[at:]...)...)
				text := lines(with...)
				path := put(t, text)
				s := open(t, path, quick)
				require.Equal(t, all, textsOf(entriesOf(t, s)))
				require.Equal(t, []string{line}, damaged(t, text, s.Damage()))
				require.Equal(t, at+2, s.Damage()[0].Line)
				require.Equal(t, []string{"m1", "m2", "m3", "m4"}, branch(t, s))
				closed(t, s)
				_, err := jsonl.Open(t.Context(), path, piStrict)
				require.ErrorIs(t, err, eventlog.ErrInvalidEntry, "strictly, it is Pi's error")
				require.Contains(t, err.Error(), fmt.Sprintf("line %d ", at+2))
				if at == len(all) {
					appendsAndKeeps(t, path, all)
				}
			}
		})
	}
	for name, blank := range map[string]string{"empty": "", "blanks": " \t", "CR": "\r", "byte order mark": "\uFEFF", "no-break space": "\u00A0"} {
		t.Run("blank: "+name, func(t *testing.T) {
			text := lines(header, blank, all[0], blank, blank, all[1]) + blank
			s := open(t, put(t, text), piStrict)
			require.Equal(t, all[:2], textsOf(entriesOf(t, s)), "Pi takes it for blank too")
			require.Empty(t, s.Damage())
			closed(t, s)
			appendsAndKeeps(t, put(t, text), all[:2])
		})
	}
}
