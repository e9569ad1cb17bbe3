package plan

// LongestRun is the most times that one id is in a list, at least 1.
func LongestRun(starts, ids []uint32) uint32 {
	longest := uint32(1)
	for i := range len(starts) - 1 {
		run := uint32(1)
		for j := starts[i] + 1; j < starts[i+1]; j++ {
			if run++; ids[j] != ids[j-1] {
				run = 1
			}
			longest = max(longest, run)
		}
	}
	return longest
}
