// Package raced lets tests do less under the race detector where it would see no more.
//
// The detector compares what goroutines of one process do to the same memory. A check of values, however often it is repeated, tells it nothing, and takes ten
// times as long under it. So what runs in one goroutine is skipped, and of what shares memory a part runs: each pair of accesses once and not each input. The same
// tests run whole without the detector, which is what holds the values, and with it where GENIEMQ_FULL=1.
package raced

import (
	"os"
	"testing"
)

// Why tests are skipped.
const (
	One  = "it runs in one goroutine"
	Data = "real data differ from others in their values"
	Same = "it compares values, and what it shares is raced by other tests"
)

// short is whether less is done.
func short() bool { return Detector && os.Getenv("GENIEMQ_FULL") != "1" }

// Skip ends a test of which the detector sees nothing, and says why that is so. It comes before the test prepares anything.
func Skip(t testing.TB, why string) {
	t.Helper()
	if short() {
		t.Skipf("%s: the race detector has nothing to see here, and go test without -race runs this", why)
	}
}

// Of is usual, or few under the detector.
func Of[T any](usual, few T) T {
	if short() {
		return few
	}
	return usual
}
