//go:build cuda

package neighbours_test

import (
	"errors"
	"os"
	"testing"

	"github.com/geniemq/geniemq/gpuexec"
	"github.com/geniemq/geniemq/gpuexec/open"
)

// openDevice opens the CUDA engine, and skips the test where there is no device.
func openDevice(t testing.TB, opts gpuexec.CUDAOptions) gpuexec.Engine {
	t.Helper()
	e, err := open.Engine(gpuexec.CUDA, gpuexec.Options{CUDA: opts})
	if errors.Is(err, gpuexec.ErrNoCUDA) && os.Getenv("GENIEMQ_REQUIRE_CUDA") != "1" {
		t.Skipf("needs a CUDA device: %v", err)
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := e.Close(); err != nil {
			t.Error(err)
		}
	})
	return e
}
