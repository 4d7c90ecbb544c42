package main

import (
	"bytes"
	"cmp"
	_ "embed"
	"html/template"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/sessiontree/sessiontree/query"
)

// The report is one file without scripts and without anything from elsewhere: the
// plots are SVG. Names from sessions are text to the template, which escapes them.
//
//go:embed usage.html
var usagePageText string

var usagePageTemplate = template.Must(template.New("usage").Parse(usagePageText))

// plot is a chart of one report.
type plot struct {
	Title   string
	Columns bool // bars stand: an axis of time
	Width   int
	Bars    []plotBar
	More    int // rows that are not drawn
}

// plotBar is a bar of the four classes, with lengths in pixels.
type plotBar struct {
	Key, Cost, Tokens, Cached string
	At                        int // where it stands
	Parts                     [4]plotPart
}

type plotPart struct{ Start, Length float64 }

const (
	plotLength = 240 // of the longest bar
	columnStep = 14
	plotRows   = 30 // bars that lie; there may be thousands of sessions
)

// usagePage writes the report to a file. It asks all groupings of the same
// question.
func (c *cli) usagePage(d *database, o query.UsageOptions, path string) error {
	page := struct {
		Database, Zone, Since, Until string
		Total                        query.Split
		Classes                      []plotClass
		Plots                        []plot
	}{Database: d.path, Zone: zoneName(o.Zone, time.Now())}
	if !o.Since.IsZero() {
		page.Since = o.Since.In(o.Zone).Format(time.DateTime)
	}
	if !o.Until.IsZero() {
		page.Until = o.Until.In(o.Zone).Format(time.DateTime)
	}
	for _, by := range query.Groupings() {
		o.By = by
		if by == query.ByBranch && o.Session == "" {
			continue
		}
		r, err := d.Usage(c.ctx, o)
		if err != nil {
			return err
		}
		page.Total = r.Total
		page.Plots = append(page.Plots, plotOf(by, r))
	}
	page.Classes = plotClasses(page.Total)
	var text bytes.Buffer
	if err := usagePageTemplate.Execute(&text, page); err != nil {
		return err
	}
	return writePrivate(path, text.Bytes())
}

// writePrivate writes a whole file or none, for its owner only.
func writePrivate(path string, content []byte) error {
	f, err := os.CreateTemp(filepath.Dir(path), ".sessiontree-*") // 0600
	if err != nil {
		return fileError(path, err)
	}
	_, err = f.Write(content)
	err = cmp.Or(err, f.Close())
	if err == nil {
		err = os.Rename(f.Name(), path)
	}
	if err != nil {
		os.Remove(f.Name())
	}
	return fileError(path, err)
}

type plotClass struct{ Name, Color, Cost string }

func plotClasses(s query.Split) []plotClass {
	return []plotClass{
		{"live", "#2a7f62", money(s.Live.Money())},
		{"abandoned", "#c8553d", money(s.Abandoned.Money())},
		{"compactions", "#5b7db1", money(s.Compaction.Money())},
		{"branch summaries", "#b59f3b", money(s.BranchSummary.Money())},
	}
}

func plotOf(by query.Grouping, r query.UsageReport) plot {
	p := plot{Title: "By " + string(by)}
	switch by {
	case query.ByDay, query.ByWeek, query.ByMonth:
		p.Columns = true
	default:
		if len(r.Rows) > plotRows {
			p.More = len(r.Rows) - plotRows
			r.Rows = r.Rows[:plotRows]
		}
	}
	most := 0.0
	for _, row := range r.Rows {
		most = max(most, row.Total().Money())
	}
	for i, row := range r.Rows {
		t := row.Total()
		b := plotBar{Key: strings.TrimSpace(usageKeyText(row)), Cost: money(t.Money()), Tokens: grouped(float64(t.Tokens())), Cached: percent(t.CacheHitRate()), At: i * columnStep}
		at := 0.0
		for j, s := range []query.Spend{row.Live, row.Abandoned, row.Compaction, row.BranchSummary} {
			length := 0.0
			if most > 0 {
				length = max(s.Money(), 0) / most * plotLength
			}
			b.Parts[j] = plotPart{at, length}
			at += length
		}
		if p.Columns { // they stand on the ground
			for j := range b.Parts {
				b.Parts[j].Start = plotLength - b.Parts[j].Start - b.Parts[j].Length
			}
		}
		p.Bars = append(p.Bars, b)
	}
	p.Width = len(p.Bars)*columnStep + columnStep
	return p
}
