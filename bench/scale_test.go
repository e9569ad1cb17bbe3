package bench

import (
	"context"
	"testing"

	"github.com/geniemq/geniemq/bench/workload"
	"github.com/geniemq/geniemq/gpuexec"
	"github.com/geniemq/geniemq/gpuexec/cpu"
	"github.com/geniemq/geniemq/internal/testkit/raced"
)

// Along every axis the answers are right, and an index that grew or came from the cache is the one that would be built.
func TestScale(t *testing.T) {
	if testing.Short() {
		t.Skip("measures whole workloads: not when tests are to be short")
	}
	ctx := context.Background()
	folder := data(t)
	engine := cpu.New(gpuexec.CPUOptions{})
	defer engine.Close()
	for axis, points := range map[string][]int{
		AxisObjects: {500, 70_000, 70_001}, AxisQueries: {1, 7, 20}, AxisK: {1, 10, 5_000}, AxisDensity: {-1, 3, 512},
	} {
		var got []int
		err := Scale(ctx, "w4", workload.Options{Objects: 5_000, Queries: 20, Data: folder}, engine, axis, points, EngineOptions{Progress: silent, Runs: 1, Checks: 5},
			func(r *ScaleResult) error {
				got = append(got, r.Point)
				if r.Mismatches != 0 || r.Checked == 0 || r.Density <= 0 {
					t.Errorf("axis %s at %d: %d of %d answers are wrong, density %v", axis, r.Point, r.Mismatches, r.Checked, r.Density)
				}
				return nil
			})
		if err != nil || len(got) != len(points) {
			t.Errorf("axis %s: points %v, %v", axis, got, err)
		}
	}
}

// Every point of the axis density is another measurement, and a workload without ranges has none.
func TestScaleDensity(t *testing.T) {
	raced.Skip(t, raced.Data)
	engine := cpu.New(gpuexec.CPUOptions{})
	defer engine.Close()
	along := func(name string, points ...int) (densities []float64, err error) {
		opts := workload.Options{Objects: 2_000, Queries: 5}
		if name == "w4" {
			opts.Data = data(t)
		}
		err = Scale(context.Background(), name, opts, engine, AxisDensity, points, EngineOptions{Progress: silent, Runs: 1, Checks: 1}, func(r *ScaleResult) error {
			densities = append(densities, r.Density)
			return nil
		})
		return densities, err
	}
	for _, name := range []string{"w2", "w3"} {
		if got, err := along(name, 1, 2); err == nil || len(got) > 0 {
			t.Errorf("%s: densities %v, %v", name, got, err)
		}
	}
	for _, name := range []string{"w1", "w4"} {
		if got, err := along(name, -1, 0, 3); err != nil || got[0] != got[1] || got[1] >= got[2] {
			t.Errorf("%s: densities %v, %v", name, got, err)
		}
	}
}
