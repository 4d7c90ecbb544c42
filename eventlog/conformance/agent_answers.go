package conformance

import (
	"fmt"
	"math"
	"path"
	"slices"
	"strings"
	"time"

	"github.com/sessiontree/sessiontree/eventlog"
	"github.com/sessiontree/sessiontree/eventlog/js"
)

// agentAsker asks what an expect.json of the second set has.
type agentAsker struct {
	*run
	want    js.Value
	fields  map[string]js.Value
	file    []byte
	missing bool // there is no file

	script *script
	repo   eventlog.Repo
	dir    string
	s      *eventlog.Session
	facts  AgentFile

	entries []eventlog.Entry
	byID    map[string]eventlog.Entry
	leaf    eventlog.Ref
	paths   map[string]js.Value
}

// modifiedTime is what the file's time was when the vectors were made.
const modifiedTime = "2026-07-31T00:00:00.000Z"

// ask asks all of it.
func (a *agentAsker) ask() {
	opening, opens := agentOpening(a.file, a.missing)
	a.equal("opens", a.fields["opens"], js.Boolean(opens))
	got := []js.Member{member("opens", js.Boolean(opens)), member("fileAfterOpen", a.openingAnswer(opening))}
	err := a.open(a.file)
	switch {
	case !opens:
		if err == nil {
			a.fail("error", shown(a.fields["error"]), "the file opens")
			a.s.Close()
			return
		}
		message := strings.ReplaceAll(messageText(err), path.Join(a.dir, input), agentInputPath)
		message = strings.TrimSuffix(strings.ReplaceAll(message, ": "+input, ": "+agentInputPath), "")
		got = append(got, member("error", js.Fields(member("name", js.Text("Error")), member("code", js.NullValue()), member("message", js.Text(message)))), member("info", js.NullValue()))
		a.compare("", a.want, got, common...)
		return
	case a.missing || len(a.file) == 0:
		// The coding agent makes a session of nothing; ours is asked once it was made.
		if code := eventlog.CodeOf(err); code != eventlog.NotFound && code != eventlog.InvalidSession {
			a.fail("opens", "an error: there is no session", fmt.Sprint(err))
			return
		}
		a.deviate(NothingOnOpen, "opens")
		if !a.createInstead() {
			return
		}
	case err != nil:
		a.fail("opens", "the session", err.Error())
		return
	}
	got = append(got, a.answers()...)
	a.s.Close()
	if !a.missing {
		got = append(got, a.onOpened()...)
	}
	a.questions()
	got = append(got, member("loopsForever", js.Boolean(a.looped)))
	a.compare("", a.want, got, common...)
}

func messageText(err error) string {
	_, _, message := errorOf(err)
	return message
}

// openingAnswer is whether opening writes: ours never does.
func (a *agentAsker) openingAnswer(pi string) js.Value {
	if pi != "unchanged" && pi != "absent" {
		a.deviate(NothingOnOpen, "fileAfterOpen")
	}
	return js.Text(pi)
}

// open loads the file, with the ids that the vectors gave to entries without one.
func (a *agentAsker) open(file []byte) (err error) {
	a.giveIDs()
	a.s, err = a.backend.Agent.Load(a.ctx, a.repo, a.dir, input, file, a.script.source())
	if err != nil {
		return err
	}
	if a.facts, err = a.backend.Agent.Inspect(input, file); err != nil {
		return err
	}
	if a.backend.Files {
		a.sameBytes("file after opening", string(file), a.fileOf(a.s))
	}
	return nil
}

func (a *agentAsker) giveIDs() {
	var stamps []stamp
	if a.fields["migrated"].Get("idsGiven").Truthy() {
		for id := range a.fields["entryIds"].Elements() {
			stamps = append(stamps, stamp{text(id), agentClock})
		}
	}
	a.script.play(stamps...)
	a.script.now = clockTime()
}

func clockTime() time.Time { return time.UnixMilli(int64(js.ParseDate(agentClock))) }

// questions checks that there are any.
func (a *agentAsker) questions() {
	branches := a.fields["branches"]
	n := 0
	for range branches.Elements() {
		n++
	}
	need := map[string]bool{
		"branches": len(a.entries) > 0, "contextEntries": n > 0, "contexts": n > 1, "collect": len(a.entries) > 0,
		"moves": !a.missing, "edits": !a.missing, "compactions": !a.missing, "branched": !a.missing, "forks": !a.missing,
	}
	for list, needed := range need {
		if needed && (a.fields[list].Kind() != js.Array || a.fields[list].JSON() == "[]") {
			a.fail(list, "a question", shown(a.fields[list]))
		}
	}
}

// createInstead makes the session that the coding agent makes of no file.
func (a *agentAsker) createInstead() bool {
	a.script.at(agentClock)
	var err error
	a.s, err = a.repo.Create(a.ctx, eventlog.CreateOptions{ID: text(a.fields["header"].Get("id")), CWD: "/cwd", Dialect: eventlog.CodingAgent})
	if err != nil {
		a.fail("opens", "a new session", err.Error())
	}
	return err == nil
}

// answers are those of the session as it was loaded.
func (a *agentAsker) answers() []js.Member {
	var err error
	if a.entries, err = all(a.ctx, a.s); err != nil {
		a.fail("entryIds", "entries", err.Error())
		return nil
	}
	a.byID = map[string]eventlog.Entry{}
	for _, e := range a.entries {
		a.byID[e.ID()] = e
	}
	head, err := a.s.Head(a.ctx)
	if err != nil {
		a.fail("leafId", "the leaf", err.Error())
	}
	a.leaf = head.Leaf
	a.paths = map[string]js.Value{}
	m, err := a.s.Metadata(a.ctx)
	if err != nil {
		a.fail("header", "the header", err.Error())
	}
	header, _ := js.Parse(m.Header)
	got := []js.Member{
		member("info", a.info()),
		member("header", header),
		member("cwd", js.Text(agentCWD(m.CWD))),
		member("leafId", nullFor(a.leaf.Value())),
		member("entryCount", js.Num(float64(len(a.byID)))),
		member("entryIds", entryIDs(a.entries)),
		member("tree", a.tree()),
		member("labels", a.labels()),
		member("branches", a.each("branches", a.branch)),
		member("currentBranch", a.branchFrom("currentBranch", a.fields["currentBranch"], eventlog.None())),
		member("contextEntries", a.each("contextEntries", a.contextEntries)),
		member("contexts", a.each("contexts", a.context)),
		member("currentContext", a.contextFrom("currentContext", a.fields["currentContext"], eventlog.None())),
		member("oddFrom", a.oddFrom()),
		member("collect", a.each("collect", a.collect)),
	}
	if !a.leaf.Value().Exists() {
		got = append(got, member("leafHasNoId", js.Boolean(true)))
	}
	if !a.missing && len(a.file) > 0 {
		got = append(got,
			member("headerLine", js.Num(float64(a.facts.HeaderLine))),
			member("entryLines", numbers(a.facts.EntryLines)),
			member("skippedLines", numbers(a.facts.SkippedLines)),
			member("migrated", a.migrated()))
	}
	got = append(got, a.below()...)
	got = append(got, a.name()...)
	got = append(got, a.totals()...)
	return append(got, a.current()...)
}

// agentCWD is a working folder made absolute, in the process that was asked.
func agentCWD(cwd string) string {
	if path.IsAbs(cwd) {
		return path.Clean(cwd)
	}
	return path.Join("/cwd", cwd)
}

func numbers(n []int) js.Value {
	values := make([]js.Value, len(n))
	for i, x := range n {
		values[i] = js.Num(float64(x))
	}
	return js.List(values...)
}

// info is how a list shows the session.
func (a *agentAsker) info() js.Value {
	if len(a.file) == 0 {
		return js.NullValue() // there is nothing to list, for us too
	}
	info, err := a.s.Info(a.ctx)
	if err != nil {
		return a.wrong("info", err)
	}
	ours := infoValue(info, a.file, modifiedTime)
	pi, shows := agentInfo(a.file, modifiedTime)
	if !shows {
		a.deviate(BadEntryListed, "info")
		return js.NullValue()
	}
	if js.Diff(pi, ours) != nil && strings.ContainsAny(js.DecodeUTF8(string(a.file)), "\r\u2028\u2029") && a.countsAll(info) {
		a.deviate(ListsWholeLines, "info")
		ours = pi
	}
	return inForm(ours, a.fields["info"])
}

// countsAll checks our count where it may differ.
func (a *agentAsker) countsAll(info eventlog.Info) bool {
	n := 0
	for _, e := range a.entries {
		if e.Type() == eventlog.TypeMessage {
			n++
		}
	}
	return info.Messages == n
}

// infoValue is a session's information as the vectors have it, with the whole text.
// The session's id and the path of its parent are what the header has.
func infoValue(info eventlog.Info, file []byte, modified string) js.Value {
	h := js.Value{}
	if records, _ := agentRecords(file); len(records) > 0 {
		h = records[0].value
	}
	name := js.Value{}
	if info.Name != "" {
		name = js.Text(info.Name)
	}
	first, changed := info.FirstMessage, info.Modified
	if first == "" {
		first = "(no messages)"
	}
	if math.IsNaN(changed) {
		changed = js.ParseDate(modified)
	}
	return js.Fields(
		member("id", js.Text(info.ID)),
		member("cwd", js.Text(info.CWD)),
		member("name", name),
		member("parentSessionPath", h.Get("parentSession")),
		member("created", isoOf(js.ParseDate(info.CreatedAt))),
		member("modified", isoOf(changed)),
		member("messageCount", js.Num(float64(info.Messages))),
		member("firstMessage", js.Text(first)),
		member("allMessagesText", js.Text(info.Text)))
}

func isoOf(ms float64) js.Value {
	if math.IsNaN(ms) {
		return js.NullValue()
	}
	return js.Text(js.ISO(time.UnixMilli(int64(ms))))
}

// inForm puts a hash in the place of a text where the vectors have it.
func inForm(info, want js.Value) js.Value {
	if !want.Get("allMessagesSha256").Exists() {
		return info
	}
	fields := info.Members()
	for i, m := range fields {
		if m.Key == "allMessagesText" {
			fields[i] = member("allMessagesSha256", textSum(text(m.Value)))
		}
	}
	return js.Fields(fields...)
}

func (a *agentAsker) wrong(field string, err error) js.Value {
	a.fail(a.at(field), "an answer", err.Error())
	return js.Value{}
}

func (a *agentAsker) migrated() js.Value {
	if !a.facts.Migrated {
		return js.Value{}
	}
	from := a.facts.From
	if from.Nullish() {
		from = js.NullValue()
	}
	fields := []js.Member{
		member("fromVersion", from),
		member("idsGiven", js.Boolean(a.facts.IDsGiven)),
		member("renamedRoleLines", numbers(a.facts.RenamedLines)),
	}
	if a.facts.IDsGiven {
		fields = append(fields, member("nodes", a.nodes()))
	}
	return js.Fields(fields...)
}

// nodes are a migrated file's entries by their lines.
func (a *agentAsker) nodes() js.Value {
	if len(a.facts.EntryLines) != len(a.entries) {
		return a.wrong("migrated", fmt.Errorf("%d entries on %d lines", len(a.entries), len(a.facts.EntryLines)))
	}
	lineOf := map[string]js.Value{}
	for i, e := range a.entries {
		lineOf[e.ID()] = js.Num(float64(a.facts.EntryLines[i]))
	}
	var nodes []js.Value
	for i, e := range a.entries {
		fields := []js.Member{member("line", js.Num(float64(a.facts.EntryLines[i]))), member("parentLine", nullFor(lineOf[e.Parent().ID()]))}
		if e.Type() == eventlog.TypeCompaction {
			fields = append(fields, member("firstKeptLine", nullFor(lineOf[text(e.Get("firstKeptEntryId"))])))
		}
		nodes = append(nodes, js.Fields(fields...))
	}
	return js.List(nodes...)
}

// below are the roots and the children.
func (a *agentAsker) below() []js.Member {
	childrenOf := func(of eventlog.Ref) js.Value {
		children, err := a.s.Children(a.ctx, of)
		if err != nil {
			return a.wrong("children", err)
		}
		return entryIDs(children)
	}
	var children []js.Member
	seen := map[string]bool{}
	for _, e := range a.entries {
		if id := idValue(e.ID()); !seen[e.ID()] && id.Exists() && id.Kind() != js.Null {
			seen[e.ID()] = true
			if list := childrenOf(eventlog.At(e.ID())); list.JSON() != "[]" {
				children = append(children, member(js.ToString(id), list))
			}
		}
	}
	return []js.Member{member("roots", childrenOf(eventlog.None())), member("children", js.Fields(children...))}
}

func (a *agentAsker) tree() js.Value {
	tree, err := a.s.Tree(a.ctx)
	if err != nil {
		return a.wrong("tree", err)
	}
	labels, err := a.s.LabelList(a.ctx)
	if err != nil {
		return a.wrong("tree", err)
	}
	byTarget := map[string]eventlog.Label{}
	for _, l := range labels {
		byTarget[l.Target] = l
	}
	pi, repeats, ends := agentTree(a.entries, byTarget)
	var ours []js.Value
	cycles, shownOnce := false, map[string]int{}
	for _, n := range tree.Nodes {
		cycles = cycles || n.Cycle
		shownOnce[n.Entry.ID()]++
		if n.Labelled.ID() != "" && n.Label != byTarget[n.Entry.ID()].Text {
			return a.wrong("tree", fmt.Errorf("%s has the label %q", n.Entry.ID(), n.Label))
		}
		l := eventlog.Label{}
		if n.Label != "" {
			l = byTarget[n.Entry.ID()]
		}
		ours = append(ours, treeNode(n.Entry.ID(), n.Depth, l))
	}
	if !repeats && !cycles {
		return js.List(ours...)
	}
	if len(ours) != len(a.entries) {
		return a.wrong("tree", fmt.Errorf("%d of %d entries", len(ours), len(a.entries)))
	}
	if !ends {
		want := a.fields["tree"]
		if !isAgentEndless(want.Get("error")) {
			return a.wrong("tree", fmt.Errorf("the coding agent's never ends"))
		}
		a.looped = true
		a.deviate(LoopsForever, "tree")
		return want
	}
	a.deviate(EntryOnce, "tree")
	return js.List(pi...)
}

func (a *agentAsker) labels() js.Value {
	list, err := a.s.LabelList(a.ctx)
	if err != nil {
		return a.wrong("labels", err)
	}
	texts, err := a.s.Labels(a.ctx)
	if err != nil {
		return a.wrong("labels", err)
	}
	if len(texts) != len(list) {
		return a.wrong("labels", fmt.Errorf("%d labels with their times, %d without", len(list), len(texts)))
	}
	var fields []js.Member
	for _, l := range list {
		if one, err := a.s.Label(a.ctx, l.Target); err != nil || one != l.Text || texts[l.Target] != l.Text {
			return a.wrong("labels", fmt.Errorf("the label of %s is %q alone (%v), %q among all and %q with its time", l.Target, one, err, texts[l.Target], l.Text))
		}
		if id := idValue(l.Target); id.Exists() {
			fields = append(fields, member(js.ToString(id), l.Value))
		}
	}
	return js.Fields(fields...)
}

func (a *agentAsker) name() []js.Member {
	name, err := a.s.Name(a.ctx)
	if err != nil {
		return []js.Member{member("nameError", a.agentError("nameError", a.fields["nameError"], err, false)), member("name", js.NullValue())}
	}
	if name == "" {
		return []js.Member{member("name", js.NullValue())}
	}
	return []js.Member{member("name", js.Text(name))}
}

func (a *agentAsker) totals() []js.Member {
	var got []js.Member
	stats, err := a.s.Stats(a.ctx)
	if err != nil {
		got = append(got, member("stats", a.absentOrNull("stats")), member("statsError", a.agentError("statsError", a.fields["statsError"], err, false)))
	} else {
		got = append(got, member("stats", statsValue(stats)))
	}
	costs, err := a.s.CostByModel(a.ctx)
	if err != nil {
		return append(got, member("costByModel", a.absentOrNull("costByModel")), member("costByModelError", a.agentError("costByModelError", a.fields["costByModelError"], err, false)))
	}
	list := make([]js.Value, len(costs))
	for i, c := range costs {
		list[i] = js.Fields(member("key", js.Text(c.Key)), member("cost", js.Num(c.Cost)), member("tokens", js.Num(c.Tokens)))
	}
	return append(got, member("costByModel", js.List(list...)))
}

// absentOrNull is no answer, in the form that the vectors have for none.
func (a *agentAsker) absentOrNull(field string) js.Value {
	if a.fields[field].Kind() == js.Null {
		return js.NullValue()
	}
	return js.Value{}
}

func statsValue(s eventlog.Stats) js.Value {
	n := func(i int) js.Value { return js.Num(float64(i)) }
	return js.Fields(
		member("userMessages", n(s.UserMessages)),
		member("assistantMessages", n(s.AssistantMessages)),
		member("toolCalls", n(s.ToolCalls)),
		member("toolResults", n(s.ToolResults)),
		member("totalMessages", n(s.Messages)),
		member("tokens", js.Fields(
			member("input", js.Num(s.Input)), member("output", js.Num(s.Output)),
			member("cacheRead", js.Num(s.CacheRead)), member("cacheWrite", js.Num(s.CacheWrite)),
			member("total", js.Num(s.TotalTokens)))),
		member("cost", js.Num(s.Cost)))
}

// each answers a list of questions.
func (a *agentAsker) each(list string, answer func(field string, want js.Value) js.Value) js.Value {
	if !a.fields[list].Exists() {
		return js.Value{}
	}
	var got []js.Value
	for w := range a.fields[list].Elements() {
		got = append(got, answer(fmt.Sprintf("%s[%d]", list, len(got)), w))
	}
	return js.List(got...)
}

// endlessFrom says whether the coding agent's walk from an entry never ends.
func (a *agentAsker) endlessFrom(id string) bool {
	seen := map[string]bool{}
	e, ok := a.byID[id]
	for ok {
		if seen[e.ID()] {
			return true
		}
		seen[e.ID()] = true
		if e.IsRoot() {
			return false
		}
		e, ok = a.byID[e.Parent().ID()]
	}
	return false
}

func (a *agentAsker) start(from eventlog.Ref) string {
	if from.IsNone() {
		from = a.leaf
	}
	return from.ID()
}

func (a *agentAsker) branchFrom(field string, want js.Value, from eventlog.Ref) js.Value {
	branch, err := a.s.Branch(a.ctx, from)
	if err != nil {
		return js.Fields(member("error", a.agentError(field, want.Get("error"), err, a.endlessFrom(a.start(from)))))
	}
	return js.Fields(member("ids", entryIDs(branch)))
}

func (a *agentAsker) branch(field string, want js.Value) js.Value {
	from := eventlog.RefOf(want.Get("from"))
	got := a.branchFrom(field, want, from)
	a.paths[from.ID()] = got.Get("ids")
	return js.Fields(append([]js.Member{member("from", from.Value())}, got.Members()...)...)
}

func (a *agentAsker) contextEntries(field string, want js.Value) js.Value {
	from := eventlog.RefOf(want.Get("from"))
	entries, err := a.s.ContextEntries(a.ctx, from)
	if err != nil {
		return js.Fields(member("from", from.Value()), member("error", a.agentError(field, want.Get("error"), err, a.endlessFrom(a.start(from)))))
	}
	got := []js.Member{member("from", from.Value())}
	if ids := entryIDs(entries); ids == a.paths[from.ID()] {
		got = append(got, member("sameAsBranch", js.Boolean(true)))
	} else {
		got = append(got, member("ids", ids))
	}
	return js.Fields(append(got, a.counts(field, want, entries)...)...)
}

// counts are how many messages each of a context's entries gives.
func (a *agentAsker) counts(field string, want js.Value, entries []eventlog.Entry) []js.Member {
	var counts []js.Value
	for messages, err := range eventlog.CodingAgent.Projected(entries, eventlog.ContextOptions{}) {
		if err != nil {
			return []js.Member{member("countsError", a.agentError(field+".countsError", want.Get("countsError"), err, false))}
		}
		counts = append(counts, js.Num(float64(len(messages))))
	}
	return []js.Member{member("counts", js.List(counts...))}
}

func (a *agentAsker) context(field string, want js.Value) js.Value {
	from := eventlog.RefOf(want.Get("from"))
	return js.Fields(append([]js.Member{member("from", from.Value())}, a.contextFrom(field, want, from).Members()...)...)
}

func (a *agentAsker) contextFrom(field string, want js.Value, from eventlog.Ref) js.Value {
	c, err := a.s.BuildContext(a.ctx, from)
	if err != nil {
		return js.Fields(member("error", a.agentError(field, want.Get("error"), err, a.endlessFrom(a.start(from)))))
	}
	return agentContext(c, want)
}

// agentContext is a context in the form that the vectors ask for.
func agentContext(c eventlog.Context, want js.Value) js.Value {
	model := js.NullValue()
	if c.Model != nil {
		model = js.Fields(member("provider", c.Model.Provider), member("modelId", c.Model.ID))
	}
	return js.Fields(append(messagesInForm(c.Messages, want),
		member("thinkingLevel", c.ThinkingLevel),
		member("model", model),
		member("tools", js.List(c.ActiveTools...)))...)
}

// messagesInForm are messages, or their number and hash.
func messagesInForm(messages []eventlog.Message, want js.Value) []js.Member {
	list := messageList(messages)
	if want.Get("messagesSha256").Exists() {
		return []js.Member{member("messageCount", js.Num(float64(len(messages)))), member("messagesSha256", valueSum(list))}
	}
	return []js.Member{member("messages", list)}
}

// current are the questions about the current context.
func (a *agentAsker) current() []js.Member {
	failed := func(field string, err error) js.Value {
		return js.Fields(member("error", a.agentError(field, a.fields[field].Get("error"), err, a.endlessFrom(a.leaf.ID()))))
	}
	var got []js.Member
	c, err := a.s.BuildContext(a.ctx, eventlog.None())
	if err != nil {
		for _, field := range []string{"currentSystem", "currentLlm", "currentText"} {
			got = append(got, member(field, failed(field, err)))
		}
		return append(got, member("branchTools", a.branchTools()))
	}
	got = append(got, member("currentSystem", a.currentSystem(c.Messages, failed)), member("branchTools", a.branchTools()))
	llm, err := eventlog.CodingAgent.ToLLM(c.Messages)
	if err != nil {
		return append(got, member("currentLlm", failed("currentLlm", err)), member("currentText", failed("currentText", err)))
	}
	got = append(got, member("currentLlm", js.Fields(messagesInForm(llm, a.fields["currentLlm"])...)))
	conversation, err := eventlog.CodingAgent.ConversationText(llm)
	if err != nil {
		return append(got, member("currentText", failed("currentText", err)))
	}
	return append(got, member("currentText", textInForm(conversation, a.fields["currentText"])))
}

// textInForm is a text, or its hash.
func textInForm(s string, want js.Value) js.Value {
	if want.Get("textSha256").Exists() {
		return js.Fields(member("textSha256", textSum(s)))
	}
	return js.Fields(member("text", js.Text(s)))
}

func (a *agentAsker) currentSystem(messages []eventlog.Message, failed func(string, error) js.Value) js.Value {
	system, err := eventlog.System(messages)
	if err != nil {
		return failed("currentSystem", err)
	}
	if !system.Exists() {
		return js.Fields(member("message", js.NullValue()), member("prompt", js.NullValue()))
	}
	prompt, err := eventlog.SystemPrompt(system)
	if err != nil {
		return failed("currentSystem", err)
	}
	return js.Fields(member("message", system.Value), member("prompt", js.Text(prompt)))
}

func (a *agentAsker) branchTools() js.Value {
	branch, err := a.s.Branch(a.ctx, eventlog.None())
	if err == nil {
		var names []js.Value
		var ok bool
		if names, ok, err = eventlog.BranchTools(branch); err == nil && ok {
			return js.List(names...)
		}
	}
	if err != nil {
		return js.Fields(member("error", a.agentError("branchTools", a.fields["branchTools"].Get("error"), err, a.endlessFrom(a.leaf.ID()))))
	}
	return js.NullValue()
}

// oddFrom are the answers to ids that are not there, and to none.
func (a *agentAsker) oddFrom() js.Value {
	want := a.fields["oddFrom"]
	const unknown = "no-such-entry"
	for what, ask := range map[string]func() error{
		"branch":  func() error { _, err := a.s.Branch(a.ctx, eventlog.At(unknown)); return err },
		"entry":   func() error { _, err := a.s.Entry(a.ctx, unknown); return err },
		"context": func() error { _, err := a.s.BuildContext(a.ctx, eventlog.At(unknown)); return err },
	} {
		if err := ask(); eventlog.CodeOf(err) != eventlog.NotFound {
			a.fail("oddFrom.unknown."+what, "the error not_found", fmt.Sprint(err))
		}
	}
	a.deviate(UnknownRefused, "oddFrom.unknown")
	// The coding agent's context from an unknown entry is that of the last.
	last := eventlog.Context{Settings: eventlog.Settings{ThinkingLevel: js.Text("off"), ActiveTools: []js.Value{}}}
	lastContext := agentContext(last, want.Get("unknown").Get("context"))
	if n := len(a.entries); n > 0 {
		from := eventlog.At(a.entries[n-1].ID())
		lastContext = a.contextFrom("oddFrom.unknown.context", want.Get("unknown").Get("context"), from)
	}
	ofNone, err := a.s.Storage().Branch(a.ctx, eventlog.None())
	if err != nil {
		return a.wrong("oddFrom.null", err)
	}
	empty, err := eventlog.CodingAgent.BuildContext(ofNone, eventlog.ContextOptions{})
	if err != nil {
		return a.wrong("oddFrom.null", err)
	}
	branch := a.branchFrom("oddFrom.null.branch", js.Value{}, eventlog.None())
	ids := branch.Get("ids")
	if a.endlessFrom(a.leaf.ID()) && branch.Get("error").Get("code").Is(string(eventlog.InvalidSession)) {
		a.deviate(LoopsForever, "oddFrom.null.branch")
		ids = js.NullValue()
	}
	return js.Fields(
		member("unknown", js.Fields(member("branch", js.List()), member("entry", js.NullValue()), member("context", lastContext))),
		member("null", js.Fields(member("branch", ids), member("context", agentContext(empty, want.Get("null").Get("context"))))))
}

func (a *agentAsker) collect(field string, want js.Value) js.Value {
	old, target := eventlog.RefOf(want.Get("oldLeafId")), eventlog.RefOf(want.Get("targetId"))
	got := []js.Member{member("oldLeafId", nullFor(old.Value())), member("targetId", nullFor(target.Value()))}
	left, err := a.s.CollectBranch(a.ctx, old, target)
	if err != nil {
		endless := a.endlessFrom(old.ID()) || a.endlessFrom(a.start(target))
		return js.Fields(append(got, member("error", a.agentError(field, want.Get("error"), err, endless)))...)
	}
	var prepared []js.Value
	for w := range want.Get("prepared").Elements() {
		prepared = append(prepared, a.prepared(fmt.Sprintf("%s.prepared[%d]", field, len(prepared)), w, left.Entries))
	}
	return js.Fields(append(got,
		member("entryIds", entryIDs(left.Entries)),
		member("commonAncestorId", nullFor(left.CommonAncestor.Value())),
		member("prepared", js.List(prepared...)))...)
}

func (a *agentAsker) prepared(field string, want js.Value, entries []eventlog.Entry) js.Value {
	budget := member("tokenBudget", want.Get("tokenBudget"))
	n, ok := budget.Value.Float()
	if !ok {
		return a.wrong(field, fmt.Errorf("a budget of %s", budget.Value.JSON()))
	}
	d := eventlog.CodingAgent
	p, err := d.PrepareBranch(entries, n)
	var messages []eventlog.Message
	if err == nil {
		messages, err = d.ToLLM(p.Messages)
	}
	var conversation string
	if err == nil {
		conversation, err = d.ConversationText(messages)
	}
	if err != nil {
		return js.Fields(budget, member("error", a.agentError(field, want.Get("error"), err, false)))
	}
	roles := make([]js.Value, len(p.Messages))
	for i, m := range p.Messages {
		roles[i] = m.Get("role")
	}
	return js.Fields(append([]js.Member{budget,
		member("totalTokens", js.Num(p.Tokens)),
		member("roles", js.List(roles...)),
		member("readFiles", js.List(slices.Clone(p.ReadFiles)...)),
		member("modifiedFiles", js.List(p.ModifiedFiles...))},
		textInForm(conversation, want).Members()...)...)
}
