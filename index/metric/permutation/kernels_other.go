//go:build !amd64

package permutation

// best returns the fastest loop that this machine can run.
func best(s Similarity, _ int) distances { return plain(s) }
