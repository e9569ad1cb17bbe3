package client

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/geniemq/geniemq/wire"
)

// Request stores a query in the stream and waits for its result, however often the connection, a worker or the
// server goes away in between, until the context, or Options.Timeout, ends it. The deadline travels with the query
// unless it has its own timeout.
//
// A query that the service answers with an error returns that error, a *[wire.Error]; other errors are those of
// [Client.Publish].
func (c *Client) Request(ctx context.Context, index string, q Query) (*Result, error) {
	return single(c.request(ctx, index, []Query{q}, false))
}

// RequestBatch is [Client.Request] for many queries in one message. It returns their results in their order; the
// error of a single query is its result's Err, and an error returned concerns all of them. Answers larger than a message
// come in parts, which are put together here, and so do single results.
func (c *Client) RequestBatch(ctx context.Context, index string, queries []Query) ([]Result, error) {
	return c.request(ctx, index, queries, true)
}

func (c *Client) request(ctx context.Context, index string, queries []Query, batch bool) ([]Result, error) {
	ctx, cancel := c.bounded(ctx)
	defer cancel()
	msg, err := c.message(ctx, c.storedSubject, index, queries, batch, true, c.storedLimits())
	if err != nil {
		return nil, err
	}
	c.asks(msg, wire.Accept{Parts: true})
	reply := c.replySubject(index, c.unique())
	msg.Header.Set(wire.HeaderReply, reply)

	box, err := c.listen(index, reply)
	if err != nil {
		return nil, err
	}
	defer c.ignore(reply)
	back := c.back()
	receipt, err := c.store(ctx, msg)
	if err != nil {
		return nil, err
	}
	answer := newCollector(len(queries), batch)
	stored := &streamReader{c: c, subject: reply, next: 1}
	results, err := c.await(ctx, stored, back, box, answer)
	if c.learn(index, msg, answer.header) {
		return c.request(ctx, index, queries, batch)
	}
	if err != nil && ctx.Err() != nil {
		return nil, fmt.Errorf("waiting for the answer of index %s, %s; %s: %w", index, receipt, stored, cause(ctx))
	}
	if err == nil && !batch && queries[0].ID == "" {
		results[0].ID = "" // not the Nats-Msg-Id that this request gave the message
	}
	return results, err
}

// listen makes a mailbox for a reply subject, and sees to it that the subscription that fills it is there.
func (c *Client) listen(index, reply string) (*mailbox, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closed.Err() != nil { // Close has taken down the subscriptions, or is about to
		return nil, context.Cause(c.closed)
	}
	if c.inboxes[index] == nil {
		sub, err := c.nc.Subscribe(c.replySubject(index, c.id+".*"), c.deliver)
		if err != nil {
			return nil, fmt.Errorf("subscribing to the answers of index %s: %w", index, err)
		}
		_ = sub.SetPendingLimits(-1, -1) // what waits is bounded by what was asked for
		c.inboxes[index] = sub
	}
	box := newMailbox()
	c.waiting[reply] = box
	return box, nil
}

func (c *Client) ignore(reply string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.waiting, reply)
}

func (c *Client) deliver(msg *nats.Msg) {
	c.mu.Lock()
	box := c.waiting[msg.Subject]
	c.mu.Unlock()
	if box != nil {
		box.put(msg)
	}
}

// await collects the answer from the mailbox and, when something may have been missed, from the stream: when back is closed, which is from before the query was
// stored, and every now and then.
func (c *Client) await(ctx context.Context, stored *streamReader, back <-chan struct{}, box *mailbox, answer *collector) ([]Result, error) {
	wait := c.firstLook
	look := time.NewTimer(wait)
	defer look.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil, ctx.Err()
		case <-box.arrive:
			for _, msg := range box.fetch() {
				if done, err := answer.add(msg.Header, msg.Data); done || err != nil {
					return answer.results, err
				}
			}
			continue
		case <-back:
			back = c.back() // and not after the look, during which the connection may be lost and come back
		case <-look.C:
			wait = min(2*wait, c.lastLook)
		}
		if done, err := stored.read(ctx, answer); done || err != nil {
			return answer.results, err
		}
		look.Reset(wait)
	}
}

// back returns a channel that is closed when the connection has been away and is back.
func (c *Client) back() <-chan struct{} {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.reconnected
}

// streamReader reads the messages that the stream of results has of one subject, each once, and keeps what came of it for who waits in vain.
type streamReader struct {
	c       *Client
	subject string
	next    uint64 // the sequence to go on from
	stream  jetstream.Stream
	looks   int
	last    error // why the last look found nothing more
}

func (r *streamReader) String() string {
	said := fmt.Sprintf("looks into %s for %s: %d", r.c.subjects.ResultStream(), r.subject, r.looks)
	if r.last != nil {
		said += fmt.Sprintf(", last: %v", r.last)
	}
	return said
}

// lookTimeout bounds one look into the stream. The connection may go away in the middle of one.
const lookTimeout = 5 * time.Second

// read adds what is new to an answer and reports whether that completed it. A stream that cannot be read, because it
// is not there, not now or not permitted, is no error: the answer may still arrive, and the next look comes.
func (r *streamReader) read(ctx context.Context, answer *collector) (done bool, err error) {
	select {
	case r.c.recovery <- struct{}{}:
		defer func() { <-r.c.recovery }()
	case <-ctx.Done():
		return false, nil
	}
	look, cancel := context.WithTimeout(ctx, lookTimeout)
	defer cancel()
	r.looks++
	for {
		msg, err := r.get(look)
		if err != nil { // or there is none
			if ctx.Err() == nil { // else it says only that the request has ended
				r.last = err
			}
			return false, nil
		}
		r.next = msg.Sequence + 1
		if done, err := answer.add(msg.Header, msg.Data); done || err != nil {
			return done, err
		}
	}
}

// get returns the next message.
func (r *streamReader) get(ctx context.Context) (msg *jetstream.RawStreamMsg, err error) {
	if r.stream == nil {
		if r.stream, err = r.c.js.Stream(ctx, r.c.subjects.ResultStream()); err != nil {
			return nil, err
		}
	}
	return r.stream.GetMsg(ctx, r.next, jetstream.WithGetMsgSubject(r.subject))
}

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
	ctx, cancel := c.bounded(ctx)
	defer cancel()
	msg, err := c.message(ctx, c.searchSubject, index, queries, batch, true, c.messageLimits())
	if err != nil {
		return nil, err
	}
	c.asks(msg, wire.Accept{})
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
	if c.learn(index, msg, reply.Header) {
		return c.search(ctx, index, queries, batch)
	}
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
	if body, ok := errors.AsType[*wire.Error](err); ok && body.Code == code {
		return err
	}
	switch code {
	case wire.BadRequest, wire.UnknownIndex, wire.TooLarge, wire.DeadlineExceeded, wire.Overloaded, wire.Unsupported, wire.ObjectMissing, wire.Internal:
	default: // of the micro framework, or a proxy
		message = fmt.Sprintf("%s (%s)", message, code)
		code = wire.Internal
	}
	return &wire.Error{Code: code, Message: message}
}
