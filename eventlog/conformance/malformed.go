package conformance

import (
	"errors"
	"io/fs"
	"strings"
	"time"

	"github.com/sessiontree/sessiontree/eventlog"
	"github.com/sessiontree/sessiontree/eventlog/js"
)

// malformed runs a case of malformed: a file that is broken, or that looks so.
func (r *run) malformed() {
	want, ok := r.expectation()
	if !ok {
		return
	}
	var file []byte // nil if the file is missing
	b, err := fs.ReadFile(r.vectors, fileName)
	switch {
	case err == nil:
		file = append([]byte{}, b...)
	case !errors.Is(err, fs.ErrNotExist):
		r.fail(fileName, "a file", err.Error())
		return
	case !r.backend.Files:
		r.NotApplicable = "it asks for a file that is missing, and the backend has no files"
		return
	}

	got := []js.Member{
		member("errorName", js.NullValue()), member("code", js.NullValue()), member("message", js.NullValue()),
		member("line", js.NullValue()), member("physicalLine", js.NullValue()),
	}
	repo, dir, ok := r.newRepo(&script{})
	if !ok {
		return
	}
	s, err := r.backend.Load(r.ctx, repo, dir, fileName, file)
	opens := err == nil
	if opens {
		answers := want.Get("answers")
		a := asker{run: r, s: s, repo: repo, prefix: "answers.", want: answers, file: string(file)}
		r.stage = "loaded"
		a.ask()
		if r.enough() {
			s.Close()
			return
		}
		r.stage = "reopened"
		if m, err := s.Metadata(r.ctx); err != nil {
			r.fail("reopen", "the session", err.Error())
		} else if err := s.Close(); err != nil {
			r.fail("reopen", "a closed session", err.Error())
		} else if a.s, err = repo.Open(r.ctx, m); err != nil {
			r.fail("reopen", "the session", err.Error())
		} else {
			a.ask()
			if r.backend.Files {
				r.sameBytes("file after the questions", string(file), r.fileOf(a.s))
			}
			a.s.Close()
		}
		r.stage = ""
		got = append(got, member("loopsForever", js.Boolean(r.looped)), member("append", r.appendOne(file, want.Get("append"))))
	} else {
		got = r.refusal(want, err, dir, string(file))
	}
	got = append(got, member("opens", js.Boolean(opens)), member("headerOnly", r.headerOnly(file, want.Get("headerOnly"))))
	besides := common
	if opens {
		besides = append(besides[:len(besides):len(besides)], "answers")
		if !want.Get("answers").Exists() {
			r.fail("answers", "answers, as the file opens", "nothing")
		}
	}
	r.compare("", want, got, besides...)
}

// refusal is why a file cannot be opened.
func (r *run) refusal(want js.Value, err error, dir, file string) []js.Member {
	e := js.Fields(member("errorName", want.Get("errorName")), member("code", want.Get("code")), member("message", want.Get("message")))
	e = r.fileError(e, err, dir)
	line, physical := js.NullValue(), js.NullValue()
	if m := piLineText.FindStringSubmatch(text(e.Get("message"))); m != nil {
		line, _ = js.Parse(m[1])
		physical = physicalLine(file, line)
	}
	return append(e.Members(), member("line", line), member("physicalLine", physical))
}

// fileError is an error about a file, with the file's path hidden. What the
// operating system says behind the path is not compared, save that it is what
// Node says.
func (r *run) fileError(want js.Value, err error, dir string) js.Value {
	name, code, message := errorOf(err)
	message = hidden(message, dir)
	if isAccident(want.Get("errorName"), want.Get("code"), text(want.Get("message"))) {
		return r.failed("", want, err, nil, 0)
	}
	if before, system, ok := strings.Cut(text(want.Get("message")), "<path>: "); ok && systemText.MatchString(system) {
		if ours, _, _ := strings.Cut(message+": ", "<path>: "); ours == before {
			message = text(want.Get("message"))
		}
	}
	return js.Fields(member("errorName", name), member("code", code), member("message", js.Text(message)))
}

// physicalLine is the number, among all lines of a file, of one that is counted
// among those that are not blank.
func physicalLine(file string, line js.Value) js.Value {
	wanted, _ := line.Float()
	n, counted := 0.0, 0.0
	for l := range strings.SplitSeq(file, "\n") {
		n++
		if !js.IsBlank(js.DecodeUTF8(l)) {
			if counted++; counted == wanted {
				return js.Num(n)
			}
		}
	}
	return js.NullValue()
}

func (r *run) headerOnly(file []byte, want js.Value) js.Value {
	dir, err := r.newDir()
	if err != nil {
		r.fail("headerOnly", "a folder", err.Error())
		return js.Value{}
	}
	m, err := r.backend.Header(r.ctx, dir, fileName, file)
	if err != nil {
		return js.Fields(append([]js.Member{member("ok", js.Boolean(false))}, r.fileError(want, err, dir).Members()...)...)
	}
	return js.Fields(member("ok", js.Boolean(true)), member("metadata", metadataValue(m)))
}

// appendOne appends one more user message to a copy of the file.
func (r *run) appendOne(file []byte, want js.Value) js.Value {
	script := &script{}
	repo, dir, ok := r.newRepo(script)
	if !ok {
		return js.Value{}
	}
	s, err := r.backend.Load(r.ctx, repo, dir, fileName, file)
	if err != nil {
		r.fail("append", "the session", err.Error())
		return js.Value{}
	}
	m, err := s.Metadata(r.ctx)
	if err != nil {
		r.fail("append", "the session", err.Error())
		return js.Value{}
	}
	wrote := text(want.Get("wrote"))
	if line, err := js.Parse(strings.TrimSuffix(wrote, "\n")); err == nil {
		// The id and the time are written nowhere else: only their form can be wrong.
		if !entryID.MatchString(text(line.Get("id"))) || !isTime(line.Get("timestamp")) {
			r.fail("append.wrote", "an id and a time as Pi makes them", cut(wrote))
		}
		script.play(stampOf(line))
	}
	before, err := all(r.ctx, s)
	if err != nil {
		r.fail("append", "the session", err.Error())
	}
	fileBefore := r.fileOf(s)
	e, appendErr := s.AppendMessage(r.ctx, eventlog.UserMessage("one more", time.UnixMilli(1767225600000)))
	fileAfter := r.fileOf(s)
	s.Close()
	again, reopenErr := repo.Open(r.ctx, m)
	if reopenErr == nil {
		after, err := all(r.ctx, again)
		again.Close()
		n := len(before)
		if appendErr == nil {
			before = append(before, e)
		}
		if err != nil || !sameEntries(before, after) {
			r.fail("append.reopens", "all entries, and what was appended", cut(idList(after[min(n, len(after)):]).JSON()))
		}
	}

	got := []js.Member{member("appended", js.Boolean(appendErr == nil))}
	if appendErr != nil {
		got = append(got, member("error", r.fileError(want.Get("error"), appendErr, dir)))
		r.sameBytes("file after a failed append", fileBefore, fileAfter)
		return js.Fields(append(got, r.reopened(reopenErr, want.Get("reopenError"), dir)...)...)
	}
	added, ok := strings.CutPrefix(fileAfter, fileBefore)
	if !ok {
		r.fail("append", "a file that begins as before", cut(fileAfter))
	}
	if len(file) > 0 && file[len(file)-1] != '\n' {
		// Pi writes behind the last line; what is expected must be what comes of that.
		if r.backend.Files {
			if added, ok = strings.CutPrefix(added, "\n"); !ok {
				r.fail("append.wrote", "a newline first", cut(added))
			}
		}
		if reopenErr != nil {
			r.fail("append.reopens", "a file that can be read", reopenErr.Error())
		}
		r.deviate(NewlineFirst, "append.wrote")
		dir, reopenErr = r.opens(append(file[:len(file):len(file)], added...))
	}
	got = append(got, member("wrote", js.Text(added)))
	return js.Fields(append(got, r.reopened(reopenErr, want.Get("reopenError"), dir)...)...)
}

func sameEntries(a, b []eventlog.Entry) bool {
	if len(a) != len(b) {
		return false
	}
	for i := range a {
		if a[i].JSON() != b[i].JSON() {
			return false
		}
	}
	return true
}

// reopened says whether a file opened again.
func (r *run) reopened(err error, want js.Value, dir string) []js.Member {
	if err == nil {
		return []js.Member{member("reopens", js.Boolean(true))}
	}
	return []js.Member{member("reopens", js.Boolean(false)), member("reopenError", r.fileError(want, err, dir))}
}

// opens says whether a file opens, and in which folder that was tried.
func (r *run) opens(file []byte) (dir string, err error) {
	repo, dir, ok := r.newRepo(&script{})
	if !ok {
		return dir, nil
	}
	s, err := r.backend.Load(r.ctx, repo, dir, fileName, file)
	if err == nil {
		s.Close()
	}
	return dir, err
}
