package jsonl_test

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/sessiontree/sessiontree/eventlog"
	"github.com/sessiontree/sessiontree/eventlog/jsonl"
)

// The sizes of the benchmarks: a long session, in entries of about 480 bytes
// with texts of 256.
const benchEntries = 100_000

func benchMessage(i int) eventlog.Message {
	at := time.UnixMilli(1767225600000 + int64(i)*1000)
	text := fmt.Sprintf("%08d ", i) + strings.Repeat("a word ", 35)
	if i%2 == 0 {
		return eventlog.UserMessage(text, at)
	}
	return eventlog.AssistantMessage(text, "acme", "coder-1", eventlog.Usage{Input: 100, Output: 20, CacheRead: 5, CacheWrite: 3, Cost: 0.01}, at)
}

// benchFile writes a chain of n entries as a session file.
func benchFile(b testing.TB, n int) string {
	path := filepath.Join(b.TempDir(), "session.jsonl")
	s, err := jsonl.Create(context.Background(), path, eventlog.Metadata{ID: "bench", CreatedAt: "2026-01-01T00:00:00.000Z", CWD: "/project"}, nil, jsonl.Options{NoSync: true})
	if err != nil {
		b.Fatal(err)
	}
	defer s.Close()
	drafts := make([]eventlog.Draft, n)
	for i := range drafts {
		drafts[i] = eventlog.MessageDraft(benchMessage(i))
	}
	if _, err := s.Append(context.Background(), eventlog.Batch{Drafts: drafts}); err != nil {
		b.Fatal(err)
	}
	return path
}

func perEntry(b *testing.B, n int) {
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/float64(n), "ns/entry")
}

func BenchmarkOpenAndFirstContext(b *testing.B) {
	path := benchFile(b, benchEntries)
	for b.Loop() {
		s, err := jsonl.Open(context.Background(), path, jsonl.Options{})
		if err != nil {
			b.Fatal(err)
		}
		if c, err := eventlog.NewSession(s).BuildContext(context.Background(), eventlog.None()); err != nil || len(c.Messages) != benchEntries {
			b.Fatal(len(c.Messages), err)
		}
		s.Close()
	}
	perEntry(b, benchEntries)
}

func benchSession(b *testing.B) *eventlog.Session {
	s, err := jsonl.Open(context.Background(), benchFile(b, benchEntries), jsonl.Options{})
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { s.Close() })
	return eventlog.NewSession(s)
}

func BenchmarkBranch(b *testing.B) {
	s := benchSession(b)
	for b.Loop() {
		if branch, err := s.Branch(context.Background(), eventlog.None()); err != nil || len(branch) != benchEntries {
			b.Fatal(len(branch), err)
		}
	}
	perEntry(b, benchEntries)
}

func BenchmarkContext(b *testing.B) {
	s := benchSession(b)
	for b.Loop() {
		if c, err := s.BuildContext(context.Background(), eventlog.None()); err != nil || len(c.Messages) != benchEntries {
			b.Fatal(len(c.Messages), err)
		}
	}
	perEntry(b, benchEntries)
}

func BenchmarkForkWhole(b *testing.B) {
	path := benchFile(b, benchEntries)
	repo := jsonl.NewRepo(b.TempDir(), jsonl.Options{})
	for b.Loop() {
		s, err := repo.Fork(context.Background(), eventlog.Metadata{Path: path}, eventlog.ForkOptions{CreateOptions: eventlog.CreateOptions{CWD: "/project"}})
		if err != nil {
			b.Fatal(err)
		}
		m, _ := s.Metadata(context.Background())
		s.Close()
		b.StopTimer()
		os.Remove(m.Path)
		b.StartTimer()
	}
	perEntry(b, benchEntries)
}

// TestMain lets the test binary stand in for a host: a process that opens the
// file named in the environment and builds its context.
func TestMain(m *testing.M) {
	if path := os.Getenv("SESSIONTREE_BENCH_OPEN"); path != "" {
		s, err := jsonl.Open(context.Background(), path, jsonl.Options{})
		if err == nil {
			_, err = eventlog.NewSession(s).BuildContext(context.Background(), eventlog.None())
		}
		if err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		// The kernel's figure for the process as it is; what wait4 reports counts the
		// parent's memory at the time of the fork too.
		status, _ := os.ReadFile("/proc/self/status")
		for line := range strings.Lines(string(status)) {
			if kb, ok := strings.CutPrefix(line, "VmHWM:"); ok {
				fmt.Print(strings.Fields(kb)[0])
			}
		}
		os.Exit(0)
	}
	os.Exit(m.Run())
}

// BenchmarkOpenAndFirstContextAsProcess is what a host that starts pays: wall
// time and peak memory of a process of its own.
func BenchmarkOpenAndFirstContextAsProcess(b *testing.B) {
	path := benchFile(b, benchEntries)
	self, err := os.Executable()
	if err != nil {
		b.Fatal(err)
	}
	var peak int64 // 0 where there is no /proc
	for b.Loop() {
		cmd := exec.Command(self)
		cmd.Env = append(os.Environ(), "SESSIONTREE_BENCH_OPEN="+path)
		out, err := cmd.CombinedOutput()
		if err != nil {
			b.Fatal(err, string(out))
		}
		kb, _ := strconv.ParseInt(string(out), 10, 64)
		peak = max(peak, kb)
	}
	b.ReportMetric(float64(peak)*1024/1e6, "peak-MB")
}
