package main

import (
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/sessiontree/sessiontree/eventlog"
	"github.com/sessiontree/sessiontree/eventlog/js"
)

func says(id, parent, message string) string {
	return entryText("message", id, parent, `"message":`+message)
}

// callsMany is a message with a tool call of each id.
func callsMany(id, parent string, ids ...string) string {
	blocks := make([]string, len(ids))
	for i, call := range ids {
		blocks[i] = fmt.Sprintf(`{"type":"toolCall","id":%q,"name":"bash","arguments":{}}`, call)
	}
	return says(id, parent, `{"role":"assistant","content":[`+strings.Join(blocks, ",")+`]}`)
}

func resultOf(call string) string {
	return fmt.Sprintf(`{"role":"toolResult","toolCallId":%q,"toolName":"bash","content":[]}`, call)
}

func compactsWithTail(id, parent, tail string) string {
	return entryText("compaction", id, parent, `"summary":"so far","tokensBefore":1,"retainedTail":`+tail)
}

func summarises(id, parent string) string {
	return entryText("branch_summary", id, parent, `"fromId":"root","summary":"left"`)
}

// numbered are the names prefix0, prefix1, … from one number to before another.
func numbered(prefix string, from, to, step int) (names []string) {
	for i := from; i < to; i += step {
		names = append(names, fmt.Sprint(prefix, i))
	}
	return names
}

func TestOddMessagesAreFlagged(t *testing.T) {
	for message, want := range map[string]string{
		`{"role":"user","content":"x"}`: "",
		`{"role":"host's own"}`:         "",
		`{"role":""}`:                   "",
		`{"role":5,"content":"x"}`:      "odd_message a",
		`{"role":null}`:                 "odd_message a",
		`{"content":"x"}`:               "odd_message a",
		`[1]`:                           "odd_message a",
		`"text"`:                        "odd_message a",
		`7`:                             "odd_message a",
		`null`:                          "unreadable null, unreadable null, odd_message a",
	} {
		if got := warningsOf(t, sessionFile(t, says("a", "", message))); got != want {
			t.Errorf("%s: warnings %q, not %q", message, got, want)
		}
		// Those that a compaction keeps by value, and those that were left, are no better.
		odd := ""
		if strings.Contains(want, "odd") {
			odd = "odd_message a"
		}
		if got := warningsOf(t, sessionFile(t, userSays("root", ""), compactsWithTail("a", "root", "["+message+"]"))); got != odd {
			t.Errorf("%s retained: warnings %q, not %q", message, got, odd)
		}
		left := sessionFile(t, userSays("root", ""), says("a", "root", message), moves("m", "a", "root"), userSays("b", "root"))
		if got := warningsOf(t, left); !strings.HasSuffix(got, odd) || odd == "" && got != "" {
			t.Errorf("%s left: warnings %q", message, got)
		}
	}
}

// Whatever the ids, a warning is a line, and all that a command says is in
// proportion to the file.
func TestWarningsAreBounded(t *testing.T) {
	const size, many = 100_000, 2_000
	long := func(name string) string { return strings.Repeat("i", size) + name }
	tail := func(calls ...string) string {
		messages := make([]string, len(calls))
		for i, c := range calls {
			messages[i] = resultOf(c)
		}
		return "[" + strings.Join(messages, ",") + "]"
	}
	odd := "[" + strings.Repeat("1,", many) + "1]"
	for name, lines := range map[string][]string{
		warnOpenCall: {callsMany(long("a"), "", numbered("call", 0, many, 1)...)},
		// Each second call is made anew by the second entry.
		warnOpenCall + " of two": {callsMany(long("a"), "", numbered("call", 0, many, 1)...), callsMany(long("b"), long("a"), numbered("call", 0, many, 2)...)},
		warnLoneResult:           {userSays("root", ""), compactsWithTail(long("k"), "root", tail(numbered("call", 0, many, 1)...))},
		warnSplitPair: {callsMany(long("a"), "", numbered("call", 0, many, 1)...), summarises(long("s"), long("a")),
			compactsWithTail(long("k"), long("s"), tail(numbered("call", 0, many, 1)...))},
		warnOddMessage:    {userSays("root", ""), compactsWithTail(long("k"), "root", odd)},
		warnGap:           {userSays(long("a"), long("gone"))},
		warnCycle:         {userSays(long("a"), long("a"))},
		warnDuplicate:     {userSays(long("a"), ""), userSays(long("a"), "")},
		warnLeaf:          {userSays("a", ""), moves(long("m"), "a", long("gone"))},
		warnEmptySummary:  {entryText("compaction", long("k"), "", `"summary":"","tokensBefore":1`)},
		warnKeptMissing:   {compacts(long("k"), "", long("gone"))},
		warnKeptOwn:       {compacts(long("k"), "", long("k"))},
		warnKeptElsewhere: {userSays(long("a"), ""), compacts(long("k"), "", long("a"))},
		warnUnreadable:    {userSays(long("a"), long("gone"))},
	} {
		path := sessionFile(t, lines...)
		text, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		code, _, _ := strings.Cut(name, " ")
		if got := countWarnings(t, path, code); got == 0 {
			t.Errorf("%s: no such warning", name)
		}
		for _, args := range [][]string{{"tree", path}, {"stats", path}, {"tree", path, "--json"}, {"stats", path, "--json"}} {
			a := ask(args...)
			// An entry's id stands in its node, in that of its child, and in at most 11
			// warnings of a kind.
			if n := len(a.stdout) + len(a.stderr); a.code != exitOK || n > 30*len(text) {
				t.Errorf("%s: %s of %d bytes says %d (exit %d)", name, args[0], len(text), n, a.code)
			}
		}
	}
}

// countWarnings counts the warnings with a code, and checks that each is a line.
func countWarnings(t *testing.T, path, code string) (n int) {
	t.Helper()
	for w := range checkJSON(t, ask("stats", path, "--json")).Get("warnings").Elements() {
		message, _ := w.Get("message").Str()
		if w.Get("code").Is(code) {
			n++
		}
		if cells.StringWidth(message) > 400 {
			t.Errorf("%s has %d cells: %s", code, cells.StringWidth(message), message[:100])
		}
	}
	return n
}

func TestWarningsAboutOneEntryAreCounted(t *testing.T) {
	path := sessionFile(t, callsMany("a", "", numbered("call", 0, 25, 1)...), callsMany("b", "a", "one", "two"))
	var last string
	n := 0
	for w := range checkJSON(t, ask("stats", path, "--json")).Get("warnings").Elements() {
		if w.Get("entry").Is("a") {
			n++
			last, _ = w.Get("message").Str()
		}
	}
	if n != 11 || last != "15 more of the kind open_tool_call about entry a" {
		t.Errorf("%d warnings, the last %q", n, last)
	}
	if a := ask("tree", path); strings.Count(a.stderr, "\n") != 11 || !strings.HasSuffix(a.stderr, "warning: 17 more of the kind open_tool_call\n") {
		t.Errorf("stderr is %s", a.stderr)
	}
}

// A result is told what came first between it and its call.
func TestSplitPairsNameWhatStandsBetween(t *testing.T) {
	path := sessionFile(t, calls("a", "", "one"), summarises("s1", "a"), calls("b", "s1", "two"), summarises("s2", "b"),
		answers("r2", "s2", "two"), answers("r1", "r2", "one"))
	text := ask("tree", path).stderr
	for _, want := range []string{"branch summary s2 stands between tool call two in entry b and its result r2", "branch summary s1 stands between tool call one in entry a and its result r1"} {
		if !strings.Contains(text, want) {
			t.Errorf("no %q in %s", want, text)
		}
	}
	if strings.Count(text, "\n") != 2 {
		t.Errorf("stderr is %s", text)
	}
}

// Each summary came to each open call once, which took minutes for so many.
func TestManyOpenCallsAndSummaries(t *testing.T) {
	const n = 30_000
	lines := []string{callsMany("a", "", numbered("call", 0, n, 1)...)}
	parent := "a"
	for _, id := range numbered("s", 0, n, 1) {
		lines = append(lines, summarises(id, parent))
		parent = id
	}
	path := sessionFile(t, append(lines, answers("r", parent, "call7"))...)
	s, err := opened(t, path)
	if err != nil {
		t.Fatal(err)
	}
	tree, err := s.Tree(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	warnings, err := check(t.Context(), s.Session, tree)
	if err != nil || len(warnings) != 12 || warnings[0].code != warnSplitPair || warnings[11].stands != n-11 {
		t.Errorf("%d warnings, %v", len(warnings), err)
	}
}

func opened(t *testing.T, path string) (*source, error) {
	t.Helper()
	s, err := (&cli{ctx: t.Context()}).open(path, false, harnessFlag())
	if err == nil {
		t.Cleanup(func() { s.Close() })
	}
	return s, err
}

// Of entries that share an id, the one behind a move came from somewhere.
func TestOnlyOneOfAnIDCameFromElsewhere(t *testing.T) {
	path := sessionFile(t, userSays("root", ""), entryText("x", "a", "root", `"n":1`), entryText("x", "a", "root", `"n":2`),
		moves("m", "a", "root"), entryText("x", "a", "root", `"n":3`), entryText("x", "a", "root", `"n":4`))
	var came []string
	for n := range checkJSON(t, ask("tree", path, "--json")).Get("nodes").Elements() {
		if n.Get("cameFrom").Kind() == js.String {
			came = append(came, js.ToString(n.Get("excerpt")))
		}
	}
	if len(came) != 1 || came[0] != `{"n":3}` {
		t.Errorf("came from elsewhere: %q", came)
	}
}

func TestContextJSONKeepsItsShape(t *testing.T) {
	for lines, want := range map[string]string{
		entryText("model_change", "a", "", `"x":1`):                                 `{"provider":null,"modelId":null}`,
		entryText("model_change", "a", "", `"provider":"p"`):                        `{"provider":"p","modelId":null}`,
		entryText("model_change", "a", "", `"modelId":"m"`):                         `{"provider":null,"modelId":"m"}`,
		entryText("model_change", "a", "", `"provider":"p","modelId":"m"`):          `{"provider":"p","modelId":"m"}`,
		says("a", "", `{"role":"assistant","content":[]}`):                          `{"provider":null,"modelId":null}`,
		says("a", "", `{"role":"user","content":[]}`):                               `null`,
		entryText("thinking_level_change", "a", "", `"x":1`):                        `null`,
		entryText("custom_message", "a", "", `"customType":"x"`):                    `null`,
		entryText("active_tools_change", "a", "", `"activeToolNames":["bash"]`):     `null`,
		entryText("session_info", "a", "", `"name":"x"`) + "\n" + userSays("b", ""): `null`,
	} {
		v := checkJSON(t, ask("context", sessionFile(t, lines), "--json"))
		if got := v.Get("model").JSON(); got != want {
			t.Errorf("%s: the model is %s, not %s", lines, got, want)
		}
		for _, key := range []string{"session", "damage", "from", "thinkingLevel", "model", "activeToolNames", "messages"} {
			if !v.Get(key).Exists() {
				t.Errorf("%s: no %s", lines, key)
			}
		}
	}
}

// Where each command tells of damaged lines and suspicious entries, as the
// program's help has it.
func TestWhereDamageAndWarningsGo(t *testing.T) {
	path := sessionFile(t, userSays("a", ""), "no JSON", calls("b", "a", "open"))
	const damage, warning = "set aside", "has no result"
	for command, want := range map[string]struct{ damage, warnings string }{
		"tree":    {"stderr", "stderr"},
		"branch":  {"stderr", ""},
		"context": {"stderr", ""},
		"stats":   {"stdout", "stdout"},
	} {
		a := ask(command, path)
		v := checkJSON(t, ask(command, path, "--json"))
		where := func(text string) string {
			found := ""
			if strings.Contains(a.stdout, text) {
				found += "stdout"
			}
			if strings.Contains(a.stderr, text) {
				found += "stderr"
			}
			return found
		}
		if where(damage) != want.damage || where(warning) != want.warnings || a.code != exitOK {
			t.Errorf("%s: exit %d, damage on %q, warnings on %q", command, a.code, where(damage), where(warning))
		}
		if v.Get("damage").Kind() != js.Array || (v.Get("warnings").Kind() == js.Array) != (want.warnings != "") {
			t.Errorf("%s --json: damage %s, warnings %s", command, v.Get("damage").JSON(), v.Get("warnings").JSON())
		}
		if help := ask(command, "--help").stdout; !strings.Contains(help, want.damage) {
			t.Errorf("the help of %s does not say where damage goes", command)
		}
		if a := ask(command, path, "--strict"); a.code != exitFailed {
			t.Errorf("%s --strict: exit %d", command, a.code)
		}
	}
	gap := sessionFile(t, userSays("b", "a"))
	for command, code := range map[string]int{"tree": exitOK, "stats": exitOK, "branch": exitFailed, "context": exitFailed} {
		if a := ask(command, gap, "--json"); a.code != code || code == exitFailed && !strings.Contains(a.stderr, string(eventlog.InvalidSession)) {
			t.Errorf("%s of an island: exit %d, %s", command, a.code, a.stderr)
		}
	}
}

func harnessFlag() dialectFlag {
	d := eventlog.Harness
	return dialectFlag{&d}
}
