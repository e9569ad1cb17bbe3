package consumer

import (
	"cmp"
	"context"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/geniemq/geniemq/wire"
)

// Limits are those that a test sets; zero ones stay.
type Limits struct {
	Messages                               int
	PullExpiry, RequestTimeout, MaxBackoff time.Duration
}

// Limit sets them, before Run.
func (c *Consumer) Limit(l Limits) {
	c.limits = limits{
		messages: cmp.Or(l.Messages, c.limits.messages), pullExpiry: cmp.Or(l.PullExpiry, c.limits.pullExpiry),
		requestTimeout: cmp.Or(l.RequestTimeout, c.limits.requestTimeout), maxBackoff: cmp.Or(l.MaxBackoff, c.limits.maxBackoff),
	}
}

// SweeperOf makes a sweeper that takes messages of an age, and sweeps after each interval. By default it sweeps queries, by this host's clock, and nobody
// serves what has no durable.
func SweeperOf(age, interval time.Duration, js jetstream.JetStream, opts SweeperOptions) *Sweeper {
	opts.Class = cmp.Or(opts.Class, wire.ClassQuery)
	if opts.Now == nil {
		opts.Now = time.Now
	}
	if opts.OnSweep == nil {
		opts.OnSweep = func(int, error) {}
	}
	if opts.Alive == nil {
		opts.Alive = func(context.Context, string) (bool, error) { return false, nil }
	}
	s := NewSweeper(js, opts)
	s.age, s.interval = age, interval
	return s
}
