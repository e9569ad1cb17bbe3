package clock

import (
	"bytes"
	"log/slog"
	"strings"
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
		if got := time.Duration(c.skew.Load()); (got - want).Abs() > within {
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

// A host's clock that is set, either way, changes neither the server's time nor the age of a message, also before the server is asked again; people are told.
func TestHostClockIsSet(t *testing.T) {
	for _, step := range []time.Duration{time.Hour, -time.Hour} {
		var off time.Duration
		var log bytes.Buffer
		c := New(func() time.Time { return time.Now().Add(off) }, slog.New(slog.NewTextHandler(&log, nil)))
		observe := func() {
			at := c.Now()
			c.Observe(at, time.Now().Add(time.Minute).UTC(), at)
		}
		observe()
		stamp := c.Server()
		off = step
		for range 2 {
			if got := c.Server().Sub(time.Now().Add(time.Minute).Round(0)); got.Abs() > 30*time.Second {
				t.Errorf("after a step of %v the server's time is off by %v", step, got)
			}
			if age := time.Since(c.Local(stamp)); age < 0 || age > 30*time.Second {
				t.Errorf("after a step of %v a message that was just stamped is %v old", step, age)
			}
			if got := c.Skew(); (got - time.Minute + step).Abs() > 30*time.Second {
				t.Errorf("after a step of %v the skew is %v", step, got)
			}
			observe()
		}
		if got := log.String(); strings.Count(got, "WARN") != 1 {
			t.Errorf("the log says: %s", got)
		}
		off = time.Minute
		if observe(); !strings.Contains(log.String(), "agree again") {
			t.Errorf("the log says: %s", log.String())
		}
	}
}
