//go:build cuda

package gpuexec

import (
	"errors"
	"os"
	"strings"
	"testing"
)

// TestCUDADevicesAbsent: naming a device that is not there is an error, with auto too.
func TestCUDADevicesAbsent(t *testing.T) {
	count, err := countDevices()
	if errors.Is(err, ErrNoCUDA) && os.Getenv("GENIEMQ_REQUIRE_CUDA") != "1" {
		t.Skipf("needs a CUDA device: %v", err)
	}
	if err != nil {
		t.Fatal(err)
	}
	opts := Options{CUDA: CUDAOptions{Devices: []int{0, count}}}
	for _, kind := range []string{CUDA, Auto} {
		if e, err := Open(kind, opts); err == nil || errors.Is(err, ErrNoCUDA) || !strings.Contains(err.Error(), "no CUDA device") {
			t.Errorf("%s: %v %v", kind, e, err)
		}
	}
	e, err := NewCUDA(CUDAOptions{Devices: []int{AllDevices}, BatchMemory: 1 << 20})
	if err != nil {
		t.Fatal(err)
	}
	if name := e.Info().Device; count > 1 != strings.HasSuffix(name, ", "+string(DeviceReplica)) {
		t.Errorf("all of %d devices: %s", count, name)
	}
	if err := e.Close(); err != nil {
		t.Error(err)
	}
}

// TestCUDANoDevice: what a binary with the tag says on a machine without a device.
func TestCUDANoDevice(t *testing.T) {
	if _, err := countDevices(); err == nil {
		t.Skip("there is a device")
	}
	if _, err := Open(CUDA, Options{}); !errors.Is(err, ErrNoCUDA) {
		t.Errorf("cuda: %v", err)
	}
	e, err := Open(Auto, Options{})
	if err != nil || e.Info().Kind != CPU || e.Info().Note == "" {
		t.Errorf("auto: %+v %v", e.Info(), err)
	}
}
