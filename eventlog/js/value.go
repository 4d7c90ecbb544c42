package js

import (
	"iter"
	"strconv"
	"strings"
)

// Kind is what a [Value] is.
type Kind uint8

// The kinds of JSON values. A Value that is not there at all is Absent, which
// JavaScript calls undefined.
const (
	Absent Kind = iota
	Null
	Bool
	Number
	String
	Array
	Object
)

func (k Kind) String() string {
	return [...]string{"nothing", "null", "a boolean", "a number", "a text", "a list", "an object"}[k]
}

// Value is one JSON value, held as its text. The zero Value is [Absent]. Values
// are immutable and may be shared between goroutines.
type Value struct{ text string }

// Parse checks that text is one JSON value, as JSON.parse does, and returns it
// with its text as it is, less the white space around it. Errors are
// [*SyntaxError].
func Parse(text string) (Value, error) {
	start := skipSpace(text, 0)
	end, err := Skip(text, start)
	if err != nil {
		return Value{}, err
	}
	if rest := skipSpace(text, end); rest != len(text) {
		return Value{}, syntax(rest, "more text after the value")
	}
	return Value{text[start:end]}, nil
}

// Trusted is the value of a text that [Skip] or [Parse] has checked already.
func Trusted(text string) Value { return Value{text} }

// Text is the value of a string; s is WTF-8.
func Text(s string) Value { return Value{string(AppendQuote(make([]byte, 0, len(s)+2), s))} }

// Num is the value of a number; NaN and the infinities become null, as
// JSON.stringify makes them.
func Num(f float64) Value { return Value{string(AppendNumber(nil, f))} }

// Boolean is the value true or false.
func Boolean(b bool) Value { return Value{strconv.FormatBool(b)} }

// NullValue is the value null.
func NullValue() Value { return Value{"null"} }

// List is the array of the values; an absent one becomes null, as
// JSON.stringify makes it.
func List(values ...Value) Value {
	b := []byte{'['}
	for i, v := range values {
		if i > 0 {
			b = append(b, ',')
		}
		if v.text == "" {
			v = NullValue()
		}
		b = append(b, v.text...)
	}
	return Value{string(append(b, ']'))}
}

// Texts is the array of the strings.
func Texts(texts ...string) Value {
	b := []byte{'['}
	for i, s := range texts {
		if i > 0 {
			b = append(b, ',')
		}
		b = AppendQuote(b, s)
	}
	return Value{string(append(b, ']'))}
}

// Member is a key with its value.
type Member struct {
	Key   string
	Value Value
}

// Fields is the object of the members in the order given; absent values are
// left out, as JSON.stringify leaves them out.
func Fields(members ...Member) Value {
	return Value{string(AppendFields([]byte{'{'}, members...))}
}

// AppendFields writes members behind what dst ends with, an opened object, and
// closes it. Absent values are left out.
func AppendFields(dst []byte, members ...Member) []byte {
	for _, m := range members {
		dst = AppendField(dst, m)
	}
	return append(dst, '}')
}

// AppendField writes a member behind what dst ends with: an opened object, or a
// member of it. An absent value is left out.
func AppendField(dst []byte, m Member) []byte {
	if m.Value.text == "" {
		return dst
	}
	if dst[len(dst)-1] != '{' {
		dst = append(dst, ',')
	}
	dst = AppendQuote(dst, m.Key)
	dst = append(dst, ':')
	return append(dst, m.Value.text...)
}

// JSON is the text of the value; empty if it is absent.
func (v Value) JSON() string { return v.text }

// MarshalJSON gives the text as it is (null if absent), for encoding/json.
func (v Value) MarshalJSON() ([]byte, error) {
	if v.text == "" {
		return []byte("null"), nil
	}
	return []byte(v.text), nil
}

// Kind says what the value is.
func (v Value) Kind() Kind {
	if v.text == "" {
		return Absent
	}
	switch v.text[0] {
	case 'n':
		return Null
	case 't', 'f':
		return Bool
	case '"':
		return String
	case '[':
		return Array
	case '{':
		return Object
	}
	return Number
}

// Exists says whether there is a value, null included.
func (v Value) Exists() bool { return v.text != "" }

// Nullish says whether the value is absent or null, as JavaScript's ?? and ?. ask.
func (v Value) Nullish() bool { return v.text == "" || v.text[0] == 'n' }

// Truthy says whether JavaScript takes the value for true: all but absent,
// null, false, 0, -0 and the empty text. Empty lists and objects are true.
func (v Value) Truthy() bool {
	switch v.Kind() {
	case Absent, Null:
		return false
	case Bool:
		return v.text[0] == 't'
	case String:
		return v.text != `""`
	case Number:
		f, _ := v.Float()
		return f != 0
	}
	return true
}

// Str is the decoded text, in WTF-8, and whether the value is one. It allocates
// only if the text has escapes or is not UTF-8.
func (v Value) Str() (string, bool) {
	if v.text == "" || v.text[0] != '"' {
		return "", false
	}
	return unquote(v.text), true
}

// Is says whether the value is the text s.
func (v Value) Is(s string) bool {
	if len(v.text) == len(s)+2 && v.text[0] == '"' && v.text[1:len(v.text)-1] == s {
		return strings.IndexByte(s, '\\') < 0
	}
	t, ok := v.Str()
	return ok && t == s
}

// Float is the number, and whether the value is one. What overflows is an
// infinity, as JSON.parse gives it.
func (v Value) Float() (float64, bool) {
	if v.Kind() != Number {
		return 0, false
	}
	return ParseNumber(v.text)
}

// Get is the member of an object; of a key that stands twice, the last. It is
// absent when the value is no object or has no such member.
func (v Value) Get(key string) Value {
	var found Value
	if v.Kind() == Object {
		WalkChecked(v.text, 0, func(k string, at int) int {
			end := SkipChecked(v.text, at)
			if k == key {
				found = Value{v.text[at:end]}
			}
			return end
		})
	}
	return found
}

// Members are an object's members as JavaScript lists them: integer-like keys
// first, in rising order, then the rest in the order in which each first
// stands; of a key that stands twice, the last value.
func (v Value) Members() []Member {
	if v.Kind() != Object {
		return nil
	}
	var all []Member
	WalkChecked(v.text, 0, func(key string, at int) int {
		end := SkipChecked(v.text, at)
		all = append(all, Member{key, Value{v.text[at:end]}})
		return end
	})
	return ownOrder(all, func(m Member) string { return m.Key })
}

// Elements gives an array's elements.
func (v Value) Elements() iter.Seq[Value] {
	return func(yield func(Value) bool) {
		if v.Kind() != Array {
			return
		}
		i := skipSpace(v.text, 1)
		for i < len(v.text) && v.text[i] != ']' {
			end := SkipChecked(v.text, i)
			if !yield(Value{v.text[i:end]}) {
				return
			}
			i = skipSpace(v.text, end)
			if i < len(v.text) && v.text[i] == ',' {
				i = skipSpace(v.text, i+1)
			}
		}
	}
}

// Spread is what [...v] gives in JavaScript: the elements of a list, the
// characters of a text (a surrogate pair is one); ok is false for all else,
// where JavaScript throws a TypeError.
func (v Value) Spread() (elements []Value, ok bool) {
	switch v.Kind() {
	case Array:
		for e := range v.Elements() {
			elements = append(elements, e)
		}
		return elements, true
	case String:
		s, _ := v.Str()
		for len(s) > 0 {
			_, n := decodeWTF8(s)
			elements = append(elements, Text(s[:n]))
			s = s[n:]
		}
		return elements, true
	}
	return nil, false
}

// WithMember is an object with a member set, as obj[key] = to sets it: in its
// place, or behind all others. All else of the text stays as it is; an absent value
// takes the member away.
func WithMember(v Value, key string, to Value) Value {
	if !to.Exists() {
		return withoutMember(v, key)
	}
	start, end := -1, -1
	WalkChecked(v.text, 0, func(k string, at int) int {
		stop := SkipChecked(v.text, at)
		if k == key {
			start, end = at, stop
		}
		return stop
	})
	switch {
	case start >= 0 && Diff(Trusted(v.text[start:end]), to) == nil:
		return v
	case start >= 0:
		return Trusted(v.text[:start] + to.text + v.text[end:])
	}
	body := strings.TrimRight(v.text[:len(v.text)-1], " \t\r\n")
	if body != "{" {
		body += ","
	}
	return Trusted(body + Text(key).text + ":" + to.text + "}")
}

func withoutMember(v Value, key string) Value {
	members := v.Members()
	for i, m := range members {
		if m.Key == key {
			return Fields(append(members[:i:i], members[i+1:]...)...)
		}
	}
	return v
}
