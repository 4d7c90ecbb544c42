package main

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/sessiontree/sessiontree/eventlog/js"
)

// withoutFolder takes the one thing out of the demo that differs.
func withoutFolder(a answer, dir string) answer {
	a.stdout = strings.ReplaceAll(a.stdout, filepath.Join(dir, demoFile), demoFile)
	a.stdout = strings.ReplaceAll(a.stdout, strings.Trim(js.Text(filepath.Join(dir, demoFile)).JSON(), `"`), demoFile)
	return a
}

func TestDemo(t *testing.T) {
	dir := t.TempDir()
	a := ask("demo", "--dir", dir)
	golden(t, "demo", withoutFolder(a, dir))
	for line := range strings.SplitSeq(a.stdout, "\n") {
		if cells.StringWidth(line) > 80 && !strings.Contains(line, dir) {
			t.Errorf("wider than 80 cells: %s", line)
		}
	}
	path := filepath.Join(dir, demoFile)
	info, err := os.Stat(path)
	if err != nil {
		t.Fatal(err)
	}
	if runtime.GOOS != "windows" && info.Mode().Perm() != 0o600 {
		t.Errorf("the database is %v", info.Mode())
	}
	// What the demo says that the other commands show, they show.
	for _, args := range [][]string{{"tree", "--all", "--width", "80"}, {"context", "--width", "80"}, {"branch", "--width", "80"}, {"stats"}} {
		if part := ask(append(args, "--db", path, "--session", demoSession)...); part.code != exitOK || part.stderr != "" || !strings.Contains(a.stdout, part.stdout) {
			t.Errorf("%s shows other than the demo: %s%s", args[0], part.stdout, part.stderr)
		}
	}
	if again := ask("demo", "--dir", dir, "--json"); again.code != exitFailed || !checkJSON(t, again).Get("error").Get("code").Is("already_exists") {
		t.Errorf("over a session that is there: exit %d, %s", again.code, again.stderr)
	}
}

func TestDemoJSON(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "new")
	a := ask("demo", "--dir", dir, "--json")
	v := checkJSON(t, a)
	golden(t, "demo.json", withoutFolder(a, dir))
	path := filepath.Join(dir, demoFile)
	for key, command := range map[string]string{"tree": "tree", "context": "context", "stats": "stats"} {
		equal(t, key, checkJSON(t, ask(command, "--db", path, "--session", demoSession, "--json")), v.Get(key))
	}
}

func TestDemoInATemporaryFolder(t *testing.T) {
	t.Setenv("TMPDIR", t.TempDir())
	v := checkJSON(t, ask("demo", "--json"))
	path, _ := v.Get("database").Str()
	defer os.RemoveAll(filepath.Dir(path))
	if a := ask("stats", "--db", path, "--session", demoSession); a.code != exitOK {
		t.Errorf("%s", a.stderr)
	}
}

// A session that went back and tried another way. The active branch is the
// straight line; what was abandoned hangs off it.
func Example() {
	dir, err := os.MkdirTemp("", "")
	if err != nil {
		panic(err)
	}
	defer os.RemoveAll(dir)
	var out bytes.Buffer
	run(context.Background(), []string{"demo", "--dir", dir}, nil, &out, os.Stderr)
	out.Reset()
	run(context.Background(), []string{"tree", "--db", filepath.Join(dir, demoFile), "--session", demoSession, "--width", "80"}, nil, &out, os.Stderr)
	fmt.Print(out.String())
	// Output:
	// ● a081e2a6  user            The CSV import takes 90 seconds. Make it faster.
	// ● 19ab24c3  assistant       Two plans. A: four workers in parallel. B: insert i…
	// ├─○ d78262b0  user            Try plan A.
	// │ ○ 4189fa9a  assistant       Splitting the file among four workers. → edit(imp…
	// │ ○ 5df81212  toolResult      edit: Edited import/csv.go (+31 -8)
	// │ ○ d531712e  assistant       → bash(go test ./import)
	// │ ○ aeb071d6  toolResult      bash failed: --- FAIL: TestImportOrder (81.20s) c…
	// │ ○ 18411be5  assistant       [dead end]  81 seconds, and rows out of order: th…
	// ● 79137c69  branch_summary  ↩ from 18411be5  Plan A (four workers) was tried in…
	// ● ad3edcc8  user            Try plan B.
	// ● 3abbf205  assistant       Inserting in batches. → edit(import/csv.go)
	// ● a10c3b41  toolResult      edit: Edited import/csv.go (+12 -3)
	// ● 4e31b738  assistant       → bash(go test ./import)
	// ● fa70a5ef  toolResult      bash: ok shop/import 7.104s
	// ● 9f7bccdb  assistant       [works]  7 seconds instead of 90, and all tests pas…
	// ● 6cc09375  user            Commit it.
	// ● 4dffcf46  assistant       ← leaf  Committed as 3f2c1a9.
	//
	// ● active branch   ○ abandoned
	// 4 control entries are hidden (--all shows them)
}
