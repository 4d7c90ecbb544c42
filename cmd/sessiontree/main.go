// Command sessiontree shows session files of AI agents as what they are: trees.
//
// Run "sessiontree demo" for a story that needs no file, and "sessiontree help"
// for the commands. Every command reads; none but demo writes a session file.
package main

import (
	"context"
	"os"
	"os/signal"
	"syscall"
)

func main() {
	// A reader that has seen enough is an error of a write, not a signal: it ends
	// the program quietly, with one of its own exit codes.
	signal.Ignore(syscall.SIGPIPE)
	os.Exit(run(context.Background(), os.Args[1:], os.Stdout, os.Stderr))
}
