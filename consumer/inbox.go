package consumer

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/geniemq/geniemq/consumer/streams"
)

// inbox is the subscription that answers to pull requests come to. The server drops a request whose inbox is closed:
// there is no other way to withdraw one. So each connection has an inbox of its own, and what was asked for before a
// reconnection cannot come on top of what is asked for after it.
type inbox struct {
	prefix string // of subjects; the rest is the number of the request
	sub    *nats.Subscription
	closed chan struct{}
	ending bool
}

func (c *Consumer) openInbox() (*inbox, error) {
	in := &inbox{prefix: c.nc.NewInbox() + ".", closed: make(chan struct{})}
	var err error
	if in.sub, err = c.nc.Subscribe(in.prefix+"*", func(msg *nats.Msg) { c.receive(in, msg) }); err != nil {
		return nil, fmt.Errorf("subscribe: %w", err)
	}
	in.sub.SetClosedHandler(func(string) {
		close(in.closed)
		c.wakePull.Ring()
	})
	if err := in.sub.SetPendingLimits(-1, -1); err != nil { // the window bounds them
		return nil, errors.Join(fmt.Errorf("unbound the subscription: %w", err), in.sub.Unsubscribe())
	}
	return in, nil
}

// close ends the subscription. What the server sent before it learns that is still received; closed is closed when all
// of it was.
func (in *inbox) close() {
	if !in.ending {
		in.ending = true
		_ = in.sub.Drain() // fails when it is closed already
	}
}

// renewInbox withdraws the open request, which was sent through a connection that is gone.
func (c *Consumer) renewInbox() error {
	in, err := c.openInbox()
	if err != nil {
		return err
	}
	c.in.close()
	c.in = in
	c.mu.Lock()
	c.pull = nil
	c.mu.Unlock()
	return nil
}

// quiet is how long nothing must have come before an open request is withdrawn.
const quiet = 20 * time.Millisecond

// withdraw closes the inbox when that is safe, and returns after how long to try again if it might be then. A message
// that the server sends while it is told is nobody's. A server that keeps the durable itself notices and delivers it
// again at once, but counts a delivery: so not while messages come, which the end of the request is waited for with.
// What is on its way between two servers would only come back after AckWait: so not there.
func (c *Consumer) withdraw(now time.Time) time.Duration {
	c.mu.Lock()
	clustered, leader, pull := c.clustered, c.leader, c.pull
	var wait time.Duration
	if pull != nil {
		wait = pull.heard.Add(quiet).Sub(now)
	}
	c.mu.Unlock()
	near := leader != "" && leader == c.nc.ConnectedServerName()
	if !clustered { // the only server there is, unless this one is a leaf of it
		near = c.nc.ConnectedClusterName() == "" && streams.API(c.js.Options()) == jetstream.DefaultAPIPrefix
	}
	switch {
	case !near || pull == nil:
		return never
	case wait > 0:
		return wait
	}
	c.in.close()
	return never
}

var errConnectionLost = errors.New("the connection was lost before the server answered")

// ask makes a request to the JetStream API. It ends after RequestTimeout, and when the connection is lost: the request
// may be lost with it, and waiting for its answer would hold up everything after the reconnection.
func (c *Consumer) ask(ctx context.Context, request func(context.Context) error) error {
	ctx, cancel := context.WithTimeout(ctx, c.limits.requestTimeout)
	defer cancel()
	status := c.nc.StatusChanged(nats.RECONNECTING, nats.CLOSED)
	defer c.nc.RemoveStatusListener(status)
	lost := false
	var watch sync.WaitGroup
	watch.Go(func() {
		select {
		case <-status:
			lost = true
			cancel()
		case <-ctx.Done():
		}
	})
	err := request(ctx)
	cancel()
	watch.Wait()
	if err != nil && lost {
		return errConnectionLost
	}
	return err
}
