package sqlitestore

import (
	"slices"
	"strings"

	"github.com/sessiontree/sessiontree/eventlog"
)

// readingWords are the words that a statement that reads begins with. The authorizer
// decides what each may do; some statements, as VACUUM, it is asked about too late.
var readingWords = []string{"SELECT", "WITH", "VALUES", "EXPLAIN", "PRAGMA"}

// oneStatement is the only statement in a text, without what ends it. It fails with
// [eventlog.ErrInvalidArgument] if there is none, more than one, or one that does not
// begin as those that read do.
func oneStatement(text string) (string, error) {
	if strings.ContainsRune(text, 0) {
		return "", eventlog.Errorf(eventlog.InvalidArgument, "SQL: there is a NUL in the text")
	}
	end := statementEnd(text)
	if rest := text[end:]; rest != "" && !isBlankSQL(rest[1:]) {
		return "", eventlog.Errorf(eventlog.InvalidArgument, "SQL: one statement at a time")
	}
	if isBlankSQL(text[:end]) {
		return "", eventlog.Errorf(eventlog.InvalidArgument, "SQL: there is no statement")
	}
	if word := firstWord(text[:end]); !slices.Contains(readingWords, strings.ToUpper(word)) {
		if word == "" {
			word = "this"
		}
		return "", eventlog.Errorf(eventlog.InvalidArgument, "SQL: only what reads is allowed (%s), not %s", strings.Join(readingWords, ", "), word)
	}
	return text[:end], nil
}

// statementEnd is where the first semicolon stands that is in no comment, text or
// name, else the end. Only a CREATE TRIGGER has others inside.
func statementEnd(text string) int {
	for i := 0; i < len(text); {
		n := tokenLen(text[i:])
		if text[i:i+n] == ";" {
			return i
		}
		i += n
	}
	return len(text)
}

// tokenLen is the length of the comment, text, quoted name or byte that text begins
// with. https://www.sqlite.org/lang_comment.html, …/lang_keywords.html
func tokenLen(text string) int {
	through := func(from int, end string) int {
		if i := strings.Index(text[from:], end); i >= 0 {
			return from + i + len(end)
		}
		return len(text)
	}
	switch {
	case strings.HasPrefix(text, "--"):
		return through(2, "\n")
	case strings.HasPrefix(text, "/*"):
		return through(2, "*/")
	}
	switch text[0] {
	case '\'', '"', '`': // a doubled quote ends one and begins another
		return through(1, text[:1])
	case '[':
		return through(1, "]")
	}
	return 1
}

// isBlankSQL says whether a text has nothing but blanks, comments and semicolons.
func isBlankSQL(text string) bool {
	return skipBlank(text) == ""
}

// skipBlank takes blanks, comments and semicolons off the beginning.
func skipBlank(text string) string {
	for text != "" && (strings.ContainsRune(" \t\r\n\f;", rune(text[0])) || strings.HasPrefix(text, "--") || strings.HasPrefix(text, "/*")) {
		text = text[tokenLen(text):]
	}
	return text
}

func firstWord(text string) string {
	text = skipBlank(text)
	end := strings.IndexFunc(text, func(r rune) bool { return (r < 'a' || r > 'z') && (r < 'A' || r > 'Z') })
	if end < 0 {
		end = len(text)
	}
	return text[:end]
}
