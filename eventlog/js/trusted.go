package js

import "strings"

// SkipChecked returns the offset behind the value at text[at], of a text that was
// checked already: it looks for ends only, at several times the speed of [Skip].
//
// What was checked may be damaged since, on a disk: then the end is some place, at
// most the end of the text, and no function here fails or goes on for ever.
func SkipChecked(text string, at int) int {
	if at >= len(text) {
		return len(text)
	}
	switch text[at] {
	case '"':
		return skipCheckedString(text, at)
	case '{', '[':
		depth := 0
		for i := at; i < len(text); {
			switch text[i] {
			case '"':
				i = skipCheckedString(text, i)
				continue
			case '{', '[':
				depth++
			case '}', ']':
				if depth--; depth == 0 {
					return i + 1
				}
			}
			i++
		}
		return len(text)
	}
	i := at + 1
	for i < len(text) && text[i] != ',' && text[i] != '}' && text[i] != ']' && !isSpace(text[i]) {
		i++
	}
	return i
}

// skipCheckedString finds the end of a string literal.
func skipCheckedString(text string, at int) int {
	i := at + 1
	// Keys, ids and times are short: a loop is cheaper than a call for them.
	for stop := min(i+16, len(text)); i < stop; i++ {
		if text[i] == '"' {
			return i + 1
		}
		if text[i] == '\\' {
			break
		}
	}
	for i = at + 1; ; {
		next := strings.IndexByte(text[i:], '"')
		if next < 0 {
			return len(text)
		}
		i += next
		// The quote ends the string unless an odd number of backslashes stands
		// before it.
		back := i
		for text[back-1] == '\\' {
			back--
		}
		if (i-back)%2 == 0 {
			return i + 1
		}
		i++
	}
}

// WalkChecked is [WalkObject] for an object whose text was checked already: it
// calls member for each member with the decoded key and the offset of the value,
// and goes on behind the offset that member returns, as [SkipChecked] gives it.
func WalkChecked(text string, at int, member func(key string, at int) (end int)) (end int) {
	i := skipSpace(text, at+1)
	for i < len(text) && text[i] == '"' {
		end := skipCheckedString(text, i)
		key := unquote(text[i:end])
		if i = skipSpace(text, skipSpace(text, end)+1); i >= len(text) { // over the colon
			return len(text)
		}
		i = skipSpace(text, member(key, i))
		if i < len(text) && text[i] == ',' {
			i = skipSpace(text, i+1)
		}
	}
	return min(i+1, len(text))
}
