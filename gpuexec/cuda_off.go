//go:build !cuda

package gpuexec

import "fmt"

// NewCUDA opens a CUDA device. This binary was built without the tag cuda, so it fails with ErrNoCUDA.
func NewCUDA(CUDAOptions) (Engine, error) {
	return nil, fmt.Errorf("%w: this binary was built without the tag cuda (go build -tags cuda)", ErrNoCUDA)
}
