package report

import (
	_ "embed"
	"fmt"
	"html/template"
	"io"

	"github.com/sessiontree/sessiontree/bench"
)

// script draws the plots. It is in the page, so that the page needs no network:
// Apache ECharts 5.6.0, its build of the common charts, as published.
//
//go:embed echarts/echarts.common.min.js
var script string

//go:embed page.html
var pageText string

var page = template.Must(template.New("page").Funcs(template.FuncMap{
	"quantity": Quantity, "duration": duration, "bytes": bytes, "size": size, "sizes": sizes,
	"memory": func(n uint64) string { return bytes(float64(n)) },
	"digits": digits, "times": times, "ratio": ratio, "target": target, "verdict": verdict, "about": bench.About,
	"limit": func(r bench.Row) string {
		if r.Ratio == nil {
			return ""
		}
		return Quantity(r.Value.Median/r.Ratio.Median, r.Unit)
	},
}).Parse(pageText))

// HTML writes a result as one page: the figures beside their targets, plots of
// the time against the size, of bytes, and of backends side by side.
func HTML(w io.Writer, r *bench.Result) error {
	sections := []section{
		{"Time against size", "Both axes are logarithmic: a line that rises by one square a square is linear, a level one flat. The exponent that was fitted stands behind each name; dashed lines are limits.", growthPlots(r)},
		{"Bytes on the disk", "For each entry of a tree, with its text.", bytePlots(r)},
		{"Side by side", "The median of each backend on the largest tree of a shape that all were measured on.", sidePlots(r)},
	}
	err := page.Execute(w, struct {
		*bench.Result
		Script   template.JS
		Verdict  string
		Overhead string
		Left     []string
		Sections []section
	}{r, template.JS(script), Verdict(r), Overhead(r), Left(r), sections})
	if err != nil {
		return fmt.Errorf("cannot write the page: %w", err)
	}
	return nil
}

// section is a part of the page with its plots.
type section struct {
	Title, About string
	Plots        []plot
}

// plot is a chart as it stands in the page.
type plot struct{ Element, Script template.HTML }
