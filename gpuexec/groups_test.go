package gpuexec

import (
	"context"
	"math/rand/v2"
	"reflect"
	"sync"
	"testing"

	"github.com/geniemq/geniemq/index"
	"go.uber.org/goleak"
)

// cpuGroup makes a group whose members are CPU engines that share a crew, as devices of one host do.
func cpuGroup(mode DeviceMode, members, workers int) *deviceGroup {
	c := newCrew(workers)
	var all []member
	for range members {
		all = append(all, newCPUEngine(CPUOptions{}, c))
	}
	return newDeviceGroup(all, mode, c)
}

// TestDevices compares groups of one to five members with one engine, on collections around the borders of tiles, among them
// such with fewer tiles than members.
func TestDevices(t *testing.T) {
	defer goleak.VerifyNone(t)
	rng := newRand(t)
	const tile = index.TileObjects
	for _, n := range rounds([]int{3*tile + 100, 0, 1, 300, tile, tile + 1, 2 * tile, 5*tile + 7}) {
		w := randomWorld(t, rng, n)
		one := loadCPU(t, w.index, CPUOptions{Workers: 2})
		for _, mode := range DeviceModes() {
			for members := 1; members <= 5; members++ {
				s := loadOn(t, cpuGroup(mode, members, 1+rng.IntN(3)), w.index)
				for range 2 { // the second time with used memory
					plans := w.randomPlans(rng, func() Plan { return w.randomPlan(rng) })
					sameAnswers(t, plans, search(t, s, plans), search(t, one, plans))
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
	rng := newRand(t)
	w := randomWorld(t, rng, 2*index.TileObjects+99)
	one := loadCPU(t, w.index, CPUOptions{})
	for _, mode := range DeviceModes() {
		s := loadOn(t, cpuGroup(mode, 3, 2), w.index)
		var calls sync.WaitGroup
		for range 6 {
			plans := w.randomPlans(rng, func() Plan { return w.randomPlan(rng) })
			want := search(t, one, plans)
			calls.Go(func() {
				answers := make([]Answer, len(plans))
				for range 3 {
					if err := s.Search(context.Background(), plans, answers); err != nil {
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
	g := cpuGroup(DeviceReplica, 3, 2)
	if info := g.Info(); info.Device != "3 x 2 cores, replica" || info.Workers != 2 || info.Kind != CPU {
		t.Errorf("%+v", info)
	}
	w := randomWorld(t, rand.New(rand.NewPCG(1, 1)), 2*index.TileObjects)
	one := loadCPU(t, w.index, CPUOptions{Workers: 2}).Capacity()
	if c := loadOn(t, g, w.index).Capacity(); c.InFlight != 3*one.InFlight || c.IndexBytes != one.IndexBytes || c.BatchPlans != one.BatchPlans {
		t.Errorf("replicas: %+v, one: %+v", c, one)
	}
	if c := loadOn(t, cpuGroup(DeviceCapacity, 2, 2), w.index).Capacity(); c.InFlight != one.InFlight || c.BatchBytes != one.BatchBytes {
		t.Errorf("spread: %+v, one: %+v", c, one)
	}
}
