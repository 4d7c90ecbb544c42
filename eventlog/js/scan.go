package js

import (
	"fmt"
	"strings"
)

// SyntaxError says where a text stops being JSON as JSON.parse reads it.
type SyntaxError struct {
	Offset int    // byte offset into the text
	Reason string // what was wrong there
}

func (e *SyntaxError) Error() string {
	return fmt.Sprintf("not JSON at byte %d: %s", e.Offset, e.Reason)
}

func syntax(at int, reason string) error { return &SyntaxError{Offset: at, Reason: reason} }

const (
	reasonEnd     = "the text ends too early"
	reasonLiteral = "unknown word"
	reasonControl = "raw control character in a string"
)

// Skip checks the JSON value that starts at text[at:], after white space, and
// returns the offset behind it. It is JSON.parse's grammar: no comments, no
// trailing commas, no raw control characters in strings. Depth is bounded by
// memory only, one bit a level. Errors are [*SyntaxError].
func Skip(text string, at int) (end int, err error) {
	var levels bitStack
	i := at
value:
	for i < len(text) && isSpace(text[i]) {
		i++
	}
	if i >= len(text) {
		return i, syntax(i, reasonEnd)
	}
	switch c := text[i]; c {
	case '{':
		i = skipSpace(text, i+1)
		if i < len(text) && text[i] == '}' {
			i++
			goto after
		}
		levels.push(true)
		goto key
	case '[':
		i = skipSpace(text, i+1)
		if i < len(text) && text[i] == ']' {
			i++
			goto after
		}
		levels.push(false)
		goto value
	case '"':
		if i, err = skipString(text, i); err != nil {
			return i, err
		}
	default:
		if i, err = skipScalar(text, i, c); err != nil {
			return i, err
		}
	}
after:
	if levels.n == 0 {
		return i, nil
	}
	i = skipSpace(text, i)
	if i >= len(text) {
		return i, syntax(i, reasonEnd)
	}
	if levels.top() {
		switch text[i] {
		case ',':
			i = skipSpace(text, i+1)
			goto key
		case '}':
			i++
			levels.pop()
			goto after
		}
		return i, syntax(i, "expected , or } in an object")
	}
	switch text[i] {
	case ',':
		i++
		goto value
	case ']':
		i++
		levels.pop()
		goto after
	}
	return i, syntax(i, "expected , or ] in an array")
key:
	if i, err = skipKey(text, i); err != nil {
		return i, err
	}
	goto value
}

// WalkObject checks the object that starts at text[at] (which must be '{') and
// calls member for each of its members, in text order, duplicates included,
// with the decoded key and the offset at which the value starts. member must
// check the value and return the offset behind it, as [Skip] and WalkObject do;
// so one pass can check a text and look into as many levels as it needs.
func WalkObject(text string, at int, member func(key string, at int) (end int, err error)) (end int, err error) {
	if at >= len(text) || text[at] != '{' {
		return at, syntax(at, "expected {")
	}
	i := skipSpace(text, at+1)
	if i < len(text) && text[i] == '}' {
		return i + 1, nil
	}
	for {
		start := i
		if i, err = skipString(text, i); err != nil {
			return i, err
		}
		key := unquote(text[start:i])
		if i, err = skipColon(text, i); err != nil {
			return i, err
		}
		if i, err = member(key, skipSpace(text, i)); err != nil {
			return i, err
		}
		i = skipSpace(text, i)
		if i >= len(text) {
			return i, syntax(i, reasonEnd)
		}
		switch text[i] {
		case ',':
			i = skipSpace(text, i+1)
		case '}':
			return i + 1, nil
		default:
			return i, syntax(i, "expected , or } in an object")
		}
	}
}

func isSpace(c byte) bool { return c == ' ' || c == '\n' || c == '\t' || c == '\r' }

func skipSpace(text string, i int) int {
	for i < len(text) && isSpace(text[i]) {
		i++
	}
	return i
}

func skipKey(text string, i int) (int, error) {
	i, err := skipString(text, i)
	if err != nil {
		return i, err
	}
	return skipColon(text, i)
}

func skipColon(text string, i int) (int, error) {
	i = skipSpace(text, i)
	if i >= len(text) {
		return i, syntax(i, reasonEnd)
	}
	if text[i] != ':' {
		return i, syntax(i, "expected : after a key")
	}
	return i + 1, nil
}

// skipString checks the string literal at text[i].
func skipString(text string, i int) (int, error) {
	if i >= len(text) {
		return i, syntax(i, reasonEnd)
	}
	if text[i] != '"' {
		return i, syntax(i, "expected a string")
	}
	i++
	for {
		// Eight bytes at a time up to the first that ends the run.
		for i+8 <= len(text) {
			w := load8(text, i)
			if stops := stopMask(w); stops != 0 {
				i += firstByte(stops)
				goto stop
			}
			i += 8
		}
		for i < len(text) && text[i] != '"' && text[i] != '\\' && text[i] >= 0x20 {
			i++
		}
		if i >= len(text) {
			return i, syntax(i, reasonEnd)
		}
	stop:
		switch c := text[i]; {
		case c == '"':
			return i + 1, nil
		case c < 0x20:
			return i, syntax(i, reasonControl)
		}
		// A backslash.
		if i+1 >= len(text) {
			return i + 1, syntax(i+1, reasonEnd)
		}
		switch text[i+1] {
		case '"', '\\', '/', 'b', 'f', 'n', 'r', 't':
			i += 2
		case 'u':
			for k := i + 2; k < i+6; k++ {
				if k >= len(text) {
					return k, syntax(k, reasonEnd)
				}
				if hexDigit(text[k]) < 0 {
					return k, syntax(k, "bad \\u escape")
				}
			}
			i += 6
		default:
			return i, syntax(i, "unknown escape")
		}
	}
}

func skipScalar(text string, i int, c byte) (int, error) {
	switch c {
	case 't':
		return skipWord(text, i, "true")
	case 'f':
		return skipWord(text, i, "false")
	case 'n':
		return skipWord(text, i, "null")
	}
	return skipNumber(text, i)
}

func skipWord(text string, i int, word string) (int, error) {
	if strings.HasPrefix(text[i:], word) {
		return i + len(word), nil
	}
	if strings.HasPrefix(word, text[i:]) {
		return len(text), syntax(len(text), reasonEnd)
	}
	return i, syntax(i, reasonLiteral)
}

func skipNumber(text string, i int) (int, error) {
	start := i
	if text[i] == '-' {
		i++
	}
	digits := func() bool {
		from := i
		for i < len(text) && text[i] >= '0' && text[i] <= '9' {
			i++
		}
		return i > from
	}
	switch {
	case i < len(text) && text[i] == '0':
		i++
	case digits():
	default:
		return i, numberError(text, i, start)
	}
	if i < len(text) && text[i] == '.' {
		i++
		if !digits() {
			return i, numberError(text, i, start)
		}
	}
	if i < len(text) && (text[i] == 'e' || text[i] == 'E') {
		i++
		if i < len(text) && (text[i] == '+' || text[i] == '-') {
			i++
		}
		if !digits() {
			return i, numberError(text, i, start)
		}
	}
	return i, nil
}

func numberError(text string, i, start int) error {
	if i >= len(text) {
		return syntax(i, reasonEnd)
	}
	if i == start {
		return syntax(i, "unexpected character")
	}
	return syntax(i, "bad number")
}

func hexDigit(c byte) int {
	switch {
	case c >= '0' && c <= '9':
		return int(c - '0')
	case c >= 'a' && c <= 'f':
		return int(c-'a') + 10
	case c >= 'A' && c <= 'F':
		return int(c-'A') + 10
	}
	return -1
}

// bitStack remembers for each open level whether it is an object, a bit each:
// a text of a million brackets costs 125 KB and no stack.
type bitStack struct {
	low  uint64 // the lowest 64 levels, so that ordinary depths allocate nothing
	more []uint64
	n    int
}

func (b *bitStack) push(object bool) {
	word, bit := b.n>>6, uint(b.n&63)
	b.n++
	w := &b.low
	if word > 0 {
		if word > len(b.more) {
			b.more = append(b.more, 0)
		}
		w = &b.more[word-1]
	}
	*w &^= 1 << bit
	if object {
		*w |= 1 << bit
	}
}

func (b *bitStack) top() bool {
	word, bit := (b.n-1)>>6, uint((b.n-1)&63)
	if word == 0 {
		return b.low>>bit&1 == 1
	}
	return b.more[word-1]>>bit&1 == 1
}

func (b *bitStack) pop() { b.n-- }
