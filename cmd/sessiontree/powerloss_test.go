package main

import (
	"bytes"
	"context"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/sessiontree/sessiontree/eventlog"
	"github.com/sessiontree/sessiontree/eventlog/osfile/osfiletest"
	"github.com/sessiontree/sessiontree/sqlitestore"
)

// recording is what the program did in a folder, command by command.
type recording struct {
	ops  []osfiletest.Op
	told []map[string]int // how many entries of each session were told before each operation
	gone []bool           // whether the deletion was told
	end  map[string][]string
}

const deletedSession = "whole"

// record runs the program under strace: a session from its creation on, with all
// that writes to the database.
func record(t *testing.T, each int) *recording {
	t.Helper()
	if err := osfiletest.CanTrace(); err != nil {
		t.Skip("the program's writes and syncs cannot be recorded here: ", err)
	}
	bin, dir := built(t), t.TempDir()
	folder := filepath.Join(t.TempDir(), "imported.jsonl")
	var file strings.Builder
	file.WriteString(`{"type":"session","version":3,"id":"imported","timestamp":"2026-01-01T00:00:00.000Z","cwd":"/p"}` + "\n")
	for i := range each {
		fmt.Fprintf(&file, `{"type":"message","id":"i%d","parentId":null,"timestamp":"2026-01-01T00:00:01.000Z","message":{"role":"user","content":"entry %d"}}`+"\n", i, i)
	}
	require.NoError(t, os.WriteFile(folder, []byte(file.String()), 0o600))
	var lines strings.Builder
	for i := range each {
		fmt.Fprintf(&lines, `{"role":"user","content":"%s"}`+"\n", strings.Repeat("x", i*397%9000))
	}
	rec := &recording{}
	told := map[string]int{}
	gone := false
	for _, step := range []struct {
		stdin string
		args  []string
		says  func() // what each line that it tells means
	}{
		{"", []string{"create", "--id", "s"}, func() { told["s"] += 0 }},
		{"", []string{"append", "--session", "s", "--id", "first", "first"}, func() { told["s"]++ }},
		{lines.String(), []string{"append", "--session", "s", "--lines"}, func() { told["s"]++ }},
		{"", []string{"move", "--session", "s", "first", "--summary", "went back"}, func() { told["s"] += 2 }},
		{"", []string{"fork", "--session", "s", "--id", deletedSession}, func() { told[deletedSession] = told["s"] }},
		{"", []string{"fork", "--session", "s", "--entry", "first", "--position", "at", "--id", "branch"}, func() { told["branch"] = 1 }},
		{"", []string{"import", folder, "--json"}, func() { told["imported"] = each }},
		{"", []string{"delete", "--session", deletedSession, "--yes"}, func() { gone = true }},
		{"", []string{"rebuild"}, func() {}},
		{"", []string{"compact"}, func() {}},
		{lines.String(), []string{"append", "--session", "s", "--lines"}, func() { told["s"]++ }},
	} {
		if step.args[0] == "delete" {
			delete(told, deletedSession) // from now on it may be there or not
		}
		cmd := exec.Command(bin, append(step.args, "--db", filepath.Join(dir, "sessions.db"))...)
		cmd.Stdin = strings.NewReader(step.stdin)
		cmd.Stderr = t.Output()
		ops, err := osfiletest.Trace(dir, cmd)
		require.NoError(t, err, "%q", step.args)
		for _, op := range ops {
			rec.told, rec.gone = append(rec.told, maps.Clone(told)), append(rec.gone, gone)
			if op.Kind == osfiletest.Say {
				for range bytes.Count(op.Data, []byte("\n")) {
					step.says()
				}
			}
		}
		rec.ops = osfiletest.Join(rec.ops, ops)
	}
	rec.told, rec.gone = append(rec.told, told), append(rec.gone, gone)
	// The recording is complete if it leaves what the program left.
	disk := osfiletest.NewDisk(nil)
	disk.Apply(rec.ops...)
	left, err := osfiletest.Files(dir)
	require.NoError(t, err)
	require.Equal(t, slices.Sorted(maps.Keys(left)), slices.Sorted(maps.Keys(disk.Whole())))
	for name, text := range left {
		require.True(t, bytes.Equal(text, disk.Whole()[name]), "%s is not what was recorded", name)
	}
	rec.end, err = logsIn(t.Context(), dir)
	require.NoError(t, err)
	require.Len(t, rec.end["s"], 2*each+3)
	require.NotContains(t, rec.end, deletedSession)
	return rec
}

// logsIn opens the database in a folder, verifies it, and gives the log of each
// session; then it appends to one.
func logsIn(ctx context.Context, dir string) (map[string][]string, error) {
	s, err := sqlitestore.Open(ctx, filepath.Join(dir, "sessions.db"), sqlitestore.Options{Synchronous: sqlitestore.Normal})
	if err != nil {
		return nil, err
	}
	defer s.Close(ctx)
	problems, err := s.Verify(ctx)
	if err != nil || len(problems) > 0 {
		return nil, fmt.Errorf("verify: %v, %w", problems, err)
	}
	listed, err := s.List(ctx, "")
	if err != nil {
		return nil, err
	}
	logs := map[string][]string{}
	for _, l := range listed {
		tree, err := s.Open(ctx, l.Metadata)
		if err != nil {
			return nil, err
		}
		log := []string{}
		for e, err := range tree.Entries(ctx, 0, eventlog.All) {
			if err != nil {
				return nil, err
			}
			log = append(log, e.JSON())
		}
		logs[l.ID] = log
		if _, err := tree.AppendMessage(ctx, eventlog.UserMessage("and on", time.Now())); err != nil {
			return nil, err
		}
	}
	return logs, nil
}

// lost says what is wrong with the folder that a loss of power before operation k
// left.
func (rec *recording) lost(t *testing.T, k int, files map[string][]byte, r *rand.Rand) error {
	dir := t.TempDir()
	for name := range files {
		if strings.HasSuffix(name, "-shm") { // memory of the processes that are gone
			files[name] = garbage(len(files[name]), r)
		}
	}
	if err := osfiletest.Put(dir, files); err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	logs, err := logsIn(t.Context(), dir)
	if err != nil {
		return err
	}
	for session, n := range rec.told[k] {
		if len(logs[session]) < n || logs[session] == nil {
			return fmt.Errorf("of %d entries of %s that were told %d are there", n, session, len(logs[session]))
		}
	}
	for session, log := range logs {
		end, stays := rec.end[session]
		switch {
		case !stays && rec.gone[k]:
			return fmt.Errorf("%s was deleted and is there", session)
		case session == deletedSession:
			end, stays = rec.end["s"], true
		}
		if !stays || len(log) > len(end) || !slices.Equal(log, end[:len(log)]) {
			return fmt.Errorf("the log of %s never was so", session)
		}
		if session == "imported" && len(log) != len(end) {
			return fmt.Errorf("%d of %d entries were imported", len(log), len(end))
		}
	}
	return nil
}

func garbage(n int, r *rand.Rand) []byte {
	b := make([]byte, n)
	for i := range b {
		b[i] = byte(r.Uint32())
	}
	return b
}

// TestReport_O1_A6_I1_PowerLossTakesNothingThatWasTold cuts the power at every
// operation (in its short form at some) of all commands that write.
func TestReport_O1_A6_I1_PowerLossTakesNothingThatWasTold(t *testing.T) {
	each, draws, stride := 10, 1, 40
	if long {
		each, draws, stride = 60, 3, 1
	}
	rec := record(t, each)
	seed := uint64(time.Now().UnixNano())
	t.Logf("%d operations, seed %d", len(rec.ops), seed)
	r := rand.New(rand.NewPCG(seed, 1))
	disk, images := osfiletest.NewDisk(nil), 0
	for k := 0; ; k++ {
		afterSay := k > 0 && rec.ops[k-1].Kind == osfiletest.Say
		if afterSay && r.IntN(2) == 0 || r.IntN(stride) == 0 || k == len(rec.ops) {
			for range draws {
				images++
				require.NoError(t, rec.lost(t, k, disk.Cut(r), r), "before operation %d of %d", k, len(rec.ops))
			}
			// The end of the processes alone takes less.
			require.NoError(t, rec.lost(t, k, disk.Whole(), r), "killed before operation %d of %d", k, len(rec.ops))
		}
		if k == len(rec.ops) {
			break
		}
		disk.Apply(rec.ops[k])
	}
	t.Logf("%d losses of power", images)
	rec.testItself(t, r)
}

// testItself takes one sync away, in front of something that was told: then a loss
// of power has to be seen.
func (rec *recording) testItself(t *testing.T, r *rand.Rand) {
	seen, tried := 0, 0
	for k, op := range rec.ops {
		if op.Kind != osfiletest.Sync || !strings.HasSuffix(op.Path, "-wal") || k+1 == len(rec.ops) || rec.ops[k+1].Kind != osfiletest.Say {
			continue
		}
		if tried++; tried > 3 {
			break
		}
		ops := slices.Clone(rec.ops[:k+2])
		ops[k] = osfiletest.Op{Kind: osfiletest.Say}
		disk := osfiletest.NewDisk(nil)
		disk.Apply(ops...)
		for range 20 {
			if rec.lost(t, k+2, disk.Cut(r), r) != nil {
				seen++
				break
			}
		}
	}
	require.Positive(t, tried)
	require.Equal(t, min(tried, 3), seen, "a sync that is missing is seen")
}
