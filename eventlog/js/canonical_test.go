package js

import (
	"fmt"
	"strings"
	"testing"
)

// FuzzCanonical: what is taken for canonical at a glance is JSON, and what the
// rewriting makes of it is the same.
func FuzzCanonical(f *testing.F) {
	keys := make([]string, 0, 20)
	for i := range 20 {
		keys = append(keys, fmt.Sprintf(`"k%d":%d`, i, i))
	}
	for _, text := range []string{
		"", " ", "null", "nul", "true ", "false", "0", "-0", "00", "1.0", "1.5", "1e3", "1E3", "1e21", "1e400", "-12", "0.01",
		"123456789012345", "1234567890123456", "9007199254740993", "1e-7", "-", ".5", "5.",
		`""`, `"`, `"a`, `"\n\"\\"`, `"\/"`, `"\u000a"`, `"\u001f"`, `"\x"`, `"\`, "\"\x01\"", "\"\x7f\"", "\"é\U0001F600\uFFFD\"", "\"\xff\"", "\"\xed\xa0\x80\"", `"\ud800"`,
		"[]", "[ ]", "[1]", "[1,]", "[1 ,2]", "[1,2", "[,]", "[[],{}]", `["a",null,true]`,
		"{}", "{", `{"a":1}`, `{"a" :1}`, `{"a":1,"a":2}`, `{"\u0061":1}`, `{"a":1,"\u0061":2}`, `{"b":1,"2":2}`, `{"2":1,"1":2}`, `{"":1}`, `{"a":1,}`, `{"a"}`, `{a:1}`, `{"a":1}x`,
		`{"role":"user","content":[{"type":"text","text":"a b"}],"timestamp":1767225600000}`,
		"{" + strings.Join(keys[:16], ",") + "}", "{" + strings.Join(keys, ",") + "}",
		strings.Repeat("[", 31) + strings.Repeat("]", 31), strings.Repeat("[", 40) + strings.Repeat("]", 40),
	} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		v, err := Parse(text)
		if err != nil {
			if IsCanonical(Trusted(text)) {
				t.Fatalf("%q is canonical, and %v", text, err)
			}
			return
		}
		want := string(AppendCanonical(nil, v))
		if IsCanonical(v) && want != v.JSON() {
			t.Errorf("%q is canonical, and rewritten as %q", v.JSON(), want)
		}
		if got := Canonical(v).JSON(); got != want {
			t.Errorf("Canonical(%q) is %q, want %q", text, got, want)
		}
	})
}

// The messages that hosts write every day are not rewritten.
func TestUsualValuesAreCanonical(t *testing.T) {
	for _, text := range []string{
		`{"role":"user","content":[{"type":"text","text":"say \"hi\"\n\tin C:\\"}],"timestamp":1767225600000}`,
		`{"role":"assistant","content":[{"type":"toolCall","id":"c1","name":"bash","arguments":{"command":"ls","timeout":1.5}}],"usage":{"input":1,"output":0,"cost":{"total":0.0123}},"errorMessage":null,"ok":true}`,
		`"Grüße, 世界"`, `[]`, `-3`,
	} {
		if !IsCanonical(Trusted(text)) {
			t.Errorf("%s is not taken as it is", text)
		}
	}
}

// Texts are looked at eight bytes at a time: what must be escaped is found at
// every place in them.
func TestAppendQuoteAtEveryPlace(t *testing.T) {
	special := map[string]string{
		"\"": `\"`, "\\": `\\`, "\n": `\n`, "\x00": `\u0000`, "\x1f": `\u001f`, "\b": `\b`,
		"\x7f": "\x7f", " ": " ", "!": "!", "é": "é", "\u2028": "\u2028", "\U0001F600": "\U0001F600",
		"\xff": "\uFFFD", "\xed\xa0\x80": `\ud800`,
	}
	for s, quoted := range special {
		for before := range 19 {
			for after := range 10 {
				a, z := strings.Repeat("a", before), strings.Repeat("z", after)
				if got, want := string(AppendQuote(nil, a+s+z+s)), `"`+a+quoted+z+quoted+`"`; got != want {
					t.Fatalf("%q is quoted as %s, want %s", a+s+z+s, got, want)
				}
				if plain := quoted == s && s < "\x80"; IsPlain(a+s+z) != plain {
					t.Fatalf("IsPlain(%q) is %v", a+s+z, !plain)
				}
			}
		}
	}
}
