package bench

import (
	"math"
	"testing"
	"time"

	"github.com/geniemq/geniemq/internal/testkit/seeded"
)

// A figure that only varies is flat, one that grows is found out, also where its first and last samples say the opposite, and too little says nothing.
func TestTrend(t *testing.T) {
	rng := seeded.Rand(t)
	made := func(n int, perHour, noise float64) []float64 {
		samples := make([]float64, n)
		for i := range samples {
			samples[i] = 1e8 * (1 + perHour*float64(i)/float64(n) + noise*rng.NormFloat64())
		}
		return samples
	}
	misleading := made(600, 0.05, 0.001)
	misleading[0], misleading[599] = 1.2e8, 1e8
	for _, c := range []struct {
		name    string
		samples []float64
		verdict string
	}{
		{"nothing varies", made(600, 0, 0), flat},
		{"it varies", made(600, 0, 0.005), flat},
		{"it falls", made(600, -0.1, 0.005), flat},
		{"it grows by 5 % an hour", made(600, 0.05, 0.005), grows},
		{"it grows, and ends lower than it began", misleading, grows},
		{"it varies by more than could be found", made(60, 0, 0.5), unclear},
		{"too few", made(blocks-1, 0.5, 0), unclear},
	} {
		got := trendOf(c.samples, time.Hour)
		if c.verdict == unclear && len(c.samples) >= blocks { // chance may take it to either side, but the interval is wide
			if got.High-got.Low < tolerance {
				t.Errorf("%s: %+v", c.name, got)
			}
			continue
		}
		if got.Verdict != c.verdict {
			t.Errorf("%s: %+v", c.name, got)
		}
	}
	if got := trendOf(made(600, 0.05, 0), 30*time.Minute); math.Abs(got.PerHour-0.1/1.025) > 0.002 {
		t.Errorf("5 %% in half an hour is %+v an hour", got)
	}
}
