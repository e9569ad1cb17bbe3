package consumer

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/nats-io/nats.go"
)

// pull is an open request: how much of it the server has not sent yet.
type pull struct {
	in       *inbox
	number   string // its token in the inbox
	messages int
	bytes    int64
	asked    int64     // bytes in the beginning
	got      bool      // something came
	heard    time.Time // when it was sent, or something came last
	deadline time.Time
}

const (
	// overhead bounds what the server counts towards the bytes of a request beside headers and body: the subject
	// and the acknowledgement subject.
	overhead = 4 << 10
	// grace is how much later than its expiry the end of a request may arrive.
	grace = 500 * time.Millisecond
	// silent is how many requests in a row nothing comes of where that is a fault. A single one is made again: a server on a busy host may not run for half a second.
	silent = 2
	// minPause is between attempts at what failed, at first.
	minPause = 50 * time.Millisecond
	// never is long enough for a timer that something else cuts short.
	never = time.Hour
)

var (
	errDisconnected = errors.New("not connected to NATS")
	errClosed       = errors.New("the connection to NATS is closed")
	errStopping     = errors.New("the consumer is stopping")
	errNoAnswer     = errors.New("the server does not answer pull requests")
	errNoJetStream  = errors.New("no one answers pull requests: is JetStream up?")
)

// puller is what pullLoop remembers.
type puller struct {
	epoch    uint64        // how often the connection had come back
	pause    time.Duration // the last one
	retry    time.Time     // not before
	info     time.Time     // when to read the durable's state
	failed   time.Time     // when the last failure was
	refused  bool          // it was a refused request, of which only an answered one is the end
	reported error
}

// pullLoop keeps a request open while there is room in the window. It returns when ctx ends, or after Stop when
// nothing is outstanding.
func (c *Consumer) pullLoop(ctx context.Context, status <-chan nats.Status) {
	timer := time.NewTimer(0)
	defer timer.Stop()
	var p puller
	stopping := c.stopping
	for {
		select {
		case <-ctx.Done():
			return
		case <-c.abandon:
			return
		case <-stopping:
		case _, ok := <-status:
			if !ok { // the connection is closed
				status = nil
			}
		case <-c.wakePull:
		case <-timer.C:
		}
		select {
		case <-c.stopping:
			stopping = nil // it stays closed
			wait := c.stopStep()
			if wait == 0 {
				return
			}
			timer.Reset(wait)
		default:
			timer.Reset(c.step(ctx, &p))
		}
	}
}

// step does what is to be done now and returns how long there is nothing to do.
func (c *Consumer) step(ctx context.Context, p *puller) time.Duration {
	if err := c.follow(p); err != nil {
		c.fail(p, err)
		return c.limits.pullExpiry // a change of status wakes the loop earlier
	}
	now := time.Now()
	wait := c.expirePull(now)
	c.mu.Lock()
	doubt, refusal := c.doubt, c.refusal
	c.refusal = nil
	answered := c.lastPull.After(p.failed)
	c.mu.Unlock()
	if refusal != nil {
		p.refused = true
		return c.backOff(p, refusal)
	}
	if now.Before(p.retry) {
		return min(wait, p.retry.Sub(now))
	}

	var err error
	if doubt {
		if err = c.ask(ctx, c.ensure); err == nil {
			p.info = now
		}
	}
	if err == nil && !now.Before(p.info) {
		p.info = now.Add(c.opts.InfoInterval)
		err = c.ask(ctx, c.readInfo)
	}
	if ctx.Err() != nil {
		return never
	}
	if errors.Is(err, errConnectionLost) {
		return 0 // the next step follows the connection
	}
	if err != nil {
		c.mu.Lock()
		c.distrust()
		c.mu.Unlock()
		p.refused = false
		return c.backOff(p, err)
	}
	if answered || !p.refused {
		p.pause, p.refused = 0, false
		c.mu.Lock()
		paused := c.paused
		c.mu.Unlock()
		c.fail(p, paused)
	}
	c.request(now)
	return min(wait, max(time.Until(p.info), time.Millisecond), c.limits.pullExpiry+grace)
}

// stopStep waits for the end of the open request, whose messages may be on the way already and would be lost for
// AckWait, and for the owner. It returns 0 when both are done. The request is withdrawn if that is safe.
func (c *Consumer) stopStep() time.Duration {
	now := time.Now()
	wait := c.expirePull(now)
	wait = min(wait, c.withdraw(now))
	c.mu.Lock()
	defer c.mu.Unlock()
	select {
	case <-c.in.closed:
		c.pull = nil
	default:
	}
	for _, msg := range c.limbo { // no one will find out any more what it belongs to
		_ = msg.Respond([]byte("-NAK"))
	}
	c.limbo, c.err = nil, errStopping
	if c.pull == nil && len(c.outstanding) == 0 {
		return 0
	}
	return wait
}

// follow takes note of the connection's state. What was known of the stream before a reconnection is in doubt after
// it, and the messages that are here must be heard of at once.
func (c *Consumer) follow(p *puller) error {
	if c.nc.IsClosed() {
		return errClosed
	}
	if epoch := c.nc.Stats().Reconnects; epoch != p.epoch {
		if err := c.renewInbox(); err != nil {
			return err
		}
		p.epoch, p.retry = epoch, time.Time{}
		c.mu.Lock()
		c.distrust()
		c.mu.Unlock()
		c.wakeAlive.Ring()
	}
	if !c.nc.IsConnected() {
		return errDisconnected
	}
	return nil
}

// distrust says that stream and durable must be looked at again before anything else. c.mu is held.
func (c *Consumer) distrust() {
	c.doubt = true
	c.doubts++
}

// backOff makes a failure known and returns how long to pause.
func (c *Consumer) backOff(p *puller, err error) time.Duration {
	now := time.Now()
	p.pause = min(max(2*p.pause, minPause), c.limits.maxBackoff)
	p.retry, p.failed = now.Add(p.pause), now
	c.fail(p, err)
	return p.pause
}

// fail makes known why nothing can be pulled; nil when something can.
func (c *Consumer) fail(p *puller, err error) {
	c.mu.Lock()
	c.err = err
	c.mu.Unlock()
	if (err == nil) != (p.reported == nil) || err != nil && err.Error() != p.reported.Error() {
		p.reported = err
		c.opts.OnState(err)
	}
}

// expirePull forgets a request whose end the server did not announce, and returns how long to wait for that.
func (c *Consumer) expirePull(now time.Time) time.Duration {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.pull == nil {
		return never
	}
	if wait := c.pull.deadline.Sub(now); wait > 0 {
		return wait
	}
	c.pull = nil
	if c.unanswered++; c.unanswered >= silent {
		c.refusal = errNoAnswer
	}
	c.distrust()
	return never
}

// room is what may be asked for now. c.mu is held.
func (c *Consumer) room() (messages int, bytes int64) {
	if c.held || c.doubt || c.pull != nil {
		return 0, 0
	}
	messages = c.limits.messages - len(c.outstanding)
	bytes = c.opts.Bytes - c.bytes
	if len(c.outstanding) > 0 {
		// Rather wait than ask for a few messages at a time; and never for fewer bytes than a message may have,
		// which would get nothing.
		if messages < c.limits.messages/8 || bytes < c.minBytes {
			return 0, 0
		}
	}
	messages, bytes = max(messages, 0), max(min(bytes, c.opts.PullBytes), c.minBytes)
	if c.batchLimit > 0 {
		messages = min(messages, c.batchLimit)
	}
	if c.byteLimit > 0 {
		bytes = min(bytes, c.byteLimit)
	}
	return messages, bytes
}

// request opens a request for what there is room for, if there is.
func (c *Consumer) request(now time.Time) {
	c.mu.Lock()
	messages, bytes := c.room()
	if messages == 0 {
		c.mu.Unlock()
		return
	}
	expiry := c.limits.pullExpiry
	if c.expiryLimit > 0 {
		expiry = min(expiry, c.expiryLimit)
	}
	c.pulls++
	number := strconv.FormatUint(c.pulls, 36)
	c.pull = &pull{in: c.in, number: number, messages: messages, bytes: bytes, asked: bytes, heard: now, deadline: now.Add(expiry + grace)}
	c.mu.Unlock()

	body := fmt.Appendf(nil, `{"batch":%d,"max_bytes":%d,"expires":%d}`, messages, bytes, expiry.Nanoseconds())
	if err := c.nc.PublishRequest(c.next, c.in.prefix+number, body); err != nil {
		c.mu.Lock()
		c.pull, c.refusal = nil, fmt.Errorf("send a pull request: %w", err)
		c.mu.Unlock()
		c.wakePull.Ring()
	}
}

// receive is the callback of the subscription: messages, and the ends of requests. It blocks on nothing.
func (c *Consumer) receive(in *inbox, msg *nats.Msg) {
	// A message has the subject it was published to; what the server says itself has the inbox's. The body and
	// the headers, which a user chooses, tell nothing.
	if number, ok := strings.CutPrefix(msg.Subject, in.prefix); ok {
		c.control(number, msg)
		return
	}
	meta, err := msg.Metadata()
	if err != nil {
		return // not from a stream
	}
	now := time.Now()
	c.mu.Lock()
	defer c.mu.Unlock()
	c.lastPull, c.unanswered = now, 0
	if p := c.pull; p != nil && p.in == in {
		p.got, p.heard = true, now
		p.messages--
		p.bytes -= int64(msg.Size())
		if p.messages <= 0 || p.bytes <= 0 { // complete, which the server does not always say
			c.pull = nil
			c.wakePull.Ring()
		}
	}
	old := c.outstanding[meta.Sequence.Stream]
	if meta.Sequence.Consumer <= c.sequence || old != nil && !old.Timestamp.Equal(meta.Timestamp) {
		c.distrust() // sequences do not run backwards, unless durable or stream are not what they were
	}
	if c.doubt {
		c.limbo = append(c.limbo, msg)
		c.stir()
		c.wakePull.Ring()
		return
	}
	c.register(msg, meta, now)
}

// register makes a message outstanding. c.mu is held.
func (c *Consumer) register(msg *nats.Msg, meta *nats.MsgMetadata, now time.Time) {
	c.sequence = meta.Sequence.Consumer
	if meta.NumDelivered > 1 {
		c.stats.Redelivered++
	}
	if old := c.outstanding[meta.Sequence.Stream]; old != nil {
		old.reply, old.heard = msg.Reply, now
		return
	}
	_, _, user, _ := c.opts.Subjects.ParseStored(msg.Subject)
	m := &Message{
		Stored: Stored{
			Index: c.opts.Index, User: user, Class: c.opts.Class, Subject: msg.Subject, Header: msg.Header, Body: msg.Data,
			Sequence: meta.Sequence.Stream, StreamCreated: c.created, Timestamp: meta.Timestamp,
		},
		Delivered: int(meta.NumDelivered),
		c:         c, reply: msg.Reply, heard: now, size: int64(msg.Size()),
	}
	c.outstanding[m.Sequence] = m
	c.bytes += m.size
	c.ready = append(c.ready, m)
	c.stir()
}

// control handles what the server says about a request.
func (c *Consumer) control(number string, msg *nats.Msg) {
	status, text := msg.Header.Get("Status"), strings.ToLower(msg.Header.Get("Description"))
	if status == "100" {
		return // a heartbeat
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	p := c.pull
	if p == nil || p.number != number {
		return // of an earlier request, given up or complete
	}
	c.pull, c.unanswered = nil, 0
	c.wakePull.Ring()
	switch {
	case status == "408", status == "409" && strings.Contains(text, "batch completed"):
		c.lastPull = time.Now()
	case status == "409" && strings.Contains(text, "exceeds maxbytes"):
		c.lastPull = time.Now()
		if !p.got { // there are messages larger than any that the server takes now
			c.minBytes = max(c.minBytes, min(2*p.asked, 1<<40))
		}
	case status == "409" && (strings.Contains(text, "leadership change") || strings.Contains(text, "server shutdown")):
		c.distrust()
	case status == "409" && strings.Contains(text, "consumer deleted"):
		c.refusal = fmt.Errorf("the durable %s was deleted", c.opts.Subjects.Durable(c.opts.Index))
		c.distrust()
	case status == "503":
		c.refusal = errNoJetStream
		c.distrust()
	default:
		c.refusal = fmt.Errorf("the server refuses pull requests: %s %s", status, msg.Header.Get("Description"))
		c.distrust()
	}
}

// stir has those begin who deliver what is ready and keep alive what is here. c.mu is held.
func (c *Consumer) stir() {
	ctx := c.open
	if ctx == nil {
		return
	}
	if !c.delivering && len(c.ready) > 0 {
		c.delivering = true
		c.loops.Go(func() { c.deliverAll(ctx) })
	}
	if !c.alive {
		c.alive = true
		tick := c.ackWait / 6
		c.loops.Go(func() { c.keepAlive(ctx, tick) })
	}
}

// deliverAll gives messages to the owner until none is ready.
func (c *Consumer) deliverAll(ctx context.Context) {
	for {
		c.mu.Lock()
		ready := c.ready
		c.ready = nil
		c.delivering = len(ready) > 0 && ctx.Err() == nil // else they are given back
		delivering := c.delivering
		c.mu.Unlock()
		if !delivering {
			return
		}
		for _, m := range ready {
			if ctx.Err() != nil {
				break
			}
			c.deliver(ctx, m)
		}
	}
}

// keepAlive tells the server of each outstanding message that it is here, at least every AckWait/3, until none is.
func (c *Consumer) keepAlive(ctx context.Context, tick time.Duration) {
	timer := time.NewTimer(tick)
	defer timer.Stop()
	var replies []string
	for {
		all := false
		select {
		case <-timer.C:
		case <-c.wakeAlive:
			all = true
		case <-ctx.Done():
			return
		}
		now := time.Now()
		replies = replies[:0]
		c.mu.Lock()
		tick = c.ackWait / 6
		if len(c.outstanding) == 0 && len(c.limbo) == 0 {
			c.alive = false
			c.mu.Unlock()
			return
		}
		for _, m := range c.outstanding {
			if all || now.Sub(m.heard) >= tick {
				m.heard = now
				replies = append(replies, m.reply)
			}
		}
		for _, msg := range c.limbo {
			replies = append(replies, msg.Reply)
		}
		c.mu.Unlock()
		// Without a connection it would only fill the client's buffer; the reconnection wakes the loop.
		if c.nc.IsConnected() {
			for _, reply := range replies {
				_ = c.nc.Publish(reply, []byte("+WPI"))
			}
		}
		timer.Reset(tick)
	}
}
