// Package seeded gives tests their random numbers.
package seeded

import (
	"math/rand/v2"
	"os"
	"strconv"
	"testing"
)

// Rand is seeded by GENIEMQ_SEED, which a failed test names, else anew each time.
func Rand(t testing.TB) *rand.Rand {
	t.Helper()
	seed := rand.Uint64()
	if text := os.Getenv("GENIEMQ_SEED"); text != "" {
		var err error
		if seed, err = strconv.ParseUint(text, 10, 64); err != nil {
			t.Fatalf("GENIEMQ_SEED: %v", err)
		}
	}
	t.Logf("seed %d (GENIEMQ_SEED=%[1]d repeats it)", seed)
	return rand.New(rand.NewPCG(seed, 0))
}
