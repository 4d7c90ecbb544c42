package conformance

import (
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"github.com/sessiontree/sessiontree/eventlog"
	"github.com/sessiontree/sessiontree/eventlog/js"
)

// missingFile is the file that is opened and deleted though it is not there.
const missingFile = "--project--/gone.jsonl"

// repository runs the case of repo: where session files are put, and which are
// listed.
func (r *run) repository() {
	if !r.backend.Files {
		r.NotApplicable = "it asks where files are put and which are listed, and the backend has no files"
		return
	}
	want, ok := r.expectation()
	if !ok {
		return
	}
	files := map[string][]byte{}
	var names []string
	err := fs.WalkDir(r.vectors, "sessions", func(name string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		b, err := fs.ReadFile(r.vectors, name)
		name = strings.TrimPrefix(name, "sessions/")
		files[name] = append([]byte{}, b...)
		names = append(names, name)
		return err
	})
	if err != nil {
		r.fail("sessions", "a folder of files", err.Error())
		return
	}
	slices.Sort(names)

	got := []js.Member{member("files", js.Texts(names...)), member("created", r.created(want.Get("created"), files))}
	repo, dir, ok := r.newRepo(&script{})
	if !ok {
		return
	}
	for name, b := range files {
		to := filepath.Join(dir, filepath.FromSlash(name))
		err := os.MkdirAll(filepath.Dir(to), 0o700)
		if err == nil {
			err = os.WriteFile(to, b, 0o600)
		}
		if err != nil {
			r.fail("sessions", "a copy", err.Error())
			return
		}
	}
	missing := eventlog.Metadata{Path: filepath.Join(dir, filepath.FromSlash(missingFile))}
	fileError := func(err error) js.Value {
		if err == nil {
			return js.NullValue()
		}
		name, code, message := errorOf(err)
		message = strings.ReplaceAll(message, missing.Path, "<path>/"+missingFile)
		return js.Fields(member("name", name), member("code", code), member("message", js.Text(message)))
	}
	s, openErr := repo.Open(r.ctx, missing)
	if openErr == nil {
		s.Close()
	}
	got = append(got,
		member("lists", r.lists(want.Get("lists"), repo, dir, files, names)),
		member("openMissing", fileError(openErr)),
		member("deleteMissing", fileError(repo.Delete(r.ctx, missing))))
	r.compare("", want, got, common...)
}

// created makes the sessions in a repository of their own.
func (r *run) created(want js.Value, files map[string][]byte) js.Value {
	script := &script{}
	repo, dir, ok := r.newRepo(script)
	if !ok {
		return js.Value{}
	}
	paths := map[string]bool{}
	var reopened []string
	var got []js.Value
	for w := range want.Elements() {
		field := "created[" + js.Num(float64(len(got))).JSON() + "]"
		options := w.Get("options")
		o := eventlog.CreateOptions{}
		for _, m := range options.Members() {
			switch m.Key {
			case "id":
				o.ID = text(m.Value)
			case "cwd":
				o.CWD = text(m.Value)
			case "metadata":
				o.Metadata = m.Value
			case "parentSessionPath":
				o.ParentSession = ref(m.Value)
			default:
				r.fail(field+".options."+m.Key, "an option that the runner knows", shown(m.Value))
			}
		}
		script.at(text(w.Get("createdAt")))
		s, err := repo.Create(r.ctx, o)
		if err != nil {
			r.fail(field, "a session", err.Error())
			got = append(got, js.NullValue())
			continue
		}
		m, err := s.Metadata(r.ctx)
		if err != nil {
			r.fail(field, "a session", err.Error())
		}
		s.Close()
		where, err := filepath.Rel(dir, m.Path)
		if err != nil || !filepath.IsLocal(where) || len(strings.Split(filepath.ToSlash(where), "/")) != 2 {
			r.fail(field+".path", "a file in a folder of the repository", where)
		}
		if paths[where] {
			r.fail(field+".path", "a name of its own", where)
		}
		paths[where] = true
		// What is expected must be Pi's own name.
		piPath := piPath(o.CWD, m.CreatedAt, o.ID)
		if filepath.ToSlash(where) != piPath {
			r.deviate(NamesEncoded, field+".path")
		}
		again, err := repo.Open(r.ctx, eventlog.Metadata{ID: m.ID, CWD: m.CWD, Path: m.Path})
		reopens := err == nil
		if reopens {
			reopened = append(reopened, m.ID)
			now, err := again.Metadata(r.ctx)
			if err != nil {
				r.fail(field+".reopens", "the session's header", err.Error())
			}
			again.Close()
			r.equal(field+".header", header(text(w.Get("createdAt")), o), metadataValue(now))
		}
		kept, ok := files[piPath]
		if ok {
			// Pi's own file must say what the options say.
			if dir, err := r.newDir(); err != nil {
				r.fail(field, "a folder", err.Error())
			} else if m, err := r.backend.Header(r.ctx, dir, fileName, kept); err != nil {
				r.fail(field+".kept", "a session", err.Error())
			} else {
				r.equal(field+".options", header(text(w.Get("createdAt")), o), metadataValue(m))
			}
		}
		options = js.Fields(member("id", js.Text(o.ID)), member("cwd", js.Text(o.CWD)), member("metadata", o.Metadata), member("parentSessionPath", options.Get("parentSessionPath")))
		got = append(got, js.Fields(
			member("options", options), member("createdAt", js.Text(m.CreatedAt)), member("path", js.Text(piPath)),
			member("kept", js.Boolean(ok)), member("reopens", js.Boolean(reopens))))
	}
	r.allListed(repo, reopened)
	return js.List(got...)
}

func header(createdAt string, o eventlog.CreateOptions) js.Value {
	return metadataValue(eventlog.Metadata{ID: o.ID, CreatedAt: createdAt, CWD: o.CWD, ParentSession: o.ParentSession, Metadata: o.Metadata})
}

// allListed checks that a repository lists what was made in it, newest first.
func (r *run) allListed(repo eventlog.Repo, made []string) {
	listed, err := repo.List(r.ctx, "")
	if err != nil {
		r.fail("created", "a list", err.Error())
	}
	found := []string{}
	for _, l := range listed {
		if l.Err == nil {
			found = append(found, l.ID)
		}
	}
	slices.Reverse(made)
	r.equal("the list of what was created", js.Texts(made...), js.Texts(found...))
}

// listed is a session of a list as the vectors have it.
func listed(m eventlog.Metadata, path string) js.Value {
	return js.Fields(member("id", js.Text(m.ID)), member("createdAt", js.Text(m.CreatedAt)), member("cwd", js.Text(m.CWD)), member("path", js.Text(path)))
}

// lists asks for lists. What is expected must be Pi's list, and what is answered
// Pi's without the sessions of other working folders.
func (r *run) lists(want js.Value, repo eventlog.Repo, dir string, files map[string][]byte, names []string) js.Value {
	var got []js.Value
	for w := range want.Elements() {
		field := "lists[" + js.Num(float64(len(got))).JSON() + "]"
		args := w.Get("args")
		cwd := text(args.Get("cwd"))
		for _, m := range args.Members() {
			if m.Key != "cwd" {
				r.fail(field+".args."+m.Key, "an argument that the runner knows", shown(m.Value))
			}
		}
		found, err := repo.List(r.ctx, cwd)
		if err != nil {
			r.fail(field, "a list", err.Error())
		}
		pi := r.piList(cwd, files, names)
		isPi := map[string]bool{}
		var all, ours, exact []js.Value
		for _, l := range pi {
			v := listed(l.Metadata, l.Path)
			isPi[l.Path] = true
			all = append(all, v)
			if cwd == "" || l.CWD == cwd {
				exact = append(exact, v)
			}
		}
		damaged := false
		for _, l := range found {
			where, err := filepath.Rel(dir, l.Path)
			if err != nil {
				r.fail(field, "a path in the folder", l.Path)
			}
			where = filepath.ToSlash(where)
			switch {
			case l.Err == nil && damaged:
				r.fail(field, "damaged files last", where)
			case l.Err != nil && isPi[where]:
				r.fail(field, "a session", where+": "+l.Err.Error())
			case l.Err != nil:
				damaged = true
				r.deviate(DamagedListed, field+" "+where)
				continue
			}
			ours = append(ours, listed(l.Metadata, where))
		}
		sessions := js.List(ours...)
		if js.Diff(js.List(exact...), sessions) == nil {
			if len(exact) < len(all) {
				r.deviate(ListsByCWD, field)
			}
			sessions = js.List(all...)
		}
		got = append(got, js.Fields(member("args", object(args)), member("sessions", sessions)))
	}
	return js.List(got...)
}

// piList is Pi's list: the files of one folder, or of all, whose header can be
// read, newest first.
func (r *run) piList(cwd string, files map[string][]byte, names []string) []eventlog.Listed {
	var list []eventlog.Listed
	for _, name := range names {
		folder := path.Dir(name)
		if folder == "." || strings.Contains(folder, "/") || !strings.HasSuffix(name, ".jsonl") || cwd != "" && folder != piDir(cwd) {
			continue
		}
		dir, err := r.newDir()
		if err != nil {
			r.fail("lists", "a folder", err.Error())
			break
		}
		m, err := r.backend.Header(r.ctx, dir, fileName, files[name])
		if err == nil {
			m.Path = name
			list = append(list, eventlog.Listed{Metadata: m})
		}
	}
	slices.SortStableFunc(list, func(a, b eventlog.Listed) int {
		switch x, y := js.ParseDate(a.CreatedAt), js.ParseDate(b.CreatedAt); {
		case x > y:
			return -1
		case x < y:
			return 1
		}
		return 0
	})
	return list
}
