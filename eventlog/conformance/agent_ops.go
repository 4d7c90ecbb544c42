package conformance

import (
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"slices"
	"strings"

	"github.com/sessiontree/sessiontree/eventlog"
	"github.com/sessiontree/sessiontree/eventlog/js"
)

// agentReplay makes a session by the calls of an ops.json, with the ids and times
// that the coding agent used.
type agentReplay struct {
	*run
	script   *script
	repo     eventlog.Repo
	dir      string
	managers map[string]*manager
	sources  int
}

// manager is one of the coding agent's session managers. Managers of one file share
// our session; what the manager itself would see is kept beside it.
type manager struct {
	shared *sharedSession
	file   string           // the name of its file
	seen   []eventlog.Entry // the entries that the manager knows
	leaf   eventlog.Ref     // the leaf that it has
}

type sharedSession struct {
	s       *eventlog.Session
	entries []eventlog.Entry // all that was written so far
	exists  bool             // whether the coding agent has made the file
}

// agentCalls runs a case of calls, random or realistic.
func (r *run) agentCalls() {
	want, ok := r.agentCommon()
	if !ok {
		return
	}
	ops, ok := r.readJSON("ops.json")
	if !ok {
		return
	}
	p := &agentReplay{run: r, script: &script{}, managers: map[string]*manager{}}
	if p.dir, ok = r.agentDir(); !ok {
		return
	}
	var err error
	if p.repo, err = r.backend.Agent.New(p.dir, p.script.source()); err != nil {
		r.fail("repository", "a new one", err.Error())
		return
	}
	r.repos = append(r.repos, p.repo)
	i := 0
	for op := range ops.Elements() {
		if !p.apply(fmt.Sprintf("ops.json[%d].", i), op) {
			break
		}
		i++
	}
	file, err := fs.ReadFile(r.vectors, input)
	if errors.Is(err, fs.ErrNotExist) {
		file, err = nil, nil
	}
	if err != nil {
		r.fail(input, "a file", err.Error())
		return
	}
	if m := p.managers["main"]; m != nil && m.shared.s != nil {
		if file != nil {
			r.sameFile(input, string(file), m.shared.s)
		}
		m.shared.s.Close()
	}
	if !r.enough() {
		r.askFile(want, file)
	}
}

// agentOperation is one kind of call.
type agentOperation struct {
	args []string
	do   func(p *agentReplay, m *manager, args js.Value) (eventlog.Entry, error)
}

var agentOperations = map[string]agentOperation{
	"appendMessage": {[]string{"message"}, func(p *agentReplay, m *manager, args js.Value) (eventlog.Entry, error) {
		return m.shared.s.AppendMessage(p.ctx, eventlog.Message{Value: args.Get("message")})
	}},
	"appendThinkingLevelChange": {[]string{"thinkingLevel"}, func(p *agentReplay, m *manager, args js.Value) (eventlog.Entry, error) {
		return m.shared.s.AppendThinkingLevelChange(p.ctx, text(args.Get("thinkingLevel")))
	}},
	"appendModelChange": {[]string{"provider", "modelId"}, func(p *agentReplay, m *manager, args js.Value) (eventlog.Entry, error) {
		return m.shared.s.AppendModelChange(p.ctx, text(args.Get("provider")), text(args.Get("modelId")))
	}},
	"appendUsage": {[]string{"kind", "provider", "model", "usage", "note"}, func(p *agentReplay, m *manager, args js.Value) (eventlog.Entry, error) {
		return m.shared.s.AppendUsage(p.ctx, eventlog.UsageEntry{
			Kind: text(args.Get("kind")), Provider: text(args.Get("provider")), Model: text(args.Get("model")),
			Usage: args.Get("usage"), Note: text(args.Get("note")),
		})
	}},
	"appendCompaction": {[]string{"summary", "firstKeptEntryId", "tokensBefore", "details", "fromHook", "usage"}, func(p *agentReplay, m *manager, args js.Value) (eventlog.Entry, error) {
		tokens, _ := args.Get("tokensBefore").Float()
		return m.shared.s.AppendCompaction(p.ctx, eventlog.Compaction{
			Summary: text(args.Get("summary")), FirstKeptEntryID: args.Get("firstKeptEntryId"), TokensBefore: tokens,
			Details: args.Get("details"), Usage: args.Get("usage"), FromHook: args.Get("fromHook"),
		})
	}},
	"appendCustomEntry": {[]string{"customType", "data"}, func(p *agentReplay, m *manager, args js.Value) (eventlog.Entry, error) {
		return m.shared.s.AppendCustom(p.ctx, text(args.Get("customType")), args.Get("data"))
	}},
	"appendCustomMessageEntry": {[]string{"customType", "content", "display", "details"}, func(p *agentReplay, m *manager, args js.Value) (eventlog.Entry, error) {
		return m.shared.s.AppendCustomMessage(p.ctx, text(args.Get("customType")), args.Get("content"), args.Get("display").Truthy(), args.Get("details"))
	}},
	"appendContextEdit": {[]string{"targetId", "replacement"}, func(p *agentReplay, m *manager, args js.Value) (eventlog.Entry, error) {
		return m.shared.s.EditContext(p.ctx, eventlog.RefOf(args.Get("targetId")).ID(), args.Get("replacement"))
	}},
	"appendLabelChange": {[]string{"targetId", "label"}, func(p *agentReplay, m *manager, args js.Value) (eventlog.Entry, error) {
		entries, err := m.shared.s.Append(p.ctx, eventlog.LabelDraft(text(args.Get("targetId")), args.Get("label")))
		if err != nil {
			return eventlog.Entry{}, err
		}
		return entries[0], nil
	}},
	"appendSessionInfo": {[]string{"name"}, func(p *agentReplay, m *manager, args js.Value) (eventlog.Entry, error) {
		return m.shared.s.SetName(p.ctx, text(args.Get("name")))
	}},
	"branch": {[]string{"entryId"}, func(p *agentReplay, m *manager, args js.Value) (eventlog.Entry, error) {
		return p.moved(m, eventlog.RefOf(args.Get("entryId")), nil)
	}},
	"resetLeaf": {nil, func(p *agentReplay, m *manager, _ js.Value) (eventlog.Entry, error) {
		return p.moved(m, eventlog.None(), nil)
	}},
	"branchWithSummary": {[]string{"entryId", "summary", "details", "fromHook", "usage"}, func(p *agentReplay, m *manager, args js.Value) (eventlog.Entry, error) {
		return p.moved(m, eventlog.RefOf(args.Get("entryId")), &eventlog.Summary{
			Text: text(args.Get("summary")), Details: args.Get("details"), Usage: args.Get("usage"), FromHook: args.Get("fromHook"),
		})
	}},
}

func (p *agentReplay) moved(m *manager, to eventlog.Ref, s *eventlog.Summary) (eventlog.Entry, error) {
	entries, err := m.shared.s.MoveTo(p.ctx, to, s)
	if err != nil {
		return eventlog.Entry{}, err
	}
	return entries[0], nil
}

// agentSessions are the calls that make or change sessions.
var agentSessions = map[string]struct {
	args []string
	do   func(p *agentReplay, field, on string, op js.Value) ([]js.Member, bool)
}{
	"create":                {[]string{"id", "cwd", "parentSession"}, (*agentReplay).create},
	"newSession":            {[]string{"id", "parentSession"}, (*agentReplay).create},
	"open":                  {[]string{"fileOf"}, (*agentReplay).open},
	"createBranchedSession": {[]string{"leafId"}, (*agentReplay).fork},
	"forkFrom":              {[]string{"targetCwd", "id"}, (*agentReplay).fork},
	"deleteFile":            {nil, (*agentReplay).deleteFile},
	"ask":                   {[]string{"full"}, (*agentReplay).ask},
}

// apply applies one call and compares what it did. It says whether the next one can
// follow.
func (p *agentReplay) apply(field string, op js.Value) bool {
	name, on := text(op.Get("op")), "main"
	if who, ok := op.Get("on").Str(); ok {
		on = who
	}
	args := op.Get("args")
	known, isEntry := agentOperations[name]
	session, isSession := agentSessions[name]
	if !isEntry && !isSession {
		p.fail(field+"op", "a call that the runner knows", shown(op.Get("op")))
		return false
	}
	if args.Kind() != js.Object {
		p.fail(field+"args", "an object", shown(args))
		return false
	}
	for _, a := range args.Members() {
		if !slices.Contains(append(known.args, session.args...), a.Key) {
			p.fail(field+"args."+a.Key, "an argument that the runner knows", shown(a.Value))
			return false
		}
	}
	if makes := name == "create" || name == "open"; p.managers[on] == nil && !makes {
		p.fail(field+"on", "a manager that was made", on)
		return false
	}
	got := []js.Member{member("op", js.Text(name)), member("args", args)}
	if on != "main" {
		got = append(got, member("on", js.Text(on)))
	}
	goes := true
	if isEntry {
		got = append(got, p.entryCall(field, p.managers[on], known, op)...)
	} else {
		var more []js.Member
		more, goes = session.do(p, field, on, op)
		got = append(got, more...)
	}
	m := p.managers[on]
	if m == nil || !goes {
		p.compare(field, op, got)
		return false
	}
	got = append(got, member("leafId", nullFor(m.leaf.Value())), member("lines", p.lines(field, m, op)))
	before := len(p.Failures)
	p.compare(field, op, got)
	return len(p.Failures) == before || !p.quick
}

// lines is how many lines the session's file has.
func (p *agentReplay) lines(field string, m *manager, op js.Value) js.Value {
	if !m.shared.exists && (hasConversation(m.shared.entries)) {
		m.shared.exists = true
	}
	ours := 1 + len(m.shared.entries)
	if p.backend.Files {
		if got := strings.Count(p.fileOf(m.shared.s), "\n"); got != ours {
			p.fail(field+"lines", fmt.Sprint(ours), fmt.Sprint(got))
		}
	}
	if m.shared.exists {
		return js.Num(float64(ours))
	}
	p.deviate(ExistsAtOnce, field+"lines")
	return js.Num(0)
}

// entryCall is a call that appends an entry, or moves the leaf.
func (p *agentReplay) entryCall(field string, m *manager, known agentOperation, op js.Value) []js.Member {
	if !p.takeTurn(field, m) {
		return nil
	}
	var stamps []stamp
	for a := range op.Get("appended").Elements() {
		stamps = append(stamps, stampOf(a))
	}
	p.script.play(stamps...)
	e, err := known.do(p, m, op.Get("args"))
	var got []js.Member
	if err != nil {
		got = append(got, member("error", p.agentError(field+"error", op.Get("error"), err, false)))
	} else if !e.IsMove() {
		got = append(got, member("result", js.Text(e.ID())))
	}
	added, err := p.added(m)
	if err != nil {
		p.fail(field+"appended", "entries", err.Error())
	}
	if added != nil {
		got = append(got, member("appended", js.List(added...)))
	}
	return got
}

// added takes what is new in the log, as the vectors list it.
func (p *agentReplay) added(m *manager) (list []js.Value, err error) {
	for e, err := range m.shared.s.Entries(p.ctx, len(m.shared.entries), eventlog.All) {
		if err != nil {
			return nil, err
		}
		m.shared.entries = append(m.shared.entries, e)
		m.seen = append(m.seen, e)
		list = append(list, js.Fields(
			member("id", idValue(e.ID())), member("type", js.Text(string(e.Type()))),
			member("parentId", e.Parent().Value()), member("timestamp", js.Text(e.Timestamp()))))
	}
	head, err := m.shared.s.Head(p.ctx)
	m.leaf = head.Leaf
	return list, err
}

// takeTurn moves the leaf to where the manager believes it to be, where another has
// written meanwhile.
func (p *agentReplay) takeTurn(field string, m *manager) bool {
	head, err := m.shared.s.Head(p.ctx)
	if err == nil && head.Leaf != m.leaf {
		p.deviate(WritersTakeTurns, field+"parentId")
		_, err = m.shared.s.MoveTo(p.ctx, m.leaf, nil)
	}
	if err != nil {
		p.fail(field, "the leaf", err.Error())
	}
	return err == nil
}

func (p *agentReplay) headerOf(s *eventlog.Session) (js.Value, eventlog.Metadata) {
	m, err := s.Metadata(p.ctx)
	if err != nil {
		p.fail("header", "the session's header", err.Error())
		return js.Value{}, m
	}
	h, err := js.Parse(m.Header)
	if err != nil {
		p.fail("header", "JSON", m.Header)
	}
	return h, m
}

func (p *agentReplay) fileName(s *eventlog.Session) js.Value {
	header, m := p.headerOf(s)
	if p.backend.Files {
		return js.Text(baseName(m.Path))
	}
	return js.Text(agentFileName(header))
}

func baseName(path string) string { return filepath.Base(path) }

func (p *agentReplay) create(field, on string, op js.Value) ([]js.Member, bool) {
	args, header := op.Get("args"), op.Get("header")
	var got []js.Member
	cwd := "/project"
	if old := p.managers[on]; old != nil {
		_, m := p.headerOf(old.shared.s)
		cwd = m.CWD
		var leave []js.Member
		if op.Get("sourceFile").Exists() {
			leave = []js.Member{member("sourceFile", p.left(old))}
		}
		got = append(got, leave...)
	}
	if c, ok := args.Get("cwd").Str(); ok {
		cwd = c
	}
	id, ok := args.Get("id").Str()
	if !ok {
		id = text(header.Get("id")) // drawn by the coding agent
	}
	o := eventlog.CreateOptions{ID: id, CWD: cwd, Dialect: eventlog.CodingAgent}
	if parent := args.Get("parentSession"); parent.Exists() {
		o.ParentSession = ref(parent)
	}
	p.script.at(text(header.Get("timestamp")))
	s, err := p.repo.Create(p.ctx, o)
	if err != nil {
		return append(got, member("error", p.agentError(field+"error", op.Get("error"), err, false))), p.managers[on] != nil
	}
	p.managers[on] = &manager{shared: &sharedSession{s: s}, file: text(p.fileName(s))}
	h, _ := p.headerOf(s)
	return append(got, member("header", h), member("fileName", p.fileName(s))), true
}

// open opens a file again. What the coding agent never wrote it does not find; where
// it forgot the leaf, ours goes back.
func (p *agentReplay) open(field, on string, op js.Value) ([]js.Member, bool) {
	of := on
	if who, ok := op.Get("args").Get("fileOf").Str(); ok {
		of = who
	}
	source := p.managers[of]
	if source == nil {
		p.fail(field+"fileOf", "a manager that was made", of)
		return nil, false
	}
	shared := source.shared
	_, meta := p.headerOf(shared.s)
	if err := shared.s.Close(); err != nil {
		p.fail(field, "a closed session", err.Error())
	}
	s, err := p.repo.Open(p.ctx, meta)
	if err != nil {
		p.fail(field, "the session", err.Error())
		return nil, false
	}
	shared.s = s
	entries, err := all(p.ctx, s)
	if err != nil || !sameEntries(entries, shared.entries) {
		p.fail(field+"entryIds", "what was written", fmt.Sprint(ids(entries), err))
	}
	if !shared.exists {
		// There is no file for it: it starts a new session.
		p.deviate(ExistsAtOnce, field+"header")
		p.script.at(text(op.Get("header").Get("timestamp")))
		fresh, err := p.repo.Create(p.ctx, eventlog.CreateOptions{ID: text(op.Get("header").Get("id")), CWD: "/cwd", Dialect: eventlog.CodingAgent})
		if err != nil {
			p.fail(field, "a new session", err.Error())
			return nil, false
		}
		s.Close()
		p.managers[on] = &manager{shared: &sharedSession{s: fresh}, file: source.file} // it will be written there
		h, _ := p.headerOf(fresh)
		return []js.Member{member("header", h), member("entryIds", js.List())}, true
	}
	m := &manager{shared: shared, file: source.file, seen: slices.Clone(entries)}
	p.managers[on] = m
	head, err := s.Head(p.ctx)
	if err != nil {
		p.fail(field+"leafId", "the leaf", err.Error())
	}
	if head.Leaf != source.leaf && of == on {
		p.fail(field+"leafId", "the leaf as it was: "+source.leaf.String(), head.Leaf.String())
	}
	last := eventlog.None()
	if n := len(entries); n > 0 {
		last = eventlog.At(entries[n-1].ID())
	}
	if m.leaf = head.Leaf; head.Leaf != last {
		p.deviate(LeafSurvives, field+"leafId")
		if _, err := s.MoveTo(p.ctx, last, nil); err != nil {
			p.fail(field+"leafId", "the leaf", err.Error())
		}
		m.leaf = last
	}
	h, _ := p.headerOf(s)
	return []js.Member{member("header", h), member("entryIds", entryIDs(entries))}, true
}

// left compares the file that a manager leaves behind, and gives its name.
func (p *agentReplay) left(m *manager) js.Value {
	defer m.shared.s.Close()
	if !m.shared.exists {
		return js.NullValue()
	}
	p.sources++
	name := fmt.Sprintf("source-%d.jsonl", p.sources)
	if want, ok := p.read(name); ok {
		p.sameFile(name, want, m.shared.s)
	}
	return js.Text(name)
}

// fork goes on in a branched session, or in a fork of the whole file.
func (p *agentReplay) fork(field, on string, op js.Value) ([]js.Member, bool) {
	old, args, header := p.managers[on], op.Get("args"), op.Get("header")
	_, source := p.headerOf(old.shared.s)
	o := eventlog.ForkOptions{CreateOptions: eventlog.CreateOptions{ID: text(header.Get("id")), CWD: source.CWD}}
	if parent, ok := header.Get("parentSession").Str(); ok {
		o.ParentSession = eventlog.At(parent)
	}
	branched := op.Get("op").Is("createBranchedSession")
	if branched {
		o.EntryID, o.Position = eventlog.RefOf(args.Get("leafId")).ID(), eventlog.AtIt
	} else {
		o.CWD = text(args.Get("targetCwd"))
		if id, ok := args.Get("id").Str(); ok {
			o.ID = id
		}
	}
	p.script.at(text(header.Get("timestamp")))
	for id := range op.Get("newLabelIds").Elements() {
		p.script.queue = append(p.script.queue, stamp{id: text(id)})
	}
	if want := text(header.Get("parentSession")); header.Exists() && want != "/sessions/"+old.file {
		p.fail(field+"header.parentSession", "/sessions/"+old.file, want)
	}
	s, err := p.repo.Fork(p.ctx, source, o)
	if err != nil {
		return []js.Member{member("error", p.agentError(field+"error", op.Get("error"), err, false))}, true
	}
	if !branched && !old.shared.exists {
		// The coding agent has no file to fork.
		p.deviate(ExistsAtOnce, field+"error")
		if want := op.Get("error"); !want.Get("name").Is("Error") || !strings.HasPrefix(text(want.Get("message")), "Cannot fork: source session file is empty or invalid") {
			p.fail(field+"error", "that there is no file to fork", shown(want))
		}
		s.Close()
		return []js.Member{member("error", op.Get("error"))}, true
	}
	entries, err := all(p.ctx, s)
	if err != nil {
		p.fail(field+"entryIds", "entries", err.Error())
		return nil, false
	}
	got := []js.Member{member("sourceFile", p.left(old))}
	m := &manager{shared: &sharedSession{s: s, entries: entries, exists: !branched}, file: text(p.fileName(s)), seen: slices.Clone(entries)}
	p.managers[on] = m
	head, err := s.Head(p.ctx)
	if err != nil {
		p.fail(field+"leafId", "the leaf", err.Error())
	}
	m.leaf = head.Leaf
	h, _ := p.headerOf(s)
	got = append(got, member("header", h), member("fileName", p.fileName(s)), member("entryIds", entryIDs(entries)))
	if branched {
		var labels []js.Value
		for _, e := range entries {
			if !slices.ContainsFunc(old.shared.entries, func(o eventlog.Entry) bool { return o.ID() == e.ID() }) {
				labels = append(labels, idValue(e.ID()))
			}
		}
		m.shared.exists = hasConversation(entries)
		got = append(got, member("newLabelIds", js.List(labels...)), member("written", js.Boolean(m.shared.exists)))
	}
	return got, true
}

// deleteFile has somebody remove the file. The coding agent goes on without its
// header; for us the session is gone.
func (p *agentReplay) deleteFile(field, on string, op js.Value) ([]js.Member, bool) {
	p.NotApplicable = "it removes the file of an open session, which is an error for us"
	return nil, false
}

// ask asks the live session. A manager that does not see what another wrote is asked
// as a session of what it does see.
func (p *agentReplay) ask(field, on string, op js.Value) ([]js.Member, bool) {
	m, want := p.managers[on], op.Get("result")
	s := m.shared.s
	head, err := s.Head(p.ctx)
	if err != nil {
		p.fail(field+"leafId", "the leaf", err.Error())
		return nil, true
	}
	if len(m.seen) != len(m.shared.entries) || head.Leaf != m.leaf {
		p.deviate(WritersTakeTurns, field+"result")
		if s = p.asSeen(field, m); s == nil {
			return nil, true
		}
		defer s.Close()
	}
	a := &agentAsker{run: p.run, s: s, leaf: m.leaf}
	got := []js.Member{
		member("leafId", nullFor(m.leaf.Value())),
		member("entryCount", js.Num(float64(len(m.seen)))),
		member("labels", a.labels()),
	}
	if !op.Get("args").Get("full").Exists() && want.Get("messages").Exists() {
		p.fail(field+"result", "a hash of the messages", "the messages")
	}
	got = append(got, a.name()...)
	branch, err := s.Branch(p.ctx, eventlog.None())
	if err != nil {
		p.fail(field+"branch", "a branch", err.Error())
	}
	context, err := s.ContextEntries(p.ctx, eventlog.None())
	if err != nil {
		p.fail(field+"context", "a context", err.Error())
	}
	got = append(got, member("branch", entryIDs(branch)), member("contextEntryIds", entryIDs(context)))
	got = append(got, a.counts(field, want, context)...)
	got = append(got, a.contextFrom(field, want, eventlog.None()).Members()...)
	return []js.Member{member("result", js.Fields(got...))}, true
}

// asSeen is a session of what a manager sees.
func (p *agentReplay) asSeen(field string, m *manager) *eventlog.Session {
	header, _ := p.headerOf(m.shared.s)
	header = js.WithMember(header, "id", js.Text("as-seen"))
	file := header.JSON() + "\n"
	for _, e := range m.seen {
		file += e.Line() + "\n"
	}
	s, err := p.backend.Agent.Load(p.ctx, p.repo, p.dir, "as-seen.jsonl", []byte(file), p.script.source())
	if err == nil {
		_, err = s.MoveTo(p.ctx, m.leaf, nil)
	}
	if err != nil {
		p.fail(field, "what the manager sees", err.Error())
		return nil
	}
	return s
}
