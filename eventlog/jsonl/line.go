package jsonl

import (
	"strings"

	"github.com/sessiontree/sessiontree/eventlog/js"
)

// appendOneLine writes JSON text without newlines. A newline in JSON text can
// only be white space between values.
func appendOneLine(dst []byte, text string) []byte {
	if strings.IndexByte(text, '\n') < 0 {
		return append(dst, text...)
	}
	return js.AppendCanonical(dst, js.Trusted(text))
}
