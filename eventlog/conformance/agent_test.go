package conformance_test

import (
	"io/fs"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/sessiontree/sessiontree/eventlog/conformance"
	"github.com/sessiontree/sessiontree/eventlog/conformance/backends"
	"github.com/sessiontree/sessiontree/eventlog/js"
)

// spoilt is a case of the coding agent's vectors with one member of a JSON file set
// to another value.
func spoilt(t *testing.T, name, file string, change func(v js.Value) js.Value) fs.FS {
	t.Helper()
	all := conformance.AgentVectors()
	folder := fstest.MapFS{}
	err := fs.WalkDir(all, name, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		b, err := fs.ReadFile(all, path)
		if strings.HasSuffix(path, "/"+file) {
			v, parseErr := js.Parse(string(b))
			if parseErr != nil {
				return parseErr
			}
			b = []byte(change(v).JSON())
		}
		folder[path] = &fstest.MapFile{Data: b}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return folder
}

func failures(t *testing.T, vectors fs.FS) int {
	t.Helper()
	r, err := conformance.Run(t.Context(), vectors, backends.Memory(), conformance.Options{Dir: t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	if len(r.Cases) != 1 {
		t.Fatalf("%d cases", len(r.Cases))
	}
	return len(r.Cases[0].Failures)
}

// Each answer counts: one that is another fails the case, also where a rule excuses
// ours.
func TestEachAnswerOfTheCodingAgentCounts(t *testing.T) {
	for _, name := range []string{"files/edit-around-compaction", "files/v1-compaction-index", "files/entries-without-id", "files/duplicate-ids", "files/message-missing", "calls/two-managers"} {
		b, err := fs.ReadFile(conformance.AgentVectors(), name+"/expect.json")
		if err != nil {
			t.Fatal(err)
		}
		want, err := js.Parse(string(b))
		if err != nil {
			t.Fatal(err)
		}
		same := func(v js.Value) js.Value { return v }
		if n := failures(t, spoilt(t, name, "expect.json", same)); n != 0 {
			t.Errorf("%s as it is: %d failures", name, n)
		}
		for _, m := range want.Members() {
			to := js.Text("spoilt")
			if m.Key == "about" { // any sentence will do without an index
				to = js.Text("")
			}
			if n := failures(t, spoilt(t, name, "expect.json", func(v js.Value) js.Value { return js.WithMember(v, m.Key, to) })); n == 0 {
				t.Errorf("%s: %s does not count", name, m.Key)
			}
			if list := want.Get(m.Key); list.Kind() == js.Array && list.JSON() != "[]" {
				if n := failures(t, spoilt(t, name, "expect.json", func(v js.Value) js.Value { return js.WithMember(v, m.Key, js.List()) })); n == 0 {
					t.Errorf("%s: an empty list of %s passes", name, m.Key)
				}
			}
		}
	}
}

// Each member of each call counts.
func TestEachCallOfTheCodingAgentCounts(t *testing.T) {
	for _, name := range []string{"calls/leaf-after-reopen", "calls/nothing-before-conversation", "calls/branched-session", "calls/two-managers"} {
		b, err := fs.ReadFile(conformance.AgentVectors(), name+"/ops.json")
		if err != nil {
			t.Fatal(err)
		}
		ops, err := js.Parse(string(b))
		if err != nil {
			t.Fatal(err)
		}
		at := 0
		for op := range ops.Elements() {
			for _, m := range op.Members() {
				spoil := func(v js.Value) js.Value {
					var list []js.Value
					for o := range v.Elements() {
						if len(list) == at {
							o = js.WithMember(o, m.Key, js.Text("spoilt"))
						}
						list = append(list, o)
					}
					return js.List(list...)
				}
				if at%5 == 0 || m.Key != "args" && m.Key != "appended" {
					if n := failures(t, spoilt(t, name, "ops.json", spoil)); n == 0 {
						t.Errorf("%s: %s of call %d does not count", name, m.Key, at)
					}
				}
			}
			at++
		}
	}
}
