// Package seeded gives tests their random numbers.
package seeded

import (
	"math/rand/v2"
	"os"
	"strconv"
	"testing"
)

// Seed is GENIEMQ_SEED, else another each time. The log of the test names it, which is shown when it fails.
func Seed(t testing.TB) uint64 {
	t.Helper()
	seed := rand.Uint64()
	if text := os.Getenv("GENIEMQ_SEED"); text != "" {
		var err error
		if seed, err = strconv.ParseUint(text, 10, 64); err != nil {
			t.Fatalf("GENIEMQ_SEED: %v", err)
		}
	}
	t.Logf("seed %d (GENIEMQ_SEED=%[1]d repeats it)", seed)
	return seed
}

// Rand draws from Seed.
func Rand(t testing.TB) *rand.Rand {
	t.Helper()
	return rand.New(rand.NewPCG(Seed(t), 0))
}
