package js

import (
	"slices"
	"strconv"
)

// AppendCanonical writes v as JSON.stringify(JSON.parse(text)) would: no
// blanks, integer-like keys first, of a repeated key the last value in the
// place of the first, numbers in their shortest form, escapes only where needed.
// It is what our own appends write, so that they cannot be told from Pi's.
func AppendCanonical(dst []byte, v Value) []byte {
	if v.text == "" {
		return dst
	}
	t := parseTape(v.text)
	type frame struct {
		children []int32 // in the order in which they are written
		object   bool
	}
	stack := make([]frame, 0, 8)
	node := int32(0)
	for {
		n := &t[node]
		switch n.kind {
		case String:
			dst = AppendQuote(dst, unquote(v.text[n.start:n.end]))
		case Number:
			f, _ := ParseNumber(v.text[n.start:n.end])
			dst = AppendNumber(dst, f)
		case Object, Array:
			object := n.kind == Object
			dst = append(dst, opening(object))
			stack = append(stack, frame{t.children(v.text, node), object})
		default:
			dst = append(dst, v.text[n.start:n.end]...)
		}
		for {
			if len(stack) == 0 {
				return dst
			}
			top := &stack[len(stack)-1]
			if len(top.children) == 0 {
				dst = append(dst, closing(top.object))
				stack = stack[:len(stack)-1]
				continue
			}
			node, top.children = top.children[0], top.children[1:]
			// No value ends in an opening bracket, so one there was just opened.
			if last := dst[len(dst)-1]; last != '{' && last != '[' {
				dst = append(dst, ',')
			}
			if top.object {
				dst = AppendQuote(dst, unquote(v.text[t[node].keyStart:t[node].keyEnd]))
				dst = append(dst, ':')
			}
			break
		}
	}
}

func opening(object bool) byte {
	if object {
		return '{'
	}
	return '['
}

func closing(object bool) byte { return opening(object) + 2 } // as ASCII has them

// tape is a parsed text as a list of nodes, parents before children, so that a
// value of any depth is written in time proportional to its size.
type tape []tapeNode

type tapeNode struct {
	start, end       int32
	keyStart, keyEnd int32
	child, next      int32 // first child and next sibling; 0 for none
	kind             Kind
}

// parseTape reads a checked text.
func parseTape(text string) tape {
	t := make(tape, 0, 16)
	type level struct{ node, last int32 }
	var stack []level
	i := 0
	var keyStart, keyEnd int
	for {
		i = skipSpace(text, i)
		c := text[i]
		if len(stack) > 0 {
			top := &stack[len(stack)-1]
			object := t[top.node].kind == Object
			if c == ',' {
				i++
				continue
			}
			if c == '}' || c == ']' {
				i++
				t[top.node].end = int32(i)
				stack = stack[:len(stack)-1]
				if len(stack) == 0 {
					return t
				}
				continue
			}
			if object {
				keyStart = i
				keyEnd = skipCheckedString(text, i)
				i, _ = skipColon(text, keyEnd)
				i = skipSpace(text, i)
				c = text[i]
			}
		}
		id := int32(len(t))
		n := tapeNode{start: int32(i), keyStart: int32(keyStart), keyEnd: int32(keyEnd)}
		if len(stack) > 0 {
			top := &stack[len(stack)-1]
			if top.last == 0 {
				t[top.node].child = id
			} else {
				t[top.last].next = id
			}
			top.last = id
		}
		switch c {
		case '{', '[':
			n.kind = Array
			if c == '{' {
				n.kind = Object
			}
			t = append(t, n)
			stack = append(stack, level{node: id})
			i++
			continue
		case '"':
			n.kind = String
			i = skipCheckedString(text, i)
		default:
			n.kind = Value{text[i:]}.Kind()
			i = SkipChecked(text, i)
		}
		n.end = int32(i)
		t = append(t, n)
		if len(stack) == 0 {
			return t
		}
	}
}

// children are the nodes below node in JavaScript's order.
func (t tape) children(text string, node int32) []int32 {
	var all []int32
	for c := t[node].child; c != 0; c = t[c].next {
		all = append(all, c)
	}
	if t[node].kind == Object {
		return ownOrder(all, func(c int32) string { return unquote(text[t[c].keyStart:t[c].keyEnd]) })
	}
	return all
}

// ownOrder puts members into the order of JavaScript's own properties: array
// indices first, in rising order, then the rest as first set; of a repeated key
// the last value, in the place of the first.
func ownOrder[M any](members []M, key func(M) string) []M {
	if len(members) < 2 {
		return members
	}
	place := make(map[string]int, len(members))
	indices := false
	out := members[:0:0]
	for _, m := range members {
		k := key(m)
		if at, twice := place[k]; twice {
			out[at] = m
			continue
		}
		place[k] = len(out)
		out = append(out, m)
		if _, is := arrayIndex(k); is {
			indices = true
		}
	}
	if indices {
		slices.SortStableFunc(out, func(a, b M) int {
			i, iIs := arrayIndex(key(a))
			j, jIs := arrayIndex(key(b))
			switch {
			case iIs && jIs:
				return int(i) - int(j)
			case iIs:
				return -1
			case jIs:
				return 1
			}
			return 0
		})
	}
	return out
}

// arrayIndex says whether a key is one of the integers that JavaScript lists
// first: "0" to "4294967294", written plainly.
func arrayIndex(key string) (uint32, bool) {
	if key == "" || len(key) > 10 || key[0] < '0' || key[0] > '9' || (key[0] == '0' && len(key) > 1) {
		return 0, false
	}
	n, err := strconv.ParseUint(key, 10, 64)
	if err != nil || n > 4294967294 {
		return 0, false
	}
	return uint32(n), true
}
