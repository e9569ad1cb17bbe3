// Package producer publishes results and says when they are safely out.
package producer

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/geniemq/geniemq/internal/bell"
	"github.com/geniemq/geniemq/wire"
)

// Outgoing is a message to publish. It belongs to the producer from Publish on until done was called.
type Outgoing struct {
	Subject string
	// MsgID makes publishing a stored result idempotent: the stream drops a message with an id that it has seen
	// within its duplicate window, and confirms it all the same. Without one, a result whose confirmation was
	// lost is stored twice.
	MsgID  string
	Header nats.Header
	Body   []byte
}

// Confirmation says how a message got out.
type Confirmation struct {
	// Sequence is the place of a stored message in its stream, 0 for inboxes.
	Sequence uint64
	// Duplicate says that the stream had a message with this id already, and that one's is Sequence. It need not be the same
	// message: whoever chose the id may have chosen it twice.
	Duplicate bool
}

// Options of a Producer.
type Options struct {
	// Subjects tell which subjects a stream keeps: those of Results(). Everything else is an inbox.
	Subjects wire.Subjects
	// JetStream is asked for the state of the result stream, over the same connection. Required.
	JetStream jetstream.JetStream
	// Share is how many producers of a process publish to the result stream: each takes its part of what may be in flight. Default 2.
	Share int
	// OnState is called when Blocked changes, from a goroutine of the producer, never concurrently. Default: none.
	OnState func(State)
}

// limits of a Producer, which only tests change.
type limits struct {
	// Of the messages that are published and not yet confirmed, with headers and bodies counted; Publish blocks above. A message larger
	// than maxInFlightBytes travels alone.
	maxInFlight      int
	maxInFlightBytes int64
	// ackTimeout is how long a confirmation may take before the message is published again.
	ackTimeout time.Duration
	// minBackoff and maxBackoff bound the pause between attempts, which doubles.
	minBackoff, maxBackoff time.Duration
}

// A server refuses what is more than 10,000 messages or 128 MiB that wait to be stored in one stream, and subscribers see what it refuses. These
// are what all producers of a process may have in flight together.
const (
	allInFlight      = 8192
	allInFlightBytes = 128 << 20
)

func defaults(share int) limits {
	share = max(1, cmp.Or(share, 2))
	return limits{
		maxInFlight: allInFlight / share, maxInFlightBytes: allInFlightBytes / int64(share), ackTimeout: 5 * time.Second,
		minBackoff: 100 * time.Millisecond, maxBackoff: 2 * time.Second,
	}
}

// State is what a Producer can say about itself.
type State struct {
	// Blocked: nothing gets out at present, on one of the two ways at least. Messages wait and are tried again;
	// whoever feeds the producer should stop taking on work.
	Blocked bool
	// Reason is the last error when Blocked. It says what to do about it where that is known.
	Reason error
	// InFlight are not yet confirmed.
	InFlight int
}

// Producer publishes messages, and confirms each by calling its done function exactly once: with nil when the
// message is out, or with the reason why it never will be.
//
// "Out" has two meanings. On a subject of the result stream it means that JetStream has stored the message (or says
// that it has one with this id already: see [Confirmation]). On any other subject, an inbox, there is no one to acknowledge it: it means that the server
// has taken it, shown by a flush on the connection that it was published on. One flush confirms all inbox messages
// published before it, so under load their number is far below that of the messages.
//
// A message is never dropped because the stream is full, the connection is lost, or no one answers. It is held and
// tried again, until its context ends. The two ways out are two lanes, each with its own fault: a full result
// stream does not hold up inboxes. While a lane has a fault it holds its messages back and finds out, with growing pauses,
// whether it is over: by one inbox message as a probe, or by asking the stream what it has room for, since a publish
// that it refuses is seen by subscribers all the same (see lane). A message that
// fails while others succeed backs off alone. Only what cannot ever succeed is reported as an error: too large
// ([TooLargeError]), forbidden ([ForbiddenError]), an invalid subject, a closed connection.
//
// Two properties of NATS shape the code. A client that lost its connection does not know which of its messages
// arrived: everything unconfirmed at that time is published again (the message id removes the double in the stream;
// an inbox may see it twice). And a forbidden publish succeeds, then fails asynchronously through the connection's
// error handler, even after a flush that follows it has returned; the producer therefore puts itself in front of
// the error handler that the connection has when New is called, passes everything on, and confirms a flush
// only when the errors that preceded its answer have gone through.
//
// JetStream's acknowledgements are matched here and not by jetstream.PublishMsgAsync. Retrying, time-outs, a bound in
// bytes and a fate for each message need a table of what is in flight in any case; the library keeps a second one
// with a timer and a future for each message, and calls its time-out handler with its own lock held, so that one
// cannot publish from there. BenchmarkPublish compares the two: this does more and costs no more.
//
// done functions run on the producer's goroutines, or within Publish; they must not block, and so not call Publish.
type Producer struct {
	nc      *nats.Conn
	opts    Options
	results string // the subjects of stored results
	limits

	acks      *nats.Subscription // of ackPrefix + "*"
	ackPrefix string
	status    chan nats.Status
	ctx       context.Context // of the producer's goroutines
	stop      context.CancelFunc
	wg        sync.WaitGroup

	wakeTend  bell.Bell // something to do for tend, or for flush
	wakeFlush bell.Bell
	asks      chan *question // for askLoop; has room for one

	mu        sync.Mutex
	flights   map[uint64]*flight // everything that is not confirmed, by id
	lastID    uint64
	bytes     int64
	room      chan struct{} // closed when a flight ends, nil when no one waits for that
	lanes     [2]lane
	unflushed []*flight // inbox messages that are published and wait for a flush
	ticking   bool      // tendLoop looks again by itself
	closed    bool

	connected bool
	epoch     uint64 // how often the connection had come back when last looked
	seenErr   error  // the last error that came through the error handler
	errSeen   chan struct{}
	ackErr    error // why acknowledgements cannot arrive, when that is known
	blind     bool  // the stream must not be asked for its state
}

// flight is a message on its way. The producer's mutex guards the fields below msg, and msg never changes once the
// flight is in the table, so that a late acknowledgement of one attempt may end it in the middle of another.
type flight struct {
	id    uint64
	ctx   context.Context
	done  func(Confirmation, error)
	lane  *lane
	bytes int64
	msg   nats.Msg

	sent      time.Time // the last attempt; zero when there was none
	epoch     uint64    // inbox: how often the connection had come back before the last attempt
	attempts  int
	notBefore time.Time // of the next attempt
	refused   bool      // stream: an attempt was not taken; the stream is asked before the next
	grant     uint64    // stream: the answer that the last attempt was made on, 0 for none or when that has failed
	held      bool      // waits in lane.held
	sending   bool      // a goroutine is in PublishMsg with it,
	ended     bool      // and calls done when it returns
	confirmed Confirmation
	err       error
}

// Publish sends a message and returns once it is on its way or held; done is called when its fate is known, with
// an error only if it will never be out. Publish blocks while maxInFlight or maxInFlightBytes are reached. When ctx
// ends first, done gets its error, though the message may still arrive.
func (p *Producer) Publish(ctx context.Context, out Outgoing, done func(Confirmation, error)) {
	f := &flight{ctx: ctx, done: done, lane: &p.lanes[inbox]}
	f.msg = nats.Msg{Subject: out.Subject, Header: out.Header, Data: out.Body}
	stored := wire.MatchSubject(p.results, out.Subject)
	if stored {
		f.lane = &p.lanes[stream]
	}
	if out.MsgID != "" {
		if f.msg.Header == nil {
			f.msg.Header = make(nats.Header, 1)
		}
		f.msg.Header[wire.HeaderMsgID] = []string{out.MsgID}
	}
	f.bytes = int64(f.msg.Size())
	if err := p.admit(f); err != nil {
		done(Confirmation{}, err)
		return
	}
	if stored {
		f.msg.Reply = p.ackPrefix + formatID(f.id)
	}
	p.attempt(f)
}

// admit waits for room and enters f into the table.
func (p *Producer) admit(f *flight) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	for {
		if err := f.ctx.Err(); err != nil {
			return fmt.Errorf("publish to %s: %w", f.msg.Subject, err)
		}
		if p.closed {
			return fmt.Errorf("publish to %s: %w", f.msg.Subject, ErrClosed)
		}
		if n := len(p.flights); n == 0 || n < p.maxInFlight && p.bytes+f.bytes <= p.maxInFlightBytes {
			break
		}
		p.awaitRoom(f.ctx)
	}
	p.lastID++
	f.id = p.lastID
	p.flights[f.id] = f
	p.bytes += f.bytes
	if !p.ticking {
		p.ticking = true
		p.wakeTend.Ring()
	}
	return nil
}

// awaitRoom returns when a flight has ended since it was called, or ctx has. p.mu is held, and released meanwhile.
func (p *Producer) awaitRoom(ctx context.Context) {
	if p.room == nil {
		p.room = make(chan struct{})
	}
	room := p.room
	p.mu.Unlock()
	select {
	case <-room:
	case <-ctx.Done():
	}
	p.mu.Lock()
}

// attempt puts f on the wire, unless its lane holds messages back.
func (p *Producer) attempt(f *flight) {
	var epoch uint64
	if f.lane == &p.lanes[inbox] {
		epoch = p.nc.Stats().Reconnects
	}
	p.mu.Lock()
	if _, ok := p.flights[f.id]; !ok {
		p.mu.Unlock()
		return
	}
	if !p.connected || f.lane.holds(f) {
		p.hold(f)
		p.mu.Unlock()
		return
	}
	f.sent, f.epoch, f.sending = time.Now(), epoch, true
	f.attempts++
	p.mu.Unlock()

	err, permanent := p.classify(f, p.nc.PublishMsg(&f.msg))

	p.mu.Lock()
	f.sending = false
	if f.ended {
		p.mu.Unlock()
		f.done(f.confirmed, f.err)
		return
	}
	switch {
	case permanent:
		p.mu.Unlock()
		p.finish(f, Confirmation{}, err)
		return
	case err != nil:
		p.fail(f, err)
	case f.lane == &p.lanes[inbox]:
		p.unflushed = append(p.unflushed, f)
		p.wakeFlush.Ring()
	}
	p.mu.Unlock()
}

// finish ends a flight, if it has not ended yet.
func (p *Producer) finish(f *flight, how Confirmation, err error) {
	p.mu.Lock()
	if _, ok := p.flights[f.id]; !ok {
		p.mu.Unlock()
		return
	}
	delete(p.flights, f.id)
	p.bytes -= f.bytes
	if f.lane.ended(f, err == nil) {
		p.wakeTend.Ring()
	}
	if p.room != nil {
		close(p.room)
		p.room = nil
	}
	f.ended, f.confirmed, f.err = true, how, err
	sending := f.sending
	p.mu.Unlock()
	if !sending {
		f.done(how, err)
	}
}

// State returns the present state. It is cheap enough for a health check, not for every message.
func (p *Producer) State() State {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.state()
}

func (p *Producer) state() State {
	s := State{InFlight: len(p.flights)}
	out, in := &p.lanes[stream], &p.lanes[inbox]
	switch {
	case !p.connected:
		s.Reason = errDisconnected
	case in.fault != nil && (out.fault == nil || in.since.Before(out.since)): // the older one
		s.Reason = in.fault
	default:
		s.Reason = out.fault
	}
	s.Blocked = s.Reason != nil
	return s
}

// New starts a producer on a connection, which must outlive it. Close ends it.
func New(nc *nats.Conn, opts Options) (*Producer, error) {
	return start(nc, opts, defaults(opts.Share))
}

func start(nc *nats.Conn, opts Options, l limits) (*Producer, error) {
	p := &Producer{
		nc: nc, opts: opts, results: opts.Subjects.Results(), limits: l,
		ackPrefix: nc.NewInbox() + ".",
		wakeTend:  bell.New(),
		wakeFlush: bell.New(),
		asks:      make(chan *question, 1),
		flights:   make(map[uint64]*flight),
		errSeen:   make(chan struct{}),
		seenErr:   nc.LastError(),
	}
	// Before the subscription: the server may refuse it before Subscribe has returned.
	next := nc.ErrorHandler()
	nc.SetErrorHandler(func(nc *nats.Conn, sub *nats.Subscription, err error) {
		p.onError(err)
		if next != nil {
			next(nc, sub, err)
		}
	})
	acks, err := nc.Subscribe(p.ackPrefix+"*", p.onAck)
	if err != nil {
		nc.SetErrorHandler(next)
		return nil, fmt.Errorf("subscribe to publish acknowledgements: %w", err)
	}
	if err := acks.SetPendingLimits(-1, -1); err != nil { // maxInFlight bounds them
		nc.SetErrorHandler(next)
		return nil, fmt.Errorf("unbound publish acknowledgements: %w", err)
	}
	p.acks = acks
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
