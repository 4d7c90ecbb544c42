package sessionfile

import "github.com/sessiontree/sessiontree/eventlog/textedit"

// Edits lead from an entry's text to what stands in its place in the file; none
// means that the texts are equal.
type Edits = textedit.Edits

// DecodeEdits reads what [Edits.Encode] wrote, for a text of so many bytes.
func DecodeEdits(b []byte, size int) (Edits, error) { return textedit.Decode(b, size) }
