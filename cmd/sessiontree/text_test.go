package main

import (
	"regexp"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/sessiontree/sessiontree/eventlog/js"
)

// sgr are the colours that the program writes.
var sgr = regexp.MustCompile("\x1b\\[[0-9;]*m")

func TestSafe(t *testing.T) {
	for in, want := range map[string]string{
		"":                            "",
		"plain ~ text":                "plain ~ text",
		"日本語 é 😀":                     "日本語 é 😀",
		"\x1b[31m":                    `\x1b[31m`,
		"\x00\x07\x7f":                `\x00\x07\x7f`,
		"a\nb\rc\td":                  `a\nb\rc\td`,
		"\u0080\u009b\u009f":          `\x80\x9b\x9f`,
		"\u00a0":                      "\u00a0",
		"\u200d":                      "\u200d", // joins emoji
		"\u202a\u202e\u2066\u2069":    `\u202a\u202e\u2066\u2069`,
		"\u200e\u200f\u061c\ufeff":    `\u200e\u200f\u061c\ufeff`,
		"\u2028\u2029":                `\u2028\u2029`,
		"\U000e0041":                  `\u{e0041}`,
		"\xff\xc3":                    "\ufffd\ufffd",
		"\xed\xa0\xbd x \xed\xb8\x80": `\ud83d x \ude00`,
		"\xed\xa0":                    "\ufffd\ufffd",
	} {
		if got := safe(in); got != want {
			t.Errorf("safe(%q) = %q, want %q", in, got, want)
		}
	}
}

func FuzzSafe(f *testing.F) {
	for _, s := range []string{"", "plain", "\x1b[0m\u202e\xff", "\xed\xa0\xbd\U000e0001"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		for _, got := range append(lines(s, 7), safe(s), oneLine(s), cut(oneLine(s), 5)) {
			if !utf8.ValidString(got) || strings.ContainsFunc(got, hostile) {
				t.Errorf("%q gives %q", s, got)
			}
		}
		if w := cells.StringWidth(cut(oneLine(s), 5)); w > 5 {
			t.Errorf("%q: cut to 5 cells it has %d", s, w)
		}
	})
}

func FuzzSafeJSON(f *testing.F) {
	for _, s := range []string{
		`{"a":[1,"\u001b",true]}`, "{ \"a\\\"\\\\\" :\t[ 1e21 , -0 ] }", "\"\u202e\x7f\u2028\"", "\"\xff\xed\xa0\xbd\"", `"\ud83d"`, "\"\\\\\u009b\U000e0041\"",
	} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		v, err := js.Parse(s)
		if err != nil {
			return
		}
		got := string(appendSafeJSON(nil, v.JSON()))
		if !utf8.ValidString(got) || strings.ContainsFunc(got, hostile) {
			t.Errorf("%q gives %q", s, got)
		}
		w, err := js.Parse(got)
		if err != nil {
			t.Fatalf("%q gives %q: %v", s, got, err)
		}
		if d := js.Diff(v, w); d != nil {
			t.Errorf("%q gives %q: %v", s, got, d)
		}
	})
}

func TestCut(t *testing.T) {
	for _, test := range []struct {
		text  string
		width int
		want  string
	}{
		{"abc", 3, "abc"},
		{"abcd", 3, "ab…"},
		{"日本語", 6, "日本語"},
		{"日本語", 5, "日本…"},
		{"日本語", 4, "日…"},
		{"日本語", 1, "…"},
		{"abc", 0, ""},
		{"abc", -4, ""},
		{"👨‍👩‍👧‍👦 family", 4, "👨‍👩‍👧‍👦 …"},
	} {
		if got := cut(test.text, test.width); got != test.want {
			t.Errorf("cut(%q, %d) = %q, want %q", test.text, test.width, got, test.want)
		}
	}
}

func TestLines(t *testing.T) {
	for _, test := range []struct {
		text  string
		width int
		want  string // lines joined by |
	}{
		{"", 10, ""},
		{"one two three", 0, "one two three"},
		{"one two three", 7, "one two|three"},
		{"one two three", 8, "one two|three"},
		{"one two three", 6, "one|two|three"},
		{"onetwothree", 4, "onet|woth|ree"},
		{"a onetwothree", 4, "a|onet|woth|ree"},
		{"    indented text", 9, "    inden|ted text"},
		{"a\r\nb\n\nc", 5, "a|b||c"},
		{"a\tb", 9, "a    b"},
		{"日本語日本語", 5, "日本|語日|本語"},
		{"x\x1b[2J", 3, `x\x|1b[|2J`},
		{"end   ", 4, "end"},
	} {
		if got := strings.Join(lines(test.text, test.width), "|"); got != test.want {
			t.Errorf("lines(%q, %d) = %q, want %q", test.text, test.width, got, test.want)
		}
	}
}

func TestNumbers(t *testing.T) {
	for f, want := range map[float64]string{0: "0", 999: "999", 1000: "1,000", 1234567.5: "1,234,567.5", -1234: "-1,234", 1e300: "1e+300"} {
		if got := grouped(f); got != want {
			t.Errorf("grouped(%v) = %q, want %q", f, got, want)
		}
	}
	if got := money(0.1 + 0.2); got != "0.3000" {
		t.Errorf("money gives %q", got)
	}
	for n, want := range map[int]string{0: "0 entries", 1: "1 entry", 2000: "2,000 entries"} {
		if got := count(n, "entry"); got != want {
			t.Errorf("count gives %q, want %q", got, want)
		}
	}
}
