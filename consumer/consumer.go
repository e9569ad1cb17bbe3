// Package consumer takes query messages from JetStream, keeps them while they are worked on, and settles them.
package consumer

import (
	"cmp"
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/geniemq/geniemq/consumer/streams"
	"github.com/geniemq/geniemq/internal/bell"
	"github.com/geniemq/geniemq/wire"
)

// Options of a Consumer.
type Options struct {
	// Subjects name the stream and the durable.
	Subjects wire.Subjects
	// Index is the index whose queries are consumed. Required.
	Index string
	// Class says from which of the streams. Default wire.ClassQuery.
	Class wire.Class

	// AckWait is after how long the server gives a message that it heard nothing of to someone else. It holds for
	// a durable that does not exist yet; an existing one keeps its own. Default 30s.
	AckWait time.Duration
	// MaxAckPending bounds the messages of the durable that all its workers together hold. It holds for a durable
	// that does not exist yet. Default 8192, and at least 4 x BatchMessages.
	MaxAckPending int
	// BatchMessages is how many messages make a batch. Default 0: not known.
	BatchMessages int

	// Bytes is the window, with MaxAckPending: how much may be outstanding at a time. At least one message of the largest size is asked for
	// whenever nothing is, since a request for fewer bytes could never be fulfilled. Default 256 MiB.
	Bytes int64

	// PullBytes bounds one pull request, if it is not less than the largest message: so much may be on its way at a time.
	// A server cuts off a client for which more than its max_pending waits, 64 MiB by default, and what was on its way
	// has cost a delivery then: the requests of all consumers of a connection must fit. Default 32 MiB.
	PullBytes int64
	// InfoInterval is how often the state of the durable is read, for the metrics and to notice that someone
	// replaced it. Default 5s.
	InfoInterval time.Duration

	// OnState is called, never concurrently, when messages cannot be pulled and why, and with nil when they can be
	// again. Default: none.
	OnState func(error)
	// OnDifference is called for each setting of an existing durable that is not as these options want it; the
	// durable is used as it is. Default: none.
	OnDifference func(streams.Difference)
}

// limits of a Consumer beside those of its Options, which only tests change.
type limits struct {
	messages int // of the window
	// pullExpiry is how long one pull request stays open, and so how long Stop waits at most for messages that may be
	// on their way. When none come it takes some 20ms, unless a cluster keeps the durable on another server than the
	// one connected to.
	pullExpiry time.Duration
	// requestTimeout bounds one request to the JetStream API.
	requestTimeout time.Duration
	// maxBackoff bounds the pause, which starts at 50ms and doubles, between attempts at what failed.
	maxBackoff time.Duration
}

// requestTimeout bounds one request to the JetStream API.
const requestTimeout = 5 * time.Second

func (o *Options) ensureDefaults() {
	o.Class = cmp.Or(o.Class, wire.ClassQuery)
	o.AckWait = cmp.Or(max(o.AckWait, 0), 30*time.Second)
	o.MaxAckPending = cmp.Or(max(o.MaxAckPending, 0), 8192)
	o.MaxAckPending = max(o.MaxAckPending, 4*o.BatchMessages)
	o.Bytes = cmp.Or(max(o.Bytes, 0), 256<<20)
	o.PullBytes = cmp.Or(max(o.PullBytes, 0), 32<<20)
	o.InfoInterval = cmp.Or(max(o.InfoInterval, 0), 5*time.Second)
	if o.OnState == nil {
		o.OnState = func(error) {}
	}
	if o.OnDifference == nil {
		o.OnDifference = func(streams.Difference) {}
	}
}

// Consumer takes the messages of one index from the work queue and gives them to its owner, one by one, in the order
// in which the server sent them. The owner settles each exactly once, from any goroutine: Ack when its answer is
// out, Nak to have it delivered again, Term or Dead to give it up.
//
// What it promises:
//
//   - Everything that was pulled is outstanding, from the moment the client library hands it over until it is
//     settled, whether the owner has seen it or not, and the server is told so at least every AckWait/3. So an
//     owner may be slow, or hold messages for hours, and no message is delivered a second time for that. No message
//     waits unseen in a buffer of the client library: the subscription's callback does nothing that blocks.
//   - It pulls no more than it was granted. The window is how much may be outstanding, in messages and bytes; what is
//     settled makes room. A window that is full, Hold, or a lost connection is back-pressure: messages stay
//     outstanding, nothing is pulled, no delivery is spent.
//   - A message that the server delivers again although it is outstanding here (the connection was gone for longer
//     than AckWait) is not given to the owner twice; it is settled by its latest delivery.
//   - Nobody pays for it who does not use it: while nothing is outstanding it has one goroutine beside that of its subscription.
//   - It lives through the loss of the connection, of the server, of the durable and of the stream. It makes the
//     durable anew; the stream is the business of [streams.Ensure]. What goes wrong is in Progress and goes to
//     OnState, and is tried again for ever. What was asked of a connection that broke is not waited for.
//   - A stream that was deleted and made anew counts from 1 again. Messages of the old one are then settled without a
//     word to the server, which would take it for a word on new messages of the same numbers, and new ones carry the
//     new StreamCreated, on which the identity of answers rests. The consumer notices by the creation time of stream
//     and durable, read at every sign of trouble: a pull that was refused, a reconnection, a sequence that runs
//     backwards.
//
// An ack is a plain publish, not a request that waits for the server's word: an ack that is lost costs a second
// delivery after AckWait, whose answer has the id of the first and so is not stored twice, while waiting would cost
// a round trip per message (BenchmarkAck). The promise is at least once either way.
//
// Pulling is done here, on the protocol's level, because jetstream's Fetch and Consume drop what arrives after they
// are told to stop, or after their time-out (it comes back after AckWait, with one delivery spent); cannot be
// granted more or less while they run; and take a user's message with an empty body and a header "Status" for
// their own. One request is open at a time, so that it is always known how much was asked for and not received.
type Consumer struct {
	js      jetstream.JetStream
	nc      *nats.Conn
	opts    Options
	limits  limits
	deliver func(context.Context, *Message)
	next    string // API subject of pull requests
	in      *inbox // where they are answered; the pull loop's

	wakePull    bell.Bell
	wakeAlive   bell.Bell
	stopping    chan struct{} // closed by Stop
	stopOnce    sync.Once
	abandonOnce sync.Once
	abandon     chan struct{} // closed when Stop does not wait any longer
	ended       chan struct{} // closed when Run returns

	loops sync.WaitGroup // that deliver and keep alive

	mu          sync.Mutex
	running     bool
	open        context.Context     // of deliveries; nil where nothing is delivered or kept alive, before and after Run
	delivering  bool                // there is a goroutine that delivers, as long as something is ready,
	alive       bool                // and one that keeps alive, as long as something is outstanding
	held        bool                // by Hold
	outstanding map[uint64]*Message // by stream sequence
	bytes       int64               // of outstanding
	ready       []*Message          // outstanding, not yet given to the owner
	stats       Stats

	pull       *pull // the open request, or nil
	pulls      uint64
	minBytes   int64     // a request for fewer bytes might get nothing
	lastPull   time.Time // when the server last answered one
	unanswered int       // requests since, of which nothing came
	refusal    error     // what it last said instead, if pullLoop does not know yet
	err        error     // why nothing can be pulled
	paused     error     // the durable gives nothing at present

	doubt    bool        // stream and durable have to be looked at before anything else,
	doubts   uint64      // for this many reasons so far,
	limbo    []*nats.Msg // and these came meanwhile
	created  time.Time   // of the stream
	durable  time.Time   // when the durable was made
	sequence uint64      // the last consumer sequence seen

	ackWait     time.Duration // the durable's
	batchLimit  int           // the durable's limits on a request, or 0
	byteLimit   int64
	expiryLimit time.Duration
	clustered   bool   // it is in a cluster,
	leader      string // of which this server keeps it; "" when not known
}

// New makes a consumer that will give messages to deliver, from one goroutine; deliver may block, until its context
// ends. Nothing happens before Run.
func New(js jetstream.JetStream, opts Options, deliver func(context.Context, *Message)) (*Consumer, error) {
	if err := wire.CheckIndexName(opts.Index); err != nil {
		return nil, fmt.Errorf("consumer: %w", err)
	}
	opts.ensureDefaults()
	nc := js.Conn()
	c := &Consumer{
		js: js, nc: nc, opts: opts, deliver: deliver,
		limits:      limits{messages: opts.MaxAckPending, pullExpiry: time.Second, requestTimeout: requestTimeout, maxBackoff: 5 * time.Second},
		next:        streams.API(js.Options()) + "CONSUMER.MSG.NEXT." + opts.Subjects.Stream(opts.Class) + "." + opts.Subjects.Durable(opts.Index),
		wakePull:    bell.New(),
		wakeAlive:   bell.New(),
		stopping:    make(chan struct{}),
		abandon:     make(chan struct{}),
		ended:       make(chan struct{}),
		outstanding: make(map[uint64]*Message),
		doubt:       true,
		ackWait:     opts.AckWait,
	}
	return c, nil
}
