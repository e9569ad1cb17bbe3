//go:build !cuda

package gpuexec

import (
	"errors"
	"strings"
	"testing"
)

// TestWithoutCUDA: what a binary without the tag cuda says.
func TestWithoutCUDA(t *testing.T) {
	if _, err := Open(CUDA, Options{}); !errors.Is(err, ErrNoCUDA) || !strings.Contains(err.Error(), "tag cuda") {
		t.Errorf("cuda: %v", err)
	}
	for _, kind := range []string{Auto, ""} {
		for _, devices := range [][]int{nil, {AllDevices}} {
			e, err := Open(kind, Options{CUDA: CUDAOptions{Devices: devices}})
			if err != nil || e.Info().Kind != CPU || !strings.Contains(e.Info().Note, "tag cuda") {
				t.Errorf("%q, devices %v: %+v %v", kind, devices, e, err)
			}
		}
		if e, err := Open(kind, Options{CUDA: CUDAOptions{Devices: []int{1}}}); err == nil || !strings.Contains(err.Error(), "engine cpu does without it") {
			t.Errorf("%q, device 1: %v %v", kind, e, err)
		}
	}
}
