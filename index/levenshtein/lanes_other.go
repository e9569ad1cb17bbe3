//go:build !amd64

package levenshtein

// Kernels returns those that this machine can run, the fastest first.
func Kernels() []Kernel { return []Kernel{plainKernel()} }
