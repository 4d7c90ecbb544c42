// Command sessiontree shows and keeps the sessions of AI agents as what they are:
// trees.
//
// Run "sessiontree demo" for a story that needs no file, and "sessiontree help"
// for the commands. None but demo and export write session files, and none changes
// one that is there; some change a database.
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
	os.Exit(run(context.Background(), os.Args[1:], os.Stdin, os.Stdout, os.Stderr))
}
