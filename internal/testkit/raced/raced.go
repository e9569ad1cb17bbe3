// Package raced lets tests do less under the race detector where it would see no more.
//
// The detector compares what goroutines of one process do to the same memory. A check of values, however often it is repeated, tells it nothing, and takes ten
// times as long under it. So what runs in one goroutine is skipped, and of what shares memory a part runs: each pair of accesses once and not each input. The same
// tests run whole without the detector, which is what holds the values.
package raced

import "testing"

// Skip ends a test of which the detector sees nothing, and says why that is so. It comes before the test prepares anything.
func Skip(t testing.TB, why string) {
	t.Helper()
	if Detector {
		t.Skipf("%s: the race detector has nothing to see here, and go test without -race runs this", why)
	}
}

// Why tests are skipped.
const (
	One  = "it runs in one goroutine"
	Data = "real data differ from others in their values"
)

// Of is usual, or short under the detector.
func Of[T any](usual, short T) T {
	if Detector {
		return short
	}
	return usual
}
