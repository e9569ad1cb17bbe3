// Package open opens engines by their names. It is the only package that knows all of them.
package open

import (
	"errors"
	"fmt"

	"github.com/geniemq/geniemq/gpuexec"
	"github.com/geniemq/geniemq/gpuexec/cpu"
)

// Engine opens an engine of a kind: Auto (also ""), CPU or CUDA. CUDA fails with ErrNoCUDA where no device can be used; Auto
// takes the CPU then and says so in Info.Note, unless the options name devices: who does so wants these.
func Engine(kind string, opts gpuexec.Options) (gpuexec.Engine, error) {
	switch kind {
	case gpuexec.CPU:
		return cpu.New(opts.CPU), nil
	case gpuexec.CUDA:
		return newCUDA(opts.CUDA)
	case gpuexec.Auto, "":
		engine, err := newCUDA(opts.CUDA)
		if err == nil {
			return engine, nil
		}
		if !errors.Is(err, gpuexec.ErrNoCUDA) || named(&opts.CUDA) {
			return nil, fmt.Errorf("opening the CUDA engine (engine cpu does without it): %w", err)
		}
		return substitute{cpu.New(opts.CPU), err.Error()}, nil
	}
	return nil, fmt.Errorf("engine %q is unknown: use auto, cpu or cuda", kind)
}

// substitute is an engine that is not the preferred one.
type substitute struct {
	gpuexec.Engine
	why string
}

func (s substitute) Info() gpuexec.Info {
	info := s.Engine.Info()
	info.Note = s.why
	return info
}
