package js

import (
	"strings"
	"unicode/utf8"
)

const (
	highSurrogateMin = 0xD800
	lowSurrogateMin  = 0xDC00
	supplementaryMin = 0x10000
	replacement      = "\uFFFD"
)

// Trim returns s without the white space at its ends: the set of
// String.prototype.trim (ECMA-262 WhiteSpace and LineTerminator), which has
// U+FEFF but not U+0085, U+180E or U+200B, as strings.TrimSpace would differ.
func Trim(s string) string {
	s = trimStart(s)
	for s != "" {
		n := trailingSpace(s)
		if n == 0 {
			return s
		}
		s = s[:len(s)-n]
	}
	return s
}

// IsBlank reports whether Trim(s) is empty.
func IsBlank(s string) bool { return trimStart(s) == "" }

func trimStart(s string) string {
	for s != "" {
		n := leadingSpace(s)
		if n == 0 {
			return s
		}
		s = s[n:]
	}
	return s
}

// isASCIISpace reports a space, or U+0009 to U+000D.
func isASCIISpace(b byte) bool { return b == ' ' || b-'\t' <= '\r'-'\t' }

// leadingSpace returns the width of the white space character that the
// non-empty s begins with, or 0.
func leadingSpace(s string) int {
	switch b := s[0]; {
	case isASCIISpace(b):
		return 1
	case b < utf8.RuneSelf:
		return 0
	case len(s) >= 2 && isWideSpace(s[:2]):
		return 2
	case len(s) >= 3 && isWideSpace(s[:3]):
		return 3
	}
	return 0
}

// trailingSpace returns the width of the white space character that the
// non-empty s ends with, or 0.
func trailingSpace(s string) int {
	n := len(s)
	switch b := s[n-1]; {
	case isASCIISpace(b):
		return 1
	case b < utf8.RuneSelf:
		return 0
	case n >= 2 && isWideSpace(s[n-2:]):
		return 2
	case n >= 3 && isWideSpace(s[n-3:]):
		return 3
	}
	return 0
}

// isWideSpace reports whether c is the UTF-8 of one white space character
// beyond ASCII. Each begins with a lead byte, so a match at the end of a
// string cannot start inside another character.
func isWideSpace(c string) bool {
	switch c {
	case "\u00A0", "\u1680", "\u2028", "\u2029", "\u202F", "\u205F", "\u3000", "\uFEFF":
		return true
	}
	return len(c) == 3 && c >= "\u2000" && c <= "\u200A"
}

// surrogateAt returns the surrogate that s begins with, or 0.
func surrogateAt(s string) rune {
	if len(s) < 3 || s[0] != 0xED {
		return 0
	}
	if r, _ := decodeWTF8(s); isSurrogate(r) {
		return r
	}
	return 0
}

func startsLow(s string) bool { return surrogateAt(s) >= lowSurrogateMin }

func isContinuation(b byte) bool { return b&0xC0 == 0x80 }

// Len returns s.length: the number of UTF-16 code units of the WTF-8 s. A byte
// that is not valid WTF-8 counts as one.
func Len(s string) int {
	units := 0
	for i := 0; i < len(s); units++ {
		if s[i] < utf8.RuneSelf {
			i++
			continue
		}
		_, width := decodeWTF8(s[i:])
		if width == 4 {
			units++
		}
		i += width
	}
	return units
}

// Prefix returns s.slice(0, units), counted in UTF-16 code units. A cut through
// a pair leaves its high surrogate alone at the end, as JavaScript does. Units
// below zero count from the end of s.
func Prefix(s string, units int) string {
	if units < 0 {
		units += Len(s)
	}
	if units <= 0 {
		return ""
	}
	if units >= len(s) { // no character has more units than bytes
		return s
	}
	i := 0
	for ; units > 0 && i < len(s); units-- {
		if s[i] < utf8.RuneSelf {
			i++
			continue
		}
		r, width := decodeWTF8(s[i:])
		if width == 4 {
			if units == 1 {
				high := highSurrogateMin + (r-supplementaryMin)>>10
				return string(appendUnit([]byte(s[:i]), high))
			}
			units--
		}
		i += width
	}
	return s[:i]
}

// Compare returns -1, 0 or 1 as a is before, equal to or after b by UTF-16 code
// units: the order of JavaScript's < and of Array.prototype.sort. It is not the
// order of the bytes: U+FFFF sorts after U+10000. A byte that is not valid
// WTF-8 sorts after every code unit.
func Compare(a, b string) int {
	i := 0
	for i < len(a) && i < len(b) && a[i] == b[i] {
		i++
	}
	if i == len(a) && i == len(b) {
		return 0
	}
	// Back to where a character begins in both.
	for i > 0 && (i < len(a) && isContinuation(a[i]) || i < len(b) && isContinuation(b[i])) {
		i--
	}
	x, y := codeUnits{rest: a[i:]}, codeUnits{rest: b[i:]}
	for {
		u, v := x.next(), y.next()
		switch {
		case u < v:
			return -1
		case u > v:
			return 1
		case u < 0:
			return 0
		}
	}
}

// codeUnits reads the UTF-16 code units of a WTF-8 string one after another.
type codeUnits struct {
	rest string
	low  rune // the second half of a pair whose first was just read
}

// next returns -1 after the last unit, and a value past every code unit for a
// byte that is none.
func (c *codeUnits) next() rune {
	if low := c.low; low != 0 {
		c.low = 0
		return low
	}
	if c.rest == "" {
		return -1
	}
	r, width := decodeWTF8(c.rest)
	if r == utf8.RuneError && width == 1 {
		r = supplementaryMin + rune(c.rest[0])
	} else if r >= supplementaryMin {
		c.low = lowSurrogateMin + r&0x3FF
		r = highSurrogateMin + (r-supplementaryMin)>>10
	}
	c.rest = c.rest[width:]
	return r
}

// Concat returns the parts one after another. As in JavaScript, whose strings
// are UTF-16, a high surrogate that ends one part and a low surrogate that
// begins the next become one character.
func Concat(parts ...string) string { return Join(parts, "") }

// Join returns parts.join(sep). Surrogates that meet pair up as in Concat.
func Join(parts []string, sep string) string {
	// A pair can form only where a later piece begins with a low surrogate.
	pairs := startsLow(sep)
	size := len(sep) * max(0, len(parts)-1)
	for i, part := range parts {
		pairs = pairs || i > 0 && startsLow(part)
		size += len(part)
	}
	if !pairs {
		return strings.Join(parts, sep)
	}
	joined := make([]byte, 0, size)
	for i, part := range parts {
		if i > 0 {
			joined = appendPairing(joined, sep)
		}
		joined = appendPairing(joined, part)
	}
	return string(joined)
}

// appendPairing appends s, making one character of a high surrogate that ends
// dst and a low one that begins s.
func appendPairing(dst []byte, s string) []byte {
	if low := surrogateAt(s); low >= lowSurrogateMin {
		dst, s = appendUnit(dst, low), s[3:]
	}
	return append(dst, s...)
}

// ToWellFormed returns s with U+FFFD for each lone surrogate, as
// String.prototype.toWellFormed does, and as Node does to text that it writes
// as UTF-8.
func ToWellFormed(s string) string {
	from := nextSurrogate(s, 0)
	if from == len(s) {
		return s
	}
	out := []byte(s) // U+FFFD has the width of a surrogate
	for ; from < len(s); from = nextSurrogate(s, from+3) {
		copy(out[from:], replacement)
	}
	return string(out)
}

// nextSurrogate returns where the first surrogate of s at or after from
// begins, or len(s).
func nextSurrogate(s string, from int) int {
	for {
		i := strings.IndexByte(s[from:], 0xED)
		if i < 0 {
			return len(s)
		}
		from += i
		if surrogateAt(s[from:]) != 0 {
			return from
		}
		from++
	}
}

// DecodeUTF8 returns the text of the bytes b as Node's "utf8" decoder does
// (WHATWG Encoding, "UTF-8 decoder"): each maximal part of a sequence that
// could have become a character is one U+FFFD, so an encoded surrogate is
// three. A byte order mark stays.
func DecodeUTF8(b string) string {
	if utf8.ValidString(b) {
		return b
	}
	var out strings.Builder
	out.Grow(len(b) + 2*len(replacement))
	start := 0 // of the valid run not yet copied
	for i := 0; i < len(b); {
		if b[i] < utf8.RuneSelf {
			i++
			continue
		}
		if r, width := utf8.DecodeRuneInString(b[i:]); r != utf8.RuneError || width != 1 {
			i += width
			continue
		}
		out.WriteString(b[start:i])
		out.WriteString(replacement)
		i += illFormedWidth(b[i:])
		start = i
	}
	out.WriteString(b[start:])
	return out.String()
}

// illFormedWidth returns how many bytes at the start of s, which begins no
// character, one U+FFFD stands for: the lead byte and those of its
// continuation bytes that are there and allowed.
func illFormedWidth(s string) int {
	lead, need := s[0], 0
	lower, upper := byte(0x80), byte(0xBF)
	switch {
	case lead >= 0xC2 && lead <= 0xDF:
		need = 1
	case lead >= 0xE0 && lead <= 0xEF:
		need = 2
	case lead >= 0xF0 && lead <= 0xF4:
		need = 3
	}
	// The second byte's range rules out overlong forms, surrogates, and what is
	// past U+10FFFF.
	switch lead {
	case 0xE0:
		lower = 0xA0
	case 0xED:
		upper = 0x9F
	case 0xF0:
		lower = 0x90
	case 0xF4:
		upper = 0x8F
	}
	width := 1
	for width <= need && width < len(s) && s[width] >= lower && s[width] <= upper {
		width++
		lower, upper = 0x80, 0xBF
	}
	return width
}
