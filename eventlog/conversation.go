package eventlog

import (
	"context"
	"fmt"
	"math"
	"slices"

	"github.com/sessiontree/sessiontree/eventlog/js"
)

// toolResultUnits is where a tool result is cut in the text of a conversation,
// in UTF-16 code units.
const toolResultUnits = 2000

// ConversationText is messages as text, the form in which a summarizer gets
// them. messages are as [Dialect.ToLLM] gives them. It fails with [ErrInvalidEntry]
// where a message's content has not the form that its role asks for. The coding
// agent's has no thinking.
func (d Dialect) ConversationText(messages []Message) (string, error) {
	var parts []string
	for _, m := range messages {
		content := m.Get("content")
		switch roleOf(m.Get("role")) {
		case roleUser:
			text, err := contentText(content, "")
			if err != nil {
				return "", err
			}
			if text != "" {
				parts = append(parts, js.Concat("[User]: ", text))
			}
		case roleAssistant:
			p, err := assistantText(content, d.rules().thinks())
			if err != nil {
				return "", err
			}
			parts = append(parts, p...)
		case roleToolResult:
			text, err := contentText(content, "")
			if err != nil {
				return "", err
			}
			if n := js.Len(text); n > toolResultUnits {
				text = js.Concat(d.rules().toolResultText(text), fmt.Sprintf("\n\n[... %d more characters truncated]", n-toolResultUnits))
			}
			if text != "" {
				parts = append(parts, js.Concat("[Tool result]: ", text))
			}
		}
	}
	return js.Join(parts, "\n\n"), nil
}

func assistantText(content js.Value, thinks bool) (parts []string, err error) {
	if content.Kind() != js.Array {
		return nil, Errorf(InvalidEntry, "the content of an assistant message is %s, not a list", content.Kind())
	}
	var thinking, calls []string
	hasText := false
	for block := range content.Elements() {
		if block.Nullish() {
			return nil, Errorf(InvalidEntry, "a block of a message's content is null")
		}
		switch t := block.Get("type"); {
		case t.Is("thinking"):
			thinking = append(thinking, joined(block.Get("thinking")))
		case t.Is("text"):
			hasText = true
		case t.Is("toolCall"):
			args, ok := js.Entries(block.Get("arguments"))
			if !ok {
				return nil, Errorf(InvalidEntry, "a tool call has no arguments")
			}
			texts := make([]string, len(args))
			for i, a := range args {
				texts[i] = js.Concat(a.Key, "=", js.Canonical(a.Value).JSON())
			}
			calls = append(calls, js.Concat(js.ToString(block.Get("name")), "(", js.Join(texts, ", "), ")"))
		}
	}
	if thinks && len(thinking) > 0 {
		parts = append(parts, js.Concat("[Assistant thinking]: ", js.Join(thinking, "\n")))
	}
	if hasText {
		text, err := contentText(content, "\n")
		if err != nil {
			return nil, err
		}
		parts = append(parts, js.Concat("[Assistant]: ", text))
	}
	if len(calls) > 0 {
		parts = append(parts, js.Concat("[Assistant tool calls]: ", js.Join(calls, "; ")))
	}
	return parts, nil
}

// Left is what a move leaves behind.
type Left struct {
	Entries        []Entry // oldest first
	CommonAncestor Ref     // the last entry that both branches share, as far as the branches reach
}

// CollectBranch gives the entries that moving the leaf from old to target leaves
// behind: from old up to the deepest entry that the two branches share,
// exclusive; up to the root, past compactions, where the cut branches share
// nothing. A target of none means the current leaf, as in Pi. It fails as
// [Storage.Branch] does.
func (s *Session) CollectBranch(ctx context.Context, old, target Ref) (Left, error) {
	if idle(old.ID()) {
		return Left{}, nil
	}
	oldBranch, err := s.Branch(ctx, old)
	if err != nil {
		return Left{}, err
	}
	on := make(map[string]bool, len(oldBranch))
	for _, e := range oldBranch {
		on[e.id] = true
	}
	targetBranch, err := s.Branch(ctx, target)
	if err != nil {
		return Left{}, err
	}
	var left Left
	for i := len(targetBranch) - 1; i >= 0; i-- {
		if on[targetBranch[i].id] {
			left.CommonAncestor = At(targetBranch[i].id)
			break
		}
	}
	seen := map[string]bool{}
	for id := old.ID(); !idle(id) && At(id) != left.CommonAncestor; {
		if seen[id] {
			return Left{}, endless(old.ID())
		}
		seen[id] = true
		e, err := s.storage.Entry(ctx, id)
		if CodeOf(err) == NotFound {
			if s.dialect.HoleEnds() {
				break
			}
			return Left{}, EntryNotFound(InvalidSession, id)
		}
		if err != nil {
			return Left{}, err
		}
		left.Entries = append(left.Entries, e)
		id = e.parent.ID()
	}
	slices.Reverse(left.Entries)
	return left, nil
}

// Prepared is what a summary is made from.
type Prepared struct {
	Messages      []Message
	ReadFiles     []js.Value // read and not changed, sorted; texts, unless an entry's details hold something else
	ModifiedFiles []js.Value // written or edited, sorted
	// Tokens estimates the messages: a quarter of their UTF-16 code units, rounded
	// up for each message, an image as 4,800 units. NaN where Pi computes one.
	Tokens float64
}

// PrepareBranch picks the messages of the entries left behind that fit into a
// budget of tokens, newest first; 0 or less is no limit. Tool results are left
// out; a summary that no longer fits is taken while less than nine tenths are
// used. It fails with [ErrInvalidEntry] where a message has not the form that
// its role asks for. In the coding agent's dialect edits among the entries are
// applied, and system messages are taken.
func (d Dialect) PrepareBranch(entries []Entry, budget float64) (Prepared, error) {
	ed := d.rules().edits(entries)
	var p Prepared
	var files fileLists
	for _, e := range entries {
		if e.kind != kindBranchSummary || e.Get("fromHook").Truthy() {
			continue
		}
		details := e.Get("details")
		for f := range details.Get("readFiles").Elements() {
			files.read.add(f)
		}
		for f := range details.Get("modifiedFiles").Elements() {
			files.modified.add(f)
		}
	}
	for i := len(entries) - 1; i >= 0; i-- {
		e := entries[i]
		m, ok, err := summarized(e)
		if edit, isEdited := ed[e.id]; isEdited && err == nil && ok && (e.kind == kindMessage || e.kind == kindCustomMessage) {
			m, ok, err = d.editedOne(e, edit)
		}
		if err != nil {
			return Prepared{}, err
		}
		if !ok {
			continue
		}
		files.note(m)
		tokens, err := d.estimateTokens(m)
		if err != nil {
			return Prepared{}, err
		}
		if budget > 0 && p.Tokens+tokens > budget {
			if (e.kind == kindCompaction || e.kind == kindBranchSummary) && p.Tokens < budget*0.9 {
				p.Messages = append(p.Messages, m)
				p.Tokens += tokens
			}
			break
		}
		p.Messages = append(p.Messages, m)
		p.Tokens += tokens
	}
	slices.Reverse(p.Messages)
	p.ReadFiles, p.ModifiedFiles = files.lists()
	return p, nil
}

// summarized is the message of an entry as a branch summary takes it.
func summarized(e Entry) (m Message, ok bool, err error) {
	switch e.kind {
	case kindMessage:
		m = e.Message()
		if m.Nullish() {
			return m, false, e.faulty("message", "is missing")
		}
		return m, e.role != roleToolResult && m.Truthy(), nil
	case kindCustomMessage:
		return customMessage(e, e.Get("content")), true, nil
	case kindBranchSummary:
		return branchSummaryMessage(e), true, nil
	case kindCompaction:
		return compactionMessage(e), true, nil
	}
	return Message{}, false, nil
}

// editedOne is the message of an edited entry.
func (d Dialect) editedOne(e, edit Entry) (Message, bool, error) {
	made, err := d.rules().messages(nil, 0, []Entry{e}, edits{e.id: edit}, &ContextOptions{})
	if err != nil || len(made) == 0 {
		return Message{}, false, err
	}
	return made[0], true, nil
}

const imageUnits = 4800

// estimateTokens is Pi's estimate for one message.
func (d Dialect) estimateTokens(m Message) (float64, error) {
	var units float64
	// length adds a value's length; reading it of nothing throws in Pi.
	length := func(v js.Value, what string) error {
		n, ok := js.Length(v)
		if !ok {
			return Errorf(InvalidEntry, "a message has no %s", what)
		}
		units += n
		return nil
	}
	content := m.Get("content")
	r := roleOf(m.Get("role"))
	if d.rules().knowsSystem() && m.Get("role").Is(RoleSystem) {
		r = roleUser
		for _, section := range m.Get("sections").Members() {
			if section.Value.Truthy() {
				if err := length(section.Value, "section"); err != nil {
					return 0, err
				}
			}
		}
		if added := m.Get("toolsAdded"); added.Truthy() {
			units += float64(js.Len(js.Canonical(added).JSON()))
		}
	}
	switch r {
	case roleUser, roleCustom, roleToolResult:
		if content.Kind() == js.String {
			if err := length(content, "content"); err != nil {
				return 0, err
			}
			break
		}
		blocks, err := contentBlocks(content)
		if err != nil {
			return 0, err
		}
		for _, b := range blocks {
			if text := b.Get("text"); b.Get("type").Is("text") && text.Truthy() {
				if err := length(text, "text"); err != nil {
					return 0, err
				}
			} else if b.Get("type").Is("image") {
				units += imageUnits
			}
		}
	case roleAssistant:
		blocks, err := contentBlocks(content)
		if err != nil {
			return 0, err
		}
		for _, b := range blocks {
			switch t := b.Get("type"); {
			case t.Is("text"):
				err = length(b.Get("text"), "text")
			case t.Is("thinking"):
				err = length(b.Get("thinking"), "thinking")
			case t.Is("toolCall"):
				err = length(b.Get("name"), "name of a tool call")
				if args := b.Get("arguments"); args.Exists() {
					units += float64(js.Len(js.Canonical(args).JSON()))
				} else {
					units += float64(len("undefined"))
				}
			}
			if err != nil {
				return 0, err
			}
		}
	case roleBashExecution:
		if err := length(m.Get("command"), "command"); err != nil {
			return 0, err
		}
		if err := length(m.Get("output"), "output"); err != nil {
			return 0, err
		}
	case roleBranchSummary, roleCompactionSummary:
		if err := length(m.Get("summary"), "summary"); err != nil {
			return 0, err
		}
	}
	return math.Ceil(units / 4), nil
}

// contentBlocks is what for…of goes through.
func contentBlocks(content js.Value) ([]js.Value, error) {
	blocks, ok := content.Spread()
	if !ok {
		return nil, Errorf(InvalidEntry, "the content of a message is %s, not a list", content.Kind())
	}
	for _, b := range blocks {
		if b.Nullish() {
			return nil, Errorf(InvalidEntry, "a block of a message's content is null")
		}
	}
	return blocks, nil
}

// fileLists gathers the files that tool calls and earlier summaries name.
type fileLists struct{ read, modified fileSet }

// note takes the paths of an assistant message's read, write and edit calls.
func (f *fileLists) note(m Message) {
	if !m.Get("role").Is(RoleAssistant) {
		return
	}
	for b := range m.Get("content").Elements() {
		if !b.Get("type").Is("toolCall") {
			continue
		}
		path := b.Get("arguments").Get("path")
		if s, ok := path.Str(); !ok || s == "" {
			continue
		}
		switch name := b.Get("name"); {
		case name.Is("read"):
			f.read.add(path)
		case name.Is("write"), name.Is("edit"):
			f.modified.add(path)
		}
	}
}

func (f *fileLists) lists() (read, modified []js.Value) {
	for _, v := range f.read.values {
		if !f.modified.has(v) {
			read = append(read, v)
		}
	}
	modified = slices.Clone(f.modified.values)
	byText := func(a, b js.Value) int { return js.Compare(js.ToString(a), js.ToString(b)) }
	slices.SortStableFunc(read, byText)
	slices.SortStableFunc(modified, byText)
	return read, modified
}

// fileSet is a JavaScript Set: texts and numbers are the same if they are equal,
// lists and objects never are.
type fileSet struct {
	values []js.Value
	seen   map[string]bool
}

func (s *fileSet) add(v js.Value) {
	if s.has(v) {
		return
	}
	if s.seen == nil {
		s.seen = map[string]bool{}
	}
	s.seen[js.Canonical(v).JSON()] = true
	s.values = append(s.values, v)
}

func (s *fileSet) has(v js.Value) bool {
	if k := v.Kind(); k == js.Array || k == js.Object {
		return false
	}
	return s.seen[js.Canonical(v).JSON()]
}

// fileSections are the file lists as they stand at the end of a summary.
func fileSections(read, modified []js.Value) string {
	text := ""
	for _, section := range []struct {
		tag   string
		files []js.Value
	}{{"read-files", read}, {"modified-files", modified}} {
		if len(section.files) == 0 {
			continue
		}
		names := make([]string, len(section.files))
		for i, f := range section.files {
			names[i] = joined(f)
		}
		text += "\n\n<" + section.tag + ">\n" + js.Join(names, "\n") + "\n</" + section.tag + ">"
	}
	return text
}
