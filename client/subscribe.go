package client

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/geniemq/geniemq/wire"
)

// Answer is one message of results.
type Answer struct {
	Subject string // it came on
	// Results has one result, or, when the query message was a batch, one for each of its queries from First on.
	// Their errors are their Err.
	Results []Result
	Batch   bool
	First   int
	// Queries is how many queries the query message has. An answer too large for one message comes in several, each with
	// complete results: the answer is complete when there was a result for every query, from First on in each of them.
	Queries int
	// QueryID is the query's id, where a header can carry it; QuerySeq is Receipt.Sequence of the query message.
	QueryID  string
	QuerySeq uint64
	Header   nats.Header
}

// SubscribeOptions are options of a subscription. The zero value is ready for use.
type SubscribeOptions struct {
	// Durable names a durable consumer of the stream of results: it goes on where it was when the application is
	// started again, several processes with the same name share the results, and what the handler fails on is
	// delivered again. Default none: every subscription gets every result, from when it is made on.
	Durable string
	// All starts with the oldest stored result (the stream keeps them for 1 h) instead of the next. It applies when
	// a durable is made, not when one is found.
	All bool
	// AckWait is how long the handler may take before a durable delivers the answer again. Default 30 s.
	AckWait time.Duration
	// OnError is called with what goes wrong in the background: undecodable messages, errors of the handler, and
	// of the consumer, such as missed heartbeats while the connection is away. Default: such errors are dropped.
	// It must be safe for concurrent use.
	OnError func(error)
}

// Subscription delivers answers until it is stopped.
type Subscription struct{ stop func() }

// Stop ends the delivery and returns when the handler has returned for the last time; so the handler itself must not
// call it. It may be called twice.
func (s *Subscription) Stop() { s.stop() }

// Subscribe calls handle with each answer that comes on a subject, one after the other. The subject is that of results
// (genie.result.<index>, or with wildcards), for which an index's name is enough, or any other that was given as reply.
// The context bounds the setting up only; the subscription lasts until Stop.
//
// Subjects of results are read from their stream, so that nothing is missed while the connection is away, and nothing is seen twice
// that is stored once. Other subjects are plain NATS subscriptions and bring what is sent while they are connected, and what a
// worker sends again because its connection was lost.
//
// With a durable, an answer is acknowledged when handle returns nil, and delivered again about a second later when
// it returns an error. An error is passed to OnError in any case.
func (c *Client) Subscribe(ctx context.Context, subject string, handle func(*Answer) error, opts SubscribeOptions) (*Subscription, error) {
	if c.closed.Err() != nil {
		return nil, context.Cause(c.closed)
	}
	if wire.CheckIndexName(subject) == nil {
		subject = c.subjects.Result(subject)
	}
	if err := wire.CheckSubjectPattern(subject); err != nil {
		return nil, fmt.Errorf("subscribing: %w", err)
	}
	if opts.OnError == nil {
		opts.OnError = func(error) {}
	}
	opts.AckWait = cmp.Or(opts.AckWait, 30*time.Second)
	ctx, cancel := c.bounded(ctx)
	defer cancel()
	var sub *Subscription
	var err error
	if strings.HasPrefix(subject, strings.TrimSuffix(c.subjects.Results(), ">")) {
		sub, err = c.consume(ctx, subject, handle, opts)
	} else {
		sub, err = c.subscribeCore(subject, handle, opts)
	}
	if err != nil {
		return nil, fmt.Errorf("subscribing to %s: %w", subject, err)
	}
	return sub, nil
}

// A server cuts off a client for which more than its max_pending waits, 64 MiB by default, and the library's own bound is 500
// messages of any size. So half of that is on its way at a time, but always the largest message, with what counts beside it.
const (
	pullBytes    = 32 << 20
	pullOverhead = 4 << 10
)

func (c *Client) consume(ctx context.Context, subject string, handle func(*Answer) error, opts SubscribeOptions) (*Subscription, error) {
	consumer, err := c.consumer(ctx, subject, opts)
	if err != nil {
		return nil, err
	}
	delivery, err := consumer.Consume(func(msg jetstream.Msg) {
		settle(msg, dispatch(msg.Subject(), msg.Headers(), msg.Data(), handle, opts), opts)
	}, jetstream.PullMaxBytes(max(pullBytes, int(c.nc.MaxPayload())+pullOverhead)), jetstream.ConsumeErrHandler(func(_ jetstream.ConsumeContext, err error) {
		opts.OnError(fmt.Errorf("receiving from %s: %w", subject, err))
	}))
	if err != nil {
		return nil, err
	}
	return &Subscription{stop: func() {
		delivery.Stop()
		<-delivery.Closed()
	}}, nil
}

// consumer makes or finds the consumer to read a subject with.
func (c *Client) consumer(ctx context.Context, subject string, opts SubscribeOptions) (jetstream.Consumer, error) {
	stream, err := c.js.Stream(ctx, c.subjects.ResultStream())
	if errors.Is(err, jetstream.ErrStreamNotFound) {
		return nil, fmt.Errorf("%w: %s is missing; start geniemq there once, or check the prefix", ErrNoStream, c.subjects.ResultStream())
	}
	if err != nil {
		return nil, err
	}
	if opts.Durable == "" {
		// By number and not "new": a consumer that is lost with its server before it delivered anything is
		// made again from here.
		next := stream.CachedInfo().State.LastSeq + 1
		config := jetstream.OrderedConsumerConfig{
			FilterSubjects: []string{subject}, DeliverPolicy: jetstream.DeliverByStartSequencePolicy, OptStartSeq: next,
		}
		if opts.All {
			config.DeliverPolicy, config.OptStartSeq = jetstream.DeliverAllPolicy, 0
		}
		return stream.OrderedConsumer(ctx, config)
	}
	found, err := stream.Consumer(ctx, opts.Durable)
	if err == nil {
		if has := found.CachedInfo().Config.FilterSubject; has != subject {
			return nil, fmt.Errorf("durable %s is there already and reads %q: use another name, or delete it", opts.Durable, has)
		}
		return found, nil
	}
	if !errors.Is(err, jetstream.ErrConsumerNotFound) {
		return nil, err
	}
	deliver := jetstream.DeliverNewPolicy
	if opts.All {
		deliver = jetstream.DeliverAllPolicy
	}
	return stream.CreateConsumer(ctx, jetstream.ConsumerConfig{
		Durable: opts.Durable, FilterSubject: subject, DeliverPolicy: deliver,
		AckPolicy: jetstream.AckExplicitPolicy, AckWait: opts.AckWait,
	})
}

// errNoAnswer marks messages that no handler will ever see.
var errNoAnswer = errors.New("is no answer")

// dispatch decodes a message and hands it to the handler.
func dispatch(subject string, header nats.Header, body []byte, handle func(*Answer) error, opts SubscribeOptions) error {
	decoded, err := wire.DecodeBody(header.Get(wire.HeaderContentType), body)
	if err != nil {
		err = fmt.Errorf("a message on %s %w: %w", subject, errNoAnswer, err)
		opts.OnError(err)
		return err
	}
	sequence, _ := strconv.ParseUint(header.Get(wire.HeaderQuerySeq), 10, 63)
	a := &Answer{
		Subject: subject, Header: header,
		Results: decoded.Results, Batch: decoded.Batch, First: decoded.First,
		Queries: decoded.First + len(decoded.Results),
		QueryID: header.Get(wire.HeaderQueryID), QuerySeq: sequence,
	}
	if r, ok := wire.ParseRange(header.Get(wire.HeaderQueries)); ok {
		a.Queries = r.Total
	}
	if err := handle(a); err != nil {
		opts.OnError(fmt.Errorf("handling an answer on %s: %w", subject, err))
		return err
	}
	return nil
}

// redeliverAfter is how long an answer rests that its handler failed on.
const redeliverAfter = time.Second

// settle acknowledges what a durable has delivered.
func settle(msg jetstream.Msg, err error, opts SubscribeOptions) {
	if opts.Durable == "" {
		return
	}
	switch {
	case err == nil:
		err = msg.Ack()
	case errors.Is(err, errNoAnswer):
		err = msg.TermWithReason("it is no answer of geniemq")
	default:
		err = msg.NakWithDelay(redeliverAfter)
	}
	if err != nil {
		opts.OnError(fmt.Errorf("acknowledging an answer on %s: %w", msg.Subject(), err))
	}
}

func (c *Client) subscribeCore(subject string, handle func(*Answer) error, opts SubscribeOptions) (*Subscription, error) {
	if opts.Durable != "" || opts.All {
		return nil, fmt.Errorf("durable and all need a subject that a stream keeps, such as %s", c.subjects.Results())
	}
	sub, err := c.nc.Subscribe(subject, func(msg *nats.Msg) {
		_ = dispatch(msg.Subject, msg.Header, msg.Data, handle, opts) // reported to OnError
	})
	if err != nil {
		return nil, err
	}
	ended := make(chan struct{})
	sub.SetClosedHandler(func(string) { close(ended) })
	if c.nc.IsClosed() { // perhaps before the handler was set
		return nil, nats.ErrConnectionClosed
	}
	return &Subscription{stop: func() {
		_ = sub.Unsubscribe() // it fails the second time, and with a closed connection, which has ended it
		<-ended
	}}, nil
}
