package js

import (
	"errors"
	"math"
	"math/big"
	"strconv"
	"strings"
)

// ToString is what a template literal makes of a value: String(v).
func ToString(v Value) string {
	switch v.Kind() {
	case Absent:
		return "undefined"
	case String:
		s, _ := v.Str()
		return s
	case Number:
		f, _ := v.Float()
		switch {
		case math.IsInf(f, 1):
			return "Infinity"
		case math.IsInf(f, -1):
			return "-Infinity"
		}
		return string(AppendNumber(nil, f))
	case Object:
		return "[object Object]"
	case Array:
		return joinArray(v)
	}
	return v.text // true, false, null
}

// ToNumber is what arithmetic makes of a value: Number(v). NaN is no number.
func ToNumber(v Value) float64 {
	switch v.Kind() {
	case Number:
		f, _ := v.Float()
		return f
	case Null:
		return 0
	case Bool:
		if v.Truthy() {
			return 1
		}
		return 0
	case String, Array:
		return textToNumber(Trim(ToString(v)))
	}
	return math.NaN()
}

// textToNumber reads a trimmed text as JavaScript's StringToNumber does: nothing is
// 0; a decimal number, with a sign perhaps; 0x, 0o and 0b without one.
func textToNumber(s string) float64 {
	if s == "" {
		return 0
	}
	if len(s) > 2 && s[0] == '0' {
		if base := map[byte]int{'x': 16, 'o': 8, 'b': 2}[s[1]|0x20]; base != 0 {
			whole, ok := new(big.Int).SetString(s[2:], base)
			if !ok || s[2] == '+' || s[2] == '-' || strings.Contains(s, "_") {
				return math.NaN()
			}
			f, _ := new(big.Float).SetInt(whole).Float64()
			return f
		}
	}
	digits := strings.TrimLeft(s, "+-")
	switch {
	case len(s)-len(digits) > 1:
		return math.NaN()
	case digits == "Infinity":
		digits = "Inf"
	case strings.Trim(digits, "0123456789.eE+-") != "" || strings.ContainsAny(digits, "xX_"):
		return math.NaN()
	}
	// What is out of range is the infinity of the right sign, with an error.
	f, err := strconv.ParseFloat(s[:len(s)-len(strings.TrimLeft(s, "+-"))]+digits, 64)
	if err != nil && !errors.Is(err, strconv.ErrRange) {
		return math.NaN()
	}
	return f
}

// joinArray is Array.prototype.join with commas: nested lists open up, null
// gives nothing.
func joinArray(v Value) string {
	var b strings.Builder
	text := v.text
	stack := []int{1} // where each open list goes on
	for len(stack) > 0 {
		top := len(stack) - 1
		i := skipSpace(text, stack[top])
		if i >= len(text) {
			break // of a damaged text
		}
		switch text[i] {
		case ']':
			stack = stack[:top]
			if top > 0 {
				stack[top-1] = i + 1
			}
			continue
		case ',':
			b.WriteByte(',')
			stack[top] = i + 1
			continue
		case '[':
			stack = append(stack, i+1)
			continue
		}
		end := SkipChecked(text, i)
		if e := (Value{text[i:end]}); !e.Nullish() {
			b.WriteString(ToString(e))
		}
		stack[top] = end
	}
	return b.String()
}

// Length is v.length in JavaScript: code units of a text, elements of a list,
// NaN where there is none; ok is false where reading it throws (null, absent).
func Length(v Value) (n float64, ok bool) {
	switch v.Kind() {
	case Absent, Null:
		return 0, false
	case String:
		s, _ := v.Str()
		return float64(Len(s)), true
	case Array:
		for range v.Elements() {
			n++
		}
		return n, true
	case Object:
		if f, is := v.Get("length").Float(); is {
			return f, true
		}
	}
	return math.NaN(), true
}

// Entries is Object.entries(v): an object's members, a list's elements under
// their indices, a text's characters; ok is false where it throws.
func Entries(v Value) (members []Member, ok bool) {
	switch v.Kind() {
	case Absent, Null:
		return nil, false
	case Object:
		return v.Members(), true
	case Array:
		i := 0
		for e := range v.Elements() {
			members = append(members, Member{string(AppendNumber(nil, float64(i))), e})
			i++
		}
	case String:
		// One member a code unit: a pair comes apart.
		s, _ := v.Str()
		for i, unit := range utf16Units(s) {
			members = append(members, Member{string(AppendNumber(nil, float64(i))), Text(string(appendUnit(nil, unit)))})
		}
	}
	return members, true
}

// Canonical is v as JSON.stringify(JSON.parse(text)) would write it. What is
// written so already, as most values are, costs a scan and no allocation.
func Canonical(v Value) Value {
	if v.text == "" || IsCanonical(v) {
		return v
	}
	return Value{string(AppendCanonical(make([]byte, 0, len(v.text)), v))}
}

// utf16Units takes a WTF-8 string apart into code units.
func utf16Units(s string) []rune {
	units := make([]rune, 0, len(s))
	for len(s) > 0 {
		r, n := decodeWTF8(s)
		if r >= 0x10000 {
			units = append(units, 0xD800+(r-0x10000)>>10, 0xDC00+(r-0x10000)&0x3FF)
		} else {
			units = append(units, r)
		}
		s = s[n:]
	}
	return units
}

// WellFormed is v with each half of a surrogate pair in its texts replaced by
// U+FFFD, as String.prototype.toWellFormed does; v as it is if there is none.
func WellFormed(v Value) Value {
	var out []byte
	start := 0
	for i := 0; i < len(v.text); {
		if v.text[i] != '"' {
			i++
			continue
		}
		end := skipCheckedString(v.text, i)
		literal := v.text[i:end]
		if s := unquote(literal); strings.Contains(literal, `\u`) && ToWellFormed(s) != s {
			out = append(out, v.text[start:i]...)
			out = AppendQuote(out, ToWellFormed(s))
			start = end
		}
		i = end
	}
	if out == nil {
		return v
	}
	return Value{string(append(out, v.text[start:]...))}
}
