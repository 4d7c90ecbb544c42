package js

import (
	"fmt"
	"math"
	"math/rand/v2"
	"strings"
	"testing"
	"time"
)

func TestDatesAreReadAsNodeReadsThem(t *testing.T) {
	for _, row := range nodeTable(t, "dates.txt") {
		got := "NaN"
		if ms := ParseDate(unquoted(t, row[0])); !math.IsNaN(ms) {
			got = fmt.Sprintf("%.0f", ms)
		}
		if got != row[1] {
			t.Errorf("ParseDate(%s) = %s, Node says %s", row[0], got, row[1])
		}
	}
}

func TestTheShortcutForUsualDatesAgreesWithTheFullParser(t *testing.T) {
	random := rand.New(rand.NewPCG(5, 6))
	shortcuts := 0
	for i := range 50_000 {
		s := fmt.Sprintf("%04d-%02d-%02dT%02d:%02d:%02d.%03dZ", random.IntN(10_000), random.IntN(14), random.IntN(33),
			random.IntN(26), random.IntN(62), random.IntN(62), random.IntN(1000))
		if i%4 == 0 {
			at := random.IntN(len(s))
			s = s[:at] + string(rune(' '+random.IntN(95))) + s[at+1:]
		}
		ms, ok := parseUsualDate(s)
		if !ok {
			continue
		}
		shortcuts++
		if want := parseAnyDate(s); float64(ms) != want {
			t.Fatalf("%q: %d by the shortcut, %v in full", s, ms, want)
		}
	}
	if shortcuts < 10_000 {
		t.Errorf("only %d dates took the shortcut", shortcuts)
	}
}

func TestATimeReadsBackFromItsISOForm(t *testing.T) {
	random := rand.New(rand.NewPCG(7, 8))
	zone := time.FixedZone("", 19_800)
	for range 50_000 {
		ms := random.Int64N(2*maxDateMillis+1) - maxDateMillis
		if random.IntN(2) == 0 {
			ms /= 1000
		}
		// What is finer than a millisecond is cut.
		text := ISO(time.UnixMilli(ms).Add(time.Duration(random.IntN(1_000_000))).In(zone))
		if got := ParseDate(text); got != float64(ms) {
			t.Fatalf("%d is written as %s, which reads as %v", ms, text, got)
		}
	}
}

func TestEveryDayOfTheCalendarAgreesWithTheTimePackage(t *testing.T) {
	day := time.Date(-401, time.December, 1, 0, 0, 0, 0, time.UTC)
	for range 3000 * 366 {
		year, month, date := day.Date()
		if got := dateMillis(year, int(month), date); got != day.UnixMilli() {
			t.Fatalf("%v: %d, want %d", day, got, day.UnixMilli())
		}
		day = day.AddDate(0, 0, 1)
	}
}

func TestISOWritesWhatToISOStringWrites(t *testing.T) {
	for _, test := range []struct {
		ms   int64
		want string
	}{
		{0, "1970-01-01T00:00:00.000Z"},
		{1767323045678, "2026-01-02T03:04:05.678Z"},
		{-1, "1969-12-31T23:59:59.999Z"},
		{-62167219200000, "0000-01-01T00:00:00.000Z"},
		{-62167219200001, "-000001-12-31T23:59:59.999Z"},
		{253402300799999, "9999-12-31T23:59:59.999Z"},
		{253402300800000, "+010000-01-01T00:00:00.000Z"},
		{maxDateMillis, "+275760-09-13T00:00:00.000Z"},
		{-maxDateMillis, "-271821-04-20T00:00:00.000Z"},
	} {
		if got := ISO(time.UnixMilli(test.ms)); got != test.want {
			t.Errorf("ISO(%d) = %s, want %s", test.ms, got, test.want)
		}
	}
	// Before 1970 too, milliseconds are cut downwards.
	if got := ISO(time.Unix(0, -1)); got != "1969-12-31T23:59:59.999Z" {
		t.Errorf("a nanosecond before 1970 is %s", got)
	}
}

func TestHostileDatesTakeLinearTimeAndNoStack(t *testing.T) {
	const n = 1 << 20
	for _, s := range []string{
		strings.Repeat("(", n),
		strings.Repeat("(", n) + strings.Repeat(")", n),
		strings.Repeat("()", n),
		strings.Repeat("9", n),
		strings.Repeat("x", n) + " 1 Jan 2024",
		strings.Repeat("- ", n) + "1 Jan 2024",
		strings.Repeat("\u00a0", n) + "2024",
		strings.Repeat("\xe2\x80", n),
	} {
		start := time.Now()
		ParseDate(s)
		if took := time.Since(start); took > 5*time.Second {
			t.Errorf("%.10q… took %v", s, took)
		}
	}
}

func FuzzADateIsAWholeNumberInRangeOrNaN(f *testing.F) {
	for _, row := range nodeTable(f, "dates.txt")[:280] {
		f.Add(unquoted(f, row[0]))
	}
	f.Fuzz(func(t *testing.T, s string) {
		ms := ParseDate(s)
		if math.IsNaN(ms) {
			return
		}
		if ms != math.Trunc(ms) || math.Abs(ms) > maxDateMillis {
			t.Fatalf("ParseDate(%q) = %v", s, ms)
		}
		if again := ParseDate(ISO(time.UnixMilli(int64(ms)))); again != ms {
			t.Fatalf("ParseDate(%q) = %v, but its ISO form reads as %v", s, ms, again)
		}
	})
}

func BenchmarkParseDate(b *testing.B) {
	for _, bench := range []struct{ name, text string }{
		{"usual", "2026-01-02T03:04:05.678Z"},
		{"iso", "2026-01-02T03:04:05+02:00"},
		{"legacy", "Thu, 01 Jan 1970 00:00:00 GMT"},
		{"none", "not a date"},
	} {
		b.Run(bench.name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				ParseDate(bench.text)
			}
		})
	}
}

func BenchmarkISO(b *testing.B) {
	now := time.UnixMilli(1767323045678)
	b.ReportAllocs()
	for b.Loop() {
		ISO(now)
	}
}
