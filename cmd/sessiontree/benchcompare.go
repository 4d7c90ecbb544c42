package main

import (
	"encoding/json"
	"fmt"
	"os"

	"github.com/spf13/cobra"

	"github.com/sessiontree/sessiontree/bench"
	"github.com/sessiontree/sessiontree/bench/report"
)

const compareLong = `compare holds two results of bench (--out or --json) against each other, figure by
figure: the ratio to the limit where there is one, else the value. A figure is
better or worse when it moved by more than a tenth and the intervals lie apart;
else it is the same, or unsure. It is no failure that a figure is worse.

--json:
{
  "sameMachine": true or false
  "changes": [{"operation", "backend", "shape", "size", "of": "ratio" or "value",
             "unit", "before": estimate, "after": estimate, "factor",
             "verdict": "same", "better", "worse" or "unsure"}]
}`

func (c *cli) benchCompareCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "compare BEFORE AFTER",
		Short: "Hold two results of bench against each other",
		Long:  compareLong,
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) != 2 {
				return fmt.Errorf("two files with results, not %d", len(args))
			}
			return nil
		},
		RunE: func(_ *cobra.Command, args []string) error {
			before, err := readResult(args[0])
			if err != nil {
				return err
			}
			after, err := readResult(args[1])
			if err != nil {
				return err
			}
			changes, err := bench.Compare(before, after)
			if err != nil {
				return err
			}
			if !c.json {
				return report.Changes(c.out, before, after, changes)
			}
			if changes == nil {
				changes = []bench.Change{}
			}
			return json.NewEncoder(c.out).Encode(struct {
				SameMachine bool           `json:"sameMachine"`
				Changes     []bench.Change `json:"changes"`
			}{bench.SameMachine(before, after), changes})
		},
	}
}

func readResult(path string) (*bench.Result, error) {
	file, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	r, err := bench.ReadResult(file)
	return r, fileError(path, err)
}
