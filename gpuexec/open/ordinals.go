package open

import (
	"cmp"
	"fmt"

	"github.com/geniemq/geniemq/gpuexec"
)

// named is true when certain devices are asked for.
func named(o *gpuexec.CUDAOptions) bool {
	return len(o.Devices) > 0 && o.Devices[0] != gpuexec.AllDevices
}

func modeOf(o *gpuexec.CUDAOptions) gpuexec.DeviceMode { return cmp.Or(o.Mode, gpuexec.DeviceReplica) }

// ordinals are the devices to open, of so many that there are.
func ordinals(o *gpuexec.CUDAOptions, count int) ([]int, error) {
	if m := modeOf(o); m != gpuexec.DeviceReplica && m != gpuexec.DeviceCapacity {
		return nil, fmt.Errorf("device mode %q is unknown: use one of %v", m, gpuexec.DeviceModes())
	}
	switch {
	case count == 0:
		return nil, fmt.Errorf("%w: the machine has no device", gpuexec.ErrNoCUDA)
	case len(o.Devices) == 0:
		return []int{0}, nil
	case len(o.Devices) == 1 && o.Devices[0] == gpuexec.AllDevices:
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
