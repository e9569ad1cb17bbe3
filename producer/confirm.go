package producer

import (
	"context"
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
	ctx, cancel := context.WithTimeout(p.ctx, p.opts.AckTimeout)
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
