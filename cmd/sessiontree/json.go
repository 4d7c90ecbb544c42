package main

import (
	"unicode/utf8"

	"github.com/sessiontree/sessiontree/eventlog"
	"github.com/sessiontree/sessiontree/eventlog/js"
)

func field(key string, v js.Value) js.Member { return js.Member{Key: key, Value: v} }

func number(n int) js.Value { return js.Num(float64(n)) }

// optional is a text, or null for none.
func optional(s string) js.Value {
	if s == "" {
		return js.NullValue()
	}
	return js.Text(s)
}

// orNull is v, or null where there is none: a key that a shape names is always
// there.
func orNull(v js.Value) js.Value {
	if !v.Exists() {
		return js.NullValue()
	}
	return v
}

func messageList(messages []eventlog.Message) js.Value {
	values := make([]js.Value, len(messages))
	for i, m := range messages {
		values[i] = m.Value
	}
	return js.List(values...)
}

func entryList(entries []eventlog.Entry) js.Value {
	values := make([]js.Value, len(entries))
	for i, e := range entries {
		values[i] = e.Value()
	}
	return js.List(values...)
}

// appendSafeJSON writes checked JSON text in one line that is safe on a
// terminal: blanks between values go, hostile characters inside texts become \u
// escapes, bytes that are no UTF-8 become U+FFFD, as every reader of the file
// takes them. No value changes.
func appendSafeJSON(dst []byte, text string) []byte {
	text = js.DecodeUTF8(text)
	inText := false
	start := 0 // of what is not copied yet
	for i := 0; i < len(text); {
		c := text[i]
		switch {
		case !inText && (c == ' ' || c == '\t' || c == '\r' || c == '\n'):
			dst = append(dst, text[start:i]...)
			start = i + 1
		case c == '"':
			inText = !inText
		case c == '\\':
			i++ // the escaped character is no end of the text
		case c == 0x7F || c >= utf8.RuneSelf:
			r, n := utf8.DecodeRuneInString(text[i:])
			if hostile(r) {
				dst = appendEscape(append(dst, text[start:i]...), r)
				start = i + n
			}
			i += n
			continue
		}
		i++
	}
	return append(dst, text[start:]...)
}

func appendEscape(dst []byte, r rune) []byte {
	if r >= 0x10000 {
		r -= 0x10000
		dst = appendEscape(dst, 0xD800+r>>10)
		r = 0xDC00 + r&0x3FF
	}
	return append(dst, '\\', 'u', hexDigits[r>>12], hexDigits[r>>8&15], hexDigits[r>>4&15], hexDigits[r&15])
}

// answerJSON writes one JSON value as the command's answer.
func (o *output) answerJSON(v js.Value) {
	o.Write(appendSafeJSON(nil, v.JSON()))
	o.WriteByte('\n')
}
