package js

import (
	"strings"
	"unicode/utf8"
)

// What is beyond these is rewritten instead of checked: it takes time that grows
// with the square, or stack.
const (
	checkedDepth = 32
	checkedKeys  = 16
)

// IsCanonical says whether v is JSON, and surely written as [Canonical] writes it.
// It is false for some values that are, of odd forms.
func IsCanonical(v Value) bool {
	return v.text != "" && canonicalEnd(v.text, 0, 0) == len(v.text)
}

// canonicalEnd is the offset behind the value at text[at] where [AppendCanonical]
// would write it as it stands; 0 where it would not, or might not. It checks the
// whole grammar: what is no JSON is not canonical.
func canonicalEnd(text string, at, depth int) int {
	if at >= len(text) || depth == checkedDepth {
		return 0
	}
	switch text[at] {
	case '"':
		return canonicalString(text, at)
	case '{':
		return canonicalObject(text, at, depth)
	case '[':
		return canonicalArray(text, at, depth)
	case 't':
		return endOf(text, at, "true")
	case 'f':
		return endOf(text, at, "false")
	case 'n':
		return endOf(text, at, "null")
	}
	return canonicalNumber(text, at)
}

// endOf is the offset behind the word at text[at], 0 if another stands there.
func endOf(text string, at int, word string) int {
	if strings.HasPrefix(text[at:], word) {
		return at + len(word)
	}
	return 0
}

func canonicalArray(text string, at, depth int) int {
	if end := endOf(text, at, "[]"); end > 0 {
		return end
	}
	for {
		at = canonicalEnd(text, at+1, depth+1)
		if at == 0 || at == len(text) {
			return 0
		}
		switch text[at] {
		case ']':
			return at + 1
		case ',':
		default:
			return 0
		}
	}
}

func canonicalObject(text string, at, depth int) int {
	if end := endOf(text, at, "{}"); end > 0 {
		return end
	}
	var seen [checkedKeys]string
	for n := 0; n < len(seen); n++ {
		start := at + 1
		if at = canonicalString(text, start); at == 0 || at == len(text) || text[at] != ':' {
			return 0
		}
		key := text[start:at]
		if isDigit(key[1]) { // perhaps an array index, which JavaScript puts first
			return 0
		}
		for _, k := range seen[:n] {
			if k == key {
				return 0
			}
		}
		seen[n] = key
		if at = canonicalEnd(text, at+1, depth+1); at == 0 || at == len(text) {
			return 0
		}
		switch text[at] {
		case '}':
			return at + 1
		case ',':
		default:
			return 0
		}
	}
	return 0
}

func isDigit(c byte) bool { return c-'0' <= 9 }

// canonicalString takes the escapes that have one spelling; \u is left to the
// rewriting.
func canonicalString(text string, at int) int {
	if at >= len(text) || text[at] != '"' {
		return 0
	}
	for at = skipPlain(text, at+1); at < len(text); at = skipPlain(text, at) {
		switch c := text[at]; {
		case c == '"':
			return at + 1
		case c == '\\':
			if at+1 == len(text) || strings.IndexByte(`"\bfnrt`, text[at+1]) < 0 {
				return 0
			}
			at += 2
		case c < 0x20:
			return 0
		default:
			r, n := utf8.DecodeRuneInString(text[at:])
			if r == utf8.RuneError && n == 1 {
				return 0
			}
			at += n
		}
	}
	return 0
}

func canonicalNumber(text string, at int) int {
	end, err := skipNumber(text, at)
	if err != nil {
		return 0
	}
	literal := text[at:end]
	if len(literal) <= 15 && isInteger(literal) {
		return end
	}
	f, ok := ParseNumber(literal)
	var b [32]byte
	if !ok || string(AppendNumber(b[:0], f)) != literal {
		return 0
	}
	return end
}

// isInteger says whether a number's literal, short enough to be exact, is a plain
// run of digits.
func isInteger(literal string) bool {
	for i := range len(literal) {
		if !isDigit(literal[i]) {
			return false
		}
	}
	return true
}
