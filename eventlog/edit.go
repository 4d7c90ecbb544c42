package eventlog

import (
	"context"
	"errors"

	"github.com/sessiontree/sessiontree/eventlog/js"
)

// edits are the context edits that count, by the id of their target.
type edits map[string]Entry

// edits: of the context's entries the last edit for a target counts, also when it
// stands before the target.
func (codingAgent) edits(entries []Entry) edits {
	var ed edits
	for _, e := range entries {
		if e.kind == kindContextEdit {
			if ed == nil {
				ed = edits{}
			}
			ed[keyOf(e.Get("targetId"))] = e
		}
	}
	return ed
}

// edited applies an edit to what its target gives: null takes all of it away; else
// the content of messages of the roles that have one is replaced.
func edited(messages []Message, edit Entry) ([]Message, error) {
	replacement := edit.Get("replacement")
	if replacement.Kind() == js.Null {
		return nil, nil
	}
	made := make([]Message, len(messages))
	for i, m := range messages {
		made[i] = m
		switch m.Role() {
		case RoleUser, RoleAssistant, RoleToolResult, RoleCustom:
			if !replacement.Exists() {
				return nil, edit.faulty("replacement", "is missing")
			}
			made[i] = m.with("content", replacementContent(m.Role(), replacement))
		}
	}
	return made, nil
}

// replacementContent is a replacement's content for a role: a text is one block
// where content is a list.
func replacementContent(role string, replacement js.Value) js.Value {
	content := replacement.Get("content")
	if text, ok := content.Str(); ok && (role == RoleAssistant || role == RoleToolResult) {
		return textBlocks(text)
	}
	return content
}

// ContextEditDraft is a context_edit entry: below it, replacement (an object with
// a content, or null for nothing at all) stands for what target gives.
func ContextEditDraft(target string, replacement js.Value) Draft {
	return draft(TypeContextEdit, field("targetId", keyValue(target)), field("replacement", replacement))
}

// EditContext changes what an earlier entry of the current branch gives to the
// context below, and only there: replacement is null for nothing, or an object
// whose content, a text or a list, takes the place of the target's. It fails with
// [ErrNotFound], and with [ErrInvalidArgument] for a target that is not on the
// current branch, or that is no custom message and no message of role user,
// assistant or toolResult; and in the harness's dialect, which has no edits.
func (s *Session) EditContext(ctx context.Context, target string, replacement js.Value) (Entry, error) {
	if s.dialect.LogsMoves() {
		return Entry{}, Errorf(InvalidArgument, "a session of the dialect %s has no context edits", s.dialect)
	}
	content := replacement.Get("content").Kind()
	if replacement.Kind() != js.Null && content != js.String && content != js.Array {
		return Entry{}, Errorf(InvalidArgument, "Context edit replacement must be null or contain string/array content")
	}
	return s.appendAtLeaf(ctx, func(leaf Ref) (Draft, error) {
		e, err := s.storage.Entry(ctx, target)
		if err != nil {
			return Draft{}, err
		}
		if on, err := s.isAbove(ctx, target, leaf); err != nil || !on {
			if err == nil {
				err = Errorf(InvalidArgument, "Entry %s is not on the active branch", target)
			}
			return Draft{}, err
		}
		role := RoleCustom
		if e.kind != kindCustomMessage {
			if role = e.Message().Role(); e.kind != kindMessage || role != RoleUser && role != RoleAssistant && role != RoleToolResult {
				return Draft{}, Errorf(InvalidArgument, "Entry %s does not contribute editable model content", target)
			}
		}
		if _, isText := replacement.Get("content").Str(); isText && (role == RoleAssistant || role == RoleToolResult) {
			return ContextEditDraft(target, js.Fields(field("content", replacementContent(role, replacement)))), nil
		}
		return ContextEditDraft(target, replacement), nil
	})
}

// isAbove says whether target stands on the branch of leaf.
func (s *Session) isAbove(ctx context.Context, target string, leaf Ref) (bool, error) {
	if leaf.IsNone() || idle(leaf.id) {
		return false, nil
	}
	if fast, ok := s.storage.(interface {
		IsAncestor(ctx context.Context, a, b string) (bool, error)
	}); ok {
		return fast.IsAncestor(ctx, target, leaf.id)
	}
	branch, err := s.storage.Branch(ctx, leaf)
	for _, e := range branch {
		if e.id == target {
			return true, err
		}
	}
	return false, err
}

// appendAtLeaf appends what make makes of the leaf, again where the session has
// moved on meanwhile.
func (s *Session) appendAtLeaf(ctx context.Context, make func(leaf Ref) (Draft, error)) (Entry, error) {
	for {
		head, err := s.storage.Head(ctx)
		if err != nil {
			return Entry{}, err
		}
		d, err := make(head.Leaf)
		if err != nil {
			return Entry{}, err
		}
		entries, err := s.AppendIf(ctx, head, d)
		if err == nil {
			return entries[0], nil
		}
		if !errors.Is(err, ErrConflict) || ctx.Err() != nil {
			return Entry{}, err
		}
	}
}
