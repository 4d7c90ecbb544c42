package main

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/sessiontree/sessiontree/eventlog/js"
	"github.com/sessiontree/sessiontree/eventlog/osfile/osfiletest"
)

// TestReport_G2_F6_O2_ADiskThatFailsIsTold makes system calls of the program fail:
// each kind of them once, or from some moment on. What was told is there, the exit
// code says that not all is, and on a disk that is well again the rest can be
// appended.
func TestReport_G2_F6_O2_ADiskThatFailsIsTold(t *testing.T) {
	if err := osfiletest.CanTrace(); err != nil {
		t.Skip("system calls cannot be made to fail here: ", err)
	}
	bin, db := built(t), linesDatabase(t)
	fresh, err := osfiletest.Files(filepath.Dir(db))
	require.NoError(t, err)
	var lines strings.Builder
	for i := range 6 {
		fmt.Fprintf(&lines, `{"id":"m%d","message":{"role":"user","content":"%s"}}`+"\n", i, strings.Repeat("x", 5000))
	}
	faults := map[string]int{"pwrite64:error=ENOSPC": 40, "pwrite64:error=EIO": 40, "fsync:error=EIO": 8, "ftruncate:error=EIO": 3, "?open,openat:error=EMFILE": 12}
	failed := map[string]int{}
	for fault, calls := range faults {
		stride := calls / 2
		if long {
			calls, stride = 4*calls, 1
		}
		for at := 1; at <= calls; at += stride {
			for _, on := range []string{"", "+"} {
				call, _, _ := strings.Cut(fault, ":")
				what := fmt.Sprintf("%s:when=%d%s", fault, at, on)
				dir := t.TempDir()
				require.NoError(t, osfiletest.Put(dir, fresh))
				path := filepath.Join(dir, filepath.Base(db))
				cmd := exec.Command("strace", "-f", "-qq", "-o", os.DevNull, "-e", "trace="+call, "-e", "inject="+what,
					bin, "append", "--session", "s", "--lines", "--json", "--db", path)
				cmd.Stdin = strings.NewReader(lines.String())
				var stderr strings.Builder
				cmd.Stderr = &stderr
				stdout, err := cmd.Output()
				told := strings.Count(string(stdout), "\n")
				switch code := cmd.ProcessState.ExitCode(); {
				case code == 127 || strings.Contains(stderr.String(), "runtime:") || strings.HasPrefix(stderr.String(), "strace:"):
					continue // the program was not let in: nothing began
				case code == exitOK:
					require.NoError(t, err)
					require.Equal(t, 6, told, what)
				default:
					require.Equal(t, exitFailed, code, "%s: %s", what, &stderr)
					require.Contains(t, []string{`"storage"`, `"busy"`}, js.Trusted(stderr.String()).Get("error").Get("code").JSON(), "%s: %s", what, &stderr)
					failed[call]++
				}
				there := idsOf(t, path)
				for i := range told {
					require.Contains(t, there, fmt.Sprintf(">m%d", i), "%s: told and not there", what)
				}
				require.LessOrEqual(t, strings.Count(there, ">"), told+1, "%s: more than what was told and what failed", what)
				a := askWith(lines.String(), "append", "--session", "s", "--lines", "--db", path)
				require.Equal(t, exitOK, a.code, "%s: %s", what, a.stderr)
				require.Equal(t, 6, strings.Count(idsOf(t, path), ">"), what)
				require.Equal(t, exitOK, ask("verify", "--db", path).code, what)
			}
		}
	}
	t.Logf("failed: %v", failed)
	for _, call := range []string{"pwrite64", "fsync"} {
		require.Positive(t, failed[call], call)
	}
}

// TestReport_G2_H2_O2_AnImportFromADiskThatFailsIsTold does the same to an import:
// each file comes in as a whole or not at all, the exit code says if one did not, and
// the next import takes the rest.
func TestReport_G2_H2_O2_AnImportFromADiskThatFailsIsTold(t *testing.T) {
	if err := osfiletest.CanTrace(); err != nil {
		t.Skip("system calls cannot be made to fail here: ", err)
	}
	bin := built(t)
	const sessions, entries = 4, 60
	folder := t.TempDir()
	for i := range sessions {
		text := fmt.Sprintf(`{"type":"session","version":3,"id":"s%d","timestamp":"2026-01-01T00:00:00.000Z","cwd":"/p"}`+"\n", i)
		parent := "null"
		for n := range entries {
			text += fmt.Sprintf(`{"type":"message","id":"m%d","parentId":%s,"timestamp":"2026-01-01T00:00:01.000Z","message":{"role":"user","content":"%s"}}`+"\n", n, parent, strings.Repeat("x", 1000))
			parent = fmt.Sprintf(`"m%d"`, n)
		}
		require.NoError(t, os.WriteFile(filepath.Join(folder, fmt.Sprintf("s%d.jsonl", i)), []byte(text), 0o600))
	}
	failed := map[string]int{}
	for fault, calls := range map[string]int{"read:error=EIO": 24, "pread64:error=EIO": 24, "pwrite64:error=ENOSPC": 90, "fsync:error=EIO": 8, "openat:error=EMFILE": 24, "newfstatat:error=EIO": 24} {
		stride, ways := calls/3, []string{"+"}
		if long {
			calls, stride, ways = 2*calls, 1, []string{"", "+"}
		}
		for at := 1; at <= calls; at += stride {
			for _, on := range ways {
				call, _, _ := strings.Cut(fault, ":")
				what := fmt.Sprintf("%s:when=%d%s", fault, at, on)
				path := filepath.Join(t.TempDir(), "sessions.db")
				require.Equal(t, exitOK, ask("create", "--id", "first", "--db", path).code)
				cmd := exec.Command("strace", "-f", "-qq", "-o", os.DevNull, "-e", "trace="+call, "-e", "inject="+what, bin, "import", folder, "--json", "--db", path)
				var stderr strings.Builder
				cmd.Stderr = &stderr
				stdout, err := cmd.Output()
				code := cmd.ProcessState.ExitCode()
				switch {
				case code == 127 || strings.Contains(stderr.String(), "runtime:") || strings.HasPrefix(stderr.String(), "strace:"):
					continue // the program was not let in: nothing began
				case code == exitOK:
					require.NoError(t, err)
				default:
					require.Equal(t, exitFailed, code, "%s: %s%s", what, &stderr, stdout)
					failed[call]++
				}
				whole := 0
				for i := range sessions {
					switch n := strings.Count(ask("export", fmt.Sprintf("s%d", i), "--db", path).stdout, "\n"); n {
					case entries + 1:
						whole++
					default:
						require.Zero(t, n, "%s: a file by half", what)
					}
				}
				if code == exitOK {
					require.Equal(t, sessions, whole, what)
				}
				a := ask("import", folder, "--db", path)
				require.Equal(t, exitOK, a.code, "%s: %s", what, a.stderr)
				require.Equal(t, exitOK, ask("import", "--verify", folder, "--db", path).code, what)
				require.Equal(t, exitOK, ask("verify", "--db", path).code, what)
			}
		}
	}
	t.Logf("failed: %v", failed)
	calls := []string{"pwrite64", "fsync"}
	if long { // how many reads there are before the last that counts differs from run to run
		calls = append(calls, "read")
	}
	for _, call := range calls {
		require.Positive(t, failed[call], call)
	}
}
