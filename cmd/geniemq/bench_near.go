package main

import (
	"errors"
	"fmt"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"github.com/geniemq/geniemq/bench/near"
	"github.com/geniemq/geniemq/bench/sets"
	"github.com/geniemq/geniemq/gpuexec"
)

// benchNearCommands are those that measure searches by distance.
func (c *cli) benchNearCommands() (all []*cobra.Command) {
	for _, m := range near.All() {
		all = append(all, c.benchNearCommand(&m))
	}
	return all
}

func (c *cli) benchNearCommand(m *near.Measurement) *cobra.Command {
	var opts near.Options
	var engine engineFlags
	times, counts := "Times are what a core worked, so that what else the machine does hardly counts; of other engines than the CPU's with one core they are by the clock, with full batches.", "least"
	if m.Clock {
		times, counts = "Times are by the clock.", "median"
	}
	cmd := &cobra.Command{
		Use:   m.Name,
		Short: m.Short,
		Long: m.Long + `

` + times + `
Data sets: ` + strings.Join(sets.Names(), ", ") + `; some are made, with a fixed seed.`,
		Example: fmt.Sprintf("  geniemq bench %[1]s\n  geniemq bench %[1]s --sets %[2]s --engine auto", m.Name, m.Sets[0]),
		Args:    cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := c.environment(cmd); err != nil {
				return err
			}
			if err := opts.Check(); err != nil {
				return usagef("--%v", err)
			}
			e, err := engine.open(c)
			if err != nil {
				return err
			}
			opts.Engine, opts.Clock = e, e.Info().Kind != gpuexec.CPU || engine.EngineThreads != 1
			to := c.showing(cmd)
			to.Say("measuring")
			err = m.Do(cmd.Context(), opts, func(r near.Result) error {
				r.By(commandLine())
				to.End()
				fmt.Fprintln(c.err, r.Line())
				if !to.JSON {
					return nil
				}
				return to.Show(r)
			})
			return errors.Join(err, e.Close())
		},
	}
	set := cmd.Flags()
	set.StringVar(&opts.Folder, "data", filepath.Join("..", "shared", "data"), "folder of the real data")
	set.StringSliceVar(&opts.Sets, "sets", nil, "data sets (default: "+strings.Join(m.Sets, ", ")+")")
	set.IntVar(&opts.Objects, "objects", 0, "objects at most (default: the data set's own number)")
	set.Float64Var(&opts.Share, "share", 0, "share of these objects that are taken, at most 1 (0: all)")
	set.IntVar(&opts.Asked, "asked", 256, "queries, which are held out of the objects, one in 32 of them at most")
	set.Uint64Var(&opts.Seed, "seed", 0, "seed of made data, and of what is held out")
	if opts.Batch = 64; m.Name != "ways" {
		set.IntVar(&opts.Batch, "batch", opts.Batch, "queries of a call")
	} else {
		set.IntSliceVar(&opts.Batches, "batches", []int{1, 32, 512, 1024, 16384}, "queries of a call; more than are held out are asked again")
		set.StringVar(&opts.Paths, "paths", "", "access paths to build, like \"tree, cells\" (default: those of the data set)")
		set.Float64Var(&opts.Recall, "recall", 0.995, "share of the nearest that ways which do not find all are asked for")
		set.Float64Var(&opts.Fraction, "fraction", 0, "share of the objects that rank vectors compare (0: by --recall)")
		set.StringVar(&opts.Export, "export", "", "write the vectors of sets that have some, queries and what a scan answers into folders of this one, for other programs")
	}
	if m.Name == "choice" || m.Name == "ways" {
		set.IntSliceVar(&opts.Ks, "k", nil, "ask for so many nearest (default: some, and the radii of the data set)")
		set.Float64SliceVar(&opts.Selectivity, "selectivity", nil, "ask for what is within radii that so many per cent of the objects are within, like 0.01,0.32")
	}
	set.IntVar(&opts.Runs, "runs", 3, "runs of each call, of which the "+counts+" time counts")
	engine.register(set, gpuexec.CPU, 1)
	return cmd
}
