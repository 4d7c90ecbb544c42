// Package terms cuts text into the terms by which it is searched.
//
// A term is a run of letters and digits, in lower case and without accents:
// "Café" is cafe. What is written in one word of several is cut: "gen-itgc" and
// "gen_itgc" are gen and itgc, "parseURLPath" is parse, url and path. Scripts that
// are written without spaces (Chinese, Japanese, Korean, Thai and their neighbours)
// are cut into pairs of neighbouring characters: 重跑后 is 重跑 and 跑后.
//
// A text is found by each of its terms, by whole words that were cut ([Wholes]),
// and by each single character of those scripts.
package terms

import (
	"strings"
	"unicode"
	"unicode/utf8"

	"golang.org/x/text/unicode/norm"
)

// Term is a term of a text, which stands there at text[Start:End].
type Term struct {
	Text       string
	Start, End int
	// Word numbers the words between blanks; Run what is of one script in a word.
	// The terms of one run follow each other without a gap.
	Word, Run int
	dense     bool
}

// maxTerm bounds a term, in bytes of the text: longer runs are cut.
const maxTerm = 64

// script is how a character takes part in terms.
type script uint8

const (
	none  script = iota // between terms
	blank               // between words
	mark                // belongs to what stands before it, and says nothing
	lower
	upper
	digit
	dense // of a script without spaces
)

var denseScripts = []*unicode.RangeTable{
	unicode.Han, unicode.Hiragana, unicode.Katakana, unicode.Hangul, unicode.Bopomofo, unicode.Yi,
	unicode.Thai, unicode.Lao, unicode.Khmer, unicode.Myanmar,
}

func scriptOf(r rune) script {
	switch {
	case r < utf8.RuneSelf:
		return ascii[r]
	case r == utf8.RuneError:
		return none
	case unicode.IsSpace(r):
		return blank
	case r == 'ﾞ' || r == 'ﾟ' || unicode.Is(unicode.M, r):
		return mark
	case r == 'ー' || r == '々' || unicode.In(r, denseScripts...):
		return dense
	case unicode.IsUpper(r):
		return upper
	case unicode.IsLetter(r):
		return lower
	case unicode.IsNumber(r):
		return digit
	}
	return none
}

var ascii = func() (of [utf8.RuneSelf]script) {
	for r := range rune(utf8.RuneSelf) {
		switch {
		case r >= 'a' && r <= 'z':
			of[r] = lower
		case r >= 'A' && r <= 'Z':
			of[r] = upper
		case r >= '0' && r <= '9':
			of[r] = digit
		case r == ' ' || r >= '\t' && r <= '\r':
			of[r] = blank
		}
	}
	return of
}()

// cutter cuts one text.
type cutter struct {
	text  string
	out   []Term
	word  int
	run   int
	start int // of the term that goes on, -1 for none
	prev  int // where the dense character before starts, -1 for none
	end   int // and ends, with its marks
}

// Cut gives the terms of a text, in order.
func Cut(text string) []Term {
	c := cutter{text: text, start: -1, prev: -1}
	before := none
	for i := 0; i < len(text); {
		r, n := rune(text[i]), 1
		if r >= utf8.RuneSelf {
			r, n = utf8.DecodeRuneInString(text[i:])
		}
		s := scriptOf(r)
		if s != mark {
			c.next(s, before, i, n)
			before = s
		} else if before == dense {
			c.extend(i + n)
		}
		i += n
	}
	c.endTerm(len(text))
	c.endDense()
	return c.out
}

// next takes the character at i, of n bytes.
func (c *cutter) next(s, before script, i, n int) {
	switch s {
	case none, blank:
		c.endTerm(i)
		c.endDense()
		if s == blank {
			c.word++
			c.run++
		}
		return
	case dense:
		c.endTerm(i)
		if before != dense {
			c.run++
		}
		if c.prev >= 0 {
			c.add(c.prev, i+n, true)
		}
		c.prev, c.end = i, i+n
		return
	}
	if before == dense {
		c.endDense()
		c.run++
	}
	switch {
	case c.start < 0:
		c.start = i
	case s == upper && before != upper: // fooBar
		c.endTerm(i)
		c.start = i
	case s == lower && before == upper: // HTTPServer
		if _, size := utf8.DecodeLastRuneInString(c.text[:i]); i-size > c.start {
			c.endTerm(i - size)
			c.start = i - size
		}
	case i-c.start >= maxTerm:
		c.endTerm(i)
		c.start = i
	}
}

func (c *cutter) endTerm(end int) {
	if c.start >= 0 {
		c.add(c.start, end, false)
		c.start = -1
	}
}

// endDense ends a run of dense characters: one that stands alone is a term.
func (c *cutter) endDense() {
	if c.prev < 0 {
		return
	}
	if last := len(c.out) - 1; last < 0 || !c.out[last].dense || c.out[last].End <= c.prev {
		c.add(c.prev, c.end, true)
	}
	c.prev = -1
}

// extend adds a mark to the dense character before it.
func (c *cutter) extend(end int) {
	if last := len(c.out) - 1; last >= 0 && c.out[last].dense && c.out[last].End == c.end && c.out[last].Start < c.prev {
		c.out[last].End = end
		c.out[last].Text = fold(c.text[c.out[last].Start:end])
	}
	c.end = end
}

func (c *cutter) add(start, end int, dense bool) {
	if t := fold(c.text[start:end]); t != "" {
		c.out = append(c.out, Term{t, start, end, c.word, c.run, dense})
	}
}

// fold gives the form in which texts are compared: compatible characters are one
// (Ａ and A), case and accents do not matter.
func fold(s string) string {
	plain := true
	for i := range len(s) {
		if s[i] >= utf8.RuneSelf || s[i] >= 'A' && s[i] <= 'Z' {
			plain = false
			break
		}
	}
	if plain {
		return s
	}
	if isASCII(s) {
		return strings.ToLower(s)
	}
	var b strings.Builder
	for _, r := range norm.NFKD.String(strings.ToLower(s)) {
		if unicode.Is(unicode.Mn, r) && !voiced(r) || scriptOf(r) <= blank {
			continue
		}
		b.WriteRune(unicode.ToLower(r))
	}
	return norm.NFC.String(b.String())
}

// voiced says whether a mark makes another letter of a kana.
func voiced(r rune) bool { return r == '\u3099' || r == '\u309A' }

func isASCII(s string) bool {
	for i := range len(s) {
		if s[i] >= utf8.RuneSelf {
			return false
		}
	}
	return true
}

// Wholes gives by what a text is found beside its terms: the words that were cut,
// whole, and the single characters of scripts without spaces. Each comes once.
func Wholes(text string, cut []Term) []string {
	seen := map[string]bool{}
	var out []string
	add := func(s string) {
		if s != "" && !seen[s] {
			seen[s] = true
			out = append(out, s)
		}
	}
	for i := 0; i < len(cut); i++ {
		t := cut[i]
		if t.dense {
			for _, r := range t.Text {
				if s := string(r); s != t.Text {
					add(s)
				}
			}
			continue
		}
		// Terms that touch are of one word: parseURL. Those between signs are not.
		end := i
		for end+1 < len(cut) && !cut[end+1].dense && cut[end+1].Start == cut[end].End {
			end++
		}
		if end > i && cut[end].End-t.Start <= maxTerm {
			add(fold(text[t.Start:cut[end].End]))
		}
		i = end
	}
	return out
}
