package conformance

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/sessiontree/sessiontree/eventlog"
	"github.com/sessiontree/sessiontree/eventlog/js"
)

// navigate runs a case of navigate, twice: with the session that the operations
// made, and with one loaded from the file.
func (r *run) navigate() {
	want, ok := r.expectation()
	if !ok {
		return
	}
	file, ok := r.read(fileName)
	if !ok {
		return
	}
	after, ok := r.read("after.jsonl")
	if !ok {
		return
	}
	given, ok := r.readJSON("navigate.json")
	if !ok {
		return
	}
	p := r.replayOps()
	if p.session != nil {
		r.sameFile(fileName, file, p.session)
		r.stage = "live"
		n := navigation{run: r, s: p.session, repo: p.repo, script: p.script, want: want, after: after}
		n.perform(given)
	}
	if r.enough() {
		return
	}
	r.stage = "loaded"
	script := &script{}
	repo, dir, ok := r.newRepo(script)
	if !ok {
		return
	}
	s, err := r.backend.Load(r.ctx, repo, dir, fileName, []byte(file))
	if err != nil {
		r.fail(r.at("load"), "the session", err.Error())
		return
	}
	n := navigation{run: r, s: s, repo: repo, script: script, want: want, after: after}
	n.perform(given)
}

// navigation is one call of Navigate, and what is seen of it.
type navigation struct {
	*run
	s      *eventlog.Session
	repo   eventlog.Repo
	script *script
	want   js.Value
	after  string

	mu      sync.Mutex
	calls   []js.Value
	events  []js.Value
	replies []js.Value
}

// situation is a navigate.json.
type situation struct {
	target         string
	options        map[string]js.Value
	model          js.Value
	retry          js.Value
	hook           js.Value
	hookThrows     js.Value
	listenerThrows js.Value
	hookAppends    js.Value
	busy           js.Value
	entries        []js.Member
	replies        []js.Value
}

// fieldOf is what a field may be, and whether it has to be there.
type fieldOf struct {
	kinds    []js.Kind
	required bool
}

func must(kinds ...js.Kind) fieldOf { return fieldOf{kinds, true} }
func may(kinds ...js.Kind) fieldOf  { return fieldOf{kinds, false} }

// The parts of a navigate.json.
var (
	situationFields = map[string]fieldOf{
		"targetId": must(js.String), "options": must(js.Object), "entries": must(js.Object), "replies": must(js.Array),
		"model": must(js.Object, js.Null), "retry": must(js.Object, js.Null), "hook": must(js.Object, js.Null),
		"hookThrows": must(js.String, js.Null), "listenerThrows": must(js.String, js.Null),
		"hookAppends": must(js.String, js.Null), "busy": must(js.String, js.Null),
	}
	optionFields = map[string]fieldOf{
		"summarize": may(js.Bool), "customInstructions": may(js.String), "replaceInstructions": may(js.Bool), "label": may(js.String),
	}
	hookFields = map[string]fieldOf{
		"cancel": may(js.Bool), "summary": may(js.Object), "customInstructions": may(js.String), "replaceInstructions": may(js.Bool), "label": may(js.String),
	}
	summaryFields = map[string]fieldOf{"summary": may(js.String), "details": may(), "usage": may()}
	modelFields   = map[string]fieldOf{
		"id": must(js.String), "api": must(js.String), "provider": must(js.String), "reasoning": must(js.Bool),
		"contextWindow": must(js.Number), "maxTokens": must(js.Number),
	}
	retryFields = map[string]fieldOf{"enabled": must(js.Bool), "maxRetries": must(js.Number), "baseDelayMs": must(js.Number)}
	throwFields = map[string]fieldOf{"throws": must(js.String)}
	replyFields = map[string]fieldOf{
		"role": must(js.String), "content": must(js.Array), "api": must(js.String), "provider": must(js.String), "model": must(js.String),
		"usage": must(js.Object), "stopReason": must(js.String), "errorMessage": may(js.String), "timestamp": must(js.Number),
	}
)

// has checks an object's fields; nothing else has none.
func (n *navigation) has(place string, v js.Value, fields map[string]fieldOf) bool {
	ok := true
	wrong := func(field, want, got string) {
		n.fail("navigate.json "+place+field, want, got)
		ok = false
	}
	given := map[string]bool{}
	for _, m := range v.Members() {
		given[m.Key] = true
		f, known := fields[m.Key]
		switch {
		case !known:
			wrong(m.Key, "a field that the runner knows", shown(m.Value))
		case len(f.kinds) > 0 && !slices.Contains(f.kinds, m.Value.Kind()):
			wrong(m.Key, fmt.Sprint(f.kinds), shown(m.Value))
		}
	}
	for _, key := range slices.Sorted(maps.Keys(fields)) {
		if fields[key].required && !given[key] {
			wrong(key, "a value", "nothing")
		}
	}
	return ok
}

// mostRetries bounds how often a vector may have a model asked again: each wait is
// twice the one before.
const mostRetries = 20

// situation reads a navigate.json; what the runner does not know is a failure.
func (n *navigation) situation(v js.Value) (s situation, ok bool) {
	if !n.has("", v, situationFields) {
		return s, false
	}
	s = situation{
		target: text(v.Get("targetId")), options: map[string]js.Value{},
		model: v.Get("model"), retry: v.Get("retry"), hook: v.Get("hook"), hookThrows: v.Get("hookThrows"),
		listenerThrows: v.Get("listenerThrows"), hookAppends: v.Get("hookAppends"), busy: v.Get("busy"),
		entries: v.Get("entries").Members(), replies: slices.Collect(v.Get("replies").Elements()),
	}
	for _, o := range v.Get("options").Members() {
		s.options[o.Key] = o.Value
	}
	ok = n.has("options.", v.Get("options"), optionFields)
	part := func(place string, v js.Value, fields map[string]fieldOf) {
		if !v.Nullish() && !n.has(place, v, fields) {
			ok = false
		}
	}
	part("model.", s.model, modelFields)
	part("retry.", s.retry, retryFields)
	part("hook.", s.hook, hookFields)
	part("hook.summary.", s.hook.Get("summary"), summaryFields)
	for i, reply := range s.replies {
		fields := replyFields
		if reply.Get("throws").Exists() {
			fields = throwFields
		}
		ok = n.has(fmt.Sprintf("replies[%d].", i), reply, fields) && ok
	}
	expect := func(field string, right bool, want string, got js.Value) {
		if !right {
			n.fail("navigate.json "+field, want, shown(got))
			ok = false
		}
	}
	expect("busy", s.busy.Nullish() || s.busy.Is("navigation") || s.busy.Is("compaction"), "navigation, compaction or null", s.busy)
	expect("hookAppends", s.hookAppends.Nullish() || s.hookAppends.Is("harness") || s.hookAppends.Is("session"), "harness, session or null", s.hookAppends)
	if !s.retry.Nullish() {
		most, _ := s.retry.Get("maxRetries").Float()
		expect("retry.maxRetries", most >= 0 && most <= mostRetries && most == math.Trunc(most), fmt.Sprintf("a whole number up to %d", mostRetries), s.retry.Get("maxRetries"))
		delay, _ := s.retry.Get("baseDelayMs").Float()
		expect("retry.baseDelayMs", delay >= 0 && !math.IsInf(delay, 0), "a time", s.retry.Get("baseDelayMs"))
	}
	return s, ok
}

// named checks that what a navigate.json calls an entry is one of the session.
func (n *navigation) named(sit situation, entries []eventlog.Entry) bool {
	there := make(map[string]bool, len(entries))
	for _, e := range entries {
		there[e.ID()] = true
	}
	ok := true
	for _, m := range sit.entries {
		if id, isText := m.Value.Str(); !isText || !there[id] {
			n.fail("navigate.json entries."+m.Key, "the id of an entry of the session", shown(m.Value))
			ok = false
		}
	}
	return ok
}

// perform makes the call and compares all that comes of it.
func (n *navigation) perform(v js.Value) {
	sit, ok := n.situation(v)
	if !ok {
		return
	}
	m, err := n.s.Metadata(n.ctx)
	if err != nil {
		n.fail(n.at("metadata"), "the session's", err.Error())
		return
	}
	before, err := all(n.ctx, n.s)
	if err != nil {
		n.fail(n.at("before"), "entries", err.Error())
		return
	}
	if !n.named(sit, before) {
		return
	}
	got := []js.Member{member("before", n.leaf("before"))}
	var stamps []stamp
	for e := range n.want.Get("appended").Elements() {
		stamps = append(stamps, stampOf(e))
	}
	n.script.play(stamps...)
	n.replies = sit.replies

	got = append(got, n.call(sit)...)
	got = append(got, member("after", n.leaf("after")))
	var appended []js.Value
	for e, err := range n.s.Entries(n.ctx, len(before), eventlog.All) {
		if err != nil {
			n.fail(n.at("appended"), "entries", err.Error())
			break
		}
		appended = append(appended, e.Value())
	}
	got = append(got, member("appended", js.List(appended...)))
	n.sameFile("after.jsonl", n.after, n.s)

	// The rest is asked of the session read again.
	n.s.TakeHeld() // what the hook appended through the harness: it is never written
	if err := n.s.Close(); err != nil {
		n.fail(n.at("close"), "no error", err.Error())
	}
	again, err := n.repo.Open(n.ctx, m)
	if err != nil {
		n.fail(n.at("reopen"), "the session", err.Error())
		return
	}
	defer again.Close()
	a := asker{run: n.run, s: again, repo: n.repo}
	entries, err := all(n.ctx, again)
	if err != nil {
		n.fail(n.at("reopen"), "entries", err.Error())
	}
	a.entries, a.log = entries, newPiLog(entries)
	head, _ := again.Head(n.ctx)
	a.leaf = head.Leaf
	labels, err := again.Labels(n.ctx)
	if err != nil {
		n.fail(n.at("labelsAfter"), "labels", err.Error())
	}
	named := map[string]string{}
	for _, e := range sit.entries {
		if id := text(e.Value); labels[id] != "" {
			named[id] = labels[id]
		}
	}
	got = append(got,
		member("branchAfter", a.branchFrom("branchAfter", n.want.Get("branchAfter"), eventlog.None())),
		member("contextAfter", a.current("contextAfter", n.want.Get("contextAfter"), a.currentContext)),
		member("labelsAfter", labelsValue(named)),
		member("summarizerCalls", js.List(n.calls...)),
		member("events", js.List(n.events...)))
	n.compare("", n.want, got, common...)
}

func (n *navigation) leaf(field string) js.Value {
	head, err := n.s.Head(n.ctx)
	if err != nil {
		want := n.want.Get(field).Get("leafIdError")
		return js.Fields(member("leafId", js.NullValue()), member("leafIdError", n.leafIDError(field+".leafIdError", want, err)))
	}
	return js.Fields(member("leafId", head.Leaf.Value()))
}

// outcome is what a call came to.
type outcome struct {
	result, err js.Value // absent where not
}

// call makes the call, and with busy the one that it meets.
func (n *navigation) call(sit situation) []js.Member {
	entered, release := make(chan struct{}), make(chan struct{})
	once := sync.OnceFunc(func() { close(entered) })
	hold := func() {
		once()
		<-release
	}
	o := n.options(sit, hold)
	navigate := func() outcome {
		result, err := n.s.Navigate(n.ctx, sit.target, o)
		return n.outcome(result, err)
	}
	answer := func(now outcome) []js.Member {
		null := func(v js.Value) js.Value {
			if !v.Exists() {
				return js.NullValue()
			}
			return v
		}
		return []js.Member{
			member("result", null(now.result)), member("error", null(now.err)),
			member("phaseAtAnswer", js.Text(string(n.s.Phase()))),
		}
	}
	first := func(o outcome) js.Member {
		held := js.Value{}
		switch {
		case o.result.Exists():
			held = js.Fields(member("result", o.result))
		case o.err.Exists():
			held = js.Fields(member("error", o.err))
		}
		return member("firstCall", held)
	}
	var got []js.Member
	switch {
	case sit.busy.Is("navigation"):
		done := make(chan outcome, 1)
		go func() { done <- navigate() }()
		var held *outcome
		select {
		case <-entered:
		case o := <-done: // it never came to its hook
			held = &o
		}
		got = answer(navigate())
		close(release)
		if held == nil {
			o := <-done
			held = &o
		}
		got = append(got, first(*held))
	case sit.busy.Is("compaction"):
		got = n.whileCompacting(sit, func() []js.Member { return answer(navigate()) }, first)
	default:
		got = answer(navigate())
	}
	return append(got, member("phaseAfter", js.Text(string(n.s.Phase()))))
}

// whileCompacting answers while a compaction of the host's is under way. The
// host's compaction is no part of this module: Pi's ends as cancelled by its
// hook, or does not come that far where there is nothing to compact.
func (n *navigation) whileCompacting(sit situation, answer func() []js.Member, first func(outcome) js.Member) []js.Member {
	harnessError := func(code, message string) outcome {
		return outcome{err: js.Fields(member("name", js.Text("AgentHarnessError")), member("code", js.Text(code)), member("message", js.Text(message)))}
	}
	cancelled := harnessError("compaction", "Compaction cancelled")
	nothing := harnessError("compaction", "Nothing to compact")
	noModel := harnessError("invalid_state", "No model set for compaction")
	want := n.want.Get("firstCall").Get("error")
	switch {
	case sit.model.Nullish():
		return append(answer(), first(noModel))
	case js.Diff(want, nothing.err) == nil:
		return append(answer(), first(nothing))
	}
	if _, err := n.s.Branch(n.ctx, eventlog.None()); err != nil {
		return append(answer(), first(n.outcome(eventlog.Navigation{}, &eventlog.Error{Code: eventlog.SessionFailed, Message: err.Error(), Err: err})))
	}
	end, err := n.s.Begin(eventlog.Compacting)
	if err != nil {
		n.fail(n.at("busy"), "a compaction that begins", err.Error())
		return nil
	}
	got := answer()
	end()
	return append(got, first(cancelled))
}

// outcome is a call's result or error in the form of the vectors.
func (n *navigation) outcome(result eventlog.Navigation, err error) outcome {
	if err != nil {
		name, code, message := errorOf(err)
		var e *eventlog.Error
		if errors.As(err, &e) {
			name = js.Text("AgentHarnessError")
		}
		want := n.want.Get("error")
		if text(code) == string(eventlog.SummaryFailed) && errors.Is(err, eventlog.ErrInvalidEntry) && want.Get("code") == code && accidentText.MatchString(text(want.Get("message"))) {
			message = text(want.Get("message"))
		}
		return outcome{err: js.Fields(member("name", name), member("code", code), member("message", js.Text(message)))}
	}
	got := []js.Member{member("cancelled", js.Boolean(result.Cancelled))}
	if result.EditorText != nil {
		got = append(got, member("editorText", js.Text(*result.EditorText)))
	}
	if result.SummaryEntry != nil {
		got = append(got, member("summaryEntry", js.Text(result.SummaryEntry.ID())))
	}
	return outcome{result: js.Fields(got...)}
}

func (n *navigation) event(kind string, members ...js.Member) {
	all := append([]js.Member{member("type", js.Text(kind))}, members...)
	e := js.Fields(append(all, member("phase", js.Text(string(n.s.Phase()))))...)
	n.mu.Lock()
	defer n.mu.Unlock()
	n.events = append(n.events, e)
}

// options are the call's. The before-hook is held by hold if another call is to
// meet this one.
func (n *navigation) options(sit situation, hold func()) eventlog.NavigateOptions {
	o := eventlog.NavigateOptions{
		Summarize:           sit.options["summarize"].Truthy(),
		Instructions:        text(sit.options["customInstructions"]),
		ReplaceInstructions: sit.options["replaceInstructions"].Truthy(),
		Label:               text(sit.options["label"]),
		Before: func(ctx context.Context, p eventlog.Preparation) (eventlog.BeforeResult, error) {
			n.event("session_before_tree", member("preparation", preparation(sit, p)))
			late := eventlog.UserMessage("appended during the navigation", time.UnixMilli(1767225600000))
			switch {
			case sit.hookAppends.Is("harness"):
				if written, err := n.s.AppendWhenIdle(ctx, eventlog.MessageDraft(late)); written || err != nil {
					n.fail(n.at("hookAppends"), "a message that is held back", fmt.Sprintf("written: %v, error: %v", written, err))
				}
			case sit.hookAppends.Is("session"):
				if _, err := n.s.AppendMessage(ctx, late); err != nil {
					return eventlog.BeforeResult{}, err
				}
			}
			if sit.busy.Is("navigation") {
				hold()
			}
			if t, ok := sit.hookThrows.Str(); ok {
				return eventlog.BeforeResult{}, errors.New(t)
			}
			return hookResult(sit.hook), nil
		},
		After: func(_ context.Context, done eventlog.Navigated) error {
			summary := js.Value{}
			if done.SummaryEntry != nil {
				summary = js.Text(done.SummaryEntry.ID())
			}
			n.event("session_tree",
				member("newLeafId", done.NewLeaf.Value()), member("oldLeafId", done.OldLeaf.Value()),
				member("summaryEntry", summary), member("fromHook", js.Boolean(done.FromHook)))
			if t, ok := sit.listenerThrows.Str(); ok {
				return errors.New(t)
			}
			return nil
		},
	}
	if !sit.model.Nullish() {
		o.Summarizer = n.summarizer(sit).Summarize
	}
	return o
}

// preparation has the options that were given; Pi's has no other.
func preparation(sit situation, p eventlog.Preparation) js.Value {
	given := func(key string, v js.Value) js.Member {
		if !sit.options[key].Exists() && !v.Truthy() {
			v = js.Value{}
		}
		return member(key, v)
	}
	return js.Fields(
		member("targetId", js.Text(p.Target)),
		member("oldLeafId", p.OldLeaf.Value()),
		member("commonAncestorId", p.CommonAncestor.Value()),
		member("userWantsSummary", js.Boolean(p.WantsSummary)),
		given("customInstructions", js.Text(p.Instructions)),
		given("replaceInstructions", js.Boolean(p.ReplaceInstructions)),
		given("label", js.Text(p.Label)),
		member("entriesToSummarize", idList(p.EntriesToSummarize)))
}

// hookResult is what the before-hook returns.
func hookResult(hook js.Value) eventlog.BeforeResult {
	b := eventlog.BeforeResult{Cancel: hook.Get("cancel").Truthy()}
	if s := hook.Get("summary"); s.Exists() {
		b.Summary = &eventlog.Summary{Text: text(s.Get("summary")), Details: s.Get("details"), Usage: s.Get("usage")}
	}
	if t, ok := hook.Get("customInstructions").Str(); ok {
		b.Instructions = &t
	}
	if v := hook.Get("replaceInstructions"); v.Exists() {
		replace := v.Truthy()
		b.ReplaceInstructions = &replace
	}
	return b
}

// summarizer is the usual one over a model with canned replies.
func (n *navigation) summarizer(sit situation) eventlog.ModelSummarizer {
	window, _ := sit.model.Get("contextWindow").Float()
	m := eventlog.ModelSummarizer{ContextWindow: window, Complete: func(_ context.Context, c eventlog.Completion) (eventlog.Message, error) {
		if c.Prompt != "<conversation>\n"+c.Conversation+"\n</conversation>\n\n"+c.Instructions {
			n.fail(n.at("summarizerCalls"), "a prompt made of the conversation and the instructions", cut(c.Prompt))
		}
		n.mu.Lock()
		defer n.mu.Unlock()
		n.calls = append(n.calls, js.Fields(
			member("model", sit.model.Get("id")), member("messages", js.Num(1)),
			member("conversation", js.Text(c.Conversation)),
			member("instructions", instructions(c.Instructions)),
			member("maxTokens", js.Num(float64(c.MaxTokens)))))
		if len(n.replies) == 0 {
			return eventlog.Message{}, errors.New("no reply left")
		}
		reply := n.replies[0]
		n.replies = n.replies[1:]
		if t, ok := reply.Get("throws").Str(); ok {
			return eventlog.Message{}, errors.New(t)
		}
		return eventlog.Message{Value: reply}, nil
	}}
	if sit.retry.Get("enabled").Truthy() {
		retries, _ := sit.retry.Get("maxRetries").Float()
		base, _ := sit.retry.Get("baseDelayMs").Float()
		operation := member("operation", js.Text("branch_summary"))
		m.Retry = eventlog.Retry{
			// The waits are part of the answer, waiting is not: for the time that the
			// vector has, one nanosecond is waited.
			Max: int(retries), Delay: 1,
			Scheduled: func(attempt, most int, delay time.Duration, why string) {
				n.event("retry_scheduled", operation,
					member("attempt", js.Num(float64(attempt))), member("maxAttempts", js.Num(float64(most))),
					member("delayMs", js.Num(base*float64(delay))), member("errorMessage", js.Text(why)))
			},
			Started:  func() { n.event("retry_attempt_start", operation) },
			Finished: func() { n.event("retry_finished", operation) },
		}
	}
	return m
}

func instructions(s string) js.Value {
	kind := func(k string) js.Member { return member("kind", js.Text(k)) }
	if s == eventlog.BranchSummaryInstructions {
		return js.Fields(kind("usual"))
	}
	if focus, ok := strings.CutPrefix(s, eventlog.BranchSummaryInstructions+"\n\nAdditional focus: "); ok {
		return js.Fields(kind("usual-with-focus"), member("focus", js.Text(focus)))
	}
	return js.Fields(kind("replaced"), member("text", js.Text(s)))
}
