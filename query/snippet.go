package query

import (
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/sessiontree/sessiontree/eventlog/terms"
)

const (
	// snippetBefore and snippetBytes say how much of a text is shown around the
	// first thing that was found.
	snippetBefore = 60
	snippetBytes  = 240
)

// find gives the byte ranges of the first place of each phrase in a text, in
// order.
func find(text string, phrases [][]string) (marks [][2]int) {
	cut := terms.Cut(text)
	for _, phrase := range phrases {
		if mark, ok := findPhrase(text, cut, phrase); ok {
			marks = append(marks, mark)
		}
	}
	slices.SortFunc(marks, func(a, b [2]int) int { return a[0] - b[0] })
	return marks
}

func findPhrase(text string, cut []terms.Term, phrase []string) (mark [2]int, ok bool) {
	whole := strings.Join(phrase, "")
	for i, t := range cut {
		if end := i + len(phrase); end <= len(cut) && slices.EqualFunc(cut[i:end], phrase, func(t terms.Term, p string) bool { return t.Text == p }) {
			return [2]int{t.Start, cut[end-1].End}, true
		}
		// A word that was cut, whole.
		if strings.HasPrefix(whole, t.Text) {
			joined := t.Text
			for j := i; j+1 < len(cut) && cut[j+1].Start == cut[j].End && len(joined) < len(whole); j++ {
				if joined += cut[j+1].Text; joined == whole {
					return [2]int{t.Start, cut[j+1].End}, true
				}
			}
		}
		// A single character of a pair.
		if len(phrase) == 1 && utf8.RuneCountInString(whole) == 1 && len(whole) > 1 && strings.Contains(t.Text, whole) {
			if at := strings.Index(text[t.Start:t.End], whole); at >= 0 {
				return [2]int{t.Start + at, t.Start + at + len(whole)}, true
			}
			return [2]int{t.Start, t.End}, true
		}
	}
	return mark, false
}

// snippet cuts the piece around the first mark, at blanks where there are some.
func snippet(text string, marks [][2]int) (string, [][2]int) {
	from := 0
	if len(marks) > 0 {
		from = max(marks[0][0]-snippetBefore, 0)
	}
	to := min(from+snippetBytes, len(text))
	if len(marks) > 0 {
		to = max(to, min(marks[0][1], len(text)))
	}
	for from > 0 && !utf8.RuneStart(text[from]) {
		from--
	}
	if from > 0 && len(marks) > 0 {
		if blank := strings.IndexByte(text[from:marks[0][0]], ' '); blank >= 0 {
			from += blank + 1 // not inside a word
		}
	}
	for to < len(text) && !utf8.RuneStart(text[to]) {
		to++
	}
	var inside [][2]int
	for _, m := range marks {
		if m[0] >= from && m[1] <= to {
			inside = append(inside, [2]int{m[0] - from, m[1] - from})
		}
	}
	return text[from:to], inside
}
