package conformance_test

import (
	"bytes"
	"context"
	"flag"
	"fmt"
	"io/fs"
	"iter"
	"maps"
	"regexp"
	"slices"
	"strings"
	"testing"
	"testing/fstest"
	"time"

	"github.com/sessiontree/sessiontree/eventlog"
	"github.com/sessiontree/sessiontree/eventlog/conformance"
	"github.com/sessiontree/sessiontree/eventlog/conformance/backends"
	"github.com/sessiontree/sessiontree/eventlog/js"
)

var every = flag.Bool("every", false, "try every wrong expectation of every case, which takes long")

// raceDetector says that all is several times slower.
var raceDetector = false

// caseFS is a folder of vectors that holds one case, with its index.
func caseFS(t *testing.T, name string) fstest.MapFS {
	t.Helper()
	m := fstest.MapFS{}
	err := fs.WalkDir(conformance.Vectors(), name, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		b, err := fs.ReadFile(conformance.Vectors(), path)
		m[path] = &fstest.MapFile{Data: b}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range index(t) {
		if c.Get("name").Is(name) {
			m["index.json"] = &fstest.MapFile{Data: []byte(js.List(c).JSON())}
		}
	}
	return m
}

func index(t *testing.T) []js.Value {
	t.Helper()
	b, err := fs.ReadFile(conformance.Vectors(), "index.json")
	if err != nil {
		t.Fatal(err)
	}
	list, err := js.Parse(string(b))
	if err != nil {
		t.Fatal(err)
	}
	return slices.Collect(list.Elements())
}

// with is m with another file; without, if data is nil.
func with(m fstest.MapFS, name string, data []byte) fstest.MapFS {
	changed := maps.Clone(m)
	if data == nil {
		delete(changed, name)
	} else {
		changed[name] = &fstest.MapFile{Data: data}
	}
	return changed
}

func mustRun(t *testing.T, vectors fs.FS, b conformance.Backend, dir string) *conformance.Report {
	t.Helper()
	r, err := conformance.Run(t.Context(), vectors, b, conformance.Quick(conformance.Options{Dir: dir, Workers: 1}))
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// change is one change to a JSON text. Its place has the form .forks[2].args;
// ".x-" is a member that is left out, "+" one that is added.
type change struct {
	place string
	text  func() string
}

// changes gives every change of one leaf, and of one member or element more or
// less.
func changes(v js.Value, place string, whole func(string) string, emit func(change)) {
	to := func(place, text string) { emit(change{place, func() string { return whole(text) }}) }
	switch v.Kind() {
	case js.String:
		s, _ := v.Str()
		to(place, js.Text(s+"x").JSON())
	case js.Number:
		f, _ := v.Float()
		to(place, js.Num(f+1).JSON())
	case js.Bool:
		to(place, js.Boolean(!v.Truthy()).JSON())
	case js.Null:
		to(place, `"x"`)
	case js.Array:
		elements := slices.Collect(v.Elements())
		for i, e := range elements {
			changes(e, fmt.Sprintf("%s[%d]", place, i), func(s string) string {
				changed := slices.Clone(elements)
				changed[i] = js.Trusted(s)
				return whole(js.List(changed...).JSON())
			}, emit)
		}
		if n := len(elements); n > 0 {
			to(fmt.Sprintf("%s[%d]-", place, n-1), js.List(elements[:n-1]...).JSON())
		}
		to(place+"[]+", js.List(append(slices.Clone(elements), js.Text("added"))...).JSON())
	case js.Object:
		members := v.Members()
		for i, m := range members {
			changes(m.Value, place+"."+m.Key, func(s string) string {
				changed := slices.Clone(members)
				changed[i].Value = js.Trusted(s)
				return whole(js.Fields(changed...).JSON())
			}, emit)
			to(place+"."+m.Key+"-", js.Fields(slices.Delete(slices.Clone(members), i, i+1)...).JSON())
		}
		to(place+".+", js.Fields(append(slices.Clone(members), js.Member{Key: "added", Value: js.Num(1)})...).JSON())
	}
}

var (
	indices = regexp.MustCompile(`\[\d+\]`)
	inside  = regexp.MustCompile(`(\.messages\[\]|\.message|\.entry)\..*`)
)

// sampled thins changes out to one of those that differ only in indices, or in
// where they are inside a message.
func sampled(list []change) []change {
	if *every {
		return list
	}
	byShape := map[string][]change{}
	var shapes []string
	for _, c := range list {
		shape := inside.ReplaceAllString(indices.ReplaceAllString(c.place, "[]"), "$1")
		if byShape[shape] == nil {
			shapes = append(shapes, shape)
		}
		byShape[shape] = append(byShape[shape], c)
	}
	var sample []change
	for i, s := range shapes {
		if !raceDetector || i%6 == 0 {
			sample = append(sample, byShape[s][len(byShape[s])/2])
		}
	}
	return sample
}

// exempt are the changes that make no expectation wrong.
var exempt = []struct{ place, why string }{
	{`\.windows\[\d+\]\.args\.`, "another question, which may have the same answer"},
	{`\.contexts\[\d+\]\.from$`, "another question"},
	{`\.collect\[\d+\]\.(oldLeafId|targetId)$`, "another question"},
	{`\.prepared\[\d+\]\.tokenBudget$`, "another question"},
	{`\.forks\[\d+\]\.args\.`, "another question"},
	{`^\.lists\[\d+\]\.args\.cwd$`, "another question"},
	{`\.(windows|contexts|collect|prepared|forks|created|lists)\[\d+\]-$`, "a question less"},
	{`^\.answers\.branches\[\d+\]-$`, "a question less, where the branch cannot be read"},
	{`\.forks\[\d+\]\.context-$`, "a question less: only some forks are asked for it"},
	{`^ops.json\[\d+\]\.args`, "another operation"},
}

// mustNotice makes wrong expectations of a case and expects a failure for each.
func mustNotice(t *testing.T, name string, b conformance.Backend) {
	good, dir := caseFS(t, name), t.TempDir()
	if r := mustRun(t, good, b, dir); r.Failed() != 0 || r.Passed() != 1 {
		var out bytes.Buffer
		r.Write(&out)
		t.Fatalf("the case as it is: %s", out.String())
	}
	var right []*regexp.Regexp
	for _, e := range exempt {
		right = append(right, regexp.MustCompile(e.place))
	}
	tried := 0
	try := func(file, place string, data []byte) {
		t.Helper()
		tried++
		if r := mustRun(t, with(good, name+"/"+file, data), b, dir); r.Failed() != 1 {
			t.Errorf("not noticed: %s with another %s%s", name, file, place)
		}
	}
	for _, file := range []string{"expect.json", "ops.json"} {
		f := good[name+"/"+file]
		if f == nil {
			continue
		}
		v, err := js.Parse(js.DecodeUTF8(string(f.Data)))
		if err != nil {
			t.Fatal(err)
		}
		var list []change
		changes(v, "", func(s string) string { return s }, func(c change) {
			place := strings.TrimPrefix(file, "expect.json") + c.place
			if !slices.ContainsFunc(right, func(r *regexp.Regexp) bool { return r.MatchString(place) }) {
				list = append(list, c)
			}
		})
		for _, c := range sampled(list) {
			try(file, c.place, []byte(c.text()))
		}
	}
	expect, _ := js.Parse(string(good[name+"/expect.json"].Data))
	for _, file := range []string{"session.jsonl", "after.jsonl", "source-1.jsonl"} {
		f := good[name+"/"+file]
		if f == nil || expect.Get("opens").JSON() == "false" {
			continue // of a file that does not open, most bytes do not matter
		}
		step := max(1, len(f.Data)/5)
		if *every {
			step = 7
		}
		for i := 0; i < len(f.Data); i += step {
			data := slices.Clone(f.Data)
			data[i] ^= 1
			try(file, fmt.Sprintf(" byte %d", i), data)
		}
	}
	t.Logf("%d wrong expectations", tried)
}

func TestRunNoticesEachWrongExpectation(t *testing.T) {
	memory, jsonl := backends.Memory(), backends.JSONL()
	for _, c := range []struct {
		name    string
		backend conformance.Backend
	}{
		{"handmade/plan-a-plan-b", memory},
		{"handmade/fork-then-continue", memory},
		{"handmade/leaf-to-missing-then-recover", memory},
		{"handmade/header-metadata-parent", memory},
		{"handmade/key-order", memory},
		{"malformed/no-final-newline", jsonl},
		{"malformed/cycle-two", memory},
		{"malformed/blank-lines-shift-line-number", memory},
		{"malformed/file-missing", jsonl},
		{"malformed/message-missing", memory},
		{"malformed/label-not-text", memory},
		{"navigate/summary-retried", memory},
		{"navigate/busy-other-navigation", memory},
		{"navigate/busy-compaction", memory},
		{"navigate/hook-instructions", memory},
		{"navigate/unreadable-leaf", memory},
		{"repo/paths-and-listing", jsonl},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			mustNotice(t, c.name, c.backend)
		})
	}
}

// sabotaged is a storage with some of its answers wrong.
type sabotaged struct {
	eventlog.Storage
	head    func(eventlog.Head, error) (eventlog.Head, error)
	entries func(after, limit int) (int, int)
	list    func([]eventlog.Entry) []eventlog.Entry // of Find
	branch  func([]eventlog.Entry) []eventlog.Entry
	labels  func(map[string]string)
	name    func(string) string
	stats   func(*eventlog.Stats)
	fails   func(error) error // of Stats and Branch
	append  func(eventlog.Batch) eventlog.Batch
}

func (s sabotaged) Head(ctx context.Context) (eventlog.Head, error) {
	h, err := s.Storage.Head(ctx)
	if s.head != nil {
		return s.head(h, err)
	}
	return h, err
}

func (s sabotaged) Entries(ctx context.Context, after, limit int) iter.Seq2[eventlog.Entry, error] {
	if s.entries != nil {
		after, limit = s.entries(after, limit)
	}
	return s.Storage.Entries(ctx, after, limit)
}

func (s sabotaged) Find(ctx context.Context, t eventlog.Type) ([]eventlog.Entry, error) {
	e, err := s.Storage.Find(ctx, t)
	if s.list != nil {
		e = s.list(e)
	}
	return e, err
}

func (s sabotaged) Branch(ctx context.Context, from eventlog.Ref) ([]eventlog.Entry, error) {
	e, err := s.Storage.Branch(ctx, from)
	if s.branch != nil {
		e = s.branch(e)
	}
	if err != nil && s.fails != nil {
		err = s.fails(err)
	}
	return e, err
}

func (s sabotaged) Labels(ctx context.Context) (map[string]string, error) {
	l, err := s.Storage.Labels(ctx)
	if s.labels != nil {
		s.labels(l)
	}
	return l, err
}

func (s sabotaged) Name(ctx context.Context) (string, error) {
	n, err := s.Storage.Name(ctx)
	if s.name != nil {
		n = s.name(n)
	}
	return n, err
}

func (s sabotaged) Stats(ctx context.Context) (eventlog.Stats, error) {
	st, err := s.Storage.Stats(ctx)
	if s.stats != nil {
		s.stats(&st)
	}
	if err != nil && s.fails != nil {
		err = s.fails(err)
	}
	return st, err
}

func (s sabotaged) Append(ctx context.Context, b eventlog.Batch) ([]eventlog.Entry, error) {
	if s.append != nil {
		b = s.append(b)
	}
	return s.Storage.Append(ctx, b)
}

// sabotagedRepo hands out sabotaged sessions.
type sabotagedRepo struct {
	eventlog.Repo
	with sabotaged
}

func (r sabotagedRepo) wrap(s *eventlog.Session, err error) (*eventlog.Session, error) {
	if err != nil {
		return nil, err
	}
	with := r.with
	with.Storage = s.Storage()
	return eventlog.NewSession(with), nil
}

func (r sabotagedRepo) Create(ctx context.Context, o eventlog.CreateOptions) (*eventlog.Session, error) {
	return r.wrap(r.Repo.Create(ctx, o))
}

func (r sabotagedRepo) Open(ctx context.Context, m eventlog.Metadata) (*eventlog.Session, error) {
	return r.wrap(r.Repo.Open(ctx, m))
}

func (r sabotagedRepo) Fork(ctx context.Context, m eventlog.Metadata, o eventlog.ForkOptions) (*eventlog.Session, error) {
	return r.wrap(r.Repo.Fork(ctx, m, o))
}

func sabotage(with sabotaged) conformance.Backend {
	b := backends.Memory()
	load, make := b.Load, b.New
	b.New = func(dir string, source eventlog.Source) (eventlog.Repo, error) {
		repo, err := make(dir, source)
		return sabotagedRepo{repo, with}, err
	}
	b.Load = func(ctx context.Context, repo eventlog.Repo, dir, name string, file []byte) (*eventlog.Session, error) {
		r := repo.(sabotagedRepo)
		return r.wrap(load(ctx, r.Repo, dir, name, file))
	}
	return b
}

func TestRunNoticesEachWrongBackend(t *testing.T) {
	cases := []string{"handmade/all-entry-types", "handmade/two-compactions", "handmade/labels", "handmade/session-name", "handmade/stats-odd-usage", "handmade/fork-then-continue", "handmade/leaf-to-missing-then-recover", "handmade/move-to-null-second-root"}
	only := func(name string) bool { return slices.Contains(cases, name) }
	last := func(e []eventlog.Entry) []eventlog.Entry { return e[:max(0, len(e)-1)] }
	for what, with := range map[string]sabotaged{
		"Head counts one too many": {head: func(h eventlog.Head, err error) (eventlog.Head, error) { h.Leaf = eventlog.None(); return h, err }},
		"Head never fails":         {head: func(h eventlog.Head, _ error) (eventlog.Head, error) { return h, nil }},
		"windows are one too short": {entries: func(after, limit int) (int, int) {
			if limit > 0 && limit < eventlog.All {
				limit--
			}
			return after, limit
		}},
		"negative windows are taken":  {entries: func(after, limit int) (int, int) { return max(after, 0), max(limit, 0) }},
		"Find leaves one out":         {list: last},
		"Find turns the order around": {list: func(e []eventlog.Entry) []eventlog.Entry { slices.Reverse(e); return e }},
		"Branch leaves the root out":  {branch: func(e []eventlog.Entry) []eventlog.Entry { return e[min(1, len(e)):] }},
		"labels keep their blanks": {labels: func(l map[string]string) {
			for id := range l {
				l[id] += " "
			}
		}},
		"labels stand for all":       {labels: func(l map[string]string) { l["more"] = "label" }},
		"the name is never cleared":  {name: func(n string) string { return n + "x" }},
		"messages are counted twice": {stats: func(s *eventlog.Stats) { s.Messages *= 2 }},
		"sums are made otherwise":    {stats: func(s *eventlog.Stats) { s.Cost += 1e-15 }},
		"appends lose a field": {append: func(b eventlog.Batch) eventlog.Batch {
			b.Drafts = slices.Clone(b.Drafts)
			for i, d := range b.Drafts {
				b.Drafts[i].Fields = d.Fields[:len(d.Fields)-1]
			}
			return b
		}},
	} {
		t.Run(what, func(t *testing.T) {
			t.Parallel()
			r, err := conformance.Run(t.Context(), conformance.Vectors(), sabotage(with), conformance.Options{Dir: t.TempDir(), Only: only})
			if err != nil {
				t.Fatal(err)
			}
			if r.Failed() == 0 {
				t.Error("not noticed")
			}
		})
	}
	r, err := conformance.Run(t.Context(), conformance.Vectors(), sabotage(sabotaged{}), conformance.Options{Dir: t.TempDir(), Only: only})
	if err != nil || r.Failed() != 0 || r.Passed() != len(cases) {
		t.Errorf("without sabotage %d passed, %d failed, %v", r.Passed(), r.Failed(), err)
	}
}

// Where Pi trips over a value, an error of the storage is no answer.
func TestRunNoticesAnotherErrorWhereAnAccidentIs(t *testing.T) {
	vectors := caseFS(t, "malformed/message-missing")
	for what, c := range map[string]struct {
		fails  func(error) error
		failed int
	}{
		"the entry is invalid":  {func(err error) error { return fmt.Errorf("wrapped: %w", err) }, 0},
		"the storage failed":    {func(err error) error { return &eventlog.Error{Code: eventlog.StorageFailed, Err: err} }, 1},
		"an error without code": {func(error) error { return context.DeadlineExceeded }, 1},
	} {
		if r := mustRun(t, vectors, sabotage(sabotaged{fails: c.fails}), t.TempDir()); r.Failed() != c.failed {
			t.Errorf("%s: %d failed, not %d", what, r.Failed(), c.failed)
		}
	}
}

// edited is a case with another navigate.json: each old text has a new one.
func edited(t *testing.T, name string, oldNew ...string) fs.FS {
	t.Helper()
	m := caseFS(t, name)
	text := string(m[name+"/navigate.json"].Data)
	for i := 0; i < len(oldNew); i += 2 {
		if !strings.Contains(text, oldNew[i]) {
			t.Fatalf("%s does not hold %s: %s", name, oldNew[i], text)
		}
		text = strings.Replace(text, oldNew[i], oldNew[i+1], 1)
	}
	return with(m, name+"/navigate.json", []byte(text))
}

// Every leaf of a navigate.json of another kind, every field less, every field
// more, and every name of an entry that is not there.
func TestRunNoticesEachOddSituation(t *testing.T) {
	dir := t.TempDir()
	for _, name := range []string{"navigate/summary-retried", "navigate/hook-summary", "navigate/label-option"} {
		good := caseFS(t, name)
		v, err := js.Parse(js.DecodeUTF8(string(good[name+"/navigate.json"].Data)))
		if err != nil {
			t.Fatal(err)
		}
		var list []change
		whole := func(s string) string { return s }
		changes(v, "", whole, func(c change) {
			if strings.HasSuffix(c.place, "-") || strings.HasSuffix(c.place, "+") || strings.HasPrefix(c.place, ".entries.") {
				list = append(list, c)
			}
		})
		otherKinds(v, "", whole, func(c change) { list = append(list, c) })
		tried := 0
		for _, c := range list {
			if lessIsMeant.MatchString(c.place) {
				continue
			}
			tried++
			if r := mustRun(t, with(good, name+"/navigate.json", []byte(c.text())), backends.Memory(), dir); r.Failed() != 1 {
				t.Errorf("not noticed: %s%s: %s", name, c.place, c.text())
			}
		}
		t.Logf("%s: %d changes", name, tried)
	}
}

// lessIsMeant are changes that leave a situation, if another one: a name less, a
// hook's label less, which Pi does not take, another usage, another content of a
// reply.
var lessIsMeant = regexp.MustCompile(`^(\.entries\.[^.]*-|\.hook\.label-|\.replies\[\d+\]\.(usage|content)[.\[].*|\.hook\.summary\.(details|usage).*)$`)

// otherKinds gives every value of an object replaced by one of another kind.
func otherKinds(v js.Value, place string, whole func(string) string, emit func(change)) {
	members := v.Members()
	for i, m := range members {
		in := func(s string) string {
			changed := slices.Clone(members)
			changed[i].Value = js.Trusted(s)
			return whole(js.Fields(changed...).JSON())
		}
		other := "[[]]"
		if m.Value.Kind() == js.Array {
			other = "7"
		}
		emit(change{place + "." + m.Key, func() string { return in(other) }})
		otherKinds(m.Value, place+"."+m.Key, in, emit)
	}
}

// The waits between retries are compared, but nobody waits for them.
func TestRetriesAreNotWaitedFor(t *testing.T) {
	const name = "navigate/summary-retried"
	hour := caseFS(t, name)
	for _, file := range []string{"navigate.json", "expect.json"} {
		path := name + "/" + file
		text := regexp.MustCompile(`("baseDelayMs":\s*|"delayMs":\s*)(\d+)`).ReplaceAll(hour[path].Data, []byte("${1}${2}0000000"))
		if bytes.Equal(text, hour[path].Data) {
			t.Fatalf("no delay in %s", file)
		}
		hour = with(hour, path, text)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	defer cancel()
	r, err := conformance.Run(ctx, hour, backends.Memory(), conformance.Options{Dir: t.TempDir()})
	if err != nil || r.Failed() != 0 || r.Passed() != 1 {
		t.Errorf("%+v, %v", r, err)
	}
	if r := mustRun(t, edited(t, name, `"maxRetries":2`, `"maxRetries":1e9`), backends.Memory(), t.TempDir()); r.Failed() != 1 {
		t.Error("a billion retries are taken")
	}
}

func TestRunNoticesWhatIsMissing(t *testing.T) {
	const name = "handmade/labels"
	good := caseFS(t, name)
	for what, c := range map[string]struct {
		vectors fs.FS
		passed  int
		failed  int
	}{
		"nothing":                           {good, 1, 0},
		"the index":                         {with(good, "index.json", nil), 1, 0},
		"a case of the index":               {with(good, "index.json", []byte(`[{"name":"handmade/labels","about":"x"},{"name":"handmade/gone","about":"x"}]`)), 0, 2},
		"a case in the index":               {with(good, "index.json", []byte(`[]`)), 1, 0},
		"a group that the index has":        {with(good, "index.json", append(bytes.TrimSuffix(good["index.json"].Data, []byte("]")), `,{"name":"random/x","about":"x"}]`...)), 1, 0},
		"a group that the runner knows":     {with(good, "later/case/expect.json", []byte("{}")), 1, 1},
		"the operations":                    {with(good, name+"/ops.json", nil), 0, 1},
		"operations in the list":            {with(good, name+"/ops.json", []byte("[]")), 0, 1},
		"the expectation":                   {with(good, name+"/expect.json", nil), 0, 1},
		"an object that is the expectation": {with(good, name+"/expect.json", []byte("[]")), 0, 1},
		"the session":                       {with(good, name+"/session.jsonl", nil), 0, 1},
		"all cases":                         {fstest.MapFS{}, 0, 0},
	} {
		r := mustRun(t, c.vectors, backends.Memory(), t.TempDir())
		if r.Passed() != c.passed || r.Failed() != c.failed {
			t.Errorf("without %s %d passed and %d failed, not %d and %d", what, r.Passed(), r.Failed(), c.passed, c.failed)
		}
	}
	if _, err := conformance.Run(t.Context(), with(good, "index.json", []byte("{")), backends.Memory(), conformance.Options{}); err == nil {
		t.Error("a broken index is no error")
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := conformance.Run(ctx, good, backends.Memory(), conformance.Options{}); err != context.Canceled {
		t.Errorf("a cancelled run gives %v", err)
	}
}

func TestRunCatchesAPanic(t *testing.T) {
	r := mustRun(t, caseFS(t, "handmade/labels"), sabotage(sabotaged{name: func(string) string { panic("oops") }}), t.TempDir())
	if len(r.Cases) != 1 || len(r.Cases[0].Failures) == 0 || !strings.Contains(r.Cases[0].Failures[0].Got, "oops") {
		t.Errorf("the report is %+v", r)
	}
}

func TestReport(t *testing.T) {
	r := &conformance.Report{Backend: "b", Cases: []conformance.Case{
		{Name: "g/fine"},
		{Name: "g/ruled", Deviations: []conformance.Deviation{{Rule: conformance.NegativeWindows, Field: "windows[1]"}, {Rule: conformance.NegativeWindows, Field: "windows[2]"}, {Rule: conformance.BytesKept, Field: "forks[0]"}}},
		{Name: "g/wrong\x1b[2J", Failures: []conformance.Failure{{Field: "a\u202eb", Want: "\"\u009b31m\"\n", Got: "\xff漢"}}},
		{Name: "g/other", NotApplicable: "it has no files"},
	}}
	var got bytes.Buffer
	if err := r.Write(&got); err != nil {
		t.Fatal(err)
	}
	want := `FAIL g/wrong\x1b[2J: a\u{202e}b
  want "\u{009b}31m"\x0a
  got  \xff漢
rule "negative windows are refused": 2 answers. Pi takes negative window arguments as JavaScript's slice does; we refuse them.
rule "bytes are kept": 1 answer. Pi writes a fork's entries anew; we copy them byte for byte.
g/ruled: by rule "negative windows are refused": windows[1], windows[2]
g/ruled: by rule "bytes are kept": forks[0]
g/other: not applicable: it has no files
3 by rule
2 passed, 1 failed
`
	if got.String() != want {
		t.Errorf("want\n%s\ngot\n%s", want, got.String())
	}
	if by := r.ByRule(); by[conformance.NegativeWindows] != 2 || by[conformance.BytesKept] != 1 {
		t.Errorf("by rule: %v", by)
	}
}

func TestVectorsAreAllThere(t *testing.T) {
	groups := map[string]int{}
	for _, c := range index(t) {
		name, _ := c.Get("name").Str()
		if _, err := fs.Stat(conformance.Vectors(), name+"/expect.json"); err != nil {
			t.Error(err)
		}
		g, _, _ := strings.Cut(name, "/")
		groups[g]++
	}
	want := map[string]int{"handmade": 59, "random": 20, "malformed": 84, "navigate": 41, "large": 2, "repo": 1}
	if !maps.Equal(groups, want) {
		t.Errorf("the cases are %v, not %v", groups, want)
	}
	if b, err := fs.ReadFile(conformance.Vectors(), "malformed/crlf/session.jsonl"); err != nil || !bytes.Contains(b, []byte("\r\n")) {
		t.Errorf("line ends were changed: %q, %v", b, err)
	}
}

func TestEachRuleSaysWhy(t *testing.T) {
	for _, r := range conformance.Rules() {
		if !strings.HasSuffix(r.Why(), ".") {
			t.Errorf("%s: %q", r, r.Why())
		}
	}
}
