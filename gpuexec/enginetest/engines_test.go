package enginetest

import (
	"errors"
	"os"
	"testing"

	"github.com/geniemq/geniemq/gpuexec"
	"github.com/geniemq/geniemq/gpuexec/cpu"
	"github.com/geniemq/geniemq/gpuexec/group"
	"github.com/geniemq/geniemq/gpuexec/open"
	"github.com/geniemq/geniemq/gpuexec/run"
	"github.com/geniemq/geniemq/index"
)

// This file alone knows which engines there are. The tests beside it ask for what every engine promises.

// testedEngine is an engine that tests run on.
type testedEngine struct {
	gpuexec.Engine
	name string
	// countsAll: Answer.Units is all that a query's items have. Else the engine may leave out what cannot change an answer.
	countsAll bool
}

// engines are the CPU engine with one core and with several, groups of it in both modes, and engines of devices.
func engines(t testing.TB) []testedEngine {
	t.Helper()
	return append(closed(t, []testedEngine{
		{cpu.New(gpuexec.CPUOptions{Workers: 1}), "one core", true},
		{cpu.New(gpuexec.CPUOptions{Workers: 3}), "three cores", true},
		{cpuGroup(gpuexec.DeviceReplica, 2, 2), "replicas", true},
		{cpuGroup(gpuexec.DeviceCapacity, 3, 2), "capacity", true},
	}), onDevices(t)...)
}

// onDevices are the CUDA engine where the binary has it and the machine a device. With GENIEMQ_REQUIRE_CUDA=1 it must be there. With GENIEMQ_DEVICES=0,1 these devices as one
// engine are there too, in both modes.
func onDevices(t testing.TB) (all []testedEngine) {
	t.Helper()
	opts := gpuexec.Options{CUDA: gpuexec.CUDAOptions{BatchMemory: 256 << 20, Workers: 2, Untried: true}}
	e, err := open.Engine(gpuexec.CUDA, opts)
	if err != nil && (!errors.Is(err, gpuexec.ErrNoCUDA) || os.Getenv("GENIEMQ_REQUIRE_CUDA") == "1") {
		t.Fatal(err)
	}
	if err == nil {
		all = append(all, testedEngine{e, "CUDA", false})
	} else {
		t.Logf("not on CUDA: %v", err)
	}
	if names := os.Getenv("GENIEMQ_DEVICES"); names != "" {
		if opts.CUDA.Devices, err = gpuexec.ParseDevices(names); err != nil {
			t.Fatal(err)
		}
		for _, mode := range []gpuexec.DeviceMode{gpuexec.DeviceReplica, gpuexec.DeviceCapacity} {
			opts.CUDA.Mode = mode
			e, err := open.Engine(gpuexec.CUDA, opts)
			if err != nil {
				t.Fatal(err)
			}
			all = append(all, testedEngine{e, "CUDA " + string(mode), false})
		}
	}
	return closed(t, all)
}

// closed closes engines when the test ends.
func closed(t testing.TB, all []testedEngine) []testedEngine {
	t.Cleanup(func() {
		for _, e := range all {
			if err := e.Close(); err != nil {
				t.Errorf("closing %s: %v", e.name, err)
			}
		}
	})
	return all
}

// loadOnAll makes an index resident on all engines, until the test ends.
func loadOnAll(t testing.TB, all []testedEngine, x *index.Index) map[string]gpuexec.Searcher {
	t.Helper()
	searchers := make(map[string]gpuexec.Searcher)
	for _, e := range all {
		searchers[e.name] = LoadOn(t, e, x)
	}
	return searchers
}

func closeSearcher(t testing.TB, s gpuexec.Searcher) {
	t.Helper()
	if err := s.Close(); err != nil {
		t.Error(err)
	}
}

// loadCPU makes an index resident on a CPU engine.
func loadCPU(t testing.TB, x *index.Index, opts gpuexec.CPUOptions) gpuexec.Searcher {
	t.Helper()
	return LoadOn(t, cpu.New(opts), x)
}

// cpuGroup makes a group whose members are CPU engines that share a crew, as devices of one host do.
func cpuGroup(mode gpuexec.DeviceMode, members, workers int) *group.Group {
	c := run.NewCrew(workers)
	var all []*run.Engine
	for range members {
		all = append(all, cpu.On(c))
	}
	return group.New(all, mode, c)
}
