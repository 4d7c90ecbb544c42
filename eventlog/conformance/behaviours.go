package conformance

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/sessiontree/sessiontree/eventlog"
	"github.com/sessiontree/sessiontree/eventlog/js"
)

var behaviours = []struct {
	name string
	test func(*kit)
}{
	{"appends in parallel make one chain", appendsInParallel},
	{"of appends that expect the same head one wins", compareAndSwap},
	{"a head is not the same when the leaf moved away and back", movedAwayAndBack},
	{"AppendAt opens a branch without a leaf entry", appendAt},
	{"an append can be retried by its id", retries},
	{"a batch is written whole or not at all", wholeBatches},
	{"a move and its summary are one step", movesWithSummary},
	{"what a caller changes stays the caller's", noAliases},
	{"a cancelled context changes nothing", cancelled},
	{"a closed session answers that it is closed", closed},
	{"strings, numbers and keys stay as they are", oddValues},
	{"an entry of several lines is exported as one", severalLines},
	{"labels and names are trimmed", labelsAndNames},
	{"windows and types find their entries", windowsAndTypes},
	{"raw appends take what appends refuse", rawAppends},
	{"a branch may end in its second round of a cycle", secondRound},
	{"a leaf that cannot be read can be left", unreadableLeaf},
	{"a huge entry comes back whole", hugeEntry},
	{"a deep chain is answered", deepChain},
	{"a wide star is answered", wideStar},
	{"an id of a session is taken once", existingID},
	{"a fork leaves its source alone", forks},
	{"a fork starts at a user message", forkTargets},
	{"a deleted session is gone", deleted},
	{"lists are newest first and by working folder", lists},
	{"sessions do not mix", twoSessions},
	{"readers see whole appends", readersAndWriter},
}

func appendsInParallel(k *kit) {
	const writers, each = 12, 40
	s := k.create("parallel")
	root := k.say(s, "root")
	returned := make([][]eventlog.Entry, writers)
	errs := make([]error, writers)
	var wg sync.WaitGroup
	for w := range writers {
		wg.Go(func() {
			for i := range each {
				var entries []eventlog.Entry
				var err error
				switch m := eventlog.MessageDraft(message(fmt.Sprintf("%d of %d", i, w))); i % 3 {
				case 0:
					entries, err = s.Append(k.ctx, m, eventlog.ThinkingLevelDraft("high"))
				default:
					entries, err = s.Append(k.ctx, m)
				}
				if err != nil {
					errs[w] = err
					return
				}
				returned[w] = append(returned[w], entries...)
			}
		})
	}
	wg.Wait()
	k.must(errors.Join(errs...))

	entries := k.all(s)
	at := map[string]int{}
	for i, e := range entries {
		at[e.ID()] = i
		if i > 0 && e.Parent() != eventlog.At(entries[i-1].ID()) {
			k.Fatalf("entry %d was appended to %v, the one before it is %s", i+1, e.Parent(), entries[i-1].ID())
		}
	}
	n := 1
	for w := range writers {
		last := at[root.ID()]
		for _, e := range returned[w] {
			n++
			i, ok := at[e.ID()]
			if !ok || entries[i].JSON() != e.JSON() {
				k.Fatalf("what an append returned is not in the log: %s", e.JSON())
			}
			if i <= last {
				k.Fatalf("appends of one goroutine stand in another order")
			}
			last = i
		}
	}
	if n != len(entries) {
		k.Errorf("%d entries were appended, the log has %d", n, len(entries))
	}
	k.check(s)
}

func compareAndSwap(k *kit) {
	s := k.create("swap")
	k.say(s, "root")
	head, err := s.Head(k.ctx)
	k.must(err)
	const writers = 8
	errs := make([]error, writers)
	written := make([][]eventlog.Entry, writers)
	var wg sync.WaitGroup
	for w := range writers {
		wg.Go(func() {
			written[w], errs[w] = s.AppendIf(k.ctx, head, eventlog.MessageDraft(message(fmt.Sprint(w))), eventlog.ThinkingLevelDraft("low"))
		})
	}
	wg.Wait()
	now, err := s.Head(k.ctx)
	k.must(err)
	won := 0
	for w, err := range errs {
		if err == nil {
			won++
			if len(written[w]) != 2 || now != (eventlog.Head{Leaf: eventlog.At(written[w][1].ID()), N: 3}) {
				k.Errorf("the winner wrote %d entries, the session stands at %v", len(written[w]), now)
			}
			continue
		}
		var conflict *eventlog.ConflictError
		if !errors.Is(err, eventlog.ErrConflict) || !errors.As(err, &conflict) || *conflict != (eventlog.ConflictError{Want: head, Actual: now}) {
			k.Errorf("want a conflict that expected %v and found %v, got %v", head, now, err)
		}
		if written[w] != nil {
			k.Errorf("a conflict came with entries")
		}
	}
	if won != 1 {
		k.Errorf("%d of %d appends to the same head won", won, writers)
	}
	if _, err := s.AppendIf(k.ctx, now, eventlog.MessageDraft(message("on"))); err != nil {
		k.Errorf("an append to the actual head: %v", err)
	}
	k.check(s)
}

func movedAwayAndBack(k *kit) {
	s := k.create("back")
	a := k.say(s, "a")
	b := k.say(s, "b")
	head, err := s.Head(k.ctx)
	k.must(err)
	_, err = s.MoveTo(k.ctx, eventlog.At(a.ID()), nil)
	k.must(err)
	_, err = s.MoveTo(k.ctx, eventlog.At(b.ID()), nil)
	k.must(err)
	now, err := s.Head(k.ctx)
	k.must(err)
	if now.Leaf != head.Leaf || now.N != 4 {
		k.Fatalf("the session stands at %v", now)
	}
	_, err = s.AppendIf(k.ctx, head, eventlog.MessageDraft(message("late")))
	var conflict *eventlog.ConflictError
	if !errors.As(err, &conflict) || conflict.Actual != now {
		k.Errorf("want a conflict at %v, got %v", now, err)
	}
	empty := k.create("empty")
	if _, err := empty.AppendIf(k.ctx, eventlog.Head{}, eventlog.MessageDraft(message("first"))); err != nil {
		k.Errorf("an append to an empty session: %v", err)
	}
	k.check(s)
	k.check(empty)
}

func appendAt(k *kit) {
	s := k.create("at")
	a := k.say(s, "a")
	b := k.say(s, "b")
	made, err := s.AppendAt(k.ctx, eventlog.At(a.ID()), eventlog.MessageDraft(message("c")), eventlog.MessageDraft(message("d")))
	k.must(err)
	c, d := made[0], made[1]
	roots, err := s.AppendAt(k.ctx, eventlog.None(), eventlog.MessageDraft(message("e")))
	k.must(err)
	k.equal("parents", refs(eventlog.At(a.ID()), eventlog.At(c.ID()), eventlog.None()), refs(c.Parent(), d.Parent(), roots[0].Parent()))
	k.equal("the log", idList([]eventlog.Entry{a, b, c, d, roots[0]}).JSON(), idList(k.all(s)).JSON())
	branch, err := s.Branch(k.ctx, eventlog.At(d.ID()))
	k.must(err)
	k.equal("the new branch", idList([]eventlog.Entry{a, c, d}).JSON(), idList(branch).JSON())

	before := k.state(s)
	_, err = s.AppendAt(k.ctx, eventlog.At("nowhere"), eventlog.MessageDraft(message("x")))
	k.refused("a parent that is not there", err, eventlog.NotFound)
	k.equal("after a refused append", before, k.state(s))
	k.check(s)
}

func refs(r ...eventlog.Ref) string { return fmt.Sprint(r) }

func retries(k *kit) {
	s := k.create("retries")
	k.say(s, "root")
	draft := eventlog.MessageDraft(message("once")).WithID("mine")
	first, err := s.Append(k.ctx, draft)
	k.must(err)
	k.say(s, "later")
	before := k.state(s)
	again, err := s.Append(k.ctx, draft)
	k.must(err)
	if len(again) != 1 || again[0].JSON() != first[0].JSON() {
		k.Errorf("a retry gives %v", again)
	}
	k.equal("after a retry", before, k.state(s))
	_, err = s.Append(k.ctx, eventlog.MessageDraft(message("other")).WithID("mine"))
	k.refused("the same id for something else", err, eventlog.AlreadyExists)
	_, err = s.Append(k.ctx, draft.Under(eventlog.None()))
	k.refused("the same entry below another parent", err, eventlog.AlreadyExists)

	pair := []eventlog.Draft{eventlog.MessageDraft(message("p")).WithID("p"), eventlog.MessageDraft(message("q")).WithID("q")}
	wrote, err := s.Append(k.ctx, pair...)
	k.must(err)
	before = k.state(s)
	rewrote, err := s.Append(k.ctx, pair...)
	k.must(err)
	if !sameEntries(wrote, rewrote) {
		k.Errorf("a batch's retry gives %v, not %v", rewrote, wrote)
	}
	_, err = s.Append(k.ctx, pair[0], eventlog.MessageDraft(message("r")).WithID("r"))
	k.refused("a batch that is there in part", err, eventlog.AlreadyExists)
	_, err = s.Append(k.ctx, eventlog.MessageDraft(message("n")).WithID("n"), pair[0])
	k.refused("a batch with an id that is taken", err, eventlog.AlreadyExists)
	k.equal("after refused batches", before, k.state(s))

	// A retry finds its entry in a session that was opened again, too.
	s = k.reopen(s)
	if again, err := s.Append(k.ctx, draft); err != nil || again[0].JSON() != first[0].JSON() {
		k.Errorf("a retry after opening again gives %v and the error %v", again, err)
	}
	k.check(s)
}

func wholeBatches(k *kit) {
	s := k.create("batches")
	root := k.say(s, "root")
	before := k.state(s)
	good := eventlog.MessageDraft(message("good"))
	for what, batch := range map[string]struct {
		drafts []eventlog.Draft
		code   eventlog.Code
	}{
		"a label on nothing":     {[]eventlog.Draft{good, eventlog.LabelDraft("nothing", js.Text("l"))}, eventlog.NotFound},
		"a parent that is none":  {[]eventlog.Draft{good, good.Under(eventlog.At("nothing"))}, eventlog.NotFound},
		"an id that is taken":    {[]eventlog.Draft{good, good.WithID(root.ID())}, eventlog.AlreadyExists},
		"an id twice":            {[]eventlog.Draft{good.WithID("twice"), good.WithID("twice")}, eventlog.AlreadyExists},
		"a target further down":  {[]eventlog.Draft{eventlog.LabelDraft("below", js.Text("l")), good.WithID("below")}, eventlog.NotFound},
		"a leaf that is nowhere": {[]eventlog.Draft{good, {Type: eventlog.TypeLeaf, Fields: []js.Member{member("targetId", js.Num(1))}}}, eventlog.InvalidArgument},
	} {
		entries, err := s.Append(k.ctx, batch.drafts...)
		k.refused(what, err, batch.code)
		if entries != nil {
			k.Errorf("%s: entries came with the error", what)
		}
		k.equal("after "+what, before, k.state(s))
	}
	if entries, err := s.Append(k.ctx); err != nil || len(entries) != 0 {
		k.Errorf("an empty batch gives %v and the error %v", entries, err)
	}
	k.must(s.Storage().AppendRaw(k.ctx))
	k.equal("after empty batches", before, k.state(s))

	wrote, err := s.Append(k.ctx, good.WithID("target"), eventlog.LabelDraft("target", js.Text("l")), good)
	k.must(err)
	k.equal("the log", idList(append([]eventlog.Entry{root}, wrote...)).JSON(), idList(k.all(s)).JSON())
	k.equal("parents", refs(eventlog.At(root.ID()), eventlog.At("target"), eventlog.At(wrote[1].ID())), refs(wrote[0].Parent(), wrote[1].Parent(), wrote[2].Parent()))
	k.check(s)
}

func movesWithSummary(k *kit) {
	s := k.create("moves")
	root := k.say(s, "root")
	k.say(s, "left behind")
	before := k.state(s)
	_, err := s.MoveTo(k.ctx, eventlog.At("nowhere"), &eventlog.Summary{Text: "s"})
	k.refused("a move to nowhere", err, eventlog.NotFound)
	k.equal("after it", before, k.state(s))

	// Others append meanwhile; nothing comes between a move and its summary.
	const moves = 20
	var wg sync.WaitGroup
	errs := make([]error, 2)
	wg.Go(func() {
		for range moves {
			if _, err := s.AppendMessage(k.ctx, message("in between")); err != nil {
				errs[0] = err
				return
			}
		}
	})
	wg.Go(func() {
		for i := range moves {
			target := eventlog.At(root.ID())
			if i%4 == 3 {
				target = eventlog.None()
			}
			if _, err := s.MoveTo(k.ctx, target, &eventlog.Summary{Text: "s", Details: js.Fields(member("readFiles", js.List())), FromHook: js.Boolean(false)}); err != nil {
				errs[1] = err
				return
			}
		}
	})
	wg.Wait()
	k.must(errors.Join(errs...))
	entries := k.all(s)
	summaries := 0
	for i, e := range entries {
		if e.Type() != eventlog.TypeBranchSummary {
			continue
		}
		summaries++
		leaf := entries[i-1]
		from := "root"
		if !leaf.Target().IsNone() {
			from = leaf.Target().ID()
		}
		if leaf.Type() != eventlog.TypeLeaf || e.Parent() != leaf.Target() || !e.Get("fromId").Is(from) {
			k.Fatalf("a summary %s behind %s", e.JSON(), leaf.JSON())
		}
	}
	if summaries != moves || len(entries) != 2+3*moves {
		k.Errorf("%d entries with %d summaries", len(entries), summaries)
	}
	k.check(s)
}

func noAliases(k *kit) {
	s := k.create("aliases")
	root := k.say(s, "root")
	fields := []js.Member{member("customType", js.Text("mine")), member("data", js.Text("as it was"))}
	names := []string{"read", "write"}
	drafts := []eventlog.Draft{{Type: eventlog.TypeCustom, Fields: fields}, eventlog.ActiveToolsDraft(names...)}
	wrote, err := s.Append(k.ctx, drafts...)
	k.must(err)
	_, err = s.SetLabel(k.ctx, root.ID(), "label")
	k.must(err)
	before := k.state(s)

	fields[1].Value = js.Text("changed")
	names[0] = "changed"
	drafts[0].Type = "changed"
	clear(wrote)
	labels, err := s.Labels(k.ctx)
	k.must(err)
	labels[root.ID()] = "changed"
	labels["more"] = "changed"
	for _, get := range []func() ([]eventlog.Entry, error){
		func() ([]eventlog.Entry, error) { return s.Branch(k.ctx, eventlog.None()) },
		func() ([]eventlog.Entry, error) { return s.ContextEntries(k.ctx, eventlog.None()) },
		func() ([]eventlog.Entry, error) { return s.FindEntries(k.ctx, eventlog.TypeMessage) },
		func() ([]eventlog.Entry, error) { return s.ForkEntries(k.ctx, "", "", eventlog.Source{}) },
	} {
		entries, err := get()
		k.must(err)
		clear(entries)
		_ = append(entries[:0], eventlog.Entry{})
	}
	c, err := s.BuildContext(k.ctx, eventlog.None())
	k.must(err)
	clear(c.Messages)
	clear(c.ActiveTools)
	k.equal("after all was changed that can be", before, k.state(s))

	raw := k.all(s)[0]
	mine, err := eventlog.ParseEntry(strings.Replace(raw.JSON(), raw.ID(), "raw", 1))
	k.must(err)
	entries := []eventlog.Entry{mine}
	k.must(s.Storage().AppendRaw(k.ctx, entries...))
	entries[0] = eventlog.Entry{}
	if e, err := s.Entry(k.ctx, "raw"); err != nil || e.JSON() != mine.JSON() {
		k.Errorf("a raw entry became %s, %v", e.JSON(), err)
	}
	k.check(s)
}

func cancelled(k *kit) {
	s := k.create("cancelled")
	root := k.say(s, "root")
	before := k.state(s)
	m, err := s.Metadata(k.ctx)
	k.must(err)
	ctx, cancel := context.WithCancel(k.ctx)
	cancel()
	for what, err := range everyCall(ctx, s, root) {
		if !errors.Is(err, context.Canceled) {
			k.Errorf("%s: want the context's error, got %v", what, err)
		}
	}
	for what, call := range map[string]func() error{
		"Create": func() error {
			_, err := k.repo.Create(ctx, eventlog.CreateOptions{ID: "new", CWD: "/project"})
			return err
		},
		"Open":   func() error { _, err := k.repo.Open(ctx, m); return err },
		"List":   func() error { _, err := k.repo.List(ctx, ""); return err },
		"Delete": func() error { return k.repo.Delete(ctx, m) },
		"Fork": func() error {
			_, err := k.repo.Fork(ctx, m, eventlog.ForkOptions{CreateOptions: eventlog.CreateOptions{ID: "f", CWD: "/project"}})
			return err
		},
	} {
		if err := call(); !errors.Is(err, context.Canceled) {
			k.Errorf("Repo.%s: want the context's error, got %v", what, err)
		}
	}
	k.equal("afterwards", before, k.state(s))
	listed, err := k.repo.List(k.ctx, "")
	k.must(err)
	if len(listed) != 1 {
		k.Errorf("there are %d sessions", len(listed))
	}
	k.check(s)
}

// everyCall makes every call of a session, and gives the errors by name.
func everyCall(ctx context.Context, s *eventlog.Session, root eventlog.Entry) map[string]error {
	errs := map[string]error{}
	_, errs["Metadata"] = s.Metadata(ctx)
	_, errs["Head"] = s.Head(ctx)
	_, errs["Entry"] = s.Entry(ctx, root.ID())
	errs["Entries"] = nil
	for _, err := range s.Entries(ctx, 0, eventlog.All) {
		errs["Entries"] = err
	}
	_, errs["FindEntries"] = s.FindEntries(ctx, eventlog.TypeMessage)
	_, errs["Append"] = s.Append(ctx, eventlog.ThinkingLevelDraft("x"))
	_, errs["AppendIf"] = s.AppendIf(ctx, eventlog.Head{Leaf: eventlog.At(root.ID()), N: 1}, eventlog.ThinkingLevelDraft("x"))
	_, errs["AppendAt"] = s.AppendAt(ctx, eventlog.None(), eventlog.ThinkingLevelDraft("x"))
	_, errs["AppendMessage"] = s.AppendMessage(ctx, message("x"))
	_, errs["SetLabel"] = s.SetLabel(ctx, root.ID(), "x")
	_, errs["SetName"] = s.SetName(ctx, "x")
	_, errs["MoveTo"] = s.MoveTo(ctx, eventlog.None(), nil)
	_, errs["Branch"] = s.Branch(ctx, eventlog.None())
	_, errs["Branch from"] = s.Branch(ctx, eventlog.At(root.ID()))
	_, errs["ContextEntries"] = s.ContextEntries(ctx, eventlog.None())
	_, errs["BuildContext"] = s.BuildContext(ctx, eventlog.None())
	_, errs["Label"] = s.Label(ctx, root.ID())
	_, errs["Labels"] = s.Labels(ctx)
	_, errs["Name"] = s.Name(ctx)
	_, errs["Stats"] = s.Stats(ctx)
	_, errs["Tree"] = s.Tree(ctx)
	_, errs["ForkEntries"] = s.ForkEntries(ctx, root.ID(), eventlog.AtIt, eventlog.Source{})
	_, errs["CollectBranch"] = s.CollectBranch(ctx, eventlog.At(root.ID()), eventlog.None())
	errs["Export"] = s.Export(ctx, &bytes.Buffer{})
	raw, _ := eventlog.ParseEntry(strings.Replace(root.JSON(), root.ID(), "raw", 1))
	errs["AppendRaw"] = s.Storage().AppendRaw(ctx, raw)
	_, errs["Storage.Branch of none"] = s.Storage().Branch(ctx, eventlog.None())
	return errs
}

func closed(k *kit) {
	s := k.create("closed")
	root := k.say(s, "root")
	before := k.state(s)
	m, err := s.Metadata(k.ctx)
	k.must(err)
	k.must(s.Close())
	k.must(s.Close())
	for what, err := range everyCall(k.ctx, s, root) {
		if !errors.Is(err, eventlog.ErrClosed) {
			k.Errorf("%s: want ErrClosed, got %v", what, err)
		}
	}
	again, err := k.repo.Open(k.ctx, m)
	k.must(err)
	k.equal("opened again", before, k.state(again))

	// Closing while others append loses nothing that was acknowledged.
	var wg sync.WaitGroup
	written := make([][]eventlog.Entry, 4)
	errs := make([]error, len(written))
	for w := range written {
		wg.Go(func() {
			for {
				e, err := again.AppendMessage(k.ctx, message("racing"))
				if err != nil {
					errs[w] = err
					return
				}
				written[w] = append(written[w], e)
			}
		})
	}
	k.must(again.Close())
	wg.Wait()
	for _, err := range errs {
		if !errors.Is(err, eventlog.ErrClosed) {
			k.Errorf("an append that met Close: %v", err)
		}
	}
	again, err = k.repo.Open(k.ctx, m)
	k.must(err)
	there := map[string]bool{}
	for _, e := range k.all(again) {
		there[e.JSON()] = true
	}
	for _, e := range slices.Concat(written...) {
		if !there[e.JSON()] {
			k.Errorf("an acknowledged append is lost: %s", e.JSON())
		}
	}
	k.check(again)
}

// odd are JSON texts that decoding and encoding again would change.
var odd = []string{
	`"\ud800"`, `"\udc00\ud800"`, `"a\ud83dz"`, `"😀"`, `"\ud83d\ude00"`, `"\u2028\u2029 </script>&"`, `"\/\u0041\u00e9"`,
	`1e21`, `1E+2`, `-0`, `0.1e-7`, `9007199254740993`, `123456789012345678901234567890`, `1e400`, `5e-324`, `1.0`,
	`{"b":1,"a":2,"10":3,"9":4}`, `{"a":1,"a":2}`, `{"A":1,"a":2}`, `{"__proto__":{"x":1},"":0}`, `[ 1 , {"x" : null} ]`, `[]`, `{}`, `""`, `null`,
	`"` + strings.Repeat(`\"`, 50) + `"`, strings.Repeat("[", 2000) + strings.Repeat("]", 2000),
}

func oddValues(k *kit) {
	s := k.create("odd")
	k.say(s, "root")
	var want []string
	for i, o := range odd {
		text := fmt.Sprintf(`{"type":"custom","id":"raw-%d","parentId":null,"timestamp":"2026-01-01T00:00:00.000Z","customType":"odd","data":%s,"more":%s}`, i, o, o)
		e, err := eventlog.ParseEntry(text)
		k.must(err)
		k.must(s.Storage().AppendRaw(k.ctx, e))
		want = append(want, text)
		value, err := js.Parse(o)
		k.must(err)
		e, err = s.AppendCustom(k.ctx, "odd", value)
		k.must(err)
		k.equal("written as Pi writes it", js.Canonical(value).JSON(), e.Get("data").JSON())
		want = append(want, e.JSON())
	}
	// Ids are any text.
	for _, id := range []string{"\xed\xa0\x80", "toString", "__proto__", "'; DROP TABLE entries; --", "../../up", "漢字 \u2028", strings.Repeat("x", 3000), " ", "%_*", "null"} {
		e, err := s.Append(k.ctx, eventlog.MessageDraft(message("an odd id")).WithID(id))
		k.must(err)
		want = append(want, e[0].JSON())
		_, err = s.SetLabel(k.ctx, id, "label of "+id)
		k.must(err)
		if l, err := s.Label(k.ctx, id); err != nil || l != js.Trim("label of "+id) {
			k.Errorf("the label of %q is %q, %v", id, l, err)
		}
		if found, err := s.Entry(k.ctx, id); err != nil || found.JSON() != e[0].JSON() {
			k.Errorf("the entry with the id %q is %s, %v", id, found.JSON(), err)
		}
	}
	for range 2 {
		var got []string
		for _, e := range k.all(s)[1:] {
			if e.Type() != eventlog.TypeLabel {
				got = append(got, e.JSON())
			}
		}
		k.equal("the log", strings.Join(want, "\n"), strings.Join(got, "\n"))
		s = k.reopen(s)
	}
	k.check(s)
}

func severalLines(k *kit) {
	s := k.create("lines")
	text := "{\n \"type\": \"custom\",\r\n \"id\": \"c\", \"parentId\": null,\n\t\"timestamp\": \"2026-01-01T00:00:00.000Z\", \"customType\": \"a\\nb\", \"data\": [1,\n2.0] }"
	e, err := eventlog.ParseEntry(text)
	k.must(err)
	k.must(s.Storage().AppendRaw(k.ctx, e))
	k.say(s, "next")
	var file bytes.Buffer
	k.must(s.Export(k.ctx, &file))
	dir := k.TempDir()
	loaded, err := k.backend.Load(k.ctx, k.newRepo(dir), dir, fileName, file.Bytes())
	k.must(err)
	for _, from := range []*eventlog.Session{loaded, k.reopen(s)} {
		entries := k.all(from)
		if len(entries) != 2 || js.Diff(js.Trusted(text), entries[0].Value()) != nil {
			k.Errorf("%d entries, the first is %s", len(entries), entries[0].JSON())
		}
		k.must(from.Close())
	}
}

func labelsAndNames(k *kit) {
	s := k.create("labels")
	root := k.say(s, "root")
	for _, c := range []struct{ label, want string }{
		{"plain", "plain"}, {" \t\ufeff\u00a0trimmed\u2028\n ", "trimmed"}, {"  ", ""}, {"again", "again"}, {"", ""},
		{"\u0085kept\u0085", "\u0085kept\u0085"}, {"\xed\xa0\x80", "\xed\xa0\x80"}, {"a\nb", "a\nb"},
	} {
		e, err := s.SetLabel(k.ctx, root.ID(), c.label)
		k.must(err)
		if !e.Get("label").Is(c.label) {
			k.Errorf("the label %q was written as %s", c.label, e.Get("label").JSON())
		}
		if got, err := s.Label(k.ctx, root.ID()); err != nil || got != c.want {
			k.Errorf("the label %q reads %q, %v", c.label, got, err)
		}
		labels, err := s.Labels(k.ctx)
		k.must(err)
		if _, has := labels[root.ID()]; has != (c.want != "") || labels[root.ID()] != c.want {
			k.Errorf("after the label %q the labels are %q", c.label, labels)
		}
	}
	_, err := s.SetLabel(k.ctx, "nothing", "l")
	k.refused("a label on nothing", err, eventlog.NotFound)
	_, err = s.Append(k.ctx, eventlog.LabelDraft(root.ID(), js.NullValue()))
	k.must(err)
	for _, c := range []struct{ name, want string }{
		{"plain", "plain"}, {"  two\r\n\r\nlines\n", "two lines"}, {"\n", ""}, {"again", "again"}, {"", ""}, {"\u2028x\u2028y", "x\u2028y"},
	} {
		_, err := s.SetName(k.ctx, c.name)
		k.must(err)
		if got, err := s.Name(k.ctx); err != nil || got != c.want {
			k.Errorf("the name %q reads %q, %v", c.name, got, err)
		}
	}
	k.check(s)
}

func windowsAndTypes(k *kit) {
	s := k.create("windows")
	var entries []eventlog.Entry
	for i := range 5 {
		entries = append(entries, k.say(s, fmt.Sprint(i)))
	}
	moved, err := s.MoveTo(k.ctx, eventlog.At(entries[1].ID()), nil)
	k.must(err)
	entries = append(entries, moved...)
	unknown, err := eventlog.ParseEntry(`{"type":"hologram","id":"h","parentId":null,"timestamp":"t"}`)
	k.must(err)
	k.must(s.Storage().AppendRaw(k.ctx, unknown))
	entries = append(entries, unknown)
	for _, w := range []struct{ after, limit, from, to int }{
		{0, eventlog.All, 0, 7}, {0, 3, 0, 3}, {0, 0, 0, 0}, {2, 2, 2, 4}, {6, 5, 6, 7}, {7, 1, 0, 0}, {100, eventlog.All, 0, 0}, {eventlog.All, eventlog.All, 0, 0},
	} {
		var got []eventlog.Entry
		for e, err := range s.Entries(k.ctx, w.after, w.limit) {
			k.must(err)
			got = append(got, e)
		}
		if !sameEntries(entries[w.from:w.to], got) {
			k.Errorf("%d entries behind %d are %v", w.limit, w.after, ids(got))
		}
	}
	for _, w := range [][2]int{{-1, 1}, {0, -1}} {
		n := 0
		var err error
		for _, err = range s.Entries(k.ctx, w[0], w[1]) {
			n++
		}
		k.refused(fmt.Sprintf("a window of %d behind %d", w[1], w[0]), err, eventlog.InvalidArgument)
		if n != 1 {
			k.Errorf("a refused window gives %d values", n)
		}
	}
	for range s.Entries(k.ctx, 0, eventlog.All) {
		break // leaving early holds nothing
	}
	for t, want := range map[eventlog.Type][]eventlog.Entry{
		eventlog.TypeMessage: entries[:5], eventlog.TypeLeaf: moved, "hologram": {unknown}, eventlog.TypeLabel: nil, "": nil, "nothing": nil,
	} {
		got, err := s.FindEntries(k.ctx, t)
		k.must(err)
		if !sameEntries(want, got) {
			k.Errorf("entries of type %q are %v", t, ids(got))
		}
	}
	k.check(s)
}

// raw is an entry as a file may hold it.
func (k *kit) raw(typ, id, parent, more string) eventlog.Entry {
	k.Helper()
	if parent != "null" {
		parent = `"` + parent + `"`
	}
	e, err := eventlog.ParseEntry(fmt.Sprintf(`{"type":%q,"id":%q,"parentId":%s,"timestamp":"2026-01-01T00:00:00.000Z"%s}`, typ, id, parent, more))
	k.must(err)
	return e
}

const rawMessage = `,"message":{"role":"user","content":"raw","timestamp":1}`

func rawAppends(k *kit) {
	s := k.create("raw")
	root := k.say(s, "root")
	k.must(s.Storage().AppendRaw(k.ctx,
		k.raw("message", "orphan", "gone", rawMessage),
		k.raw("message", "twice", root.ID(), rawMessage),
		k.raw("message", "below", "twice", rawMessage),
		k.raw("message", "twice", "null", rawMessage), // the last one is found
		k.raw("message", "early", "late", rawMessage),
		k.raw("message", "late", root.ID(), rawMessage),
		k.raw("message", "c1", "c2", rawMessage),
		k.raw("message", "c2", "c1", rawMessage),
		k.raw("message", "self", "self", rawMessage),
	))
	for id, want := range map[string][]string{
		"below": {"twice", "below"}, "twice": {"twice"}, "early": {root.ID(), "late", "early"}, root.ID(): {root.ID()},
	} {
		branch, err := s.Branch(k.ctx, eventlog.At(id))
		if err != nil || !slices.Equal(ids(branch), want) {
			k.Errorf("the branch of %s is %v, %v", id, ids(branch), err)
		}
	}
	for id, code := range map[string]eventlog.Code{
		"orphan": eventlog.InvalidSession, "c1": eventlog.InvalidSession, "c2": eventlog.InvalidSession, "self": eventlog.InvalidSession, "nothing": eventlog.NotFound,
	} {
		_, err := s.Branch(k.ctx, eventlog.At(id))
		k.refused("the branch of "+id, err, code)
	}
	if tree, err := s.Tree(k.ctx); err != nil || len(tree.Nodes) != 10 {
		k.Errorf("the tree: %v", err)
	}
	before := k.state(s)
	_, err := s.Append(k.ctx, eventlog.MessageDraft(message("x")).WithID("twice"))
	k.refused("an id that exists", err, eventlog.AlreadyExists)
	_, err = s.AppendAt(k.ctx, eventlog.At("gone"), eventlog.MessageDraft(message("x")))
	k.refused("a parent that does not", err, eventlog.NotFound)
	k.equal("after refused appends", before, k.state(s))
	_, err = s.MoveTo(k.ctx, eventlog.At("twice"), nil)
	k.must(err)
	e := k.say(s, "goes on")
	branch, err := s.Branch(k.ctx, eventlog.None())
	k.must(err)
	k.equal("the branch", js.Texts("twice", e.ID()).JSON(), idList(branch).JSON())
	k.sameElsewhere(s)
}

// secondRound has cycles of parents that Pi leaves, because a compaction that it
// passes keeps an entry that it comes by again.
func secondRound(k *kit) {
	s := k.create("round")
	k.must(s.Storage().AppendRaw(k.ctx,
		k.raw("message", "a", "c", rawMessage),
		k.raw("message", "b", "a", rawMessage),
		k.raw("compaction", "c", "b", `,"summary":"s","firstKeptEntryId":"a"`),
		k.raw("compaction", "d", "e", `,"summary":"d","firstKeptEntryId":"nothing"`),
		k.raw("compaction", "e", "d", `,"summary":"e","firstKeptEntryId":"d"`),
		k.raw("message", "f", "d", rawMessage),
	))
	for from, want := range map[string]struct{ branch, context []string }{
		"a": {[]string{"a", "b", "c", "a"}, []string{"c", "a", "b", "a"}},
		"d": {[]string{"d", "e", "d"}, []string{"d", "e", "d"}},
		"f": {[]string{"d", "e", "d", "f"}, []string{"d", "e", "d", "f"}},
	} {
		branch, err := s.Branch(k.ctx, eventlog.At(from))
		if err != nil || !slices.Equal(ids(branch), want.branch) {
			k.Errorf("the branch of %s is %v, %v", from, ids(branch), err)
		}
		context, err := s.ContextEntries(k.ctx, eventlog.At(from))
		if err != nil || !slices.Equal(ids(context), want.context) {
			k.Errorf("the context of %s is %v, %v", from, ids(context), err)
		}
	}
	k.sameElsewhere(s)
}

func unreadableLeaf(k *kit) {
	s := k.create("leaf")
	root := k.say(s, "root")
	k.must(s.Storage().AppendRaw(k.ctx, k.raw("leaf", "bad", root.ID(), `,"targetId":"gone"`)))
	before := k.state(s)
	_, err := s.Head(k.ctx)
	k.refused("Head", err, eventlog.InvalidSession)
	_, err = s.AppendMessage(k.ctx, message("x"))
	k.refused("an append", err, eventlog.InvalidSession)
	_, err = s.Branch(k.ctx, eventlog.None())
	k.refused("the current branch", err, eventlog.InvalidSession)
	tree, err := s.Tree(k.ctx)
	k.must(err)
	k.refused("the tree's leaf", tree.LeafError, eventlog.InvalidSession)
	k.equal("after refused appends", before, k.state(s))
	s = k.reopen(s)
	_, err = s.Head(k.ctx)
	k.refused("Head of the session opened again", err, eventlog.InvalidSession)

	if made, err := s.AppendAt(k.ctx, eventlog.At(root.ID()), eventlog.MessageDraft(message("beside"))); err != nil || made[0].Parent() != eventlog.At(root.ID()) {
		k.Errorf("an append beside the leaf: %v", err)
	}
	k.must(s.Storage().AppendRaw(k.ctx, k.raw("leaf", "bad again", root.ID(), `,"targetId":"gone"`)))
	moved, err := s.MoveTo(k.ctx, eventlog.At(root.ID()), nil)
	k.must(err)
	k.equal("the parent of the move", "gone", moved[0].Parent().String())
	k.say(s, "healed")
	k.check(s)
}

func hugeEntry(k *kit) {
	s := k.create("huge")
	text := strings.Repeat("0123456789 0123456789 \u2028漢\n\"", 20<<20/31) // 20 MB
	e := k.say(s, text)
	k.say(s, "small")
	for range 2 {
		found, err := s.Entry(k.ctx, e.ID())
		k.must(err)
		if found.JSON() != e.JSON() {
			k.Errorf("the entry has %d bytes, %d were written", len(found.JSON()), len(e.JSON()))
		}
		if got, _ := found.Message().Get("content").Str(); got != text {
			k.Errorf("the text has %d bytes, not %d", len(got), len(text))
		}
		s = k.reopen(s)
	}
	var file bytes.Buffer
	k.must(s.Export(k.ctx, &file))
	dir := k.TempDir()
	loaded, err := k.backend.Load(k.ctx, k.newRepo(dir), dir, fileName, file.Bytes())
	k.must(err)
	if !sameEntries(k.all(s), k.all(loaded)) {
		k.Error("the export holds something else")
	}
	k.must(loaded.Close())
}

// many appends n raw messages, a thousand at a time.
func (k *kit) many(s *eventlog.Session, n int, id, parent func(i int) string) {
	k.Helper()
	batch := make([]eventlog.Entry, 0, 1000)
	for i := range n {
		batch = append(batch, k.raw("message", id(i), parent(i), rawMessage))
		if len(batch) == cap(batch) || i == n-1 {
			k.must(s.Storage().AppendRaw(k.ctx, batch...))
			batch = batch[:0]
		}
	}
}

func deepChain(k *kit) {
	depth := 100_000
	if testing.Short() {
		depth /= 10
	}
	s := k.create("deep")
	id := func(i int) string { return fmt.Sprintf("e%d", i) }
	k.many(s, depth, id, func(i int) string {
		if i == 0 {
			return "null"
		}
		return id(i - 1)
	})
	want := k.all(s)
	branch, err := s.Branch(k.ctx, eventlog.None())
	k.must(err)
	if !sameEntries(want, branch) {
		k.Fatalf("the branch has %d entries", len(branch))
	}
	c, err := s.BuildContext(k.ctx, eventlog.None())
	k.must(err)
	if len(c.Messages) != depth {
		k.Errorf("the context has %d messages", len(c.Messages))
	}
	tree, err := s.Tree(k.ctx)
	k.must(err)
	for i, n := range tree.All() {
		if n.Depth != i || n.Parent != i-1 || n.Entry.ID() != id(i) || !n.OnBranch || n.Leaf != (i == depth-1) {
			k.Fatalf("node %d of the tree is %+v", i, *n)
		}
	}
	left, err := s.CollectBranch(k.ctx, eventlog.At(id(depth-1)), eventlog.At(id(0)))
	k.must(err)
	if len(left.Entries) != depth-1 || left.CommonAncestor != eventlog.At(id(0)) {
		k.Errorf("a move to the root leaves %d entries", len(left.Entries))
	}
	m, err := s.Metadata(k.ctx)
	k.must(err)
	for _, o := range []eventlog.ForkOptions{{}, {EntryID: id(depth - 1), Position: eventlog.AtIt}} {
		o.ID, o.CWD = "fork"+o.EntryID, "/project"
		fork, err := k.repo.Fork(k.ctx, m, o)
		k.must(err)
		if !sameEntries(want, k.all(fork)) {
			k.Errorf("a fork at %q holds something else", o.EntryID)
		}
		k.must(fork.Close())
	}
	if e := k.say(s, "deeper"); e.Parent() != eventlog.At(id(depth-1)) {
		k.Errorf("the next entry is below %v", e.Parent())
	}
	s = k.reopen(s)
	if head, err := s.Head(k.ctx); err != nil || head.N != depth+1 {
		k.Errorf("opened again the session stands at %v, %v", head, err)
	}
}

func wideStar(k *kit) {
	width := 10_000
	if testing.Short() {
		width /= 10
	}
	s := k.create("wide")
	root := k.say(s, "root")
	id := func(i int) string { return fmt.Sprintf("e%d", i) }
	k.many(s, width, id, func(int) string { return root.ID() })
	tree, err := s.Tree(k.ctx)
	k.must(err)
	if len(tree.Roots) != 1 || len(tree.Nodes) != width+1 || len(tree.Nodes[0].Children) != width {
		k.Fatalf("the tree has %d nodes below %d roots", len(tree.Nodes), len(tree.Roots))
	}
	for i, at := range tree.Nodes[0].Children {
		if n := tree.Nodes[at]; n.Entry.ID() != id(i) || n.Depth != 1 || n.Parent != 0 || n.Active != (i == width-1) {
			k.Fatalf("child %d is %+v", i, n)
		}
	}
	for i := 0; i < width; i += 13 {
		branch, err := s.Branch(k.ctx, eventlog.At(id(i)))
		k.must(err)
		if !slices.Equal(ids(branch), []string{root.ID(), id(i)}) {
			k.Fatalf("the branch of %s is %v", id(i), ids(branch))
		}
	}
	m, err := s.Metadata(k.ctx)
	k.must(err)
	fork, err := k.repo.Fork(k.ctx, m, eventlog.ForkOptions{CreateOptions: eventlog.CreateOptions{ID: "fork", CWD: "/project"}, EntryID: id(5), Position: eventlog.AtIt})
	k.must(err)
	k.equal("a fork of one ray", js.Texts(root.ID(), id(5)).JSON(), idList(k.all(fork)).JSON())
	k.check(fork)
	k.check(s)
}

func existingID(k *kit) {
	s := k.create("taken")
	k.say(s, "root")
	before := k.state(s)
	m, err := s.Metadata(k.ctx)
	k.must(err)
	_, err = k.repo.Create(k.ctx, eventlog.CreateOptions{ID: "taken", CWD: "/project"})
	k.refused("a session of the same id", err, eventlog.AlreadyExists)
	_, err = k.repo.Fork(k.ctx, m, eventlog.ForkOptions{CreateOptions: eventlog.CreateOptions{ID: "taken", CWD: "/project"}})
	k.refused("a fork of the same id", err, eventlog.AlreadyExists)
	k.equal("after it", before, k.state(s))

	// Without an id each gets one of its own.
	known := map[string]bool{}
	for range 50 {
		s, err := k.repo.Create(k.ctx, eventlog.CreateOptions{CWD: "/project"})
		k.must(err)
		m, err := s.Metadata(k.ctx)
		k.must(err)
		if m.ID == "" || known[m.ID] {
			k.Errorf("a new session got the id %q", m.ID)
		}
		known[m.ID] = true
		k.must(s.Close())
	}
	k.check(s)
}

func forks(k *kit) {
	s, err := k.repo.Create(k.ctx, eventlog.CreateOptions{ID: "source", CWD: "/project", Metadata: js.Fields(member("title", js.Text("t")))})
	k.must(err)
	k.Cleanup(func() { s.Close() })
	root := k.say(s, "root")
	answer, err := s.AppendMessage(k.ctx, eventlog.Message{Value: js.Fields(member("role", js.Text("assistant")), member("content", js.List()))})
	k.must(err)
	question := k.say(s, "question")
	_, err = s.SetLabel(k.ctx, root.ID(), "start")
	k.must(err)
	_, err = s.MoveTo(k.ctx, eventlog.At(answer.ID()), nil)
	k.must(err)
	before := k.state(s)
	source, err := s.Metadata(k.ctx)
	k.must(err)
	for i, c := range []struct {
		entry    string
		position eventlog.Position
		want     []eventlog.Entry
		leaf     eventlog.Ref
	}{
		{"", "", k.all(s), eventlog.At(answer.ID())},
		{question.ID(), "", []eventlog.Entry{root, answer}, eventlog.At(answer.ID())},
		{question.ID(), eventlog.Before, []eventlog.Entry{root, answer}, eventlog.At(answer.ID())},
		{question.ID(), eventlog.AtIt, []eventlog.Entry{root, answer, question}, eventlog.At(question.ID())},
		{answer.ID(), eventlog.AtIt, []eventlog.Entry{root, answer}, eventlog.At(answer.ID())},
		{root.ID(), eventlog.Before, nil, eventlog.None()},
	} {
		fork, err := k.repo.Fork(k.ctx, source, eventlog.ForkOptions{CreateOptions: eventlog.CreateOptions{ID: fmt.Sprintf("fork-%d", i), CWD: "/elsewhere"}, EntryID: c.entry, Position: c.position})
		k.must(err)
		if got := k.all(fork); !sameEntries(c.want, got) {
			k.Errorf("a fork %q %s holds %v", c.position, c.entry, ids(got))
		}
		head, err := fork.Head(k.ctx)
		k.must(err)
		if head != (eventlog.Head{Leaf: c.leaf, N: len(c.want)}) {
			k.Errorf("a fork %q %s stands at %v", c.position, c.entry, head)
		}
		m, err := fork.Metadata(k.ctx)
		k.must(err)
		parent := eventlog.At(source.ID)
		if k.backend.Files {
			parent = eventlog.At(source.Path)
		}
		if m.ParentSession != parent || m.CWD != "/elsewhere" || js.Diff(source.Metadata, m.Metadata) != nil {
			k.Errorf("the fork's header is %s", m.Header)
		}
		e := k.say(fork, "goes its own way")
		if e.Parent() != c.leaf {
			k.Errorf("a fork goes on below %v", e.Parent())
		}
		k.check(fork)
		k.equal("the source", before, k.state(s))
	}
	k.say(s, "goes on")
	k.check(s)
}

func forkTargets(k *kit) {
	s := k.create("targets")
	root := k.say(s, "root")
	note, err := s.AppendCustomMessage(k.ctx, "note", js.Text("n"), true, js.Value{})
	k.must(err)
	k.must(s.Storage().AppendRaw(k.ctx, k.raw("message", "orphan", "gone", rawMessage)))
	source, err := s.Metadata(k.ctx)
	k.must(err)
	for what, c := range map[string]struct {
		entry    string
		position eventlog.Position
		code     eventlog.Code
	}{
		"before nothing":    {"nothing", eventlog.Before, eventlog.InvalidForkTarget},
		"at nothing":        {"nothing", eventlog.AtIt, eventlog.InvalidForkTarget},
		"before a note":     {note.ID(), "", eventlog.InvalidForkTarget},
		"at a broken entry": {"orphan", eventlog.AtIt, eventlog.InvalidSession},
		"before one":        {"orphan", eventlog.Before, eventlog.NotFound}, // of a parent that is not there
		"behind an entry":   {root.ID(), "behind", eventlog.InvalidArgument},
	} {
		_, err := k.repo.Fork(k.ctx, source, eventlog.ForkOptions{CreateOptions: eventlog.CreateOptions{ID: "f", CWD: "/project"}, EntryID: c.entry, Position: c.position})
		k.refused("a fork "+what, err, c.code)
	}
	listed, err := k.repo.List(k.ctx, "")
	k.must(err)
	if len(listed) != 1 {
		k.Errorf("refused forks left %d sessions", len(listed)-1)
	}
}

func deleted(k *kit) {
	s := k.create("doomed")
	k.say(s, "root")
	other := k.create("other")
	k.say(other, "stays")
	before := k.state(other)
	m, err := s.Metadata(k.ctx)
	k.must(err)
	k.must(s.Close())
	k.must(k.repo.Delete(k.ctx, m))
	k.must(k.repo.Delete(k.ctx, m)) // what is not there is no error
	_, err = k.repo.Open(k.ctx, m)
	k.refused("opening it", err, eventlog.NotFound)
	_, err = k.repo.Fork(k.ctx, m, eventlog.ForkOptions{CreateOptions: eventlog.CreateOptions{ID: "f", CWD: "/project"}})
	k.refused("forking it", err, eventlog.NotFound)
	listed, err := k.repo.List(k.ctx, "")
	k.must(err)
	if len(listed) != 1 || listed[0].ID != "other" {
		k.Errorf("the list is %v", listed)
	}
	again := k.create("doomed")
	if entries := k.all(again); len(entries) != 0 {
		k.Errorf("a new session of the same id holds %v", ids(entries))
	}
	k.equal("the other session", before, k.state(other))
	k.check(other)
}

func lists(k *kit) {
	clock := &script{}
	repo := k.newRepoWith(k.TempDir(), clock.source())
	for i, cwd := range []string{"/project", "/project/sub", "/project-sub", "/project", "C:\\work", "/PROJECT"} {
		clock.at(fmt.Sprintf("2026-01-01T00:00:%02d.000Z", []int{3, 1, 5, 2, 4, 6}[i]))
		s, err := repo.Create(k.ctx, eventlog.CreateOptions{ID: fmt.Sprintf("s%d", i), CWD: cwd})
		k.must(err)
		k.must(s.Close())
	}
	for cwd, want := range map[string][]string{
		"": {"s5", "s2", "s4", "s0", "s3", "s1"}, "/project": {"s0", "s3"}, "/project/sub": {"s1"}, "/project-sub": {"s2"},
		"C:\\work": {"s4"}, "/PROJECT": {"s5"}, "/nowhere": nil, "project": nil,
	} {
		listed, err := repo.List(k.ctx, cwd)
		k.must(err)
		var got []string
		for _, l := range listed {
			k.must(l.Err)
			got = append(got, l.ID)
		}
		if !slices.Equal(got, want) {
			k.Errorf("the sessions of %q are %v, not %v", cwd, got, want)
		}
	}
}

func twoSessions(k *kit) {
	a, b := k.create("a"), k.create("b")
	var wg sync.WaitGroup
	errs := make([]error, 2)
	for i, s := range []*eventlog.Session{a, b} {
		wg.Go(func() {
			for n := range 30 {
				// The same ids in both.
				if _, err := s.Append(k.ctx, eventlog.MessageDraft(message(fmt.Sprint(i))).WithID(fmt.Sprintf("e%d", n))); err != nil {
					errs[i] = err
					return
				}
			}
		})
	}
	wg.Wait()
	k.must(errors.Join(errs...))
	_, err := a.SetLabel(k.ctx, "e3", "of a")
	k.must(err)
	_, err = b.SetName(k.ctx, "of b")
	k.must(err)
	for i, s := range []*eventlog.Session{a, b} {
		for n, e := range k.all(s)[:30] {
			if e.ID() != fmt.Sprintf("e%d", n) || !e.Message().Get("content").Is(fmt.Sprint(i)) {
				k.Fatalf("entry %d of session %d is %s", n, i, e.JSON())
			}
		}
	}
	if l, err := b.Label(k.ctx, "e3"); err != nil || l != "" {
		k.Errorf("a label got into the other session: %q, %v", l, err)
	}
	if n, err := a.Name(k.ctx); err != nil || n != "" {
		k.Errorf("a name got into the other session: %q, %v", n, err)
	}
	k.check(a)
	k.check(b)
}

func readersAndWriter(k *kit) {
	s := k.create("readers")
	root := k.say(s, "root")
	done := make(chan struct{})
	var wg sync.WaitGroup
	errs := make([]error, 4)
	for r := range errs {
		wg.Go(func() {
			for last := 0; ; {
				select {
				case <-done:
					return
				default:
				}
				head, err := s.Head(k.ctx)
				var branch, entries []eventlog.Entry
				if err == nil {
					branch, err = s.Branch(k.ctx, head.Leaf)
				}
				for e, entryErr := range s.Entries(k.ctx, 0, head.N) {
					if err == nil {
						err = entryErr
					}
					entries = append(entries, e)
				}
				_, statsErr := s.Stats(k.ctx)
				_, labelsErr := s.Labels(k.ctx)
				_, contextErr := s.BuildContext(k.ctx, eventlog.None())
				err = errors.Join(err, statsErr, labelsErr, contextErr)
				switch {
				case err != nil:
				case head.N < last:
					err = fmt.Errorf("%d entries after %d", head.N, last)
				case len(entries) != head.N || entries[head.N-1].LeafAfter() != head.Leaf:
					err = fmt.Errorf("the head %v is not that of its first %d entries", head, len(entries))
				case len(branch) == 0 || branch[0].ID() != root.ID() || branch[len(branch)-1].ID() != head.Leaf.ID():
					err = fmt.Errorf("the branch of %v is %v", head, ids(branch))
				case head.N%2 == 0: // entries come in pairs behind the root
					err = fmt.Errorf("half of an append was seen: %d entries", head.N)
				}
				if err != nil {
					errs[r] = err
					return
				}
				last = head.N
			}
		})
	}
	var writeErr error
	for i := range 150 {
		pair := []eventlog.Draft{eventlog.MessageDraft(message(fmt.Sprint(i))), eventlog.LabelDraft(root.ID(), js.Text(fmt.Sprint(i)))}
		if _, writeErr = s.Append(k.ctx, pair...); writeErr != nil {
			break
		}
	}
	close(done)
	wg.Wait()
	k.must(writeErr)
	k.must(errors.Join(errs...))
	k.check(s)
}
