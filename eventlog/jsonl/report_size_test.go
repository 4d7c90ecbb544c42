package jsonl_test

import (
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/sessiontree/sessiontree/eventlog"
	"github.com/sessiontree/sessiontree/eventlog/jsonl"
)

// TestReport_B1_LongLinesAreRead has lines on both sides of the sizes at which
// line scanners stop.
func TestReport_B1_LongLinesAreRead(t *testing.T) {
	t.Parallel()
	chainOf := func(sizes ...int) []string {
		all := []string{user("m0", "", "first")}
		for i, size := range sizes {
			id, parent := fmt.Sprint("m", i+1), fmt.Sprint("m", i)
			all = append(all, user(id, parent, strings.Repeat("x", max(0, size-len(user(id, parent, ""))))))
		}
		return all
	}
	reads := func(path string, all []string, o jsonl.Options) {
		s := open(t, path, o)
		got := entriesOf(t, s)
		require.Len(t, got, len(all))
		for i, e := range got {
			require.True(t, all[i] == e.JSON(), "entry %d, of %d bytes", i, len(all[i]))
		}
		require.Empty(t, s.Damage())
		require.Len(t, branch(t, s), len(all))
		closed(t, s)
	}
	all := chainOf(11_000_000, 22_000_000, 3)
	reads(put(t, lines(append([]string{header}, all...)...)), all, quick)

	all = chainOf(64<<10-1, 64<<10, 65_000, 1<<20-1, 1<<20, 1<<20+1, 3)
	path := put(t, lines(append([]string{header}, all...)...))
	reads(path, all, quick)
	reads(path, all, piStrict)
	s := open(t, path, quick)
	text := strings.Repeat("日本", 1<<18)
	e, err := eventlog.NewSession(s).AppendMessage(t.Context(), eventlog.UserMessage(text, time.UnixMilli(1)))
	require.NoError(t, err)
	closed(t, s)
	reads(path, append(all, e.JSON()), piStrict)
	require.True(t, e.Message().PlainText() == text)
}

// TestReport_B1_OverTheCapOnlyThatLineIsLeftOut has lines over a small cap in
// each place, beside all that can stand beside them.
func TestReport_B1_OverTheCapOnlyThatLineIsLeftOut(t *testing.T) {
	t.Parallel()
	o := jsonl.Options{NoSync: true, MaxLine: 2000}
	a, b, c := user("a", "", "a"), user("b", "a", "b"), user("c", "b", "c")
	at := user("at", "a", strings.Repeat("y", 2000-len(user("at", "a", "")))) // exactly the cap
	// Lengths on both sides of the sizes in which the file is read.
	sizes := []int{2004, 5000, 1 << 20, 1<<20 + 1}
	if long {
		sizes = append(sizes, 1<<20-300, 2<<20, 5<<20)
	}
	for _, size := range sizes {
		over := user("over", "a", strings.Repeat("x", size-len(user("over", "a", ""))))
		require.Len(t, over, size)
		for name, test := range map[string]struct {
			text string
			want []string
			torn string
		}{
			"in the middle":            {lines(header, a, over, b, c), []string{a, b, c}, ""},
			"first":                    {lines(header, over, a, b), []string{a, b}, ""},
			"last":                     {lines(header, a, b, over), []string{a, b}, ""},
			"last, without a newline":  {lines(header, a, b) + over, []string{a, b}, ""},
			"twice":                    {lines(header, over, a, over, over, b, over), []string{a, b}, ""},
			"beside one at the cap":    {lines(header, at, over, at, b), []string{at, at, b}, ""},
			"before a lost newline":    {lines(header, a, over, b) + c, []string{a, b, c}, ""},
			"before a torn line":       {lines(header, a, over, b, c) + a[:90], []string{a, b, c}, a[:90]},
			"before a torn line alone": {lines(header, a, over) + a[:90], []string{a}, a[:90]},
			"before blank lines":       {lines(header, a, over, "", "", b) + " ", []string{a, b}, ""},
			"before damage":            {lines(header, a, over, "oops", b, a[:50]+c), []string{a, b, c}, ""},
			"without an end of JSON":   {lines(header, a, over[:len(over)-2], b), []string{a, b}, ""},
		} {
			t.Run(fmt.Sprintf("%d bytes, %s", size, name), func(t *testing.T) {
				path := put(t, test.text)
				s := open(t, path, o)
				require.Equal(t, test.want, textsOf(entriesOf(t, s)))
				reported := damaged(t, test.text, s.Damage())
				found := 0
				for i, part := range reported {
					if len(part) > 1000 {
						found++
						require.Contains(t, s.Damage()[i].Reason, "2000")
						require.GreaterOrEqual(t, len(part), size-2)
						require.True(t, strings.HasPrefix(over, part))
					}
				}
				require.Equal(t, strings.Count(test.text, `"over"`), found)
				added := say(t, s, "new")
				want := append(append([]string{}, test.want...), added.JSON())
				require.Equal(t, want, textsOf(entriesOf(t, s)))
				closed(t, s)

				require.Equal(t, test.torn, setAside(t, path))
				kept := strings.TrimSuffix(test.text, test.torn)
				require.True(t, strings.HasPrefix(read(t, path), kept), "no other byte is touched")
				s = open(t, path, o)
				require.Equal(t, want, textsOf(entriesOf(t, s)))
				closed(t, s)
				_, err := jsonl.Open(t.Context(), path, jsonl.Options{Strict: true, MaxLine: o.MaxLine})
				require.ErrorIs(t, err, eventlog.ErrInvalidEntry)
				if test.torn == "" && !strings.Contains(test.text, "oops") && !strings.Contains(test.text, over[:len(over)-2]+"\n") {
					require.Len(t, ids(t, open(t, path, piStrict)), len(want)+strings.Count(test.text, `"over"`), "without the cap, all is there")
				}
			})
		}
	}
}

// TestReport_B1_O1_WhatCouldNotBeReadAgainIsNotWritten: an append over the cap is
// refused, instead of being acknowledged and then set aside by the next reader.
func TestReport_B1_O1_WhatCouldNotBeReadAgainIsNotWritten(t *testing.T) {
	o := jsonl.Options{NoSync: true, MaxLine: 2000}
	path := put(t, lines(header, user("a", "", "a")))
	s := open(t, path, o)
	before := stateOf(t, s)
	_, err := s.Append(t.Context(), eventlog.Batch{Drafts: []eventlog.Draft{message("short"), message(strings.Repeat("x", 2000))}})
	require.ErrorIs(t, err, eventlog.ErrInvalidArgument)
	require.ErrorContains(t, err, "2000")
	require.Equal(t, before, stateOf(t, s))
	// The longest that fits is written, and read again.
	d := message("").WithID("b").WithTime(time.UnixMilli(1))
	probe, err := s.Append(t.Context(), eventlog.Batch{Drafts: []eventlog.Draft{d}})
	require.NoError(t, err)
	fits := 2000 - len(probe[0].JSON())
	for extra := range 2 {
		_, err = s.Append(t.Context(), eventlog.Batch{Drafts: []eventlog.Draft{message(strings.Repeat("x", fits+extra)).WithID("c").WithTime(time.UnixMilli(1))}})
		if extra == 0 {
			require.NoError(t, err)
		} else {
			require.Error(t, err)
		}
	}
	closed(t, s)
	require.Equal(t, []string{"a", "b", "c"}, ids(t, open(t, path, o)))
}

// TestReport_D11_OpeningAndClosingWritesNothing
func TestReport_D11_OpeningAndClosingWritesNothing(t *testing.T) {
	for _, text := range []string{lines(header, user("m1", "", "one")), header, lines(header, user("m1", "", "one")) + "torn", lines(header, "bad")} {
		path := put(t, text)
		was, err := os.Stat(path)
		require.NoError(t, err)
		for range 10 {
			s := open(t, path, jsonl.Options{})
			session := eventlog.NewSession(s)
			_, err := session.BuildContext(t.Context(), eventlog.None())
			require.NoError(t, err)
			_, err = session.Tree(t.Context())
			require.NoError(t, err)
			closed(t, s)
			require.NoError(t, s.Close(), "closing twice is no error")
		}
		require.Equal(t, text, read(t, path))
		is, err := os.Stat(path)
		require.NoError(t, err)
		require.Equal(t, was.ModTime(), is.ModTime())
		require.Empty(t, setAside(t, path))
	}
}
