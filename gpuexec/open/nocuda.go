//go:build !cuda

package open

import (
	"fmt"

	"github.com/geniemq/geniemq/gpuexec"
)

// newCUDA opens a CUDA device. This binary was built without the tag cuda, so it fails with gpuexec.ErrNoCUDA.
func newCUDA(gpuexec.CUDAOptions) (gpuexec.Engine, error) {
	return nil, fmt.Errorf("%w: this binary was built without the tag cuda (go build -tags cuda)", gpuexec.ErrNoCUDA)
}
