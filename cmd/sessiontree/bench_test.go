package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/sessiontree/sessiontree/bench"
)

func quickBench(args ...string) answer {
	return ask(append([]string{"bench", "--sizes", "100,200", "--effort", "0.01", "--ops", "branch,disk", "--backends", "sqlite,memory"}, args...)...)
}

func TestBenchPrintsFiguresBesideTargets(t *testing.T) {
	a := quickBench("--shapes", "chain")
	require.Equal(t, exitOK, a.code, a.stderr)
	for _, want := range []string{"times the limit", "branch", "disk-branch-set", "/entry", "memory", "targets met"} {
		assert.Contains(t, a.stdout, want)
	}
	assert.Regexp(t, `(?m)^disk-branch-set +sqlite +chain +200 .* ≤ 60.0 B/entry +(met|MISSED)`, a.stdout)
	checkSafe(t, "bench", a)
}

func TestBenchJSONIsTheResultThatOutKeeps(t *testing.T) {
	out := filepath.Join(t.TempDir(), "result.json")
	a := quickBench("--json", "--shapes", "star", "--out", out)
	require.Equal(t, exitOK, a.code, a.stderr)
	kept, err := os.ReadFile(out)
	require.NoError(t, err)
	assert.Equal(t, string(kept), a.stdout)
	var r bench.Result
	decoder := json.NewDecoder(strings.NewReader(a.stdout))
	decoder.DisallowUnknownFields()
	require.NoError(t, decoder.Decode(&r))
	assert.Equal(t, uint64(1), r.Seed)
	assert.Positive(t, r.Machine.Cores)
	assert.Positive(t, r.Machine.Fsync.Median)
	assert.Equal(t, "star", r.Rows[0].Shape)
}

func TestBenchGenGivesTheSameFileAgain(t *testing.T) {
	gen := func(args ...string) answer { return ask(append([]string{"bench", "gen"}, args...)...) }
	a := gen("--shape", "comb", "--size", "2k", "--seed", "9")
	require.Equal(t, exitOK, a.code, a.stderr)
	assert.Equal(t, 2001, strings.Count(a.stdout, "\n"))
	assert.Equal(t, a, gen("--shape", "comb", "--size", "2000", "--seed", "9"))
	path := filepath.Join(t.TempDir(), "drawn.jsonl")
	require.NoError(t, os.WriteFile(path, []byte(a.stdout), 0o600))
	read := ask("stats", path, "--json")
	require.Equal(t, exitOK, read.code, read.stderr)
	assert.Contains(t, read.stdout, `"entries":2000`)
	assert.Contains(t, read.stdout, `"warnings":[]`)
}

func TestBenchUsage(t *testing.T) {
	for _, args := range [][]string{
		{"bench", "--sizes", "10q"}, {"bench", "--sizes", "0"}, {"bench", "--sizes", "9999999999M"}, {"bench", "--backends", "tape"},
		{"bench", "fly"}, {"bench", "gen", "--shape", "spiral"}, {"bench", "gen", "--size", "many"}, {"bench", "serve", "tape"}, {"bench", "serve"},
	} {
		a := ask(args...)
		assert.Equal(t, exitUsage, a.code, args)
		assert.NotEmpty(t, a.stderr, args)
	}
	a := ask("bench", "--shapes", "spiral", "--ops", "fly")
	assert.Equal(t, exitFailed, a.code)
	assert.Contains(t, a.stderr, "spiral")
	assert.Contains(t, a.stderr, "fly")
}

func TestBenchServeAnswersLineByLine(t *testing.T) {
	requests := strings.Join([]string{
		`{"op":"branch"}`,
		`{"op":"open","dir":` + quote(t.TempDir()) + `}`,
		`{"op":"create","session":"s"}`,
		`{"op":"build","session":"s","lines":["{\"type\":\"message\",\"id\":\"a\",\"parentId\":null,\"timestamp\":\"2026-01-01T00:00:00.000Z\",\"message\":{\"role\":\"user\",\"content\":\"x\",\"timestamp\":1}}"]}`,
		`{"op":"branch","session":"s"}`,
		`{"op":"list","limit":5}`,
		`{"op":"open","dir":"elsewhere"}`,
		`{"op":"append","session":"s","lines":["{"]}`,
		`{"op":"branch","session":"s","entry":"nowhere"}`,
	}, "\n")
	var stdout, stderr bytes.Buffer
	require.Equal(t, exitOK, run(context.Background(), []string{"bench", "serve", "jsonl"}, strings.NewReader(requests), &stdout, &stderr), stderr.String())
	var replies []string
	for line := range strings.Lines(stdout.String()) {
		var r struct {
			Count int
			Bytes int64
			Error string
		}
		require.NoError(t, json.Unmarshal([]byte(line), &r))
		b, _ := json.Marshal(r)
		replies = append(replies, string(b))
	}
	assert.Equal(t, []string{
		`{"Count":0,"Bytes":0,"Error":"open a store first"}`,
		`{"Count":0,"Bytes":0,"Error":""}`,
		`{"Count":1,"Bytes":0,"Error":""}`,
		`{"Count":1,"Bytes":0,"Error":""}`,
		`{"Count":1,"Bytes":136,"Error":""}`,
		`{"Count":0,"Bytes":0,"Error":"unsupported"}`,
		`{"Count":0,"Bytes":0,"Error":"a store is open already"}`,
	}, replies[:7])
	assert.Contains(t, replies[7], "message 0")
	assert.Contains(t, replies[8], "Entry nowhere not found")
}

func quote(s string) string {
	b, _ := json.Marshal(s)
	return string(b)
}

func TestBenchCheckSaysWhatItCounted(t *testing.T) {
	if testing.Short() {
		t.Skip("the race detector allocates too")
	}
	args := []string{"bench", "check", "--shapes", "chain", "--sizes", "100,250,600,1500"}
	a := ask(args...)
	require.Equal(t, exitOK, a.code, a.stdout+a.stderr)
	assert.Regexp(t, `(?m)^append +chain +rows +100, 250, 600, 1500 +\d.00, \d.00, \d.00, \d.00 +\d.00 +0.00 +0.20 *$`, a.stdout)
	assert.Contains(t, a.stdout, "figures, 0 off")
	var r struct {
		Figures []struct{ Operation, Metric string }
	}
	require.NoError(t, json.Unmarshal([]byte(ask(append(args, "--json")...).stdout), &r))
	assert.Contains(t, a.stdout, fmt.Sprintf("%d figures", len(r.Figures)))
	assert.Equal(t, exitUsage, ask("bench", "check", "--sizes", "many").code)
	assert.Equal(t, exitFailed, ask("bench", "check", "--sizes", "100,200,300").code)
}

func TestBenchCompareHoldsTwoRunsAgainstEachOther(t *testing.T) {
	dir := t.TempDir()
	before, after, html := filepath.Join(dir, "before.json"), filepath.Join(dir, "after.json"), filepath.Join(dir, "page.html")
	for _, path := range []string{before, after} {
		require.Equal(t, exitOK, quickBench("--shapes", "chain", "--out", path, "--html", html).code)
	}
	a := ask("bench", "compare", before, after)
	require.Equal(t, exitOK, a.code, a.stderr)
	// A page more or less: it depends on when the views wrote.
	assert.Regexp(t, `(?m)^disk +sqlite +chain +200 +value .* (1.0\d|0.9\d) *$`, a.stdout)
	assert.Contains(t, a.stdout, "agree within a tenth")
	checkSafe(t, "compare", a)
	a = ask("bench", "compare", before, after, "--json")
	assert.Contains(t, a.stdout, `{"sameMachine":true,"changes":[{"operation":"build"`)
	page, err := os.ReadFile(html)
	require.NoError(t, err)
	assert.Contains(t, string(page), "sqlite chain")

	assert.Equal(t, exitUsage, ask("bench", "compare", before).code)
	a = ask("bench", "compare", before, filepath.Join(dir, "nowhere.json"))
	assert.Equal(t, exitFailed, a.code)
	assert.Contains(t, a.stderr, "nowhere.json")
	a = ask("bench", "compare", before, html)
	assert.Equal(t, exitFailed, a.code)
	assert.Contains(t, a.stderr, "page.html")
	assert.Contains(t, a.stderr, "no result of a bench")
}

func TestBenchPeersSaysWhatIsInstalled(t *testing.T) {
	t.Setenv("XDG_CACHE_HOME", t.TempDir()) // of Linux; elsewhere the peers may be there
	a := ask("bench", "peers")
	require.Equal(t, exitOK, a.code, a.stderr)
	var r struct {
		Folder string
		Peers  []struct {
			Name, Version string
			Installed     bool
		}
	}
	require.NoError(t, json.Unmarshal([]byte(ask("bench", "peers", "--json").stdout), &r))
	assert.Contains(t, a.stdout, r.Folder)
	require.Len(t, r.Peers, 2)
	for _, p := range r.Peers {
		assert.Contains(t, a.stdout, p.Name)
	}
	if r.Peers[0].Installed {
		t.Skip("the peers are installed in ", r.Folder)
	}
	missing := ask("bench", "--backends", "memory,pi-sqlite", "--sizes", "100", "--shapes", "chain", "--ops", "branch", "--effort", "0.01")
	require.Equal(t, exitOK, missing.code, missing.stderr)
	assert.Contains(t, missing.stdout, "not run: pi-sqlite: not installed: sessiontree bench peers install")
	assert.Equal(t, exitUsage, ask("bench", "peers", "everything").code)
}
