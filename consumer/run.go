package consumer

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/nats-io/nats.go"
)

// Run consumes until Stop has done its work, and returns nil then, or until ctx ends: then it gives back at once
// what is outstanding. It may be called once. Whatever happens to the connection or the server is not an error;
// the error says that the consumer could not start.
func (c *Consumer) Run(ctx context.Context) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	c.mu.Lock()
	if c.running {
		c.mu.Unlock()
		return errors.New("consumer: Run was called before")
	}
	c.running, c.open = true, ctx
	c.mu.Unlock()
	defer close(c.ended)

	var err error
	if c.in, err = c.openInbox(); err != nil {
		return fmt.Errorf("consume queries of %s: %w", c.opts.Index, err)
	}
	status := c.nc.StatusChanged(nats.CONNECTED, nats.RECONNECTING, nats.CLOSED)

	c.pullLoop(ctx, status)
	c.mu.Lock()
	c.open = nil
	c.mu.Unlock()
	cancel()
	c.loops.Wait()
	c.nc.RemoveStatusListener(status)
	c.giveBack()
	return nil
}

// giveBack closes the inbox and naks what is still outstanding, also what is only now read from the connection.
func (c *Consumer) giveBack() {
	c.in.close()
	if c.nc.IsConnected() {
		select {
		case <-c.in.closed:
		case <-time.After(c.limits.requestTimeout):
		}
	}

	c.mu.Lock()
	rest := slices.Collect(maps.Values(c.outstanding))
	limbo := c.limbo
	c.limbo = nil
	c.mu.Unlock()
	for _, m := range rest {
		_ = m.Nak(0) // a message that cannot be given back comes back by itself after AckWait
	}
	for _, msg := range limbo {
		_ = msg.Respond([]byte("-NAK"))
	}
	if c.nc.IsConnected() { // acks and naks must be out before the process may end
		_ = c.nc.FlushTimeout(c.limits.requestTimeout)
	}
}

// Stop pulls no more, waits until the owner has settled everything that is outstanding, and makes Run return. When
// ctx ends first, the rest is given back (each costs it a delivery) and the error says how much that was.
func (c *Consumer) Stop(ctx context.Context) error {
	c.stopOnce.Do(func() { close(c.stopping) })
	c.mu.Lock()
	running := c.running
	c.mu.Unlock()
	if !running {
		return nil
	}
	select {
	case <-c.ended:
		return nil
	case <-ctx.Done():
	}
	c.mu.Lock()
	rest := len(c.outstanding)
	c.mu.Unlock()
	c.abandonOnce.Do(func() { close(c.abandon) })
	<-c.ended
	if rest > 0 {
		return fmt.Errorf("consumer of %s: %d messages were given back unanswered: %w", c.opts.Index, rest, context.Cause(ctx))
	}
	return nil
}

// Hold stops pulling, or goes on. Messages stay outstanding, and what was asked for already may still come.
func (c *Consumer) Hold(hold bool) {
	c.mu.Lock()
	c.held = hold
	c.mu.Unlock()
	c.wakePull.Ring()
}

// Grant changes the window to so many bytes and what one request may ask for, as Options.Bytes and PullBytes say. What is outstanding beyond
// the new window stays; nothing more is asked for until there is room.
func (c *Consumer) Grant(bytes, pullBytes int64) {
	c.mu.Lock()
	c.opts.Bytes, c.opts.PullBytes = bytes, pullBytes
	c.mu.Unlock()
	c.wakePull.Ring()
}
