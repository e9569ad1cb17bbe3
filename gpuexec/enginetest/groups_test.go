package enginetest

import (
	"context"
	"math/rand/v2"
	"reflect"
	"sync"
	"testing"

	"go.uber.org/goleak"

	"github.com/geniemq/geniemq/gpuexec"
	"github.com/geniemq/geniemq/index/store"
	"github.com/geniemq/geniemq/internal/testkit/raced"
	"github.com/geniemq/geniemq/internal/testkit/seeded"
)

// TestDevices compares groups of one to five members with one engine, on collections around the borders of tiles, among them
// such with fewer tiles than members.
func TestDevices(t *testing.T) {
	defer goleak.VerifyNone(t)
	rng := seeded.Rand(t)
	const tile = store.TileObjects
	for _, n := range Rounds([]int{3*tile + 100, 0, 1, 300, tile, tile + 1, 2 * tile, 5*tile + 7}) {
		w := RandomWorld(t, rng, n)
		one := loadCPU(t, w.Index, gpuexec.CPUOptions{Workers: 2})
		for _, mode := range gpuexec.DeviceModes() {
			for members := 1; members <= 5; members += raced.Of(1, 2) {
				s := LoadOn(t, cpuGroup(mode, members, 1+rng.IntN(3)), w.Index)
				for range 2 { // the second time with used memory
					plans := w.RandomPlans(rng, func() gpuexec.Plan { return w.RandomPlan(rng) })
					SameAnswers(t, plans, Search(t, s, plans), Search(t, one, plans))
				}
				if err := s.Close(); err != nil {
					t.Fatal(err)
				}
			}
		}
	}
}

// TestDevicesConcurrent: overlapping calls of different sizes, in both modes.
func TestDevicesConcurrent(t *testing.T) {
	defer goleak.VerifyNone(t)
	rng := seeded.Rand(t)
	w := RandomWorld(t, rng, 2*store.TileObjects+99)
	one := loadCPU(t, w.Index, gpuexec.CPUOptions{})
	for _, mode := range gpuexec.DeviceModes() {
		s := LoadOn(t, cpuGroup(mode, 3, 2), w.Index)
		var calls sync.WaitGroup
		for range 6 {
			plans := w.RandomPlans(rng, func() gpuexec.Plan { return w.RandomPlan(rng) })
			want := Search(t, one, plans)
			calls.Go(func() {
				answers := make([]gpuexec.Answer, len(plans))
				for range 3 {
					if err := s.Search(context.Background(), plans, answers, nil); err != nil {
						t.Error(err)
						return
					}
				}
				for i := range plans {
					if answers[i].Err == nil && len(want[i].Hits) > 0 && !reflect.DeepEqual(answers[i].Hits, want[i].Hits) {
						t.Errorf("%s: plan %d of a concurrent call is answered wrong", mode, i)
					}
				}
			})
		}
		calls.Wait()
	}
}

func TestDeviceGroupInfo(t *testing.T) {
	g := cpuGroup(gpuexec.DeviceReplica, 3, 2)
	if info := g.Info(); info.Device != "3 x 2 cores, replica" || info.Workers != 2 || info.Kind != gpuexec.CPU {
		t.Errorf("%+v", info)
	}
	w := RandomWorld(t, rand.New(rand.NewPCG(1, 1)), 2*store.TileObjects)
	one := loadCPU(t, w.Index, gpuexec.CPUOptions{Workers: 2}).Capacity()
	if c := LoadOn(t, g, w.Index).Capacity(); c.InFlight != 3*one.InFlight || c.IndexBytes != one.IndexBytes || c.BatchPlans != one.BatchPlans {
		t.Errorf("replicas: %+v, one: %+v", c, one)
	}
	if c := LoadOn(t, cpuGroup(gpuexec.DeviceCapacity, 2, 2), w.Index).Capacity(); c.InFlight != one.InFlight || c.BatchBytes != one.BatchBytes {
		t.Errorf("spread: %+v, one: %+v", c, one)
	}
}
