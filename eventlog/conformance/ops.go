package conformance

import (
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"github.com/sessiontree/sessiontree/eventlog"
	"github.com/sessiontree/sessiontree/eventlog/js"
)

// replay makes a session by applying the operations of an ops.json through the
// public interface, with the ids and times that Pi used.
type replay struct {
	*run
	script  *script
	repo    eventlog.Repo
	dir     string
	session *eventlog.Session
	entries []eventlog.Entry // what has been written so far
	forks   int
}

// replayOps applies the case's ops.json. The session is nil if that fails.
func (r *run) replayOps() *replay {
	p := &replay{run: r, script: &script{}}
	ops, ok := r.readJSON("ops.json")
	if !ok {
		return p
	}
	if p.repo, p.dir, ok = r.newRepo(p.script); !ok {
		return p
	}
	i := 0
	for op := range ops.Elements() {
		field := fmt.Sprintf("ops.json[%d].", i)
		if !p.apply(field, op) {
			break
		}
		i++
	}
	if p.session == nil && len(r.Failures) == 0 {
		r.fail("ops.json", "operations that make a session", shown(ops))
	}
	return p
}

// operation is what one kind of operation takes and does.
type operation struct {
	args []string
	do   func(p *replay, op, args js.Value) done
}

// done is what an operation did.
type done struct {
	entry  *eventlog.Entry // what was returned, if its id is a result
	err    error
	more   []js.Member // header, copied, sourceFile
	broken bool        // the session is not there: nothing can follow
}

func appended(e eventlog.Entry, err error) done {
	if err != nil {
		return done{err: err}
	}
	return done{entry: &e}
}

var operations = map[string]operation{
	"createSession": {[]string{"id", "cwd", "parentSession", "metadata"}, (*replay).create},
	"openFile":      {[]string{"file"}, (*replay).openFile},
	"reopen":        {nil, func(p *replay, _, _ js.Value) done { err := p.reopen(); return done{err: err, broken: err != nil} }},
	"fork":          {[]string{"id", "entryId", "position"}, (*replay).fork},
	"appendMessage": {[]string{"message"}, func(p *replay, _, args js.Value) done {
		return appended(p.session.AppendMessage(p.ctx, eventlog.Message{Value: args.Get("message")}))
	}},
	"appendThinkingLevelChange": {[]string{"thinkingLevel"}, func(p *replay, _, args js.Value) done {
		return appended(p.session.AppendThinkingLevelChange(p.ctx, text(args.Get("thinkingLevel"))))
	}},
	"appendModelChange": {[]string{"provider", "modelId"}, func(p *replay, _, args js.Value) done {
		return appended(p.session.AppendModelChange(p.ctx, text(args.Get("provider")), text(args.Get("modelId"))))
	}},
	"appendActiveToolsChange": {[]string{"activeToolNames"}, func(p *replay, _, args js.Value) done {
		var names []string
		for n := range args.Get("activeToolNames").Elements() {
			names = append(names, text(n))
		}
		return appended(p.session.AppendActiveToolsChange(p.ctx, names...))
	}},
	"appendCompaction": {[]string{"summary", "tokensBefore", "firstKeptEntryId", "retainedTail", "details", "usage", "fromHook"}, func(p *replay, _, args js.Value) done {
		tokens, _ := args.Get("tokensBefore").Float()
		return appended(p.session.AppendCompaction(p.ctx, eventlog.Compaction{
			Summary: text(args.Get("summary")), TokensBefore: tokens,
			FirstKeptEntryID: args.Get("firstKeptEntryId"), RetainedTail: args.Get("retainedTail"),
			Details: args.Get("details"), Usage: args.Get("usage"), FromHook: args.Get("fromHook"),
		}))
	}},
	"appendCustomEntry": {[]string{"customType", "data"}, func(p *replay, _, args js.Value) done {
		return appended(p.session.AppendCustom(p.ctx, text(args.Get("customType")), args.Get("data")))
	}},
	"appendCustomMessageEntry": {[]string{"customType", "content", "display", "details"}, func(p *replay, _, args js.Value) done {
		return appended(p.session.AppendCustomMessage(p.ctx, text(args.Get("customType")), args.Get("content"), args.Get("display").Truthy(), args.Get("details")))
	}},
	"appendLabel": {[]string{"targetId", "label"}, func(p *replay, _, args js.Value) done {
		target, label := text(args.Get("targetId")), args.Get("label")
		if s, ok := label.Str(); ok {
			return appended(p.session.SetLabel(p.ctx, target, s))
		}
		entries, err := p.session.Append(p.ctx, eventlog.LabelDraft(target, label)) // null, or absent
		if err != nil {
			return done{err: err}
		}
		return appended(entries[0], nil)
	}},
	"appendSessionName": {[]string{"name"}, func(p *replay, _, args js.Value) done {
		return appended(p.session.SetName(p.ctx, text(args.Get("name"))))
	}},
	"moveTo": {[]string{"entryId", "summary"}, (*replay).moveTo},
	"setLeafId": {[]string{"leafId"}, func(p *replay, _, args js.Value) done {
		_, err := p.session.MoveTo(p.ctx, ref(args.Get("leafId")), nil)
		return done{err: err}
	}},
	"appendEntry": {[]string{"entry"}, func(p *replay, _, args js.Value) done {
		e, err := eventlog.ParseEntry(js.Canonical(args.Get("entry")).JSON())
		if err == nil {
			err = p.session.Storage().AppendRaw(p.ctx, e)
		}
		return done{err: err}
	}},
}

// apply applies one operation and compares what it did. It says whether the
// next one can follow.
func (p *replay) apply(field string, op js.Value) bool {
	name := text(op.Get("op"))
	known, ok := operations[name]
	if !ok {
		p.fail(field+"op", "an operation that the runner knows", shown(op.Get("op")))
		return false
	}
	args := op.Get("args")
	for _, m := range args.Members() {
		if !slices.Contains(known.args, m.Key) {
			p.fail(field+"args."+m.Key, "an argument that the runner knows", shown(m.Value))
			return false
		}
	}
	if starts := name == "createSession" || name == "openFile"; starts != (p.session == nil) {
		p.fail(field+"op", "a session made first, and once", name)
		return false
	}
	var stamps []stamp
	for w := range op.Get("wrote").Elements() {
		stamps = append(stamps, stampOf(w))
	}
	p.script.play(stamps...)

	d := known.do(p, op, args)
	got := []js.Member{member("op", js.Text(name)), member("args", args)}
	if d.err != nil {
		got = append(got, member("error", p.failed(field+"error", op.Get("error"), d.err, nil, 0)))
	} else if d.entry != nil {
		got = append(got, member("result", js.Text(d.entry.ID())))
	}
	if p.session == nil {
		p.compare(field, op, append(got, d.more...))
		return false
	}
	wrote, err := p.written()
	if err != nil {
		p.fail(field+"wrote", "entries", err.Error())
		return false
	}
	if name == "openFile" || name == "fork" { // what was there before is not written
		wrote = js.Value{}
	}
	if d.entry != nil && p.entries[len(p.entries)-1].JSON() != d.entry.JSON() {
		p.fail(field+"result", "the entry that was written: "+cut(p.entries[len(p.entries)-1].JSON()), cut(d.entry.JSON()))
	}
	p.compare(field, op, append(append(got, member("wrote", wrote)), d.more...))
	return !d.broken
}

// written gives the entries that are new, as the vectors list them.
func (p *replay) written() (js.Value, error) {
	var list []js.Value
	for e, err := range p.session.Entries(p.ctx, len(p.entries), eventlog.All) {
		if err != nil {
			return js.Value{}, err
		}
		p.entries = append(p.entries, e)
		list = append(list, js.Fields(
			member("seq", js.Num(float64(len(p.entries)))),
			member("id", js.Text(e.ID())),
			member("type", js.Text(string(e.Type()))),
			member("timestamp", js.Text(e.Timestamp()))))
	}
	if list == nil {
		return js.Value{}, nil
	}
	return js.List(list...), nil
}

func (p *replay) header() js.Value {
	m, err := p.session.Metadata(p.ctx)
	if err != nil {
		p.fail("header", "the session's header", err.Error())
		return js.Value{}
	}
	h, err := js.Parse(m.Header)
	if err != nil {
		p.fail("header", "JSON", m.Header)
	}
	return h
}

func (p *replay) create(op, args js.Value) done {
	p.script.at(text(op.Get("header").Get("timestamp")))
	o := eventlog.CreateOptions{ID: text(args.Get("id")), CWD: text(args.Get("cwd")), Metadata: args.Get("metadata")}
	if parent := args.Get("parentSession"); parent.Exists() {
		o.ParentSession = ref(parent)
	}
	s, err := p.repo.Create(p.ctx, o)
	if err != nil {
		return done{err: err, broken: true}
	}
	p.session = s
	return done{more: []js.Member{member("header", p.header())}}
}

func (p *replay) openFile(op, args js.Value) done {
	name := text(args.Get("file"))
	file, ok := p.read(name)
	if !ok {
		return done{broken: true}
	}
	s, err := p.backend.Load(p.ctx, p.repo, p.dir, fileName, []byte(file))
	if err != nil {
		return done{err: err, broken: true}
	}
	p.session = s
	return done{}
}

// reopen closes the session and reads it again.
func (p *replay) reopen() error {
	m, err := p.session.Metadata(p.ctx)
	if err != nil {
		return err
	}
	if err := p.session.Close(); err != nil {
		return err
	}
	p.session, err = p.repo.Open(p.ctx, m)
	return err
}

// fork goes on with a fork; the session that it was made from must be as its
// file.
func (p *replay) fork(op, args js.Value) done {
	source := p.session
	m, err := source.Metadata(p.ctx)
	if err != nil {
		return done{err: err, broken: true}
	}
	p.script.at(text(op.Get("header").Get("timestamp")))
	name := fmt.Sprintf("source-%d.jsonl", p.forks+1)
	made, err := p.repo.Fork(p.ctx, m, eventlog.ForkOptions{
		CreateOptions: eventlog.CreateOptions{ID: text(args.Get("id")), CWD: m.CWD, ParentSession: eventlog.At(name)},
		EntryID:       text(args.Get("entryId")), Position: eventlog.Position(text(args.Get("position"))),
	})
	if err != nil {
		return done{err: err}
	}
	p.forks++
	if want, ok := p.read(name); ok {
		p.sameFile(name, want, source)
	}
	if err := source.Close(); err != nil {
		return done{err: err, broken: true}
	}
	p.session, p.entries = made, nil
	copied, err := all(p.ctx, made)
	if err != nil {
		return done{err: err, broken: true}
	}
	return done{more: []js.Member{member("header", p.header()), member("copied", idList(copied)), member("sourceFile", js.Text(name))}}
}

func (p *replay) moveTo(op, args js.Value) done {
	var summary *eventlog.Summary
	if s := args.Get("summary"); s.Exists() {
		for _, m := range s.Members() {
			if !slices.Contains([]string{"summary", "details", "usage", "fromHook"}, m.Key) {
				return done{err: fmt.Errorf("a member %q of the summary that the runner does not know", m.Key)}
			}
		}
		summary = &eventlog.Summary{Text: text(s.Get("summary")), Details: s.Get("details"), Usage: s.Get("usage"), FromHook: s.Get("fromHook")}
	}
	entries, err := p.session.MoveTo(p.ctx, ref(args.Get("entryId")), summary)
	if err != nil || summary == nil {
		return done{err: err}
	}
	return appended(entries[len(entries)-1], nil)
}

// session runs a case of handmade, random or large.
func (r *run) session() {
	want, ok := r.expectation()
	if !ok {
		return
	}
	file, ok := r.read(fileName)
	if !ok {
		return
	}
	p := r.replayOps()
	if p.session != nil {
		r.sameFile(fileName, file, p.session)
		a := asker{run: r, repo: p.repo, want: want, file: file, written: true}
		r.stage, a.s = "live", p.session
		a.ask(common...)
		if r.enough() {
			p.session.Close()
			return
		}
		r.stage = "reopened"
		if err := p.reopen(); err != nil {
			r.fail("reopen", "the session", err.Error())
		} else {
			a.s = p.session
			a.ask(common...)
			p.session.Close()
		}
	}
	if r.enough() {
		return
	}
	r.stage = "loaded"
	r.loaded(file, func(a *asker) {
		a.want, a.written = want, true
		a.ask(common...)
	})
}

// loaded runs f with a session loaded from a file, which must be as it was
// afterwards.
func (r *run) loaded(file string, f func(*asker)) {
	a := &asker{run: r, file: file}
	repo, dir, ok := r.newRepo(&script{})
	if !ok {
		return
	}
	s, err := r.backend.Load(r.ctx, repo, dir, fileName, []byte(file))
	if err != nil {
		r.fail(r.at("load"), "the session", err.Error())
		return
	}
	defer s.Close()
	a.repo, a.s = repo, s
	f(a)
	if r.backend.Files {
		r.sameBytes("file after the questions", file, r.fileOf(s))
	}
}

const fileName = "session.jsonl"

// hidden puts <path> in the place of the file's path in a message.
func hidden(message, dir string) string {
	message = strings.ReplaceAll(message, filepath.Join(dir, fileName), "<path>")
	return strings.ReplaceAll(message, fileName, "<path>")
}
