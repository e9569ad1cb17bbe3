package client

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/geniemq/geniemq/bodystore"
	"github.com/geniemq/geniemq/internal/bell"
	"github.com/geniemq/geniemq/wire"
)

// messageLimits are those of what is sent in a message.
func (c *Client) messageLimits() wire.Limits { return wire.LimitsFor(c.nc.MaxPayload()) }

// storedLimits are those of stored queries, which need not fit a message.
func (c *Client) storedLimits() wire.Limits {
	if c.opts.NoObjects {
		return c.messageLimits()
	}
	return wire.LimitsFor(0)
}

const (
	// putAttempt is how long one try of storing a body takes at most, and putAttempts how many there are on a connection that stays: a server answers
	// nothing to whom it does not permit that.
	putAttempt  = 10 * time.Second
	putAttempts = 3
	// removeWait bounds removing an object whose query was not published. What takes longer is left to the workers' sweep.
	removeWait = 5 * time.Second
)

// large moves the body of a message that is too large into the object store, and returns the name that it has there; "" where it fits.
func (c *Client) large(ctx context.Context, msg *nats.Msg) (name string, err error) {
	limits := c.messageLimits()
	if len(msg.Data) <= limits.Body {
		return "", nil
	}
	for tries := 1; ; tries++ {
		before := c.nc.Stats().Reconnects
		b, err := c.put(ctx, msg.Data)
		if !c.nc.IsConnected() || c.nc.Stats().Reconnects != before || broken(err) { // no try on a connection that stayed
			tries = 0
		}
		switch {
		case err == nil:
			msg.Data = nil
			msg.Header.Set(wire.HeaderQueryObject, b.String())
			return b.Name, nil
		case errors.Is(err, bodystore.ErrNoBucket):
			return "", wire.Errorf(wire.TooLarge, "the body has %d bytes, a message of this server holds %d, and %v: send fewer queries per message, or start a worker that makes the bucket (of users, with object-users)",
				len(msg.Data), limits.Body, err)
		case errors.Is(err, bodystore.ErrFull):
			return "", fmt.Errorf("%w: %w", ErrBucketFull, err)
		case ctx.Err() != nil:
			return "", fmt.Errorf("storing a query of %d bytes: %w", len(msg.Data), cause(ctx))
		case !c.passes(err), tries >= putAttempts:
			return "", fmt.Errorf("storing a query of %d bytes, which is too large for a message (docs/security.md says what to permit for that): %w", len(msg.Data), err)
		}
		bell.Sleep(ctx, pause)
	}
}

func (c *Client) put(ctx context.Context, body []byte) (wire.StoredBody, error) {
	ctx, cancel := context.WithTimeout(ctx, putAttempt)
	defer cancel()
	return bodystore.Of(c.js, c.subjects).Put(ctx, c.opts.User, body)
}

// unpublished removes the object of a query that is in no stream.
func (c *Client) unpublished(name string) {
	if name == "" {
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), removeWait)
	defer cancel()
	_ = bodystore.Of(c.js, c.subjects).Remove(ctx, c.opts.User, name) // or the sweep does it
}

// refused says that a publish has certainly stored nothing.
func refused(err error) bool {
	var api *jetstream.APIError
	return errors.As(err, &api) || errors.Is(err, jetstream.ErrNoStreamResponse)
}
