package sqlitestore_test

import (
	"bufio"
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/sessiontree/sessiontree/eventlog"
	"github.com/sessiontree/sessiontree/eventlog/js"
	"github.com/sessiontree/sessiontree/sqlitestore"
	"github.com/sessiontree/sessiontree/sqlitestore/sqlitestoretest"
)

const (
	crowdProcesses  = 8
	crowdGoroutines = 4
	crowdSessions   = 50
)

// crowd is one process of many: goroutines that write to all sessions, and say each
// entry that is written as "session id". It is the first that opens the database, or
// one of the others.
func crowd(args []string) error {
	s, err := sqlitestore.Open(ctx, args[0], sqlitestore.Options{Synchronous: sqlitestore.Normal})
	if err != nil {
		return err
	}
	defer s.Close(ctx)
	steps, err := strconv.Atoi(args[2])
	if err != nil {
		return err
	}
	var all sync.WaitGroup
	var say sync.Mutex
	failures := make(chan error, crowdGoroutines)
	for g := range crowdGoroutines {
		all.Go(func() {
			r := rand.New(rand.NewPCG(uint64(time.Now().UnixNano()), uint64(g)))
			for i := range steps {
				said, err := crowdStep(s, fmt.Sprintf("p%s-g%d-%d", args[1], g, i), r)
				if err != nil {
					failures <- fmt.Errorf("step %d: %w", i, err)
					return
				}
				say.Lock()
				fmt.Print(said)
				say.Unlock()
			}
			failures <- nil
		})
	}
	all.Wait()
	for range crowdGoroutines {
		if err := <-failures; err != nil {
			return err
		}
	}
	return nil
}

// crowdPatience is how long each step may take. (The long form is run on a machine
// that has time for it.)
var crowdPatience = map[bool]time.Duration{false: time.Minute, true: 10 * time.Second}[long]

// crowdStep does one thing, as a host would.
func crowdStep(s *sqlitestore.Store, id string, r *rand.Rand) (said string, err error) {
	ctx, cancel := context.WithTimeout(ctx, crowdPatience)
	defer cancel()
	session := fmt.Sprint("s", r.IntN(crowdSessions))
	tree, err := s.Open(ctx, eventlog.Metadata{ID: session})
	if eventlog.CodeOf(err) == eventlog.NotFound {
		if tree, err = s.Create(ctx, eventlog.CreateOptions{ID: session}); eventlog.CodeOf(err) == eventlog.AlreadyExists {
			tree, err = s.Open(ctx, eventlog.Metadata{ID: session})
		}
	}
	if err != nil {
		return "", err
	}
	some, err := anyEntry(ctx, tree, r)
	if err != nil {
		return "", err
	}
	var written []eventlog.Entry
	message := eventlog.MessageDraft(benchMessage(0)).WithID(id)
	switch k := r.IntN(20); {
	case k < 9 || some == "":
		written, err = tree.Append(ctx, message, eventlog.NameDraft(id))
	case k < 13:
		written, err = tree.AppendAt(ctx, eventlog.At(some), message)
	case k < 15:
		written, err = tree.MoveTo(ctx, eventlog.At(some), &eventlog.Summary{Text: "back"})
	case k < 16:
		var e eventlog.Entry
		e, err = tree.AppendCompaction(ctx, eventlog.Compaction{Summary: "so far", FirstKeptEntryID: js.Text(some)})
		written = []eventlog.Entry{e}
	case k < 18:
		fork := eventlog.Metadata{ID: "fork-" + id}
		if _, err = s.Fork(ctx, eventlog.Metadata{ID: session}, eventlog.ForkOptions{CreateOptions: eventlog.CreateOptions{ID: fork.ID}, EntryID: some, Position: eventlog.AtIt}); err == nil && k == 16 {
			err = s.Delete(ctx, fork)
		} else if err == nil {
			said = fork.ID + " \n"
		}
	default:
		_, err = tree.BuildContext(ctx, eventlog.At(some))
	}
	for _, e := range written {
		said += session + " " + e.ID() + "\n"
	}
	return said, err
}

// TestReport_F1_F6_F7_ACrowdLosesNothing starts many processes at once on a database
// that is not there, each with goroutines that do all kinds of things to all
// sessions. None is told to go away, and all that was told is there.
func TestReport_F1_F6_F7_ACrowdLosesNothing(t *testing.T) {
	steps := 12
	if long {
		steps = 1500
	}
	path := filepath.Join(t.TempDir(), "sessions.db")
	self, err := os.Executable()
	require.NoError(t, err)
	var commands [crowdProcesses]*exec.Cmd
	var outputs [crowdProcesses]*bufio.Scanner
	for p := range crowdProcesses {
		cmd := exec.Command(self)
		cmd.Env = append(os.Environ(), fmt.Sprintf("SESSIONTREE_TEST_CROWD=%s %d %d", path, p, steps))
		cmd.Stderr = t.Output()
		out, err := cmd.StdoutPipe()
		require.NoError(t, err)
		require.NoError(t, cmd.Start())
		commands[p], outputs[p] = cmd, bufio.NewScanner(out)
	}
	told := map[string][]string{}
	n := 0
	var all sync.WaitGroup
	var mu sync.Mutex
	for p := range crowdProcesses {
		all.Go(func() {
			for outputs[p].Scan() {
				session, id, _ := strings.Cut(outputs[p].Text(), " ")
				mu.Lock()
				told[session] = append(told[session], id)
				n++
				mu.Unlock()
			}
		})
	}
	all.Wait()
	for p := range crowdProcesses {
		require.NoError(t, commands[p].Wait())
	}
	s := sqlitestoretest.OpenAt(t, path, sqlitestore.Options{}) // verifies it in the end
	for session, ids := range told {
		tree, err := s.Open(ctx, eventlog.Metadata{ID: session})
		require.NoError(t, err)
		there := map[string]int{}
		for e, err := range tree.Entries(ctx, 0, eventlog.All) {
			require.NoError(t, err)
			there[e.ID()]++
		}
		for _, id := range ids {
			if id != "" {
				require.Equal(t, 1, there[id], "%s in %s was told", id, session)
			}
		}
	}
	require.Greater(t, n, crowdProcesses*crowdGoroutines*steps/2)
	t.Logf("%d entries in %d sessions told and found", n, len(told))
}
