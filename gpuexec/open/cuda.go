//go:build cuda

package open

import (
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/geniemq/geniemq/gpuexec"
	"github.com/geniemq/geniemq/gpuexec/cuda/device"
	"github.com/geniemq/geniemq/gpuexec/cuda/neighbours"
	"github.com/geniemq/geniemq/gpuexec/group"
	"github.com/geniemq/geniemq/gpuexec/run"
	"github.com/geniemq/geniemq/index/distance"
	"github.com/geniemq/geniemq/kernels"
)

// cuda opens the devices of the options: one engine, or a group. Without a driver, or a device that can run the kernels, it
// fails with ErrNoCUDA.
func (f Families) cuda(opts gpuexec.CUDAOptions) (gpuexec.Engine, error) {
	images, err := kernels.Modules()
	if err != nil {
		return nil, err
	}
	count, err := device.Count()
	if err != nil {
		return nil, err
	}
	devices, err := ordinals(&opts, count)
	if err != nil {
		return nil, err
	}
	crew := run.NewCrew(opts.Workers)
	var members []*run.Engine
	for _, ordinal := range devices {
		e, err := device.Open(opts, ordinal, crew, images)
		if err != nil {
			return nil, errors.Join(fmt.Errorf("opening device %d: %w", ordinal, err), run.CloseAll(slices.Values(members)))
		}
		e.Loaders[distance.FamilyName], e.Finds = neighbours.Loader(e), neighbours.Finds(e)
		maps.Copy(e.Loaders, f.CUDA)
		members = append(members, e.Engine)
	}
	if len(members) == 1 {
		return members[0], nil
	}
	return group.New(members, modeOf(&opts), crew), nil
}
