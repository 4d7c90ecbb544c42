package conformance

import (
	"context"
	"errors"
	"io/fs"
	"path"

	"github.com/sessiontree/sessiontree/eventlog"
	"github.com/sessiontree/sessiontree/eventlog/js"
)

// AgentBackend is what the suite needs of a backend for the coding agent's vectors.
type AgentBackend struct {
	// New makes an empty repository in dir, an empty folder, as Backend.New does.
	// Sessions are created in it with the dialect that the options name.
	New func(dir string, source eventlog.Source) (eventlog.Repo, error)

	// Load brings the bytes of a session file into the repository, as the coding
	// agent reads it; source makes the ids that a file of version 1 needs. A session
	// of the same id, or a file of the same name, is replaced.
	Load func(ctx context.Context, repo eventlog.Repo, dir, name string, file []byte, source eventlog.Source) (*eventlog.Session, error)

	// Inspect says how such a file is read, line by line.
	Inspect func(name string, file []byte) (AgentFile, error)

	// ListFolder lists a folder of files, nil where the backend has none.
	ListFolder func(ctx context.Context, dir, cwd string) ([]eventlog.Info, []error, error)
}

// AgentFile says what the lines of a file are, from 1.
type AgentFile struct {
	HeaderLine   int
	EntryLines   []int // one for each entry
	SkippedLines []int // that hold something, but gave neither entry nor header
	Migrated     bool
	From         js.Value // the version before; absent or null for none
	IDsGiven     bool
	RenamedLines []int
}

// agentReference is the program whose answers the second set of vectors holds.
const agentReference = "@earendil-works/pi-coding-agent@1.6.0"

// agentGroups are the second set's.
func agentGroups() []group {
	return []group{
		{"files", (*run).agentFile},
		{"calls", (*run).agentCalls},
		{"random", (*run).agentCalls},
		{"realistic", (*run).agentCalls},
		{"folder", (*run).agentFolder},
		{"real-v1-large-session", (*run).agentReal},
	}
}

// agentClock is what the clock shows while a file is asked.
const agentClock = "2026-08-01T12:00:00.000Z"

// input is the name of the file that a case asks about.
const input = "input.jsonl"

// agentInputPath is where the vectors say that it lies.
const agentInputPath = "/sessions/" + input

// agentCommon checks what all cases have, and that the backend can be asked.
func (r *run) agentCommon() (js.Value, bool) {
	if r.backend.Agent == nil {
		r.NotApplicable = "the backend has no coding agent's dialect"
		return js.Value{}, false
	}
	return r.expectation()
}

// agentFile runs a case of files: a file as it is found.
func (r *run) agentFile() {
	want, ok := r.agentCommon()
	if !ok {
		return
	}
	file, err := fs.ReadFile(r.vectors, input)
	if errors.Is(err, fs.ErrNotExist) {
		file, err = nil, nil
	}
	if err != nil {
		r.fail(input, "a file", err.Error())
		return
	}
	r.askFile(want, file)
}

// askFile asks all that an expect.json has about a file.
func (r *run) askFile(want js.Value, file []byte) {
	a := &agentAsker{run: r, want: want, file: file, missing: file == nil}
	a.fields = map[string]js.Value{}
	for _, m := range want.Members() {
		a.fields[m.Key] = m.Value
	}
	var dirOK bool
	a.script = &script{}
	if a.dir, dirOK = r.agentDir(); !dirOK {
		return
	}
	var err error
	if a.repo, err = r.backend.Agent.New(a.dir, a.script.source()); err != nil {
		r.fail("repository", "a new one", err.Error())
		return
	}
	r.repos = append(r.repos, a.repo)
	a.ask()
}

func (r *run) agentDir() (string, bool) {
	dir, err := r.newDir()
	if err != nil {
		r.fail("repository", "a folder", err.Error())
	}
	return dir, err == nil
}

// agentError is an error in the form of the vectors, the expected one if err is as
// right: a plain Error of Pi's with the same message; an accident of JavaScript's
// where we say that an entry is invalid; a walk without an end where we say that
// the session is.
func (r *run) agentError(field string, want js.Value, err error, endless bool) js.Value {
	_, code, message := errorOf(err)
	name, wantMessage := want.Get("name"), text(want.Get("message"))
	switch {
	case name.Is("Error") && wantMessage == message && want.Get("code").Kind() == js.Null:
		return want
	case isAgentAccident(want) && code.Is(string(eventlog.InvalidEntry)):
		return want
	case endless && isAgentEndless(want) && code.Is(string(eventlog.InvalidSession)):
		r.looped = true
		r.deviate(LoopsForever, field)
		return want
	}
	return js.Fields(member("name", js.Text("Error")), member("code", code), member("message", js.Text(message)))
}

func isAgentEndless(want js.Value) bool {
	return want.Get("name").Is("EndlessWalk") && want.Get("code").Is("loops_forever") && endlessText.MatchString(text(want.Get("message")))
}

func isAgentAccident(want js.Value) bool {
	return want.Get("name").Is("TypeError") && want.Get("code").Kind() == js.Null && agentAccident.MatchString(text(want.Get("message")))
}

// agentPath is the name that the coding agent gives to a session's file.
func agentFileName(header js.Value) string {
	return path.Base(piPath("/", text(header.Get("timestamp")), text(header.Get("id"))))
}

// idValue is an entry's id as the vectors have it: what it was in the file.
func idValue(id string) js.Value { return eventlog.At(id).Value() }

func entryIDs(entries []eventlog.Entry) js.Value {
	values := make([]js.Value, len(entries))
	for i, e := range entries {
		values[i] = idValue(e.ID())
	}
	return js.List(values...)
}
