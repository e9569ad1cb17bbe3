package client

import (
	"context"
	"errors"
	"fmt"

	"github.com/nats-io/nats.go"

	"github.com/geniemq/geniemq/wire"
)

// Search asks a worker of the index directly and waits for the result: nothing is stored and nothing is repeated. The
// deadline travels with the query unless it has its own timeout.
//
// Errors: what the service answers, as a *[wire.Error], among them [wire.Overloaded] when it has no room now;
// [ErrNotServed] when nobody listens; those of the context and of nats.go, among them nats.ErrDisconnected when the
// connection was lost before the answer came.
func (c *Client) Search(ctx context.Context, index string, q Query) (*Result, error) {
	return single(c.search(ctx, index, []Query{q}, false))
}

// SearchBatch is [Client.Search] for many queries in one message. It returns their results in their order; the error
// of a single query is its result's Err, and an error returned concerns all of them. Direct answers are not split: ask
// for less at a time when the answer is [wire.TooLarge].
func (c *Client) SearchBatch(ctx context.Context, index string, queries []Query) ([]Result, error) {
	return c.search(ctx, index, queries, true)
}

func (c *Client) search(ctx context.Context, index string, queries []Query, batch bool) ([]Result, error) {
	if err := c.check(index); err != nil {
		return nil, err
	}
	ctx, cancel := c.bounded(ctx)
	defer cancel()
	msg, err := c.message(ctx, c.subjects.Search(index), queries, batch, true)
	if err != nil {
		return nil, err
	}
	if err := c.checkPayload(msg); err != nil {
		return nil, err
	}
	reply, err := c.nc.RequestMsgWithContext(ctx, msg)
	switch {
	case errors.Is(err, nats.ErrNoResponders):
		return nil, fmt.Errorf("%w: %s has no listener", ErrNotServed, msg.Subject)
	case err != nil && ctx.Err() != nil:
		return nil, fmt.Errorf("searching index %s: %w", index, cause(ctx))
	case err != nil:
		return nil, fmt.Errorf("searching index %s: %w", index, err)
	}
	answer := newCollector(len(queries), batch)
	done, err := answer.add(reply.Header, reply.Data)
	if failed := serviceError(reply, err); failed != nil && !done {
		return nil, failed
	}
	if err == nil && !done {
		err = fmt.Errorf("searching index %s: the answer has %d of %d results", index, len(queries)-answer.missing, len(queries))
	}
	return answer.results, err
}

// serviceError returns the error that the reply of a micro service carries in its headers, or in its body, which says
// it better: err is what the body gave.
func serviceError(reply *nats.Msg, err error) error {
	message := reply.Header.Get(wire.HeaderServiceError)
	code := wire.Code(reply.Header.Get(wire.HeaderServiceErrorCode))
	if message == "" && code == "" {
		return err
	}
	var body *wire.Error
	if errors.As(err, &body) && body.Code == code {
		return err
	}
	switch code {
	case wire.BadRequest, wire.UnknownIndex, wire.TooLarge, wire.DeadlineExceeded, wire.Overloaded, wire.Unsupported, wire.Internal:
	default: // of the micro framework, or a proxy
		message = fmt.Sprintf("%s (%s)", message, code)
		code = wire.Internal
	}
	return &wire.Error{Code: code, Message: message}
}
