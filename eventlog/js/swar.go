package js

import "math/bits"

// Strings are most of a session file, so they are scanned a word at a time.

const (
	ones  = 0x0101010101010101
	highs = 0x8080808080808080
)

// load8 is text[i:i+8] with the first byte lowest; the compiler makes it one load.
func load8(s string, i int) uint64 {
	_ = s[i+7]
	return uint64(s[i]) | uint64(s[i+1])<<8 | uint64(s[i+2])<<16 | uint64(s[i+3])<<24 |
		uint64(s[i+4])<<32 | uint64(s[i+5])<<40 | uint64(s[i+6])<<48 | uint64(s[i+7])<<56
}

// stopMask has the high bit set in each byte of w that is a quote, a backslash
// or below 0x20, up to and including the first such byte (bytes behind it may
// be marked by a borrow; only the first counts).
func stopMask(w uint64) uint64 {
	quote := w ^ ('"' * ones)
	slash := w ^ ('\\' * ones)
	return ((quote - ones) &^ quote & highs) |
		((slash - ones) &^ slash & highs) |
		((w - 0x20*ones) &^ w & highs)
}

// IsPlain says whether s is ASCII that a JSON string holds as it is.
func IsPlain(s string) bool { return skipPlain(s, 0) == len(s) }

// skipPlain is the offset of the first byte from i on that is no ASCII, or one of
// those that stopMask marks. Where no byte is above ASCII, a borrow alone tells.
func skipPlain(s string, i int) int {
	for ; i+8 <= len(s); i += 8 {
		w := load8(s, i)
		quote := w ^ ('"' * ones)
		slash := w ^ ('\\' * ones)
		if stops := (w | (w - 0x20*ones) | (quote - ones) | (slash - ones)) & highs; stops != 0 {
			return i + firstByte(stops)
		}
	}
	for i < len(s) && s[i] >= 0x20 && s[i] != '"' && s[i] != '\\' && s[i] < 0x80 {
		i++
	}
	return i
}

func firstByte(mask uint64) int { return bits.TrailingZeros64(mask) >> 3 }
