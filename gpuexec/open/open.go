// Package open opens engines by their names, with the loaders of what they can search. It is the only package that knows all
// engines. What each can search by itself stands with it; Families adds to that.
package open

import (
	"errors"
	"fmt"
	"maps"

	"github.com/geniemq/geniemq/gpuexec"
	"github.com/geniemq/geniemq/gpuexec/cpu"
	"github.com/geniemq/geniemq/gpuexec/run"
)

// Families are the loaders of structures that an engine gets beside its own, by the name of the family: a map for each kind of
// engine. One of the same name replaces the engine's. The zero value adds none.
type Families struct {
	CPU, CUDA run.Loaders
}

// Engine opens an engine of a kind that can search what is built in: see Families.Engine.
func Engine(kind string, opts gpuexec.Options) (gpuexec.Engine, error) {
	return Families{}.Engine(kind, opts)
}

// Engine opens an engine of a kind: Auto (also ""), CPU or CUDA. CUDA fails with ErrNoCUDA where no device can be used; Auto
// takes the CPU then and says so in Info.Note, unless the options name devices: who does so wants these.
func (f Families) Engine(kind string, opts gpuexec.Options) (gpuexec.Engine, error) {
	switch kind {
	case gpuexec.CPU:
		return f.cpu(opts.CPU), nil
	case gpuexec.CUDA:
		return f.cuda(opts.CUDA)
	case gpuexec.Auto, "":
		engine, err := f.cuda(opts.CUDA)
		if err == nil {
			return engine, nil
		}
		if !errors.Is(err, gpuexec.ErrNoCUDA) || named(&opts.CUDA) {
			return nil, fmt.Errorf("opening the CUDA engine (engine cpu does without it): %w", err)
		}
		e := f.cpu(opts.CPU)
		e.About.Note = err.Error()
		return e, nil
	}
	return nil, fmt.Errorf("engine %q is unknown: use auto, cpu or cuda", kind)
}

func (f Families) cpu(opts gpuexec.CPUOptions) *run.Engine {
	e := cpu.New(opts)
	e.Release = e.Host.Crew.Hurry()
	maps.Copy(e.Loaders, f.CPU)
	return e
}
