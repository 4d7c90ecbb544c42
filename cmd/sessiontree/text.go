package main

import (
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/mattn/go-runewidth"

	"github.com/sessiontree/sessiontree/eventlog"
	"github.com/sessiontree/sessiontree/eventlog/js"
)

// cells measures text in terminal cells. It does not ask the locale, whose view
// of ambiguous characters few terminals share, and which would make the output
// differ from one machine to the next.
var cells = &runewidth.Condition{StrictEmojiNeutral: true}

// hostile says whether a character may change what a screen shows around it:
// controls (C0, DEL, C1), marks and overrides of the writing direction, line and
// paragraph separators, invisible tags, the byte order mark.
func hostile(r rune) bool {
	switch {
	case r < 0x20, r >= 0x7F && r <= 0x9F,
		r == 0x061C, r == 0x200E, r == 0x200F,
		r >= 0x2028 && r <= 0x202E,
		r >= 0x2066 && r <= 0x206F,
		r == 0xFEFF,
		r >= 0xFFF9 && r <= 0xFFFB,
		r >= 0xE0000 && r <= 0xE007F:
		return true
	}
	return false
}

// loneSurrogate is the half of a surrogate pair that s begins with, or 0.
func loneSurrogate(s string) rune {
	if len(s) >= 3 && s[0] == 0xED && s[1]&0xE0 == 0xA0 && s[2]&0xC0 == 0x80 {
		return 0xD000 | rune(s[1]&0x3F)<<6 | rune(s[2]&0x3F)
	}
	return 0
}

const hexDigits = "0123456789abcdef"

// safe makes text from a file fit for a terminal, in one line: hostile
// characters become visible (\x1b, \u202e), as do halves of surrogate pairs;
// bytes that are no UTF-8 become U+FFFD. All that is shown goes through it.
func safe(s string) string {
	i := 0
	for i < len(s) && s[i] >= 0x20 && s[i] < 0x7F {
		i++
	}
	if i == len(s) {
		return s
	}
	b := make([]byte, 0, len(s)+16)
	b = append(b, s[:i]...)
	for i < len(s) {
		r, n := utf8.DecodeRuneInString(s[i:])
		switch {
		case r == utf8.RuneError && n == 1:
			if half := loneSurrogate(s[i:]); half != 0 {
				b, n = appendVisible(b, half), 3
			} else {
				b = utf8.AppendRune(b, utf8.RuneError)
			}
		case hostile(r):
			b = appendVisible(b, r)
		default:
			b = append(b, s[i:i+n]...)
		}
		i += n
	}
	return string(b)
}

func appendVisible(b []byte, r rune) []byte {
	switch {
	case r == '\n':
		return append(b, `\n`...)
	case r == '\r':
		return append(b, `\r`...)
	case r == '\t':
		return append(b, `\t`...)
	case r < 0x100:
		return append(b, '\\', 'x', hexDigits[r>>4], hexDigits[r&15])
	case r < 0x10000:
		return append(b, '\\', 'u', hexDigits[r>>12], hexDigits[r>>8&15], hexDigits[r>>4&15], hexDigits[r&15])
	}
	b = append(b, `\u{`...)
	for shift := 16; shift >= 0; shift -= 4 {
		b = append(b, hexDigits[r>>shift&15])
	}
	return append(b, '}')
}

// folded makes one line of a text: each run of white space becomes a blank.
func folded(s string) string { return strings.Join(strings.FieldsFunc(s, unicode.IsSpace), " ") }

// excerptUnits bounds an excerpt before it is cut to the cells that there are,
// so that an entry of 64 MB costs no more than its decoding.
const excerptUnits = 1000

// oneLine is a text's beginning in one safe line.
func oneLine(s string) string { return safe(folded(js.Prefix(s, excerptUnits))) }

// cut shortens a safe text to so many cells.
func cut(s string, width int) string {
	switch {
	case len(s) <= width: // no character is wider than its bytes
		return s
	case width < 1:
		return ""
	}
	return cells.Truncate(s, width, "…")
}

// padded fills a safe text up to so many cells.
func padded(s string, width int) string {
	if n := width - cells.StringWidth(s); n > 0 {
		return s + strings.Repeat(" ", n)
	}
	return s
}

// maxID bounds how much of an id a line shows. Real ids have 8 or 36 characters.
const maxID = 48

func shownID(id string) string { return cut(safe(js.Prefix(idText(id), 4*maxID)), maxID) }

// idText is an id that may be no text in the file, or not be there at all.
func idText(id string) string { return eventlog.At(id).String() }

// lines gives a text's lines, safe, tabs as blanks; wrapped at width, between
// words where possible, if width is not 0.
func lines(s string, width int) []string {
	var out []string
	for line := range strings.SplitSeq(s, "\n") {
		line = safe(strings.ReplaceAll(strings.TrimSuffix(line, "\r"), "\t", "    "))
		if width == 0 {
			out = append(out, line)
			continue
		}
		out = appendWrapped(out, line, width)
	}
	return out
}

func appendWrapped(out []string, line string, width int) []string {
	for len(line) > width {
		at, used, space := 0, 0, -1
		for at < len(line) {
			r, n := utf8.DecodeRuneInString(line[at:])
			w := cells.RuneWidth(r)
			if used+w > width && at > 0 {
				break
			}
			if r == ' ' {
				space = at
			}
			used += w
			at += n
		}
		switch {
		case at == len(line):
			return append(out, line)
		case line[at] == ' ':
			space = at
		}
		// A blank in the indentation is no place to break: the rest would not fit
		// any better.
		if space > 0 && strings.TrimLeft(line[:space], " ") != "" {
			out = append(out, strings.TrimRight(line[:space], " "))
			line = strings.TrimLeft(line[space:], " ")
			if line == "" {
				return out
			}
			continue
		}
		out = append(out, line[:at])
		line = line[at:]
	}
	return append(out, line)
}
