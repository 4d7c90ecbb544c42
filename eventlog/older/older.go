// Package older brings session files of versions 1 and 2 to version 3, as Pi's coding
// agent 1.6 does it (SessionManager, migrateToCurrentVersion), but for the new ids,
// which Pi draws at random: here they follow from the text, so that a file read
// twice, or two files that begin alike, have the same.
//
//   - Version 1: no ids; the entries are a chain. A compaction's firstKeptEntryIndex
//     counts the records of the file, the header being 0.
//   - Version 2: the role hookMessage is what is custom today.
//
// Only a whole line counts as a record. An entry that was found inside a damaged
// line, which Pi skips, is a part of the chain and has no index.
package older

import (
	"github.com/sessiontree/sessiontree/eventlog"
	"github.com/sessiontree/sessiontree/eventlog/js"
	"github.com/sessiontree/sessiontree/eventlog/textedit"
)

// Version is a header's version as JavaScript compares it with a number: none is 1,
// and what is no number is NaN, which is neither below 3 nor above.
func Version(header js.Value) float64 {
	v := header.Get("version")
	if v.Nullish() {
		return 1
	}
	return js.ToNumber(v)
}

// Header is the text of an older version's header with version 3 in it, and what
// leads back.
func Header(text string) (string, textedit.Edits) {
	three := js.Member{Key: "version", Value: js.Num(3)}
	change := textedit.Add(text, three)
	if m, ok := textedit.Find(text, 0, three.Key); ok {
		change = m.Set(three.Value)
	}
	return textedit.Rewrite(text, textedit.Edits{change})
}

// Roles is an entry of version 2, which a dialect took, with today's role, and what
// leads back to its text: nil for nothing.
func Roles(d eventlog.Dialect, e eventlog.Entry) (eventlog.Entry, textedit.Edits) {
	if !isHook(e.Value()) {
		return e, nil
	}
	made, back := textedit.Rewrite(e.JSON(), textedit.Edits{roleToday(e.JSON())})
	return d.TrustedEntry(made), back
}

func isHook(v js.Value) bool {
	return v.Get("type").Is(string(eventlog.TypeMessage)) && v.Get("message").Get("role").Is("hookMessage")
}

// roleToday is the change that makes custom of the role hookMessage.
func roleToday(text string) textedit.Edit {
	message, _ := textedit.Find(text, 0, "message")
	role, _ := textedit.Find(text, message.Start, "role")
	return role.Set(js.Text(eventlog.RoleCustom))
}
