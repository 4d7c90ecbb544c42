package conformance

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/sessiontree/sessiontree/eventlog"
	"github.com/sessiontree/sessiontree/eventlog/js"
)

// agentFolder runs the case of folder: names of folders and files, listing,
// searching.
func (r *run) agentFolder() {
	if r.backend.Agent == nil || r.backend.Agent.ListFolder == nil {
		r.NotApplicable = "it asks where files are put and which are listed, and the backend has no files"
		return
	}
	want, ok := r.agentCommon()
	if !ok {
		return
	}
	f := &agentFolder{run: r, want: want, times: map[string]float64{}}
	if f.dir, ok = r.agentDir(); !ok || !f.copy() {
		return
	}
	r.compare("", want, []js.Member{
		member("folderNames", f.each("folderNames", f.folderName)),
		member("ids", f.each("ids", f.id)),
		member("modifiedTimes", want.Get("modifiedTimes")),
		member("lists", f.each("lists", f.list)),
		member("listOfMissingFolder", js.List()),
		member("findById", f.each("findById", f.find)),
		member("mostRecent", f.each("mostRecent", f.recent)),
		member("continued", f.continued()),
		member("continuedNowhere", f.continuedNowhere()),
	}, common...)
}

type agentFolder struct {
	*run
	want  js.Value
	dir   string // a copy of the sessions
	files map[string][]byte
	times map[string]float64
}

func (f *agentFolder) each(list string, answer func(field string, want js.Value) js.Value) js.Value {
	var got []js.Value
	for w := range f.want.Get(list).Elements() {
		got = append(got, answer(fmt.Sprintf("%s[%d]", list, len(got)), w))
	}
	return js.List(got...)
}

// copy copies the files, with the times that they had.
func (f *agentFolder) copy() bool {
	f.files = map[string][]byte{}
	entries, err := fs.ReadDir(f.vectors, "sessions")
	if err != nil {
		f.fail("sessions", "a folder", err.Error())
		return false
	}
	for _, e := range entries {
		b, err := fs.ReadFile(f.vectors, "sessions/"+e.Name())
		to := filepath.Join(f.dir, e.Name())
		if err == nil {
			err = os.WriteFile(to, b, 0o600)
		}
		at := js.ParseDate(text(f.want.Get("modifiedTimes").Get(e.Name())))
		if err == nil && !math.IsNaN(at) {
			f.times[e.Name()] = at
			err = os.Chtimes(to, time.UnixMilli(int64(at)), time.UnixMilli(int64(at)))
		}
		if err != nil {
			f.fail("sessions", "a copy", err.Error())
			return false
		}
		f.files[e.Name()] = b
	}
	return true
}

// created makes a session in a repository of its own and gives its file.
func (f *agentFolder) created(o eventlog.CreateOptions, at string) (file string, s *eventlog.Session, err error) {
	dir, ok := f.agentDir()
	if !ok {
		return "", nil, errors.New("no folder")
	}
	script := &script{}
	script.at(at)
	repo, err := f.backend.Agent.New(dir, script.source())
	if err != nil {
		return "", nil, err
	}
	o.Dialect = eventlog.CodingAgent
	if s, err = repo.Create(f.ctx, o); err != nil {
		return "", nil, err
	}
	m, err := s.Metadata(f.ctx)
	if err != nil {
		return "", s, err
	}
	file, err = filepath.Rel(dir, m.Path)
	return filepath.ToSlash(file), s, err
}

func (f *agentFolder) folderName(field string, want js.Value) js.Value {
	cwd := text(want.Get("cwd"))
	file, s, err := f.created(eventlog.CreateOptions{ID: "a", CWD: cwd}, agentClock)
	if err != nil {
		f.fail(field, "a session", err.Error())
		return js.Value{}
	}
	s.Close()
	pi := piDir(agentCWD(cwd))
	if ours, _, _ := strings.Cut(file, "/"); ours != pi {
		f.deviate(NamesEncoded, field)
	}
	return js.Fields(member("cwd", js.Text(cwd)), member("folder", js.Text(pi)))
}

// id says which session ids are allowed, and the file that they get. None makes one
// of ours.
func (f *agentFolder) id(field string, want js.Value) js.Value {
	id, created := text(want.Get("id")), "2026-03-27T00:08:35.000Z"
	check := id
	if id == "" {
		check = " " // "" asks our Create to make one: what is refused is any id that is none
	}
	file, s, err := f.created(eventlog.CreateOptions{ID: check, CWD: "/project"}, created)
	if err != nil {
		return js.Fields(member("id", js.Text(id)), member("error", f.agentError(field, want.Get("error"), err, false)))
	}
	s.Close()
	return js.Fields(member("id", js.Text(id)), member("fileName", js.Text(filepath.Base(file))))
}

// list is the folder's list, of all or of one working folder. One bad entry hides a
// session in the coding agent's.
func (f *agentFolder) list(field string, want js.Value) js.Value {
	cwd := text(want.Get("cwd"))
	infos, errs, err := f.backend.Agent.ListFolder(f.ctx, f.dir, cwd)
	if err != nil {
		f.fail(field, "a list", err.Error())
		return js.Value{}
	}
	var list []js.Value
	for i, info := range infos {
		name := filepath.Base(info.Path)
		modified := text(isoOf(f.times[name]))
		_, shows := agentInfo(f.files[name], modified)
		if errs[i] != nil || !shows {
			f.deviate(BadEntryListed, field+" "+name)
			continue
		}
		v := infoValue(info, f.files[name], modified)
		if pi, _ := agentInfo(f.files[name], modified); js.Diff(pi, v) != nil {
			f.fail(field+" "+name, shown(pi), shown(v))
		}
		list = append(list, js.Fields(append([]js.Member{member("path", js.Text(name))}, v.Members()...)...))
	}
	given := want.Get("cwd")
	return js.Fields(member("cwd", given), member("sessions", js.List(list...)))
}

// headers are the folder's sessions by their headers, newest file first.
func (f *agentFolder) headers(field string) []eventlog.Info {
	infos, _, err := f.backend.Agent.ListFolder(f.ctx, f.dir, "")
	if err != nil {
		f.fail(field, "a list", err.Error())
	}
	slices.SortStableFunc(infos, func(a, b eventlog.Info) int {
		return int(f.times[filepath.Base(b.Path)] - f.times[filepath.Base(a.Path)])
	})
	return infos
}

// find is the file of an id in a working folder.
func (f *agentFolder) find(field string, want js.Value) js.Value {
	id, cwd := text(want.Get("id")), text(want.Get("cwd"))
	file := js.NullValue()
	for _, i := range f.headers(field) {
		if i.ID == id && i.CWD == cwd {
			file = js.Text(filepath.Base(i.Path))
		}
	}
	return js.Fields(member("id", js.Text(id)), member("cwd", js.Text(cwd)), member("file", file))
}

func (f *agentFolder) recent(field string, want js.Value) js.Value {
	cwd := text(want.Get("cwd"))
	file := js.NullValue()
	for _, i := range f.headers(field) {
		if cwd == "" || i.CWD == cwd {
			file = js.Text(filepath.Base(i.Path))
			break
		}
	}
	return js.Fields(member("cwd", want.Get("cwd")), member("file", file))
}

// continued takes the most recent session of a working folder up.
func (f *agentFolder) continued() js.Value {
	want := f.want.Get("continued")
	cwd := text(want.Get("cwd"))
	file := text(f.recent("continued", want).Get("file"))
	script := &script{}
	repo, err := f.backend.Agent.New(f.dir, script.source())
	if err != nil {
		f.fail("continued", "a repository", err.Error())
		return js.Value{}
	}
	s, err := repo.Open(f.ctx, eventlog.Metadata{Path: filepath.Join(f.dir, file)})
	if err != nil {
		f.fail("continued", "a session", err.Error())
		return js.Value{}
	}
	defer s.Close()
	m, err := s.Metadata(f.ctx)
	if err != nil {
		f.fail("continued", "a session", err.Error())
	}
	head, err := s.Head(f.ctx)
	if err != nil {
		f.fail("continued", "the leaf", err.Error())
	}
	return js.Fields(member("cwd", js.Text(cwd)), member("sessionId", js.Text(m.ID)), member("file", js.Text(file)), member("leafId", nullFor(head.Leaf.Value())))
}

func (f *agentFolder) continuedNowhere() js.Value {
	want := f.want.Get("continuedNowhere")
	cwd := text(want.Get("cwd"))
	if file := f.recent("continuedNowhere", want).Get("file"); file.Kind() != js.Null {
		f.fail("continuedNowhere", "no session", shown(file))
	}
	_, s, err := f.created(eventlog.CreateOptions{CWD: cwd}, agentClock)
	if err != nil {
		f.fail("continuedNowhere", "a session", err.Error())
		return js.Value{}
	}
	defer s.Close()
	m, err := s.Metadata(f.ctx)
	if err != nil {
		f.fail("continuedNowhere", "a session", err.Error())
	}
	entries, err := all(f.ctx, s)
	if err != nil {
		f.fail("continuedNowhere", "entries", err.Error())
	}
	header := js.WithMember(js.WithMember(js.Trusted(m.Header), "id", js.Text("$session")), "timestamp", js.Text("$now"))
	return js.Fields(member("cwd", js.Text(cwd)), member("entryCount", js.Num(float64(len(entries)))), member("header", header))
}

// agentReal runs the case of a real session whose file is not part of the vectors.
func (r *run) agentReal() {
	want, ok := r.agentCommon()
	if !ok {
		return
	}
	var file []byte
	if r.beside != nil {
		file, _ = fs.ReadFile(r.beside, "real/"+strings.TrimPrefix(r.Name, "real-")+".jsonl")
	}
	if h := sha256.Sum256(file); !want.Get("inputSha256").Is(hex.EncodeToString(h[:])) {
		r.NotApplicable = "its file is not part of the vectors, and not in a folder real beside them"
		return
	}
	dir, ok := r.agentDir()
	if !ok {
		return
	}
	repo, err := r.backend.Agent.New(dir, eventlog.Source{})
	if err != nil {
		r.fail("repository", "a new one", err.Error())
		return
	}
	r.repos = append(r.repos, repo)
	s, err := r.backend.Agent.Load(r.ctx, repo, dir, input, file, eventlog.Source{})
	if err != nil {
		r.fail("opens", "the session", err.Error())
		return
	}
	defer s.Close()
	facts, err := r.backend.Agent.Inspect(input, file)
	if err != nil {
		r.fail("opens", "the session", err.Error())
		return
	}
	entries, err := all(r.ctx, s)
	if err != nil {
		r.fail("entryCount", "entries", err.Error())
		return
	}
	real := &agentReal{agentAsker: &agentAsker{run: r, want: want, file: file, s: s, repo: repo, facts: facts, entries: entries}}
	real.fields = map[string]js.Value{}
	for _, m := range want.Members() {
		real.fields[m.Key] = m.Value
	}
	r.compare("", want, real.answers(), common...)
}

// agentReal asks by lines, and compares counts and hashes.
type agentReal struct{ *agentAsker }

func (a *agentReal) answers() []js.Member {
	a.deviate(NothingOnOpen, "fileAfterOpen")
	m, err := a.s.Metadata(a.ctx)
	if err != nil {
		a.fail("header", "the header", err.Error())
	}
	header, _ := js.Parse(m.Header)
	head, err := a.s.Head(a.ctx)
	if err != nil {
		a.fail("leafLine", "the leaf", err.Error())
	}
	types, roles := map[string]int{}, map[string]int{}
	var bare, heads, roots []js.Value
	chain := true
	parent := eventlog.None()
	for i, e := range a.entries {
		types[string(e.Type())]++
		heads = append(heads, a.messageHead(e, roles))
		bare = append(bare, js.WithMember(js.WithMember(e.Value(), "id", js.Value{}), "parentId", js.Value{}))
		if e.Parent().IsNone() {
			roots = append(roots, a.line(i))
		}
		chain = chain && e.Parent() == parent
		parent = eventlog.At(e.ID())
	}
	var messageHeads []js.Value
	for _, h := range heads {
		if h.Exists() {
			messageHeads = append(messageHeads, h)
		}
	}
	labels, err := a.s.LabelList(a.ctx)
	if err != nil {
		a.fail("labels", "labels", err.Error())
	}
	from := a.facts.From
	got := []js.Member{
		member("inputSha256", a.fields["inputSha256"]),
		member("inputBytes", js.Num(float64(len(a.file)))),
		member("info", a.info()),
		member("opens", js.Boolean(true)),
		member("fileAfterOpen", js.Text("rewritten")),
		member("linesAfterOpen", js.Num(float64(1+len(a.entries)))),
		member("header", header),
		member("cwd", js.Text(agentCWD(m.CWD))),
		member("migrated", js.Fields(member("fromVersion", nullFor(from)), member("idsGiven", js.Boolean(a.facts.IDsGiven)), member("chain", js.Boolean(chain)))),
		member("entryCount", js.Num(float64(len(a.entries)))),
		member("types", counted(types)),
		member("roles", counted(roles)),
		member("entriesSha256", valueSum(js.List(bare...))),
		member("messageSha256Heads", js.List(messageHeads...)),
		member("leafLine", a.lineOf(head.Leaf.ID())),
		member("rootLines", js.List(roots...)),
		member("labels", js.Num(float64(len(labels)))),
		member("branchLengths", a.each("branchLengths", a.branchLength)),
		member("contexts", a.each("contexts", a.context)),
		member("currentContext", a.context("currentContext", js.WithMember(a.fields["currentContext"], "line", a.lineOf(head.Leaf.ID())))),
	}
	return append(append(append(got, a.name()...), a.totals()...), a.asText()...)
}

func (a *agentReal) messageHead(e eventlog.Entry, roles map[string]int) js.Value {
	if e.Type() != eventlog.TypeMessage {
		return js.Value{}
	}
	roles[e.Message().Role()]++
	return js.Text(text(valueSum(e.Message().Value))[:8])
}

func (a *agentReal) line(i int) js.Value { return js.Num(float64(a.facts.EntryLines[i])) }

func (a *agentReal) lineOf(id string) js.Value {
	for i, e := range a.entries {
		if e.ID() == id {
			return a.line(i)
		}
	}
	return js.NullValue()
}

// at is the entry of a line.
func (a *agentReal) entryAt(line js.Value) eventlog.Ref {
	for i, e := range a.entries {
		if js.Diff(a.line(i), line) == nil {
			return eventlog.At(e.ID())
		}
	}
	return eventlog.None()
}

func (a *agentReal) branchLength(field string, want js.Value) js.Value {
	branch, err := a.s.Branch(a.ctx, a.entryAt(want.Get("line")))
	if err != nil {
		return a.wrong(field, err)
	}
	return js.Fields(member("line", want.Get("line")), member("length", js.Num(float64(len(branch)))))
}

func (a *agentReal) context(field string, want js.Value) js.Value {
	c, err := a.s.BuildContext(a.ctx, a.entryAt(want.Get("line")))
	if err != nil {
		return a.wrong(field, err)
	}
	roles := map[string]int{}
	for _, m := range c.Messages {
		roles[m.Role()]++
	}
	fields := agentContext(c, want).Members()
	fields = slices.DeleteFunc(fields, func(m js.Member) bool { return m.Key == "tools" && !want.Get("tools").Exists() })
	return js.Fields(append([]js.Member{member("line", want.Get("line")), member("roles", counted(roles))}, fields...)...)
}

func (a *agentReal) asText() []js.Member {
	d := eventlog.CodingAgent
	c, err := a.s.BuildContext(a.ctx, eventlog.None())
	var llm []eventlog.Message
	if err == nil {
		llm, err = d.ToLLM(c.Messages)
	}
	var conversation string
	if err == nil {
		conversation, err = d.ConversationText(llm)
	}
	var system eventlog.Message
	if err == nil {
		system, err = eventlog.System(c.Messages)
	}
	if err != nil {
		a.fail("currentText", "a text", err.Error())
	}
	return []js.Member{
		member("currentLlm", js.Fields(messagesInForm(llm, a.fields["currentLlm"])...)),
		member("currentText", js.Fields(member("length", js.Num(float64(js.Len(conversation)))), member("textSha256", textSum(conversation)))),
		member("systemMessage", nullFor(system.Value)),
	}
}

func counted(n map[string]int) js.Value {
	var fields []js.Member
	for k, v := range n {
		fields = append(fields, member(k, js.Num(float64(v))))
	}
	return js.Fields(fields...)
}
