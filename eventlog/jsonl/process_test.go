//go:build unix

package jsonl_test

import (
	"bufio"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"
)

// Second processes are real ones: this test binary again, with the name of what
// it is to do. What a child says goes line by line to its standard output.

const childEnv = "SESSIONTREE_TEST_CHILD"

var children = map[string]func(say func(string)){
	"append until killed": appendUntilKilled,
	"append in turns":     appendInTurns,
	"append and close":    appendAndClose,
	"hold":                holdUntilTold,
	"under a umask":       makeUnderUmask,
	"on a full disk":      appendOnAFullDisk,
}

// TestChild is the life of a child process, and nothing in the parent.
func TestChild(t *testing.T) {
	name := os.Getenv(childEnv)
	if name == "" {
		t.Skip("for child processes only")
	}
	children[name](func(line string) {
		if _, err := fmt.Fprintln(os.Stdout, line); err != nil {
			os.Exit(3)
		}
	})
	os.Exit(0)
}

// check ends a child that failed.
func check(err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(2)
	}
}

type child struct {
	*exec.Cmd
	in  io.WriteCloser
	out *bufio.Scanner
	err *strings.Builder
}

func startChild(t testing.TB, name string, env ...string) *child {
	t.Helper()
	c := &child{Cmd: exec.Command(os.Args[0], "-test.run=^TestChild$"), err: &strings.Builder{}}
	c.Env = append(append(os.Environ(), childEnv+"="+name, "GORACE=atexit_sleep_ms=0"), env...)
	c.Stderr = c.err
	out, err := c.StdoutPipe()
	require.NoError(t, err)
	c.in, err = c.StdinPipe()
	require.NoError(t, err)
	c.out = bufio.NewScanner(out)
	require.NoError(t, c.Start())
	t.Cleanup(func() { // a child never outlives its test
		if c.ProcessState == nil {
			c.Process.Kill()
			c.Wait()
		}
	})
	return c
}

// line is the next line that the child says.
func (c *child) line(t testing.TB) string {
	t.Helper()
	require.True(t, c.out.Scan(), "the child ended: %s", c.err)
	return c.out.Text()
}

// rest is all that the child still says.
func (c *child) rest() []string {
	var lines []string
	for c.out.Scan() {
		lines = append(lines, c.out.Text())
	}
	return lines
}

// ends waits for a child that ends by itself, without an error.
func (c *child) ends(t testing.TB) []string {
	t.Helper()
	lines := c.rest()
	require.NoError(t, c.Wait(), "%s", c.err)
	return lines
}

// killed ends the child as kill -9 does, and gives what it had said.
func (c *child) killed(t testing.TB) []string {
	t.Helper()
	require.NoError(t, c.Process.Signal(syscall.SIGKILL))
	lines := c.rest()
	err := c.Wait()
	require.ErrorContains(t, err, "killed", "%s", c.err)
	return lines
}
