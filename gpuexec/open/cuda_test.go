//go:build cuda

package open

import (
	"errors"
	"os"
	"strings"
	"testing"

	"github.com/geniemq/geniemq/gpuexec"
	"github.com/geniemq/geniemq/gpuexec/cuda/device"
)

// TestCUDADevicesAbsent: naming a device that is not there is an error, with auto too.
func TestCUDADevicesAbsent(t *testing.T) {
	count, err := device.Count()
	if errors.Is(err, gpuexec.ErrNoCUDA) && os.Getenv("GENIEMQ_REQUIRE_CUDA") != "1" {
		t.Skipf("needs a CUDA device: %v", err)
	}
	if err != nil {
		t.Fatal(err)
	}
	opts := gpuexec.Options{CUDA: gpuexec.CUDAOptions{Devices: []int{0, count}}}
	for _, kind := range []string{gpuexec.CUDA, gpuexec.Auto} {
		if e, err := Engine(kind, opts); err == nil || errors.Is(err, gpuexec.ErrNoCUDA) || !strings.Contains(err.Error(), "no CUDA device") {
			t.Errorf("%s: %v %v", kind, e, err)
		}
	}
	e, err := Families{}.cuda(gpuexec.CUDAOptions{Devices: []int{gpuexec.AllDevices}, BatchMemory: 1 << 20})
	if err != nil {
		t.Fatal(err)
	}
	if name := e.Info().Device; count > 1 != strings.HasSuffix(name, ", "+string(gpuexec.DeviceReplica)) {
		t.Errorf("all of %d devices: %s", count, name)
	}
	if err := e.Close(); err != nil {
		t.Error(err)
	}
}

// TestCUDANoDevice: what a binary with the tag says on a machine without a device.
func TestCUDANoDevice(t *testing.T) {
	if _, err := device.Count(); err == nil {
		t.Skip("there is a device")
	}
	if _, err := Engine(gpuexec.CUDA, gpuexec.Options{}); !errors.Is(err, gpuexec.ErrNoCUDA) {
		t.Errorf("cuda: %v", err)
	}
	e, err := Engine(gpuexec.Auto, gpuexec.Options{})
	if err != nil || e.Info().Kind != gpuexec.CPU || e.Info().Note == "" {
		t.Errorf("auto: %+v %v", e.Info(), err)
	}
}
