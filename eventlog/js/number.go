package js

import (
	"errors"
	"math"
	"strconv"
	"strings"
)

// Integers below this bound are exact in a float64, so their digits are those
// of the integer.
const maxExactInteger = 1 << 53

// AppendNumber appends f to dst as JSON.stringify writes it: the digits of
// ECMA-262 Number::toString (the fewest that read back as f, the closest to f
// among those), an exponent only from 1e21 up and below 1e-6, "0" for negative
// zero, and "null" for NaN and the infinities (ECMA-262
// SerializeJSONProperty).
func AppendNumber(dst []byte, f float64) []byte {
	if math.IsNaN(f) || math.IsInf(f, 0) {
		return append(dst, "null"...)
	}
	if f > -maxExactInteger && f < maxExactInteger {
		if i := int64(f); float64(i) == f {
			return strconv.AppendInt(dst, i, 10)
		}
	}
	if abs := math.Abs(f); abs >= 1e-6 && abs < 1e21 {
		return strconv.AppendFloat(dst, f, 'f', -1, 64)
	}
	dst = strconv.AppendFloat(dst, f, 'e', -1, 64)
	// Go pads an exponent to two digits, JavaScript does not. Only negative ones
	// are that short here.
	if n := len(dst); dst[n-4] == 'e' && dst[n-2] == '0' {
		dst[n-2] = dst[n-1]
		dst = dst[:n-1]
	}
	return dst
}

// ParseNumber returns the value that JSON.parse gives the number literal text:
// the nearest float64, ties to even; an infinity for what is too large and a
// zero, of the literal's sign, for what is too small. It reports false where
// text is not exactly one number of the JSON grammar (RFC 8259, section 6),
// white space around it included.
func ParseNumber(text string) (float64, bool) {
	whole, fraction, exponent, ok := splitNumber(text)
	if !ok {
		return 0, false
	}
	// strconv reads no exponent past its fifth digit. That is enough until the
	// mantissa is as long as the exponent is large.
	if len(exponent) > 5 {
		text = normalizeNumber(text[0] == '-', whole, fraction, exponent)
	}
	f, err := strconv.ParseFloat(text, 64)
	// Out of range, f is the infinity of the right sign.
	return f, err == nil || errors.Is(err, strconv.ErrRange)
}

// splitNumber checks text against JSON's number grammar and returns its parts:
// the digits before and after the point, and the exponent with its sign.
func splitNumber(text string) (whole, fraction, exponent string, ok bool) {
	rest := strings.TrimPrefix(text, "-")
	whole, rest = cutDigits(rest)
	if whole == "" || len(whole) > 1 && whole[0] == '0' {
		return "", "", "", false
	}
	if strings.HasPrefix(rest, ".") {
		fraction, rest = cutDigits(rest[1:])
		if fraction == "" {
			return "", "", "", false
		}
	}
	if rest != "" && rest[0]|0x20 == 'e' {
		exponent = rest[1:]
		digits := exponent
		if digits != "" && (digits[0] == '+' || digits[0] == '-') {
			digits = digits[1:]
		}
		digits, rest = cutDigits(digits)
		if digits == "" {
			return "", "", "", false
		}
	}
	return whole, fraction, exponent, rest == ""
}

// cutDigits splits s after its leading ASCII digits.
func cutDigits(s string) (digits, rest string) {
	i := 0
	for i < len(s) && s[i]-'0' <= 9 {
		i++
	}
	return s[:i], s[i:]
}

// normalizeNumber writes the same value with the point before its first digit
// other than zero, so that the exponent alone tells its size.
func normalizeNumber(negative bool, whole, fraction, exponent string) string {
	sign := ""
	if negative {
		sign = "-"
	}
	all := whole + fraction
	digits := strings.TrimLeft(all, "0")
	if digits == "" {
		return sign + "0"
	}
	// An exponent too long for an int64 comes back as the nearest one.
	// Quartered, it is still far past any mantissa, and the sum cannot overflow.
	e, _ := strconv.ParseInt(exponent, 10, 64)
	e = max(math.MinInt64/4, min(math.MaxInt64/4, e))
	e += int64(len(whole) - (len(all) - len(digits)))
	// Past these, every mantissa is an infinity or a zero already.
	e = max(-999, min(999, e))
	return sign + "0." + digits + "e" + strconv.FormatInt(e, 10)
}
