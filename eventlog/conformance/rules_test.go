package conformance

import (
	"slices"
	"testing"

	"github.com/sessiontree/sessiontree/eventlog"
	"github.com/sessiontree/sessiontree/eventlog/js"
)

func TestPiSliceIsJavaScripts(t *testing.T) {
	ids := []string{"a", "b", "c", "d"}
	for _, c := range []struct {
		after, limit int
		hasLimit     bool
		want         []string
	}{
		{0, 0, false, ids}, {-2, 0, false, ids[2:]}, {-9, 0, false, ids}, {9, 0, false, nil},
		{-3, 2, true, ids[1:3]}, {-2, 2, true, nil}, {2, -1, true, nil}, {0, -1, true, ids[:3]}, {0, -9, true, nil}, {1, 9, true, ids[1:]},
	} {
		if got := piSlice(ids, c.after, c.limit, c.hasLimit); !slices.Equal(got, c.want) {
			t.Errorf("slice from %d with %d (%v) gives %v, not %v", c.after, c.limit, c.hasLimit, got, c.want)
		}
	}
}

func TestEndlessWalksAreThoseThatPiNeverEnds(t *testing.T) {
	var entries []eventlog.Entry
	for _, text := range []string{
		`{"type":"message","id":"root","parentId":null}`,
		`{"type":"message","id":"fine","parentId":"root"}`,
		`{"type":"message","id":"orphan","parentId":"gone"}`,
		`{"type":"message","id":"self","parentId":"self"}`,
		`{"type":"message","id":"below","parentId":"self"}`,
		`{"type":"message","id":"c1","parentId":"c2"}`,
		`{"type":"compaction","id":"c2","parentId":"c3","firstKeptEntryId":"c1"}`,
		`{"type":"message","id":"c3","parentId":"c1"}`,
		`{"type":"compaction","id":"d1","parentId":"d2"}`,
		`{"type":"message","id":"d2","parentId":"d1"}`,
		`{"type":"compaction","id":"e1","parentId":"e2","retainedTail":[]}`,
		`{"type":"message","id":"e2","parentId":"e1"}`,
	} {
		v, err := js.Parse(text)
		if err != nil {
			t.Fatal(err)
		}
		e, err := eventlog.ParseEntry(js.Fields(append(v.Members(), member("timestamp", js.Text("t")))...).JSON())
		if err != nil {
			t.Fatal(err)
		}
		entries = append(entries, e)
	}
	log := newPiLog(entries)
	for id, want := range map[string][2]bool{
		"root": {false, false}, "fine": {false, false}, "orphan": {false, false}, "nothing": {false, false},
		"self": {true, true}, "below": {true, true},
		"c1": {false, true}, "c2": {false, true}, "c3": {false, true}, // stops at c1, which the compaction keeps
		"d1": {true, true}, "e1": {false, true}, "e2": {false, true},
	} {
		if got := [2]bool{log.endless(id), log.endlessUp(id)}; got != want {
			t.Errorf("from %s: %v, not %v", id, got, want)
		}
	}
}

func TestExpectedErrorsAreTold(t *testing.T) {
	null := js.NullValue()
	const trips = "content is not iterable"
	for _, c := range []struct {
		name, text string
		want       bool
	}{
		{"TypeError", trips, true}, {"RangeError", "Invalid time value", true}, {"RangeError", "Maximum call stack size exceeded", true},
		{"TypeError", "NONSENSE", false}, {"TypeError", "", false}, {"TypeError", "Invalid time value", false}, {"TypeErrorx", trips, false},
		{"RangeError", trips, false}, {"Error", trips, false}, {"SessionError", trips, false}, {"AgentHarnessError", trips, false}, {"", trips, false},
	} {
		if got := isAccident(js.Text(c.name), null, c.text); got != c.want {
			t.Errorf("%s: %s is an accident: %v", c.name, c.text, got)
		}
	}
	if isAccident(js.Text("TypeError"), js.Text("not_found"), trips) {
		t.Error("an accident has no code")
	}
	for text, want := range map[string]bool{
		"walk did not end within 20000 lookups": true, "walk did not end within 20008 lookups": false, "walk did not end within 20000 lookupsx": false, "": false,
	} {
		if got := isEndless(js.Text("EndlessWalk"), js.Text("loops_forever"), text, 0); got != want {
			t.Errorf("%q is an endless walk: %v", text, got)
		}
	}
	if !isEndless(js.Text("EndlessWalk"), js.Text("loops_forever"), "walk did not end within 20008 lookups", 2) {
		t.Error("a fork of two entries has a bound of its own")
	}
	for text, want := range map[string]bool{
		"Cannot read properties of undefined (reading 'role')": true, "(entry.retainedTail ?? []) is not iterable": true,
		"content.filter is not a function": true, "Cannot convert undefined or null to object": true,
		"Branch summary failed: overloaded": false, "connection lost": false, "Entry x not found": false,
	} {
		if got := accidentText.MatchString(text); got != want {
			t.Errorf("%q is an accident's text: %v", text, got)
		}
	}
}

func TestPiPath(t *testing.T) {
	for _, c := range []struct{ cwd, id, want string }{
		{"/project", "s", "--project--/2026-01-01T00-00-00-000Z_s.jsonl"},
		{`C:\\x`, "s", "--C---x--/2026-01-01T00-00-00-000Z_s.jsonl"},
		{"", "../../up", "----/up.jsonl"},
		{"//a/", "in/x", "---a---/2026-01-01T00-00-00-000Z_in/x.jsonl"},
	} {
		if got := piPath(c.cwd, "2026-01-01T00:00:00.000Z", c.id); got != c.want {
			t.Errorf("%q in %q: %s, not %s", c.id, c.cwd, got, c.want)
		}
	}
}
