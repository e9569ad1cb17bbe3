//go:build cuda

package gpuexec

import (
	"errors"
	"fmt"

	"github.com/geniemq/geniemq/kernels"
)

// NewCUDA opens a CUDA device, or several as one engine. Without a driver, or a device that
// can run the kernels, it fails with ErrNoCUDA.
func NewCUDA(opts CUDAOptions) (Engine, error) {
	images, err := kernels.Modules()
	if err != nil {
		return nil, err
	}
	return openDevices(opts, images)
}

// openDevices opens the devices of the options: one engine, or a group.
func openDevices(opts CUDAOptions, images map[string][]byte) (Engine, error) {
	count, err := countDevices()
	if err != nil {
		return nil, err
	}
	devices, err := ordinals(&opts, count)
	if err != nil {
		return nil, err
	}
	crew := newCrew(opts.Workers)
	if len(devices) == 1 {
		e, err := openCUDA(opts, devices[0], crew, images)
		if err != nil {
			return nil, err
		}
		return e, nil
	}
	return openGroup(opts, devices, crew, images)
}

// openGroup opens one engine a device. The same device may come several times, which has uses in tests only.
func openGroup(opts CUDAOptions, devices []int, crew *crew, images map[string][]byte) (Engine, error) {
	var members []member
	for _, device := range devices {
		e, err := openCUDA(opts, device, crew, images)
		if err != nil {
			errs := []error{fmt.Errorf("opening device %d: %w", device, err)}
			for _, m := range members {
				errs = append(errs, m.Close())
			}
			return nil, errors.Join(errs...)
		}
		members = append(members, e)
	}
	return newDeviceGroup(members, modeOf(&opts), crew), nil
}
