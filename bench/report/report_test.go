package report_test

import (
	"context"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/sessiontree/sessiontree/bench"
	"github.com/sessiontree/sessiontree/bench/check"
	"github.com/sessiontree/sessiontree/bench/machine"
	"github.com/sessiontree/sessiontree/bench/report"
	"github.com/sessiontree/sessiontree/bench/stats"
)

func at(v float64) stats.Estimate { return stats.Estimate{Median: v, Low: 0.95 * v, High: 1.05 * v} }

// result has every kind of row.
func result() *bench.Result {
	r := &bench.Result{
		Machine:  machine.Fingerprint{OS: "linux", Arch: "amd64", CPU: "Test </script><b>CPU", Cores: 2, Memory: 8 << 30, FileSystem: "ext4", Fsync: at(150e3), Go: "go1.26", SQLite: "v1.62.0"},
		Seed:     3,
		Started:  time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC),
		Duration: 65 * time.Second,
	}
	ratio := func(v float64) *stats.Estimate { e := at(v); return &e }
	for _, n := range []int{1_000, 10_000} {
		r.Rows = append(r.Rows,
			bench.Row{Operation: "append", Backend: "sqlite", Shape: "chain", Size: n, Unit: bench.Nanos, Samples: []float64{2}, Value: at(200e3), P99: 900e3, Against: "bare-sql", Limit: []float64{1}, Ratio: ratio(1.3), Quiet: 1.2, CPU: 11e3, CPURatio: 1.1, Target: &bench.Target{Ratio: 1.4}, Met: true},
			bench.Row{Operation: "append", Backend: "peer", Shape: "chain", Size: n, Unit: bench.Nanos, Samples: []float64{2}, Value: at(500e3), P99: 1e6, Against: "bare-sql", Limit: []float64{1}, Ratio: ratio(3), Quiet: 3, Unsure: true},
			bench.Row{Operation: "branch", Backend: "sqlite", Shape: "chain", Size: n, Unit: bench.NanosPerEntry, Entries: float64(n), Samples: []float64{2}, Value: at(2700), P99: 2800, Target: &bench.Target{Value: 2500}},
			bench.Row{Operation: "disk", Backend: "sqlite", Shape: "chain", Size: n, Unit: bench.BytesPerEntry, Entries: float64(n), Samples: []float64{2}, Value: at(750), P99: 750},
		)
	}
	r.Rows = append(r.Rows, bench.Row{Operation: "empty", Backend: "sqlite", Shape: "chain", Size: 100, Unit: bench.Nanos, Samples: []float64{50}, Value: at(50), P99: 60})
	r.Growth = []bench.Growth{{Operation: "append", Backend: "sqlite", Shape: "chain", Sizes: []int{1_000, 10_000}, By: "size", Exponent: 0.01}}
	return r
}

func TestTheTableHasFiguresGrowthAndAVerdict(t *testing.T) {
	var b strings.Builder
	require.NoError(t, report.Table(&b, result()))
	text := b.String()
	for _, line := range []string{
		`append +sqlite +chain +10k +200 µs +900 µs +154 µs +1.30× \(1.23 to 1.37\) +1.20× +1.10× +≤ 1.40× +met`,
		`append +peer +chain +1k +500 µs +1.00 ms +167 µs +3.00× \(2.85 to 3.15\) \? +3.00×`,
		`branch +sqlite +chain +1k +2.70 µs/entry +2.80 µs/entry +≤ 2.50 µs/entry +MISSED`,
		`disk +sqlite +chain +1k +750 B/entry`,
		`append +sqlite +chain +size +0.01 +0.00 +1k, 10k`,
		`Measuring costs 50.0 ns, at the most 0.025% of a figure: append of sqlite on a chain of 1k`,
		`2 targets met, 2 missed; 9 figures, 2 of them unsure`,
		`ext4, fsync 150 µs`,
	} {
		assert.Regexp(t, "(?m)^.*"+line, text)
	}
}

func TestThePageNeedsNoNetwork(t *testing.T) {
	var b strings.Builder
	require.NoError(t, report.HTML(&b, result()))
	// The library is held as it was published; what is around it is ours.
	library := scriptsOf(b.String())[0]
	assert.Contains(t, library[:1000], "Licensed to the Apache Software Foundation")
	page := strings.Replace(b.String(), library, "", 1)
	assert.NotRegexp(t, `(?i)<(script|link|img|iframe)[^>]*(src|href)=`, page)
	assert.NotRegexp(t, `@import|url\(\s*['"]?http`, page)
	assert.NotContains(t, page, "</script><b>", "what a machine is called ends no script")
	for _, want := range []string{"2 targets met, 2 missed", "sqlite chain (size^0.01)", "bare-sql chain", "Side by side", "Bytes on the disk", `"type":"log"`, "2026-01-02 03:04"} {
		assert.Contains(t, page, want)
	}
	assert.Equal(t, strings.Count(page, "<script"), strings.Count(page, "</script>"))
	var again strings.Builder
	require.NoError(t, report.HTML(&again, result()))
	assert.True(t, b.String() == again.String(), "the same result gives the same page")
}

// scriptsOf gives the scripts of a page.
func scriptsOf(page string) (scripts []string) {
	for _, s := range regexp.MustCompile(`(?s)<script[^>]*>(.*?)</script>`).FindAllStringSubmatch(page, -1) {
		scripts = append(scripts, s[1])
	}
	return scripts
}

// TestThePlotsAreDrawn runs the scripts of the page, with a stand-in for the
// browser's element, and asks ECharts what it was given.
func TestThePlotsAreDrawn(t *testing.T) {
	node, err := exec.LookPath("node")
	if err != nil {
		t.Skip("node is not here to run the page's scripts")
	}
	var b strings.Builder
	require.NoError(t, report.HTML(&b, result()))
	scripts := scriptsOf(b.String())
	require.Greater(t, len(scripts), 3)
	var program strings.Builder
	dir := t.TempDir()
	require.NoError(t, os.WriteFile(filepath.Join(dir, "library.cjs"), []byte(scripts[0]), 0o600))
	program.WriteString("const drawn = []; const document = {getElementById: id => id};\n" +
		"const make = require('./library.cjs').init;\n" +
		"const echarts = {init: (id) => { const chart = make(null, null, {renderer: 'svg', ssr: true, width: 600, height: 400}); drawn.push([id, chart]); return chart }};\n")
	for _, s := range scripts[1:] {
		program.WriteString("(function () {" + s + "})();\n")
	}
	program.WriteString("process.stdout.write(JSON.stringify(drawn.map(([id, c]) => [id, c.getOption().series.map(s => s.name + ' ' + JSON.stringify(s.data)), c.renderToSVGString().length > 500])) + '\\n', () => process.exit(0))\n")
	path := filepath.Join(dir, "page.cjs")
	require.NoError(t, os.WriteFile(path, []byte(program.String()), 0o600))
	limited, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	out, err := exec.CommandContext(limited, node, path).Output()
	if e, ok := err.(*exec.ExitError); ok {
		t.Fatalf("%v\n…%s", err, e.Stderr[max(0, len(e.Stderr)-600):])
	}
	require.NoError(t, err)
	var drawn [][]any
	require.NoError(t, json.Unmarshal(out, &drawn), string(out))
	want := map[string]string{
		"growth1": `sqlite chain (size^0.01) [{"value":[1000,200000]},{"value":[10000,200000]}]`,
		"growth2": `sqlite chain [{"value":[1000,2700]},{"value":[10000,2700]}]`,
		"bytes1":  `sqlite [{"value":750}]`,
		"side1":   `sqlite [{"value":200000}]`,
	}
	for _, d := range drawn {
		assert.Equal(t, true, d[2], "%v is drawn", d[0])
		assert.Contains(t, d[1], want[d[0].(string)], "%v", d[0])
		delete(want, d[0].(string))
	}
	assert.Empty(t, want, "plots that are not there")
}

func TestChangesSayWhatMoved(t *testing.T) {
	before, after := result(), result()
	*after.Rows[0].Ratio = at(2.6)
	after.Rows[2].Value = at(1000)
	after.Machine.CPU = "another"
	changes, err := bench.Compare(before, after)
	require.NoError(t, err)
	var b strings.Builder
	require.NoError(t, report.Changes(&b, before, after, changes))
	for _, line := range []string{
		`different machines`,
		`append +sqlite +chain +1k +ratio +1.30× \(1.23 to 1.37\) +2.60× \(2.47 to 2.73\) +2.00 +worse`,
		`branch +sqlite +chain +1k +value +2.70 µs/entry +1.00 µs/entry +0.37 +better`,
		`9 figures: 7 agree within a tenth, 1 better, 1 worse, 0 unsure`,
	} {
		assert.Regexp(t, line, b.String())
	}
}

func TestACheckNamesWhatIsOff(t *testing.T) {
	var b strings.Builder
	require.NoError(t, report.Check(&b, &check.Report{Figures: []check.Figure{
		{Operation: "append", Shape: "comb", Metric: check.Rows, Sizes: []int{500, 2000}, Values: []float64{4, 44}, Max: 4, MaxExponent: 0.2, Exponent: 1.6, Problem: "4 at the most, not 44"},
		{Operation: "fork", Shape: "comb", Metric: check.Pages, PerEntry: true, Sizes: []int{500, 2000}, Values: []float64{4, 4}, Max: 5, MaxExponent: 0.2},
	}}))
	for _, line := range []string{
		`append +comb +rows +500, 2k +4.00, 44.0 +4.00 +1.60 +0.20 +OFF`,
		`fork +comb +pages an entry +500, 2k +4.00, 4.00 +5.00 +0.00 +0.20 *\n`,
		`2 figures, 1 off\nappend of comb, rows: 4 at the most, not 44\n`,
	} {
		assert.Regexp(t, line, b.String())
	}
}
