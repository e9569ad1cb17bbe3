package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/geniemq/geniemq/bench"
	"github.com/geniemq/geniemq/gpuexec"
	"github.com/geniemq/geniemq/index/store"
)

// axisFlags are the flags of the other measurements that say what is a point here.
var axisFlags = map[string]string{bench.AxisObjects: "objects", bench.AxisQueries: "queries", bench.AxisK: "k", bench.AxisDensity: "reach"}

// checkPoints looks for points that an axis does not have.
func checkPoints(workload, axis string, points []int) error {
	least, most := slices.Min(points), slices.Max(points)
	switch {
	case axis == bench.AxisDensity && !slices.Contains(bench.RangeWorkloads(), workload):
		return usagef("--axis density: the items of %s are no ranges; use --workload %s", workload, strings.Join(bench.RangeWorkloads(), " or "))
	case axis != bench.AxisDensity && least < 1:
		return usagef("--points takes numbers from 1")
	case axis == bench.AxisK && most > gpuexec.MaxK:
		return usagef("--points of axis k are at most %d", gpuexec.MaxK)
	case axis == bench.AxisObjects && uint64(most) > store.MaxObjects:
		return usagef("--points of axis n are at most %d: an index holds no more", uint32(store.MaxObjects))
	case axis == bench.AxisObjects && !slices.IsSorted(points):
		return usagef("--points of axis n must ascend: the index grows from point to point")
	}
	return nil
}

func (c *cli) benchScaleCommand() *cobra.Command {
	var flags measurementFlags
	var opts bench.EngineOptions
	var axis string
	var points []int
	cmd := &cobra.Command{
		Use:   "scale",
		Short: "Measure how an engine's time grows",
		Long: `Scale measures batches along an axis and prints one line per point: n, objects; q, queries in the batch;
k, hits per query; density, the buckets either way that an item asks for (w1, w4 and w4x100). The index is built once;
along n it grows from point to point. docs/benchmarks/plot.py draws the lines.`,
		Example: `  geniemq bench scale --workload w4 --axis q
  geniemq bench scale --workload w3 --axis n --points 500000,1000000,2000000 --engine cuda`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := flags.resolve(c, cmd); err != nil {
				return err
			}
			if opts.Runs < 0 || opts.Checks < 0 {
				return usagef("--runs and --checks must not be negative")
			}
			if !slices.Contains(bench.Axes(), axis) {
				return usagef("--axis %q is unknown: use one of %s", axis, strings.Join(bench.Axes(), ", "))
			}
			if flag := axisFlags[axis]; cmd.Flags().Changed(flag) {
				return usagef("--%s does not go with --axis %s, whose points it would be: use --points", flag, axis)
			}
			if len(points) == 0 {
				points = bench.ScalePoints(axis)
			}
			if err := checkPoints(flags.workload, axis, points); err != nil {
				return err
			}
			e, err := flags.open(c)
			if err != nil {
				return err
			}
			wrong := 0
			err = bench.Scale(cmd.Context(), flags.workload, flags.opts, e, axis, points, opts, func(r *bench.ScaleResult) error {
				wrong += r.Mismatches
				r.Command = commandLine()
				return json.NewEncoder(c.out).Encode(r)
			})
			if err := errors.Join(err, e.Close()); err != nil {
				return err
			}
			if wrong > 0 {
				return fmt.Errorf("%d checked answers differ from brute force", wrong)
			}
			return nil
		},
	}
	flags.register(cmd, "w4")
	set := cmd.Flags()
	set.StringVar(&axis, "axis", bench.AxisQueries, "axis: "+strings.Join(bench.Axes(), ", "))
	set.IntSliceVar(&points, "points", nil, "points of the axis, ascending (default: by axis)")
	set.IntVar(&opts.Runs, "runs", 7, "measured batches per point")
	set.IntVar(&opts.Checks, "checks", 2, "answers per point that are compared with brute force")
	return cmd
}
