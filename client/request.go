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
// come in parts, which are put together here.
func (c *Client) RequestBatch(ctx context.Context, index string, queries []Query) ([]Result, error) {
	return c.request(ctx, index, queries, true)
}

func (c *Client) request(ctx context.Context, index string, queries []Query, batch bool) ([]Result, error) {
	if err := c.check(index); err != nil {
		return nil, err
	}
	ctx, cancel := c.bounded(ctx)
	defer cancel()
	msg, err := c.message(ctx, c.subjects.Query(index), queries, batch, true)
	if err != nil {
		return nil, err
	}
	reply := c.subjects.Reply(index, c.unique())
	msg.Header.Set(wire.HeaderReply, reply)

	box, err := c.listen(index, reply)
	if err != nil {
		return nil, err
	}
	defer c.ignore(reply)
	if _, err := c.store(ctx, msg); err != nil {
		return nil, err
	}
	results, err := c.await(ctx, reply, box, newCollector(len(queries), batch))
	if err != nil && ctx.Err() != nil {
		return nil, fmt.Errorf("waiting for the answer of index %s: %w", index, cause(ctx))
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
		sub, err := c.nc.Subscribe(c.subjects.Reply(index, c.id+".*"), c.deliver)
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

// await collects the answer from the mailbox and, when something may have been missed, from the stream.
func (c *Client) await(ctx context.Context, reply string, box *mailbox, answer *collector) ([]Result, error) {
	stored := streamReader{c: c, subject: reply, next: 1}
	wait := c.firstLook
	look := time.NewTimer(wait)
	defer look.Stop()
	for {
		back := c.back()
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

// streamReader reads the messages that the stream of results has of one subject, each once.
type streamReader struct {
	c       *Client
	subject string
	next    uint64 // the sequence to go on from
	stream  jetstream.Stream
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
	ctx, cancel := context.WithTimeout(ctx, lookTimeout)
	defer cancel()
	if r.stream == nil {
		stream, err := r.c.js.Stream(ctx, r.c.subjects.ResultStream())
		if err != nil {
			return false, nil
		}
		r.stream = stream
	}
	for {
		msg, err := r.stream.GetMsg(ctx, r.next, jetstream.WithGetMsgSubject(r.subject))
		if errors.Is(err, jetstream.ErrMsgNotFound) || err != nil {
			return false, nil
		}
		r.next = msg.Sequence + 1
		if done, err := answer.add(msg.Header, msg.Data); done || err != nil {
			return done, err
		}
	}
}
