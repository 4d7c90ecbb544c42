package main

import (
	"encoding/json"
	"os"
	"os/signal"
	"syscall"

	"github.com/spf13/cobra"

	counts "github.com/sessiontree/sessiontree/bench/check"
	"github.com/sessiontree/sessiontree/bench/report"
)

const checkLong = `check counts what the SQLite store does, and fails where that is more than it
may be: pages asked for and written, rows written, bytes on the disk, allocations,
on trees of several shapes and at least four sizes, and the exponents with which
they grow. No time is measured: the answer is the same on every machine.

--json:
{
  "seed":    number
  "figures": [{"operation", "shape", "metric", "perEntry", "sizes",
             "values": one a size, "exponent", "maxExponent",
             "max": of the largest tree, "problem": text, or missing}]
}`

func (c *cli) benchCheckCommand() *cobra.Command {
	var shapes, sizes []string
	var config counts.Config
	cmd := &cobra.Command{
		Use:   "check",
		Short: "Count what the SQLite store does, and fail where it is too much",
		Long:  checkLong,
		Args:  cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			config.Shapes, config.Sizes = shapes, nil
			for _, text := range sizes {
				n, err := parseSize(text)
				if err != nil {
					return usagef(cmd, "%v", err)
				}
				config.Sizes = append(config.Sizes, n)
			}
			ctx, stop := signal.NotifyContext(c.ctx, os.Interrupt, syscall.SIGTERM)
			defer stop()
			r, err := counts.Run(ctx, config)
			if err != nil {
				return err
			}
			if c.json {
				err = json.NewEncoder(c.out).Encode(r)
			} else {
				err = report.Check(c.out, r)
			}
			if err == nil && len(r.Problems()) > 0 {
				err = errFailed
			}
			return err
		},
	}
	flags := cmd.Flags()
	flags.StringSliceVar(&shapes, "shapes", nil, "shapes of trees (default chain,comb,walk,realistic)")
	flags.StringSliceVar(&sizes, "sizes", nil, "entries in a tree, four sizes or more (default 500,2k,8k,24k)")
	flags.Uint64Var(&config.Seed, "seed", 1, "draws the trees and chooses the entries")
	flags.StringVar(&config.Dir, "dir", "", "where databases are made and removed (default the system's folder for temporary files)")
	return cmd
}
