package js_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/sessiontree/sessiontree/eventlog/js"
)

func TestDiff(t *testing.T) {
	for _, c := range []struct{ want, got, says string }{
		{``, ``, ""},
		{``, `null`, ": want nothing, got null"},
		{`{}`, ``, ": want {}, got nothing"},
		{`1`, `1.0e0`, ""},
		{`1e400`, `1e401`, ""},
		{`0`, `-0`, ""},
		{`1`, `"1"`, `: want 1, got "1"`},
		{`"\u0061"`, `"a"`, ""},
		{`"\ud800"`, `"\udc00"`, `: want "\ud800", got "\udc00"`},
		{`true`, `false`, ": want true, got false"},
		{` [ 1 , {"a" : [ ] } ] `, `[1,{"a":[]}]`, ""},
		{`[1,[2,3]]`, `[1,[2,4]]`, "[1][1]: want 3, got 4"},
		{`{"a":[0,1]}`, `{"a":[0]}`, ".a.length: want 2, got 1"},
		{`{"a":1,"b":{"c":null}}`, `{"b":{"c":null},"a":1}`, ""},
		{`{"a":1,"b":{"c":null}}`, `{"b":{},"a":1}`, ".b.c: want null, got nothing"},
		{`{"a":1,"b":{}}`, `{"b":{"c":null},"a":1}`, ".b.c: want nothing, got null"},
		{`{"a":1}`, `{"a":2,"y":3,"x":4}`, ".y: want nothing, got 3"},
		{`{"a":1,"a":2}`, `{"\u0061":2}`, ""},
		{`{"a":1,"a":[2]}`, `{"a":[3],"a":[4]}`, ".a[0]: want 2, got 4"},
		{`{"b":1,"1":2}`, `{"b":0,"1":0}`, ".1: want 2, got 0"},
		{`[[1],[2]]`, `[[0],[0]]`, "[0][0]: want 1, got 0"},
		{`[{}]`, `[[]]`, "[0]: want {}, got []"},
	} {
		d := js.Diff(js.Trusted(c.want), js.Trusted(c.got))
		if c.says == "" {
			require.Nil(t, d, "%s and %s", c.want, c.got)
			continue
		}
		require.NotNil(t, d, "%s and %s", c.want, c.got)
		require.Equal(t, c.says, d.String(), "%s and %s", c.want, c.got)
	}
}

// A comparison that went through the rest of the text at each level would take
// hours here.
func TestDiffOfDeepValuesTakesTimeInProportionToTheirSize(t *testing.T) {
	const depth = 300_000
	deep := func(leaf string) js.Value {
		return js.Trusted(strings.Repeat(`{"a":[0,`, depth) + leaf + strings.Repeat(`]}`, depth))
	}
	require.Nil(t, js.Diff(deep("1"), deep("1.0")))
	d := js.Diff(deep("1"), deep("2"))
	require.NotNil(t, d)
	require.Equal(t, strings.Repeat(".a[1]", depth), d.Path)
	require.Equal(t, "1 2", d.Want.JSON()+" "+d.Got.JSON())
}
