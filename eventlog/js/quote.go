package js

import (
	"strings"
	"unicode/utf8"
)

const hexDigits = "0123456789abcdef"

// AppendQuote writes s as a JSON string, as JSON.stringify does: controls below
// U+0020 as \b \t \n \f \r or \u00xx, lone surrogates as \uxxxx, all else as it
// is ("/", U+2028 and "<" too). s is WTF-8; bytes that are not become U+FFFD.
func AppendQuote(dst []byte, s string) []byte {
	dst = append(dst, '"')
	start := 0
	for i := skipPlain(s, 0); i < len(s); i = skipPlain(s, i) {
		c := s[i]
		if c >= utf8.RuneSelf {
			r, n := decodeWTF8(s[i:])
			switch {
			case r == utf8.RuneError && n == 1:
				dst = append(append(dst, s[start:i]...), "\uFFFD"...)
				start = i + n
			case isSurrogate(r):
				dst = append(dst, s[start:i]...)
				dst = append(dst, '\\', 'u', hexDigits[r>>12&15], hexDigits[r>>8&15], hexDigits[r>>4&15], hexDigits[r&15])
				start = i + n
			}
			i += n
			continue
		}
		dst = append(dst, s[start:i]...)
		switch c {
		case '"', '\\':
			dst = append(dst, '\\', c)
		case '\b':
			dst = append(dst, '\\', 'b')
		case '\t':
			dst = append(dst, '\\', 't')
		case '\n':
			dst = append(dst, '\\', 'n')
		case '\f':
			dst = append(dst, '\\', 'f')
		case '\r':
			dst = append(dst, '\\', 'r')
		default:
			dst = append(dst, '\\', 'u', '0', '0', hexDigits[c>>4], hexDigits[c&15])
		}
		i++
		start = i
	}
	return append(append(dst, s[start:]...), '"')
}

// unquote decodes a checked string literal into WTF-8.
func unquote(literal string) string {
	if len(literal) < 2 {
		return "" // of a damaged text
	}
	body := literal[1 : len(literal)-1]
	if isPlain(body) {
		return body
	}
	if strings.IndexByte(body, '\\') < 0 {
		return DecodeUTF8(body)
	}
	dst := make([]byte, 0, len(body))
	for i := 0; i < len(body); {
		next := strings.IndexByte(body[i:], '\\')
		if next < 0 {
			dst = append(dst, DecodeUTF8(body[i:])...)
			break
		}
		dst = append(dst, DecodeUTF8(body[i:i+next])...)
		i += next
		if i+1 == len(body) || body[i+1] == 'u' && len(body) < i+6 {
			break // of a damaged text
		}
		switch c := body[i+1]; c {
		case 'b':
			dst = append(dst, '\b')
		case 'f':
			dst = append(dst, '\f')
		case 'n':
			dst = append(dst, '\n')
		case 'r':
			dst = append(dst, '\r')
		case 't':
			dst = append(dst, '\t')
		case 'u':
			unit := rune(hexDigit(body[i+2])<<12 | hexDigit(body[i+3])<<8 | hexDigit(body[i+4])<<4 | hexDigit(body[i+5]))
			dst = appendUnit(dst, unit)
			i += 4
		default:
			dst = append(dst, c)
		}
		i += 2
	}
	return string(dst)
}

// isPlain says whether a short text is ASCII without escapes: most keys, ids and
// times are, and this is cheaper than two general scans.
func isPlain(body string) bool {
	if len(body) > 40 {
		return false
	}
	for i := range len(body) {
		if c := body[i]; c == '\\' || c >= utf8.RuneSelf {
			return false
		}
	}
	return true
}

// appendUnit writes one UTF-16 code unit, joining it with a high surrogate that
// dst ends with.
func appendUnit(dst []byte, unit rune) []byte {
	if unit >= 0xDC00 && unit <= 0xDFFF && len(dst) >= 3 {
		if high, n := decodeWTF8(string(dst[len(dst)-3:])); n == 3 && high >= 0xD800 && high <= 0xDBFF {
			return utf8.AppendRune(dst[:len(dst)-3], (high-0xD800)<<10+(unit-0xDC00)+0x10000)
		}
	}
	if isSurrogate(unit) {
		return append(dst, 0xE0|byte(unit>>12), 0x80|byte(unit>>6&0x3F), 0x80|byte(unit&0x3F))
	}
	return utf8.AppendRune(dst, unit)
}

func isSurrogate(r rune) bool { return r >= 0xD800 && r <= 0xDFFF }

// decodeWTF8 is utf8.DecodeRuneInString that also takes a lone surrogate.
func decodeWTF8(s string) (rune, int) {
	r, n := utf8.DecodeRuneInString(s)
	if r == utf8.RuneError && n == 1 && len(s) >= 3 && s[0] == 0xED && s[1]&0xE0 == 0xA0 && s[2]&0xC0 == 0x80 {
		return 0xD000 | rune(s[1]&0x3F)<<6 | rune(s[2]&0x3F), 3
	}
	return r, n
}
