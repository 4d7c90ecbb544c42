package conformance

import (
	"bufio"
	"fmt"
	"io"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Report is what came of a run.
type Report struct {
	Backend string
	Cases   []Case // in the order of the index, or by name
}

// Case is what came of one case.
type Case struct {
	Name       string
	Failures   []Failure
	Deviations []Deviation
	// NotApplicable says why the case was not run on this backend, "" if it was.
	NotApplicable string
}

// Failure is an answer that was wrong: where, what Pi answered, what was
// answered. Want and Got may hold anything that a file held.
type Failure struct {
	Field string
	Want  string
	Got   string
}

// Deviation is an answer that differs from Pi's by rule.
type Deviation struct {
	Rule  Rule
	Field string
}

// Passed is the number of cases that gave Pi's answers, or those of a rule.
func (r *Report) Passed() int {
	return r.count(func(c Case) bool { return c.NotApplicable == "" && len(c.Failures) == 0 })
}

// Failed is the number of cases with a failure.
func (r *Report) Failed() int {
	return r.count(func(c Case) bool { return len(c.Failures) > 0 })
}

func (r *Report) count(is func(Case) bool) (n int) {
	for _, c := range r.Cases {
		if is(c) {
			n++
		}
	}
	return n
}

// ByRule is the number of answers that differ from Pi's by each rule.
func (r *Report) ByRule() map[Rule]int {
	by := map[Rule]int{}
	for _, c := range r.Cases {
		for _, d := range c.Deviations {
			by[d.Rule]++
		}
	}
	return by
}

// Write prints the failures, the deviations by case and by rule, the cases that
// were not applicable, and last the line "N passed, N failed", with a line
// "N by rule" before it.
func (r *Report) Write(w io.Writer) error {
	b := bufio.NewWriter(w)
	for _, c := range r.Cases {
		for _, f := range c.Failures {
			fmt.Fprintf(b, "FAIL %s: %s\n  want %s\n  got  %s\n", visible(c.Name), visible(f.Field), visible(f.Want), visible(f.Got))
		}
	}
	by := r.ByRule()
	total := 0
	for _, rule := range Rules() {
		if by[rule] == 0 {
			continue
		}
		total += by[rule]
		answers := "answers"
		if by[rule] == 1 {
			answers = "answer"
		}
		fmt.Fprintf(b, "rule %q: %d %s. %s\n", string(rule), by[rule], answers, rule.Why())
	}
	for _, c := range r.Cases {
		for _, rule := range Rules() {
			if fields := c.fieldsOf(rule); len(fields) > 0 {
				fmt.Fprintf(b, "%s: by rule %q: %s\n", visible(c.Name), string(rule), visible(strings.Join(fields, ", ")))
			}
		}
	}
	for _, c := range r.Cases {
		if c.NotApplicable != "" {
			fmt.Fprintf(b, "%s: not applicable: %s\n", visible(c.Name), visible(c.NotApplicable))
		}
	}
	fmt.Fprintf(b, "%d by rule\n%d passed, %d failed\n", total, r.Passed(), r.Failed())
	return b.Flush()
}

func (c Case) fieldsOf(rule Rule) (fields []string) {
	for _, d := range c.Deviations {
		if d.Rule == rule {
			fields = append(fields, d.Field)
		}
	}
	return fields
}

func (c *Case) fail(field, want, got string) {
	f := Failure{field, want, got}
	if !slices.Contains(c.Failures, f) {
		c.Failures = append(c.Failures, f)
	}
}

func (c *Case) deviate(rule Rule, field string) {
	d := Deviation{rule, field}
	if !slices.Contains(c.Deviations, d) {
		c.Deviations = append(c.Deviations, d)
	}
}

// visible is a text that no terminal takes for a command: what does not print is
// escaped. Texts of vectors come from anywhere.
func visible(s string) string {
	if !strings.ContainsFunc(s, func(r rune) bool { return r == utf8.RuneError || !unicode.IsPrint(r) }) {
		return s
	}
	var b strings.Builder
	for len(s) > 0 {
		r, n := utf8.DecodeRuneInString(s)
		switch {
		case r == utf8.RuneError && n == 1:
			fmt.Fprintf(&b, `\x%02x`, s[0])
		case r < 0x20:
			fmt.Fprintf(&b, `\x%02x`, r)
		case unicode.IsPrint(r):
			b.WriteString(s[:n])
		default:
			fmt.Fprintf(&b, `\u{%04x}`, r)
		}
		s = s[n:]
	}
	return b.String()
}
