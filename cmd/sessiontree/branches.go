package main

import (
	"time"

	"github.com/spf13/cobra"

	"github.com/sessiontree/sessiontree/eventlog/js"
	"github.com/sessiontree/sessiontree/query"
)

const branchesLong = `branches says how sessions branched: those that did, with their forks, depth,
branches that were given up, and what was spent on these, the most first. With
--session it lists the branches of one: its last entry, the entry at which people
turned back for it, and what it has for itself after that. The branch of the leaf
has all of its way up to the root; every other what it does not share with that,
or with a later one, so the parts add up to the whole. Spend that counts for
another session (see "usage --explain") is not repeated.

` + windowHelp + `

--json, with --session:
{
  "database": the file
  "session", "forkedFrom" (ids, or null), "forks", "depth"
  "branches": [{"tip", "from" (ids, or null), "leaf" (boolean), "entries",
                "total", "live", "abandoned", "compaction", "branchSummary": as
                in "usage --json"}]
}
--json, without:
{
  "database": the file
  "sessions": [{"session", "forks", "depth", "branches", "abandonedBranches",
                "total", "live", "abandoned", "compaction", "branchSummary"}]
}`

func (c *cli) branchesCommand() *cobra.Command {
	return c.workCommand("branches", "Say how sessions branched, and what was given up", branchesLong, func(d *database, o query.WorkOptions, _ *time.Location) error {
		if o.Session != "" {
			return c.sessionBranches(d, o.Session)
		}
		return c.allBranches(d, o)
	})
}

func (c *cli) sessionBranches(d *database, session string) error {
	r, err := d.Branches(c.ctx, session)
	if err != nil {
		return err
	}
	if c.json {
		c.out.answerJSON(js.Fields(
			field("database", js.Text(d.path)),
			field("session", js.Text(r.Session)),
			field("forkedFrom", optional(r.Source)),
			field("forks", integer(r.Forks)),
			field("depth", integer(r.Depth)),
			field("branches", list(r.Branches, func(b query.BranchUsage) js.Value {
				return js.Fields(append([]js.Member{
					field("tip", js.Text(b.Tip)), field("from", optional(b.From)), field("leaf", js.Boolean(b.BranchSpend.Live)), field("entries", integer(b.Entries)),
				}, splitMembers(b.Split)...)...)
			}))))
		return nil
	}
	c.out.line(shownID(r.Session), ": ", count(len(r.Branches), "branch"), ", depth ", grouped(float64(r.Depth)), ", ", count(int(r.Forks), "fork"))
	g := newGrid("branch", "turned back at", "entries", "responses", "tokens", "cost", "").numbers(2, 3, 4, 5)
	for _, b := range r.Branches {
		t, mark := b.Total(), "abandoned"
		if b.BranchSpend.Live {
			mark = "← leaf"
		}
		g.add(shownID(b.Tip), shownID(b.From), grouped(float64(b.Entries)), grouped(float64(t.Responses)), grouped(float64(t.Tokens())), money(t.Money()), mark)
	}
	g.write(c.out)
	return nil
}

func (c *cli) allBranches(d *database, o query.WorkOptions) error {
	all, err := d.AllBranches(c.ctx, o)
	if err != nil {
		return err
	}
	if c.json {
		c.out.answerJSON(js.Fields(
			field("database", js.Text(d.path)),
			field("sessions", list(all, func(b query.SessionBranches) js.Value {
				return js.Fields(append([]js.Member{
					field("session", js.Text(b.Session)), field("forks", integer(b.Forks)), field("depth", integer(b.Depth)),
					field("branches", integer(b.Branches)), field("abandonedBranches", integer(b.GivenUp)),
				}, splitMembers(b.Split)...)...)
			}))))
		return nil
	}
	if len(all) == 0 {
		c.out.line("No session branched.")
		return nil
	}
	g := newGrid("session", "depth", "branches", "given up", "forks", "cost", "abandoned").numbers(1, 2, 3, 4, 5, 6)
	var total query.Split
	for i, b := range all {
		total.Add(b.Split)
		if i < o.Limit {
			n := func(v int64) string { return grouped(float64(v)) }
			g.add(shownID(b.Session), n(b.Depth), n(b.Branches), n(b.GivenUp), n(b.Forks), money(b.Total().Money()), moneyOrNone(b.Abandoned))
		}
	}
	g.add(count(len(all), "session"), "", "", "", "", money(total.Total().Money()), moneyOrNone(total.Abandoned))
	g.write(c.out)
	return nil
}

const compactionsLong = `compactions lists the compactions, the latest first: the tokens of the context
before, how many entries (or messages, where they are kept by value) it kept, and
what the summary cost.

` + windowHelp + `

--json:
{
  "database": the file
  "count": how many there are, of which a text shows the latest
  "compactions": [{"session", "entry" (ids), "at", "tokensBefore", "kept" (or
                   null), "byValue" (boolean), "spend" (as in "usage --json", or
                   null where the entry does not say)}]
}`

func (c *cli) compactionsCommand() *cobra.Command {
	return c.workCommand("compactions", "List compactions, and what they kept", compactionsLong, c.compactions)
}

func (c *cli) compactions(d *database, o query.WorkOptions, zone *time.Location) error {
	all, err := d.Compactions(c.ctx, o)
	if err != nil {
		return err
	}
	if c.json {
		c.out.answerJSON(js.Fields(
			field("database", js.Text(d.path)),
			field("count", number(len(all))),
			field("compactions", list(all, compactionJSON))))
		return nil
	}
	if len(all) == 0 {
		c.out.line("No compactions.")
		return nil
	}
	g := newGrid("session", "entry", "at", "tokens before", "kept", "cost").numbers(3, 4, 5)
	tokens := int64(0)
	var spend query.Spend
	for i, p := range all {
		tokens += p.TokensBefore
		spend.Add(p.Spend)
		if i >= o.Limit {
			continue
		}
		kept := grouped(float64(p.Kept))
		if p.Kept < 0 {
			kept = "?"
		}
		g.add(shownID(p.Session), shownID(p.Entry), p.At.In(zone).Format("2006-01-02 15:04"), grouped(float64(p.TokensBefore)), kept, moneyOrNone(p.Spend))
	}
	g.add(count(len(all), "compaction"), "", "on average", grouped(float64(tokens/int64(len(all)))), "", moneyOrNone(spend))
	g.write(c.out)
	return nil
}

func compactionJSON(p query.Compaction) js.Value {
	kept, spend := integer(p.Kept), js.NullValue()
	if p.Kept < 0 {
		kept = js.NullValue()
	}
	if p.Responses > 0 {
		spend = spendJSON(p.Spend)
	}
	return js.Fields(field("session", js.Text(p.Session)), field("entry", js.Text(p.Entry)), field("at", js.Text(js.ISO(p.At))),
		field("tokensBefore", integer(p.TokensBefore)), field("kept", kept), field("byValue", js.Boolean(p.ByValue)), field("spend", spend))
}
