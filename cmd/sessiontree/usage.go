package main

import (
	"encoding/csv"
	"errors"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/sessiontree/sessiontree/eventlog/js"
	"github.com/sessiontree/sessiontree/query"
)

const usageLong = `usage says what was spent, over all sessions of the database: responses, tokens
and cost, by day, week (from Monday), month, model, provider, cwd, session or
branch. Each response counts once, whatever forks and copies hold it too.

What was spent is split into four classes that add up to the total: live (on the
way from a session's leaf to the root, past compactions), abandoned (the plans
that were given up), compactions, and branch summaries. "cached" is the part of
the tokens sent to a model that it had in its cache.

` + windowHelp + `

--html FILE writes a report with plots: one file that needs no network.
--explain says how copies are told from new responses, and which sessions hold
some.

--json:
{
  "database": the file
  "by", "timezone", "since", "until": the question (text or null)
  "rows":  [{"key": the day, model, …, or null where nothing says it,
             "session", "tip", "from", "leaf" (boolean): of a branch only,
             "total", "live", "abandoned", "compaction", "branchSummary": spend}]
  "total": the same without a key
}
A spend is {"responses", "input", "output", "cacheRead", "cacheWrite", "tokens"
(their sum), "cost", "cacheHitRate" (0 to 1)}.

--json --explain:
{
  "database": the file
  "rules":  [text]
  "copies": [{"session", "countsFor" (ids), "spend"}]
}`

// usageRules are what --explain says.
var usageRules = []string{
	"A bill is what one response of a model cost: an assistant message, and a compaction, a branch summary, a usage entry or a tool result with a usage.",
	"Two bills are copies of one if their entries have the same id, and they the same kind, provider, model, numbers of tokens, cost, and time inside the message. The parent and the time of the entry do not matter: copies may change those.",
	"Of the copies one counts: that of a session that was not forked here, the root of its lineage; then the one with the earliest time; then the one whose session's id comes first. The order of imports does not matter. When its session is deleted, the next one counts.",
	"A bill is live if a session that has a copy of it has it on the way from its leaf to the root; else it is abandoned. Compactions and branch summaries are classes of their own.",
	"Costs are added as billionths, so that sums do not depend on their order.",
}

func (c *cli) usageCommand() *cobra.Command {
	var o query.UsageOptions
	var w window
	var session, cwd, html string
	var asCSV, explain bool
	by := string(query.ByDay)
	names := groupingNames()
	cmd := &cobra.Command{
		Use:   "usage",
		Short: "Say what was spent, each response counted once",
		Long:  usageLong,
		Args: func(cmd *cobra.Command, args []string) (err error) {
			if o.By = query.Grouping(by); !slices.Contains(query.Groupings(), o.By) {
				return fmt.Errorf("--by is one of %s, not %q", strings.Join(names, ", "), by)
			}
			if c.json && asCSV {
				return errors.New("--json or --csv, not both")
			}
			if o.Zone, o.Since, o.Until, err = w.read(time.Now()); err != nil {
				return err
			}
			if cmd.Flags().Changed("session") {
				if err := checkSession(cmd, session); err != nil {
					return err
				}
			}
			return cobra.NoArgs(cmd, args)
		},
		RunE: func(cmd *cobra.Command, _ []string) error {
			if cmd.Flags().Changed("cwd") {
				var err error
				if o.CWD, err = folder(cwd); err != nil {
					return err
				}
			}
			return c.withDatabase(reads, func(d *database) error {
				if err := c.onlySession(d, session, &o.Session); err != nil {
					return err
				}
				if explain {
					return c.explainUsage(d)
				}
				report, err := d.Usage(c.ctx, o)
				if err != nil {
					return err
				}
				if html != "" {
					if err := c.usagePage(d, o, html); err != nil {
						return err
					}
				}
				return c.usage(d, o, report, asCSV)
			})
		},
	}
	cmd.Flags().StringVar(&by, "by", by, "one of "+strings.Join(names, ", "))
	w.flags(cmd)
	sessionFlag(cmd, &session)
	cmd.Flags().StringVar(&cwd, "cwd", "", "only the sessions of this working folder")
	cmd.Flags().StringVar(&o.Provider, "provider", "", "only this provider")
	cmd.Flags().StringVar(&o.Model, "model", "", "only this model")
	cmd.Flags().BoolVar(&asCSV, "csv", false, "answer in CSV")
	cmd.Flags().StringVar(&html, "html", "", "write a report with plots to this file")
	cmd.Flags().BoolVar(&explain, "explain", false, "say how responses are counted once")
	return cmd
}

func groupingNames() (names []string) {
	for _, g := range query.Groupings() {
		names = append(names, string(g))
	}
	return names
}

// onlySession is the whole id of the session that a flag names, if it does.
func (c *cli) onlySession(d *database, flag string, id *string) error {
	if flag == "" {
		return nil
	}
	s, err := d.session(c.ctx, flag)
	if err != nil {
		return err
	}
	*id = s.meta.ID
	return s.Close()
}

func (c *cli) usage(d *database, o query.UsageOptions, r query.UsageReport, asCSV bool) error {
	switch {
	case c.json:
		c.out.answerJSON(usageJSON(d, o, r))
	case asCSV:
		return usageCSV(c.out, o, r)
	default:
		c.out.usage(o, r)
	}
	return nil
}

func usageJSON(d *database, o query.UsageOptions, r query.UsageReport) js.Value {
	rows := make([]js.Value, len(r.Rows))
	for i, row := range r.Rows {
		members := []js.Member{field("key", optional(row.Key))}
		if b := row.Branch; b != nil {
			members = append(members, field("session", js.Text(b.Session)), field("tip", js.Text(b.Tip)),
				field("from", optional(b.From)), field("leaf", js.Boolean(b.Live)))
		}
		rows[i] = js.Fields(append(members, splitMembers(row.Split)...)...)
	}
	return js.Fields(
		field("database", js.Text(d.path)),
		field("by", js.Text(string(o.By))),
		field("timezone", js.Text(zoneName(o.Zone, time.Now()))),
		field("since", optionalTime(o.Since)),
		field("until", optionalTime(o.Until)),
		field("rows", js.List(rows...)),
		field("total", js.Fields(splitMembers(r.Total)...)))
}

func optionalTime(t time.Time) js.Value {
	if t.IsZero() {
		return js.NullValue()
	}
	return js.Text(js.ISO(t))
}

func splitMembers(s query.Split) []js.Member {
	return []js.Member{
		field("total", spendJSON(s.Total())), field("live", spendJSON(s.Live)), field("abandoned", spendJSON(s.Abandoned)),
		field("compaction", spendJSON(s.Compaction)), field("branchSummary", spendJSON(s.BranchSummary)),
	}
}

func spendJSON(s query.Spend) js.Value {
	n := func(v int64) js.Value { return js.Num(float64(v)) }
	return js.Fields(
		field("responses", n(s.Responses)), field("input", n(s.Input)), field("output", n(s.Output)),
		field("cacheRead", n(s.CacheRead)), field("cacheWrite", n(s.CacheWrite)), field("tokens", n(s.Tokens())),
		field("cost", js.Num(s.Money())), field("cacheHitRate", js.Num(s.CacheHitRate())))
}

var usageColumns = []string{
	"responses", "input", "output", "cache_read", "cache_write", "cost",
	"live_cost", "abandoned_cost", "compaction_cost", "branch_summary_cost", "cache_hit_rate",
}

func usageCSV(o *output, options query.UsageOptions, r query.UsageReport) error {
	w := csv.NewWriter(o)
	w.Write(append([]string{string(options.By)}, usageColumns...))
	for _, row := range r.Rows {
		t := row.Total()
		key := row.Key
		if o.wraps {
			key = safe(key) // a terminal
		}
		record := []string{key}
		for _, n := range []int64{t.Responses, t.Input, t.Output, t.CacheRead, t.CacheWrite} {
			record = append(record, strconv.FormatInt(n, 10))
		}
		for _, s := range []query.Spend{t, row.Live, row.Abandoned, row.Compaction, row.BranchSummary} {
			record = append(record, strconv.FormatFloat(s.Money(), 'f', -1, 64))
		}
		w.Write(append(record, strconv.FormatFloat(t.CacheHitRate(), 'f', 4, 64)))
	}
	w.Flush()
	return w.Error()
}

// barWidth is how long the bar of the dearest row is.
const barWidth = 20

// usage writes a report as a table with bars.
func (o *output) usage(options query.UsageOptions, r query.UsageReport) {
	if len(r.Rows) == 0 {
		o.line("Nothing was spent.")
		return
	}
	name := string(options.By)
	switch options.By {
	case query.ByDay, query.ByWeek, query.ByMonth:
		name += " (" + zoneName(options.Zone, time.Now()) + ")"
	}
	g := newGrid(name, "responses", "tokens", "cached", "cost", "abandoned", "compactions", "summaries", "").numbers(1, 2, 3, 4, 5, 6, 7)
	most := 0.0
	for _, row := range r.Rows {
		most = max(most, row.Total().Money())
	}
	add := func(key string, s query.Split, bar string) {
		t := s.Total()
		g.add(key, grouped(float64(t.Responses)), grouped(float64(t.Tokens())), percent(t.CacheHitRate()),
			money(t.Money()), moneyOrNone(s.Abandoned), moneyOrNone(s.Compaction), moneyOrNone(s.BranchSummary), bar)
	}
	for _, row := range r.Rows {
		b := ""
		if most > 0 {
			b = bar(max(row.Total().Money(), 0)/most, barWidth)
		}
		add(usageKeyText(row), row.Split, b)
	}
	add("total", r.Total, "")
	g.write(o)
}

func usageKeyText(row query.UsageRow) string {
	switch b := row.Branch; {
	case b != nil && b.Live:
		return shownID(b.Session) + " " + shownID(b.Tip) + " (leaf)"
	case b != nil && b.From != "":
		return shownID(b.Session) + " " + shownID(b.Tip) + " from " + shownID(b.From)
	case b != nil:
		return shownID(b.Session) + " " + shownID(b.Tip)
	case row.Key == "":
		return "(none)"
	}
	return cutLeft(oneLine(row.Key), maxKey)
}

// maxKey is how wide a key may be.
const maxKey = 48

func percent(part float64) string { return strconv.Itoa(int(math.Round(100*part))) + "%" }

func moneyOrNone(s query.Spend) string {
	if s.Responses == 0 {
		return "-"
	}
	return money(s.Money())
}

func (c *cli) explainUsage(d *database) error {
	copies, err := d.UsageCopies(c.ctx)
	if err != nil {
		return err
	}
	if c.json {
		values := make([]js.Value, len(copies))
		for i, s := range copies {
			values[i] = js.Fields(field("session", js.Text(s.Session)), field("countsFor", js.Text(s.Owner)), field("spend", spendJSON(s.Spend)))
		}
		c.out.answerJSON(js.Fields(field("database", js.Text(d.path)), field("rules", js.Texts(usageRules...)), field("copies", js.List(values...))))
		return nil
	}
	for _, rule := range usageRules {
		for _, line := range lines(rule, c.out.width) {
			c.out.line(line)
		}
		c.out.line()
	}
	if len(copies) == 0 {
		c.out.line("No session holds a copy of what counts elsewhere.")
		return nil
	}
	g := newGrid("session", "counts for", "responses", "cost").numbers(2, 3)
	for _, s := range copies {
		g.add(shownID(s.Session), shownID(s.Owner), grouped(float64(s.Responses)), money(s.Money()))
	}
	g.write(c.out)
	return nil
}
