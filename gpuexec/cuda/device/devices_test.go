//go:build cuda

package device

import (
	"cmp"
	"context"
	"math/rand/v2"
	"os"
	"sync"
	"testing"

	"github.com/geniemq/geniemq/gpuexec"
	"github.com/geniemq/geniemq/gpuexec/enginetest"
	"github.com/geniemq/geniemq/gpuexec/group"
	"github.com/geniemq/geniemq/gpuexec/run"
	"github.com/geniemq/geniemq/index/store"
	"github.com/geniemq/geniemq/internal/testkit/seeded"
	"github.com/geniemq/geniemq/kernels"
)

// openedGroup is a group, and the engines that it is made of.
type openedGroup struct {
	*group.Group
	engines []*Engine
}

// openDeviceGroup opens a group on the devices that GENIEMQ_DEVICES names, like 0,1,2,3. Default 0,0: two engines on one
// device, which every machine with a GPU has.
func openDeviceGroup(t testing.TB, opts gpuexec.CUDAOptions) openedGroup {
	t.Helper()
	if err := driverStatus(); err != nil {
		openDevice(t, opts) // skips or fails
	}
	devices := []int{0, 0}
	if names := os.Getenv("GENIEMQ_DEVICES"); names != "" {
		var err error
		if devices, err = gpuexec.ParseDevices(names); err != nil {
			t.Fatal(err)
		}
	}
	images, err := kernels.Modules()
	if err != nil {
		t.Fatal(err)
	}
	var members []*run.Engine
	var engines []*Engine
	crew := run.NewCrew(opts.Workers)
	for _, device := range devices {
		e, err := Open(opts, device, crew, images)
		if err != nil {
			t.Fatal(err)
		}
		members, engines = append(members, e.Engine), append(engines, e)
	}
	g := group.New(members, cmp.Or(opts.Mode, gpuexec.DeviceReplica), crew)
	t.Cleanup(func() {
		if err := g.Close(); err != nil {
			t.Error(err)
		}
	})
	return openedGroup{g, engines}
}

// forceGroup makes all lanes of all members take one kernel.
func forceGroup(t testing.TB, g openedGroup, path string) {
	for _, m := range g.engines {
		force(t, m, path)
	}
}

// TestCUDADevices compares groups with the CPU engine, around the borders of tiles, with each kernel, resident and streamed.
func TestCUDADevices(t *testing.T) {
	rng := seeded.Rand(t)
	const tile = store.TileObjects
	for _, mode := range gpuexec.DeviceModes() {
		g := openDeviceGroup(t, gpuexec.CUDAOptions{Mode: mode, BatchMemory: 256 << 20})
		t.Log(g.Info().Device)
		for _, n := range []int{0, 1, 300, tile, tile + 1, 2*tile + 1, 4 * tile, 7*tile + 100} {
			if scaled(100) < 100 && n > 2*tile+1 {
				continue
			}
			for _, path := range []string{"sliced", "tile", ""} {
				makeWorld := []func(testing.TB, *rand.Rand, int) *enginetest.World{enginetest.RandomWorld, enginetest.SlicedWorld}[rng.IntN(2)]
				w := makeWorld(t, rng, n)
				forceGroup(t, g, path)
				s := enginetest.LoadOn(t, g, w.Index)
				t.Logf("%s, %d objects, path %q", mode, n, path)
				compareWithCPU(t, rng, w, s, scaled([]int{32, 300}[rng.IntN(2)]), true)
				if err := s.Close(); err != nil {
					t.Fatal(err)
				}
			}
		}
		// With little memory the parts of a member are streamed.
		w := enginetest.RandomWorld(t, rng, 6*tile+9)
		little := 3*partBytesOf(t, w.Index) + 64<<10
		var free []int64
		var release []func()
		for _, e := range g.engines {
			free = append(free, enginetest.Free(e.Host.Budget))
			release = append(release, takeMemory(t, e, enginetest.Free(e.Host.Budget)-little))
		}
		s := enginetest.LoadOn(t, g, w.Index)
		compareWithCPU(t, rng, w, s, scaled(64), false)
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
		for _, give := range release {
			give()
		}
		s = enginetest.LoadOn(t, g, w.Index)
		shards := int64(len(g.engines))
		if mode == gpuexec.DeviceCapacity {
			shards = min(shards, int64(w.Index.Tiles()))
		}
		p := g.engines[0].kernels.Profile
		if c := s.Capacity(); c.BatchBytes != 256<<20 || c.SharedBytes != shards*int64(p.Lanes)*c.BatchBytes || c.DeviceBytes <= c.SharedBytes || mode == gpuexec.DeviceReplica && c.InFlight != (p.Lanes+p.AtHand)*len(g.engines) {
			t.Errorf("%s: capacity %+v", mode, c)
		}
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
		for i, m := range g.engines {
			if left := enginetest.Free(m.Host.Budget); left != free[i] {
				t.Errorf("%s: %d bytes of member %d are missing after closing", mode, free[i]-left, i)
			}
		}
		const loads = 20
		first := g.engines[0]
		before := driverFree(t, first)
		for range loads {
			if err := enginetest.LoadOn(t, g, w.Index).Close(); err != nil {
				t.Fatal(err)
			}
		}
		nothingLeaked(t, first, before, "%d loads on devices, %s", loads, mode)
	}
}

// TestCUDADevicesSequences: devices compare the texts that they hold, among them more candidates than one of them has, and the
// answers are those of the CPU.
func TestCUDADevicesSequences(t *testing.T) {
	rng := seeded.Rand(t)
	for _, alphabet := range []string{"abcdefgh", verifyAlphabets()[4]} {
		texts := make([]string, 3*store.TileObjects+50)
		bases := make([]string, 5000)
		for i := range bases {
			bases[i] = enginetest.RandomString(rng, alphabet, 3+rng.IntN(40))
		}
		for i := range texts {
			texts[i] = enginetest.Misspelt(rng, bases[rng.IntN(len(bases))], rng.IntN(5))
		}
		texts[100] = enginetest.RandomString(rng, alphabet, 4100) // longer than a device compares
		c := enginetest.SequenceCollection(t, texts, 3)
		for _, mode := range gpuexec.DeviceModes() {
			s := enginetest.LoadOn(t, openDeviceGroup(t, gpuexec.CUDAOptions{Mode: mode, BatchMemory: 64 << 20}), c.Index)
			for range 3 {
				var plans []gpuexec.Plan
				for range scaled(100) {
					text := enginetest.Misspelt(rng, bases[rng.IntN(len(bases))], rng.IntN(6)) + "a"
					plans = append(plans, c.SequencePlan(t, text, 1+rng.IntN(40), []int{1, 32, 33, 200, 5000}[rng.IntN(5)], rng.IntN(8) == 0))
				}
				sameAsHost(t, c, s, plans)
			}
			if err := s.Close(); err != nil {
				t.Fatal(err)
			}
		}
	}
}

// TestCUDADevicesConcurrent runs overlapping batches and measures stages beside them.
func TestCUDADevicesConcurrent(t *testing.T) {
	rng := seeded.Rand(t)
	for _, mode := range gpuexec.DeviceModes() {
		g := openDeviceGroup(t, gpuexec.CUDAOptions{Mode: mode})
		w := enginetest.RandomWorld(t, rng, 3*store.TileObjects+1000)
		cpu := loadHost(t, w.Index, gpuexec.CPUOptions{})
		s := enginetest.LoadOn(t, g, w.Index)
		var calls sync.WaitGroup
		for range 8 {
			plans := w.RandomPlans(rng, func() gpuexec.Plan { return w.RandomPlan(rng) })
			want := enginetest.Search(t, cpu, plans)
			calls.Go(func() {
				answers := make([]gpuexec.Answer, len(plans))
				for range 10 {
					var stages gpuexec.Trace
					err := s.Search(context.Background(), plans, answers, &stages)
					if err != nil || stages.Sum() < 0 {
						t.Errorf("%s: %+v %v", mode, stages, err)
						return
					}
					for i := range answers {
						if !enginetest.SameHits(&answers[i], &want[i]) {
							t.Errorf("%s: plan %d of a concurrent call: %s", mode, i, difference(&answers[i], &want[i]))
							return
						}
					}
				}
			})
		}
		calls.Wait()
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	}
}
