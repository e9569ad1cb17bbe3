package gpuexec

// CUDAOptions are the options of the CUDA engine. The zero value is ready to use.
type CUDAOptions struct {
	// Device is the ordinal of the device. Default 0.
	Device int
	// Memory is the device memory in bytes that the engine may use, for indexes and batches together. Default: nine
	// tenths of what is free when the engine is opened.
	Memory int64
	// BatchMemory is the device memory in bytes of one batch in flight. Default: 1 GiB, or less where the device is
	// small: an eighth of Memory.
	BatchMemory int64
	// InFlight is the number of batches that execute at a time, each on its own stream, whatever their index. Default 2.
	InFlight int
	// BatchPlans is Capacity.BatchPlans. Default 1024.
	BatchPlans int
	// Workers is the number of cores that verify sequences. Default runtime.GOMAXPROCS(0).
	Workers int

	crew *crew // the cores that the devices of a group share; nil: the engine's own
}
