package nearest

import (
	"testing"

	"github.com/geniemq/geniemq/gpuexec/cuda/profile"
	"github.com/geniemq/geniemq/gpuexec/run"
	"github.com/geniemq/geniemq/index/metric"
	"github.com/geniemq/geniemq/internal/testkit/seeded"
)

// Levels pay where hits are of one cluster, not before; where bytes differ within a level they never do; and a sample that is too small says nothing.
func TestLevelsFrom(t *testing.T) {
	rng := seeded.Rand(t)
	const dims, clusters, each = 282, 100, 40
	waves := profile.Of("").Near
	waves.Levelled, waves.LevelsLeave = 20, 0.02
	centres := vectorsOf(clusters, dims, func(int) float64 { return float64(rng.IntN(240)) })
	vector := -1
	clustered := func(d int) float64 {
		if d == 0 {
			vector++
		}
		return centres[vector%clusters*dims+d] + float64(rng.IntN(8))
	}
	small := func(int) float64 { return float64(rng.IntN(8)) }
	for _, c := range []struct {
		name     string
		n        int
		of       func(d int) float64
		from, to int
	}{
		{"clusters", clusters * each, clustered, 4 * each, 4 * each},
		{"a sample without two of a cluster", clusters, clustered, 0, 0},
		{"bytes that are nowhere near each other", 4000, func(int) float64 { return float64(rng.IntN(256)) }, 1280, 2560},
		{"one level and a far value", 4000, small, 0, 0},
		{"as many as have to be seen", waves.Levelled, clustered, 0, 0},
	} {
		vector = -1
		sample := vectorsOf(c.n, dims, c.of)
		for d := range dims { // a step is a whole number
			sample[dims+d], sample[2*dims+d] = 0, 255
		}
		s := columnOf(metric.L1, dims, 100, true).Sieve
		if s.Product != Bytes || !s.SetLevels(sample) {
			t.Fatalf("%s: %+v", c.name, s)
		}
		levels := s.LevelsSample()
		for i := range c.n {
			levels.Add(sample[i*dims:][:dims])
		}
		if from := levels.From(run.NewCrew(2), &waves); from < c.from || from > c.to {
			t.Errorf("%s: levels from %d seen for each hit, want %d to %d", c.name, from, c.from, c.to)
		}
	}
}
