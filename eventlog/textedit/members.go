package textedit

import (
	"strings"

	"github.com/sessiontree/sessiontree/eventlog/js"
)

// Member is where a member of an object stands in its text.
type Member struct {
	Start, End int // of the value
	from       int // where what stands before it ended: the member with its comma, or the brace
	first      bool
}

// Find looks for the last member with a key in the object at text[at], which was
// checked before.
func Find(text string, at int, key string) (m Member, ok bool) {
	before, n := at+1, 0
	js.WalkChecked(text, at, func(k string, start int) int {
		end := js.SkipChecked(text, start)
		if k == key {
			m, ok = Member{Start: start, End: end, from: before, first: n == 0}, true
		}
		before = end
		n++
		return end
	})
	return m, ok
}

// Remove is the change that takes a member out of an object, with one comma.
func (m Member) Remove(text string) Edit {
	end := m.End
	if m.first {
		rest := strings.TrimLeft(text[end:], " \t\r\n")
		if strings.HasPrefix(rest, ",") {
			end = len(text) - len(rest) + 1
		}
	}
	return Edit{At: m.from, Delete: end - m.from}
}

// Set is the change that gives a member of an object another value.
func (m Member) Set(v js.Value) Edit {
	return Edit{At: m.Start, Delete: m.End - m.Start, Insert: v.JSON()}
}

// Add is the change that puts members last in an object, which ends text.
func Add(text string, members ...js.Member) Edit {
	end := len(text) - 1
	inside := strings.TrimRight(text[:end], " \t\r\n")
	made := js.Fields(members...).JSON()
	insert := made[1 : len(made)-1]
	if !strings.HasSuffix(inside, "{") {
		insert = "," + insert
	}
	return Edit{At: end, Insert: insert}
}
