// Package textedit changes JSON texts in places, and gives what takes the changes
// back: so a text that was brought to today's format can be written again as it was.
package textedit

import (
	"cmp"
	"encoding/binary"
	"errors"
	"slices"
	"strings"
)

// Edit replaces Delete bytes of a text, from At on, by Insert.
type Edit struct {
	At, Delete int
	Insert     string
}

// Edits lead from one text to another. They are in the order of At and do not overlap; none means that the texts are equal.
type Edits []Edit

// Apply gives the other text.
func (e Edits) Apply(text string) string {
	if len(e) == 0 {
		return text
	}
	var b strings.Builder
	at := 0
	for _, edit := range e {
		b.WriteString(text[at:edit.At])
		b.WriteString(edit.Insert)
		at = edit.At + edit.Delete
	}
	b.WriteString(text[at:])
	return b.String()
}

// Encode writes the edits as bytes: for each its place, counted from the end of
// the one before, how much it deletes, and what it inserts with its length.
func (e Edits) Encode() []byte {
	var b []byte
	at := 0
	for _, edit := range e {
		b = binary.AppendUvarint(b, uint64(edit.At-at))
		b = binary.AppendUvarint(b, uint64(edit.Delete))
		b = binary.AppendUvarint(b, uint64(len(edit.Insert)))
		b = append(b, edit.Insert...)
		at = edit.At + edit.Delete
	}
	return b
}

var errEdits = errors.New("the edits of a text cannot be read")

// Decode reads what Encode wrote, for a text of so many bytes.
func Decode(b []byte, size int) (Edits, error) {
	var e Edits
	at := 0
	for len(b) > 0 {
		var n [3]int
		for i := range n {
			v, used := binary.Uvarint(b)
			if used <= 0 || v > uint64(max(size, len(b))) {
				return nil, errEdits
			}
			n[i], b = int(v), b[used:]
		}
		edit := Edit{At: at + n[0], Delete: n[1]}
		if n[2] > len(b) || edit.At+edit.Delete > size {
			return nil, errEdits
		}
		edit.Insert, b = string(b[:n[2]]), b[n[2]:]
		at = edit.At + edit.Delete
		e = append(e, edit)
	}
	return e, nil
}

// Rewrite makes changes, each of a place in raw, and gives the edits that take
// them back.
func Rewrite(raw string, changes Edits) (text string, back Edits) {
	if len(changes) == 0 {
		return raw, nil
	}
	var b strings.Builder
	at := 0
	for _, c := range changes {
		b.WriteString(raw[at:c.At])
		back = append(back, Edit{At: b.Len(), Delete: len(c.Insert), Insert: raw[c.At : c.At+c.Delete]})
		b.WriteString(c.Insert)
		at = c.At + c.Delete
	}
	b.WriteString(raw[at:])
	return b.String(), back
}

// Ordered sorts changes by their place.
func Ordered(changes Edits) Edits {
	slices.SortStableFunc(changes, func(a, b Edit) int { return cmp.Compare(a.At, b.At) })
	return changes
}
