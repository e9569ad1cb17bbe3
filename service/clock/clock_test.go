package clock

import (
	"log/slog"
	"testing"
	"time"
)

// The fastest of the last answers counts; one that contradicts the others replaces them.
func TestClockSamples(t *testing.T) {
	c := New(time.Now, slog.New(slog.DiscardHandler))
	base := time.Unix(1_000_000, 0)
	sample := func(skew, roundTrip, late time.Duration) { // the server read its clock so late
		c.Observe(base, base.Add(late+skew), base.Add(roundTrip))
		base = base.Add(time.Second)
	}
	check := func(want, within time.Duration) {
		t.Helper()
		if got := c.Skew(); (got - want).Abs() > within {
			t.Errorf("skew %v, want %v within %v", got, want, within)
		}
	}
	sample(time.Hour, 100*time.Millisecond, 0) // all of the round trip on the way back
	check(time.Hour, 50*time.Millisecond)
	sample(time.Hour, 2*time.Millisecond, 2*time.Millisecond)
	check(time.Hour, time.Millisecond)
	for range 5 {
		sample(time.Hour, 80*time.Millisecond, 80*time.Millisecond)
	}
	check(time.Hour, time.Millisecond)
	for range keptSamples { // the fast one is too long ago
		sample(time.Hour+4*time.Millisecond, 10*time.Millisecond, 5*time.Millisecond)
	}
	check(time.Hour+4*time.Millisecond, time.Millisecond)
	sample(-time.Minute, 30*time.Millisecond, 15*time.Millisecond) // someone set a clock
	check(-time.Minute, time.Millisecond)
	sample(-time.Minute, 90*time.Millisecond, 0)
	check(-time.Minute, time.Millisecond)
	c.Observe(base, time.Time{}, base)                 // an old server says nothing
	c.Observe(base, base, base.Add(-time.Millisecond)) // this host's clock was set meanwhile
	check(-time.Minute, time.Millisecond)
}
