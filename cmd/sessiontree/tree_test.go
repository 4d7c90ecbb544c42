package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/sessiontree/sessiontree/eventlog/js"
)

// sessionFile writes a session of the lines given and gives its path.
func sessionFile(t testing.TB, lines ...string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "session.jsonl")
	header := `{"type":"session","version":3,"id":"test","timestamp":"2026-01-01T00:00:00.000Z","cwd":"/test"}`
	if err := os.WriteFile(path, []byte(header+"\n"+strings.Join(lines, "\n")+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// entryText is one line of a session file. An empty parent is none.
func entryText(kind, id, parent, rest string) string {
	p := "null"
	if parent != "" {
		p = `"` + parent + `"`
	}
	return fmt.Sprintf(`{"type":%q,"id":%q,"parentId":%s,"timestamp":"2026-01-01T00:00:00.000Z",%s}`, kind, id, p, rest)
}

func userSays(id, parent string) string {
	return entryText("message", id, parent, fmt.Sprintf(`"message":{"role":"user","content":"says %s"}`, id))
}

func calls(id, parent, call string) string {
	return entryText("message", id, parent, fmt.Sprintf(`"message":{"role":"assistant","content":[{"type":"toolCall","id":%q,"name":"bash","arguments":{}}]}`, call))
}

func answers(id, parent, call string) string {
	return entryText("message", id, parent, fmt.Sprintf(`"message":{"role":"toolResult","toolCallId":%q,"toolName":"bash","content":[]}`, call))
}

func moves(id, parent, target string) string {
	return entryText("leaf", id, parent, fmt.Sprintf(`"targetId":%q`, target))
}

func compacts(id, parent, firstKept string) string {
	return entryText("compaction", id, parent, fmt.Sprintf(`"summary":"so far","firstKeptEntryId":%q,"tokensBefore":1`, firstKept))
}

// drawing is the tree of a session without texts: rails, mark and id of a line.
func drawing(t *testing.T, path string, flags ...string) string {
	t.Helper()
	a := ask(append([]string{"tree", path}, flags...)...)
	if a.code != exitOK {
		t.Fatalf("exit %d: %s", a.code, a.stderr)
	}
	picture, _, _ := strings.Cut(a.stdout, "\n\n")
	var rows []string
	for line := range strings.SplitSeq(picture, "\n") {
		row, _, _ := strings.Cut(line, "   ")
		rows = append(rows, strings.TrimSpace(row))
	}
	return strings.Join(rows, "\n")
}

func TestDrawing(t *testing.T) {
	for _, test := range []struct {
		name  string
		lines []string
		want  string
	}{
		{"the active branch is straight, wherever it begins", []string{
			userSays("a", ""), userSays("b", "a"), userSays("c", "a"), userSays("d", "a"), userSays("e", "d"), moves("m", "e", "b"), userSays("f", "b"),
		}, `
● a
├─○ c
├─○ d
│ ○ e
● b
● f`},
		{"below the leaf the line ends", []string{
			userSays("a", ""), userSays("b", "a"), userSays("c", "b"), userSays("d", "a"), moves("m", "d", "a"),
		}, `
● a
├─○ b
│ ○ c
└─○ d`},
		{"the largest of abandoned branches keeps the column", []string{
			userSays("root", ""), userSays("a", "root"), userSays("b", "a"), userSays("c", "b"), userSays("d", "a"), userSays("z", "root"),
		}, `
● root
├─○ a
│ ├─○ d
│ ○ b
│ ○ c
● z`},
		{"forks within forks", []string{
			userSays("root", ""), userSays("a", "root"), userSays("b", "a"), userSays("c", "a"), userSays("d", "c"), userSays("e", "c"),
			userSays("f", "root"), userSays("g", "root"), moves("m", "g", "root"),
		}, `
● root
├─○ a
│ ├─○ b
│ ○ c
│ ├─○ d
│ ○ e
├─○ f
└─○ g`},
		{"a fork at a control entry keeps it", []string{
			userSays("a", ""), entryText("model_change", "model", "a", `"provider":"p","modelId":"m"`), userSays("b", "model"), userSays("c", "model"),
		}, `
● a
• model
├─○ b
● c`},
		{"a fork at a control entry is none if only bookkeeping hangs there", []string{
			userSays("a", ""), entryText("model_change", "model", "a", `"provider":"p","modelId":"m"`), moves("m1", "model", "model"), moves("m2", "model", "model"), userSays("c", "model"),
		}, `
● a
● c`},
		{"what hangs below hidden entries hangs below what is visible", []string{
			userSays("a", ""), entryText("label", "l", "a", `"targetId":"a","label":"x"`), userSays("b", "l"), moves("m", "b", "a"), userSays("c", "a"),
		}, `
● a
├─○ b
● c`},
		{"a leaf that is a control entry is shown", []string{
			userSays("a", ""), entryText("session_info", "name", "a", `"name":"x"`),
		}, `
● a
• name`},
		{"roots", []string{userSays("a", ""), userSays("b", ""), userSays("c", "a")}, `
● a
● c
○ b`},
	} {
		t.Run(test.name, func(t *testing.T) {
			if got := drawing(t, sessionFile(t, test.lines...)); got != strings.TrimPrefix(test.want, "\n") {
				t.Errorf("got\n%s\nwant%s", got, test.want)
			}
		})
	}
}

func nodesOf(t *testing.T, path string) map[string]js.Value {
	t.Helper()
	nodes := map[string]js.Value{}
	for n := range checkJSON(t, ask("tree", path, "--json")).Get("nodes").Elements() {
		id, _ := n.Get("id").Str()
		nodes[id] = n
	}
	return nodes
}

// warningsOf are the codes and entries of a session's warnings; tree and stats
// must agree on them, on stderr, on stdout and in JSON.
func warningsOf(t *testing.T, path string) string {
	t.Helper()
	var all []string
	v := checkJSON(t, ask("stats", path, "--json"))
	if d := js.Diff(v.Get("warnings"), checkJSON(t, ask("tree", path, "--json")).Get("warnings")); d != nil {
		t.Errorf("tree and stats differ: %v", d)
	}
	tree, stats := ask("tree", path).stderr, ask("stats", path).stdout
	for w := range v.Get("warnings").Elements() {
		message, _ := w.Get("message").Str()
		if !strings.Contains(tree, "sessiontree: "+path+": warning: "+message+"\n") || !strings.Contains(stats, message) {
			t.Errorf("only JSON has the warning %q", message)
		}
		all = append(all, js.ToString(w.Get("code"))+" "+js.ToString(w.Get("entry")))
	}
	return strings.Join(all, ", ")
}

func TestReport_C1_DuplicateIDsAreFlagged(t *testing.T) {
	path := sessionFile(t, userSays("a", ""), userSays("b", "a"), userSays("a", "b"))
	if got := warningsOf(t, path); !strings.Contains(got, "duplicate_id a") {
		t.Errorf("warnings: %s", got)
	}
}

func TestReport_C3_IslandsAreShown(t *testing.T) {
	path := sessionFile(t, userSays("a", ""), userSays("c", "b"), userSays("d", "c"), userSays("f", "e"))
	if got := warningsOf(t, path); got != "missing_parent c, missing_parent f, unreadable null" {
		t.Errorf("warnings: %s", got)
	}
	if got := drawing(t, path); got != "○ a\n○ c\n○ d\n● f" {
		t.Errorf("drawn as\n%s", got)
	}
}

func TestReport_C4_GapIsVisible(t *testing.T) {
	path := sessionFile(t, userSays("a", ""), userSays("c", "b"))
	if a := ask("tree", path); !strings.Contains(a.stdout, "✗ parent b is missing") {
		t.Errorf("the tree is\n%s", a.stdout)
	}
	if n := nodesOf(t, path)["c"]; !n.Get("gap").Truthy() || !n.Get("parentId").Is("b") || n.Get("parent").Kind() != js.Null {
		t.Errorf("the node is %s", n.JSON())
	}
}

func TestReport_C7_CyclesAreShown(t *testing.T) {
	path := sessionFile(t, userSays("a", ""), userSays("b", "c"), userSays("c", "b"), userSays("d", "d"), userSays("e", "d"))
	if got := warningsOf(t, path); got != "parent_cycle b, parent_cycle d, unreadable null" {
		t.Errorf("warnings: %s", got)
	}
	if a := ask("tree", path); !strings.Contains(a.stdout, "✗ parent c leads back here") {
		t.Errorf("the tree is\n%s", a.stdout)
	}
	if a := ask("branch", path, "--from", "a"); a.code != exitOK {
		t.Errorf("a branch beside the cycle: %s", a.stderr)
	}
}

func TestReport_D2_OpenCallIsFlagged(t *testing.T) {
	path := sessionFile(t, userSays("a", ""), calls("b", "a", "call1"), answers("c", "b", "call1"), calls("d", "c", "call1"), answers("e", "d", "call1"), moves("m", "e", "d"))
	if got := warningsOf(t, path); got != "open_tool_call d" {
		t.Errorf("warnings: %s", got)
	}
}

func TestReport_D5_ResultBelowASummaryIsFlagged(t *testing.T) {
	path := sessionFile(t, userSays("a", ""), calls("b", "a", "call1"), moves("m", "b", "a"),
		entryText("branch_summary", "s", "a", `"fromId":"a","summary":"left"`), answers("c", "s", "call1"))
	if got := warningsOf(t, path); got != "result_without_call c" {
		t.Errorf("warnings: %s", got)
	}
}

func TestReport_D14_TreeShowsWhereTheUserCameFrom(t *testing.T) {
	lines := []string{userSays("a", ""), userSays("b", "a"), entryText("label", "l", "b", `"targetId":"b","label":"x"`),
		moves("m1", "l", "b"), moves("m2", "b", "a"), entryText("label", "l2", "a", `"targetId":"a","label":"y"`), userSays("c", "l2"), userSays("d", "c")}
	path := sessionFile(t, lines...)
	nodes := nodesOf(t, path)
	for id, want := range map[string]string{"l2": "l", "c": "null", "d": "null", "b": "null"} {
		if got := js.ToString(nodes[id].Get("cameFrom")); got != want {
			t.Errorf("%s: came from %s, want %s", id, got, want)
		}
	}
	if !nodes["m1"].Get("target").Is("b") || !nodes["m1"].Get("parentId").Is("l") {
		t.Errorf("the move is %s", nodes["m1"].JSON())
	}
	// The label entries are hidden: the next visible ones tell.
	if a := ask("tree", path); !strings.Contains(a.stdout, "● c         user            ↩ from b") {
		t.Errorf("the tree is\n%s", a.stdout)
	}
	if a := ask("tree", path, "--all"); !strings.Contains(a.stdout, "↩ from l  ") || !strings.Contains(a.stdout, "m1        leaf            l → b\n") {
		t.Errorf("the whole tree is\n%s", a.stdout)
	}
	path = sessionFile(t, append(lines, moves("m3", "d", "b"))...)
	if a := ask("tree", path); !strings.Contains(a.stdout, "b         user            ← leaf, ↩ from d") {
		t.Errorf("after a move the tree is\n%s", a.stdout)
	}
}

func TestReport_E3_SplitPairIsFlagged(t *testing.T) {
	lines := []string{userSays("a", ""), calls("b", "a", "call1"), compacts("k1", "b", "a"), answers("c", "k1", "call1")}
	if got := warningsOf(t, sessionFile(t, lines...)); got != "" {
		t.Errorf("while the call is kept there is nothing to say, not %s", got)
	}
	lines = append(lines, compacts("k2", "c", "b"))
	if got := warningsOf(t, sessionFile(t, lines...)); got != "split_tool_pair c" {
		t.Errorf("a compaction between call and result: %s", got)
	}
	lines[len(lines)-1] = compacts("k2", "c", "c")
	if got := warningsOf(t, sessionFile(t, lines...)); got != "split_tool_pair c" {
		t.Errorf("the call is cut off: %s", got)
	}
	lines[len(lines)-1] = entryText("compaction", "k2", "c", `"summary":"x","tokensBefore":1,"retainedTail":[{"role":"toolResult","toolCallId":"call1","toolName":"bash","content":[]}]`)
	if got := warningsOf(t, sessionFile(t, lines...)); got != "split_tool_pair k2" {
		t.Errorf("the result is retained by value: %s", got)
	}
}

func TestReport_E7_FirstKeptEntryIsChecked(t *testing.T) {
	path := sessionFile(t, userSays("a", ""), userSays("b", "a"), compacts("own", "a", "own"), compacts("gone", "own", "nowhere"), compacts("beside", "gone", "b"), compacts("right", "beside", "own"), compacts("below", "right", "tip"), userSays("tip", "below"))
	if got := warningsOf(t, path); got != "first_kept_own_id own, first_kept_missing gone, first_kept_not_on_the_path beside, first_kept_not_on_the_path below" {
		t.Errorf("warnings: %s", got)
	}
}

func TestReport_E8_EmptySummaryIsFlagged(t *testing.T) {
	path := sessionFile(t, userSays("a", ""), entryText("compaction", "k1", "a", `"summary":" \n","tokensBefore":1`), entryText("compaction", "k2", "k1", `"tokensBefore":1`))
	if got := warningsOf(t, path); got != "empty_compaction_summary k1, empty_compaction_summary k2" {
		t.Errorf("warnings: %s", got)
	}
}

// Marks tell what the model sees, not only what is on the branch.
func TestMarks(t *testing.T) {
	path := sessionFile(t, userSays("a", ""), userSays("b", "a"), entryText("compaction", "k", "b", `"summary":"so far","tokensBefore":1`), userSays("c", "k"))
	if got := drawing(t, path); got != "◐ a\n◐ b\n● k\n● c" {
		t.Errorf("drawn as\n%s", got)
	}
	n := nodesOf(t, path)["a"]
	if !n.Get("active").Truthy() || !n.Get("onBranch").Truthy() || n.Get("inContext").Truthy() {
		t.Errorf("the node is %s", n.JSON())
	}
}

// shapes are large trees, each bad for some way of drawing trees.
func shapes(n int) map[string][]string {
	id := func(i int) string { return fmt.Sprintf("%08x", i) }
	series := func(n int, parent func(i int) string) []string {
		lines := make([]string, n)
		for i := range lines {
			lines[i] = userSays(id(i), parent(i))
		}
		return lines
	}
	above := func(i int) string {
		if i == 0 {
			return ""
		}
		return id(i - 1)
	}
	shapes := map[string][]string{
		"chain": series(n, above),
		"star": series(n/10, func(i int) string {
			if i == 0 {
				return ""
			}
			return id(0)
		}),
		"roots": series(n/10, func(int) string { return "" }),
		"comb": series(n, func(i int) string {
			switch {
			case i == 0:
				return ""
			case i == 1:
				return id(0)
			}
			return id(i - 2 + i%2) // an even one below an even one, an odd one beside it
		}),
		"heap":     series(n, func(i int) string { return id((i - 1) / 2) }),
		"cycle":    series(n, func(i int) string { return id((i + n - 1) % n) }),
		"self":     series(n/10, func(i int) string { return id(i) }),
		"gaps":     series(n/10, func(i int) string { return "gone" + id(i) }),
		"backward": series(n, func(i int) string { return id(i + 1) }),
		"same id":  series(n/10, func(int) string { return "" }),
	}
	shapes["heap"][0] = userSays(id(0), "") // the series makes it its own parent
	for i := range shapes["same id"] {
		shapes["same id"][i] = userSays("same", "")
	}
	var moving, compacting []string
	for i := range n / 2 {
		moving = append(moving, userSays(id(i), above(i)), moves("m"+id(i), id(i), id(i/2)), moves("n"+id(i), id(i/2), id(i)))
		compacting = append(compacting, userSays(id(2*i), above(2*i)), compacts(id(2*i+1), id(2*i), id(i)))
	}
	shapes["moves"], shapes["compactions"] = moving, compacting
	return shapes
}

// Any shape is answered, in output that grows with the number of entries. What
// is quadratic or recursive fails here by time or stack.
func TestReport_C8_DeepAndWideTrees(t *testing.T) {
	n := 100_000
	if testing.Short() {
		n = 5_000
	}
	trees := shapes(n / 10)
	trees["chain"] = shapes(n)["chain"]
	trees["star"] = shapes(n)["star"]
	for name, lines := range trees {
		t.Run(name, func(t *testing.T) {
			path := sessionFile(t, lines...)
			for _, args := range [][]string{{"tree"}, {"tree", "--all"}, {"branch"}, {"context"}, {"stats"}} {
				a := ask(append(args, path)...)
				if a.code == exitUsage {
					t.Errorf("%q: %s", args, a.stderr)
				}
				if size, most := len(a.stdout), 300*len(lines)+2000; size > most {
					t.Errorf("%q: %d bytes for %d entries", args, size, len(lines))
				}
				if len(a.stderr) > 20_000 {
					t.Errorf("%q: %d bytes on stderr", args, len(a.stderr))
				}
				if args[0] == "tree" && strings.Count(a.stdout, "\n") < len(lines)/3 {
					t.Errorf("%q: only %d lines", args, strings.Count(a.stdout, "\n"))
				}
			}
		})
	}
	t.Run("a chain is flat", func(t *testing.T) {
		a := ask("tree", sessionFile(t, shapes(1000)["chain"]...))
		for line := range strings.SplitSeq(a.stdout, "\n") {
			if line == "" {
				break
			}
			if !strings.HasPrefix(line, "● ") {
				t.Fatalf("a line is indented: %s", line)
			}
		}
	})
}

func TestReport_C9_TreeJSONIsFlat(t *testing.T) {
	n := 100_000
	if testing.Short() {
		n = 5_000
	}
	a := ask("tree", "--json", sessionFile(t, shapes(n)["chain"]...))
	v, err := js.Parse(a.stdout)
	if err != nil {
		t.Fatal(err)
	}
	depth, deepest := 0, 0
	for i := range len(a.stdout) { // the texts hold no brackets
		switch a.stdout[i] {
		case '{', '[':
			depth++
			deepest = max(deepest, depth)
		case '}', ']':
			depth--
		}
	}
	if deepest > 3 {
		t.Errorf("the answer is %d levels deep", deepest)
	}
	i := 0.0
	for node := range v.Get("nodes").Elements() {
		depth, _ := node.Get("depth").Float()
		parent, hasParent := node.Get("parent").Float()
		if depth != i || hasParent != (i > 0) || hasParent && parent != i-1 {
			t.Fatalf("node %v is %s", i, node.JSON())
		}
		i++
	}
	if int(i) != n {
		t.Errorf("%v nodes", i)
	}
}

// One long line or text costs its own size, not more.
func TestLongTexts(t *testing.T) {
	long := strings.Repeat(`\ud83d日 `, 300_000)
	path := sessionFile(t,
		entryText("message", "a", "", `"message":{"role":"user","content":"`+long+`"}`),
		entryText("message", "b", "a", `"message":{"role":"assistant","content":[{"type":"toolCall","id":"c","name":"n","arguments":{"deep":`+strings.Repeat("[", 100_000)+strings.Repeat("]", 100_000)+`}}]}`),
		entryText("message", strings.Repeat("i", 1_000_000), "b", `"message":{"role":"`+strings.Repeat("r", 1_000_000)+`","content":[]}`),
		entryText(strings.Repeat("t", 1_000_000), "d", "b", `"x":1`),
		entryText("label", "e", "d", `"targetId":"d","label":"`+strings.Repeat("l", 1_000_000)+`"`),
		entryText("model_change", "f", "e", `"provider":"`+strings.Repeat("p", 1_000_000)+`","modelId":"m"`))
	for _, args := range [][]string{{"tree", "--all"}, {"branch"}, {"stats"}} {
		a := ask(append(args, path)...)
		if a.code != exitOK || len(a.stdout) > 5000 {
			t.Errorf("%q: exit %d, %d bytes", args, a.code, len(a.stdout))
		}
		checkSafe(t, args[0], a)
	}
	for _, args := range [][]string{{"context"}, {"context", "--width", "60"}, {"tree", "--json"}, {"context", "--json", "--llm"}} {
		a := ask(append(args, path)...)
		if a.code != exitOK {
			t.Errorf("%q: exit %d", args, a.code)
		}
		checkSafe(t, args[0], a)
	}
}

// People get the first few reports of a kind and a number, scripts get all.
func TestManyReports(t *testing.T) {
	var lines []string
	for i := range 30 {
		lines = append(lines, userSays(fmt.Sprint("e", i), fmt.Sprint("gone", i)), "no JSON")
	}
	path := sessionFile(t, lines...)
	a := ask("tree", path)
	for _, says := range []string{": 20 more damaged places\n", ": warning: 20 more of the kind missing_parent\n", ": warning: the active branch cannot be read: "} {
		if !strings.Contains(a.stderr, says) {
			t.Errorf("stderr lacks %q:\n%s", says, a.stderr)
		}
	}
	if n := strings.Count(a.stderr, "\n"); n != 10+1+10+1+1 {
		t.Errorf("%d lines on stderr:\n%s", n, a.stderr)
	}
	if a := ask("stats", path); !strings.Contains(a.stdout, " 20 more places\n") || a.stderr != "" {
		t.Errorf("stats: %s%s", a.stdout, a.stderr)
	}
	v := checkJSON(t, ask("stats", path, "--json"))
	for key, want := range map[string]float64{"damage": 30, "warnings": 31} {
		if n, _ := js.Length(v.Get(key)); n != want {
			t.Errorf("%s: %v in JSON", key, n)
		}
	}
}

func TestContextShowsArguments(t *testing.T) {
	path := sessionFile(t, userSays("a", ""), entryText("message", "b", "a",
		`"message":{"role":"assistant","content":[{"type":"toolCall","id":"1","name":"edit","arguments":{"path":"x.go","new":"one\ntwo","n":[1, 2]}},{"type":"toolCall","id":"2","name":"odd","arguments":"text"}]}`))
	want := `
assistant     → edit
                path: x.go
                new:
                  one
                  two
                n: [1,2]
              → odd
                "text"
`
	if a := ask("context", path); !strings.HasSuffix(a.stdout, want) {
		t.Errorf("got %s", a.stdout)
	}
}
