package sqlitestore

import (
	"strings"

	"github.com/sessiontree/sessiontree/eventlog/js"
)

// redacted is what stands in the place of a text that was purged.
const redacted = "[redacted]"

// redactJSON takes a text out of all strings of a JSON text, keys too, however they
// are escaped there; the rest stays as it is, byte for byte. It needs no recursion.
func redactJSON(text, secret string) (string, bool) {
	var out strings.Builder
	copied := 0
	for i := 0; i < len(text); {
		if text[i] != '"' {
			i++
			continue
		}
		end := js.SkipChecked(text, i)
		if s, _ := js.Trusted(text[i:end]).Str(); strings.Contains(s, secret) {
			out.WriteString(text[copied:i])
			out.WriteString(js.Text(strings.ReplaceAll(s, secret, redacted)).JSON())
			copied = end
		}
		i = end
	}
	if copied == 0 {
		return text, false
	}
	out.WriteString(text[copied:])
	return out.String(), true
}

// redactBytes takes a text out of bytes of a file, as it is and as JSON writes it,
// and keeps their number.
func redactBytes(b []byte, secret string) ([]byte, bool) {
	literal := js.Text(secret).JSON()
	text, found := string(b), false
	for _, s := range []string{secret, literal[1 : len(literal)-1]} {
		if strings.Contains(text, s) {
			text, found = strings.ReplaceAll(text, s, strings.Repeat("*", len(s))), true
		}
	}
	return []byte(text), found
}
