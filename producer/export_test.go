package producer

import (
	"cmp"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
)

// Limits are those that a test sets; zero ones stay.
type Limits struct {
	MaxInFlight                        int
	MaxInFlightBytes                   int64
	AckTimeout, MinBackoff, MaxBackoff time.Duration
}

// NewLimited is New with other limits, which asks the connection's server where the options say nothing else.
func NewLimited(nc *nats.Conn, opts Options, l Limits) (*Producer, error) {
	if opts.JetStream == nil {
		js, err := jetstream.New(nc)
		if err != nil {
			return nil, err
		}
		opts.JetStream = js
	}
	d := defaults(opts.Share)
	return start(nc, opts, limits{
		maxInFlight: cmp.Or(l.MaxInFlight, d.maxInFlight), maxInFlightBytes: cmp.Or(l.MaxInFlightBytes, d.maxInFlightBytes),
		ackTimeout: cmp.Or(l.AckTimeout, d.ackTimeout), minBackoff: cmp.Or(l.MinBackoff, d.minBackoff), maxBackoff: cmp.Or(l.MaxBackoff, d.maxBackoff),
	})
}

// InFlightBytes are published and not yet confirmed.
func (p *Producer) InFlightBytes() int64 {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.bytes
}
