//go:build cuda

package gpuexec

import (
	"errors"
	"fmt"

	"gorgonia.org/cu"
)

// openDevices opens the devices of the options: one engine, or a group.
func openDevices(opts CUDAOptions, images map[string][]byte) (Engine, error) {
	if err := driverStatus(); err != nil {
		return nil, err
	}
	count, err := cu.NumDevices()
	if err != nil {
		return nil, deviceError("counting the CUDA devices", err)
	}
	devices, err := opts.ordinals(count)
	if err != nil {
		return nil, err
	}
	if len(devices) == 1 {
		opts.device = devices[0]
		e, err := openCUDA(opts, images)
		if err != nil {
			return nil, err
		}
		return e, nil
	}
	return openGroup(opts, devices, images)
}

// openGroup opens one engine a device. The same device may come several times, which has uses in tests only.
func openGroup(opts CUDAOptions, devices []int, images map[string][]byte) (Engine, error) {
	if opts.crew == nil {
		opts.crew = newCrew(opts.Workers)
	}
	var members []member
	for _, device := range devices {
		opts.device = device
		e, err := openCUDA(opts, images)
		if err != nil {
			errs := []error{fmt.Errorf("opening device %d: %w", device, err)}
			for _, m := range members {
				errs = append(errs, m.Close())
			}
			return nil, errors.Join(errs...)
		}
		members = append(members, e)
	}
	return newDeviceGroup(members, opts.mode(), opts.crew), nil
}
