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
// The age of a message is what has passed by the server's clock. From there on this process counts by its own monotonic clock,
// which nobody sets. So a clock that is set while a query is under way changes nothing for that query.
//
// Its methods may be called from any goroutine.
type Clock struct {
	wall func() time.Time // this host's
	log  *slog.Logger

	skew atomic.Int64 // the server's clock less this host's, nanoseconds

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
	return &Clock{wall: wall, log: log}
}

// Observe takes in what the server's clock said between two readings of this host's, of Wall.
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
	if large := best.skew.Abs() > largeSkew; large != c.large {
		if c.large = large; large {
			c.log.Warn("the server's clock and this host's differ: messages are timed by the server's, log lines by this host's",
				"skew", best.skew)
		} else {
			c.log.Info("the server's clock and this host's agree again", "skew", best.skew)
		}
	}
}

// Server is the time by the server's clock.
func (c *Clock) Server() time.Time { return c.wall().Add(c.Skew()) }

// Wall is the time by this host's clock.
func (c *Clock) Wall() time.Time { return c.wall() }

// Skew is the server's clock less this host's, as far as is known.
func (c *Clock) Skew() time.Duration { return time.Duration(c.skew.Load()) }

// Local is when something happened that the server has stamped: a reading of this process's monotonic clock, never in the future.
func (c *Clock) Local(stamp time.Time) time.Time {
	return time.Now().Add(-max(0, c.Server().Sub(stamp)))
}
