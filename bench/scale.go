package bench

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/geniemq/geniemq/bench/workload"
	"github.com/geniemq/geniemq/gpuexec"
	"github.com/geniemq/geniemq/index/store"
)

// The axes of Scale.
const (
	AxisObjects = "n"       // objects; the index grows from point to point
	AxisQueries = "q"       // queries in the batch
	AxisK       = "k"       // hits per query
	AxisDensity = "density" // Options.Reach: buckets either way that an item takes, for RangeWorkloads
)

// Axes returns the names of the axes.
func Axes() []string { return []string{AxisObjects, AxisQueries, AxisK, AxisDensity} }

// RangeWorkloads returns the names of the workloads whose items can be ranges: for them there is Options.Reach, and the axis density.
func RangeWorkloads() []string { return []string{"w1", "w4", "w4x100"} }

// ScalePoints are the points of an axis where none are given.
func ScalePoints(axis string) []int {
	switch axis {
	case AxisObjects:
		return []int{500_000, 1_000_000, 2_250_000, 4_500_000, 9_000_000, 18_000_000, 36_000_000}
	case AxisQueries:
		return []int{1, 4, 16, 64, 256, 1024, 4096, 16384, 65536}
	case AxisK:
		return []int{1, 10, 100, 1000, 10000}
	case AxisDensity:
		return []int{-1, 1, 2, 4, 8, 16, 32}
	}
	return nil
}

// CheckPoints looks for points that an axis of a workload does not have. The error is for who chose them on a command line.
func CheckPoints(workload, axis string, points []int) error {
	if !slices.Contains(Axes(), axis) {
		return fmt.Errorf("--axis %q is unknown: use one of %s", axis, strings.Join(Axes(), ", "))
	}
	least, most := slices.Min(points), slices.Max(points)
	switch {
	case axis == AxisDensity && !slices.Contains(RangeWorkloads(), workload):
		return fmt.Errorf("--axis density: the items of %s are no ranges; use --workload %s", workload, strings.Join(RangeWorkloads(), " or "))
	case axis != AxisDensity && least < 1:
		return errors.New("--points takes numbers from 1")
	case axis == AxisK && most > gpuexec.MaxK:
		return fmt.Errorf("--points of axis k are at most %d", gpuexec.MaxK)
	case axis == AxisObjects && uint64(most) > store.MaxObjects:
		return fmt.Errorf("--points of axis n are at most %d: an index holds no more", uint32(store.MaxObjects))
	case axis == AxisObjects && !slices.IsSorted(points):
		return errors.New("--points of axis n must ascend: the index grows from point to point")
	}
	return nil
}

// ScaleResult is the measurement of one point.
type ScaleResult struct {
	Axis  string `json:"axis"`
	Point int    `json:"point"`
	// Density is the share of the objects that an item of a query asks for, on average.
	Density float64 `json:"density"`
	*EngineResult
}

// Scale measures an engine along an axis and gives each point to report. The index is built once; along n it grows, so that
// points must ascend.
func Scale(ctx context.Context, name string, opts workload.Options, engine gpuexec.Engine, axis string, points []int, measure EngineOptions,
	report func(*ScaleResult) error) error {
	if err := CheckPoints(name, axis, points); err != nil {
		return err
	}
	if axis == AxisQueries {
		opts.Queries = slices.Max(points)
	}
	if axis != AxisDensity && axis != AxisObjects {
		w, err := workload.New(ctx, name, opts)
		if err != nil {
			return err
		}
		defer w.Close()
		whole := *w
		for _, p := range points {
			at := whole
			if axis == AxisQueries {
				at.Plans = whole.Plans[:p]
			} else {
				at.Plans = slices.Clone(whole.Plans)
				for i := range at.Plans {
					at.Plans[i].K = p
				}
				at.Options.K = p
			}
			if err := scalePoint(ctx, &at, engine, axis, p, measure, report); err != nil {
				return err
			}
		}
		return nil
	}
	opts.Grow()
	for _, p := range points {
		if axis == AxisObjects {
			opts.Objects = p
		} else {
			opts.Reach = cmp.Or(p, -1) // 0 would be the workload's own
		}
		w, err := workload.New(ctx, name, opts)
		if err != nil {
			return err
		}
		err = scalePoint(ctx, w, engine, axis, p, measure, report)
		w.Close()
		if err != nil {
			return err
		}
	}
	return nil
}

func scalePoint(ctx context.Context, w *workload.Workload, engine gpuexec.Engine, axis string, point int, measure EngineOptions, report func(*ScaleResult) error) error {
	r, err := Engine(ctx, w, engine, measure)
	if err != nil {
		return fmt.Errorf("%s = %d: %w", axis, point, err)
	}
	items := 0
	for i := range w.Plans {
		items += len(queryOf(&w.Plans[i]).Items)
	}
	s := &ScaleResult{Axis: axis, Point: point, EngineResult: r}
	s.Density = float64(r.Scanned) / float64(max(1, items)) / float64(max(1, r.Objects))
	return report(s)
}
