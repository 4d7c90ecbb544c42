package conformance

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/sessiontree/sessiontree/eventlog"
	"github.com/sessiontree/sessiontree/eventlog/js"
)

// Backend is what the suite needs of a backend.
type Backend struct {
	Name string

	// New makes an empty repository in dir, an empty folder, whose times and ids
	// come from source. One that has a Close, with or without a context, is closed
	// when it is no longer needed.
	New func(dir string, source eventlog.Source) (eventlog.Repo, error)

	// Load brings the bytes of a session file into a repository that New made in
	// dir, as Pi reads it: strictly, with Pi's errors. A backend with files writes
	// them to dir/name and opens that; without, errors call the file name. A nil
	// file is one that is not there.
	Load func(ctx context.Context, repo eventlog.Repo, dir, name string, file []byte) (*eventlog.Session, error)

	// Header reads the header of such a file alone, strictly, as a list does.
	Header func(ctx context.Context, dir, name string, file []byte) (eventlog.Metadata, error)

	// Files says that each session is a file: at Metadata.Path, below the folder
	// that the repository was made in, where any session file that is put into a
	// folder is listed. Cases that ask about files are not applicable without.
	Files bool

	// Agent is the backend for the coding agent's vectors, nil if it has not that
	// dialect.
	Agent *AgentBackend
}

// Options configure a run. The zero value runs all cases.
type Options struct {
	// Dir is where the folder for what the backend writes is made, and removed
	// again; "" is the system's for such.
	Dir string
	// Workers is how many cases run at a time; 0 is one for each processor.
	Workers int
	// Only, if not nil, says which cases are run; the rest are not in the report.
	Only func(name string) bool

	// Beside is the folder in which the vectors' folder lies: a file that is not part
	// of the vectors may be there. nil if there is none.
	Beside fs.FS

	quick bool // end a case with the first stage that fails
}

// reference is the program whose answers the vectors hold.
const reference = "@earendil-works/pi-agent-core@0.83.0"

// group is a folder of cases of one kind, in the order in which they are run
// where there is no index.
type group struct {
	name string
	run  func(*run)
}

func groups() []group {
	return []group{
		{"handmade", (*run).session},
		{"random", (*run).session},
		{"malformed", (*run).malformed},
		{"navigate", (*run).navigate},
		{"large", (*run).session},
		{"repo", (*run).repository},
	}
}

// Run runs a folder of vectors against a backend. Groups may be absent, and so
// may index.json. The error is one of the run itself: vectors that cannot be
// listed, a context that was cancelled; what the backend does wrong is in the
// report.
func Run(ctx context.Context, vectors fs.FS, b Backend, o Options) (*Report, error) {
	if b.New == nil || b.Load == nil || b.Header == nil {
		return nil, errors.New("conformance: the backend lacks New, Load or Header")
	}
	runs, err := plan(vectors)
	if err != nil {
		return nil, err
	}
	if o.Only != nil {
		runs = slices.DeleteFunc(runs, func(r *run) bool { return !o.Only(r.Name) })
	}
	dir, err := os.MkdirTemp(o.Dir, "conformance-")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(dir)
	workers := o.Workers
	if workers <= 0 {
		workers = runtime.GOMAXPROCS(0)
	}
	// The largest cases first: one of them started last would keep everybody
	// waiting.
	order := slices.Clone(runs)
	slices.SortStableFunc(order, func(a, b *run) int { return b.weight - a.weight })
	queue := make(chan *run)
	var wg sync.WaitGroup
	for range workers {
		wg.Go(func() {
			for r := range queue {
				r.do(ctx, b)
			}
		})
	}
	for i, r := range order {
		if ctx.Err() != nil {
			break
		}
		r.dir, r.quick, r.beside = filepath.Join(dir, strconv.Itoa(i)), o.quick, o.Beside
		queue <- r
	}
	close(queue)
	wg.Wait()
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	report := &Report{Backend: b.Name}
	for _, r := range runs {
		report.Cases = append(report.Cases, r.Case)
	}
	return report, nil
}

// run is one case while it runs.
type run struct {
	Case
	ctx     context.Context
	vectors fs.FS // the case's folder
	beside  fs.FS
	// reference is the program whose answers the case has.
	reference string
	backend   Backend
	dir       string // for what the backend writes
	dirs      int
	kind      func(*run)
	weight    int
	about     *string // what the index says of the case
	stage     string  // how the session that is asked came about
	quick     bool
	looped    bool // an answer fitted the rule LoopsForever
	repos     []eventlog.Repo
	// canonical are lines as Pi would write them; see canonicalLines.
	canonical map[string]string
}

// plan lists the cases.
func plan(vectors fs.FS) ([]*run, error) {
	kinds, agentKinds := map[string]func(*run){}, map[string]func(*run){}
	var names []string
	folders, err := fs.ReadDir(vectors, ".")
	if err != nil {
		return nil, err
	}
	var order []string
	for _, g := range groups() {
		kinds[g.name] = g.run
		order = append(order, g.name)
	}
	for _, g := range agentGroups() {
		agentKinds[g.name] = g.run
		if kinds[g.name] == nil {
			order = append(order, g.name)
		}
	}
	for _, f := range folders {
		if f.IsDir() && agentKinds[f.Name()] == nil && kinds[f.Name()] == nil && !strings.HasPrefix(f.Name(), ".") {
			order = append(order, f.Name())
		}
	}
	present := map[string]bool{}
	for _, g := range order {
		cases, err := fs.ReadDir(vectors, g)
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return nil, err
		}
		for _, c := range cases {
			if c.Name() == "expect.json" { // a case alone
				present[g] = true
				names = append(names, g)
			}
			if c.IsDir() && !strings.HasPrefix(g, "real-") {
				present[g] = true
				names = append(names, g+"/"+c.Name())
			}
		}
	}
	about := map[string]string{}
	index, err := fs.ReadFile(vectors, "index.json")
	hasIndex := err == nil
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	var indexed []string
	if hasIndex {
		list, err := js.Parse(js.DecodeUTF8(string(index)))
		if err != nil {
			return nil, fmt.Errorf("index.json: %w", err)
		}
		for v := range list.Elements() {
			name := text(v.Get("name"))
			// A copy may have some of the groups only.
			if g, _, _ := strings.Cut(name, "/"); present[g] {
				indexed = append(indexed, name)
				about[name] = text(v.Get("about"))
			}
		}
	}
	var runs []*run
	add := func(name string) *run {
		g, _, _ := strings.Cut(name, "/")
		r := &run{Case: Case{Name: name}, kind: kinds[g]}
		for _, file := range []string{"session.jsonl", "expect.json"} {
			if info, err := fs.Stat(vectors, path.Join(name, file)); err == nil {
				r.weight += int(info.Size())
			}
		}
		var err error
		if r.vectors, err = fs.Sub(vectors, name); err != nil {
			r.fail("name", "a path", err.Error())
		}
		if r.reference = referenceOf(r.vectors); r.reference == agentReference {
			r.kind = agentKinds[g]
		} else {
			r.reference = reference
		}
		if r.kind == nil {
			r.fail("group", "one that the runner knows", g)
		}
		runs = append(runs, r)
		return r
	}
	for i, name := range indexed {
		r := add(name)
		a := about[name]
		r.about = &a
		if !slices.Contains(names, name) {
			r.fail("index.json", "a case that is there", name)
		}
		if slices.Contains(indexed[:i], name) {
			r.fail("index.json", "each case once", name)
		}
	}
	for _, name := range names {
		if !slices.Contains(indexed, name) {
			add(name)
		}
	}
	return runs, nil
}

// referenceOf is the program that a case's answers are from.
func referenceOf(folder fs.FS) string {
	file, err := fs.ReadFile(folder, "expect.json")
	if err != nil {
		return ""
	}
	v, err := js.Parse(js.DecodeUTF8(string(file)))
	if err != nil {
		return ""
	}
	return text(v.Get("reference"))
}

// do runs the case.
func (r *run) do(ctx context.Context, b Backend) {
	r.ctx, r.backend = ctx, b
	defer func() {
		if p := recover(); p != nil {
			stack := make([]byte, 4096)
			r.fail("panic", "none", fmt.Sprintf("%v\n%s", p, stack[:runtime.Stack(stack, false)]))
		}
		for _, repo := range r.repos {
			if err := closeRepo(context.WithoutCancel(ctx), repo); err != nil {
				r.fail("close", "no error", err.Error())
			}
		}
		os.RemoveAll(r.dir)
	}()
	if len(r.Failures) == 0 {
		r.kind(r)
	}
}

// newDir makes an empty folder.
func (r *run) newDir() (string, error) {
	dir := filepath.Join(r.dir, strconv.Itoa(r.dirs))
	r.dirs++
	return dir, os.MkdirAll(dir, 0o700)
}

// newRepo makes an empty repository.
func (r *run) newRepo(s *script) (repo eventlog.Repo, dir string, ok bool) {
	dir, err := r.newDir()
	if err == nil {
		repo, err = r.backend.New(dir, s.source())
	}
	if err != nil {
		r.fail("repository", "a new one", err.Error())
		return nil, dir, false
	}
	r.repos = append(r.repos, repo)
	return repo, dir, true
}

// closeRepo closes a repository that can be closed.
func closeRepo(ctx context.Context, repo eventlog.Repo) error {
	switch c := repo.(type) {
	case interface{ Close() error }:
		return c.Close()
	case interface{ Close(context.Context) error }:
		return c.Close(ctx)
	}
	return nil
}

// read gives a file of the case; one that is not there is a failure.
func (r *run) read(name string) (string, bool) {
	b, err := fs.ReadFile(r.vectors, name)
	if err != nil {
		r.fail(name, "a file", err.Error())
	}
	return string(b), err == nil
}

// readJSON gives a file of the case that is JSON.
func (r *run) readJSON(name string) (js.Value, bool) {
	file, ok := r.read(name)
	if !ok {
		return js.Value{}, false
	}
	v, err := js.Parse(js.DecodeUTF8(file))
	if err != nil {
		r.fail(name, "JSON", err.Error())
	}
	return v, err == nil
}

// expectation is expect.json, less what all cases have: those are checked here.
func (r *run) expectation() (js.Value, bool) {
	want, ok := r.readJSON("expect.json")
	if !ok {
		return want, false
	}
	if want.Kind() != js.Object {
		r.fail("expect.json", "an object", want.Kind().String())
		return want, false
	}
	about := want.Get("about")
	if r.about != nil {
		about = js.Text(*r.about)
	} else if text(about) == "" {
		r.fail("about", "a sentence", about.JSON())
	}
	r.equal("case", want.Get("case"), js.Text(r.Name))
	r.equal("about", want.Get("about"), about)
	r.equal("reference", want.Get("reference"), js.Text(r.reference))
	return want, true
}

// enough says whether the case may end here.
func (r *run) enough() bool { return r.quick && len(r.Failures) > 0 }

// common are the fields of expect.json that expectation checks.
var common = []string{"case", "about", "reference"}

// at is a field's path with the stage before it.
func (r *run) at(field string) string {
	if r.stage == "" {
		return field
	}
	return r.stage + ": " + field
}

// longest is how much of a text a failure shows.
const longest = 400

func cut(s string) string {
	if len(s) > longest {
		return s[:longest] + "…"
	}
	return s
}

func shown(v js.Value) string {
	if !v.Exists() {
		return "nothing"
	}
	return cut(v.JSON())
}

// equal compares an answer.
func (r *run) equal(field string, want, got js.Value) {
	d := js.Diff(want, got)
	if d == nil {
		return
	}
	// An infinity that a file holds (1e400) is null in what JSON.stringify wrote.
	if d = js.Diff(want, js.Canonical(got)); d != nil {
		r.fail(r.at(field+d.Path), shown(d.Want), shown(d.Got))
	}
}

// compare compares an object member by member: all of got, and nothing that is
// not in got, save for what is named in besides.
func (r *run) compare(prefix string, want js.Value, got []js.Member, besides ...string) {
	if want.Kind() != js.Object {
		r.fail(r.at(prefix), "an object", shown(want))
		return
	}
	wanted := map[string]js.Value{}
	for _, m := range want.Members() {
		wanted[m.Key] = m.Value
	}
	for _, m := range got {
		r.equal(prefix+m.Key, wanted[m.Key], m.Value)
		delete(wanted, m.Key)
	}
	for _, k := range besides {
		delete(wanted, k)
	}
	for _, m := range want.Members() {
		if _, unknown := wanted[m.Key]; unknown {
			r.fail(r.at(prefix+m.Key), "a field that the runner knows", shown(m.Value))
		}
	}
}

// sameBytes compares files.
func (r *run) sameBytes(field, want, got string) {
	if want == got {
		return
	}
	at := 0
	for at < len(want) && at < len(got) && want[at] == got[at] {
		at++
	}
	from := max(0, at-40)
	part := func(s string) string { return fmt.Sprintf("%d bytes, from byte %d: %s", len(s), from, cut(s[from:])) }
	r.fail(r.at(field), part(want), part(got))
}

// errorOf is an error as the vectors have it.
func errorOf(err error) (name, code js.Value, message string) {
	var e *eventlog.Error
	if !errors.As(err, &e) {
		return js.Text("Error"), js.NullValue(), err.Error()
	}
	return js.Text("SessionError"), js.Text(string(e.Code)), messageOf(e)
}

// messageOf is the message alone, without the cause that Error puts behind it.
func messageOf(e *eventlog.Error) string {
	if e.Message == "" && e.Err != nil {
		return e.Err.Error()
	}
	return e.Message
}

// failed is the error of an answer in the form of the vectors: the expected one
// if err is as right, else err. Where Pi trips over a value, we say that the
// entry is invalid; no other failure will do.
func (r *run) failed(field string, want js.Value, err error, endless func() bool, entries int) js.Value {
	nameKey := "name"
	if want.Get("errorName").Exists() {
		nameKey = "errorName"
	}
	name, code, message := errorOf(err)
	wantName, wantCode, wantMessage := want.Get(nameKey), want.Get("code"), text(want.Get("message"))
	form := func(name, code js.Value, message string) js.Value {
		return js.Fields(js.Member{Key: nameKey, Value: name}, js.Member{Key: "code", Value: code}, js.Member{Key: "message", Value: js.Text(message)})
	}
	switch {
	case isAccident(wantName, wantCode, wantMessage) && code.Is(string(eventlog.InvalidEntry)):
		return form(wantName, wantCode, wantMessage)
	case isEndless(wantName, wantCode, wantMessage, entries) && code.Is(string(eventlog.InvalidSession)) && endless != nil && endless():
		r.looped = true
		r.deviate(LoopsForever, field)
		return form(wantName, wantCode, wantMessage)
	}
	return form(name, code, message)
}

// ref reads an id or null.
func ref(v js.Value) eventlog.Ref {
	if s, ok := v.Str(); ok {
		return eventlog.At(s)
	}
	return eventlog.None()
}

func member(key string, v js.Value) js.Member { return js.Member{Key: key, Value: v} }

func ids(entries []eventlog.Entry) []string {
	out := make([]string, len(entries))
	for i, e := range entries {
		out[i] = e.ID()
	}
	return out
}

func idList(entries []eventlog.Entry) js.Value { return js.Texts(ids(entries)...) }

// all are a session's entries.
func all(ctx context.Context, s *eventlog.Session) ([]eventlog.Entry, error) {
	var entries []eventlog.Entry
	for e, err := range s.Entries(ctx, 0, eventlog.All) {
		if err != nil {
			return entries, err
		}
		entries = append(entries, e)
	}
	return entries, nil
}
