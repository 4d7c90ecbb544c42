package bench

import "context"

// operation is one thing that is measured, in one or more rows.
type operation struct {
	name  string
	about string
	once  bool   // beside one small tree only: it makes its own
	shape string // on this shape only, "" for all
	run   func(b *bed, ctx context.Context) error
}

// operations are carried out in this order: reads of the tree as it was built
// come first. Building it is measured before them, as "build".
var operations = []operation{
	{name: "empty", about: "nothing: what measuring costs", once: true, run: (*bed).empty},
	{name: "disk", about: "bytes on disk an entry: in all, and of the branch set alone (disk-branch-set)", run: (*bed).disk},

	{name: "branch", about: "the branch of an entry near the leaf, warm", run: (*bed).branch},
	{name: "branch-pages", about: "the same page by page, without keeping it", run: (*bed).branchPages},
	{name: "context", about: "the context of an entry near the leaf, warm", run: (*bed).context},
	{name: "context-again", about: "the context of the leaf, with nothing changed", run: (*bed).contextAgain},
	{name: "context-first", about: "the context of the leaf, from a store that was opened just now", run: (*bed).contextFirst},
	{name: "fresh-process", about: "a new process, until it has opened the store and built the context", run: (*bed).freshProcess},
	{name: "stream-memory", about: "the most memory of a process that reads the branch of the leaf without keeping it", run: (*bed).streamMemory},
	{name: "stream", about: "the log in order, without keeping it", run: (*bed).stream},
	{name: "export", about: "the session as a file", run: (*bed).export},
	{name: "descendants", about: "all entries below the first message", run: (*bed).descendants},
	{name: "is-ancestor", about: "whether one entry stands above another, any two", run: (*bed).isAncestor},
	{name: "common-ancestor", about: "of any two entries", run: (*bed).commonAncestor},
	{name: "rebuild", about: "each view anew from the log (rebuild-branch, …)", run: (*bed).rebuild},
	{name: "fork-whole", about: "a session of the whole log", run: (*bed).forkWhole},
	{name: "fork-half", about: "a session of the branch of its middle", run: (*bed).forkHalf},

	{name: "import", about: "a session file of the same shape and size", run: (*bed).imports},

	{name: "append", about: "one durable message below the leaf", run: (*bed).append},
	{name: "append-8-writers", about: "the same by 8 goroutines on one session, an append", run: writers(8)},
	{name: "append-32-writers", about: "the same by 32", run: writers(32)},
	{name: "append-2-processes", about: "the same by two processes", run: (*bed).twoProcesses},
	{name: "append-normal", about: "one message, synced at checkpoints only", run: (*bed).appendNormal},
	{name: "batch", about: "messages below the leaf, many in a transaction", shape: "chain", run: (*bed).batch},
	{name: "turn", about: "append, then context: both, and the context alone (context-after-append)", run: (*bed).turns},
	{name: "append-at", about: "a new branch at any entry, with its bytes on disk (append-at-bytes)", run: (*bed).appendAt},
	{name: "move", about: "the leaf to any entry, against an append", run: (*bed).move},

	{name: "create", about: "a session", once: true, run: (*bed).create},
	{name: "comb-level", about: "a level of a comb as it grows: append, move back, append; against three appends", once: true, run: (*bed).combLevels},
	{name: "context-during-build", about: "a context of 50 messages while another session is built in bulk", once: true, run: (*bed).contextDuringBuild},
	{name: "list", about: "all sessions, and the first 50 (list-page)", once: true, run: (*bed).list},
	{name: "analytics", about: "spend, tools and search over many sessions, against plain SQL (usage-by-day, search-ranked-rare, …), and each view from nothing (catch-up-branch, …)", once: true, run: (*bed).analytics},
}

// OperationNames are the names of all operations. One may give further rows.
func OperationNames() []string {
	names := make([]string, len(operations))
	for i, o := range operations {
		names[i] = o.name
	}
	return names
}

// About says what an operation is.
func About(name string) string {
	for _, o := range operations {
		if o.name == name {
			return o.about
		}
	}
	return ""
}
