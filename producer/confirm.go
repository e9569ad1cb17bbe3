package producer

import (
	"context"
	"maps"
	"slices"
	"time"

	"github.com/nats-io/nats.go"
)

// onAck runs on the goroutine of the subscription to acknowledgements.
func (p *Producer) onAck(m *nats.Msg) {
	id, err := parseID(m.Subject[len(p.ackPrefix):])
	if err != nil {
		return // not one of ours: nobody else knows the inbox
	}
	p.mu.Lock()
	f := p.flights[id]
	p.mu.Unlock()
	if f == nil {
		return // ended before: a second answer to a message that was published twice
	}
	if how, err, permanent := parseAck(f, m); err == nil || permanent {
		p.finish(f, how, err)
	} else {
		p.mu.Lock()
		p.fail(f, err)
		p.mu.Unlock()
	}
}

// flushLoop confirms inbox messages: one flush for all that were published before it.
func (p *Producer) flushLoop() {
	for {
		select {
		case <-p.wakeFlush:
		case <-p.ctx.Done():
			return
		}
		p.mu.Lock()
		batch := p.unflushed
		p.unflushed = nil
		p.mu.Unlock()
		if len(batch) > 0 {
			p.flush(batch)
		}
	}
}

func (p *Producer) flush(batch []*flight) {
	ctx, cancel := context.WithTimeout(p.ctx, p.ackTimeout)
	err := p.nc.FlushWithContext(ctx)
	cancel()
	if err == nil {
		p.awaitErrors()
	}
	connected, epoch := p.nc.IsConnected(), p.nc.Stats().Reconnects
	for _, f := range batch {
		// A flush says nothing about what was published on an earlier connection.
		if err == nil && f.epoch == epoch {
			p.finish(f, Confirmation{}, nil)
			continue
		}
		p.mu.Lock()
		if connected && f.epoch == epoch {
			p.fail(f, errNoFlush)
		} else if !f.ended {
			p.hold(f)
			p.wakeTend.Ring()
		}
		p.mu.Unlock()
	}
}

// awaitErrors returns when the errors that the connection had received before it was called went through the error
// handler: the client hands them to another goroutine, which may be later than the flush that they preceded.
func (p *Producer) awaitErrors() {
	var timeout <-chan time.Time
	for {
		last := p.nc.LastError()
		if last == nil {
			return
		}
		p.mu.Lock()
		seen, isLast := p.errSeen, last == p.seenErr //nolint:errorlint // the same occurrence of it is meant
		p.mu.Unlock()
		if isLast {
			return
		}
		if timeout == nil { // not every error of a connection goes through the handler
			timeout = time.After(time.Second)
		}
		select {
		case <-seen:
		case <-timeout:
			p.mu.Lock()
			p.seenErr = last
			p.mu.Unlock()
		case <-p.ctx.Done():
			return
		}
	}
}

// onError gets every asynchronous error of the connection.
func (p *Producer) onError(err error) {
	var forbidden []*flight
	p.mu.Lock()
	action, subject := forbiddenSubject(err)
	for _, f := range p.flights {
		if !f.sent.IsZero() && (action == publishing && f.msg.Subject == subject || action == replying && f.msg.Reply == subject) {
			forbidden = append(forbidden, f)
		}
	}
	if action == publishing && subject == p.askSubject() {
		p.blind = true
		if q := p.lanes[stream].asked; q != nil {
			q.cancel()
		}
	}
	if action == subscribing && subject == p.ackPrefix+"*" {
		p.ackErr = err
	}
	p.mu.Unlock()
	for _, f := range forbidden {
		p.finish(f, Confirmation{}, &ForbiddenError{subject})
	}
	// Not before: who waits for it (awaitErrors) takes what has not ended then for delivered.
	p.mu.Lock()
	p.seenErr = err
	close(p.errSeen)
	p.errSeen = make(chan struct{})
	p.mu.Unlock()
}

// tendLoop follows the connection, the time and the contexts, sends what was held, and reports the state. The
// channel of status changes only wakes it: what it knows, it reads from the connection, so nothing can be missed.
func (p *Producer) tendLoop() {
	timer := time.NewTimer(0)
	defer timer.Stop()
	status, blocked := p.status, false
	for {
		select {
		case _, ok := <-status:
			if !ok { // the connection is closed
				status = nil
			}
		case <-p.wakeTend:
		case <-timer.C:
		case <-p.ctx.Done():
			return
		}
		t := p.tend(time.Now())
		for _, f := range t.ended {
			p.finish(f, Confirmation{}, f.ctx.Err())
		}
		if p.nc.IsClosed() {
			p.finishAll(nats.ErrConnectionClosed)
		}
		for _, f := range t.send {
			p.attempt(f)
		}
		if t.again > 0 {
			timer.Reset(t.again)
		}
		if t.state.Blocked != blocked {
			blocked = t.state.Blocked
			if p.opts.OnState != nil {
				p.opts.OnState(t.state)
			}
		}
	}
}

// tending is what tend found to do.
type tending struct {
	send, ended []*flight
	again       time.Duration // look again after this, 0 when woken
	state       State
}

func (p *Producer) tend(now time.Time) (t tending) {
	// Not under p.mu: the connection's lock is held for as long as dialling takes.
	connected, epoch := p.nc.IsConnected(), p.nc.Stats().Reconnects
	p.mu.Lock()
	defer p.mu.Unlock()
	p.follow(now, connected, epoch)
	for _, f := range p.flights {
		if f.ctx.Err() != nil {
			t.ended = append(t.ended, f)
		} else if f.lane == &p.lanes[stream] && !f.held && !f.sent.IsZero() && now.Sub(f.sent) > p.ackTimeout {
			if p.ackErr != nil {
				p.fail(f, p.ackErr)
			} else {
				p.fail(f, errNoAck)
			}
		}
	}
	t.send = p.releaseStored(&p.lanes[stream], now, t.send)
	t.send = p.release(&p.lanes[inbox], now, t.send)
	if p.ticking = len(p.flights) > 0 || p.lanes[stream].fault != nil; p.ticking {
		t.again = min(p.ackTimeout/4, p.minBackoff)
	}
	t.state = p.state()
	return t
}

// follow takes note of the connection's state. What was in flight when it was lost may or may not have arrived, so it
// is held, to be sent again on the next connection; flushLoop does the same for inboxes. p.mu is held.
func (p *Producer) follow(now time.Time, connected bool, epoch uint64) {
	if epoch != p.epoch || p.connected && !connected {
		for _, f := range p.flights {
			if f.lane == &p.lanes[stream] && !f.sent.IsZero() {
				p.hold(f)
			}
		}
		p.lanes[inbox].fault, p.lanes[inbox].probe = nil, nil // they were the old connection's
		// What the stream has refused it may refuse still: it is asked at once.
		p.unask(&p.lanes[stream])
		p.lanes[stream].forget(now)
	}
	p.connected, p.epoch = connected, epoch
}

func (p *Producer) finishAll(err error) int {
	p.mu.Lock()
	rest := slices.Collect(maps.Values(p.flights))
	p.mu.Unlock()
	for _, f := range rest {
		p.finish(f, Confirmation{}, err)
	}
	return len(rest)
}
