// Package clock tells the time of a server.
package clock

import (
	"log/slog"
	"sync"
	"sync/atomic"
	"time"
)

// Clock relates the clock of the server, which stamps messages, to that of this host. The two may differ by anything. A query
// with timeout_ms must neither expire at once because of that nor live an hour too long.
//
// Every answer of the JetStream API says when it was given, which was between its request and its arrival. When it is taken
// for the middle of the two, the error is at most half the round trip. So of the last answers the fastest counts. An answer that
// contradicts it replaces it at once: a clock was set, or another server leads the stream now.
//
// The age of a message is what has passed by the server's clock. All else is counted by this process's own monotonic clock, which nobody sets: a host's clock
// that is set changes neither what is known of the server's nor a query that is under way.
//
// Its methods may be called from any goroutine.
type Clock struct {
	wall func() time.Time // this host's, which may be set
	log  *slog.Logger

	began time.Time // by the monotonic clock
	then  time.Time // by the wall clock, at that moment

	skew atomic.Int64 // the server's clock less Now, nanoseconds

	mu      sync.Mutex
	samples []sample // the last ones, the latest last
	large   bool     // the skew was warned about
}

type sample struct{ skew, roundTrip time.Duration }

const (
	// keptSamples is of how many answers the fastest counts. In as many seconds the clocks of two hosts drift apart by some 100 us.
	keptSamples = 16
	// slack is by how much samples may differ beyond what their round trips allow.
	slack = 10 * time.Millisecond
	// largeSkew is what is warned about: people read both clocks in logs, and timeouts are of this order.
	largeSkew = time.Second
)

// New is a clock of which nothing is known but this host's. Differences that people should know of are logged.
func New(wall func() time.Time, log *slog.Logger) *Clock {
	return &Clock{wall: wall, log: log, began: time.Now(), then: wall().Round(0)} // whose monotonic reading would hide that a clock was set
}

// Observe takes in what the server's clock said between two readings of Now.
func (c *Clock) Observe(sent, server, received time.Time) {
	roundTrip := received.Sub(sent)
	if server.IsZero() || roundTrip < 0 {
		return
	}
	now := sample{skew: server.Sub(sent) - roundTrip/2, roundTrip: roundTrip}
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.samples) == keptSamples {
		c.samples = append(c.samples[:0], c.samples[1:]...)
	}
	c.samples = append(c.samples, now)
	best := now
	for i := len(c.samples) - 2; i >= 0; i-- {
		old := c.samples[i]
		if (now.skew - old.skew).Abs() > (now.roundTrip+old.roundTrip)/2+slack {
			c.samples = append(c.samples[:0], c.samples[i+1:]...) // it is of another time
			break
		}
		if old.roundTrip < best.roundTrip {
			best = old
		}
	}
	c.skew.Store(int64(best.skew))
	if skew := c.Skew(); (skew.Abs() > largeSkew) != c.large {
		if c.large = !c.large; c.large {
			c.log.Warn("the server's clock and this host's differ: messages are timed by the server's, log lines by this host's",
				"skew", skew)
		} else {
			c.log.Info("the server's clock and this host's agree again", "skew", skew)
		}
	}
}

// Server is the time by the server's clock.
func (c *Clock) Server() time.Time { return c.Now().Add(time.Duration(c.skew.Load())) }

// Now is the time by this host's clock as it was when the process began, and what has passed since. Setting the host's clock does not change it.
func (c *Clock) Now() time.Time { return c.then.Add(time.Since(c.began)) }

// Skew is the server's clock less this host's as it is set now, as far as is known.
func (c *Clock) Skew() time.Duration { return c.Server().Sub(c.wall().Round(0)) }

// Local is when something happened that the server has stamped: a reading of this process's monotonic clock, never in the future.
func (c *Clock) Local(stamp time.Time) time.Time {
	return time.Now().Add(-max(0, c.Server().Sub(stamp)))
}
