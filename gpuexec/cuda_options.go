package gpuexec

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
	// small: a twelfth of Memory.
	BatchMemory int64
	// InFlight is the number of batches that a device executes at a time, each on its own stream, whatever their index; of
	// indexes that are streamed one at a time. Default 3.
	InFlight int
	// Workers is the number of cores that prepare batches, join answers and verify sequences, for all devices together.
	// Default runtime.GOMAXPROCS(0).
	Workers int
	// Untried takes ways to answer too that nobody has measured on a device yet, which are off else: for tests and measurements. Answers are the same.
	Untried bool
}
