package rescoring

import (
	"github.com/geniemq/geniemq/gpuexec/cuda/abi"
	"github.com/geniemq/geniemq/gpuexec/cuda/texts"
	"github.com/geniemq/geniemq/gpuexec/run"
	"github.com/geniemq/geniemq/index/verify"
)

// Edit distances (kernels/verify.cu). The host stops early, and bounds each comparison by the best so far: a K of 1,000 costs it little more
// than one of 32. The device compares whole warps without bound, where 32 pairs cost as much as one. So it takes the first
// candidates, those that bounds do not help with, and leaves the others to the host, for most of which their length
// or count is enough. The host also compares patterns of more than 2,048 symbols, single texts of more than 4,096, and in
// indexes whose texts are not on the device (Texts).

// Compares is true when these are the texts that are asked for, and the pattern has at most so many symbols as the device compares.
func (t *Texts) Compares(n *verify.Nearest, maxPattern int) bool {
	return t != nil && n.Texts == t.Source && len(n.Text) <= maxPattern
}

// share takes the first candidates of a job with the text of its *verify.Nearest.
func (t *Texts) share(job *run.Job, n *verify.Nearest) Share {
	class := texts.PairClass(len(n.Text))
	pairs := abi.WarpLanes >> class // of a task
	scored := min(job.K, max(abi.WarpLanes, 2*n.K))
	return Share{kind: edit, launch: uint32(class), Scored: int32(scored), words: int32(len(n.Text)), tasks: int32((scored + pairs - 1) / pairs)}
}

// tasks writes a share's.
func (t *Texts) tasks(to []abi.VerifyTask, s *Share, places, answer uint32) {
	task := abi.VerifyTask{Answer: answer, Places: places, Distances: s.scores, Pattern: s.first, Length: uint32(s.words)}
	pairs := uint32(abi.WarpLanes >> s.launch)
	for i := range to {
		task.Ranks = min(pairs, uint32(s.Scored)-task.Rank)
		to[i] = task
		task.Rank += pairs
	}
}

// ask writes a pattern.
func (t *Texts) ask(to []uint16, n *verify.Nearest) {
	for i, r := range n.Text {
		to[i] = t.Symbols.Of(r)
	}
}

// known are distances, as a rescorer wants them.
func known(dst []verify.Known, distances []int32) []verify.Known {
	for _, d := range distances {
		k := verify.Unknown
		if d >= 0 {
			k = verify.KnownScore(float64(d))
		}
		dst = append(dst, k)
	}
	return dst
}
