package osfiletest

import (
	"bufio"
	"bytes"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
)

// calls are the system calls that change files; those that a system does not have
// are marked. What is read, or mapped into memory, is not looked at.
const calls = "?open,openat,?creat,write,pwrite64,fsync,fdatasync,ftruncate,?unlink,unlinkat,?rename,?renameat,renameat2,?link,linkat"

// CanTrace says why programs cannot be traced here, or nothing.
func CanTrace() error {
	if _, err := exec.LookPath("strace"); err != nil {
		return fmt.Errorf("strace is not there: %w", err)
	}
	if said, err := exec.Command("strace", "-f", "-e", "trace="+calls, "-o", os.DevNull, "true").CombinedOutput(); err != nil {
		return fmt.Errorf("strace: %w: %s", err, bytes.TrimSpace(said))
	}
	return nil
}

// Trace runs a program and gives what it did to the files below dir, and what it
// wrote to its standard output, in order. The error is the program's; what it did
// is given all the same.
func Trace(dir string, cmd *exec.Cmd) ([]Op, error) {
	log, err := os.CreateTemp("", "sessiontree-trace-*")
	if err != nil {
		return nil, err
	}
	log.Close()
	defer os.Remove(log.Name())
	args := []string{"strace", "-f", "-qq", "-y", "-xx", "-s", "1000000000", "-e", "signal=none", "-e", "trace=" + calls, "-o", log.Name()}
	cmd.Args = append(append(args, cmd.Path), cmd.Args[1:]...)
	if cmd.Path, err = exec.LookPath("strace"); err != nil {
		return nil, err
	}
	if dir, err = filepath.EvalSymlinks(dir); err != nil {
		return nil, err
	}
	before, err := Files(dir)
	if err != nil {
		return nil, err
	}
	failed := cmd.Run()
	f, err := os.Open(log.Name())
	if err != nil {
		return nil, err
	}
	defer f.Close()
	p := tracer{dir: dir, sizes: map[string]int64{}, places: map[string]int64{}, open: map[string]start{}}
	for name, text := range before {
		p.sizes[name] = int64(len(text))
	}
	lines := bufio.NewReaderSize(f, 1<<20)
	for {
		line, err := lines.ReadString('\n')
		if line != "" {
			if err := p.line(strings.TrimSuffix(line, "\n")); err != nil {
				return nil, fmt.Errorf("%.200s: %w", line, err)
			}
		}
		if err != nil {
			return p.ops, failed
		}
	}
}

// tracer reads what strace wrote.
type tracer struct {
	dir    string
	ops    []Op
	sizes  map[string]int64 // of files that are written without a place
	places map[string]int64 // of handles that are
	open   map[string]start // calls that a thread has not ended
}

// start is the beginning of a call.
type start struct {
	text string
	at   int // operations before it
}

// A call is detached if its thread was killed, with its process, as it began: it
// was not run, and its name may be unknown ("???").
const unfinished, resumed, detached = " <unfinished ...>", " resumed>", " <detached ...>"

func (p *tracer) line(line string) error {
	thread, text, ok := strings.Cut(line, " ")
	text = strings.TrimLeft(text, " ")
	if !ok || strings.HasPrefix(text, "+++") || strings.HasPrefix(text, "---") {
		return nil
	}
	if strings.HasSuffix(text, detached) || strings.HasPrefix(text, "???") {
		delete(p.open, thread)
		return nil
	}
	if begin, ok := strings.CutSuffix(text, unfinished); ok {
		p.open[thread] = start{begin, len(p.ops)}
		return nil
	}
	at := len(p.ops)
	if strings.HasPrefix(text, "<... ") {
		begin, ok := p.open[thread]
		i := strings.Index(text, resumed)
		if !ok || i < 0 {
			return errors.New("the end of a call without its beginning")
		}
		delete(p.open, thread)
		text, at = begin.text+text[i+len(resumed):], begin.at
	}
	return p.call(text, at)
}

// call reads name(argument, …) = result.
func (p *tracer) call(text string, began int) error {
	name, rest, ok := strings.Cut(strings.ReplaceAll(text, "(deleted)", deleted), "(")
	end := strings.Index(rest, ")") // texts and paths have none: they are hexadecimal
	if !ok || end < 0 {
		return errors.New("no call")
	}
	result, ok := strings.CutPrefix(strings.TrimLeft(rest[end+1:], " "), "= ")
	if !ok {
		return errors.New("no result")
	}
	if strings.HasPrefix(result, "-1") || strings.HasPrefix(result, "?") {
		return nil // failed, or cut off by the end of the process
	}
	args, err := arguments(rest[:end])
	if err != nil {
		return err
	}
	return p.record(name, args, result, began)
}

// deleted stands behind the path of a file without a name.
const deleted = "!"

// argument is a number or word, with the path that strace shows beside a handle;
// or a text.
type argument struct {
	word string
	path string
	text string
}

// below makes a path one that begins at the root.
func (a *argument) below(dir argument) {
	if !filepath.IsAbs(a.text) {
		a.text = filepath.Join(dir.path, a.text)
	}
}

func arguments(s string) (args []argument, err error) {
	for s != "" {
		var a argument
		i := strings.IndexAny(s, `,"<`)
		switch {
		case i < 0:
			a.word, s = s, ""
		case s[i] == ',':
			a.word, s = s[:i], s[i:]
		case s[i] == '"':
			end := strings.IndexByte(s[i+1:], '"')
			if end < 0 {
				return nil, errors.New("a text without its end")
			}
			if a.text, err = unhex(s[i+1 : i+1+end]); err != nil {
				return nil, err
			}
			s = s[i+end+2:]
		default:
			end := strings.IndexByte(s, '>')
			if end < 0 {
				return nil, errors.New("a path without its end")
			}
			a.word = s[:i]
			if a.path, err = unhex(s[i+1 : end]); err != nil {
				return nil, err
			}
			if s = s[end+1:]; strings.HasPrefix(s, deleted) {
				a.path, s = "", strings.TrimPrefix(s, deleted)
			}
		}
		a.word = strings.TrimSpace(a.word)
		args = append(args, a)
		s = strings.TrimLeft(strings.TrimPrefix(s, ","), " ")
	}
	return args, nil
}

// unhex reads \x2f\x74…; what strace writes otherwise (pipe:[17]) stays.
func unhex(s string) (string, error) {
	if !strings.HasPrefix(s, `\x`) {
		return s, nil
	}
	b, err := hex.DecodeString(strings.ReplaceAll(s, `\x`, ""))
	return string(b), err
}

// inside is the path below the folder that is looked at.
func (p *tracer) inside(path string) (string, bool) {
	name, err := filepath.Rel(p.dir, path)
	return name, err == nil && filepath.IsAbs(path) && name != ".." && !strings.HasPrefix(name, "../")
}

// record takes a call that succeeded.
func (p *tracer) record(name string, args []argument, result string, began int) error {
	switch name {
	case "openat", "unlinkat":
		args[1].below(args[0])
		args = args[1:]
	case "renameat", "renameat2", "linkat":
		args[1].below(args[0])
		args[3].below(args[2])
		args = []argument{args[1], args[3]}
	}
	handle := args[0]
	if handle.text != "" && !filepath.IsAbs(handle.text) {
		return errors.New("a path that begins nowhere")
	}
	path, inside := p.inside(handle.path)
	if handle.text != "" {
		path, inside = p.inside(handle.text)
	}
	if name == "write" && handle.word == "1" && !inside {
		p.add(Op{Kind: Say, Data: []byte(args[1].text)})
		return nil
	}
	if !inside {
		return nil
	}
	switch name {
	case "open", "openat", "creat":
		p.opened(path, result, len(args) > 1 && strings.Contains(args[1].word, "O_APPEND"), len(args) > 1 && strings.Contains(args[1].word, "O_CREAT"), len(args) > 1 && strings.Contains(args[1].word, "O_TRUNC"))
	case "write", "pwrite64":
		return p.wrote(handle.word, path, args, result)
	case "ftruncate":
		size, err := strconv.ParseInt(args[1].word, 10, 64)
		p.sizes[path] = size
		p.add(Op{Kind: Truncate, Path: path, Size: size})
		return err
	case "fsync", "fdatasync":
		kind := Sync
		if info, err := os.Stat(filepath.Join(p.dir, path)); err == nil && info.IsDir() {
			kind = SyncDir
		}
		p.add(Op{Kind: kind, Path: path, Began: began})
	case "unlink", "unlinkat":
		delete(p.sizes, path)
		p.add(Op{Kind: Remove, Path: path})
	default:
		to, toInside := p.inside(args[1].text)
		if !toInside {
			return fmt.Errorf("a file leaves %s", p.dir)
		}
		kind := Rename
		if strings.HasPrefix(name, "link") {
			kind = Link
		}
		p.sizes[to] = p.sizes[path]
		if kind == Rename {
			delete(p.sizes, path)
		}
		p.add(Op{Kind: kind, Path: path, To: to})
	}
	return nil
}

func (p *tracer) add(op Op) { p.ops = append(p.ops, op) }

const appends = -1 // the place of a handle that writes at the end

func (p *tracer) opened(path, result string, append, create, truncate bool) {
	handle, _, _ := strings.Cut(result, "<")
	p.places[handle] = 0
	if append {
		p.places[handle] = appends
	}
	if _, known := p.sizes[path]; create && !known {
		p.sizes[path] = 0
		p.add(Op{Kind: Create, Path: path})
	}
	if truncate {
		p.sizes[path] = 0
		p.add(Op{Kind: Truncate, Path: path})
	}
}

func (p *tracer) wrote(handle, path string, args []argument, result string) error {
	n, err := strconv.Atoi(result)
	if err != nil || n > len(args[1].text) {
		return fmt.Errorf("%s bytes written: %w", result, err)
	}
	op := Op{Kind: Write, Path: path, Data: []byte(args[1].text[:n])}
	switch place := p.places[handle]; {
	case len(args) > 3:
		op.At, err = strconv.ParseInt(args[3].word, 10, 64)
	case place == appends:
		op.At = p.sizes[path]
	default:
		op.At = place
		p.places[handle] += int64(n)
	}
	p.sizes[path] = max(p.sizes[path], op.At+int64(n))
	p.add(op)
	return err
}
