//go:build !cuda

package open

import (
	"fmt"

	"github.com/geniemq/geniemq/gpuexec"
)

// cuda fails: this binary was built without the tag cuda.
func (Families) cuda(gpuexec.CUDAOptions) (gpuexec.Engine, error) {
	return nil, fmt.Errorf("%w: this binary was built without the tag cuda (go build -tags cuda)", gpuexec.ErrNoCUDA)
}
