package eventlog_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/sessiontree/sessiontree/eventlog"
)

// naive is the reference that histories are compared with: section 2 of the
// design written down as plainly as it goes, over entries that encoding/json has
// read. It knows ASCII ids only, and looks everything up by walking.
type naive struct {
	log []record
}

type record struct {
	Type             string          `json:"type"`
	ID               string          `json:"id"`
	ParentID         *string         `json:"parentId"`
	Timestamp        string          `json:"timestamp"`
	TargetID         *string         `json:"targetId"`
	FirstKeptEntryID any             `json:"firstKeptEntryId"`
	RetainedTail     json.RawMessage `json:"retainedTail"`
	Label            *string         `json:"label"`
	Name             *string         `json:"name"`
	Summary          string          `json:"summary"`
	FromID           string          `json:"fromId"`
	CustomType       string          `json:"customType"`
	Content          json.RawMessage `json:"content"`
	ThinkingLevel    *string         `json:"thinkingLevel"`
	Provider         string          `json:"provider"`
	ModelID          string          `json:"modelId"`
	ActiveToolNames  []string        `json:"activeToolNames"`
	Usage            *usage          `json:"usage"`
	Message          *struct {
		Role     string          `json:"role"`
		Content  json.RawMessage `json:"content"`
		Provider string          `json:"provider"`
		Model    string          `json:"model"`
		Usage    *usage          `json:"usage"`
	} `json:"message"`
}

type usage struct {
	Input, Output, CacheRead, CacheWrite *float64
	Cost                                 struct{ Total *float64 }
}

func (n *naive) append(texts ...string) {
	for _, text := range texts {
		var r record
		if err := json.Unmarshal([]byte(text), &r); err != nil {
			panic(fmt.Sprintf("%v: %s", err, text))
		}
		n.log = append(n.log, r)
	}
}

// find is the last entry with the id.
func (n *naive) find(id string) (record, bool) {
	for _, r := range slices.Backward(n.log) {
		if r.ID == id {
			return r, true
		}
	}
	return record{}, false
}

// leaf replays the log; nil is no leaf.
func (n *naive) leaf() *string {
	var leaf *string
	for i, r := range n.log {
		if leaf = &n.log[i].ID; r.Type == "leaf" {
			leaf = r.TargetID
		}
	}
	return leaf
}

func (n *naive) head() (eventlog.Head, error) {
	leaf := n.leaf()
	if leaf == nil {
		return eventlog.Head{N: len(n.log)}, nil
	}
	h := eventlog.Head{Leaf: eventlog.At(*leaf), N: len(n.log)}
	if _, ok := n.find(*leaf); !ok {
		return h, eventlog.ErrInvalidSession
	}
	return h, nil
}

// truthy is JavaScript's.
func truthy(v json.RawMessage) bool {
	switch string(v) {
	case "", "null", "false", "0", "-0", `""`:
		return false
	}
	return true
}

// branch walks up until it stops, or until it stands where it stood before with
// the same thing in mind.
func (n *naive) branch(from string) ([]record, error) {
	at, ok := n.find(from)
	if !ok {
		return nil, eventlog.ErrNotFound
	}
	type state struct{ id, remembered string }
	been := map[state]bool{}
	remembered := ""
	var path []record
	for {
		if been[state{at.ID, remembered}] {
			return nil, eventlog.ErrInvalidSession
		}
		been[state{at.ID, remembered}] = true
		path = append([]record{at}, path...)
		if remembered != "" && at.ID == remembered {
			return path, nil
		}
		if at.Type == "compaction" {
			if truthy(at.RetainedTail) {
				return path, nil
			}
			remembered, _ = at.FirstKeptEntryID.(string)
		}
		if at.ParentID == nil || *at.ParentID == "" {
			return path, nil
		}
		if at, ok = n.find(*at.ParentID); !ok {
			return nil, eventlog.ErrInvalidSession
		}
	}
}

// current is the branch of the leaf.
func (n *naive) current() ([]record, error) {
	if _, err := n.head(); err != nil {
		return nil, err
	}
	leaf := n.leaf()
	if leaf == nil {
		return nil, nil
	}
	return n.branch(*leaf)
}

// contextEntries is Pi's defaultContextEntryTransform.
func contextEntries(branch []record) []record {
	last := ""
	for _, r := range branch {
		if r.Type == "compaction" {
			last = r.ID
		}
	}
	if last == "" {
		return branch
	}
	at := slices.IndexFunc(branch, func(r record) bool { return r.Type == "compaction" && r.ID == last })
	// Of an id that stands twice on a branch both places are the same entry.
	c := branch[at]
	out := []record{c}
	if !truthy(c.RetainedTail) {
		if kept, _ := c.FirstKeptEntryID.(string); kept != "" {
			found := false
			for _, r := range branch[:at] {
				if found = found || r.ID == kept; found {
					out = append(out, r)
				}
			}
		}
	}
	return append(out, branch[at+1:]...)
}

// messages are the context's messages, as shown has them. Pi spreads a
// retainedTail that is there, and throws if it is no list.
func messages(entries []record) ([]string, error) {
	lines := []string{}
	say := func(role, text string) { lines = append(lines, role+": "+text) }
	for _, r := range entries {
		switch r.Type {
		case "message":
			say(r.Message.Role, plain(r.Message.Content))
		case "custom_message":
			say("custom", plain(r.Content))
		case "compaction":
			say("compactionSummary", r.Summary)
			var tail []struct {
				Role    string          `json:"role"`
				Content json.RawMessage `json:"content"`
			}
			if raw := string(r.RetainedTail); raw != "" && raw != "null" && raw[0] != '[' {
				return nil, eventlog.ErrInvalidEntry
			}
			json.Unmarshal(r.RetainedTail, &tail)
			for _, m := range tail {
				say(m.Role, plain(m.Content))
			}
		case "branch_summary":
			if r.Summary != "" {
				say("branchSummary", r.Summary)
			}
		}
	}
	return lines, nil
}

// plain is the text of a message's content.
func plain(content json.RawMessage) string {
	var text string
	if json.Unmarshal(content, &text) == nil {
		return text
	}
	var blocks []struct{ Type, Text string }
	json.Unmarshal(content, &blocks)
	var parts []string
	for _, b := range blocks {
		if b.Type == "text" {
			parts = append(parts, b.Text)
		}
	}
	return strings.Join(parts, "\n")
}

// settings are thinking level, model and tools, as one text.
func settings(branch []record) string {
	thinking, model, tools := "off", "none", "none"
	for _, r := range branch {
		switch {
		case r.Type == "thinking_level_change":
			thinking = *r.ThinkingLevel
		case r.Type == "model_change":
			model = r.Provider + "/" + r.ModelID
		case r.Type == "message" && r.Message.Role == "assistant":
			model = r.Message.Provider + "/" + r.Message.Model
		case r.Type == "active_tools_change":
			tools = fmt.Sprint(r.ActiveToolNames)
		}
	}
	return thinking + " " + model + " " + tools
}

// settingsOf is the same of a context.
func settingsOf(c eventlog.Context) string {
	thinking, _ := c.ThinkingLevel.Str()
	model, tools := "none", "none"
	if c.Model != nil {
		provider, _ := c.Model.Provider.Str()
		id, _ := c.Model.ID.Str()
		model = provider + "/" + id
	}
	if c.ActiveTools != nil {
		names := []string{}
		for _, v := range c.ActiveTools {
			name, _ := v.Str()
			names = append(names, name)
		}
		tools = fmt.Sprint(names)
	}
	return thinking + " " + model + " " + tools
}

func (n *naive) labels() map[string]string {
	labels := map[string]string{}
	for _, r := range n.log {
		if r.Type != "label" || r.TargetID == nil {
			continue
		}
		if r.Label != nil && strings.TrimSpace(*r.Label) != "" {
			labels[*r.TargetID] = strings.TrimSpace(*r.Label)
		} else {
			delete(labels, *r.TargetID)
		}
	}
	return labels
}

func (n *naive) name() string {
	name := ""
	for _, r := range n.log {
		if r.Type == "session_info" {
			if name = ""; r.Name != nil {
				name = strings.TrimSpace(*r.Name)
			}
		}
	}
	return name
}

func (n *naive) stats() eventlog.Stats {
	var s eventlog.Stats
	for _, r := range n.log {
		u := r.Usage
		switch r.Type {
		case "message":
			s.Messages++
			if u = nil; r.Message.Role == "assistant" {
				u = r.Message.Usage
			}
		case "compaction", "branch_summary":
		default:
			u = nil
		}
		if u == nil || u.Input == nil || u.Output == nil || u.CacheRead == nil || u.CacheWrite == nil || u.Cost.Total == nil {
			continue
		}
		s.CachedTokens += *u.CacheRead
		s.UncachedTokens += *u.Input + *u.CacheWrite
		s.TotalTokens += *u.Input + *u.Output + *u.CacheRead + *u.CacheWrite
		s.Cost += *u.Cost.Total
	}
	return s
}

// collect is what a move from old to target leaves behind.
func (n *naive) collect(old, target *string) (left []string, common *string, err error) {
	if old == nil || *old == "" {
		return []string{}, nil, nil
	}
	oldBranch, err := n.branch(*old)
	if err != nil {
		return nil, nil, err
	}
	var targetBranch []record
	if target != nil {
		targetBranch, err = n.branch(*target)
	} else {
		targetBranch, err = n.current()
	}
	if err != nil {
		return nil, nil, err
	}
	for _, r := range targetBranch {
		for _, o := range oldBranch {
			if o.ID == r.ID {
				common = &r.ID
			}
		}
	}
	left = []string{}
	been := map[string]bool{}
	for at := old; at != nil && *at != "" && (common == nil || *at != *common); {
		r, ok := n.find(*at)
		if !ok || been[*at] {
			return nil, nil, eventlog.ErrInvalidSession
		}
		been[*at] = true
		left = append([]string{r.ID}, left...)
		at = r.ParentID
	}
	return left, common, nil
}

// fork is the entries that a fork copies.
func (n *naive) fork(id string, at bool) ([]record, error) {
	if id == "" {
		return n.log, nil
	}
	r, ok := n.find(id)
	switch {
	case !ok:
		return nil, eventlog.ErrInvalidForkTarget
	case at:
		return n.branch(id)
	case r.Type != "message" || r.Message.Role != "user":
		return nil, eventlog.ErrInvalidForkTarget
	case r.ParentID == nil:
		return nil, nil
	}
	return n.branch(*r.ParentID)
}

func recordIDs(records []record) []string {
	ids := []string{}
	for _, r := range records {
		ids = append(ids, r.ID)
	}
	return ids
}

// sameError says whether an error is of the sentinel's kind; nil is none.
func sameError(want, got error) bool {
	if want == nil || got == nil {
		return want == nil && got == nil
	}
	return errors.Is(got, want)
}
