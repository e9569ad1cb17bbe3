package main

import (
	"fmt"
	"path/filepath"

	"github.com/spf13/cobra"

	"github.com/geniemq/geniemq/bench/choice"
	"github.com/geniemq/geniemq/gpuexec"
	"github.com/geniemq/geniemq/gpuexec/open"
)

func (c *cli) benchChoiceCommand() *cobra.Command {
	var opts choice.Options
	var engine string
	var untried bool
	cmd := &cobra.Command{
		Use:   "choice",
		Short: "Measure whether searches by distance take the way that takes least",
		Long: `Choice builds indexes of real data (cities, atmosphere, digits, words, DNA reads), asks each for the nearest
and for what is within a radius by every exact way, with one core, and then as the planner chooses. Times are those of
the processor, per query; with --engine they are by the clock, on that engine with all that it has. It prints a line of JSON per pair of data and question: what each way took and was expected to
take, which one was taken, and whether that took at most 15 % more than the best.`,
		Example: `  geniemq bench choice --data ../shared/data
  geniemq bench choice --batch 1`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if opts.Batch < 0 || opts.Runs < 0 {
				return usagef("--batch and --runs must not be negative")
			}
			if engine != "" {
				e, err := open.Engine(engine, gpuexec.Options{CUDA: gpuexec.CUDAOptions{Untried: untried}})
				if err != nil {
					return err
				}
				defer e.Close()
				opts.Engine = e
			}
			pairs, within, to := 0, 0, c.showing(cmd)
			to.Say("building indexes")
			err := choice.Measure(cmd.Context(), opts, func(r *choice.Result) error {
				if pairs++; r.Within {
					within++
				}
				r.Command = commandLine()
				to.End()
				fmt.Fprintln(c.err, r.Line())
				if !to.json {
					return nil
				}
				return to.show(r)
			})
			fmt.Fprintf(c.err, "within 15 %% of the best: %d of %d\n", within, pairs)
			return err
		},
	}
	set := cmd.Flags()
	set.StringVar(&opts.Data, "data", filepath.Join("..", "shared", "data"), "folder of the real data")
	set.IntVar(&opts.Batch, "batch", 64, "queries of a call")
	set.StringVar(&engine, "engine", "", "cpu, cuda or auto, measured by the clock (default: one core, measured by the processor)")
	set.BoolVar(&untried, "untried", false, "take what nobody has measured on a device yet, too")
	set.IntVar(&opts.Runs, "runs", 3, "runs, of which the least time counts")
	return cmd
}
