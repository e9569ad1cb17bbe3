package gpuexec

import (
	"context"
	"reflect"
	"strings"
	"testing"
)

func TestOpen(t *testing.T) {
	for _, kind := range []string{CPU} {
		e, err := Open(kind, Options{CPU: CPUOptions{Workers: 3}})
		if err != nil || e.Info().Kind != CPU || e.Info().Workers != 3 || e.Info().Note != "" {
			t.Errorf("%s: %v %v", kind, e, err)
		}
	}
	if _, err := Open("gpu", Options{}); err == nil {
		t.Error("an unknown engine is not refused")
	}
	for _, s := range []*Snapshot{nil, {}, {Segments: make([]Segment, 1)}, {Segments: make([]Segment, 2)}} {
		if _, err := NewCPU(CPUOptions{}).Load(context.Background(), s); err == nil {
			t.Errorf("snapshot %v is not refused", s)
		}
	}
}

// TestOrdinals: which devices the options mean.
func TestOrdinals(t *testing.T) {
	for _, c := range []struct {
		devices []int
		mode    DeviceMode
		count   int
		want    []int
		err     string
	}{
		{nil, "", 4, []int{0}, ""},
		{[]int{AllDevices}, DeviceCapacity, 3, []int{0, 1, 2}, ""},
		{[]int{2, 0}, DeviceReplica, 3, []int{2, 0}, ""},
		{[]int{3}, "", 3, nil, "no CUDA device 3"},
		{[]int{AllDevices, 0}, "", 3, nil, "no CUDA device -1"},
		{[]int{1, 1}, "", 3, nil, "twice"},
		{nil, "both", 3, nil, "replica capacity"},
		{[]int{AllDevices}, "", 0, nil, ErrNoCUDA.Error()},
	} {
		o := CUDAOptions{Devices: c.devices, Mode: c.mode}
		got, err := ordinals(&o, c.count)
		if !reflect.DeepEqual(got, c.want) || (err == nil) != (c.err == "") || err != nil && !strings.Contains(err.Error(), c.err) {
			t.Errorf("%v %q of %d: %v %v", c.devices, c.mode, c.count, got, err)
		}
	}
}
