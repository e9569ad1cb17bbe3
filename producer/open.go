package producer

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/geniemq/geniemq/internal/bell"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
)

// New starts a producer on a connection, which must outlive it. Close ends it.
func New(nc *nats.Conn, opts Options) (*Producer, error) {
	opts.ensureDefaults()
	p := &Producer{
		nc: nc, opts: opts,
		ackPrefix: nc.NewInbox() + ".",
		wakeTend:  bell.New(),
		wakeFlush: bell.New(),
		asks:      make(chan *question, 1),
		flights:   make(map[uint64]*flight),
		errSeen:   make(chan struct{}),
		seenErr:   nc.LastError(),
		offline:   time.Now(),
	}
	var err error
	if p.js, err = jetstream.New(nc); err != nil {
		return nil, fmt.Errorf("use JetStream: %w", err)
	}
	acks, err := nc.Subscribe(p.ackPrefix+"*", p.onAck)
	if err != nil {
		return nil, fmt.Errorf("subscribe to publish acknowledgements: %w", err)
	}
	if err := acks.SetPendingLimits(-1, -1); err != nil { // MaxInFlight bounds them
		return nil, fmt.Errorf("unbound publish acknowledgements: %w", err)
	}
	p.acks = acks
	next := nc.ErrorHandler()
	nc.SetErrorHandler(func(nc *nats.Conn, sub *nats.Subscription, err error) {
		p.onError(err)
		if next != nil {
			next(nc, sub, err)
		}
	})
	p.status = nc.StatusChanged(nats.CONNECTED, nats.RECONNECTING, nats.CLOSED)
	p.connected, p.epoch = nc.IsConnected(), nc.Stats().Reconnects
	p.ctx, p.stop = context.WithCancel(context.Background())
	p.wg.Go(p.tendLoop)
	p.wg.Go(p.flushLoop)
	p.wg.Go(p.askLoop)
	return p, nil
}

// Close refuses further messages, waits for the confirmation of those in flight until ctx ends, and gives the
// rest, which it counts in its error, to their done functions as [ErrClosed].
func (p *Producer) Close(ctx context.Context) error {
	p.mu.Lock()
	p.closed = true
	for len(p.flights) > 0 && ctx.Err() == nil {
		p.awaitRoom(ctx)
	}
	p.mu.Unlock()
	rest := p.finishAll(fmt.Errorf("not confirmed: %w", ErrClosed))

	p.stop()
	p.wg.Wait()
	p.nc.RemoveStatusListener(p.status)
	if err := p.acks.Unsubscribe(); err != nil && !errors.Is(err, nats.ErrConnectionClosed) {
		return fmt.Errorf("close producer: %w", err)
	}
	if rest > 0 {
		return fmt.Errorf("close producer: %d messages were not confirmed: %w", rest, context.Cause(ctx))
	}
	return nil
}
