package gpuexec

import (
	"fmt"
	"strconv"
	"strings"
)

// DeviceMode says what several devices of one engine do for each other.
type DeviceMode string

// The modes of several devices.
const (
	// DeviceReplica gives every device the whole index and each batch to one of them: so many times the batches a
	// second, and a batch takes as long as on one device.
	DeviceReplica DeviceMode = "replica"
	// DeviceCapacity gives every device a part of the index and each batch to all of them: room for so many times
	// the index, and a batch is done sooner.
	DeviceCapacity DeviceMode = "capacity"
)

// DeviceModes are the modes there are.
func DeviceModes() []DeviceMode { return []DeviceMode{DeviceReplica, DeviceCapacity} }

// AllDevices as the only element of CUDAOptions.Devices stands for every device that the driver sees.
const AllDevices = -1

// ParseDevices reads a list of ordinals, like "0,1", or "all". The empty text is an empty list, which means the default.
func ParseDevices(s string) ([]int, error) {
	switch strings.TrimSpace(s) {
	case "":
		return nil, nil
	case "all":
		return []int{AllDevices}, nil
	}
	var devices []int
	seen := make(map[int]bool)
	for part := range strings.SplitSeq(s, ",") {
		device, err := strconv.Atoi(strings.TrimSpace(part))
		if err != nil || device < 0 {
			return nil, fmt.Errorf("%q is no device: give ordinals like 0,1, or all", strings.TrimSpace(part))
		}
		if seen[device] {
			return nil, fmt.Errorf("device %d is given twice", device)
		}
		seen[device] = true
		devices = append(devices, device)
	}
	return devices, nil
}
