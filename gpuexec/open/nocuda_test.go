//go:build !cuda

package open

import (
	"errors"
	"strings"
	"testing"

	"github.com/geniemq/geniemq/gpuexec"
)

// TestWithoutCUDA: what a binary without the tag cuda says.
func TestWithoutCUDA(t *testing.T) {
	if _, err := Engine(gpuexec.CUDA, gpuexec.Options{}); !errors.Is(err, gpuexec.ErrNoCUDA) || !strings.Contains(err.Error(), "tag cuda") {
		t.Errorf("cuda: %v", err)
	}
	for _, kind := range []string{gpuexec.Auto, ""} {
		for _, devices := range [][]int{nil, {gpuexec.AllDevices}} {
			e, err := Engine(kind, gpuexec.Options{CUDA: gpuexec.CUDAOptions{Devices: devices}})
			if err != nil || e.Info().Kind != gpuexec.CPU || !strings.Contains(e.Info().Note, "tag cuda") {
				t.Errorf("%q, devices %v: %+v %v", kind, devices, e, err)
			}
		}
		if e, err := Engine(kind, gpuexec.Options{CUDA: gpuexec.CUDAOptions{Devices: []int{1}}}); err == nil || !strings.Contains(err.Error(), "engine cpu does without it") {
			t.Errorf("%q, device 1: %v %v", kind, e, err)
		}
	}
}
