package producer

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/geniemq/geniemq/consumer/streams"
	"github.com/geniemq/geniemq/wire"
)

// room is what the result stream said that it takes, less what was published since.
type room struct {
	info     *jetstream.StreamInfo // nil: it cannot be asked, or what it says is not to be trusted
	messages int64
	bytes    int64 // as the stream counts
	subject  string
}

// boundless is more than any stream has room for.
const boundless = 1 << 62

// roomOf reads what a stream has room for. With a bound on the messages of each subject, which is known of one subject only, the
// room is for messages on that.
func roomOf(info *jetstream.StreamInfo, subject string) room {
	r := room{info: info, messages: boundless, bytes: boundless}
	c, s := &info.Config, &info.State
	if c.Discard != jetstream.DiscardNew {
		return r
	}
	if c.MaxMsgs > 0 {
		r.messages = c.MaxMsgs - int64(s.Msgs)
	}
	if c.MaxBytes > 0 {
		r.bytes = c.MaxBytes - int64(s.Bytes)
	}
	if c.DiscardNewPerSubject && c.MaxMsgsPerSubject > 0 {
		r.subject = subject
		r.messages = min(r.messages, c.MaxMsgsPerSubject-int64(s.Subjects[subject]))
	}
	return r
}

// refuses says why the stream would not store a message, or nil.
func (r *room) refuses(f *flight) error {
	if r.info == nil {
		if r.messages <= 0 {
			return errOneAtATime
		}
		return nil
	}
	c := &r.info.Config
	switch {
	case r.subject != "" && r.subject != f.msg.Subject:
		return errOneAtATime // the next question may be about its subject
	case c.Sealed:
		return fmt.Errorf("the result stream refuses messages: %s is sealed", c.Name)
	case !takes(c, f.msg.Subject):
		return fmt.Errorf("the result stream refuses messages: %s does not take %s: put %v among its subjects", c.Name, f.msg.Subject, f.msg.Subject)
	case r.messages <= 0:
		return fmt.Errorf("the result stream refuses messages: %s is full: maximum messages exceeded", c.Name)
	case r.bytes < storedSize(c.Storage, &f.msg):
		return fmt.Errorf("the result stream refuses messages: %s is full: maximum bytes exceeded", c.Name)
	}
	return nil
}

// take counts a message that is published.
func (r *room) take(f *flight) {
	r.messages--
	if r.info != nil {
		r.bytes -= storedSize(r.info.Config.Storage, &f.msg)
	}
}

func takes(c *jetstream.StreamConfig, subject string) bool {
	return slices.ContainsFunc(c.Subjects, func(pattern string) bool { return wire.MatchSubject(pattern, subject) })
}

// storedSize is how many bytes a message takes of a stream's max_bytes: nats-server's fileStoreMsgSize and memStoreMsgSize.
func storedSize(storage jetstream.StorageType, msg *nats.Msg) int64 {
	size := int64(len(msg.Subject) + len(msg.Data))
	header := int64(wire.HeaderSize(msg.Header))
	switch {
	case storage == jetstream.MemoryStorage:
		return size + header + 16
	case header > 0:
		return size + header + 34
	}
	return size + 30
}

// question is what askLoop asks the stream.
type question struct {
	ctx     context.Context // ends when the answer is not waited for any longer
	cancel  context.CancelFunc
	subject string // of the message that has waited longest, "" when none does
}

// ask asks the stream what it has room for. p.mu is held.
func (p *Producer) ask(l *lane) {
	ctx, cancel := context.WithTimeout(p.ctx, p.ackTimeout)
	q := &question{ctx: ctx, cancel: cancel}
	if i := slices.IndexFunc(l.held, func(f *flight) bool { return l.fault != nil || f.refused }); i >= 0 {
		q.subject = l.held[i].msg.Subject
	}
	l.asked = q
	select {
	case p.asks <- q:
	default: // one that was given up is still being asked
		cancel()
		l.asked = nil
	}
}

// forget forgets what was asked and answered on a connection that is gone.
func (l *lane) forget(now time.Time) {
	l.room, l.fresh, l.granted, l.doubt, l.silent = room{}, false, 0, 0, false
	l.grant++ // what was sent on the last answer does not count any longer
	l.next, l.pause = now, 0
}

// unask gives up an open question. p.mu is held.
func (p *Producer) unask(l *lane) {
	if l.asked != nil {
		l.asked.cancel()
		l.asked = nil
	}
}

// askLoop asks the stream, when messages wait that it has not taken, what it has room for.
func (p *Producer) askLoop() {
	for {
		select {
		case q := <-p.asks:
			r, err := p.lookUp(q)
			q.cancel()
			p.answered(q, r, err)
		case <-p.ctx.Done():
			return
		}
	}
}

func (p *Producer) lookUp(q *question) (room, error) {
	p.mu.Lock()
	blind := p.blind
	p.mu.Unlock()
	if blind {
		return room{messages: 1}, nil
	}
	name := p.opts.Subjects.ResultStream()
	s, err := p.opts.JetStream.Stream(q.ctx, name)
	var info *jetstream.StreamInfo
	if err == nil {
		info = s.CachedInfo()
		if c := &info.Config; q.subject != "" && c.DiscardNewPerSubject && c.MaxMsgsPerSubject > 0 {
			info, err = s.Info(q.ctx, jetstream.WithSubjectFilter(q.subject))
		}
	}
	switch {
	case err == nil:
		return roomOf(info, q.subject), nil
	case errors.Is(err, jetstream.ErrStreamNotFound), errors.Is(err, jetstream.ErrJetStreamNotEnabled),
		errors.Is(err, jetstream.ErrJetStreamNotEnabledForAccount), errors.Is(err, nats.ErrNoResponders):
		return room{}, errNoStream
	case errors.Is(err, context.DeadlineExceeded), errors.Is(err, context.Canceled):
		return room{}, errNoAck
	}
	return room{}, fmt.Errorf("the result stream cannot be asked for its state: %w", err)
}

// answered takes note of what the stream said.
func (p *Producer) answered(q *question, r room, err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	l := &p.lanes[stream]
	if l.asked != q {
		return // it was given up
	}
	l.asked = nil
	now := time.Now()
	if err != nil {
		l.silent = true
		p.refused(l, now, err)
		return
	}
	if l.silent { // it has come back: what it did before says nothing
		l.silent, l.doubt = false, 0
	}
	if l.doubt > 0 {
		r.messages = min(r.messages, 1)
	}
	l.room, l.fresh, l.grant, l.granted = r, true, l.grant+1, 0
	p.wakeTend.Ring()
}

// refused notes that the stream takes nothing at present, as it says itself. p.mu is held.
func (p *Producer) refused(l *lane, now time.Time, err error) {
	if l.fault != nil && !errors.Is(err, errOneAtATime) {
		l.fault = err
	}
	l.pause = min(max(2*l.pause, p.minBackoff), p.maxBackoff)
	l.next = now.Add(l.pause)
	p.wakeTend.Ring()
}

var errOneAtATime = errors.New("the result stream is given one message at a time")

// askSubject is where the stream is asked for its state. Who may not publish there is told so through the connection's error
// handler; messages are then probes again, one at a time.
func (p *Producer) askSubject() string {
	return streams.API(p.opts.JetStream.Options()) + "STREAM.INFO." + p.opts.Subjects.ResultStream()
}
