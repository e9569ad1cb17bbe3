package producer

import (
	"time"

	"github.com/nats-io/nats.go"
)

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
		} else if f.lane == &p.lanes[stream] && !f.held && !f.sent.IsZero() && now.Sub(f.sent) > p.opts.AckTimeout {
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
		t.again = min(p.opts.AckTimeout/4, p.opts.MinBackoff)
	}
	t.state = p.state()
	return t
}

// follow takes note of the connection's state. What was in flight when it was lost may or may not have arrived, so it
// is held, to be sent again on the next connection; flushLoop does the same for inboxes. p.mu is held.
func (p *Producer) follow(now time.Time, connected bool, epoch uint64) {
	if p.connected && !connected {
		p.offline = now
	}
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
	rest := make([]*flight, 0, len(p.flights))
	for _, f := range p.flights {
		rest = append(rest, f)
	}
	p.mu.Unlock()
	for _, f := range rest {
		p.finish(f, Confirmation{}, err)
	}
	return len(rest)
}
