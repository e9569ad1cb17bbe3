package permutation

import "golang.org/x/sys/cpu"

// best returns the fastest loop that this machine can run.
func best(s Similarity, m int) distances {
	if !cpu.X86.HasAVX2 || m < chunk {
		return plain(s)
	}
	if s == Footrule {
		return footruleAVX2
	}
	return rhoAVX2
}
