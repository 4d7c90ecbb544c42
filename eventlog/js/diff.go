package js

import (
	"fmt"
	"slices"
	"strings"
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
// Values of any depth are compared in time proportional to their size.
func Diff(want, got Value) *Difference {
	if want.text == got.text {
		return nil
	}
	if want.text == "" || got.text == "" {
		return &Difference{"", want, got}
	}
	d := diff{want: side{want.text, parseTape(want.text)}, got: side{got.text, parseTape(got.text)}}
	d.pairs = append(d.pairs, pair{up: none})
	stack := []int32{0}
	for len(stack) > 0 {
		at := stack[len(stack)-1]
		stack = stack[:len(stack)-1]
		p := d.pairs[at]
		if p.want == none || p.got == none {
			return d.differ(at)
		}
		kind := d.want.tape[p.want].kind
		if kind != d.got.tape[p.got].kind {
			return d.differ(at)
		}
		switch kind {
		case Bool, Number, String:
			if !sameScalar(kind, d.want.value(p.want).text, d.got.value(p.got).text) {
				return d.differ(at)
			}
		case Array, Object:
			a, b := d.want.children(p.want), d.got.children(p.got)
			first := len(d.pairs)
			if kind == Array {
				if len(a) != len(b) {
					return &Difference{d.path(at) + ".length", Num(float64(len(a))), Num(float64(len(b)))}
				}
				for i := range a {
					d.pairs = append(d.pairs, pair{at, a[i], b[i]})
				}
			} else {
				other := make(map[string]int32, len(b))
				for _, n := range b {
					other[d.got.key(n)] = n
				}
				for _, n := range a {
					key := d.want.key(n)
					m, ok := other[key]
					if !ok {
						m = none
					}
					delete(other, key)
					d.pairs = append(d.pairs, pair{at, n, m})
				}
				for _, n := range b {
					if _, left := other[d.got.key(n)]; left {
						d.pairs = append(d.pairs, pair{at, none, n})
						return d.differ(int32(len(d.pairs) - 1))
					}
				}
			}
			for i := len(d.pairs) - 1; i >= first; i-- {
				stack = append(stack, int32(i))
			}
		}
	}
	return nil
}

func sameScalar(kind Kind, a, b string) bool {
	if a == b {
		return true
	}
	switch kind {
	case Number:
		x, _ := ParseNumber(a)
		y, _ := ParseNumber(b)
		return x == y
	case String:
		return unquote(a) == unquote(b)
	}
	return false
}

// diff is a comparison under way.
type diff struct {
	want, got side
	pairs     []pair
}

// side is one of the values compared.
type side struct {
	text string
	tape tape
}

func (s *side) value(node int32) Value {
	if node == none {
		return Value{}
	}
	return Value{s.text[s.tape[node].start:s.tape[node].end]}
}

func (s *side) key(node int32) string {
	return unquote(s.text[s.tape[node].keyStart:s.tape[node].keyEnd])
}

func (s *side) children(node int32) []int32 { return s.tape.children(s.text, node) }

// pair is two nodes that stand in the same place, or none where one is missing.
type pair struct {
	up        int32 // the pair around it
	want, got int32
}

const none int32 = -1

func (d *diff) differ(at int32) *Difference {
	p := d.pairs[at]
	return &Difference{d.path(at), d.want.value(p.want), d.got.value(p.got)}
}

// path is where a pair stands. Only the pair that differs is asked for it: to
// keep one for each would take memory in proportion to the square of the depth.
func (d *diff) path(at int32) string {
	var steps []string
	for p := d.pairs[at]; p.up != none; p = d.pairs[p.up] {
		switch up := d.pairs[p.up].want; {
		case d.want.tape[up].kind == Array:
			i := 0
			for n := d.want.tape[up].child; n != p.want; n = d.want.tape[n].next {
				i++
			}
			steps = append(steps, fmt.Sprintf("[%d]", i))
		case p.want != none:
			steps = append(steps, "."+d.want.key(p.want))
		default:
			steps = append(steps, "."+d.got.key(p.got))
		}
	}
	slices.Reverse(steps)
	return strings.Join(steps, "")
}
