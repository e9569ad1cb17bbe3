package block

import "golang.org/x/sys/cpu"

// Best returns the fastest kernels that this machine can run.
func Best() Kernels {
	if cpu.X86.HasAVX2 {
		return Kernels{bucketsAVX2, binsAVX2, withinAVX2, "avx2"}
	}
	return Plain()
}
