package main

import (
	"context"
	"fmt"
	"slices"

	"github.com/sessiontree/sessiontree/eventlog"
	"github.com/sessiontree/sessiontree/eventlog/js"
)

// warning is something about a session that its user should know. The session
// is answered all the same.
type warning struct {
	code    string
	entry   eventlog.Ref // what it is about, or none
	message string
	stands  int // for how many: 1, but for one that counts those left out
}

// The kinds of warnings. They are part of the JSON answers.
const (
	warnLeaf          = "leaf_missing"               // the leaf names an entry that is not there
	warnGap           = "missing_parent"             // an entry's parent is not there
	warnCycle         = "parent_cycle"               // parents lead in a circle
	warnDuplicate     = "duplicate_id"               // an id stands twice
	warnUnreadable    = "unreadable"                 // branch, context, totals or name cannot be made
	warnOpenCall      = "open_tool_call"             // a call on the active branch has no result
	warnLoneResult    = "result_without_call"        // a result on the active branch has no call
	warnSplitPair     = "split_tool_pair"            // a compaction or summary parts a call from its result
	warnEmptySummary  = "empty_compaction_summary"   // a compaction hides history behind nothing
	warnKeptMissing   = "first_kept_missing"         // firstKeptEntryId names no entry
	warnKeptOwn       = "first_kept_own_id"          // firstKeptEntryId names the compaction itself
	warnKeptElsewhere = "first_kept_not_on_the_path" // firstKeptEntryId names an entry of another branch
	warnOddMessage    = "odd_message"                // a message that is no object, or whose role is no text
)

const warningShape = `
  "warnings": [{"code", "entry" (id or null), "message"}]; the codes are
             leaf_missing, missing_parent, parent_cycle, duplicate_id,
             unreadable, open_tool_call, result_without_call, split_tool_pair,
             empty_compaction_summary, first_kept_missing, first_kept_own_id,
             first_kept_not_on_the_path, odd_message; of more than 10 with the
             same code and entry in a row, the 11th counts the rest`

// check looks for what is suspicious about a session. tree is the session's.
func check(ctx context.Context, s *eventlog.Session, tree *eventlog.Tree) ([]warning, error) {
	var found findings
	if tree.LeafError != nil {
		found.warn(warnLeaf, tree.Leaf, "the leaf %s is not there: nothing can be appended until it is moved", tree.Leaf)
	}
	checkTree(tree, found.warn)
	if err := checkReadable(ctx, s, tree, found.warn); err != nil {
		return nil, err
	}
	checkMessages(tree, found.warn)
	if err := checkTools(ctx, s, tree, found.warn); err != nil {
		return nil, err
	}
	return found.all, nil
}

// findings gathers warnings. What it holds is in proportion to the file: an entry
// may have an id of a megabyte and be about thousands of tool calls.
type findings struct {
	all []warning
	row map[string]*row // by code, the last one
}

// row is a row of warnings of a code about one entry.
type row struct {
	entry eventlog.Ref
	n     int
	rest  int // the warning that stands for those left out
}

// warn adds a warning. Texts from the file are shortened to what a line holds;
// args are what may be: ids and names, references, errors, numbers.
func (f *findings) warn(code string, about eventlog.Ref, format string, args ...any) {
	r := f.row[code]
	if r == nil || r.entry != about {
		if f.row == nil {
			f.row = map[string]*row{}
		}
		r = &row{entry: about}
		f.row[code] = r
	}
	r.n++
	if left := r.n - maxReports; left > 0 {
		if left == 1 {
			r.rest = len(f.all)
			f.all = append(f.all, warning{code: code, entry: about})
		}
		rest := &f.all[r.rest]
		rest.stands = left
		rest.message = fmt.Sprintf("%d more of the kind %s about entry %s", left, code, shownRef(about))
		return
	}
	args = slices.Clone(args)
	for i, a := range args {
		switch a := a.(type) {
		case string:
			args[i] = shownID(a)
		case eventlog.Ref:
			args[i] = shownRef(a)
		case error:
			args[i] = cut(oneLine(a.Error()), maxExcerpt)
		}
	}
	f.all = append(f.all, warning{code, about, fmt.Sprintf(format, args...), 1})
}

type warnFunc func(code string, about eventlog.Ref, format string, args ...any)

// checkTree looks at ids, parents and compactions.
func checkTree(tree *eventlog.Tree, warn warnFunc) {
	index := make(map[string]int, len(tree.Nodes)) // the first node that has the id
	twice := map[string]int{}
	inCycle := 0
	for i := range tree.Nodes {
		n := &tree.Nodes[i]
		id := n.Entry.ID()
		if _, ok := index[id]; ok {
			twice[id]++
		} else {
			index[id] = i
		}
		if n.Gap {
			warn(warnGap, eventlog.At(id), "the parent %s of entry %s is not there: what came before is missing", n.Entry.Parent(), id)
		}
		if n.Cycle {
			inCycle++
		}
	}
	for i := range tree.Nodes {
		n := &tree.Nodes[i]
		id := n.Entry.ID()
		if n.Cycle && n.Parent < 0 {
			warn(warnCycle, eventlog.At(id), "the parents of entry %s lead back to it (%s in or below such cycles)", id, count(inCycle, "entry"))
		}
		if more := twice[id]; more > 0 {
			warn(warnDuplicate, eventlog.At(id), "the id %s stands %d times: it finds the last one", id, more+1)
			delete(twice, id)
		}
	}
	checkCompactions(tree, index, warn)
}

func checkCompactions(tree *eventlog.Tree, index map[string]int, warn warnFunc) {
	var below []int // how many nodes are at and below each; made when it is needed
	for i := range tree.Nodes {
		e := tree.Nodes[i].Entry
		if e.Type() != eventlog.TypeCompaction {
			continue
		}
		id := eventlog.At(e.ID())
		if summary, _ := e.Get("summary").Str(); js.IsBlank(summary) {
			warn(warnEmptySummary, id, "compaction %s has an empty summary: what it hides is lost to the model", idText(e.ID()))
		}
		first, _ := e.Get("firstKeptEntryId").Str()
		if first == "" || e.Get("retainedTail").Truthy() {
			continue
		}
		at, ok := index[first]
		switch {
		case first == e.ID():
			warn(warnKeptOwn, id, "compaction %s names itself as its first kept entry: nothing before it is kept", idText(e.ID()))
			continue
		case !ok:
			warn(warnKeptMissing, id, "compaction %s keeps from entry %s, which is not there: nothing before it is kept", idText(e.ID()), first)
			continue
		}
		if below == nil {
			below = make([]int, len(tree.Nodes))
			for j := len(tree.Nodes) - 1; j >= 0; j-- {
				below[j]++
				if p := tree.Nodes[j].Parent; p >= 0 {
					below[p] += below[j]
				}
			}
		}
		// Nodes are in depth first order: what is below a node stands right behind it.
		if at > i || i >= at+below[at] {
			warn(warnKeptElsewhere, id, "compaction %s keeps from entry %s, which is not on its path: nothing before it is kept", idText(e.ID()), first)
		}
	}
}

// checkReadable asks for what a host asks for, and tells what fails.
func checkReadable(ctx context.Context, s *eventlog.Session, tree *eventlog.Tree, warn warnFunc) error {
	// What cannot be read is the finding; what cannot be asked is an error.
	report := func(what string, err error) error {
		switch eventlog.CodeOf(err) {
		case eventlog.InvalidEntry, eventlog.InvalidSession, eventlog.NotFound:
			warn(warnUnreadable, eventlog.None(), "%s cannot be read: %v", what, err)
			return nil
		}
		return err
	}
	if tree.LeafError == nil {
		if _, err := s.BuildContext(ctx, eventlog.None()); err != nil {
			if err := report("the active branch", err); err != nil {
				return err
			}
		}
	}
	if _, err := s.Stats(ctx); err != nil {
		if err := report("the totals", err); err != nil {
			return err
		}
	}
	if _, err := s.Name(ctx); err != nil {
		return report("the name", err)
	}
	return nil
}

// checkMessages looks for messages that no reader of the format expects.
func checkMessages(tree *eventlog.Tree, warn warnFunc) {
	see := func(e eventlog.Entry, m js.Value) {
		id := eventlog.At(e.ID())
		switch role := m.Get("role"); {
		case m.Kind() != js.Object:
			warn(warnOddMessage, id, "a message of entry %s is %s, not an object", idText(e.ID()), m.Kind().String())
		case role.Kind() != js.String:
			warn(warnOddMessage, id, "the role of a message of entry %s is %s, not a text", idText(e.ID()), role.Kind().String())
		}
	}
	for i := range tree.Nodes {
		switch e := tree.Nodes[i].Entry; e.Type() {
		case eventlog.TypeMessage:
			see(e, e.Message().Value)
		case eventlog.TypeCompaction:
			tail, _ := e.Get("retainedTail").Spread()
			for _, m := range tail {
				see(e, m)
			}
		}
	}
}

// openCall is a tool call that has no result yet.
type openCall struct {
	id, tool string
	entry    eventlog.Ref
	before   int // how many partings came before it
}

// checkTools follows tool calls and their results through what the model sees.
// Providers refuse a context in which a result does not follow its call.
func checkTools(ctx context.Context, s *eventlog.Session, tree *eventlog.Tree, warn warnFunc) error {
	if tree.LeafError != nil {
		return nil
	}
	entries, err := s.ContextEntries(ctx, eventlog.None())
	if err != nil {
		return nil // reported already
	}
	open := map[string]*openCall{}
	var calls []*openCall         // in order, those that were answered too
	var partings []eventlog.Entry // what stands between a call before it and a result behind it
	calledBefore := callsOn(tree, entries)
	see := func(e eventlog.Entry, m eventlog.Message) {
		at := eventlog.At(e.ID())
		if r, ok := m.AsToolResult(); ok {
			call, ok := open[r.CallID]
			if !ok {
				if earlier, was := calledBefore[r.CallID]; was {
					warn(warnSplitPair, at, "the result %s of tool call %s is in the context, but its call in entry %s is cut off by a compaction", idText(e.ID()), r.CallID, earlier)
				} else {
					warn(warnLoneResult, at, "the result %s answers tool call %s, which is not on the active branch", idText(e.ID()), r.CallID)
				}
				return
			}
			if call.before < len(partings) {
				by := partings[call.before]
				what := "branch summary"
				if by.Type() == eventlog.TypeCompaction {
					what = "compaction"
				}
				warn(warnSplitPair, at, "%s %s stands between tool call %s in entry %s and its result %s", what, idText(by.ID()), r.CallID, call.entry, idText(e.ID()))
			}
			delete(open, r.CallID)
			return
		}
		if a, ok := m.AsAssistant(); ok {
			for _, b := range a.Content {
				if b.Type == "toolCall" {
					call := &openCall{b.ID, b.Name, at, len(partings)}
					open[b.ID] = call
					calls = append(calls, call)
				}
			}
		}
	}
	for _, e := range entries {
		switch e.Type() {
		case eventlog.TypeMessage:
			see(e, e.Message())
		case eventlog.TypeCompaction:
			partings = append(partings, e)
			if tail := e.Get("retainedTail"); tail.Truthy() {
				for m := range tail.Elements() {
					see(e, eventlog.Message{Value: m})
				}
			}
		case eventlog.TypeBranchSummary:
			partings = append(partings, e)
		}
	}
	for _, c := range calls {
		if open[c.id] == c {
			warn(warnOpenCall, c.entry, "tool call %s (%s) in entry %s has no result on the active branch", c.id, c.tool, c.entry)
		}
	}
	return nil
}

// callsOn are the tool calls on the way from the root to the leaf that the
// context, made of entries, does not hold: call id to entry id. It is only
// filled where a compaction hides something.
func callsOn(tree *eventlog.Tree, entries []eventlog.Entry) map[string]string {
	calls := map[string]string{}
	if len(entries) == 0 || entries[0].Type() != eventlog.TypeCompaction {
		return calls
	}
	seen := make(map[string]bool, len(entries))
	for _, e := range entries {
		seen[e.ID()] = true
	}
	for i := range tree.Nodes {
		n := &tree.Nodes[i]
		if !n.Active || seen[n.Entry.ID()] {
			continue
		}
		if a, ok := n.Entry.Message().AsAssistant(); ok {
			for _, b := range a.Content {
				if b.Type == "toolCall" {
					calls[b.ID] = n.Entry.ID()
				}
			}
		}
	}
	return calls
}
