package conformance

import (
	"bytes"
	"context"
	"fmt"
	"io/fs"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/sessiontree/sessiontree/eventlog"
	"github.com/sessiontree/sessiontree/eventlog/js"
)

// Test is the suite that every backend runs: the packed vectors, and the
// behaviour that a backend owes its callers.
func Test(t *testing.T, b Backend) {
	t.Run("vectors", func(t *testing.T) { testVectors(t, b, Vectors(), groups()) })
	t.Run("coding agent vectors", func(t *testing.T) { testVectors(t, b, AgentVectors(), agentGroups()) })
	for _, behaviour := range behaviours {
		t.Run(behaviour.name, func(t *testing.T) {
			t.Parallel()
			behaviour.test(newKit(t, b))
		})
	}
}

// TestGroups runs some groups of the vectors alone ("handmade", "random",
// "large", …), for a backend that is slow on purpose.
func TestGroups(t *testing.T, b Backend, names ...string) {
	some := slices.DeleteFunc(groups(), func(g group) bool { return !slices.Contains(names, g.name) })
	testVectors(t, b, Vectors(), some)
}

func testVectors(t *testing.T, b Backend, vectors fs.FS, groups []group) {
	for _, g := range groups {
		t.Run(g.name, func(t *testing.T) {
			r, err := Run(t.Context(), vectors, b, Options{
				Dir:  t.TempDir(),
				Only: func(name string) bool { return name == g.name || strings.HasPrefix(name, g.name+"/") },
			})
			if err != nil {
				t.Fatal(err)
			}
			if len(r.Cases) == 0 {
				t.Fatal("no cases")
			}
			for _, c := range r.Cases {
				for _, f := range c.Failures {
					t.Errorf("%s: %s\nwant %s\ngot  %s", visible(c.Name), visible(f.Field), visible(f.Want), visible(f.Got))
				}
			}
			t.Logf("%d passed, %d failed", r.Passed(), r.Failed())
		})
	}
}

// kit is one behaviour's repository, with helpers that end the test where they
// fail.
type kit struct {
	*testing.T
	backend Backend
	ctx     context.Context
	repo    eventlog.Repo
}

func newKit(t *testing.T, b Backend) *kit {
	k := &kit{T: t, backend: b, ctx: t.Context()}
	k.repo = k.newRepo(t.TempDir())
	return k
}

func (k *kit) newRepo(dir string) eventlog.Repo {
	k.Helper()
	return k.newRepoWith(dir, eventlog.Source{})
}

func (k *kit) newRepoWith(dir string, source eventlog.Source) eventlog.Repo {
	k.Helper()
	repo, err := k.backend.New(dir, source)
	k.must(err)
	k.Cleanup(func() {
		if err := closeRepo(context.WithoutCancel(k.ctx), repo); err != nil {
			k.Error(err)
		}
	})
	return repo
}

func (k *kit) must(err error) {
	k.Helper()
	if err != nil {
		k.Fatal(err)
	}
}

// refused expects an error of a code.
func (k *kit) refused(what string, err error, code eventlog.Code) {
	k.Helper()
	if eventlog.CodeOf(err) != code {
		k.Errorf("%s: want an error of code %s, got %v", what, code, err)
	}
}

// equal compares two JSON texts as a whole.
func (k *kit) equal(what, want, got string) {
	k.Helper()
	if want != got {
		k.Errorf("%s:\nwant %s\ngot  %s", what, cut(want), cut(got))
	}
}

func (k *kit) create(id string) *eventlog.Session {
	k.Helper()
	s, err := k.repo.Create(k.ctx, eventlog.CreateOptions{ID: id, CWD: "/project"})
	k.must(err)
	k.Cleanup(func() { s.Close() })
	return s
}

// say appends a user message.
func (k *kit) say(s *eventlog.Session, what string) eventlog.Entry {
	k.Helper()
	e, err := s.AppendMessage(k.ctx, message(what))
	k.must(err)
	return e
}

func message(text string) eventlog.Message {
	return eventlog.Message{Value: js.Fields(member("role", js.Text("user")), member("content", js.Text(text)), member("timestamp", js.Num(1)))}
}

func (k *kit) all(s *eventlog.Session) []eventlog.Entry {
	k.Helper()
	entries, err := all(k.ctx, s)
	k.must(err)
	return entries
}

// reopen closes a session and opens it again.
func (k *kit) reopen(s *eventlog.Session) *eventlog.Session {
	k.Helper()
	m, err := s.Metadata(k.ctx)
	k.must(err)
	k.must(s.Close())
	again, err := k.repo.Open(k.ctx, m)
	k.must(err)
	k.Cleanup(func() { again.Close() })
	return again
}

// state is what a session answers, as one JSON text: its header, its whole log,
// the leaf, labels, name, totals, and the branches and contexts of its leaf and
// of up to a hundred of its entries.
func (k *kit) state(s *eventlog.Session) string {
	k.Helper()
	entries := k.all(s)
	return k.answers(s, entries, max(1, len(entries)/100))
}

func (k *kit) answers(s *eventlog.Session, entries []eventlog.Entry, step int) string {
	k.Helper()
	failure := func(err error) js.Value {
		_, code, message := errorOf(err)
		return js.List(code, js.Text(message))
	}
	m, err := s.Metadata(k.ctx)
	k.must(err)
	var log []js.Value
	for _, e := range entries {
		log = append(log, js.Text(e.JSON()))
	}
	got := []js.Member{member("metadata", metadataValue(m)), member("header", js.Text(m.Header)), member("log", js.List(log...))}
	if head, err := s.Head(k.ctx); err != nil {
		got = append(got, member("head", failure(err)))
	} else {
		got = append(got, member("head", head.Leaf.Value()), member("n", js.Num(float64(head.N))))
	}
	labels, err := s.Labels(k.ctx)
	k.must(err)
	var labelled []string
	for id, l := range labels {
		labelled = append(labelled, id+"="+l)
	}
	slices.Sort(labelled)
	got = append(got, member("labels", js.Texts(labelled...)))
	if name, err := s.Name(k.ctx); err != nil {
		got = append(got, member("name", failure(err)))
	} else {
		got = append(got, member("name", js.Text(name)))
	}
	if stats, err := s.Stats(k.ctx); err != nil {
		got = append(got, member("stats", failure(err)))
	} else {
		got = append(got, member("stats", js.Text(fmt.Sprintf("%v", stats))))
	}
	for _, t := range append(eventlog.Types(), "hologram") {
		found, err := s.FindEntries(k.ctx, t)
		k.must(err)
		got = append(got, member("find "+string(t), idList(found)))
	}
	from := []eventlog.Ref{eventlog.None()}
	for i := 0; i < len(entries); i += step {
		from = append(from, eventlog.At(entries[i].ID()))
	}
	for _, f := range from {
		branch, err := s.Branch(k.ctx, f)
		if err != nil {
			got = append(got, member("branch "+f.String(), failure(err)))
			continue
		}
		got = append(got, member("branch "+f.String(), idList(branch)))
		c, err := s.BuildContext(k.ctx, f)
		if err != nil {
			got = append(got, member("context "+f.String(), failure(err)))
			continue
		}
		got = append(got, member("context "+f.String(), js.Fields(contextMembers(c)...)))
	}
	return js.Fields(got...).JSON()
}

// check checks what must hold of any session, whatever was done to it: the leaf
// and the number of entries are those of a replay of the log, ids are unique,
// and the session answers alike when closed and opened again, and when its
// export is loaded elsewhere. It closes the session.
func (k *kit) check(s *eventlog.Session) {
	k.Helper()
	entries := k.all(s)
	leaf := eventlog.None()
	known := map[string]bool{}
	for _, e := range entries {
		if known[e.ID()] {
			k.Errorf("the id %q stands twice", e.ID())
		}
		known[e.ID()] = true
		leaf = e.LeafAfter()
	}
	head, err := s.Head(k.ctx)
	k.must(err)
	if want := (eventlog.Head{Leaf: leaf, N: len(entries)}); head != want {
		k.Errorf("the log leads to %v, the session stands at %v", want, head)
	}
	k.sameElsewhere(s)
}

// sameElsewhere is the part of check that holds of imported sessions too.
func (k *kit) sameElsewhere(s *eventlog.Session) {
	k.Helper()
	want := k.state(s)
	var file bytes.Buffer
	k.must(s.Export(k.ctx, &file))
	again := k.reopen(s)
	k.equal("the session opened again", want, k.state(again))
	k.must(again.Close())

	dir := k.TempDir()
	loaded, err := k.backend.Load(k.ctx, k.newRepo(dir), dir, fileName, file.Bytes())
	k.must(err)
	k.equal("its export loaded elsewhere", want, k.state(loaded))
	k.must(loaded.Close())
	if k.backend.Files {
		left, err := filepath.Glob(filepath.Join(dir, "*"))
		k.must(err)
		if len(left) != 1 {
			k.Errorf("reading a file left others beside it: %q", left)
		}
	}
}
