package main

import (
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	treeshape "github.com/sessiontree/sessiontree/bench/shape"
)

func (c *cli) benchGenCommand() *cobra.Command {
	var name, size string
	var seed uint64
	cmd := &cobra.Command{
		Use:   "gen",
		Short: "Write a drawn tree as a session file",
		Long:  genLong(),
		Args:  cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			s, err := treeshape.Find(name)
			if err != nil {
				return usagef(cmd, "%v", err)
			}
			n, err := parseSize(size)
			if err != nil {
				return usagef(cmd, "%v", err)
			}
			return s.Write(c.out, n, seed)
		},
	}
	cmd.Flags().StringVar(&name, "shape", "realistic", "the shape")
	cmd.Flags().StringVar(&size, "size", "1k", "the number of entries, such as 500, 10k or 1M")
	cmd.Flags().Uint64Var(&seed, "seed", 1, "draws the tree")
	return cmd
}

func genLong() string {
	var b strings.Builder
	b.WriteString("gen writes a tree as bench draws it to stdout, as a session file of version 3,\nwhatever --json says. The same shape, size and seed give the same bytes.\n\nShapes:\n")
	for _, s := range treeshape.All() {
		fmt.Fprintf(&b, "  %-10s %s\n", s.Name, s.About)
	}
	return strings.TrimRight(b.String(), "\n")
}
