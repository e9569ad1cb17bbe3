package open

import (
	"context"
	"errors"
	"reflect"
	"strings"
	"testing"

	"github.com/geniemq/geniemq/gpuexec"
	"github.com/geniemq/geniemq/gpuexec/cpu"
	"github.com/geniemq/geniemq/gpuexec/run"
)

func TestOpen(t *testing.T) {
	for _, kind := range []string{gpuexec.CPU} {
		e, err := Engine(kind, gpuexec.Options{CPU: gpuexec.CPUOptions{Workers: 3}})
		if err != nil || e.Info().Kind != gpuexec.CPU || e.Info().Workers != 3 || e.Info().Note != "" {
			t.Errorf("%s: %v %v", kind, e, err)
		}
	}
	if _, err := Engine("gpu", gpuexec.Options{}); err == nil {
		t.Error("an unknown engine is not refused")
	}
	if _, err := cpu.New(gpuexec.CPUOptions{}).Load(context.Background(), nil); err == nil {
		t.Error("no source is not refused")
	}
}

// TestFamilies: an engine has the loaders that it is given beside its own, and no other engine has them.
func TestFamilies(t *testing.T) {
	loaded := errors.New("asked to load")
	families := Families{CPU: run.Loaders{"toys": {Load: func(context.Context, *run.Host, run.Extent, []run.Extent) (run.Matcher, error) {
		return nil, loaded
	}}}}
	for _, kind := range []string{gpuexec.CPU, gpuexec.Auto} {
		e, err := families.Engine(kind, gpuexec.Options{})
		if err != nil {
			t.Fatal(err)
		}
		if e.Info().Kind != gpuexec.CPU {
			continue // there is a device, for which toys have no loader
		}
		if _, err := e.Load(t.Context(), toyBox{}); !errors.Is(err, loaded) {
			t.Errorf("%q, a structure that was added: %v", kind, err)
		}
		if e, err = Engine(kind, gpuexec.Options{}); err != nil {
			t.Fatal(err)
		}
		if _, err := e.Load(t.Context(), toyBox{}); err == nil || errors.Is(err, loaded) || !strings.Contains(err.Error(), "postings") {
			t.Errorf("%q, a structure that was not added: %v", kind, err)
		}
	}
}

// toyBox is an index with one structure.
type toyBox struct{}

func (toyBox) Name() string    { return "box" }
func (toyBox) Version() string { return "1" }
func (toyBox) Objects() uint32 { return 3 }
func (toyBox) Structure(family string) any {
	if family == "toys" {
		return 3
	}
	return nil
}

// TestOrdinals: which devices the options mean.
func TestOrdinals(t *testing.T) {
	for _, c := range []struct {
		devices []int
		mode    gpuexec.DeviceMode
		count   int
		want    []int
		err     string
	}{
		{nil, "", 4, []int{0}, ""},
		{[]int{gpuexec.AllDevices}, gpuexec.DeviceCapacity, 3, []int{0, 1, 2}, ""},
		{[]int{2, 0}, gpuexec.DeviceReplica, 3, []int{2, 0}, ""},
		{[]int{3}, "", 3, nil, "no CUDA device 3"},
		{[]int{gpuexec.AllDevices, 0}, "", 3, nil, "no CUDA device -1"},
		{[]int{1, 1}, "", 3, nil, "twice"},
		{nil, "both", 3, nil, "replica capacity"},
		{[]int{gpuexec.AllDevices}, "", 0, nil, gpuexec.ErrNoCUDA.Error()},
	} {
		o := gpuexec.CUDAOptions{Devices: c.devices, Mode: c.mode}
		got, err := ordinals(&o, c.count)
		if !reflect.DeepEqual(got, c.want) || (err == nil) != (c.err == "") || err != nil && !strings.Contains(err.Error(), c.err) {
			t.Errorf("%v %q of %d: %v %v", c.devices, c.mode, c.count, got, err)
		}
	}
}
