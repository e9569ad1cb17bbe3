package gpuexec

import (
	"cmp"
	"fmt"
)

// CUDAOptions are the options of the CUDA engine. The zero value is ready to use.
type CUDAOptions struct {
	// Devices are the ordinals of the devices, in the driver's order, or AllDevices alone. Default: device 0 alone,
	// since other programs may count on the others.
	Devices []int
	// Mode says what several devices do for each other. Default DeviceReplica. It means nothing for one device.
	Mode DeviceMode
	// Memory is the memory in bytes that the engine may use of a device, for indexes and batches together. Default: nine
	// tenths of what is free when the engine is opened.
	Memory int64
	// BatchMemory is the device memory in bytes of one batch in flight. Default: 1 GiB, or less where the device is
	// small: an eighth of Memory.
	BatchMemory int64
	// InFlight is the number of batches that a device executes at a time, each on its own stream, whatever their index; of
	// indexes that are streamed one at a time. Default 2.
	InFlight int
	// BatchPlans is Capacity.BatchPlans. Default 1024.
	BatchPlans int
	// Workers is the number of cores that prepare batches, join answers and verify sequences, for all devices together.
	// Default runtime.GOMAXPROCS(0).
	Workers int

	device int   // the one ordinal that an engine opens (openCUDA)
	crew   *crew // the cores that the devices of a group share; nil: the engine's own
}

// named is true when certain devices are asked for.
func (o *CUDAOptions) named() bool { return len(o.Devices) > 0 && o.Devices[0] != AllDevices }

func (o *CUDAOptions) mode() DeviceMode { return cmp.Or(o.Mode, DeviceReplica) }

// ordinals are the devices to open, of so many that there are.
func (o *CUDAOptions) ordinals(count int) ([]int, error) {
	if m := o.mode(); m != DeviceReplica && m != DeviceCapacity {
		return nil, fmt.Errorf("device mode %q is unknown: use one of %v", m, DeviceModes())
	}
	switch {
	case count == 0:
		return nil, fmt.Errorf("%w: the machine has no device", ErrNoCUDA)
	case len(o.Devices) == 0:
		return []int{0}, nil
	case len(o.Devices) == 1 && o.Devices[0] == AllDevices:
		all := make([]int, count)
		for i := range all {
			all[i] = i
		}
		return all, nil
	}
	seen := make(map[int]bool)
	for _, device := range o.Devices {
		if device < 0 || device >= count {
			return nil, fmt.Errorf("there is no CUDA device %d: the driver sees %d, counted from 0", device, count)
		}
		if seen[device] {
			return nil, fmt.Errorf("CUDA device %d is given twice", device)
		}
		seen[device] = true
	}
	return o.Devices, nil
}
