//go:build cuda

package open

import (
	"errors"
	"fmt"

	"github.com/geniemq/geniemq/gpuexec"
	"github.com/geniemq/geniemq/gpuexec/cuda/device"
	"github.com/geniemq/geniemq/gpuexec/group"
	"github.com/geniemq/geniemq/gpuexec/run"
	"github.com/geniemq/geniemq/kernels"
)

// newCUDA opens a CUDA device, or several as one engine. Without a driver, or a device that
// can run the kernels, it fails with ErrNoCUDA.
func newCUDA(opts gpuexec.CUDAOptions) (gpuexec.Engine, error) {
	images, err := kernels.Modules()
	if err != nil {
		return nil, err
	}
	return openDevices(opts, images)
}

// openDevices opens the devices of the options: one engine, or a group.
func openDevices(opts gpuexec.CUDAOptions, images map[string][]byte) (gpuexec.Engine, error) {
	count, err := device.Count()
	if err != nil {
		return nil, err
	}
	devices, err := ordinals(&opts, count)
	if err != nil {
		return nil, err
	}
	crew := run.NewCrew(opts.Workers)
	if len(devices) == 1 {
		e, err := device.Open(opts, devices[0], crew, images)
		if err != nil {
			return nil, err
		}
		return e, nil
	}
	return openGroup(opts, devices, crew, images)
}

// openGroup opens one engine per device. The same device may come several times, which has uses in tests only.
func openGroup(opts gpuexec.CUDAOptions, devices []int, crew *run.Crew, images map[string][]byte) (gpuexec.Engine, error) {
	var members []*run.Engine
	for _, ordinal := range devices {
		e, err := device.Open(opts, ordinal, crew, images)
		if err != nil {
			errs := []error{fmt.Errorf("opening device %d: %w", ordinal, err)}
			for _, m := range members {
				errs = append(errs, m.Close())
			}
			return nil, errors.Join(errs...)
		}
		members = append(members, e.Engine)
	}
	return group.New(members, modeOf(&opts), crew), nil
}
