package main

import (
	"slices"

	"github.com/spf13/cobra"

	"github.com/geniemq/geniemq/gpuexec"
)

// deviceFlags are the flags that choose CUDA devices, as those of serve.
type deviceFlags struct{ devices, mode string }

func (d *deviceFlags) register(cmd *cobra.Command) {
	flags := cmd.Flags()
	flags.StringVar(&d.devices, "devices", "", "CUDA `devices` to use: ordinals like 0,1, or all (default: the first one)")
	flags.StringVar(&d.mode, "device-mode", string(gpuexec.DeviceReplica), "several devices: replica (each has the whole index) or capacity (each has a part)")
}

func (d *deviceFlags) options() (gpuexec.CUDAOptions, error) {
	devices, err := gpuexec.ParseDevices(d.devices)
	if err != nil {
		return gpuexec.CUDAOptions{}, usagef("--devices: %v", err)
	}
	mode := gpuexec.DeviceMode(d.mode)
	if !slices.Contains(gpuexec.DeviceModes(), mode) {
		return gpuexec.CUDAOptions{}, usagef("--device-mode %q is neither replica nor capacity", d.mode)
	}
	return gpuexec.CUDAOptions{Devices: devices, Mode: mode}, nil
}
