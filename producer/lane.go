package producer

import "time"

// The two ways out.
const (
	stream = iota // confirmed by JetStream
	inbox         // confirmed by a flush
)

// lane is one way out. Everything is guarded by the producer's mutex.
type lane struct {
	held []*flight // to be sent (again), the longest waiting first; may hold flights that ended meanwhile

	fault error         // why nothing gets out, or nil
	since time.Time     // when the fault began
	pause time.Duration // after the next failure of the probe
	next  time.Time     // when the next probe is due
	probe *flight       // the message sent as a probe whose fate is unknown
	last  time.Time     // when the last confirmed message of the lane was sent
}

// recovered notes the confirmation of f and says whether that ends a fault.
func (l *lane) recovered(f *flight) bool {
	if f.sent.After(l.last) {
		l.last = f.sent
	}
	if l.fault == nil || f.sent.Before(l.since) { // sent before the fault: confirms nothing about now
		return false
	}
	l.fault = nil
	return true
}

// hold keeps f for later. p.mu is held.
func (p *Producer) hold(f *flight) {
	if !f.held {
		f.held = true
		f.lane.held = append(f.lane.held, f)
	}
}

// fail notes that an attempt for f has failed and may succeed later. p.mu is held.
func (p *Producer) fail(f *flight, err error) {
	if _, ok := p.flights[f.id]; !ok || f.held {
		return
	}
	now, l := time.Now(), f.lane
	f.notBefore = now.Add(min(p.opts.MinBackoff<<min(f.attempts-1, 16), p.opts.MaxBackoff))
	switch {
	case l.probe == f:
		l.fault, l.probe = err, nil
		l.pause = min(2*l.pause, p.opts.MaxBackoff)
		l.next = now.Add(l.pause)
	case l.fault == nil && !l.last.After(f.sent):
		l.fault, l.since, l.pause = err, now, p.opts.MinBackoff
		l.next = now.Add(l.pause)
		wake(p.wakeTend)
	default: // known already, or others get through and the fault is this message's
	}
	p.hold(f)
}

// release appends the held flights of a lane that may be sent now: all that are due, or one probe. p.mu is held.
func (p *Producer) release(l *lane, now time.Time, send []*flight) []*flight {
	keep := l.held[:0]
	for _, f := range l.held {
		due := !now.Before(f.notBefore)
		if l.fault != nil {
			due = l.probe == nil && !now.Before(l.next)
		}
		switch {
		case f.ended:
		case due && p.connected && !f.sending:
			f.held = false
			if l.fault != nil {
				l.probe = f
			}
			send = append(send, f)
		default:
			keep = append(keep, f)
		}
	}
	clear(l.held[len(keep):])
	l.held = keep
	return send
}
