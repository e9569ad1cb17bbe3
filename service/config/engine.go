package config

import (
	"errors"
	"slices"

	"github.com/spf13/pflag"

	"github.com/geniemq/geniemq/gpuexec"
)

// EngineFlags adds the flags of the settings that say which engine runs and on what: those of Flags that also concern
// who opens an engine without a service.
func (c *Config) EngineFlags(fs *pflag.FlagSet) {
	fs.StringVar(&c.Engine, "engine", c.Engine, "auto, cpu or cuda")
	fs.IntVar(&c.EngineThreads, "engine-threads", c.EngineThreads, "cores of this host that the engine uses (default: all)")
	fs.StringVar(&c.Devices, "devices", c.Devices, "CUDA `devices` to use: ordinals like 0,1, or all (default: the first one)")
	fs.StringVar(&c.DeviceMode, "device-mode", c.DeviceMode, "how several devices share the work: replica (each has the whole index) or capacity (each has a part of it)")
	fs.Var(&c.GPUMemory, "gpu-memory", "`memory` per device that the CUDA engine may use, like 16GiB (default: nine tenths of what is free)")
}

// EngineOptions are the options for open.Engine of these settings, which goes with Engine as the kind. The error
// reports every fault of theirs, as Validate does.
func (c *Config) EngineOptions() (gpuexec.Options, error) {
	var faults faults
	if !slices.Contains([]string{gpuexec.Auto, gpuexec.CPU, gpuexec.CUDA}, c.Engine) {
		faults.add("engine", "%q is none of auto, cpu, cuda", c.Engine)
	}
	if c.EngineThreads < 0 {
		faults.add("engine-threads", "%d must be at least 0", c.EngineThreads)
	}
	devices, err := gpuexec.ParseDevices(c.Devices)
	if err != nil {
		faults.add("devices", "%v", err)
	}
	if c.Engine == gpuexec.CPU && (c.Devices != "" || c.GPUMemory != 0) {
		faults.add("engine", "cpu takes neither devices nor gpu-memory: use auto or cuda, or leave these out")
	}
	mode := gpuexec.DeviceMode(c.DeviceMode)
	if !slices.Contains(gpuexec.DeviceModes(), mode) {
		faults.add("device-mode", "%q is neither replica nor capacity", c.DeviceMode)
	}
	return gpuexec.Options{
		CPU:  gpuexec.CPUOptions{Workers: c.EngineThreads},
		CUDA: gpuexec.CUDAOptions{Devices: devices, Mode: mode, Memory: int64(c.GPUMemory), Workers: c.EngineThreads},
	}, errors.Join(faults...)
}
