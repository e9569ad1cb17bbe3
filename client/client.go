// Package client asks geniemq from Go, over a NATS connection that the application brings.
//
// There are three ways to ask, each for one query and for a batch of queries in one message:
//
//   - [Client.Search] asks a worker directly and waits: the lowest latency, nothing stored. A worker that is too
//     busy says so ([wire.Overloaded]), and an answer can be lost with a connection.
//   - [Client.Request] puts the query into a stream and waits for the answer, which is stored too. Neither a lost
//     connection nor a restarted worker or server loses it; it waits as long as the context allows.
//   - [Client.Publish] puts the query into the stream and returns. Whoever listens to the subject of the results,
//     with [Client.Subscribe] or any NATS client, gets the answer.
//
// Queries are plain values; [Between], [Equal] and the like make their conditions:
//
//	c, err := client.New(nc, client.Options{})
//	...
//	defer c.Close()
//	result, err := c.Request(ctx, "adult", client.Query{K: 5, Row: client.Conditions(
//		client.Between("age", 30, 40),
//		client.Equal("sex", "Female"),
//	)})
package client

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"github.com/nats-io/nuid"

	"github.com/geniemq/geniemq/wire"
)

// Options configure a [Client]. The zero value is ready for use.
type Options struct {
	// Prefix is the first token of every subject, and of the streams' names. Default "genie".
	Prefix string
	// JSON sends queries as JSON, readable on the wire, instead of MessagePack. Answers have the same encoding.
	JSON bool
	// Compress has answers of Search and Request compressed, where that makes them smaller, and queries too once a worker of the index has said that it
	// can read that. It pays where the network is slow: a core compresses some 600 MB/s.
	Compress bool
	// Tables sends batches whose queries have one shape as tables, which are a small part as large: each name is written once, and numbers are packed
	// ([wire.AppendTable]). Workers that are too old refuse them; ask with [Client.Understood] whether all of an index know the field "table". Default false.
	Tables bool
	// NoObjects refuses queries that are too large for a message. Default false: Request and Publish store them in the server's object store, if it has a bucket for that.
	NoObjects bool
	// Timeout is how long calls wait whose context has no deadline. Default 30 s; negative means forever.
	Timeout time.Duration
	// JetStream is the context used for streams. Default jetstream.New(nc); set it for a domain or an API prefix.
	JetStream jetstream.JetStream
	// User is the user's token of subjects. Queries are then published to genie.query.<index>.<user>, searches to genie.search.<index>.<user>, and answers come
	// on genie.result.<index>.<user>.>, so that a server can see to it that users read and ask as themselves alone. Default: none.
	User string
	// Class is ClassQuery or ClassBulk: bulk is for work that nobody waits for, and lets all others go before it. It is for Request and Publish.
	// Default ClassQuery; with a User its class of users.
	Class Class
	// Inject, if set, is called with the headers of each query before it is sent, to add such as traceparent. It
	// must be safe for concurrent use.
	Inject func(ctx context.Context, header nats.Header)
}

// EnsureDefaults sets the options that have their zero value, but for JetStream, which needs a connection.
func (o *Options) EnsureDefaults() {
	o.Prefix = cmp.Or(o.Prefix, wire.DefaultPrefix)
	o.Timeout = cmp.Or(o.Timeout, 30*time.Second)
}

// Client asks geniemq. It is safe for concurrent use, and cheap: one per connection is enough for any number of
// goroutines. The connection stays the application's: the client neither closes it nor sets its handlers.
//
// # What is promised
//
// Publish returns nil only if the stream has stored the query. Every query has a Nats-Msg-Id, so that a publish that
// was repeated because its acknowledgement got lost is stored once.
//
// Request cannot miss its answer. Each request has a reply subject of its own, genie.result.<index>.<client>.<n>,
// which the stream of results covers. The client holds one core subscription per index, genie.result.<index>.<client>.*,
// made before the first query of that index is published and re-made by nats.go when the connection comes back; an
// answer nearly always arrives there. What it cannot bring are answers that were sent while the connection was away,
// or before another server of a cluster knew of it. So a request also reads its subject from the stream: whenever the
// connection has come back (the subscription is in place by then, so no answer falls between the two), and every now
// and then while it waits. Both ways may bring the same message; results are put at their place by their position, and
// the first to come stays.
//
// Search promises nothing: it is one core request.
//
// # Deadlines
//
// The deadline of the context, or else Options.Timeout, ends Search and Request, and travels with their queries as
// timeout_ms unless they set their own: nobody computes what nobody waits for. Publish does not send its deadline, as
// that only bounds the publishing.
//
// # Limits
//
// Messages that the service would refuse, or that are larger than the server's max_payload, which would cost the
// connection, are refused before they are sent, with a *[wire.Error]. Request and Publish take more, up to 8 MiB: what does not fit a message goes into the
// server's object store, where workers have made a bucket for that, and a message names it. The object is stored first and then the message; it is removed when the
// message is refused, and by the worker when it is answered. Search takes what fits a message.
//
// # Goroutines
//
// The client owns one goroutine, which notices reconnects and ends with Close or with the connection. Each request
// waits, decodes and reads the stream in its caller's goroutine. Subscriptions own theirs until they are stopped.
type Client struct {
	nc       *nats.Conn
	js       jetstream.JetStream
	opts     Options
	subjects wire.Subjects
	codec    wire.ContentType

	id       string        // the unique token of this client's reply subjects
	requests atomic.Uint64 // numbers them
	recovery chan struct{} // a place here for each request that reads the stream

	closed  context.Context // done when the client is closed, with the reason as cause
	close   context.CancelCauseFunc
	watcher sync.WaitGroup

	accepts sync.Map // by index: whether its workers read compressed queries, by the last answer

	mu          sync.Mutex
	waiting     map[string]*mailbox           // by reply subject
	inboxes     map[string]*nats.Subscription // by index
	reconnected chan struct{}                 // closed and replaced when the connection is back

	// How long a request waits before it looks into the stream though nothing seems wrong; the time doubles up to
	// the second. Tests shorten it.
	firstLook, lastLook time.Duration
}

// maxRecovery bounds how many requests read the stream at a time after a reconnect.
const maxRecovery = 16

// New makes a client on a connection. Close it when it is no longer needed.
func New(nc *nats.Conn, opts Options) (*Client, error) {
	opts.EnsureDefaults()
	subjects, err := wire.NewSubjects(opts.Prefix)
	if err == nil {
		err = opts.checkClass()
	}
	if err == nil && (nc == nil || nc.IsClosed()) {
		err = nats.ErrConnectionClosed
	}
	js := opts.JetStream
	if err == nil && js == nil {
		js, err = jetstream.New(nc)
	}
	if err != nil {
		return nil, fmt.Errorf("making a client: %w", err)
	}
	codec := wire.MessagePack
	if opts.JSON {
		codec = wire.JSON
	}
	c := &Client{
		nc: nc, js: js, opts: opts, subjects: subjects, codec: codec,
		id:          nuid.Next(),
		recovery:    make(chan struct{}, maxRecovery),
		waiting:     make(map[string]*mailbox),
		inboxes:     make(map[string]*nats.Subscription),
		reconnected: make(chan struct{}),
		firstLook:   2 * time.Second, lastLook: 30 * time.Second,
	}
	c.closed, c.close = context.WithCancelCause(context.Background())
	status := nc.StatusChanged(nats.CONNECTED, nats.CLOSED)
	c.watcher.Go(func() { c.watch(status) })
	return c, nil
}

// watch tells the waiting requests when the connection is back, and when it is gone for good.
func (c *Client) watch(status chan nats.Status) {
	defer c.nc.RemoveStatusListener(status)
	for {
		select {
		case s := <-status:
			if s == nats.CLOSED {
				c.close(nats.ErrConnectionClosed)
				return
			}
			c.mu.Lock()
			close(c.reconnected)
			c.reconnected = make(chan struct{})
			c.mu.Unlock()
		case <-c.closed.Done():
			return
		}
	}
}

// Close ends the client: requests that wait return [ErrClosed]. Their queries stay in the stream. Subscriptions go on
// until they are stopped; the connection stays open.
func (c *Client) Close() {
	c.close(ErrClosed)
	c.watcher.Wait()
	c.mu.Lock()
	defer c.mu.Unlock()
	for index, sub := range c.inboxes {
		_ = sub.Unsubscribe() // it fails when the connection is closed, and then it is gone anyway
		delete(c.inboxes, index)
	}
}

// bounded returns a context that ends with the client, and has a deadline unless calls may wait forever.
func (c *Client) bounded(ctx context.Context) (context.Context, context.CancelFunc) {
	ctx, end := context.WithCancelCause(ctx)
	detach := context.AfterFunc(c.closed, func() { end(context.Cause(c.closed)) })
	timeout := func() {}
	if _, ok := ctx.Deadline(); !ok && c.opts.Timeout > 0 {
		ctx, timeout = context.WithTimeout(ctx, c.opts.Timeout)
	}
	return ctx, func() {
		detach()
		timeout()
		end(context.Canceled)
	}
}

// message encodes queries for an index as one message, after checking that the service would take it. A deadline becomes the
// timeout of the queries that have none. limits bound the message.
func (c *Client) message(ctx context.Context, subject func(index string) string, index string, queries []Query, batch, deadline bool, limits wire.Limits) (*nats.Msg, error) {
	if c.closed.Err() != nil {
		return nil, context.Cause(c.closed)
	}
	if err := wire.CheckIndexName(index); err != nil {
		return nil, err
	}
	if err := limits.CheckQueries(queries); err != nil {
		return nil, err
	}
	if end, ok := ctx.Deadline(); ok && deadline {
		left := time.Until(end).Milliseconds()
		if left < 1 {
			return nil, context.DeadlineExceeded
		}
		queries = withTimeout(queries, uint32(min(left, wire.MaxTimeoutMS)))
	}
	msg := &nats.Msg{Subject: subject(index), Header: nats.Header{}}
	msg.Data = c.encoded(queries, batch)
	if err := limits.CheckBody(len(msg.Data)); err != nil {
		return nil, err
	}
	msg.Header.Set(wire.HeaderContentType, c.codec.String())
	c.compress(msg, index)
	if c.opts.Inject != nil {
		c.opts.Inject(ctx, msg.Header)
	}
	return msg, nil
}

// encoded is the body of a message.
func (c *Client) encoded(queries []Query, batch bool) []byte {
	if !batch {
		return wire.AppendQuery(nil, c.codec, &queries[0])
	}
	if c.opts.Tables && len(queries) > 1 {
		if table, ok := wire.AppendTable(nil, c.codec, queries); ok {
			return table
		}
	}
	return wire.AppendQueries(nil, c.codec, queries)
}

// withTimeout returns the queries with a timeout where they have none, leaving the caller's alone.
func withTimeout(queries []Query, ms uint32) []Query {
	copied := slices.Clone(queries)
	for i := range copied {
		copied[i].TimeoutMS = cmp.Or(copied[i].TimeoutMS, ms)
	}
	return copied
}

// checkPayload refuses what the server would close the connection for.
func (c *Client) checkPayload(msg *nats.Msg) error {
	size, most := wire.HeaderSize(msg.Header)+len(msg.Data), int(c.nc.MaxPayload())
	if most > 0 && size > most {
		return wire.Errorf(wire.TooLarge, "the message has %d bytes with its headers, the server's max_payload is %d", size, most)
	}
	return nil
}

// cause is the error of a context, with the reason that it was given.
func cause(ctx context.Context) error {
	err := context.Cause(ctx)
	if err == nil || errors.Is(err, ctx.Err()) {
		return ctx.Err()
	}
	return err
}

// unique returns the token of a new reply subject.
func (c *Client) unique() string {
	return c.id + "." + strconv.FormatUint(c.requests.Add(1), 36)
}
