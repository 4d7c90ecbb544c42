package report

import (
	"cmp"
	"fmt"
	"html/template"
	"maps"
	"slices"
	"strings"

	"github.com/go-echarts/go-echarts/v2/charts"
	"github.com/go-echarts/go-echarts/v2/opts"
	"github.com/go-echarts/go-echarts/v2/render"

	"github.com/sessiontree/sessiontree/bench"
)

// plain keeps a text from ending the script that it stands in.
func plain(s string) string { return strings.NewReplacer("<", "‹", ">", "›", "&", "+").Replace(s) }

// drawer makes the charts of a page, each with an id of its own.
type drawer struct {
	prefix string
	n      int
}

func (d *drawer) options(title, y string, x opts.XAxis) []charts.GlobalOpts {
	d.n++
	return []charts.GlobalOpts{
		charts.WithInitializationOpts(opts.Initialization{ChartID: fmt.Sprintf("%s%d", d.prefix, d.n), Width: "620px", Height: "380px"}),
		charts.WithTitleOpts(opts.Title{Title: plain(title)}),
		charts.WithLegendOpts(opts.Legend{Show: opts.Bool(true), Type: "scroll", Top: "bottom"}),
		charts.WithTooltipOpts(opts.Tooltip{Show: opts.Bool(true), Trigger: "axis"}),
		charts.WithGridOpts(opts.Grid{Left: "80", Right: "30", Bottom: "70"}),
		charts.WithXAxisOpts(x),
		charts.WithYAxisOpts(opts.YAxis{Type: "log", Name: y}),
		charts.WithAnimation(false),
	}
}

func snippet(c interface{ RenderSnippet() render.ChartSnippet }) plot {
	s := c.RenderSnippet()
	return plot{template.HTML(s.Element), template.HTML(s.Script)}
}

// point is a figure at a size.
type point struct{ x, y float64 }

// line is a backend on a shape, or the limit of one.
type line struct {
	name   string
	points []point
	limit  bool
}

// unitName is how an axis calls the unit; bytes have plots of their own.
func unitName(u bench.Unit) string { return string(u) }

// growthPlots has a plot for each operation that was measured at two sizes.
func growthPlots(r *bench.Result) (plots []plot) {
	d := drawer{prefix: "growth"}
	for _, operation := range operationsOf(r) {
		lines, unit := linesOf(r, operation)
		if len(lines) == 0 || unit != bench.Nanos && unit != bench.NanosPerEntry {
			continue
		}
		c := charts.NewLine()
		c.SetGlobalOptions(d.options(operation, unitName(unit), opts.XAxis{Type: "log", Name: "entries"})...)
		for _, l := range lines {
			data := make([]opts.LineData, len(l.points))
			for i, p := range l.points {
				data[i] = opts.LineData{Value: []float64{p.x, p.y}}
			}
			style := "solid"
			if l.limit {
				style = "dashed"
			}
			c.AddSeries(plain(l.name), data, charts.WithLineStyleOpts(opts.LineStyle{Type: style}), charts.WithLineChartOpts(opts.LineChart{ShowSymbol: opts.Bool(true)}))
		}
		plots = append(plots, snippet(c))
	}
	return plots
}

func operationsOf(r *bench.Result) (names []string) {
	for _, row := range r.Rows {
		if !slices.Contains(names, row.Operation) {
			names = append(names, row.Operation)
		}
	}
	return names
}

// linesOf gives the lines of an operation: those with two sizes or more.
func linesOf(r *bench.Result, operation string) (lines []line, unit bench.Unit) {
	type key struct{ backend, shape string }
	series := map[key][]bench.Row{}
	for _, row := range r.Rows {
		if row.Operation == operation {
			k := key{row.Backend, row.Shape}
			series[k] = append(series[k], row)
			unit = row.Unit
		}
	}
	keys := slices.SortedFunc(maps.Keys(series), func(a, b key) int { return cmp.Or(cmp.Compare(a.backend, b.backend), cmp.Compare(a.shape, b.shape)) })
	for _, k := range keys {
		rows := series[k]
		if len(rows) < 2 {
			continue
		}
		l := line{name: fmt.Sprintf("%s %s", k.backend, k.shape)}
		limit := line{limit: true}
		for _, g := range r.Growth {
			if g.Operation == operation && g.Backend == k.backend && g.Shape == k.shape {
				l.name += fmt.Sprintf(" (%s^%s)", g.By, digits(g.Exponent))
			}
		}
		for _, row := range rows {
			l.points = append(l.points, point{float64(row.Size), row.Value.Median})
			if row.Ratio != nil {
				limit.name = fmt.Sprintf("%s %s", row.Against, k.shape)
				limit.points = append(limit.points, point{float64(row.Size), row.Value.Median / row.Ratio.Median})
			}
		}
		lines = append(lines, l)
		if limit.points != nil {
			lines = append(lines, limit)
		}
	}
	return lines, unit
}

// bars is a bar chart of named series over categories; a value that is missing
// leaves a gap.
func (d *drawer) bars(title, unit string, categories []string, series []string, value func(series, category string) (float64, bool)) plot {
	c := charts.NewBar()
	names := make([]string, len(categories))
	for i, category := range categories {
		names[i] = plain(category)
	}
	c.SetGlobalOptions(d.options(title, unit, opts.XAxis{Type: "category"})...)
	c.SetXAxis(names)
	for _, s := range series {
		data := make([]opts.BarData, len(categories))
		for i, category := range categories {
			data[i] = opts.BarData{Value: "-"} // ECharts' word for nothing
			if v, ok := value(s, category); ok {
				data[i].Value = v
			}
		}
		c.AddSeries(plain(s), data)
	}
	return snippet(c)
}

// bytePlots shows the bytes an entry of each backend by shape, on its largest
// tree.
func bytePlots(r *bench.Result) (plots []plot) {
	d := drawer{prefix: "bytes"}
	for _, operation := range operationsOf(r) {
		largest, backends, shapes := map[[2]string]bench.Row{}, []string{}, []string{}
		for _, row := range r.Rows {
			if row.Operation != operation || row.Unit != bench.BytesPerEntry {
				continue
			}
			k := [2]string{row.Backend, row.Shape}
			if row.Size >= largest[k].Size {
				largest[k] = row
			}
			backends, shapes = with(backends, row.Backend), with(shapes, row.Shape)
		}
		if len(largest) == 0 {
			continue
		}
		plots = append(plots, d.bars(operation, "B/entry", shapes, backends, func(backend, shape string) (float64, bool) {
			row, ok := largest[[2]string{backend, shape}]
			return row.Value.Median, ok
		}))
	}
	return plots
}

func with(all []string, name string) []string {
	if slices.Contains(all, name) {
		return all
	}
	return append(all, name)
}

// sidePlots shows all backends beside each other, shape by shape, and the limit
// of each.
func sidePlots(r *bench.Result) (plots []plot) {
	d := drawer{prefix: "side"}
	var shapes []string
	for _, row := range r.Rows {
		shapes = with(shapes, row.Shape)
	}
	for _, shape := range shapes {
		for _, unit := range []bench.Unit{bench.Nanos, bench.NanosPerEntry} {
			if p, ok := d.side(r, shape, unit); ok {
				plots = append(plots, p)
			}
		}
	}
	return plots
}

func (d *drawer) side(r *bench.Result, shape string, unit bench.Unit) (plot, bool) {
	values, largest := map[[2]string]float64{}, map[string]int{}
	var operations, series []string
	for _, row := range r.Rows {
		if row.Shape == shape && row.Unit == unit && row.Operation != "empty" {
			largest[row.Operation] = max(largest[row.Operation], row.Size)
			operations = with(operations, row.Operation)
		}
	}
	for _, row := range r.Rows {
		if row.Shape != shape || row.Unit != unit || row.Operation == "empty" || row.Size != largest[row.Operation] {
			continue
		}
		series = with(series, row.Backend)
		values[[2]string{row.Backend, row.Operation}] = row.Value.Median
		if row.Ratio != nil {
			series = with(series, row.Against)
			values[[2]string{row.Against, row.Operation}] = row.Value.Median / row.Ratio.Median
		}
	}
	if len(series) < 2 {
		return plot{}, false
	}
	return d.bars(shape, unitName(unit), operations, series, func(s, operation string) (float64, bool) {
		v, ok := values[[2]string{s, operation}]
		return v, ok && v > 0
	}), true
}
