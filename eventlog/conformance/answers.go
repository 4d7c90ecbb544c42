package conformance

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io/fs"
	"math"
	"os"
	"strings"
	"time"

	"github.com/sessiontree/sessiontree/eventlog"
	"github.com/sessiontree/sessiontree/eventlog/js"
)

// asker asks a session the questions of an expect.json. Each answer is built in
// the form that the vectors have, so that the whole of it can be compared.
type asker struct {
	*run
	s      *eventlog.Session
	repo   eventlog.Repo
	prefix string   // before the names of fields
	want   js.Value // the object with the answers
	fields map[string]js.Value
	file   string // the bytes of session.jsonl
	// written says that the file is one that Pi or this module wrote, so that an
	// export must give its bytes.
	written bool

	entries []eventlog.Entry
	log     piLog
	leaf    eventlog.Ref
	leafErr error
	paths   map[string][]string // of the branches asked for, by from
	// lookUps is how many entries raise the bound on look-ups; see isEndless.
	lookUps int
}

// ask asks all of it. besides are members of want that are no answers.
func (a *asker) ask(besides ...string) {
	a.fields = map[string]js.Value{}
	for _, m := range a.want.Members() {
		a.fields[m.Key] = m.Value
	}
	var err error
	if a.entries, err = all(a.ctx, a.s); err != nil {
		a.fail(a.at(a.prefix+"entryIds"), "entries", err.Error())
		return
	}
	a.log = newPiLog(a.entries)
	head, err := a.s.Head(a.ctx)
	a.leaf, a.leafErr = head.Leaf, err
	a.paths = map[string][]string{}

	got := []js.Member{
		member("metadata", a.metadata()),
		member("leafId", a.leafID()),
		member("leafIdError", a.leafIDError(a.prefix+"leafIdError", a.fields["leafIdError"], err)),
		member("entryCount", js.Num(float64(len(a.entries)))),
		member("entryIds", idList(a.entries)),
		member("windows", a.each("windows", a.window)),
		member("findEntries", a.findEntries()),
		member("labels", a.labels()),
		member("branches", a.each("branches", a.branch)),
		member("contextEntries", a.each("contextEntries", a.contextEntries)),
		member("currentBranch", a.branchFrom("currentBranch", a.fields["currentBranch"], eventlog.None())),
		member("branchOfNull", a.branchOfNull()),
		member("contexts", a.each("contexts", a.context)),
		member("currentContext", a.current("currentContext", a.fields["currentContext"], a.currentContext)),
		member("currentLlm", a.current("currentLlm", a.fields["currentLlm"], a.llm)),
		member("currentText", a.current("currentText", a.fields["currentText"], a.text)),
		member("collect", a.each("collect", a.collect)),
		member("bodySha256", a.bodySum()),
		member("forks", a.forks()),
	}
	got = append(got, a.name()...)
	got = append(got, a.stats()...)
	a.questions()
	if differs, ok := a.fields["liveDiffers"]; ok {
		// Ours answers alike live and read again, so such a case asks no more of it.
		for v := range differs.Elements() {
			if _, known := a.fields[text(v)]; !known {
				a.fail(a.at(a.prefix+"liveDiffers"), "names of answers", shown(v))
			}
		}
		besides = append(besides, "liveDiffers")
	}
	a.compare(a.prefix, a.want, got, besides...)
}

// questions checks that there are any, and that two lists that ask about the
// same branches do.
func (a *asker) questions() {
	for _, list := range []string{"windows", "forks", "branches", "contexts", "collect"} {
		if list != "windows" && list != "forks" && len(a.entries) == 0 {
			continue
		}
		if none := a.fields[list].JSON(); none == "[]" {
			a.fail(a.at(a.prefix+list), "a question", none)
		}
	}
	var contexts []js.Value
	for c := range a.fields["contextEntries"].Elements() {
		contexts = append(contexts, c)
	}
	for b := range a.fields["branches"].Elements() {
		from := b.Get("from")
		if len(contexts) > 0 && js.Diff(contexts[0].Get("from"), from) == nil {
			contexts = contexts[1:]
		} else if !b.Get("error").Exists() {
			a.fail(a.at(a.prefix+"contextEntries"), "one for each branch", "none from "+shown(from))
			return
		}
	}
	if len(contexts) > 0 {
		a.fail(a.at(a.prefix+"contextEntries"), "one for each branch", "another from "+shown(contexts[0].Get("from")))
	}
}

// each answers a list of questions.
func (a *asker) each(list string, answer func(field string, want js.Value) js.Value) js.Value {
	var got []js.Value
	for w := range a.fields[list].Elements() {
		got = append(got, answer(fmt.Sprintf("%s%s[%d]", a.prefix, list, len(got)), w))
	}
	return js.List(got...)
}

// failed is the error of a question that starts walks at the entries from.
func (a *asker) failed(field string, want js.Value, err error, from ...string) js.Value {
	return a.run.failed(field+".error", want.Get("error"), err, func() bool {
		for _, id := range from {
			if a.log.endless(id) {
				return true
			}
		}
		return false
	}, a.lookUps)
}

// object is v, or an empty object where v is none: arguments are always there.
func object(v js.Value) js.Value {
	if v.Kind() != js.Object {
		return js.Fields()
	}
	return v
}

func (a *asker) wrong(field string, err error) js.Value {
	a.fail(a.at(field), "an answer", err.Error())
	return js.Value{}
}

func metadataValue(m eventlog.Metadata) js.Value {
	parent := js.Value{}
	if !m.ParentSession.IsNone() {
		parent = m.ParentSession.Value()
	}
	return js.Fields(
		member("id", js.Text(m.ID)),
		member("createdAt", js.Text(m.CreatedAt)),
		member("cwd", js.Text(m.CWD)),
		member("parentSessionPath", parent),
		member("metadata", m.Metadata))
}

func (a *asker) metadata() js.Value {
	m, err := a.s.Metadata(a.ctx)
	if err != nil {
		return a.wrong(a.prefix+"metadata", err)
	}
	return metadataValue(m)
}

func (a *asker) leafID() js.Value {
	if a.leafErr != nil {
		return js.NullValue()
	}
	return a.leaf.Value()
}

func (r *run) leafIDError(field string, want js.Value, err error) js.Value {
	if err == nil {
		return js.Value{}
	}
	return r.failed(field, want, err, nil, 0)
}

func (a *asker) window(field string, want js.Value) js.Value {
	args := want.Get("args")
	after, limit, hasLimit := 0, eventlog.All, false
	for _, m := range args.Members() {
		n, ok := m.Value.Float()
		if !ok || n != float64(int(n)) {
			return a.wrong(field, fmt.Errorf("a window of %s", args.JSON()))
		}
		switch m.Key {
		case "afterEntrySeq":
			after = int(n)
		case "limit":
			limit, hasLimit = int(n), true
		default:
			return a.wrong(field, fmt.Errorf("an argument %q that the runner does not know", m.Key))
		}
	}
	var entries []eventlog.Entry
	var err error
	for e, windowErr := range a.s.Entries(a.ctx, after, limit) {
		if err = windowErr; err != nil {
			break
		}
		entries = append(entries, e)
	}
	found := ids(entries)
	switch {
	case after < 0 || limit < 0:
		if eventlog.CodeOf(err) != eventlog.InvalidArgument {
			return a.wrong(field, fmt.Errorf("a negative window is not refused as invalid_argument, but gives %q and the error %w", found, err))
		}
		found = piSlice(ids(a.entries), after, limit, hasLimit)
		a.deviate(NegativeWindows, field)
	case err != nil:
		return a.wrong(field, err)
	}
	return js.Fields(member("args", object(args)), member("ids", js.Texts(found...)))
}

func (a *asker) findEntries() js.Value {
	types := eventlog.Types()
	known := map[eventlog.Type]bool{}
	for _, t := range types {
		known[t] = true
	}
	for _, e := range a.entries {
		if t := e.Type(); !known[t] {
			known[t] = true
			types = append(types, t)
		}
	}
	var got []js.Member
	for _, t := range types {
		found, err := a.s.FindEntries(a.ctx, t)
		if err != nil {
			return a.wrong(a.prefix+"findEntries", err)
		}
		got = append(got, member(string(t), idList(found)))
	}
	return js.Fields(got...)
}

// labels asks for all labels, and for those of entries by themselves.
func (a *asker) labels() js.Value {
	labels, err := a.s.Labels(a.ctx)
	if err != nil {
		return a.wrong(a.prefix+"labels", err)
	}
	step := max(1, len(a.entries)/100) // in long logs, not every entry
	for i := 0; i < len(a.entries); i += step {
		e := a.entries[i]
		if l, err := a.s.Label(a.ctx, e.ID()); err != nil || l != labels[e.ID()] {
			return a.wrong(a.prefix+"labels", fmt.Errorf("the label of %s alone is %q (%v), among all it is %q", e.ID(), l, err, labels[e.ID()]))
		}
	}
	return labelsValue(labels)
}

func labelsValue(labels map[string]string) js.Value {
	var got []js.Member
	for id, l := range labels {
		got = append(got, member(id, js.Text(l)))
	}
	return js.Fields(got...)
}

func (a *asker) name() []js.Member {
	name, err := a.s.Name(a.ctx)
	v := js.NullValue()
	if name != "" {
		v = js.Text(name)
	}
	return []js.Member{
		member("sessionName", v),
		member("sessionNameError", a.leafIDError(a.prefix+"sessionNameError", a.fields["sessionNameError"], err)),
	}
}

func (a *asker) stats() []js.Member {
	stats, err := a.s.Stats(a.ctx)
	v := js.NullValue()
	if err == nil {
		v = js.Fields(
			member("messageCount", js.Num(float64(stats.Messages))),
			member("cachedTokens", js.Num(stats.CachedTokens)),
			member("uncachedTokens", js.Num(stats.UncachedTokens)),
			member("totalTokens", js.Num(stats.TotalTokens)),
			member("costTotal", js.Num(stats.Cost)))
	}
	return []js.Member{
		member("stats", v),
		member("statsError", a.leafIDError(a.prefix+"statsError", a.fields["statsError"], err)),
	}
}

func (a *asker) branch(field string, want js.Value) js.Value {
	from := text(want.Get("from"))
	branch, err := a.s.Branch(a.ctx, eventlog.At(from))
	if err != nil {
		return js.Fields(member("from", js.Text(from)), member("error", a.failed(field, want, err, from)))
	}
	a.paths[from] = ids(branch)
	return js.Fields(member("from", js.Text(from)), member("ids", idList(branch)))
}

func (a *asker) contextEntries(field string, want js.Value) js.Value {
	from := text(want.Get("from"))
	entries, err := a.s.ContextEntries(a.ctx, eventlog.At(from))
	if err != nil {
		return js.Fields(member("from", js.Text(from)), member("error", a.failed(field, want, err, from)))
	}
	got := idList(entries)
	if path, ok := a.paths[from]; ok && got == js.Texts(path...) {
		return js.Fields(member("from", js.Text(from)), member("sameAsBranch", js.Boolean(true)))
	}
	return js.Fields(member("from", js.Text(from)), member("ids", got))
}

// branchFrom answers {ids} or {error}; from none is the current leaf.
func (a *asker) branchFrom(field string, want js.Value, from eventlog.Ref) js.Value {
	branch, err := a.s.Branch(a.ctx, from)
	if err != nil {
		return js.Fields(member("error", a.failed(a.prefix+field, want, err, a.start(from))))
	}
	return js.Fields(member("ids", idList(branch)))
}

// start is the entry at which a walk from from starts.
func (a *asker) start(from eventlog.Ref) string {
	if from.IsNone() {
		from = a.leaf
	}
	return from.ID()
}

func (a *asker) branchOfNull() js.Value {
	want := a.fields["branchOfNull"]
	storage, err := a.s.Storage().Branch(a.ctx, eventlog.None())
	if err != nil {
		return a.wrong(a.prefix+"branchOfNull.storage", err)
	}
	return js.Fields(
		member("session", a.branchFrom("branchOfNull.session", want.Get("session"), eventlog.None())),
		member("storage", js.Fields(member("ids", idList(storage)))))
}

func (a *asker) context(field string, want js.Value) js.Value {
	from := text(want.Get("from"))
	c, err := a.s.BuildContext(a.ctx, eventlog.At(from))
	if err != nil {
		return js.Fields(member("from", js.Text(from)), member("error", a.failed(field, want, err, from)))
	}
	return js.Fields(append([]js.Member{member("from", js.Text(from))}, contextMembers(c)...)...)
}

// current answers a question about the current context. Pi looks projectors up
// in an object there, where it finds JavaScript's own methods too.
func (a *asker) current(field string, want js.Value, answer func(o eventlog.ContextOptions) ([]js.Member, error)) js.Value {
	field = a.prefix + field
	with := func(o eventlog.ContextOptions) js.Value {
		got, err := answer(o)
		if err != nil {
			return js.Fields(member("error", a.run.failed(field+".error", want.Get("error"), err, func() bool { return a.log.endless(a.leaf.ID()) }, a.lookUps)))
		}
		return js.Fields(got...)
	}
	got := with(eventlog.ContextOptions{})
	if !a.hasObjectMethod() || js.Diff(want, js.Canonical(got)) == nil {
		return got
	}
	if pi := with(piProjectors()); js.Diff(want, js.Canonical(pi)) == nil {
		a.deviate(ObjectMethods, field)
		return pi
	}
	return got
}

// hasObjectMethod says whether a custom entry is named like a method that every
// object of JavaScript has.
func (a *asker) hasObjectMethod() bool {
	for _, e := range a.entries {
		if e.Type() == eventlog.TypeCustom && piProjectors().Projectors[text(e.Get("customType"))] != nil {
			return true
		}
	}
	return false
}

func (a *asker) currentContext(o eventlog.ContextOptions) ([]js.Member, error) {
	c, err := a.s.BuildContext(a.ctx, eventlog.None(), o)
	return contextMembers(c), err
}

func contextMembers(c eventlog.Context) []js.Member {
	model, tools := js.NullValue(), js.NullValue()
	if c.Model != nil {
		model = js.Fields(member("provider", c.Model.Provider), member("modelId", c.Model.ID))
	}
	if c.ActiveTools != nil {
		tools = js.List(c.ActiveTools...)
	}
	return []js.Member{
		member("thinkingLevel", c.ThinkingLevel),
		member("model", model),
		member("activeToolNames", tools),
		member("messages", messageList(c.Messages)),
	}
}

func messageList(messages []eventlog.Message) js.Value {
	values := make([]js.Value, len(messages))
	for i, m := range messages {
		values[i] = m.Value
	}
	return js.List(values...)
}

// currentLLM is what the model is sent.
func (a *asker) currentLLM(o eventlog.ContextOptions) ([]eventlog.Message, error) {
	c, err := a.s.BuildContext(a.ctx, eventlog.None(), o)
	if err != nil {
		return nil, err
	}
	return eventlog.Harness.ToLLM(c.Messages)
}

func (a *asker) llm(o eventlog.ContextOptions) ([]js.Member, error) {
	messages, err := a.currentLLM(o)
	return []js.Member{member("messages", messageList(messages))}, err
}

func (a *asker) text(o eventlog.ContextOptions) ([]js.Member, error) {
	messages, err := a.currentLLM(o)
	if err != nil {
		return nil, err
	}
	conversation, err := eventlog.Harness.ConversationText(messages)
	return []js.Member{member("text", js.Text(conversation))}, err
}

func (a *asker) collect(field string, want js.Value) js.Value {
	old, target := ref(want.Get("oldLeafId")), ref(want.Get("targetId"))
	got := []js.Member{member("oldLeafId", old.Value()), member("targetId", target.Value())}
	left, err := a.s.CollectBranch(a.ctx, old, target)
	if err != nil {
		failed := a.run.failed(field+".error", want.Get("error"), err, func() bool {
			return a.log.endless(old.ID()) || a.log.endless(a.start(target)) || a.log.endlessUp(old.ID())
		}, a.lookUps)
		return js.Fields(append(got, member("error", failed))...)
	}
	var prepared []js.Value
	for w := range want.Get("prepared").Elements() {
		prepared = append(prepared, a.prepared(fmt.Sprintf("%s.prepared[%d]", field, len(prepared)), w, left.Entries))
	}
	if len(prepared) == 0 {
		a.fail(a.at(field+".prepared"), "a budget", shown(want.Get("prepared")))
	}
	return js.Fields(append(got,
		member("entryIds", idList(left.Entries)),
		member("commonAncestorId", left.CommonAncestor.Value()),
		member("prepared", js.List(prepared...)))...)
}

func (a *asker) prepared(field string, want js.Value, entries []eventlog.Entry) js.Value {
	budget := member("tokenBudget", want.Get("tokenBudget"))
	n, ok := budget.Value.Float()
	if !ok {
		return a.wrong(field, fmt.Errorf("a budget of %s", budget.Value.JSON()))
	}
	p, err := eventlog.Harness.PrepareBranch(entries, n)
	var messages []eventlog.Message
	if err == nil {
		messages, err = eventlog.Harness.ToLLM(p.Messages)
	}
	var conversation string
	if err == nil {
		conversation, err = eventlog.Harness.ConversationText(messages)
	}
	if err != nil {
		return js.Fields(budget, member("error", a.failed(field, want, err)))
	}
	roles := make([]js.Value, len(p.Messages))
	for i, m := range p.Messages {
		roles[i] = m.Get("role")
	}
	return js.Fields(budget,
		member("totalTokens", js.Num(p.Tokens)),
		member("roles", js.List(roles...)),
		member("readFiles", js.List(p.ReadFiles...)),
		member("modifiedFiles", js.List(p.ModifiedFiles...)),
		member("text", js.Text(conversation)))
}

// bodySum is about the file; where the file is one that an export gives, the
// export must give it.
func (a *asker) bodySum() js.Value {
	if a.written {
		a.sameBytes(a.prefix+"export", lines(a.file), a.export(a.s))
	}
	return sum(body(a.file))
}

func (r *run) export(s *eventlog.Session) string {
	var b bytes.Buffer
	if err := s.Export(r.ctx, &b); err != nil {
		r.fail(r.at("export"), "the session's lines", err.Error())
	}
	return b.String()
}

// fileOf is the session's file as it is now, an export where there are no files.
func (r *run) fileOf(s *eventlog.Session) string {
	if !r.backend.Files {
		return r.export(s)
	}
	m, err := s.Metadata(r.ctx)
	var b []byte
	if err == nil {
		b, err = os.ReadFile(m.Path)
	}
	if err != nil {
		r.fail(r.at("file"), "the session's file", err.Error())
	}
	return string(b)
}

// sameFile compares a session's file, or where there are no files its export.
func (r *run) sameFile(name, want string, s *eventlog.Session) {
	if !r.backend.Files {
		want = lines(want)
	}
	r.sameBytes(name, want, r.fileOf(s))
}

// lines is a session file as an export gives it: the white space around lines
// is no part of an entry.
func lines(file string) string {
	var b strings.Builder
	for l := range strings.Lines(file) {
		if l = strings.Trim(l, " \t\r\n"); l != "" {
			b.WriteString(l + "\n")
		}
	}
	return b.String()
}

func body(file string) string {
	_, body, _ := strings.Cut(file, "\n")
	return body
}

func sum(s string) js.Value {
	h := sha256.Sum256([]byte(s))
	return js.Text(hex.EncodeToString(h[:]))
}

// canonicalLines is a text of JSON lines as Pi would write them. A case asks for
// the same lines many times.
func (r *run) canonicalLines(text string) string {
	if r.canonical == nil {
		r.canonical = map[string]string{}
	}
	out := make([]byte, 0, len(text))
	for line := range strings.Lines(text) {
		made, ok := r.canonical[line]
		if !ok {
			if v, err := js.Parse(line); err == nil {
				made = js.Canonical(v).JSON() + "\n"
			}
			r.canonical[line] = made
		}
		out = append(out, made...)
	}
	return string(out)
}

// forks are numbered from 1, and made with these options.
func (a *asker) forks() js.Value {
	n := 0
	return a.each("forks", func(field string, want js.Value) js.Value {
		n++
		return a.fork(field, want, eventlog.CreateOptions{
			ID: fmt.Sprintf("fork-%d", n), CWD: "/project", ParentSession: eventlog.At("session.jsonl"),
		})
	})
}

// fork makes a fork, reads it again, asks it, and deletes it.
func (a *asker) fork(field string, want js.Value, create eventlog.CreateOptions) js.Value {
	args := want.Get("args")
	o := eventlog.ForkOptions{CreateOptions: create, EntryID: text(args.Get("entryId")), Position: eventlog.Position(text(args.Get("position")))}
	for _, m := range args.Members() {
		if m.Key != "entryId" && m.Key != "position" {
			return a.wrong(field, fmt.Errorf("an argument %q that the runner does not know", m.Key))
		}
	}
	source, err := a.s.Metadata(a.ctx)
	if err != nil {
		return a.wrong(field, err)
	}
	made, err := a.repo.Fork(a.ctx, source, o)
	if err != nil {
		return js.Fields(member("args", object(args)), member("error", a.failed(field, want, err, o.EntryID, a.log[o.EntryID].Parent().ID())))
	}
	m, err := made.Metadata(a.ctx)
	if err != nil {
		return a.wrong(field, err)
	}
	defer func() {
		if err := a.repo.Delete(a.ctx, m); err != nil {
			a.wrong(field+" deleted", err)
		}
	}()
	if err := made.Close(); err != nil {
		return a.wrong(field, err)
	}
	s, err := a.repo.Open(a.ctx, m)
	if err != nil {
		return a.wrong(field, err)
	}
	defer s.Close()
	file := a.fileOf(s)
	headerLine, copies, _ := strings.Cut(file, "\n")
	header, err := js.Parse(headerLine)
	if err != nil {
		return a.wrong(field+".header", err)
	}
	if !isTime(header.Get("timestamp")) {
		a.fail(a.at(field+".header.timestamp"), "an ISO date", shown(header.Get("timestamp")))
	}
	var headerMembers []js.Member
	for _, m := range header.Members() {
		if m.Key != "timestamp" {
			headerMembers = append(headerMembers, m)
		}
	}

	copied := &asker{run: a.run, s: s, repo: a.repo}
	if copied.entries, err = all(a.ctx, s); err != nil {
		return a.wrong(field+".entryIds", err)
	}
	copied.log = newPiLog(copied.entries)
	head, leafErr := s.Head(a.ctx)
	copied.leaf, copied.leafErr = head.Leaf, leafErr
	a.keptBytes(field, copied.entries)
	copied.lookUps = len(copied.entries)
	got := []js.Member{
		member("args", object(args)),
		member("header", js.Fields(headerMembers...)),
		member("entryIds", idList(copied.entries)),
		member("leafId", copied.leafID()),
		member("leafIdError", a.leafIDError(field+".leafIdError", want.Get("leafIdError"), leafErr)),
		member("branch", copied.branchFrom(field+".branch", want.Get("branch"), eventlog.None())),
	}
	if w := want.Get("context"); w.Exists() {
		got = append(got, member("context", copied.current(field+".context", w, copied.currentContext)))
	}
	return js.Fields(append(got,
		member("brokenFrom", copied.brokenFrom()),
		member("bodySha256", a.forkSum(field, want, copies)))...)
}

// isTime says whether a value is a time as toISOString writes it.
func isTime(v js.Value) bool {
	ms := js.ParseDate(text(v))
	return !math.IsNaN(ms) && v.Is(js.ISO(time.UnixMilli(int64(ms))))
}

// brokenFrom are the entries whose branch cannot be read.
func (a *asker) brokenFrom() js.Value {
	broken := []string{}
	asked := make(map[string]bool, len(a.entries))
	for _, e := range a.entries {
		if asked[e.ID()] {
			continue
		}
		asked[e.ID()] = true
		if _, err := a.s.Branch(a.ctx, eventlog.At(e.ID())); err != nil {
			broken = append(broken, e.ID())
			a.looped = a.looped || a.log.endless(e.ID())
		}
	}
	return js.Texts(broken...)
}

// keptBytes checks that a fork's entries are the source's, byte for byte.
func (a *asker) keptBytes(field string, copied []eventlog.Entry) {
	texts := make(map[string]bool, len(a.entries))
	for _, e := range a.entries {
		texts[e.JSON()] = true
	}
	for _, e := range copied {
		if !texts[e.JSON()] {
			a.fail(a.at(field+".entries"), "an entry of the source", cut(e.JSON()))
		}
	}
}

// forkSum is the sum of a fork's lines. We keep the bytes that Pi writes anew:
// where they differ, what Pi would make of ours must have the sum.
func (a *asker) forkSum(field string, want js.Value, copies string) js.Value {
	canonical := a.canonicalLines(copies)
	if canonical != copies {
		a.deviate(BytesKept, field+".bodySha256")
	}
	if want.Get("args").JSON() == "{}" {
		// The bytes may be there to be looked at.
		if whole, err := fs.ReadFile(a.vectors, "fork-whole.jsonl"); err == nil {
			a.sameBytes("fork-whole.jsonl", string(whole), canonical)
		}
	}
	return sum(canonical)
}
