package js

import (
	"fmt"
	"math"
)

// Difference is the first place where two values differ, as JavaScript sees
// them.
type Difference struct {
	Path string // such as .messages[2].content; empty for the whole
	Want Value
	Got  Value
}

func (d Difference) String() string {
	return fmt.Sprintf("%s: want %s, got %s", d.Path, shown(d.Want), shown(d.Got))
}

func shown(v Value) string {
	if !v.Exists() {
		return "nothing"
	}
	if len(v.text) > 300 {
		return v.text[:300] + "…"
	}
	return v.text
}

// Diff compares two values as JavaScript would after JSON.parse: numbers as
// doubles, texts by their UTF-16 code units (lone surrogates count), object keys
// as sets, an absent member apart from null. It returns nil when they are equal.
func Diff(want, got Value) *Difference {
	type pair struct {
		path      string
		want, got Value
	}
	stack := []pair{{"", want, got}}
	for len(stack) > 0 {
		p := stack[len(stack)-1]
		stack = stack[:len(stack)-1]
		if p.want.text == p.got.text {
			continue
		}
		different := &Difference{p.path, p.want, p.got}
		kind := p.want.Kind()
		if kind != p.got.Kind() {
			return different
		}
		switch kind {
		case Bool:
			return different
		case Number:
			a, _ := p.want.Float()
			b, _ := p.got.Float()
			if a != b && !(math.IsNaN(a) && math.IsNaN(b)) {
				return different
			}
		case String:
			a, _ := p.want.Str()
			if b, _ := p.got.Str(); a != b {
				return different
			}
		case Array:
			var a, b []Value
			for e := range p.want.Elements() {
				a = append(a, e)
			}
			for e := range p.got.Elements() {
				b = append(b, e)
			}
			if len(a) != len(b) {
				return &Difference{p.path + ".length", Num(float64(len(a))), Num(float64(len(b)))}
			}
			for i := len(a) - 1; i >= 0; i-- {
				stack = append(stack, pair{fmt.Sprintf("%s[%d]", p.path, i), a[i], b[i]})
			}
		case Object:
			a, b := p.want.Members(), p.got.Members()
			other := make(map[string]Value, len(b))
			for _, m := range b {
				other[m.Key] = m.Value
			}
			for i := len(a) - 1; i >= 0; i-- {
				stack = append(stack, pair{p.path + "." + a[i].Key, a[i].Value, other[a[i].Key]})
				delete(other, a[i].Key)
			}
			for k, v := range other {
				return &Difference{p.path + "." + k, Value{}, v}
			}
		}
	}
	return nil
}
