package js

import (
	"math"
	"math/rand/v2"
	"strconv"
	"strings"
	"testing"
)

func TestNumbersAreWrittenAsNodeWritesThem(t *testing.T) {
	for _, row := range nodeTable(t, "numbers.txt") {
		f, err := strconv.ParseFloat(row[0], 64)
		if err != nil {
			t.Fatal(err)
		}
		if got := string(AppendNumber(nil, f)); got != row[0] {
			t.Errorf("AppendNumber(%#x) = %s, Node writes %s", math.Float64bits(f), got, row[0])
		}
		if got, ok := ParseNumber(row[0]); !ok || got != f {
			t.Errorf("ParseNumber(%s) = %v, %v, want %v", row[0], got, ok, f)
		}
	}
}

func TestNumbersThatJSONLacksAreNullAndMinusZeroIsZero(t *testing.T) {
	for _, test := range []struct {
		f    float64
		want string
	}{
		{math.NaN(), "null"},
		{math.Inf(1), "null"},
		{math.Inf(-1), "null"},
		{math.Copysign(0, -1), "0"},
	} {
		if got := string(AppendNumber([]byte("x="), test.f)); got != "x="+test.want {
			t.Errorf("AppendNumber(x=, %v) = %s, want x=%s", test.f, got, test.want)
		}
	}
}

func TestANumberReadsBackAsItself(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	for range 100_000 {
		f := math.Float64frombits(random.Uint64())
		if math.IsNaN(f) || math.IsInf(f, 0) {
			continue
		}
		text := string(AppendNumber(nil, f))
		if got, ok := ParseNumber(text); !ok || got != f {
			t.Fatalf("%#x is written as %s, which reads as %v, %v", math.Float64bits(f), text, got, ok)
		}
		if mantissa, exponent, found := strings.Cut(text, "e"); found && (exponent[0] != '+' && exponent[0] != '-' || exponent[1] == '0' || mantissa == "") {
			t.Fatalf("%#x is written as %s", math.Float64bits(f), text)
		}
	}
}

func TestNumberLiteralsHaveTheValueOfJSONParse(t *testing.T) {
	zeros := strings.Repeat("0", 120_000)
	for _, test := range []struct {
		text string
		want float64
	}{
		{"0", 0},
		{"-0", math.Copysign(0, -1)},
		{"-0.0e9", math.Copysign(0, -1)},
		{"1E5", 1e5},
		{"1e+05", 1e5},
		{"0e999999999999999999999", 0},
		{"1e400", math.Inf(1)},
		{"-1e400", math.Inf(-1)},
		{"1e-400", 0},
		{"-1e-400", math.Copysign(0, -1)},
		{"1e99999999999999999999999", math.Inf(1)},
		{"1e-99999999999999999999999", 0},
		{"9007199254740993", 9007199254740992},
		{"9007199254740993.0000000000000000000000000000000000001", 9007199254740994},
		{"1.7976931348623158e308", math.MaxFloat64},
		{"1.7976931348623159e308", math.Inf(1)},
		{"2.4703282292062327e-324", 0},
		{"2.4703282292062328e-324", 5e-324},
		// Mantissas as long as their exponents are large.
		{"0." + zeros + "1e120001", 1},
		{"-12" + zeros + "e-120000", -12},
		{"1" + zeros + "e-120400", 0},
		{"1e000000000000000000000000000007", 1e7},
	} {
		got, ok := ParseNumber(test.text)
		if !ok || math.Float64bits(got) != math.Float64bits(test.want) {
			t.Errorf("ParseNumber(%.40s) = %v, %v, want %v", test.text, got, ok, test.want)
		}
	}
}

func TestWhatIsNoJSONNumberIsRefused(t *testing.T) {
	for _, text := range []string{
		"", "-", "+1", "01", "-01", "00", "1.", ".5", "-.5", "1e", "1e+", "1e-", "1.e5", "1e5.5",
		" 1", "1 ", "1\n", "1_000", "0x10", "1n", "NaN", "Infinity", "-Infinity", "inf", "null",
		"1,5", "1e5e5", "--1", "1-", "٣", "1\x00",
	} {
		if got, ok := ParseNumber(text); ok || got != 0 {
			t.Errorf("ParseNumber(%q) = %v, %v", text, got, ok)
		}
	}
}

func BenchmarkAppendNumber(b *testing.B) {
	for _, bench := range []struct {
		name string
		f    float64
	}{
		{"integer", 1767323045678},
		{"cost", 0.0123825},
		{"exponent", 1.5e-7},
	} {
		b.Run(bench.name, func(b *testing.B) {
			var buf [32]byte
			b.ReportAllocs()
			for b.Loop() {
				AppendNumber(buf[:0], bench.f)
			}
		})
	}
}

func BenchmarkParseNumber(b *testing.B) {
	b.ReportAllocs()
	for b.Loop() {
		ParseNumber("1767323045678")
	}
}

func TestToNumberIsNodes(t *testing.T) {
	for _, row := range nodeTable(t, "tonumber.txt") {
		v, err := Parse(row[0])
		if err != nil {
			t.Fatal(err)
		}
		got := ToNumber(v)
		text := ToString(Num(got))
		switch {
		case math.IsNaN(got):
			text = "NaN"
		case math.IsInf(got, 0):
			text = strings.TrimPrefix(strconv.FormatFloat(got, 'f', -1, 64), "+") + "inity"
		case got == 0 && math.Signbit(got):
			text = "-0"
		}
		if text != row[1] {
			t.Errorf("%s is %s, in Node %s", row[0], text, row[1])
		}
	}
}
