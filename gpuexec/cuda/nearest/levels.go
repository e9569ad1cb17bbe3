package nearest

import (
	"context"
	"slices"

	"github.com/geniemq/geniemq/gpuexec/cuda/profile"
	"github.com/geniemq/geniemq/gpuexec/run"
	"github.com/geniemq/geniemq/index/metric/bound"
)

// levelled is how many bytes have one level: kernels/near_levels.cu.
const levelled = 8

// levelsAsked is how many vectors of a sample are asked for.
const levelsAsked = 16

// LevelsSample is some vectors of a column, which say from when on levels prove enough: what they leave is compared by its bytes, one by one, which takes longer than all
// bytes do where much is left. What is near is what counts, and that is found only in a sample of many vectors: among few none are of one cluster.
type LevelsSample struct {
	sieve *Sieve
	bytes []uint8
	lost  []int // of each vector, by levels
}

// LevelsSample is one without vectors. SetLevels has been there.
func (s *Sieve) LevelsSample() *LevelsSample { return &LevelsSample{sieve: s} }

// LevelsSize is how many vectors a sample has: so many that it takes about waves.LevelsWork steps.
func (s *Sieve) LevelsSize(waves *profile.NearWaves) uint32 {
	return uint32(max(1, waves.LevelsWork/(levelsAsked*s.dims)))
}

// Add adds a vector.
func (l *LevelsSample) Add(v []float64) {
	scale, lost := l.sieve.Scale(), 0
	for d, x := range v {
		b, _ := bound.Level(x, scale, l.sieve.Mean[d])
		rest := 2*int(b%levelled) - (levelled - 1)
		lost += max(rest, -rest)
		l.bytes = append(l.bytes, b)
	}
	l.lost = append(l.lost, lost)
}

// pair is an object beside one that is asked for: their difference, and what levels prove of it.
type pair struct{ whole, least int }

// compare compares a vector of the sample with all others, in the order of their differences.
func (l *LevelsSample) compare(asked int) []pair {
	dims := l.sieve.dims
	all, q := make([]pair, 0, len(l.lost)), l.bytes[asked*dims:][:dims]
	for i := range l.lost {
		if i == asked {
			continue
		}
		whole, coarse := 0, 0
		for d, a := range l.bytes[i*dims:][:dims] {
			more, less := max(a, q[d]), min(a, q[d])
			whole += int(more) - int(less)
			coarse += int(more/levelled) - int(less/levelled)
		}
		all = append(all, pair{whole, levelled*coarse - (l.lost[i]+l.lost[asked])/2})
	}
	slices.SortFunc(all, func(a, b pair) int { return a.whole - b.whole })
	return all
}

// From is how many objects have been seen for each hit when levels leave no more than waves.LevelsLeave of the others, but waves.Levelled at least; 0: the sample does not
// show that they ever do. The last of the hits is then as far as the nearest of so many.
func (l *LevelsSample) From(crew *run.Crew, waves *profile.NearWaves) (seen int) {
	others := len(l.lost) - 1
	if others < waves.Levelled {
		return 0
	}
	all := make([][]pair, levelsAsked)
	if crew.Run(context.Background(), levelsAsked, func(_ *run.Shift, i int) { all[i] = l.compare(i * len(l.lost) / levelsAsked) }) != nil {
		return 0 // they had no memory, say
	}
	for seen = max(1, waves.Levelled); seen <= others; seen *= 2 {
		left := 0
		for _, pairs := range all {
			limit := pairs[others/seen-1].whole
			for _, p := range pairs {
				if p.least <= limit {
					left++
				}
			}
		}
		if float64(left) <= waves.LevelsLeave*float64(levelsAsked*others) {
			return seen
		}
	}
	return 0
}
