package gpuexec

// CUDAOptions are the options of the CUDA engine. The zero value is ready to use.
type CUDAOptions struct {
	// Device is the ordinal of the device. Default 0.
	Device int
}
