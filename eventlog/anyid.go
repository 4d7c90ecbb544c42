package eventlog

import "github.com/sessiontree/sessiontree/eventlog/js"

// The coding agent checks nothing of what it reads: an id may be a number, or
// not be there, and entries are found by it as a JavaScript Map finds them. Such
// an id is held as a byte that no text begins with, and its JSON.
const noText = "\xff"

// keyOf is the key under which a Map holds v, as an id.
func keyOf(v js.Value) string {
	if s, ok := v.Str(); ok {
		return s
	}
	if v.Kind() == js.Number {
		return noText + js.Canonical(v).JSON()
	}
	return noText + v.JSON()
}

// RefOf refers to the entry whose id is the value v, whatever it is: see
// [Dialect.ParseEntry].
func RefOf(v js.Value) Ref { return parentOf(v) }

// parentOf is the parent that a parentId names. Lists and objects name nothing:
// each is only itself.
func parentOf(v js.Value) Ref {
	switch v.Kind() {
	case js.Null:
		return None()
	case js.Array, js.Object:
		return At(noText + keyOf(v))
	}
	return At(keyOf(v))
}

// keyValue is the value that keyOf made a key of.
func keyValue(key string) js.Value {
	if key == "" || key[0] != noText[0] {
		return js.Text(key)
	}
	return js.Trusted(key[1:])
}

// idle says whether walking up does not look for the id: JavaScript takes it for
// false.
func idle(key string) bool {
	return key == "" || key[0] == noText[0] && !keyValue(key).Truthy()
}

// anyEntry is what the coding agent takes for an entry: any value.
func anyEntry(v js.Value) Entry {
	text := v.JSON()
	if v.Kind() != js.Object {
		return Entry{text: text, id: noText, parent: At(noText)}
	}
	e := TrustedEntry(text)
	if e.kind == kindLeaf { // an entry like any other: it moves nothing
		e.kind = kindOther
	}
	if e.id == "" {
		e.id = keyOf(v.Get("id"))
	}
	if e.parent.id == "" {
		e.parent = parentOf(v.Get("parentId"))
	}
	return e
}

const typeSession = "session"

// parse takes what JavaScript takes for true, and is no header.
func (codingAgent) parse(text string) (Entry, error) {
	e, err := parseEntry(text)
	if err == nil && e.kind != kindOther && e.kind != kindLeaf {
		return e, nil
	}
	v, err := js.Parse(text)
	if err != nil {
		return Entry{}, &Error{InvalidEntry, "is not valid JSON", err}
	}
	if !v.Truthy() {
		return Entry{}, Errorf(InvalidEntry, "holds nothing")
	}
	if v.Get("type").Is(typeSession) {
		return Entry{}, Errorf(InvalidEntry, "is a further header")
	}
	return anyEntry(v), nil
}
