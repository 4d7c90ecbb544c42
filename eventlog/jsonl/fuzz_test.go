package jsonl_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/sessiontree/sessiontree/eventlog"
	"github.com/sessiontree/sessiontree/eventlog/js"
	"github.com/sessiontree/sessiontree/eventlog/jsonl"
)

// FuzzOpenFile reads arbitrary bytes as a session file, both ways, and appends to
// what can be read.
func FuzzOpenFile(f *testing.F) {
	a, b := user("a", "", "one {"), user("b", "a", "two \u2028")
	for _, text := range []string{
		"", "\n", header, lines(header), lines(header, a, b), header + a, lines(header, a) + b, lines(header, a) + b[:80],
		lines(header, b[:80]+a, "\x00\x00\x00", a+b), "\uFEFF" + lines(header, a), lines("", header, "", a, "oops"), header + b[:40],
		strings.ReplaceAll(lines(header, a), "\n", "\r\n"), lines(header, `{"type":"custom","data":`+a+`}`), "junk" + lines(header) + "{",
		lines(header, `{"type":"leaf","id":"l","parentId":"a","timestamp":"t","targetId":"nowhere"}`), lines(header, header),
		lines(header, `{"type":"label","id":"l","parentId":null,"timestamp":"t","targetId":"l","label":7}`), lines(header, "{"+a, `[`+b) + "\xFF",
	} {
		f.Add([]byte(text), uint8(0))
	}
	f.Add([]byte(lines(header, a, b)+b[:50]), uint8(30))
	f.Add([]byte(lines(header, strings.Repeat(a, 3), b)), uint8(40))

	path := filepath.Join(f.TempDir(), "session.jsonl") // each fuzzing process has its own
	f.Fuzz(func(t *testing.T, input []byte, limit uint8) {
		text := string(input)
		o := jsonl.Options{NoSync: true}
		if limit > 0 {
			o.MaxLine = 8 * int(limit)
		}
		c, err := jsonl.Parse("file", text, o)
		strict, strictErr := jsonl.Parse("file", text, jsonl.Options{Strict: true, MaxLine: o.MaxLine})
		if strictErr == nil {
			require.NoError(t, err, "what Pi reads, we read")
			require.Equal(t, textsOf(strict.Entries), textsOf(c.Entries))
			require.Equal(t, strict.Metadata, c.Metadata)
			require.Empty(t, c.Damage)
		} else {
			code := eventlog.CodeOf(strictErr)
			require.True(t, code == eventlog.InvalidSession || code == eventlog.InvalidEntry, "%v", strictErr)
		}
		if err != nil {
			require.ErrorIs(t, err, eventlog.ErrInvalidSession)
			require.NotContains(t, err.Error(), "\n")
		} else {
			accountsForAll(t, text, c)
		}

		os.Remove(path + ".damaged")
		rewrite(t, path, text)
		s, openErr := jsonl.Open(t.Context(), path, o)
		require.Equal(t, err == nil, openErr == nil, "%v, %v", err, openErr)
		if openErr != nil {
			require.Equal(t, text, read(t, path))
			return
		}
		want := textsOf(entriesOf(t, s))
		require.Equal(t, textsOf(c.Entries), want)
		d := message("")
		if _, err := s.Head(t.Context()); err != nil {
			d = d.Under(eventlog.None())
		}
		added, err := s.Append(t.Context(), eventlog.Batch{Drafts: []eventlog.Draft{d}})
		require.NoError(t, s.Close())
		if eventlog.CodeOf(err) == eventlog.InvalidArgument && o.MaxLine > 0 && o.MaxLine < 300 {
			require.Equal(t, text, read(t, path))
			return // it has no room in a line
		}
		require.NoError(t, err)
		want = append(want, added[0].JSON())
		now := read(t, path)
		torn := setAside(t, path)
		require.True(t, strings.HasPrefix(now, strings.TrimSuffix(text, torn)), "no byte is touched but a torn line")
		again, err := jsonl.Parse(path, now, o)
		require.NoError(t, err)
		require.Equal(t, want, textsOf(again.Entries))
		require.Equal(t, c.Metadata.Header, again.Metadata.Header)
		accountsForAll(t, now, again)
		if strictErr == nil {
			_, err := jsonl.Parse(path, now, jsonl.Options{Strict: true, MaxLine: o.MaxLine})
			require.NoError(t, err, "what Pi could read, it still can")
		}
	})
}

// accountsForAll asks that each byte that is not white space is in the header,
// in an entry or in the damage report, once and in order.
func accountsForAll(t testing.TB, text string, c jsonl.Contents) {
	t.Helper()
	at := 0
	parts := append([]string{c.Metadata.Header}, textsOf(c.Entries)...)
	whole := func(to int) {
		for {
			rest := text[at:to]
			for rest != "" && js.IsBlank(firstChar(rest)) {
				rest = rest[len(firstChar(rest)):]
			}
			at = to - len(rest)
			if rest == "" {
				return
			}
			require.NotEmpty(t, parts, "nobody accounts for %q", rest)
			require.True(t, strings.HasPrefix(rest, parts[0]), "at byte %d stands %q, expected %q", at, rest, parts[0])
			at += len(parts[0])
			parts = parts[1:]
		}
	}
	for _, d := range c.Damage {
		require.Positive(t, d.Length, "%v", d)
		require.GreaterOrEqual(t, d.Offset, int64(at), "%v overlaps what is before it", d)
		require.LessOrEqual(t, d.Offset+d.Length, int64(len(text)), "%v", d)
		require.Equal(t, 1+strings.Count(text[:d.Offset], "\n"), d.Line, "%v", d)
		if strings.Contains(d.Reason, "cut off") { // an append of several lines
			require.Equal(t, int64(len(text)), d.Offset+d.Length, "%v is the end", d)
		} else {
			require.NotContains(t, text[d.Offset:d.Offset+d.Length], "\n", "%v is one line", d)
		}
		whole(int(d.Offset))
		at = int(d.Offset + d.Length)
	}
	whole(len(text))
	require.Empty(t, parts, "these stand nowhere")
}

// firstChar is the first character of s, or its first byte if that begins none.
func firstChar(s string) string {
	for i := range s {
		if i > 0 {
			return s[:i]
		}
	}
	return s
}
