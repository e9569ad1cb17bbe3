package main

import (
	"github.com/spf13/cobra"

	"github.com/geniemq/geniemq/cmd/geniemq/planned"
	"github.com/geniemq/geniemq/index/lsh/planner"
)

func (c *cli) planCommand() *cobra.Command {
	var epsilon, delta float64
	var objects uint64
	var plot string
	cmd := &cobra.Command{
		Use:   "plan",
		Short: "How many hash functions a column of vectors needs",
		Long: `Plan says how many hash functions m make the estimate c/m of a similarity s right to
within epsilon with probability 1 - delta: by GENIE's Theorem 4.1, whatever s is, and
by its Eqn 9 for each s (Figure 8). Both are about one object that was chosen before it
was counted. For the hits of a query, which were chosen because of their counts, the error
is larger: it is printed too. It needs no index and no data.`,
		Example: `  geniemq plan --epsilon 0.06 --delta 0.06
  geniemq plan --epsilon 0.1 --delta 0.05 --plot functions.svg
  geniemq plan --json | jq .eqn_9.largest`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := c.environment(cmd); err != nil {
				return err
			}
			if err := planner.Check(epsilon, delta); err != nil {
				return usageError{err}
			}
			if objects == 0 {
				return usagef("--objects 0: take at least 1")
			}
			report := planned.For(epsilon, delta, objects)
			if plot != "" {
				if err := report.Draw(plot); err != nil {
					return err
				}
			}
			return c.report(cmd, report, report.Table)
		},
	}
	cmd.Flags().Float64Var(&epsilon, "epsilon", .06, "how far the estimate may be off")
	cmd.Flags().Float64Var(&delta, "delta", .06, "how often it may be off further")
	cmd.Flags().Uint64Var(&objects, "objects", 1_000_000, "objects of the index, for the error of hits")
	cmd.Flags().StringVar(&plot, "plot", "", "also draw m against s into this SVG file")
	reportFlag(cmd)
	return cmd
}
