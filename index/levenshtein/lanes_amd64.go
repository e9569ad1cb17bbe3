package levenshtein

import "golang.org/x/sys/cpu"

// Kernels returns those that this machine can run, the fastest first.
func Kernels() []Kernel {
	if !cpu.X86.HasAVX2 {
		return []Kernel{plainKernel()}
	}
	return []Kernel{{"avx2", func(bits int) kernel {
		switch bits {
		case 16:
			return lanes16AVX2
		case 32:
			return lanes32AVX2
		}
		return lanes64AVX2
	}}, plainKernel()}
}
