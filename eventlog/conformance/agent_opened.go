package conformance

import (
	"errors"
	"fmt"
	"io/fs"
	"strings"
	"time"

	"github.com/sessiontree/sessiontree/eventlog"
	"github.com/sessiontree/sessiontree/eventlog/js"
)

// onOpened are the questions about calls on the opened session, each made on a copy
// of the file as the coding agent left it after opening.
func (a *agentAsker) onOpened() []js.Member {
	after, ok := a.afterOpen()
	if !ok {
		return nil
	}
	b := &agentAsker{run: a.run, want: a.want, fields: a.fields, file: after, script: a.script, repo: a.repo, dir: a.dir}
	got := []js.Member{
		member("moves", b.each("moves", b.move)),
		member("edits", b.each("edits", b.edit)),
		member("compactions", b.each("compactions", b.compact)),
		member("branched", b.each("branched", b.branched)),
		member("forks", b.each("forks", b.fork)),
	}
	if a.fields["append"].Exists() {
		got = append(got, member("append", b.append(a.fields["append"])))
	}
	a.looped = a.looped || b.looped
	return got
}

// afterOpen is the file after the coding agent opened it. Where it was written
// anew, what it holds must be what our session holds, as Pi writes it.
func (a *agentAsker) afterOpen() ([]byte, bool) {
	after, err := fs.ReadFile(a.vectors, "after-open.jsonl")
	if errors.Is(err, fs.ErrNotExist) {
		if what, _ := agentOpening(a.file, a.missing); what == "newline" {
			return append(a.file[:len(a.file):len(a.file)], '\n'), true
		}
		return a.file, true
	}
	if err != nil {
		a.fail("after-open.jsonl", "a file", err.Error())
		return nil, false
	}
	ours := a.headers()
	for _, e := range a.entries {
		ours = append(ours, js.Canonical(e.Value()).JSON()+"\n")
	}
	if !a.hasFurtherHeaders() { // else they stand among the entries there
		a.sameBytes("after-open.jsonl", string(after), strings.Join(ours, ""))
	}
	return after, true
}

// headers is the header's line, as Pi writes it.
func (a *agentAsker) headers() []string {
	header := a.fields["header"]
	return []string{js.Canonical(header).JSON() + "\n"}
}

func (a *agentAsker) hasFurtherHeaders() bool {
	records, _ := agentRecords(a.file)
	n := 0
	for _, r := range records {
		if r.value.Get("type").Is("session") {
			n++
		}
	}
	return n > 1
}

// fresh loads a copy of the file for one call. After it the log is as before plus
// what the call appended.
func (a *agentAsker) fresh(field string) bool {
	a.script.at(agentClock)
	var err error
	if a.s, err = a.backend.Agent.Load(a.ctx, a.repo, a.dir, input, a.file, a.script.source()); err != nil {
		a.fail(field, "the session", err.Error())
		return false
	}
	if a.entries, err = all(a.ctx, a.s); err != nil {
		a.fail(field, "entries", err.Error())
		return false
	}
	a.byID = map[string]eventlog.Entry{}
	for _, e := range a.entries {
		a.byID[e.ID()] = e
	}
	head, err := a.s.Head(a.ctx)
	if err != nil {
		a.fail(field, "the leaf", err.Error())
		return false
	}
	a.leaf = head.Leaf
	return true
}

// wrote is what is new in the log since fresh, and whether the session's file grew
// by just the lines of it.
func (a *agentAsker) wrote(field string) (added []eventlog.Entry, lines bool) {
	now, err := all(a.ctx, a.s)
	if err != nil {
		a.fail(field, "entries", err.Error())
		return nil, false
	}
	added = now[min(len(a.entries), len(now)):]
	grown := ""
	for _, e := range added {
		grown += e.Line() + "\n"
	}
	if a.backend.Files {
		return added, a.fileOf(a.s) == string(a.file)+grown
	}
	return added, sameEntries(now[:min(len(a.entries), len(now))], a.entries)
}

// asNew is an entry with its new id named $new.
func asNew(e eventlog.Entry) js.Value {
	v, err := js.Parse(strings.ReplaceAll(e.JSON(), js.Text(e.ID()).JSON(), `"$new"`))
	if err != nil {
		return js.Value{}
	}
	return v
}

func newIDs(entries []eventlog.Entry, made string) js.Value {
	values := make([]js.Value, len(entries))
	for i, e := range entries {
		values[i] = idValue(e.ID())
		if e.ID() == made {
			values[i] = js.Text("$new")
		}
	}
	return js.List(values...)
}

func (a *agentAsker) move(field string, want js.Value) js.Value {
	move, target := want.Get("move"), eventlog.RefOf(want.Get("entryId"))
	got := []js.Member{member("move", move)}
	if want.Get("entryId").Exists() {
		got = append(got, member("entryId", nullFor(target.Value())))
	} else {
		target = eventlog.None()
	}
	if !a.fresh(field) {
		return js.Value{}
	}
	defer a.s.Close()
	switch {
	case move.Is("branchWithSummary"):
		return a.summarised(field, want, got, target)
	case !move.Is("branch") && !move.Is("resetLeaf"):
		a.fail(field, "a move that is known", move.JSON())
	}
	before := a.leaf
	_, err := a.s.MoveTo(a.ctx, target, nil)
	added, unchanged := a.wrote(field)
	if len(added) > 0 || !unchanged {
		a.fail(field, "nothing written", fmt.Sprint(ids(added)))
	}
	head, headErr := a.s.Head(a.ctx)
	if headErr != nil {
		return a.wrong(field, headErr)
	}
	if a.leaf = head.Leaf; err != nil {
		return js.Fields(append(got, member("error", a.agentError(field, want.Get("error"), err, false)), member("leafId", nullFor(a.leaf.Value())), member("wrote", js.Text("unchanged")))...)
	}
	got = append(got, member("leafId", nullFor(a.leaf.Value())), member("wrote", js.Text("unchanged")))
	branch := js.Fields(member("ids", js.List()))
	if !target.IsNone() {
		branch = a.branchFrom(field+".branch", want.Get("branch"), eventlog.None())
	} else if b, err := a.s.Branch(a.ctx, eventlog.None()); err != nil || len(b) > 0 {
		a.fail(field+".branch", "no branch", fmt.Sprint(ids(b), err))
	}
	got = append(got, member("branch", branch))
	reopened, err := a.reopenedLeaf(field)
	if err != nil {
		return a.wrong(field, err)
	}
	pi := nullFor(before.Value())
	if reopened != target {
		a.fail(field+".leafIdReopened", "the leaf "+target.String(), reopened.String())
	} else if js.Diff(pi, nullFor(reopened.Value())) != nil {
		a.deviate(LeafSurvives, field+".leafIdReopened")
	}
	e, err := a.s.AppendMessage(a.ctx, oneMore())
	if err != nil {
		return a.wrong(field, err)
	}
	return js.Fields(append(got, member("leafIdReopened", pi), member("nextParentId", e.Parent().Value()))...)
}

// reopenedLeaf closes the session and opens it again.
func (a *agentAsker) reopenedLeaf(field string) (eventlog.Ref, error) {
	m, err := a.s.Metadata(a.ctx)
	if err != nil {
		return eventlog.None(), err
	}
	if err := a.s.Close(); err != nil {
		return eventlog.None(), err
	}
	if a.s, err = a.repo.Open(a.ctx, m); err != nil {
		return eventlog.None(), err
	}
	head, err := a.s.Head(a.ctx)
	return head.Leaf, err
}

func oneMore() eventlog.Message {
	return eventlog.UserMessage("one more", time.UnixMilli(1785585600000))
}

// summarised moves with a summary.
func (a *agentAsker) summarised(field string, want js.Value, got []js.Member, target eventlog.Ref) js.Value {
	details := js.Fields(member("readFiles", js.Texts("a.txt")), member("modifiedFiles", js.List()))
	_, err := a.s.MoveTo(a.ctx, target, &eventlog.Summary{Text: "what the branch that was left had found out", Details: details, FromHook: js.Boolean(false)})
	added, oneLine := a.wrote(field)
	if err != nil {
		return js.Fields(append(got, member("error", a.agentError(field, want.Get("error"), err, false)), member("leafId", nullFor(a.leaf.Value())), member("wrote", js.Text("unchanged")))...)
	}
	if len(added) != 1 {
		return a.wrong(field, fmt.Errorf("%d new entries", len(added)))
	}
	head, err := a.s.Head(a.ctx)
	if err != nil {
		return a.wrong(field, err)
	}
	return js.Fields(append(got,
		member("entry", asNew(added[0])),
		member("leafIsNew", js.Boolean(head.Leaf == eventlog.At(added[0].ID()))),
		member("wroteOneLine", js.Boolean(oneLine)))...)
}

func (a *agentAsker) edit(field string, want js.Value) js.Value {
	target, replacement := eventlog.RefOf(want.Get("targetId")), want.Get("replacement")
	got := []js.Member{member("targetId", target.Value()), member("replacement", replacement)}
	if !a.fresh(field) {
		return js.Value{}
	}
	defer a.s.Close()
	e, err := a.s.EditContext(a.ctx, target.ID(), replacement)
	added, _ := a.wrote(field)
	if err != nil {
		if len(added) > 0 {
			a.fail(field, "nothing written", fmt.Sprint(ids(added)))
		}
		return js.Fields(append(got, member("error", a.agentError(field, want.Get("error"), err, a.endlessFrom(a.leaf.ID()))))...)
	}
	got = append(got, member("entry", asNew(e)))
	entries, err := a.s.ContextEntries(a.ctx, eventlog.None())
	if err != nil {
		return js.Fields(append(got, member("contextError", a.agentError(field, want.Get("contextError"), err, a.endlessFrom(a.leaf.ID()))))...)
	}
	gives := js.NullValue()
	i := 0
	for messages, err := range eventlog.CodingAgent.Projected(entries, eventlog.ContextOptions{}) {
		if err != nil {
			return js.Fields(append(got, member("contextError", a.agentError(field, want.Get("contextError"), err, false)))...)
		}
		if entries[i].ID() == target.ID() {
			gives = messageList(messages)
		}
		i++
	}
	return js.Fields(append(got, member("messagesOfTarget", gives))...)
}

func (a *agentAsker) compact(field string, want js.Value) js.Value {
	var got []js.Member
	first := want.Get("firstKeptEntryId")
	if first.Exists() {
		got = append(got, member("firstKeptEntryId", first))
	}
	if !a.fresh(field) {
		return js.Value{}
	}
	defer a.s.Close()
	e, err := a.s.AppendCompaction(a.ctx, eventlog.Compaction{Summary: "the summary of a compaction", FirstKeptEntryID: first, TokensBefore: 4321})
	if err != nil {
		return js.Fields(append(got, member("error", a.agentError(field, want.Get("error"), err, a.endlessFrom(a.leaf.ID()))))...)
	}
	got = append(got, member("entry", asNew(e)))
	entries, err := a.s.ContextEntries(a.ctx, eventlog.None())
	if err != nil {
		return js.Fields(append(got, member("contextError", a.agentError(field, want.Get("contextError"), err, false)))...)
	}
	return js.Fields(append(append(got, member("contextEntryIds", newIDs(entries, e.ID()))), a.counts(field, want, entries)...)...)
}

func (a *agentAsker) branched(field string, want js.Value) js.Value {
	from := eventlog.RefOf(want.Get("leafId"))
	if !a.fresh(field) {
		return js.Value{}
	}
	defer a.s.Close()
	m, err := a.s.Metadata(a.ctx)
	if err != nil {
		return a.wrong(field, err)
	}
	made, err := a.repo.Fork(a.ctx, m, eventlog.ForkOptions{
		CreateOptions: eventlog.CreateOptions{CWD: agentCWD(m.CWD), ParentSession: eventlog.At(agentInputPath)},
		EntryID:       from.ID(), Position: eventlog.AtIt,
	})
	if err != nil {
		return js.Fields(member("leafId", from.Value()), member("error", a.agentError(field, want.Get("error"), err, a.endlessFrom(from.ID()))))
	}
	defer a.dropped(made)
	entries, err := all(a.ctx, made)
	if err != nil {
		return a.wrong(field, err)
	}
	var kept, labels, boundaries []js.Value
	var lines strings.Builder
	parent := eventlog.None()
	names := map[string]js.Value{}
	for _, e := range entries {
		if e.Parent() != parent {
			a.fail(field, "a chain", e.JSON())
		}
		parent = eventlog.At(e.ID())
		if source, ok := a.byID[e.ID()]; ok {
			kept = append(kept, idValue(e.ID()))
			canonical := js.Canonical(e.Value()).JSON()
			if canonical != e.JSON() || source.Type() != e.Type() {
				a.deviate(BytesKept, field+".keptSha256")
			}
			lines.WriteString(canonical + "\n")
			if e.Type() == eventlog.TypeCompaction {
				boundaries = append(boundaries, js.List(idValue(e.ID()), nullFor(e.Get("firstKeptEntryId"))))
			}
			continue
		}
		labels = append(labels, js.Fields(member("targetId", e.Get("targetId")), member("label", e.Get("label")), member("timestamp", e.Get("timestamp"))))
		names[e.ID()] = js.Text(fmt.Sprintf("$label%d", len(labels)))
	}
	named := func(id string) js.Value {
		if n, ok := names[id]; ok {
			return n
		}
		return idValue(id)
	}
	head, err := made.Head(a.ctx)
	if err != nil {
		return a.wrong(field, err)
	}
	written := hasConversation(entries)
	if !written {
		a.deviate(ExistsAtOnce, field+".written")
	}
	got := []js.Member{
		member("leafId", from.Value()),
		member("header", a.newHeader(made)),
		member("written", js.Boolean(written)),
		member("keptIds", js.List(kept...)),
		member("keptSha256", sum(lines.String())),
		member("boundaries", js.List(boundaries...)),
		member("newLabels", js.List(labels...)),
		member("newLeafId", named(head.Leaf.ID())),
	}
	context, err := made.ContextEntries(a.ctx, eventlog.None())
	if err != nil {
		return js.Fields(append(got, member("contextError", a.agentError(field, want.Get("contextError"), err, false)))...)
	}
	contextIDs := make([]js.Value, len(context))
	for i, e := range context {
		contextIDs[i] = named(e.ID())
	}
	return js.Fields(append(append(got, member("contextEntryIds", js.List(contextIDs...))), a.counts(field, want, context)...)...)
}

// newHeader is a new session's header, with its id named $session.
func (a *agentAsker) newHeader(s *eventlog.Session) js.Value {
	m, err := s.Metadata(a.ctx)
	if err != nil {
		return a.wrong("header", err)
	}
	header, err := js.Parse(m.Header)
	if err != nil {
		return a.wrong("header", err)
	}
	return js.WithMember(header, "id", js.Text("$session"))
}

// dropped closes and deletes a session that a question made.
func (a *agentAsker) dropped(s *eventlog.Session) {
	m, err := s.Metadata(a.ctx)
	if err == nil {
		s.Close()
		err = a.repo.Delete(a.ctx, m)
	}
	if err != nil {
		a.fail("delete", "no error", err.Error())
	}
}

func (a *agentAsker) fork(field string, want js.Value) js.Value {
	of := want.Get("of")
	if !a.fresh(field) {
		return js.Value{}
	}
	defer a.s.Close()
	m, err := a.s.Metadata(a.ctx)
	if err != nil {
		return a.wrong(field, err)
	}
	made, err := a.repo.Fork(a.ctx, m, eventlog.ForkOptions{CreateOptions: eventlog.CreateOptions{ID: "the-fork", CWD: "/other/project", ParentSession: eventlog.At(agentInputPath)}})
	if err != nil {
		return js.Fields(member("of", of), member("error", a.agentError(field, want.Get("error"), err, false)))
	}
	defer a.dropped(made)
	header, err := made.Metadata(a.ctx)
	if err != nil {
		return a.wrong(field, err)
	}
	h, _ := js.Parse(header.Header)
	name := agentFileName(h)
	if a.backend.Files {
		name = baseName(header.Path)
	}
	got := []js.Member{member("of", of), member("fileName", js.Text(name)), member("header", h)}
	if of.Is("found") {
		return js.Fields(append(got, a.forkedAsFound(field)...)...)
	}
	entries, err := all(a.ctx, made)
	if err != nil {
		return a.wrong(field, err)
	}
	head, err := made.Head(a.ctx)
	if err != nil {
		return a.wrong(field, err)
	}
	if !sameEntries(entries, a.entries) {
		a.fail(field+".entryIds", "the source's entries, byte for byte", fmt.Sprint(ids(entries)))
	}
	var lines strings.Builder
	for _, e := range entries {
		canonical := js.Canonical(e.Value()).JSON()
		if canonical != e.JSON() {
			a.deviate(BytesKept, field+".bodySha256")
		}
		lines.WriteString(canonical + "\n")
	}
	return js.Fields(append(got,
		member("entryIds", entryIDs(entries)),
		member("leafId", nullFor(head.Leaf.Value())),
		member("bodySha256", sum(lines.String())))...)
}

// forkedAsFound is the coding agent's fork of a file that was not migrated: its
// records as they are.
func (a *agentAsker) forkedAsFound(field string) []js.Member {
	a.deviate(ForksMigrated, field)
	file, err := fs.ReadFile(a.vectors, input)
	if err != nil {
		a.fail(field, "a file", err.Error())
	}
	records, _ := agentRecords(file)
	var lines strings.Builder
	var list []js.Value
	leaf := js.NullValue()
	for _, r := range records {
		if r.value.Get("type").Is("session") {
			continue
		}
		lines.WriteString(js.Canonical(r.value).JSON() + "\n")
		list = append(list, nullFor(r.value.Get("id")))
		leaf = nullFor(r.value.Get("id"))
	}
	return []js.Member{member("entryIds", js.List(list...)), member("leafId", leaf), member("bodySha256", sum(lines.String()))}
}

func (a *agentAsker) append(want js.Value) js.Value {
	if !a.fresh("append") {
		return js.Value{}
	}
	defer func() { a.s.Close() }()
	e, err := a.s.AppendMessage(a.ctx, oneMore())
	if err != nil {
		return js.Fields(member("error", a.agentError("append", want.Get("error"), err, false)))
	}
	added, oneLine := a.wrote("append")
	if len(added) != 1 {
		return a.wrong("append", fmt.Errorf("%d new entries", len(added)))
	}
	leaf, err := a.reopenedLeaf("append")
	if err != nil {
		return js.Fields(member("entry", asNew(e)), member("wroteOneLine", js.Boolean(oneLine)), member("reopened", js.Fields(member("error", a.agentError("append.reopened", want.Get("reopened").Get("error"), err, false)))))
	}
	entries, err := all(a.ctx, a.s)
	if err != nil {
		return a.wrong("append", err)
	}
	count := map[string]bool{}
	for _, e := range entries {
		count[e.ID()] = true
	}
	return js.Fields(
		member("entry", asNew(e)),
		member("wroteOneLine", js.Boolean(oneLine)),
		member("reopened", js.Fields(member("entryCount", js.Num(float64(len(count)))), member("leafIsNew", js.Boolean(leaf == eventlog.At(e.ID()))))))
}
