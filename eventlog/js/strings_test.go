package js

import (
	"encoding/hex"
	"fmt"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"testing"
	"unicode/utf8"
)

func TestTrimCutsEachCodeUnitThatNodeCutsAndNoOther(t *testing.T) {
	cut := map[uint16]bool{}
	for _, unit := range strings.Fields(nodeTable(t, "trim.txt")[0][0]) {
		u, err := strconv.ParseUint(unit, 16, 16)
		if err != nil {
			t.Fatal(err)
		}
		cut[uint16(u)] = true
	}
	for u := range 0x10000 {
		c := fromUnits([]uint16{uint16(u)})
		want := "x"
		if !cut[uint16(u)] {
			want = c + "x" + c
		}
		if got := Trim(c + "x" + c); got != want {
			t.Errorf("Trim cuts U+%04X to %q, want %q", u, got, want)
		}
		if IsBlank(c) != cut[uint16(u)] {
			t.Errorf("IsBlank(U+%04X) = %v", u, IsBlank(c))
		}
	}
}

func TestTrimLeavesWhatNodeLeaves(t *testing.T) {
	for _, row := range nodeTable(t, "trim.txt")[1:] {
		s := unquoted(t, row[0])
		want := s[integer(t, row[1]):integer(t, row[2])]
		if got := Trim(s); got != want {
			t.Errorf("Trim(%s) = %q, want %q", row[0], got, want)
		}
		if got := IsBlank(s); got != (want == "") {
			t.Errorf("IsBlank(%s) = %v", row[0], got)
		}
	}
}

func TestTrimAndDecodingValidBytesAllocateNothing(t *testing.T) {
	padded := " \u00a0 a text of some length \ufeff\n"
	var sum int
	if n := testing.AllocsPerRun(100, func() {
		sum += len(Trim(padded)) + len(DecodeUTF8(padded)) + Len(padded)
		if IsBlank(padded) {
			sum++
		}
	}); n != 0 {
		t.Errorf("%v allocations", n)
	}
}

func TestPrefixAndLenCountUTF16AsNodeDoes(t *testing.T) {
	for _, row := range nodeTable(t, "prefix.txt") {
		s, n := unquoted(t, row[0]), integer(t, row[1])
		if got := Len(s); got != integer(t, row[2]) {
			t.Errorf("Len(%s) = %d, want %s", row[0], got, row[2])
		}
		if got, want := Prefix(s, n), unquoted(t, row[3]); got != want {
			t.Errorf("Prefix(%s, %d) = %q, want %q", row[0], n, got, want)
		}
	}
}

func TestEveryPairOfStringsComparesAsNodeSortsThem(t *testing.T) {
	var sorted []string
	for _, row := range nodeTable(t, "sorted.txt") {
		sorted = append(sorted, unquoted(t, row[0]))
	}
	for i, a := range sorted {
		for j, b := range sorted {
			want := 0
			if i < j {
				want = -1
			} else if i > j {
				want = 1
			}
			if got := Compare(a, b); got != want {
				t.Fatalf("Compare(%q, %q) = %d, want %d", a, b, got, want)
			}
		}
	}
}

func TestBytesDecodeAsNodeDecodesThem(t *testing.T) {
	for _, row := range nodeTable(t, "decode.txt") {
		b, err := hex.DecodeString(row[0])
		if err != nil {
			t.Fatal(err)
		}
		want := unquoted(t, row[1])
		if got := DecodeUTF8(string(b)); got != want {
			t.Errorf("DecodeUTF8(% x) = %+q, want %+q", b, got, want)
		}
		// What stands around an ill-formed part stays.
		if got := DecodeUTF8("\ufeffé" + string(b) + "z"); got != "\ufeffé"+want+"z" {
			t.Errorf("DecodeUTF8(... % x ...) = %+q", b, got)
		}
	}
}

func TestSurrogatesThatMeetBecomeOneCharacter(t *testing.T) {
	const high, low = "\xed\xa0\xbd", "\xed\xb8\x80" // D83D and DE00, of U+1F600
	for _, test := range []struct {
		parts []string
		sep   string
		want  string
	}{
		{nil, "x", ""},
		{[]string{"a"}, low, "a"},
		{[]string{high, low}, "", "😀"},
		{[]string{"a" + high, low + "b"}, "", "a😀b"},
		{[]string{high, "", "", low}, "", "😀"},
		{[]string{high, low}, ",", high + "," + low},
		{[]string{low, high}, "", low + high},
		{[]string{high, high, low, low}, "", high + "😀" + low},
		{[]string{high, "a", high}, low, "😀a" + low + high},
		{[]string{"a", low}, high, "a😀"},
		{[]string{high, ""}, low, "😀"},
		{[]string{low, low}, "", low + low},
		{[]string{"😀", low}, "", "😀" + low},
	} {
		if got := Join(test.parts, test.sep); got != test.want {
			t.Errorf("Join(%q, %q) = %q, want %q", test.parts, test.sep, got, test.want)
		}
		if test.sep == "" {
			if got := Concat(test.parts...); got != test.want {
				t.Errorf("Concat(%q) = %q, want %q", test.parts, got, test.want)
			}
		}
	}
}

func TestToWellFormedReplacesLoneSurrogatesOnly(t *testing.T) {
	for s, want := range map[string]string{
		"":                            "",
		"plain 😀 \ufffd \ud7ff":       "plain 😀 \ufffd \ud7ff",
		"\xed\xa0\x80":                "\ufffd",
		"a\xed\xbf\xbfb\xed\xa0\xbd😀": "a\ufffdb\ufffd😀",
		"\xed\xb0\x80\xed\xa0\x80":    "\ufffd\ufffd",
		"\xed":                        "\xed", // not WTF-8, and not a surrogate
	} {
		if got := ToWellFormed(s); got != want {
			t.Errorf("ToWellFormed(%q) = %q, want %q", s, got, want)
		}
	}
}

func TestBytesThatAreNotWTF8AreKeptApart(t *testing.T) {
	s := "a\xff\xc3\xed\xa0z"
	if got := Len(s); got != 6 {
		t.Errorf("Len = %d, want 6", got)
	}
	if got := Prefix(s, 3); got != "a\xff\xc3" {
		t.Errorf("Prefix = %q", got)
	}
	if Compare("\xfe", "\xff") != -1 || Compare("\xff", "\xff") != 0 || Compare("\uffff", "\x80") != -1 {
		t.Error("Compare has no order of invalid bytes")
	}
	if got := Compare("a😀", "a\xed\xa0\xbd\xed\xb8\x80"); got != 0 {
		t.Errorf("Compare of one pair in two encodings = %d", got)
	}
	if got := Trim(" \xa0 \xc2 "); got != "\xa0 \xc2" {
		t.Errorf("Trim = %q", got)
	}
}

func TestStringsBehaveAsTheirCodeUnitsDo(t *testing.T) {
	random := rand.New(rand.NewPCG(3, 4))
	alphabet := []uint16{'a', 'b', ' ', 0x7F, 0xA0, 0x7FF, 0x800, 0xD7FF, 0xD800, 0xD83D, 0xDBFF, 0xDC00, 0xDE00, 0xDFFF, 0xE000, 0xFEFF, 0xFFFD, 0xFFFF}
	text := func() []uint16 {
		units := make([]uint16, random.IntN(7))
		for i := range units {
			units[i] = alphabet[random.IntN(len(alphabet))]
		}
		return units
	}
	for range 50_000 {
		a, b, c := text(), text(), text()
		x, y, z := fromUnits(a), fromUnits(b), fromUnits(c)
		if got := toUnits(x); !slices.Equal(got, a) {
			t.Fatalf("%x became %x", a, got)
		}
		if Len(x) != len(a) {
			t.Fatalf("Len(%q) = %d, want %d", x, Len(x), len(a))
		}
		for n := range len(a) + 2 {
			if got, want := Prefix(x, n), fromUnits(a[:min(n, len(a))]); got != want {
				t.Fatalf("Prefix(%q, %d) = %q, want %q", x, n, got, want)
			}
		}
		if got, want := Compare(x, y), slices.Compare(a, b); got != want {
			t.Fatalf("Compare(%q, %q) = %d, want %d", x, y, got, want)
		}
		if got, want := Concat(x, y, z), fromUnits(slices.Concat(a, b, c)); got != want {
			t.Fatalf("Concat(%q, %q, %q) = %q, want %q", x, y, z, got, want)
		}
		if got, want := Join([]string{x, y, x}, z), fromUnits(slices.Concat(a, c, b, c, a)); got != want {
			t.Fatalf("Join(%q, %q, %q; %q) = %q, want %q", x, y, x, z, got, want)
		}
		formed := ToWellFormed(x)
		if !utf8.ValidString(formed) || Len(formed) != len(a) || utf8.ValidString(x) && formed != x {
			t.Fatalf("ToWellFormed(%q) = %q", x, formed)
		}
		trimmed := Trim(x)
		if !strings.Contains(x, trimmed) || Trim(trimmed) != trimmed {
			t.Fatalf("Trim(%q) = %q", x, trimmed)
		}
	}
}

func FuzzTextFunctionsKeepTheirPromisesOnAnyBytes(f *testing.F) {
	f.Add("a\xed\xa0\xbd", "\xed\xb8\x80 \ufeff", 1)
	f.Add("\xf0\x9f\x98", "\xe2\x80", -1)
	f.Fuzz(func(t *testing.T, a, b string, n int) {
		decoded := DecodeUTF8(a)
		if !utf8.ValidString(decoded) {
			t.Fatalf("DecodeUTF8(%q) = %q", a, decoded)
		}
		if Compare(a, b) != -Compare(b, a) || Compare(a, a) != 0 {
			t.Fatalf("Compare(%q, %q) = %d, the other way %d", a, b, Compare(a, b), Compare(b, a))
		}
		if prefix := Prefix(a, n); n >= 0 && Len(prefix) != min(n, Len(a)) {
			t.Fatalf("Prefix(%q, %d) = %q of length %d", a, n, prefix, Len(prefix))
		}
		if IsBlank(a) != (Trim(a) == "") {
			t.Fatalf("IsBlank(%q) = %v, Trim leaves %q", a, IsBlank(a), Trim(a))
		}
		if utf8.ValidString(a) && utf8.ValidString(b) && Concat(a, b) != a+b {
			t.Fatalf("Concat(%q, %q) = %q", a, b, Concat(a, b))
		}
	})
}

func BenchmarkTrim(b *testing.B) {
	long := strings.Repeat("some text of a message, ", 400)
	for _, s := range []string{"hello", "  hello\n", "\u00a0hello\ufeff", long} {
		b.Run(fmt.Sprintf("%.10q", s), func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				Trim(s)
			}
		})
	}
}

func BenchmarkCompare(b *testing.B) {
	b.ReportAllocs()
	for b.Loop() {
		Compare("2026-01-02T03:04:05.678Z", "2026-01-02T03:04:05.679Z")
	}
}

func BenchmarkPrefix(b *testing.B) {
	text := strings.Repeat("some text — of a message, ", 400)
	b.ReportAllocs()
	for b.Loop() {
		Prefix(text, 200)
	}
}

func BenchmarkDecodeUTF8(b *testing.B) {
	text := strings.Repeat("some text — of a message, ", 400)
	for _, s := range []string{text, text + "\xff" + text} {
		b.Run(fmt.Sprintf("valid=%v", utf8.ValidString(s)), func(b *testing.B) {
			b.SetBytes(int64(len(s)))
			b.ReportAllocs()
			for b.Loop() {
				DecodeUTF8(s)
			}
		})
	}
}
