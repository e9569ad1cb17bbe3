package gpuexec

import (
	"errors"
	"fmt"
)

// Open opens an engine of a kind: Auto (also ""), CPU or CUDA. CUDA fails with ErrNoCUDA where no device can be used; Auto
// takes the CPU then and says so in Info.Note, unless the options name devices: who does so wants these.
func Open(kind string, opts Options) (Engine, error) {
	switch kind {
	case CPU:
		return NewCPU(opts.CPU), nil
	case CUDA:
		return NewCUDA(opts.CUDA)
	case Auto, "":
		engine, err := NewCUDA(opts.CUDA)
		if err == nil {
			return engine, nil
		}
		if !errors.Is(err, ErrNoCUDA) || named(&opts.CUDA) {
			return nil, fmt.Errorf("opening the CUDA engine (engine cpu does without it): %w", err)
		}
		return substitute{NewCPU(opts.CPU), err.Error()}, nil
	}
	return nil, fmt.Errorf("engine %q is unknown: use auto, cpu or cuda", kind)
}

// substitute is an engine that is not the preferred one.
type substitute struct {
	Engine
	why string
}

func (s substitute) Info() Info {
	info := s.Engine.Info()
	info.Note = s.why
	return info
}
