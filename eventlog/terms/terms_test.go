package terms_test

import (
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/stretchr/testify/require"

	"github.com/sessiontree/sessiontree/eventlog/terms"
)

func TestCut(t *testing.T) {
	for text, want := range map[string][2]string{
		"":                          {"", ""},
		"Don't panic":               {"don t panic", ""},
		"wrong-book TODO:":          {"wrong book todo", ""},
		"parseURLPath gen_itgc":     {"parse url path gen itgc", "parseurlpath"},
		"HTTPServer2 id123":         {"http server2 id123", "httpserver2"},
		"重跑gen-itgc后":               {"重跑 gen itgc 后", "重 跑"},
		"重跑后":                       {"重跑 跑后", "重 跑 后"},
		"木":                         {"木", ""},
		"ガラス ﾊﾟﾝ":                   {"ガラ ラス パン", "ガ ラ ス パ ン"},
		"Café Ａｂｃ cafe\u0301 ﬁn":    {"cafe abc cafe fin", ""},
		"ÜberSicht STRAẞE":          {"uber sicht straße", "ubersicht"},
		"db \xed\xa0\xbd x":         {"db x", ""},
		"ภาษาไทย":                   {"ภา าษ ษา าไ ไท ทย", "ภ า ษ ไ ท ย"},
		strings.Repeat("a", 70):     {strings.Repeat("a", 64) + " aaaaaa", ""},
		"a/b_c.go:12 \"x\" NEAR( *": {"a b c go 12 x near", ""},
	} {
		cut := terms.Cut(text)
		var got []string
		for _, c := range cut {
			got = append(got, c.Text)
			require.True(t, 0 <= c.Start && c.Start < c.End && c.End <= len(text))
		}
		require.Equal(t, want, [2]string{strings.Join(got, " "), strings.Join(terms.Wholes(text, cut), " ")}, "%q", text)
	}
}

// Any bytes are cut, into terms that hold nothing that an index takes for a sign.
func FuzzCut(f *testing.F) {
	for _, s := range []string{"a", "重跑gen-itgc后", "fooBar", "\xff\xfe", "é́", "ǅ"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, text string) {
		cut := terms.Cut(text)
		end := 0
		for _, c := range cut {
			if c.Text == "" || strings.ContainsAny(c.Text, " \"*:^()-+\x00") || !utf8.ValidString(c.Text) {
				t.Fatalf("%q: %q", text, c.Text)
			}
			if c.Start < 0 || c.End > len(text) || c.Start >= c.End || c.End <= end {
				t.Fatalf("%q: %v", text, c)
			}
			end = c.End
		}
		for _, w := range terms.Wholes(text, cut) {
			if strings.ContainsAny(w, " \"") {
				t.Fatalf("%q: whole %q", text, w)
			}
		}
	})
}
