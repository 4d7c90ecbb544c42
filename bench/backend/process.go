package backend

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"sync"
)

// Process is a backend in a process of its own, started anew for each store. The
// command speaks the package's protocol.
func Process(name, about, limit string, command ...string) Backend {
	return Backend{Name: name, About: about, Limit: limit, Process: true, Open: func(ctx context.Context, dir string, o Options) (Store, error) {
		return startProcess(ctx, command, Request{Op: Open, Dir: dir, Normal: o.Normal})
	}}
}

type process struct {
	mu     sync.Mutex // one request at a time
	cmd    *exec.Cmd
	in     io.WriteCloser
	out    *bufio.Reader
	closed bool
}

func startProcess(ctx context.Context, command []string, open Request) (*process, error) {
	if len(command) == 0 {
		return nil, errors.New("a process needs a command")
	}
	p := &process{cmd: exec.Command(command[0], command[1:]...)}
	p.cmd.Stderr = os.Stderr
	var err error
	if p.in, err = p.cmd.StdinPipe(); err != nil {
		return nil, err
	}
	out, err := p.cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	p.out = bufio.NewReaderSize(out, 1<<16)
	if err := p.cmd.Start(); err != nil {
		return nil, err
	}
	if _, err := p.Do(ctx, open); err != nil {
		return nil, errors.Join(err, p.Close(ctx))
	}
	return p, nil
}

func (p *process) Do(ctx context.Context, r Request) (reply Reply, err error) {
	if err := ctx.Err(); err != nil {
		return reply, err
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	line, err := json.Marshal(r)
	if err != nil {
		return reply, err
	}
	if _, err := p.in.Write(append(line, '\n')); err != nil {
		return reply, fmt.Errorf("%s took no request: %w", p.cmd.Path, err)
	}
	answer, err := p.out.ReadBytes('\n')
	if err != nil {
		return reply, fmt.Errorf("%s gave no answer to %s: %w", p.cmd.Path, r.Op, err)
	}
	if err := json.Unmarshal(answer, &reply); err != nil {
		return reply, fmt.Errorf("%s answered %s with no reply: %w", p.cmd.Path, r.Op, err)
	}
	switch reason, notRun := strings.CutPrefix(reply.Error, unsupportedText+": "); {
	case reply.Error == "":
		return reply, nil
	case reply.Error == unsupportedText:
		return reply, errors.ErrUnsupported
	case notRun:
		return reply, &NotRun{reason}
	}
	return reply, fmt.Errorf("%s: %s: %s", p.cmd.Path, r.Op, reply.Error)
}

const unsupportedText = "unsupported"

// Close ends the process' input and waits for its end.
func (p *process) Close(context.Context) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.closed {
		return nil
	}
	p.closed = true
	return errors.Join(p.in.Close(), p.cmd.Wait())
}

// Serve is the other end: it answers requests for a store of b until the input
// ends.
func Serve(ctx context.Context, b Backend, in io.Reader, out io.Writer) (err error) {
	var store Store
	defer func() {
		if store != nil {
			err = errors.Join(err, store.Close(ctx))
		}
	}()
	requests, replies := json.NewDecoder(in), json.NewEncoder(out)
	replies.SetEscapeHTML(false)
	for {
		var r Request
		if err := requests.Decode(&r); errors.Is(err, io.EOF) {
			return nil
		} else if err != nil {
			return fmt.Errorf("no request: %w", err)
		}
		reply, err := Reply{}, error(nil)
		switch {
		case r.Op == Open && store == nil:
			store, err = b.Open(ctx, r.Dir, Options{Normal: r.Normal})
		case r.Op == Open:
			err = errors.New("a store is open already")
		case store == nil:
			err = errors.New("open a store first")
		default:
			reply, err = store.Do(ctx, r)
		}
		if err != nil {
			reply = Reply{Error: errorText(err)}
		}
		if err := replies.Encode(reply); err != nil {
			return err
		}
	}
}

// errorText is what a reply says of err.
func errorText(err error) string {
	var n *NotRun
	switch {
	case errors.As(err, &n):
		return unsupportedText + ": " + n.Reason
	case unsupported(err):
		return unsupportedText
	}
	return err.Error()
}
