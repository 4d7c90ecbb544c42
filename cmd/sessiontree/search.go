package main

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/sessiontree/sessiontree/eventlog"
	"github.com/sessiontree/sessiontree/eventlog/js"
	"github.com/sessiontree/sessiontree/query"
)

const searchLong = `search finds entries by their texts, in all sessions of the database or in one:
what users and assistants said, summaries, names, labels, and the calls and
results of tools. --in takes some of these: message, summary, name, label, call,
result.

TEXT is taken as it is typed; no sign in it means anything. Entries are found that
have all its words, in any order; case, accents and the signs between words do
not matter, and a word with signs inside (wrong-book) has to stand together.
Chinese, Japanese, Korean and Thai are found by any part of a text, from one
character on. Put -- before a TEXT that begins with a dash.

--query takes TEXT for a query instead: "a phrase", begin*, AND, OR, NOT,
NEAR(a b, 5), and label: done. The newest entries come first, the best ones with
--rank. What forks share is shown once, in the session that it was said in; with
--session, all that is in the session.

--json:
{
  "database": the file
  "hits": [{"session", "entry" (ids), "type", "role" (of a message, or null),
            "timestamp", "kind" (what of the entry was found, as --in has it),
            "branch" ("live": on the way from the session's leaf to the root, or
            "abandoned"), "snippet": text, "marks": [[from, to], …] (of what was
            found in it, in characters)}]
  "next": what --before (or --skip, with --rank) takes to go on, or null at the
          end
}`

func (c *cli) searchCommand() *cobra.Command {
	var o query.SearchOptions
	var kinds []string
	var session string
	cmd := &cobra.Command{
		Use:   "search TEXT",
		Short: "Find entries by their texts",
		Long:  searchLong,
		Args: func(cmd *cobra.Command, args []string) error {
			if len(args) == 0 {
				return errors.New("search for what?")
			}
			for _, k := range kinds {
				if !slices.Contains(eventlog.TextKinds(), eventlog.TextKind(k)) {
					return fmt.Errorf("--in is of message, summary, name, label, call and result, not %q", k)
				}
				o.Kinds = append(o.Kinds, eventlog.TextKind(k))
			}
			if o.Limit < 1 || o.Skip < 0 || o.Before < 0 {
				return errors.New("--limit is a number from 1 up, --skip and --before from 0 up")
			}
			if o.Rank && o.Before > 0 || !o.Rank && o.Skip > 0 {
				return errors.New("--skip goes on with --rank, and --before without")
			}
			if cmd.Flags().Changed("session") {
				return checkSession(cmd, session)
			}
			return nil
		},
		RunE: func(_ *cobra.Command, args []string) error {
			o.Text = strings.Join(args, " ")
			return c.withDatabase(reads, func(d *database) error {
				if err := c.onlySession(d, session, &o.Session); err != nil {
					return err
				}
				hits, err := d.Search(c.ctx, o)
				if err != nil {
					return err
				}
				if c.json {
					c.out.answerJSON(searchJSON(d, o, hits))
				} else {
					c.out.hits(o, hits)
				}
				return nil
			})
		},
	}
	sessionFlag(cmd, &session)
	cmd.Flags().StringSliceVar(&kinds, "in", nil, "only in these: message, summary, name, label, call, result")
	cmd.Flags().BoolVar(&o.Syntax, "query", false, "take TEXT for a query")
	cmd.Flags().BoolVar(&o.Rank, "rank", false, "the best first, not the newest")
	cmd.Flags().IntVar(&o.Limit, "limit", 20, "how many at most")
	cmd.Flags().Int64Var(&o.Before, "before", 0, "go on behind this place")
	cmd.Flags().IntVar(&o.Skip, "skip", 0, "with --rank, go on behind this place")
	return cmd
}

// nextPage is where a search goes on, 0 at its end.
func nextPage(o query.SearchOptions, hits []query.Hit) int64 {
	if len(hits) < o.Limit {
		return 0
	}
	return hits[len(hits)-1].Cursor
}

func searchJSON(d *database, o query.SearchOptions, hits []query.Hit) js.Value {
	next := js.NullValue()
	if n := nextPage(o, hits); n > 0 {
		next = integer(n)
	}
	return js.Fields(
		field("database", js.Text(d.path)),
		field("hits", list(hits, func(h query.Hit) js.Value {
			return js.Fields(
				field("session", js.Text(h.Session)),
				field("entry", js.Text(h.Entry)),
				field("type", js.Text(string(h.Type))),
				field("role", optional(h.Role)),
				field("timestamp", js.Text(h.At)),
				field("kind", js.Text(string(h.Kind))),
				field("branch", js.Text(branchWord(h))),
				field("snippet", js.Text(h.Snippet)),
				field("marks", list(h.Marks, func(m [2]int) js.Value {
					from := len([]rune(h.Snippet[:m[0]]))
					return js.List(number(from), number(from+len([]rune(h.Snippet[m[0]:m[1]]))))
				})))
		})),
		field("next", next))
}

func branchWord(h query.Hit) string {
	if h.Live {
		return "live"
	}
	return "abandoned"
}

// hits writes what was found, two lines each.
func (o *output) hits(options query.SearchOptions, hits []query.Hit) {
	if len(hits) == 0 {
		o.line("Nothing was found.")
		return
	}
	for _, h := range hits {
		what := string(h.Kind)
		if h.Role != "" && h.Kind == eventlog.TextMessage {
			what = oneLine(h.Role)
		}
		branch := o.paint(green, branchWord(h))
		if !h.Live {
			branch = o.paint(dim, branchWord(h))
		}
		o.line(o.paint(bold, shownID(h.Session)), " ", shownID(h.Entry), "  ", what, "  ", branch, "  ", o.paint(dim, oneLine(h.At)))
		o.line("    ", o.marked(h))
	}
	if next := nextPage(options, hits); next > 0 {
		flag := "--before "
		if options.Rank {
			flag = "--skip "
		}
		o.line(o.paint(dim, "more with "+flag+strconv.FormatInt(next, 10)))
	}
}

// marked is a hit's snippet in one line, with what was found in it.
func (o *output) marked(h query.Hit) string {
	var b strings.Builder
	left := o.width - 4
	write := func(text string, s style) {
		text = safe(blankFolded(text))
		if w := cells.StringWidth(text); w > left && o.wraps {
			text = cells.Truncate(text, max(left, 0), "…")
		}
		left -= cells.StringWidth(text)
		b.WriteString(o.paint(s, text))
	}
	at := 0
	for _, m := range h.Marks {
		if m[0] < at {
			continue
		}
		write(h.Snippet[at:m[0]], plain)
		write(h.Snippet[m[0]:m[1]], strong)
		at = m[1]
	}
	write(h.Snippet[at:], plain)
	return b.String()
}

// blankFolded makes each run of white space one blank.
func blankFolded(s string) string {
	text := folded(s)
	if s != "" && strings.ContainsAny(s[:1], " \t\r\n") {
		text = " " + text
	}
	if s != "" && strings.ContainsAny(s[len(s)-1:], " \t\r\n") && text != " " {
		text += " "
	}
	return text
}
