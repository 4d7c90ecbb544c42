package eventlog

import (
	"errors"
	"fmt"
	"strings"
)

// Code classifies an [Error]. The first two groups are Pi's own codes; the last
// is ours.
type Code string

const (
	// Answers of a session and its storage.
	NotFound          Code = "not_found"           // no such entry, session or file
	InvalidSession    Code = "invalid_session"     // a header, a leaf or a branch that cannot be read
	InvalidEntry      Code = "invalid_entry"       // a line or value that is no entry
	InvalidForkTarget Code = "invalid_fork_target" // Fork cannot start there
	StorageFailed     Code = "storage"             // the file system or database failed

	// Answers of Navigate.
	Busy            Code = "busy"             // not idle, or locked by another writer: the message says which
	InvalidArgument Code = "invalid_argument" // a value that no call takes
	InvalidState    Code = "invalid_state"    // a summary without a summarizer
	Hook            Code = "hook"             // a hook or listener failed
	SessionFailed   Code = "session"          // reading or writing the session failed; Err has the cause
	SummaryFailed   Code = "branch_summary"   // the summary could not be made

	// Answers that Pi does not have.
	AlreadyExists Code = "already_exists" // an id that is taken by other bytes
	Conflict      Code = "conflict"       // AppendIf met another head; Err is a *ConflictError
	Closed        Code = "closed"         // used after Close
)

// Sentinels for errors.Is: each matches every [Error] of its code.
var (
	ErrNotFound          error = &Error{Code: NotFound}
	ErrInvalidSession    error = &Error{Code: InvalidSession}
	ErrInvalidEntry      error = &Error{Code: InvalidEntry}
	ErrInvalidForkTarget error = &Error{Code: InvalidForkTarget}
	ErrStorage           error = &Error{Code: StorageFailed}
	ErrBusy              error = &Error{Code: Busy}
	ErrInvalidArgument   error = &Error{Code: InvalidArgument}
	ErrInvalidState      error = &Error{Code: InvalidState}
	ErrHook              error = &Error{Code: Hook}
	ErrSession           error = &Error{Code: SessionFailed}
	ErrBranchSummary     error = &Error{Code: SummaryFailed}
	ErrAlreadyExists     error = &Error{Code: AlreadyExists}
	ErrConflict          error = &Error{Code: Conflict}
	ErrClosed            error = &Error{Code: Closed}
)

// Error is every error of this module that is not the caller's own (a hook's, a
// cancelled context's). Where Pi has the same error, Code and Message are Pi's.
type Error struct {
	Code    Code
	Message string // one line; names the entry, or the file and the line
	Err     error  // the cause, or nil
}

func (e *Error) Error() string {
	switch {
	case e.Err == nil:
		return e.Message
	case strings.HasPrefix(e.Err.Error(), e.Message):
		return e.Err.Error() // the cause says it all
	}
	return e.Message + ": " + e.Err.Error()
}

func (e *Error) Unwrap() error { return e.Err }

// Is matches the sentinel of the same code.
func (e *Error) Is(target error) bool {
	t, ok := target.(*Error)
	return ok && t.Code == e.Code && t.Message == "" && t.Err == nil
}

// CodeOf is the code of the first [Error] in err's chain, or "".
func CodeOf(err error) Code {
	var e *Error
	if errors.As(err, &e) {
		return e.Code
	}
	return ""
}

// Errorf makes an [Error] without a cause.
func Errorf(code Code, format string, args ...any) *Error {
	return &Error{Code: code, Message: fmt.Sprintf(format, args...)}
}

// ConflictError is the cause of a [Conflict]: what the caller of AppendIf
// believed, and what is.
type ConflictError struct {
	Want, Actual Head
}

func (e *ConflictError) Error() string {
	return fmt.Sprintf("expected leaf %v after %d entries, found leaf %v after %d", e.Want.Leaf, e.Want.N, e.Actual.Leaf, e.Actual.N)
}

// EntryNotFound is the error for an entry that is not there, in Pi's wording. The
// code depends on what was asked.
func EntryNotFound(code Code, id string) *Error {
	return Errorf(code, "Entry %s not found", id)
}
