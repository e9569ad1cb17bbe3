package producer

import "time"

// The two ways out.
const (
	stream = iota // confirmed by JetStream
	inbox         // confirmed by a flush
)

// lane is one way out. Everything is guarded by the producer's mutex.
//
// A lane with a fault holds its messages back. How it finds out that the fault is over differs. An inbox message that is sent
// again harms nobody, so the longest waiting one is the probe. On the way to the stream a message of a user is no probe:
// the server hands a publish to everybody who has subscribed to its subject, whether the stream stores it or not, so each
// attempt is seen. Therefore a message that the stream has not taken is not published again before the stream,
// asked for its state, says that there is room for it; then as many go out as there is room for. Those that came meanwhile have
// not been published at all.
//
// So a subscriber sees an answer once for each of these: its first attempt; an attempt that the stream had room for
// when it was asked, of which all but the last failed because someone else was faster, or because the stream refuses or is silent for
// a reason that its state does not show (then one message at a time is tried, with pauses that double up to doubtPauses times
// maxBackoff); and a connection that was lost before the confirmation came. With a stream that is full, that is twice for what
// was on its way when it became so, and once for everything else.
type lane struct {
	held []*flight // to be sent (again), the longest waiting first; may hold flights that ended meanwhile

	fault error         // why nothing gets out, or nil
	since time.Time     // when the fault began
	pause time.Duration // after the next failure of the probe, or the next question
	next  time.Time     // when the next probe or question is due
	probe *flight       // inbox: the message sent as a probe whose fate is unknown
	last  time.Time     // when the last confirmed message of the lane was sent

	// stream:
	asked   *question // the open one
	silent  bool      // the last one got no answer that says anything about room
	room    room      // the last answer,
	fresh   bool      // which nothing was sent on yet
	grant   uint64    // its number, from 1
	granted int       // messages sent on it whose fate is unknown
	covered bool      // it had room for all that waited
	doubt   int       // how many times in a row what was sent on an answer was not taken,
	doubted uint64    // the last time on this one
}

// doubtPauses is how many times maxBackoff the pause between attempts may be that fail though the stream says it has room.
const doubtPauses = 15

// holds says that a flight must not be sent now. p.mu is held.
func (l *lane) holds(f *flight) bool {
	return l.fault != nil && l.probe != f && (f.grant == 0 || f.grant != l.grant)
}

// ended notes the end of a flight and says whether that changes anything for those that wait.
func (l *lane) ended(f *flight, ok bool) bool {
	news := l.probe == f
	if news {
		l.probe = nil
	}
	current := f.grant != 0 && f.grant == l.grant
	if current {
		l.granted--
		news = l.granted == 0
	}
	if !ok {
		return news
	}
	if f.sent.After(l.last) {
		l.last = f.sent
	}
	if current {
		l.doubt, l.pause = 0, 0
	}
	if l.fault == nil || f.sent.Before(l.since) { // sent before the fault: confirms nothing about now
		return news
	}
	if l.grant > 0 && !(current && l.covered) { // there is not room for all
		return news
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
	most := p.maxBackoff
	current := f.grant != 0 && f.grant == l.grant
	if f.grant != 0 {
		most *= doubtPauses
	}
	f.notBefore = now.Add(min(p.minBackoff<<min(f.attempts-1, 16), most))
	f.refused = l == &p.lanes[stream]
	if current {
		l.granted--
	}
	f.grant = 0 // an acknowledgement that comes later does not count again
	switch {
	case l.probe == f:
		l.fault, l.probe = err, nil
		l.pause = min(2*l.pause, p.maxBackoff)
		l.next = now.Add(l.pause)
	case l.fault == nil && !l.last.After(f.sent):
		l.fault, l.since, l.pause = err, now, p.minBackoff
		l.next = now.Add(l.pause)
		p.wakeTend.Ring()
	case current && l.fault != nil:
		l.fault = err
	default: // known already, or others get through and the fault is this message's
	}
	if current { // the stream's word was not worth much
		if l.doubted != l.grant {
			l.doubted = l.grant
			l.doubt++
		}
		l.next = now.Add(min(p.minBackoff<<min(l.doubt, 16), doubtPauses*p.maxBackoff))
	}
	p.hold(f)
}

// release appends the held flights of the way to inboxes that may be sent now: all that are due, or one probe. p.mu is held.
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

// releaseStored does the same for the way to the stream: all that are due and were not refused, and on a fresh answer of the
// stream what there is room for. When more waits, the stream is asked. p.mu is held.
func (p *Producer) releaseStored(l *lane, now time.Time, send []*flight) []*flight {
	var refusal error
	waiting := false
	keep := l.held[:0]
	for _, f := range l.held {
		switch {
		case f.ended:
			continue
		case !p.connected || f.sending || l.fault == nil && now.Before(f.notBefore):
		case l.fault == nil && !f.refused:
			f.held, f.grant = false, 0
			send = append(send, f)
			continue
		case l.fresh:
			err := l.room.refuses(f)
			if err == nil {
				l.room.take(f)
				l.granted++
				f.held, f.grant = false, l.grant
				send = append(send, f)
				continue
			}
			if refusal == nil {
				refusal = err
			}
			waiting = true
		default:
			waiting = true
		}
		keep = append(keep, f)
	}
	clear(l.held[len(keep):])
	l.held = keep
	if l.fresh && p.connected {
		l.fresh, l.covered = false, refusal == nil
		switch {
		case l.granted > 0:
			l.next = now.Add(p.minBackoff)
		case refusal != nil:
			p.refused(l, now, refusal)
			if l.room.subject != "" { // others may have room
				l.held = append(l.held[1:], l.held[0])
			}
		default: // nothing waits, and the stream would take it
			l.fault = nil
		}
	}
	if p.connected && l.asked == nil && l.granted == 0 && (waiting || l.fault != nil) && !now.Before(l.next) {
		p.ask(l)
	}
	return send
}
