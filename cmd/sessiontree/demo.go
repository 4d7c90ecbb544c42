package main

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/sessiontree/sessiontree/eventlog"
	"github.com/sessiontree/sessiontree/eventlog/js"
	"github.com/sessiontree/sessiontree/sqlitestore"
)

const demoLong = `demo plays a short session and shows what is left of it: a user asks, plan A is
tried and fails, the user goes back to the question with a summary of what was
left, and plan B works. It makes a real database, to look at with the other
commands, in a folder of its own or in --dir; ids and times are always the same.

--json:
{
  "database": its file
  "session": the id of the session in it
  "paths":   {"a": [id, …], "b": [id, …]}
  "tree":    as "tree --json"
  "context": as "context --json"
  "stats":   as "stats --json"
}`

const (
	demoFile    = "plan-a-plan-b.db"
	demoSession = "0195561c-8a40-7d31-9c55-6f2b7c1e0a42"
)

func (c *cli) demoCommand() *cobra.Command {
	var dir string
	cmd := &cobra.Command{
		Use:   "demo",
		Short: "Play a session that goes back and tries another way",
		Long:  demoLong,
		Args:  cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error {
			var err error
			if dir == "" {
				if dir, err = os.MkdirTemp("", "sessiontree-demo-"); err != nil {
					return err
				}
			} else if err = os.MkdirAll(dir, 0o700); err != nil {
				return err
			}
			c.db = filepath.Join(dir, demoFile)
			d, err := playDemo(c.ctx, c.db)
			if err != nil {
				return fileError(c.db, err)
			}
			return c.withDatabase(reads, func(db *database) error {
				s, err := db.session(c.ctx, demoSession)
				if err != nil {
					return err
				}
				defer s.Close()
				if c.json {
					return c.demoJSON(s, d)
				}
				return c.demoText(s, d)
			})
		},
	}
	cmd.Flags().StringVar(&dir, "dir", "", "the folder for the database (default a new temporary one)")
	return cmd
}

// demo is a session while it is played, and what its teller has to know.
type demo struct {
	ctx     context.Context
	session *eventlog.Session
	now     func() time.Time
	err     error // the first that occurred

	question   string // the entry that both plans start from
	tipA, tipB string
	editorText string // what the user got back to edit
}

const (
	demoProvider = "acme"
	demoModel    = "coder-1"
)

// playDemo makes the database and its session. Its clock and its ids are fixed, so that the
// output can be quoted.
func playDemo(ctx context.Context, path string) (*demo, error) {
	now := time.Date(2026, time.March, 2, 9, 0, 0, 0, time.UTC)
	random := rand.New(rand.NewPCG(2026, 3))
	source := eventlog.Source{
		Now:   func() time.Time { now = now.Add(7 * time.Second); return now },
		NewID: func() string { return fmt.Sprintf("%08x", random.Uint32()) },
	}
	store, err := sqlitestore.Open(ctx, path, sqlitestore.Options{Source: source})
	if err != nil {
		return nil, err
	}
	d := &demo{ctx: ctx, now: func() time.Time { return now }}
	if d.session, d.err = store.Create(ctx, eventlog.CreateOptions{ID: demoSession, CWD: "/home/ada/shop"}); d.err == nil {
		d.play()
	}
	return d, errors.Join(d.err, store.Close(context.WithoutCancel(ctx)))
}

func (d *demo) play() {
	d.append(eventlog.NameDraft("Faster CSV import"))
	d.user("The CSV import takes 90 seconds. Make it faster.")
	d.question = d.assistant(d.usage(1840, 96, 0), said("Two plans. A: four workers in parallel. B: insert in batches, one transaction for each thousand rows. Which one?"))

	d.user("Try plan A.")
	d.assistant(d.usage(310, 420, 1840),
		thought("Rows are independent, so the workers need no lock."),
		said("Splitting the file among four workers."),
		called("toolu_01", "edit", field("path", js.Text("import/csv.go")), field("old", js.Text("for row := range rows {")), field("new", js.Text("for w := range 4 { go work(w) }"))))
	d.result("toolu_01", "edit", "Edited import/csv.go (+31 -8)", false)
	d.assistant(d.usage(180, 60, 2150), called("toolu_02", "bash", field("command", js.Text("go test ./import"))))
	d.result("toolu_02", "bash", "--- FAIL: TestImportOrder (81.20s)\n    csv_test.go:44: row 3 came before row 2", true)
	d.tipA = d.assistant(d.usage(220, 88, 2330), said("81 seconds, and rows out of order: the workers all wait for the database. Plan A is a dead end."))
	d.append(eventlog.LabelDraft(d.tipA, js.Text("dead end")))

	d.goBack()

	d.user("Try plan B.")
	d.assistant(d.usage(390, 350, 1840),
		said("Inserting in batches."),
		called("toolu_03", "edit", field("path", js.Text("import/csv.go")), field("old", js.Text("db.Insert(row)")), field("new", js.Text("batch.Add(row)"))))
	d.result("toolu_03", "edit", "Edited import/csv.go (+12 -3)", false)
	d.assistant(d.usage(160, 60, 2230), called("toolu_04", "bash", field("command", js.Text("go test ./import"))))
	d.result("toolu_04", "bash", "ok  \tshop/import\t7.104s", false)
	done := d.assistant(d.usage(140, 64, 2390), said("7 seconds instead of 90, and all tests pass."))
	d.append(eventlog.LabelDraft(done, js.Text("works")))
	d.user("Commit it.")
	d.tipB = d.assistant(d.usage(90, 40, 2530), said("Committed as 3f2c1a9."))
}

// goBack does what a tree view does when its user picks a message: the leaf goes
// to before it, its text comes back to be edited, and what is left behind is
// kept as a summary. A host asks a model for it; here it is canned.
func (d *demo) goBack() {
	if d.err != nil {
		return
	}
	var asked string
	for e, err := range d.session.Entries(d.ctx, 0, eventlog.All) {
		if err == nil && e.Parent() == eventlog.At(d.question) {
			asked = e.ID()
		}
	}
	done, err := d.session.Navigate(d.ctx, asked, eventlog.NavigateOptions{
		Summarize: true,
		Summarizer: func(context.Context, eventlog.SummaryRequest) (eventlog.Summary, error) {
			return eventlog.Summary{
				Text:    "Plan A (four workers) was tried in import/csv.go: 81 s instead of 90, and rows came out of order (TestImportOrder). The database is what is slow, not the parsing.",
				Details: js.Fields(field("readFiles", js.List()), field("modifiedFiles", js.Texts("import/csv.go"))),
				Usage:   d.usage(900, 110, 0),
			}, nil
		},
	})
	if err != nil {
		d.err = err
		return
	}
	d.editorText = *done.EditorText
}

func (d *demo) append(draft eventlog.Draft) string {
	if d.err != nil {
		return ""
	}
	entries, err := d.session.Append(d.ctx, draft)
	if err != nil {
		d.err = err
		return ""
	}
	return entries[0].ID()
}

func (d *demo) user(text string) string {
	return d.append(eventlog.MessageDraft(eventlog.UserMessage(text, d.now())))
}

func (d *demo) stamp() js.Member { return field("timestamp", js.Num(float64(d.now().UnixMilli()))) }

func (d *demo) assistant(usage js.Value, blocks ...js.Value) string {
	stop := "stop"
	if last := blocks[len(blocks)-1]; last.Get("type").Is("toolCall") {
		stop = "toolUse"
	}
	return d.append(eventlog.MessageDraft(eventlog.Message{Value: js.Fields(
		field("role", js.Text(eventlog.RoleAssistant)),
		field("content", js.List(blocks...)),
		field("api", js.Text("acme-messages")),
		field("provider", js.Text(demoProvider)),
		field("model", js.Text(demoModel)),
		field("usage", usage),
		field("stopReason", js.Text(stop)),
		d.stamp())}))
}

func (d *demo) result(call, tool, text string, failed bool) string {
	return d.append(eventlog.MessageDraft(eventlog.Message{Value: js.Fields(
		field("role", js.Text(eventlog.RoleToolResult)),
		field("toolCallId", js.Text(call)),
		field("toolName", js.Text(tool)),
		field("content", js.List(said(text))),
		field("isError", js.Boolean(failed)),
		d.stamp())}))
}

// usage is what a response cost, at three dollars a million tokens in, fifteen
// out, and a tenth for what the provider's cache held.
func (d *demo) usage(input, output, cached float64) js.Value {
	price := func(tokens, perMillion float64) js.Value { return js.Num(tokens * perMillion / 1e6) }
	return js.Fields(
		field("input", js.Num(input)), field("output", js.Num(output)),
		field("cacheRead", js.Num(cached)), field("cacheWrite", js.Num(0)),
		field("totalTokens", js.Num(input+output+cached)),
		field("cost", js.Fields(
			field("input", price(input, 3)), field("output", price(output, 15)),
			field("cacheRead", price(cached, 0.3)), field("cacheWrite", js.Num(0)),
			field("total", js.Num((input*3+output*15+cached*0.3)/1e6)))))
}

func said(text string) js.Value {
	return js.Fields(field("type", js.Text("text")), field("text", js.Text(text)))
}

func thought(text string) js.Value {
	return js.Fields(field("type", js.Text("thinking")), field("thinking", js.Text(text)))
}

func called(id, name string, arguments ...js.Member) js.Value {
	return js.Fields(field("type", js.Text("toolCall")), field("id", js.Text(id)), field("name", js.Text(name)), field("arguments", js.Fields(arguments...)))
}

// demoAnswers is what all of the demo's output is made from.
type demoAnswers struct {
	pathA, pathB []eventlog.Entry
	tree         *treeView
	context      eventlog.Context
	stats        *statsView
}

func (c *cli) askDemo(s *source, d *demo) (a demoAnswers, err error) {
	if a.pathA, err = s.Branch(c.ctx, eventlog.At(d.tipA)); err != nil {
		return a, err
	}
	if a.pathB, err = s.Branch(c.ctx, eventlog.None()); err != nil {
		return a, err
	}
	if a.tree, err = c.viewTree(s); err != nil {
		return a, err
	}
	if a.context, err = s.BuildContext(c.ctx, eventlog.None()); err != nil {
		return a, err
	}
	a.stats, err = c.count(s)
	return a, err
}

func (c *cli) demoText(s *source, d *demo) error {
	a, err := c.askDemo(s, d)
	if err != nil {
		return err
	}
	o := c.out
	if !o.wraps { // to be quoted: what a plain terminal shows
		o.width, o.wraps = 80, true
	}
	o.line(o.paint(heading, "A session is a tree"))
	o.line()
	for _, p := range []string{
		"An agent was asked to make an import faster. Plan A failed. The user went back to the question, " +
			"kept a summary of what was learned, and plan B worked. This is the session, for each of the commands below:",
	} {
		o.paragraph(p)
	}
	o.line()
	o.line("    --db ", safe(s.database), " --session ", demoSession[:8])

	o.section("Two paths from one question", "branch --from "+d.tipA+"   and   branch")
	o.line(o.paint(bold, "Plan A"), ", abandoned, still there:")
	if err := c.branchText(s, a.pathA); err != nil {
		return err
	}
	o.line()
	o.line(o.paint(bold, "Plan B"), ", where the conversation goes on:")
	if err := c.branchText(s, a.pathB); err != nil {
		return err
	}

	o.section("The tree", "tree --all")
	c.treeText(a.tree, true, 0)

	o.section("What the model sees now", "context")
	c.contextText(&source{}, a.context)

	o.section("What it came to", "stats")
	c.statsText(a.stats)
	o.line()
	o.paragraph(fmt.Sprintf("Going back moved one pointer: a leaf entry and the summary were appended, and %q was handed back to be edited. "+
		"Plan A is untouched, in the database and in the totals; the model sees the summary in its place.", d.editorText))
	return nil
}

// section begins a part of the demo, with the command that shows it.
func (o *output) section(title, command string) {
	o.line()
	rule := strings.Repeat("─", max(o.width-cells.StringWidth(title)-4, 0))
	o.line(o.paint(heading, "── "+title+" "+rule))
	o.line(o.paint(dim, "   sessiontree "+command))
	o.line()
}

// paragraph writes a text of the program's own, wrapped.
func (o *output) paragraph(text string) {
	for _, line := range lines(text, o.width) {
		o.line(line)
	}
}

func (c *cli) demoJSON(s *source, d *demo) error {
	a, err := c.askDemo(s, d)
	if err != nil {
		return err
	}
	ids := func(entries []eventlog.Entry) js.Value {
		list := make([]string, len(entries))
		for i, e := range entries {
			list[i] = e.ID()
		}
		return js.Texts(list...)
	}
	c.out.answerJSON(js.Fields(
		field("database", js.Text(s.database)),
		field("session", js.Text(demoSession)),
		field("paths", js.Fields(field("a", ids(a.pathA)), field("b", ids(a.pathB)))),
		field("tree", a.tree.json(0)),
		field("context", contextJSON(s, a.pathB, a.context)),
		field("stats", a.stats.json())))
	return nil
}
