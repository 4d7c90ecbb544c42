package jsonl

import (
	"strings"

	"github.com/sessiontree/sessiontree/eventlog"
	"github.com/sessiontree/sessiontree/eventlog/js"
)

// salvage takes the entries out of a line that is not one entry. Everything else
// in the line is damage. why is what was wrong with the line as a whole.
func (p *parsed) salvage(line string, offset int64, number int, why error) {
	reason := why.Error()
	if strings.Trim(line, "\x00") == "" {
		reason = "NUL bytes"
	}
	junk := 0 // start of what is not accounted for
	drop := func(end int) {
		if part := line[junk:end]; strings.Trim(part, " \t\r\n") != "" {
			d := Damage{number, offset + int64(junk), int64(len(part)), reason}
			p.damage = append(p.damage, d)
			if strings.IndexByte(part, 0) >= 0 {
				p.gaps = append(p.gaps, gap{d, len(p.entries)})
			}
		}
	}
	Salvage(line, func(at, end int) {
		if e, err := eventlog.ParseEntry(line[at:end]); err == nil {
			drop(at)
			p.inside = append(p.inside, len(p.entries))
			p.entries = append(p.entries, e)
			junk = end
		}
	})
	drop(len(line))
}

// Salvage looks for records in a line that is not one record: records glued
// together, the half of one before a whole one, NULs that a crash left between.
// take is shown where JSON objects stand that can have been a record of their own,
// in order.
//
// An object in the place of a value, such as an entry kept in another entry's
// details, is part of a broken record, and not shown, unless nothing that could go
// on with that record follows: then more likely the record before it was torn
// there.
func Salvage(line string, take func(at, end int)) {
	// Any brace may start a record. When that has cost too much (a record torn deep
	// inside has many), only what looks like the start of one is tried.
	start, budget := "{", scanBudget(line)
	for at := strings.IndexByte(line, '{'); at >= 0; {
		if budget <= 0 {
			if start == recordStart {
				break
			}
			start, budget = recordStart, scanBudget(line)
			more := strings.Index(line[at:], start)
			if more < 0 {
				break
			}
			at += more
		}
		next := at + 1
		end, err := js.Skip(line, at)
		budget -= end - at
		if err == nil {
			next = end
			if !inValue(line[:at]) || !goesOn(line[end:]) {
				take(at, end)
			}
		}
		more := strings.Index(line[next:], start)
		if more < 0 {
			break
		}
		at = next + more
	}
}

// recordStart is how every record begins that Pi or this package wrote.
const recordStart = `{"type":"`

// scanBudget is how many bytes the starts in a line may cost that turn out to be
// none: each may take a scan to the line's end, which would make the square of
// its length.
func scanBudget(line string) int { return 16*len(line) + 1<<16 }

// inValue says whether what follows stands where a JSON value would.
func inValue(before string) bool {
	before = strings.TrimRight(before, " \t\r")
	return before != "" && strings.IndexByte(":,[", before[len(before)-1]) >= 0
}

// goesOn says whether rest may go on with the record that a value stands in.
func goesOn(rest string) bool {
	rest = strings.TrimLeft(rest, " \t\r")
	return rest != "" && strings.IndexByte(",]}", rest[0]) >= 0
}
