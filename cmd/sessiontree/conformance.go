package main

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/sessiontree/sessiontree/eventlog"
	"github.com/sessiontree/sessiontree/eventlog/conformance"
	"github.com/sessiontree/sessiontree/eventlog/conformance/backends"
	"github.com/sessiontree/sessiontree/eventlog/js"
	"github.com/sessiontree/sessiontree/sqlitestore/sqlitestoretest"
)

const conformanceLong = `conformance runs a backend against recorded answers of Pi: those of its agent
core and of its coding agent that are packed into this program (the latter
under coding-agent/), or those in DIR, a folder with a folder for each group of
cases. Which program answered, the "reference" of each case says. It prints
each answer that is wrong, those that differ from Pi's on purpose, by rule, and
last the line "N passed, N failed". The exit code is 1 if a case failed.

--filter GLOB runs some of the cases: the pattern is matched against a case's
group (handmade), its name (plan-a-plan-b), and both (handmade/plan-*).

--json:
{
  "backend": name
  "vectors": DIR or null for the packed ones
  "passed", "failed", "notApplicable": numbers of cases
  "byRule":  {rule: number of answers}
  "cases":   [{"name", "status" ("passed", "failed" or "not_applicable"),
             "reason" (why it is not applicable, or null),
             "failures": [{"field", "want", "got"}],
             "deviations": [{"rule", "field"}]}]
}`

// oneOf lists names as a sentence does.
func oneOf(names []string) string {
	last := len(names) - 1
	return strings.Join(names[:last], ", ") + " or " + names[last]
}

func (c *cli) conformanceCommand() *cobra.Command {
	all := append(backends.All(), sqlitestoretest.Backend())
	var names []string
	for _, b := range all {
		names = append(names, b.Name)
	}
	var name, filter string
	cmd := &cobra.Command{
		Use:   "conformance [DIR]",
		Short: "Compare a backend's answers with Pi's",
		Long:  conformanceLong,
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) > 1 {
				return fmt.Errorf("one folder of vectors, not %d", len(args))
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			i := slices.Index(names, name)
			if i < 0 {
				return usagef(cmd, "--backend is %s, not %q", oneOf(names), name)
			}
			options := conformance.Options{}
			if filter != "" {
				if _, err := path.Match(filter, ""); err != nil {
					return usagef(cmd, "--filter %q is no pattern", filter)
				}
				options.Only = func(name string) bool { return matches(filter, name) }
			}
			dir := ""
			if len(args) > 0 {
				dir = args[0]
				if info, err := os.Stat(dir); errors.Is(err, fs.ErrNotExist) {
					return eventlog.Errorf(eventlog.NotFound, "%s: no such folder", dir)
				} else if err != nil {
					return err
				} else if !info.IsDir() {
					return eventlog.Errorf(eventlog.NotFound, "%s is no folder", dir)
				}
			}
			report, err := c.conform(dir, all[i], options)
			if err != nil {
				return err
			}
			if len(report.Cases) == 0 {
				return noCases(dir, filter)
			}
			if c.json {
				c.out.answerJSON(reportJSON(report, dir))
			} else if err := report.Write(c.out); err != nil {
				return err
			}
			if report.Failed() > 0 {
				return errFailed
			}
			return nil
		},
	}
	cmd.Flags().StringVar(&name, "backend", "jsonl", oneOf(names))
	cmd.Flags().StringVar(&filter, "filter", "", "run only the cases that the glob pattern matches")
	return cmd
}

// conform runs the vectors of a folder, or both packed sets.
func (c *cli) conform(dir string, b conformance.Backend, o conformance.Options) (*conformance.Report, error) {
	if dir != "" {
		if above, err := filepath.Abs(dir); err == nil {
			o.Beside = os.DirFS(filepath.Dir(above))
		}
		return conformance.Run(c.ctx, os.DirFS(dir), b, o)
	}
	report, err := conformance.Run(c.ctx, conformance.Vectors(), b, o)
	if err != nil {
		return nil, err
	}
	agent, err := conformance.Run(c.ctx, conformance.AgentVectors(), b, o)
	if err != nil {
		return nil, err
	}
	for _, k := range agent.Cases {
		k.Name = "coding-agent/" + k.Name
		report.Cases = append(report.Cases, k)
	}
	return report, nil
}

// noCases is an error: a run of nothing proves nothing.
func noCases(dir, filter string) error {
	where := "the packed vectors"
	if dir != "" {
		where = dir
	}
	if filter != "" {
		return eventlog.Errorf(eventlog.NotFound, "no case of %s matches %q", where, filter)
	}
	return eventlog.Errorf(eventlog.NotFound, "%s holds no case", where)
}

// matches says whether a case is meant by a pattern that is known to be one.
func matches(pattern, name string) bool {
	for _, s := range []string{name, path.Dir(name), path.Base(name)} {
		if ok, _ := path.Match(pattern, s); ok {
			return true
		}
	}
	return false
}

func reportJSON(r *conformance.Report, dir string) js.Value {
	notApplicable := 0
	cases := make([]js.Value, len(r.Cases))
	for i, k := range r.Cases {
		status := "passed"
		switch {
		case k.NotApplicable != "":
			status = "not_applicable"
			notApplicable++
		case len(k.Failures) > 0:
			status = "failed"
		}
		failures := make([]js.Value, len(k.Failures))
		for j, f := range k.Failures {
			failures[j] = js.Fields(field("field", js.Text(f.Field)), field("want", js.Text(f.Want)), field("got", js.Text(f.Got)))
		}
		deviations := make([]js.Value, len(k.Deviations))
		for j, d := range k.Deviations {
			deviations[j] = js.Fields(field("rule", js.Text(string(d.Rule))), field("field", js.Text(d.Field)))
		}
		cases[i] = js.Fields(
			field("name", js.Text(k.Name)),
			field("status", js.Text(status)),
			field("reason", optional(k.NotApplicable)),
			field("failures", js.List(failures...)),
			field("deviations", js.List(deviations...)))
	}
	by := r.ByRule()
	var rules []js.Member
	for _, rule := range conformance.Rules() {
		if by[rule] > 0 {
			rules = append(rules, field(string(rule), number(by[rule])))
		}
	}
	return js.Fields(
		field("backend", js.Text(r.Backend)),
		field("vectors", optional(dir)),
		field("passed", number(r.Passed())),
		field("failed", number(r.Failed())),
		field("notApplicable", number(notApplicable)),
		field("byRule", js.Fields(rules...)),
		field("cases", js.List(cases...)))
}
