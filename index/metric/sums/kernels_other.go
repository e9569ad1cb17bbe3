//go:build !amd64

package sums

// All returns the kernels that this machine can run, the fastest first.
func All() []Kernels { return []Kernels{Plain()} }
